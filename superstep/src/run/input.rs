//! What a run can start with, typed or as JSON.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::call::{AnyCommand, Goto, Resume, Send};
use crate::engine::RunInput;
use crate::node::Command;
use crate::plan::{GraphCore, InputMode};
use crate::state::erased::AnyUpdate;
use crate::state::{IntoUpdate, State};
use crate::view::Form;

/// What a run can start with: a state or update, a [`Command`], a [`Resume`], or [`GoOn`]. A workflow made of functions runs
/// on any value that serde can write instead of an update. A graph whose state is not known runs on JSON: a value or
/// a [`JsonCommand`].
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, Command, GoOn, IntoInput, JsonCommand, Resume};
/// fn is_input<M>(_: impl IntoInput<AgentState, M>) {}
/// is_input(AgentState::default());
/// is_input(AgentStateUpdate::default());
/// is_input(Command::<AgentState>::new().goto("somewhere"));
/// is_input(Resume::value("yes"));
/// is_input(GoOn);
/// fn is_json_input<M>(_: impl IntoInput<serde_json::Value, M>) {}
/// is_json_input(serde_json::json!({ "messages": ["hi"] }));
/// is_json_input(JsonCommand::default());
/// is_json_input(Resume::value("yes"));
/// ```
#[diagnostic::on_unimplemented(
    message = "a graph over `{S}` cannot be run on `{Self}`",
    note = "run it on the state, an update of it, a `Command<{S}>`, a `Resume`, or `GoOn`; a workflow on a value"
)]
pub trait IntoInput<S, Marker> {
    /// Turns it into an input.
    #[doc(hidden)]
    fn into_input(self) -> AnyInput;
}

/// An input, for the graph that it is given to.
pub struct AnyInput(Given);

crate::debug::debug_parts!([] AnyInput, "AnyInput", this => { is_json: !matches!(this.0, Given::Typed(_)) });

enum Given {
    /// It knew the type of the state.
    Typed(RunInput),
    Json(Value),
    JsonCommand(JsonCommand),
}

impl From<RunInput> for AnyInput {
    fn from(input: RunInput) -> Self {
        Self(Given::Typed(input))
    }
}

impl AnyInput {
    /// The input of this graph.
    pub(crate) fn of(self, graph: &GraphCore) -> RunInput {
        match self.0 {
            Given::Typed(input) => input,
            Given::Json(Value::Null) => RunInput::Nothing,
            Given::Json(value) if matches!(graph.plan.input, InputMode::Entry) => RunInput::Value(value),
            Given::Json(value) => graph.update_from_json(&value).map_or_else(RunInput::Refused, RunInput::Writes),
            Given::JsonCommand(command) => RunInput::Command(command.of(graph)),
        }
    }
}

/// Resumes what is left to do on a thread.
///
/// ```
/// # use superstep::{AgentState, CompiledStateGraph, Error, GoOn, Output};
/// # async fn f(app: CompiledStateGraph<AgentState>) -> Result<Output<AgentState>, Error> {
/// app.invoke(GoOn).thread("t").await
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoOn;

/// A command in JSON, for a graph whose state is not known: an update, where to go, an answer.
///
/// ```
/// use superstep::JsonCommand;
/// let command: JsonCommand = serde_json::from_value(serde_json::json!({
///     "update": { "approved": true }, "goto": ["log", { "node": "mail", "input": { "to": "ada" } }], "resume": "yes",
/// }))?;
/// assert_eq!(command.goto.len(), 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct JsonCommand {
    /// Fields to write.
    pub update: Option<Value>,
    /// Where to go; in JSON, one place or a list.
    #[serde(deserialize_with = "one_or_many")]
    pub goto: Vec<JsonGoto>,
    /// The answer to the one open question; or an object of answers by the ids of their questions.
    pub resume: Option<Value>,
}

/// A place that a [`JsonCommand`] goes to: a node, or a node with an input of its own.
///
/// ```
/// use superstep::JsonGoto;
/// let to: JsonGoto = serde_json::from_value(serde_json::json!({ "node": "work", "input": 1 }))?;
/// assert!(matches!(to, JsonGoto::Send { .. }));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum JsonGoto {
    /// The node, on the shared state.
    Node(String),
    /// The node, on an input.
    Send {
        /// The node.
        node: String,
        /// What it is given.
        #[serde(default)]
        input: Value,
    },
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JsonGoto>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Places {
        Many(Vec<JsonGoto>),
        One(JsonGoto),
        None(()),
    }
    Ok(match Places::deserialize(deserializer)? {
        Places::Many(list) => list,
        Places::One(one) => vec![one],
        Places::None(()) => Vec::new(),
    })
}

impl JsonCommand {
    fn of(self, graph: &GraphCore) -> AnyCommand {
        let update = self.update.map_or(Ok(None), |update| graph.update_from_json(&update));
        let goto = self.goto.into_iter().map(|to| match to {
            JsonGoto::Node(name) => Goto::Node(Cow::Owned(name)),
            JsonGoto::Send { node, input } => Goto::Send(Send::new(node, input)),
        });
        AnyCommand { update, goto: goto.collect(), resume: self.resume.map(answer), is_for_parent: false }
    }
}

/// An answer; an object whose keys all look like the ids of questions answers each by its id, as in LangGraph.
fn answer(value: Value) -> Resume {
    let is_id = |key: &String| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    match value {
        Value::Object(map) if !map.is_empty() && map.keys().all(is_id) => Resume::by_id(map),
        value => Resume::value(value),
    }
}

/// Tells updates from the other inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct UpdateMarker;
/// Tells commands from the other inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct CommandMarker;
/// Tells JSON from the other inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct JsonMarker;

impl<S: State, U: IntoUpdate<S>> IntoInput<S, UpdateMarker> for U {
    fn into_input(self) -> AnyInput {
        if self.is_nothing() {
            return RunInput::Nothing.into();
        }
        let puts = self.into_update().into_puts();
        puts.map_or_else(RunInput::Refused, |puts| RunInput::Writes(AnyUpdate::of::<S>(puts))).into()
    }
}

impl<S: State> IntoInput<S, CommandMarker> for Command<S> {
    fn into_input(self) -> AnyInput {
        RunInput::Command(self.into()).into()
    }
}

impl<S: Form> IntoInput<S, CommandMarker> for Resume {
    fn into_input(self) -> AnyInput {
        let (goto, resume) = (smallvec::SmallVec::new(), Some(self));
        RunInput::Command(AnyCommand { update: Ok(None), goto, resume, is_for_parent: false }).into()
    }
}

impl<S: Form> IntoInput<S, CommandMarker> for GoOn {
    fn into_input(self) -> AnyInput {
        RunInput::Nothing.into()
    }
}

impl IntoInput<Value, JsonMarker> for Value {
    fn into_input(self) -> AnyInput {
        AnyInput(Given::Json(self))
    }
}

impl IntoInput<Value, JsonMarker> for JsonCommand {
    fn into_input(self) -> AnyInput {
        AnyInput(Given::JsonCommand(self))
    }
}
