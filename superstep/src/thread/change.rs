//! Changes of a thread by hand: one update, a fork, or several steps at once.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use serde_json::Value;

use super::{Place, Thread};
use crate::call::AnyOutcome;
use crate::engine::Revision;
use crate::error::{BoxError, Error, ErrorKind};
use crate::node::{IntoOutcome, Outcome};
use crate::plan::GraphCore;
use crate::run::{AnyInput, IntoInput};
use crate::snapshot::CheckpointRef;
use crate::state::State;
use crate::view::Form;
use crate::wall::{caught, words_of};

/// What a thread can be changed by: what a node could return; as JSON, an object that writes its fields.
///
/// ```
/// use superstep::{AgentState, Command, IntoChange, Message};
/// fn is_change<M>(_: impl IntoChange<AgentState, M>) {}
/// is_change(vec![Message::user("hi")]);
/// is_change(Command::<AgentState>::new().goto("somewhere"));
/// fn is_json_change<M>(_: impl IntoChange<serde_json::Value, M>) {}
/// is_json_change(serde_json::json!({ "messages": ["hi"] }));
/// ```
#[diagnostic::on_unimplemented(
    message = "a thread over `{S}` cannot be changed by `{Self}`",
    note = "change it by what a node returns: an update, a `Command`, `()`; a thread of an `AnyGraph` by a JSON value"
)]
pub trait IntoChange<S, Marker> {
    /// Turns it into a change.
    #[doc(hidden)]
    fn into_change(self) -> Change;
}

/// A change, for the graph of the thread.
pub struct Change(Given);

crate::debug::debug_parts!([] Change, "Change", this => { is_json: matches!(this.0, Given::Json(_)) });

enum Given {
    Typed(Result<AnyOutcome, Error>),
    Json(Value),
}

/// Tells what nodes return from JSON.
#[doc(hidden)]
#[derive(Debug)]
pub struct OutcomeMarker;
/// Tells JSON from what nodes return.
#[doc(hidden)]
#[derive(Debug)]
pub struct JsonMarker;

impl<S: State, U: IntoOutcome<S>> IntoChange<S, OutcomeMarker> for U {
    fn into_change(self) -> Change {
        let outcome = caught(|| self.into_outcome()).map_err(|panicked| {
            Error::new(ErrorKind::Panic, format!("what the thread is to be changed by panicked: {panicked}"))
        });
        let erased = |outcome: Result<Outcome<S>, BoxError>| {
            outcome.map(Outcome::erased).map_err(|e| Error::new(ErrorKind::InvalidUpdate, words_of(&*e)))
        };
        Change(Given::Typed(outcome.and_then(erased)))
    }
}

impl IntoChange<Value, JsonMarker> for Value {
    fn into_change(self) -> Change {
        Change(Given::Json(self))
    }
}

impl Change {
    fn of(self, graph: &GraphCore) -> Result<AnyOutcome, Error> {
        match self.0 {
            Given::Typed(outcome) => outcome,
            Given::Json(values) => Ok(AnyOutcome { update: graph.update_from_json(&values)?, steer: None }),
        }
    }
}

/// A change of a thread's state; await it.
///
/// ```
/// # use superstep::{AgentState, AgentStateUpdate, CheckpointRef, Error, Message, Thread};
/// # async fn f(thread: Thread<AgentState>) -> Result<CheckpointRef, Error> {
/// thread.update(AgentStateUpdate { messages: Some(vec![Message::user("hi")]) }).as_node("chat").await
/// # }
/// ```
#[must_use = "an update does nothing until it is awaited"]
pub struct Revise<S = Value> {
    thread: Thread<S>,
    change: Change,
    as_node: Option<String>,
}

crate::debug::debug_parts!([S] Revise<S>, "Revise", this => { thread: this.thread.name(), as_node: this.as_node });

impl<S> Revise<S> {
    pub(super) fn new(thread: Thread<S>, change: Change) -> Self {
        Self { thread, change, as_node: None }
    }

    /// The node that the update is from: its edges decide what runs next.
    pub fn as_node(mut self, node: impl Into<String>) -> Self {
        self.as_node = Some(node.into());
        self
    }
}

impl<S> IntoFuture for Revise<S> {
    type Output = Result<CheckpointRef, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        revise_as_node(self.thread.place, self.as_node, self.change)
    }
}

fn revise_as_node(
    place: Place,
    node: Option<String>,
    change: Change,
) -> Pin<Box<dyn Future<Output = Result<CheckpointRef, Error>> + Send>> {
    Box::pin(async move {
        let outcome = change.of(&place.graph)?;
        place.revise(Revision::AsNodes(vec![(node, outcome)])).await
    })
}

/// A change of a thread that gives the thread at the result, to go on from there; await it.
///
/// ```
/// # use superstep::{AgentState, CheckpointId, Error, Message, Output, Thread};
/// # async fn f(thread: Thread<AgentState>, before: CheckpointId) -> Result<Output<AgentState>, Error> {
/// let fork = thread.at(before).fork(vec![Message::user("hello")]).as_node("chat").await?;
/// fork.resume().await
/// # }
/// ```
#[must_use = "a fork does nothing until it is awaited"]
pub struct Fork<S = Value>(pub(super) Revise<S>);

crate::debug::debug_parts!([S] Fork<S>, "Fork", this => { update: this.0 });

impl<S> Fork<S> {
    /// The node that the update is from: its edges decide what runs next.
    pub fn as_node(self, node: impl Into<String>) -> Self {
        Self(self.0.as_node(node))
    }
}

impl<S: Form> IntoFuture for Fork<S> {
    type Output = Result<Thread<S>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let thread = self.0.thread.clone();
            Ok(thread.at(self.0.await?.id))
        })
    }
}

/// One step of [`Thread::bulk_update`].
///
/// ```
/// # use superstep::{AgentState, CheckpointRef, Error, Message, Superstep, Thread};
/// # async fn f(thread: Thread<AgentState>) -> Result<CheckpointRef, Error> {
/// thread.bulk_update([
///     Superstep::input(AgentState { messages: vec![Message::user("hi")] }),
///     Superstep::updates([(vec![Message::assistant("hello")], "greet"), (vec![Message::assistant("tea?")], "offer")]),
///     Superstep::clear_tasks(),
/// ]).await
/// # }
/// ```
pub struct Superstep<S = Value>(Step, PhantomData<fn(S)>);

crate::debug::debug_parts!([S] Superstep<S>, "Superstep", this => { kind: this.0.kind() });

/// A step by hand, for the graph that it is done in.
pub(super) enum Step {
    Updates(Vec<(Option<String>, Change)>),
    Input(AnyInput),
    End,
    Copy(Vec<(String, Change)>),
}

impl Step {
    fn kind(&self) -> &'static str {
        match self {
            Step::Updates(_) => "updates",
            Step::Input(_) => "input",
            Step::End => "clear_tasks",
            Step::Copy(_) => "copy_with",
        }
    }

    pub(super) fn of(self, graph: &GraphCore) -> Result<Revision, Error> {
        Ok(match self {
            Step::Updates(updates) => Revision::AsNodes(outcomes(updates, graph)?),
            Step::Input(input) => Revision::AsInput(input.of(graph)),
            Step::End => Revision::End,
            Step::Copy(updates) => Revision::Copy(outcomes(updates, graph)?),
        })
    }
}

fn outcomes<N>(updates: Vec<(N, Change)>, graph: &GraphCore) -> Result<Vec<(N, AnyOutcome)>, Error> {
    updates.into_iter().map(|(node, change)| Ok((node, change.of(graph)?))).collect()
}

impl<S> Superstep<S> {
    fn new(step: Step) -> Self {
        Self(step, PhantomData)
    }

    /// An update as if the node that ran last had made it.
    pub fn update<M>(update: impl IntoChange<S, M>) -> Self {
        Self::new(Step::Updates(vec![(None, update.into_change())]))
    }

    /// Updates as if these nodes had made them side by side.
    pub fn updates<U: IntoChange<S, M>, N: Into<String>, M>(updates: impl IntoIterator<Item = (U, N)>) -> Self {
        let updates = updates.into_iter().map(|(update, node)| (Some(node.into()), update.into_change()));
        Self::new(Step::Updates(updates.collect()))
    }

    /// An input that is put in and not run; as [`Thread::update_as_input`].
    pub fn input<M>(input: impl IntoInput<S, M>) -> Self {
        Self::new(Step::Input(input.into_input()))
    }

    /// Drops what is left to do; as [`Thread::clear_tasks`].
    pub fn clear_tasks() -> Self {
        Self::new(Step::End)
    }

    /// Copies the checkpoint and puts in updates as if these nodes had made them; as [`Thread::copy_with`].
    pub fn copy_with<U: IntoChange<S, M>, N: Into<String>, M>(updates: impl IntoIterator<Item = (U, N)>) -> Self {
        let updates = updates.into_iter().map(|(update, node)| (node.into(), update.into_change()));
        Self::new(Step::Copy(updates.collect()))
    }

    pub(super) fn into_step(self) -> Step {
        self.0
    }
}
