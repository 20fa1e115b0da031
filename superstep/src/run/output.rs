//! What a run gives back.

use std::ops::Deref;

use serde_json::Value;

use crate::checkpoint::Interrupt;
use crate::state::State;
use crate::state::erased::Snapshot;
use crate::view::{Form, RunEnd, Shown};

/// The result of a run: the state, and the questions that wait for an answer.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let out = app.invoke(AgentState { messages: vec![Message::user("hi")] }).await?;
/// assert!(out.interrupts.is_empty());
/// assert_eq!(out.state.messages.len(), 2);
/// assert_eq!(out.messages.len(), 2); // it can be read as the state
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Output<S = Value> {
    /// The state when the run ended; as JSON, what of it is shown.
    pub state: S,
    /// The open questions; empty if the run came to its end, or stopped where it was told to.
    pub interrupts: Vec<Interrupt>,
    shown: Shown,
}

impl<S: Form> Output<S> {
    pub(crate) fn new(end: RunEnd) -> Self {
        let RunEnd { state, shown, interrupts, .. } = end;
        Self { state: S::ended(state, &shown), interrupts, shown }
    }
}

impl<S> Output<S> {
    /// Whether the run waits for answers.
    pub fn is_interrupted(&self) -> bool {
        !self.interrupts.is_empty()
    }

    /// The state as something narrower.
    pub fn into<T: From<S>>(self) -> T {
        T::from(self.state)
    }
}

impl<S: State> Output<S> {
    /// The output fields that have a value, as JSON; null if the run wrote none of them, or if the state
    /// [cannot be shown](State::codec).
    ///
    /// Untracked fields of a derived state are never encoded and so left out. Values are as `serde_json` writes them, integers
    /// of more than 64 bits as text; one that it refuses is shown as `{"__error__": "why"}`.
    pub fn to_json(&self) -> Value {
        // Of a copy: a caller may have taken the state, and changed it.
        self.shown.json(&Snapshot::new(self.state.clone()))
    }
}

impl<S> Deref for Output<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.state
    }
}
