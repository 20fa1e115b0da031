//! What is needed to call a node, without the type of its state: the call, its surroundings, and what may come of it.

mod context;
mod goto;
mod host;
mod interrupt;
mod path;
mod policy;
mod pulse;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::bits::Bits;
use crate::error::BoxError;
use crate::state::erased::{AnyUpdate, Snapshot, StateType, Typed};
use crate::state::{Given, State};

pub(crate) use context::{
    Answering, Answers, Cancel, CancelOnDrop, ContextType, GivenContext, NullResume, PUSH, Place, PushedMessage,
    ReplayState, RunShared, Slot, TaskContext, Waiter, Waiting, lock, scoped_namespace, with_node_metadata,
    with_pushed,
};
pub use context::{Context, RunControl};
pub(crate) use goto::{AnyCommand, ParentCommand, Steer};
pub use goto::{Goto, Next, Send};
pub(crate) use host::{CallFn, CallFuture, CallHost, CallOptions};
pub(crate) use interrupt::{GivenAnswers, Why, json_of};
pub use interrupt::{Interrupted, Resume};
pub use path::Routes;
pub(crate) use path::{AsyncPath, Path, PathFn, RouteFuture, SyncPath};
pub(crate) use policy::{CacheKeyFn, CacheRule, mistakes, no_time_to_keep};
pub use policy::{NodeError, RetryPolicy, TimeoutPolicy};
pub(crate) use pulse::Pulse;

pub(crate) type NodeFuture = Pin<Box<dyn Future<Output = Result<AnyOutcome, BoxError>> + std::marker::Send>>;

/// What a node returned, without the type of its state: what it writes, and where it wants to go.
#[derive(Default)]
pub struct AnyOutcome {
    pub(crate) update: Option<AnyUpdate>,
    pub(crate) steer: Option<Box<Steer>>,
}

crate::debug::debug_parts!([] AnyOutcome, "AnyOutcome", this => { writes: this.update.is_some(), steers: this.steer.is_some() });

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
    pub(crate) present: Option<&'a Bits>,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    pub(crate) context: &'a mut dyn FnMut() -> Context,
}

crate::debug::debug_parts!([] Call<'_>, "Call", this => { node: this.node, step: this.step });

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
    /// The graph inside, if the node is one, for those who know what a graph is.
    pub(crate) subgraph: Option<Arc<dyn Any + std::marker::Send + Sync>>,
    /// How many levels of graphs inside graphs it is known to be.
    pub(crate) levels: usize,
    /// The names of the nodes of the graph inside, and of those inside of them.
    pub(crate) nodes_inside: Arc<[Arc<str>]>,
    /// Whether it may ask for its context.
    pub(crate) asks: bool,
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
            steers: false,
            narrows: false,
            mistakes: Vec::new(),
        }
    }
}
