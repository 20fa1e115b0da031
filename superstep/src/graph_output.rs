//! What a run gives back.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use crate::checkpoint::Interrupt;
use crate::state::erased::Snapshot;
use crate::state::{Persist, State};
use crate::stream::{ShownState, View, with_codec};

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
pub struct Output<S: State> {
    /// The state when the run ended.
    pub state: S,
    /// The open questions; empty if the run came to its end, or stopped where it was told to.
    pub interrupts: Vec<Interrupt>,
    shown: Shown,
}

/// What of the state a run showed last.
pub(crate) enum Shown {
    Nothing,
    /// The state as it was in the end: [`Output::state`] has it.
    Last(View),
    /// An earlier one.
    Earlier(ShownState),
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shown::Nothing => f.write_str("Nothing"),
            Shown::Last(_) => f.write_str("Last"),
            Shown::Earlier(_) => f.write_str("Earlier"),
        }
    }
}

impl<S: State> Output<S> {
    pub(crate) fn new((state, shown): (Snapshot, Shown), interrupts: Vec<Interrupt>) -> Self {
        Self { state: Arc::unwrap_or_clone(state.into_shared()), interrupts, shown }
    }

    /// Whether the run waits for answers.
    pub fn is_interrupted(&self) -> bool {
        !self.interrupts.is_empty()
    }

    /// The output fields that have a value, as JSON; null if the run wrote none of them.
    ///
    /// Untracked fields of a derived state are never encoded and so left out. Values are as `serde_json` writes them, integers
    /// of more than 64 bits as text; one that it refuses is shown as `{"__error__": "why"}`.
    pub fn to_json(&self) -> Value
    where
        S: Persist,
    {
        match &self.shown {
            Shown::Nothing => Value::Null,
            // Of a copy: a caller may have taken the state, and changed it.
            Shown::Last(view) => view.json(&Snapshot::new(self.state.clone()), &with_codec::<S>),
            Shown::Earlier(values) => values.json(&with_codec::<S>),
        }
    }

    /// The state as something narrower.
    pub fn into<T: From<S>>(self) -> T {
        T::from(self.state)
    }
}

impl<S: State> Deref for Output<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.state
    }
}
