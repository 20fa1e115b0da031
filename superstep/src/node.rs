//! Nodes: what they are given, what they may return, and the one erased form that the engine runs.

mod agent;
mod args;
mod command;
mod handler;
mod interrupt;
mod json;
mod options;
mod outcome;
mod parallel;

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::context::Context;
use crate::error::BoxError;
use crate::state::State;
use crate::state::erased::{AnyUpdate, Snapshot, StateType, Typed};
use crate::value::Payload;

pub use agent::{Agent, EchoAgent, Next, Node, NodeInput, PartialAgent, StateNode};
pub use args::{
    Attempt, FromContext, FromInput, Narrow, Previous, Reached, RemainingSteps, RunConfig, Runtime, Sent, StoreHandle,
    StreamWriter,
};
pub(crate) use command::{AnyCommand, ParentCommand};
pub use command::{Command, Goto, Send};
pub(crate) use handler::{GivenState, GraphMarker, NodeMarker};
pub use handler::{Handler, IntoNode};
pub(crate) use interrupt::{Answers, Why, json_of};
pub use interrupt::{Interrupted, Resume};
pub use json::JsonInput;
pub(crate) use options::{CacheKeyFn, CacheRule, NodeRules, mistakes, no_time_to_keep};
pub use options::{CachePolicy, NodeDefaults, NodeError, NodeOptions, RetryPolicy, TimeoutPolicy};
pub(crate) use outcome::Steer;
pub use outcome::{IntoOutcome, Outcome, OutcomeResult, update_outcome};
pub use parallel::{ParallelNode, ParallelNodeBuilder};

pub(crate) type NodeFuture = Pin<Box<dyn Future<Output = Result<AnyOutcome, BoxError>> + std::marker::Send>>;

/// What a node returned, without the type of its state: what it writes, and where it wants to go.
#[derive(Default)]
pub struct AnyOutcome {
    pub(crate) update: Option<AnyUpdate>,
    pub(crate) steer: Option<Box<Steer>>,
}

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

/// One call of a node. The context is made only if the node asks for it.
pub struct Call<'a> {
    /// What can be done with the states of the graph.
    pub(crate) ty: &'a Arc<dyn StateType>,
    /// The node's name.
    pub(crate) node: &'a str,
    /// The fields that the node is to see, if not all.
    pub(crate) reads: Option<&'a [usize]>,
    pub(crate) input: Given<'a>,
    /// The state at the beginning of the step, for nodes that were sent something.
    pub(crate) state: Option<&'a Snapshot>,
    /// The fields that have a value; for graphs inside nodes.
    pub(crate) present: Option<&'a crate::bits::Bits>,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    pub(crate) context: &'a mut dyn FnMut() -> Context,
}

impl Call<'_> {
    /// This call, with another input.
    pub(crate) fn seeing<'b>(&'b mut self, input: Given<'b>, state: Option<&'b Snapshot>) -> Call<'b> {
        Call {
            ty: self.ty,
            node: self.node,
            reads: self.reads,
            input,
            state,
            present: self.present,
            step: self.step,
            stop: self.stop,
            context: &mut *self.context,
        }
    }
    /// This call, with another context.
    pub(crate) fn with_context<'b>(&'b self, context: &'b mut dyn FnMut() -> Context) -> Call<'b> {
        Call {
            ty: self.ty,
            node: self.node,
            reads: self.reads,
            input: self.input,
            state: self.state,
            present: self.present,
            step: self.step,
            stop: self.stop,
            context,
        }
    }

    /// The type of the graph's states.
    pub(crate) fn typed<S: State>(&self) -> &Typed<S> {
        Typed::of(&**self.ty)
    }

    /// The state of the step.
    pub(crate) fn state_of_step<S: State>(&self) -> Option<Arc<S>> {
        match self.input {
            Given::State(state) => Some(state.share()),
            Given::Sent(_) => self.state.map(Snapshot::share),
        }
    }
}

/// A node without the types of its arguments and its state: the only form that the engine sees.
#[derive(Clone)]
pub(crate) struct AnyNode {
    pub(crate) run: Arc<dyn for<'a> Fn(Call<'a>) -> NodeFuture + std::marker::Send + Sync>,
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
    /// Whether it takes of the state only what its options let it see.
    pub(crate) narrows: bool,
    /// What is wrong with how it was made.
    pub(crate) mistakes: Vec<String>,
}

impl AnyNode {
    /// A node that may ask for its context, and does nothing else that is special.
    pub(crate) fn new(
        made_of: &'static str,
        run: impl Fn(Call<'_>) -> NodeFuture + std::marker::Send + Sync + 'static,
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
            narrows: false,
            mistakes: Vec::new(),
        }
    }
}

/// A node of graphs over `S`.
pub(crate) struct BoxedNode<S> {
    pub(crate) node: AnyNode,
    state: PhantomData<fn(S)>,
}

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

/// A value shared with nodes by its type.
pub(crate) struct GivenContext {
    value: Arc<dyn Any + std::marker::Send + Sync>,
    pub(crate) type_name: &'static str,
    was_taken: AtomicBool,
}

impl GivenContext {
    pub(crate) fn new<T: Any + std::marker::Send + Sync>(value: T) -> Self {
        Self { value: Arc::new(value), type_name: std::any::type_name::<T>(), was_taken: AtomicBool::new(false) }
    }

    pub(crate) fn is<T: Any>(&self) -> bool {
        (*self.value).is::<T>()
    }

    /// The value, if it is a `T`.
    pub(crate) fn take<T: Any + std::marker::Send + Sync>(&self) -> Option<Arc<T>> {
        let taken = self.value.clone().downcast().ok()?;
        self.was_taken.store(true, Ordering::Relaxed);
        Some(taken)
    }

    pub(crate) fn was_taken(&self) -> bool {
        self.was_taken.load(Ordering::Relaxed)
    }
}
