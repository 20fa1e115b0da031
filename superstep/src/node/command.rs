//! Where to go next: commands, sends and their payloads.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use smallvec::SmallVec;

use super::{Resume, TimeoutPolicy};
use crate::error::InvalidUpdate;
use crate::state::erased::AnyUpdate;
use crate::state::{IntoUpdate, State, Update};
use crate::value::Payload;

/// A task to run in the next step, with an input of its own.
///
/// ```
/// use superstep::Send;
/// let work: Vec<Send> = (0..3).map(|i| Send::new("work", i)).collect();
/// assert_eq!(work[2].node(), "work");
/// ```
#[derive(Clone, Debug)]
pub struct Send {
    pub(crate) node: Cow<'static, str>,
    pub(crate) payload: Payload,
    /// Boxed, because few have one and every step moves places to go to.
    pub(crate) timeout: Option<Box<TimeoutPolicy>>,
}

impl Send {
    /// Sends `payload` to `node`, which takes it as [`Sent`](crate::Sent).
    pub fn new<T>(node: impl Into<Cow<'static, str>>, payload: T) -> Self
    where
        T: Serialize + std::marker::Send + Sync + 'static,
    {
        Self { node: node.into(), payload: Payload::new(payload), timeout: None }
    }

    /// Overrides the node's timeout for this task.
    pub fn timeout(mut self, timeout: impl Into<TimeoutPolicy>) -> Self {
        self.timeout = Some(Box::new(timeout.into()));
        self
    }

    /// What is wrong with it, if anything.
    pub(crate) fn mistake(&self) -> Option<String> {
        let why = self.timeout.as_ref()?.mistake()?;
        Some(format!("a send to `{}` has a limit of no time: {why}", self.node))
    }

    /// The node that it is for.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What it carries.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }
}

/// One place to go to.
///
/// ```
/// use superstep::{Goto, Send};
/// assert!(matches!(Goto::from("review"), Goto::Node(_)));
/// assert!(matches!(Goto::from(Send::new("review", 1)), Goto::Send(_)));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Goto {
    /// A node, on the shared state.
    Node(Cow<'static, str>),
    /// A node, on a payload.
    Send(Send),
}

impl Goto {
    /// What is wrong with it, if anything.
    pub(crate) fn mistake(&self) -> Option<String> {
        match self {
            Goto::Send(send) => send.mistake(),
            Goto::Node(_) => None,
        }
    }
}

impl From<&'static str> for Goto {
    fn from(name: &'static str) -> Self {
        Goto::Node(Cow::Borrowed(name))
    }
}

impl From<String> for Goto {
    fn from(name: String) -> Self {
        Goto::Node(Cow::Owned(name))
    }
}

impl From<Send> for Goto {
    fn from(send: Send) -> Self {
        Goto::Send(send)
    }
}

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

/// A command for the graph around this one.
pub(crate) struct ParentCommand {
    /// An update of the parent's state.
    pub(crate) update: Result<Option<AnyUpdate>, InvalidUpdate>,
    pub(crate) goto: Vec<Goto>,
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

/// A command from outside, without the type of the state.
pub(crate) struct AnyCommand {
    pub(crate) update: Result<Option<AnyUpdate>, InvalidUpdate>,
    pub(crate) goto: SmallVec<[Goto; 1]>,
    pub(crate) resume: Option<Resume>,
    pub(crate) is_for_parent: bool,
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
