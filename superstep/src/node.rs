//! Nodes: what they are given, what they may return, and how they lose their types.

mod agent;
mod args;
mod command;
mod handler;
mod json;
mod options;
mod outcome;

use std::marker::PhantomData;

use crate::call::AnyNode;

pub use agent::{Agent, EchoAgent, Node, NodeInput, PartialAgent, StateNode};
pub use args::{
    Attempt, FromContext, FromInput, Narrow, Previous, Reached, RemainingSteps, RunConfig, Runtime, Sent, StoreHandle,
    StreamWriter,
};
pub use command::Command;
pub(crate) use handler::{GivenState, GraphMarker, NodeMarker};
pub use handler::{Handler, IntoNode};
pub use json::JsonInput;
pub(crate) use options::NodeRules;
pub use options::{CachePolicy, NodeDefaults, NodeOptions};
pub use outcome::{IntoOutcome, Outcome, OutcomeResult, update_outcome};

/// A node of graphs over `S`.
pub struct BoxedNode<S> {
    pub(crate) node: AnyNode,
    state: PhantomData<fn(S)>,
}

crate::debug::debug_parts!([S] BoxedNode<S>, "BoxedNode", this => { made_of: this.node.made_of });

impl<S> From<AnyNode> for BoxedNode<S> {
    fn from(node: AnyNode) -> Self {
        Self { node, state: PhantomData }
    }
}

impl<S> Clone for BoxedNode<S> {
    fn clone(&self) -> Self {
        self.node.clone().into()
    }
}
