//! Where to go next: sends and their payloads, and what commands say without the type of the state.

use std::borrow::Cow;

use serde::Serialize;
use smallvec::SmallVec;

use super::{Resume, TimeoutPolicy};
use crate::error::InvalidUpdate;
use crate::state::erased::AnyUpdate;
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

/// How a [`Node`](crate::Node) goes on.
///
/// ```
/// use superstep::Next;
/// let next = Next::node("review");
/// assert_ne!(next, Next::End);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Along the node's edges.
    Continue,
    /// To this node instead of along the edges.
    Node(Cow<'static, str>),
    /// Nowhere: this path ends.
    End,
}

impl Next {
    /// To a node.
    pub fn node(name: impl Into<Cow<'static, str>>) -> Self {
        Next::Node(name.into())
    }
}

/// Where a node wants to go.
#[derive(Default)]
pub(crate) struct Steer {
    pub(crate) goto: SmallVec<[Goto; 1]>,
    pub(crate) next: Option<Next>,
    pub(crate) parent: Option<Box<ParentCommand>>,
}

/// A command for the graph around this one.
pub(crate) struct ParentCommand {
    /// An update of the parent's state.
    pub(crate) update: Result<Option<AnyUpdate>, InvalidUpdate>,
    pub(crate) goto: Vec<Goto>,
}

/// A command from outside, without the type of the state.
pub(crate) struct AnyCommand {
    pub(crate) update: Result<Option<AnyUpdate>, InvalidUpdate>,
    pub(crate) goto: SmallVec<[Goto; 1]>,
    pub(crate) resume: Option<Resume>,
    pub(crate) is_for_parent: bool,
}
