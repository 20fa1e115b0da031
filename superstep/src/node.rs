//! Nodes: what they are given, what they may return, and the one erased form that the engine runs.

mod agent;
mod args;
mod command;
mod handler;
mod interrupt;
mod options;
mod outcome;
mod parallel;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::context::Context;
use crate::error::BoxError;
use crate::plan::Plan;
use crate::state::State;

pub use agent::{Agent, EchoAgent, Next, Node, NodeInput, PartialAgent, StateNode};
pub use args::{
    Attempt, FromContext, FromInput, Narrow, Previous, Reached, RemainingSteps, RunConfig, Runtime, Sent, StoreHandle,
    StreamWriter,
};
pub(crate) use command::ParentCommand;
pub use command::{Command, Goto, Payload, Send};
pub(crate) use handler::{GivenState, GraphMarker, NodeMarker};
pub use handler::{Handler, IntoNode};
pub(crate) use interrupt::{Answers, Why, json_of};
pub use interrupt::{Interrupt, Interrupted, Resume};
pub(crate) use options::mistakes;
pub use options::{CachePolicy, NodeDefaults, NodeError, NodeOptions, RetryPolicy, TimeoutPolicy};
pub(crate) use outcome::Steer;
pub use outcome::{IntoOutcome, Outcome, OutcomeResult, update_outcome};
pub use parallel::{ParallelNode, ParallelNodeBuilder};

pub(crate) type NodeFuture<S> = Pin<Box<dyn Future<Output = Result<Outcome<S>, BoxError>> + std::marker::Send>>;

/// What a task gives to its node: the state at the start of the step, or what it was sent.
pub(crate) enum TaskInput<S> {
    State(Arc<S>),
    Sent(Payload),
}

impl<S> Clone for TaskInput<S> {
    fn clone(&self) -> Self {
        match self {
            TaskInput::State(state) => TaskInput::State(state.clone()),
            TaskInput::Sent(payload) => TaskInput::Sent(payload.clone()),
        }
    }
}

/// What a call is given, to look at.
pub(crate) enum Given<'a, S> {
    State(&'a Arc<S>),
    Sent(&'a Payload),
}

impl<S> Clone for Given<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Given<'_, S> {}

impl<S> TaskInput<S> {
    pub(crate) fn given(&self) -> Given<'_, S> {
        match self {
            TaskInput::State(state) => Given::State(state),
            TaskInput::Sent(payload) => Given::Sent(payload),
        }
    }
}

/// One call of a node. The context is made only if the node asks for it.
pub struct Call<'a, S: State> {
    pub(crate) plan: &'a Plan<S>,
    pub(crate) node: usize,
    pub(crate) input: Given<'a, S>,
    /// The state at the beginning of the step, for nodes that were sent something.
    pub(crate) state: Option<&'a Arc<S>>,
    /// The fields that have a value; for graphs inside nodes.
    pub(crate) present: Option<&'a crate::engine::Bits>,
    /// How the state is decoded, if it can be.
    pub(crate) codec: Option<&'static crate::checkpoint::Codec<S>>,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    pub(crate) context: &'a mut dyn FnMut() -> Context,
}

impl<S: State> Call<'_, S> {
    /// This call, with another context.
    pub(crate) fn with_context<'b>(&'b self, context: &'b mut dyn FnMut() -> Context) -> Call<'b, S> {
        Call {
            plan: self.plan,
            node: self.node,
            input: self.input,
            state: self.state,
            present: self.present,
            codec: self.codec,
            step: self.step,
            stop: self.stop,
            context,
        }
    }
}

/// A node with its argument types erased: the only form that the engine sees.
pub(crate) struct BoxedNode<S: State> {
    pub(crate) run: Arc<dyn for<'a> Fn(Call<'a, S>) -> NodeFuture<S> + std::marker::Send + Sync>,
    /// The name of the function's type: tells nodes of one name apart in a cache.
    pub(crate) made_of: &'static str,
    /// The graph inside, if the node is one.
    pub(crate) subgraph: Option<Arc<dyn crate::graph::Subgraph>>,
    /// How many levels of graphs inside graphs it is known to be.
    pub(crate) levels: usize,
    /// The names of the nodes of the graph inside, and of those inside of them.
    pub(crate) nodes_inside: Arc<[Arc<str>]>,
    /// Whether it may ask for its context.
    pub(crate) asks: bool,
    /// Whether it must be told which fields have a value; so with graphs that share the state, saved or not.
    pub(crate) needs_present: bool,
    /// Whether what it returns may say where to go.
    pub(crate) steers: bool,
    /// What is wrong with how it was made.
    pub(crate) mistakes: Vec<String>,
}

impl<S: State> BoxedNode<S> {
    /// A node that may ask for its context, and does nothing else that is special.
    pub(crate) fn new(
        made_of: &'static str,
        run: impl Fn(Call<'_, S>) -> NodeFuture<S> + std::marker::Send + Sync + 'static,
    ) -> Self {
        Self {
            run: Arc::new(run),
            made_of,
            subgraph: None,
            levels: 0,
            nodes_inside: Arc::default(),
            asks: true,
            needs_present: false,
            steers: false,
            mistakes: Vec::new(),
        }
    }
}

impl<S: State> Clone for BoxedNode<S> {
    fn clone(&self) -> Self {
        Self {
            run: self.run.clone(),
            made_of: self.made_of,
            subgraph: self.subgraph.clone(),
            levels: self.levels,
            nodes_inside: self.nodes_inside.clone(),
            steers: self.steers,
            asks: self.asks,
            needs_present: self.needs_present,
            mistakes: self.mistakes.clone(),
        }
    }
}

/// A value shared with a node by its type.
pub(crate) type AnyContext = Arc<dyn Any + std::marker::Send + Sync>;
