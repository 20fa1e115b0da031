//! Commands: an update, where to go next, and answers.

use std::fmt;

use smallvec::SmallVec;

use crate::call::{AnyCommand, Goto, ParentCommand, Resume};
use crate::state::erased::AnyUpdate;
use crate::state::{IntoUpdate, State, Update};

/// An update and where to go next; from outside, also an answer to a question.
///
/// Returned by a node, `goto` adds to the node's static edges, it does not replace them.
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, Command, Message};
///
/// let command: Command<AgentState> = Command::new()
///     .update(AgentStateUpdate { messages: Some(vec![Message::assistant("done")]) })
///     .goto("review");
/// # let _ = command;
/// ```
pub struct Command<S: State> {
    pub(crate) update: Update<S>,
    pub(crate) goto: SmallVec<[Goto; 1]>,
    pub(crate) resume: Option<Resume>,
    pub(crate) parent: Option<Box<ParentCommand>>,
}

impl<S: State> Command<S> {
    /// A command that does nothing yet.
    pub fn new() -> Self {
        Self { update: Update::new(), goto: SmallVec::new(), resume: None, parent: None }
    }

    /// Adds an update.
    pub fn update(mut self, update: impl IntoUpdate<S>) -> Self {
        self.update = self.update.and(update);
        self
    }

    /// Goes to a node as well.
    pub fn goto(mut self, to: impl Into<Goto>) -> Self {
        self.goto.push(to.into());
        self
    }

    /// Goes to several nodes as well.
    pub fn goto_all<G: Into<Goto>>(mut self, to: impl IntoIterator<Item = G>) -> Self {
        self.goto.extend(to.into_iter().map(Into::into));
        self
    }

    /// Answers a question; for commands given to a run from outside.
    pub fn resume(mut self, answer: impl Into<Resume>) -> Self {
        self.resume = Some(answer.into());
        self
    }

    /// A command for the parent graph, whose state is `P`: an update of it and where it goes next.
    ///
    /// What else this node returns is dropped; the static edges of the subgraph's node run too.
    pub fn to_parent<P: State>(update: impl IntoUpdate<P>, goto: impl IntoIterator<Item = Goto>) -> Self {
        let update = update.into_update().into_puts().map(AnyUpdate::of::<P>);
        let parent = ParentCommand { update, goto: goto.into_iter().collect() };
        Self { parent: Some(Box::new(parent)), ..Self::new() }
    }
}

impl<S: State> Command<S> {
    /// The update so far.
    pub fn writes(&self) -> &Update<S> {
        &self.update
    }

    /// The same with another update.
    ///
    /// # Errors
    /// Those of the function.
    pub fn map_writes<E>(mut self, change: impl FnOnce(Update<S>) -> Result<Update<S>, E>) -> Result<Self, E> {
        self.update = change(self.update)?;
        Ok(self)
    }

    /// All that another one does as well.
    pub fn and(mut self, other: Command<S>) -> Self {
        self.update = self.update.and(other.update);
        self.goto.extend(other.goto);
        self.resume = other.resume.or(self.resume);
        self.parent = other.parent.or(self.parent);
        self
    }

    /// Whether it is for the parent graph.
    pub fn is_for_parent(&self) -> bool {
        self.parent.is_some()
    }
}

impl<S: State> From<Command<S>> for AnyCommand {
    fn from(command: Command<S>) -> Self {
        let Command { update, goto, resume, parent } = command;
        Self { update: update.into_puts().map(AnyUpdate::of::<S>), goto, resume, is_for_parent: parent.is_some() }
    }
}

impl<S: State> Default for Command<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> fmt::Debug for Command<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("writes", &self.update.puts().len())
            .field("goto", &self.goto)
            .field("resume", &self.resume)
            .field("to_parent", &self.parent.is_some())
            .finish()
    }
}
