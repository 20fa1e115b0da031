//! What a node is run on.

use super::erased::Snapshot;
use crate::value::Payload;

/// What a task gives to its node: the state at the start of the step, or what it was sent.
#[derive(Clone)]
pub(crate) enum TaskInput {
    State(Snapshot),
    Sent(Payload),
}

/// What a call is given, to look at.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    State(&'a Snapshot),
    Sent(&'a Payload),
}

impl TaskInput {
    pub(crate) fn given(&self) -> Given<'_> {
        match self {
            TaskInput::State(state) => Given::State(state),
            TaskInput::Sent(payload) => Given::Sent(payload),
        }
    }
}
