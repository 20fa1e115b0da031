//! What nodes may return.

use smallvec::SmallVec;

use super::Command;
use crate::call::{AnyOutcome, Goto, Next, Send, Steer};
use crate::error::BoxError;
use crate::json::JsonState;
use crate::message::Message;
use crate::state::erased::AnyUpdate;
use crate::state::{IntoUpdate, Origin, Put, State, Update, changes_to};
use crate::{AgentState, AgentStateUpdate, Workflow, WorkflowState};

/// What one run of a node came to: its writes and where it wants to go.
///
/// Nodes return simpler things; this is what all of them are turned into.
pub struct Outcome<S: State> {
    pub(crate) puts: SmallVec<[Put<S::Write>; 1]>,
    /// Boxed, because few nodes say where to go and every step moves an outcome.
    pub(crate) steer: Option<Box<Steer>>,
}

crate::debug::debug_parts!([S: State] Outcome<S>, "Outcome", this => { writes: this.puts.len(), steers: this.steer.is_some() });

/// An [`Outcome`], or the node's error.
pub type OutcomeResult<S> = Result<Outcome<S>, BoxError>;

impl<S: State> Outcome<S> {
    /// No writes, no wishes.
    pub fn none() -> Self {
        Self { puts: SmallVec::new(), steer: None }
    }

    /// Where it wants to go, made if it did not say.
    pub(crate) fn steer_mut(&mut self) -> &mut Steer {
        self.steer.get_or_insert_default()
    }

    /// Whether it holds a whole state that was not compared with another one.
    pub(crate) fn has_whole_state(&self) -> bool {
        self.puts.iter().any(|put| put.origin == Origin::WholeState)
    }

    /// With whole states reduced to what they change in the state that the node was given.
    pub(crate) fn against(mut self, given: &S, schema: &S::Schema) -> Self {
        self.puts = changes_to(given, schema, self.puts);
        self
    }

    /// These writes, and these places to go to.
    pub(crate) fn going(puts: SmallVec<[Put<S::Write>; 1]>, goto: SmallVec<[Goto; 1]>) -> Self {
        let steer = (!goto.is_empty()).then(|| Box::new(Steer { goto, ..Steer::default() }));
        Self { puts, steer }
    }

    /// The same without the type of the state.
    pub(crate) fn erased(self) -> AnyOutcome {
        AnyOutcome { update: AnyUpdate::of::<S>(self.puts), steer: self.steer }
    }

    fn update(update: Update<S>) -> OutcomeResult<S> {
        Ok(Self { puts: update.into_puts()?, ..Self::none() })
    }
}

/// An update as a node's result. Derived code calls it.
pub fn update_outcome<S: State>(update: impl IntoUpdate<S>) -> OutcomeResult<S> {
    Outcome::update(update.into_update())
}

/// What a node over `S` may return.
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, Command, Goto, Message, Send};
///
/// async fn nothing(_: AgentState) {}
/// async fn update(_: AgentState) -> AgentStateUpdate { AgentStateUpdate { messages: Some(vec![Message::assistant("hi")]) } }
/// async fn update_and_goto(s: AgentState) -> (AgentStateUpdate, &'static str) { (update(s).await, "next") }
/// async fn command(_: AgentState) -> Command<AgentState> { Command::new().goto("next") }
/// async fn sends(_: AgentState) -> Vec<Send> { vec![Send::new("next", 1)] }
/// async fn fallible(_: AgentState) -> Result<AgentStateUpdate, std::io::Error> { Ok(AgentStateUpdate::default()) }
/// # use superstep::StateGraph;
/// # let _ = StateGraph::<AgentState>::new().add_node("a", nothing).add_node("b", update).add_node("c", update_and_goto)
/// #     .add_node("d", command).add_node("e", sends).add_node("f", fallible);
/// ```
#[diagnostic::on_unimplemented(
    message = "a node over `{S}` cannot return `{Self}`",
    note = "return an update (the derived `…Update` or `Update<{S}>`), the whole state, `()`, a `Command<{S}>`, `(update, goto)`, `Send`s, or a `Result` of one of these",
    note = "the error of a `Result` must be `Send + Sync`: `superstep::BoxError`, not `Box<dyn Error>`"
)]
pub trait IntoOutcome<S: State> {
    /// Turns it into an outcome.
    ///
    /// # Errors
    /// If the node failed.
    fn into_outcome(self) -> OutcomeResult<S>;

    /// Whether it may say where to go; for diagnostics.
    #[doc(hidden)]
    fn steers() -> bool {
        false
    }

    /// Whether it may hold a whole state, which is compared with what the node was given.
    #[doc(hidden)]
    fn may_be_whole() -> bool {
        false
    }
}

impl<S: State> IntoOutcome<S> for () {
    fn into_outcome(self) -> OutcomeResult<S> {
        Ok(Outcome::none())
    }
}

impl<S: State> IntoOutcome<S> for Update<S> {
    fn into_outcome(self) -> OutcomeResult<S> {
        Outcome::update(self)
    }

    fn may_be_whole() -> bool {
        true
    }
}

impl<S: State> IntoOutcome<S> for Outcome<S> {
    fn into_outcome(self) -> OutcomeResult<S> {
        Ok(self)
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        true
    }
}

impl<S: State> IntoOutcome<S> for Command<S> {
    fn into_outcome(self) -> OutcomeResult<S> {
        if self.resume.is_some() {
            return Err("a node cannot answer questions; `resume` belongs to the caller of a run".into());
        }
        let mut outcome = Outcome::going(self.update.into_puts()?, self.goto);
        if self.parent.is_some() {
            outcome.steer_mut().parent = self.parent;
        }
        Ok(outcome)
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        true
    }
}

impl<S: State, T: IntoOutcome<S>, E: Into<BoxError>> IntoOutcome<S> for Result<T, E> {
    fn into_outcome(self) -> OutcomeResult<S> {
        self.map_err(Into::into)?.into_outcome()
    }

    fn steers() -> bool {
        T::steers()
    }

    fn may_be_whole() -> bool {
        T::may_be_whole()
    }
}

impl<S: State, T: IntoOutcome<S>> IntoOutcome<S> for Option<T> {
    fn into_outcome(self) -> OutcomeResult<S> {
        self.map_or_else(|| Ok(Outcome::none()), IntoOutcome::into_outcome)
    }

    fn steers() -> bool {
        T::steers()
    }

    fn may_be_whole() -> bool {
        T::may_be_whole()
    }
}

impl<S: State> IntoOutcome<S> for Send {
    fn into_outcome(self) -> OutcomeResult<S> {
        Ok(Outcome::going(SmallVec::new(), SmallVec::from_iter([Goto::Send(self)])))
    }

    fn steers() -> bool {
        true
    }
}

impl<S: State> IntoOutcome<S> for Vec<Send> {
    fn into_outcome(self) -> OutcomeResult<S> {
        Ok(Outcome::going(SmallVec::new(), self.into_iter().map(Goto::Send).collect()))
    }

    fn steers() -> bool {
        true
    }
}

/// Several commands and updates, in order.
impl<S: State> IntoOutcome<S> for Vec<Command<S>> {
    fn into_outcome(self) -> OutcomeResult<S> {
        let mut all = Outcome::none();
        for command in self {
            let one = command.into_outcome()?;
            all.puts.extend(one.puts);
            if let Some(steer) = one.steer {
                let all = all.steer_mut();
                all.goto.extend(steer.goto);
                all.parent = all.parent.take().or(steer.parent);
            }
        }
        Ok(all)
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        true
    }
}

impl<S: State> IntoOutcome<S> for Vec<Update<S>> {
    fn into_outcome(self) -> OutcomeResult<S> {
        Outcome::update(self.into_iter().fold(Update::new(), Update::and))
    }

    fn may_be_whole() -> bool {
        true
    }
}

/// An update and where to go.
impl<S: State, T: IntoOutcome<S>> IntoOutcome<S> for (T, &'static str) {
    fn into_outcome(self) -> OutcomeResult<S> {
        (self.0, Goto::from(self.1)).into_outcome()
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        T::may_be_whole()
    }
}

impl<S: State, T: IntoOutcome<S>> IntoOutcome<S> for (T, String) {
    fn into_outcome(self) -> OutcomeResult<S> {
        (self.0, Goto::from(self.1)).into_outcome()
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        T::may_be_whole()
    }
}

impl<S: State, T: IntoOutcome<S>> IntoOutcome<S> for (T, Goto) {
    fn into_outcome(self) -> OutcomeResult<S> {
        let mut outcome = self.0.into_outcome()?;
        outcome.steer_mut().goto.push(self.1);
        Ok(outcome)
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        T::may_be_whole()
    }
}

impl<S: State, T: IntoOutcome<S>> IntoOutcome<S> for (T, Vec<Send>) {
    fn into_outcome(self) -> OutcomeResult<S> {
        let mut outcome = self.0.into_outcome()?;
        if !self.1.is_empty() {
            outcome.steer_mut().goto.extend(self.1.into_iter().map(Goto::Send));
        }
        Ok(outcome)
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        T::may_be_whole()
    }
}

/// An update and how to go on; the seeds' form of conditional edges.
impl<S: State, T: IntoOutcome<S>> IntoOutcome<S> for (T, Next) {
    fn into_outcome(self) -> OutcomeResult<S> {
        let mut outcome = self.0.into_outcome()?;
        // To continue is what every node does that does not say otherwise.
        if outcome.steer.is_some() || self.1 != Next::Continue {
            outcome.steer_mut().next = Some(self.1);
        }
        Ok(outcome)
    }

    fn steers() -> bool {
        true
    }

    fn may_be_whole() -> bool {
        T::may_be_whole()
    }
}

impl<S: State> IntoOutcome<S> for Next {
    fn into_outcome(self) -> OutcomeResult<S> {
        (Outcome::none(), self).into_outcome()
    }

    fn steers() -> bool {
        true
    }
}

impl IntoOutcome<AgentState> for AgentStateUpdate {
    fn into_outcome(self) -> OutcomeResult<AgentState> {
        update_outcome(self)
    }
}

/// New messages, to be merged.
impl IntoOutcome<AgentState> for Vec<Message> {
    fn into_outcome(self) -> OutcomeResult<AgentState> {
        update_outcome(AgentStateUpdate { messages: Some(self) })
    }
}

/// A whole conversation: it counts for what it changes in the one that the node was given.
impl IntoOutcome<AgentState> for AgentState {
    fn into_outcome(self) -> OutcomeResult<AgentState> {
        update_outcome(self)
    }

    fn may_be_whole() -> bool {
        true
    }
}

/// New messages, to be merged.
impl IntoOutcome<Vec<Message>> for Vec<Message> {
    fn into_outcome(self) -> OutcomeResult<Vec<Message>> {
        update_outcome(Update::from_writes([self]))
    }
}

/// One new message.
impl IntoOutcome<Vec<Message>> for Message {
    fn into_outcome(self) -> OutcomeResult<Vec<Message>> {
        update_outcome(self)
    }
}

/// A whole state: the mutations of other nodes in the same step are applied to it; a second whole state is an error.
impl<W> IntoOutcome<Workflow<W>> for Workflow<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    fn into_outcome(self) -> OutcomeResult<Workflow<W>> {
        update_outcome(self)
    }

    fn may_be_whole() -> bool {
        true
    }
}

/// The workflow's own state, as a whole state of the graph.
impl<W> IntoOutcome<Workflow<W>> for W
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    fn into_outcome(self) -> OutcomeResult<Workflow<W>> {
        Workflow(self).into_outcome()
    }

    fn may_be_whole() -> bool {
        true
    }
}

/// An object is an update, null is none; anything else does not fit.
impl IntoOutcome<JsonState> for serde_json::Value {
    fn into_outcome(self) -> OutcomeResult<JsonState> {
        update_outcome(self)
    }
}
