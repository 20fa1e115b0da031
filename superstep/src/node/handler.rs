//! Functions, trait objects, agents and graphs as nodes.

use std::future::Future;
use std::sync::Arc;

use super::{
    Agent, BoxedNode, Call, FromContext, FromInput, IntoOutcome, Next, Node, NodeFuture, Outcome, PartialAgent,
    StateNode,
};
use crate::error::BoxError;
use crate::state::{IntoUpdate, MergeStrategy, MergedState, ParallelNode, State, Workflow, WorkflowState};

/// An async function that can be a node of a graph over `S`. You rarely name it.
///
/// ```
/// use superstep::{AgentState, Context, Handler};
/// fn is_a_node<M>(_: impl Handler<AgentState, M>) {}
/// async fn work(_: AgentState, _: Context) {}
/// is_a_node(work);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node over `{S}`",
    label = "not a node",
    note = "a node is `async fn(State, ..)`: first the state (`{S}` or `Arc<{S}>`) or `Sent<T>`, then what it asks for (`Context`, `Runtime<T>`, `StoreHandle`, ..), returning an update, a `Command`, `()`, or a `Result` of one of these",
    note = "its future must be `Send`: hold no `Rc`, `RefCell` borrow or lock guard of `std` across an `.await`",
    note = "its errors must be `Send + Sync`: return `Result<_, superstep::BoxError>`, not `Box<dyn Error>`",
    note = "a closure that captures clones what it captured and returns a future: `move |s: {S}| {{ let x = x.clone(); async move {{ .. }} }}`"
)]
pub trait Handler<S: State, Args>: Send + Sync + 'static {
    /// Takes the arguments out of the call and starts the function.
    #[doc(hidden)]
    fn start(&self, call: Call<'_, S>) -> NodeFuture<S>;

    /// Whether what it returns may say where to go.
    #[doc(hidden)]
    fn steers() -> bool;

    /// Whether it asks for anything besides its input.
    #[doc(hidden)]
    fn asks() -> bool;
}

fn refused<S: State>(error: BoxError) -> NodeFuture<S> {
    Box::pin(async move { Err(error) })
}

async fn finish<S: State, Fut: Future>(future: Fut) -> Result<Outcome<S>, BoxError>
where
    Fut::Output: IntoOutcome<S>,
{
    future.await.into_outcome()
}

macro_rules! handlers {
    ($([$($arg:ident),*]),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl<S, F, Fut, Input, $($arg,)*> Handler<S, (Input, $($arg,)*)> for F
        where
            S: State,
            F: Fn(Input, $($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            Fut::Output: IntoOutcome<S>,
            Input: FromInput<S>,
            $($arg: FromContext,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn start(&self, call: Call<'_, S>) -> NodeFuture<S> {
                let input = match Input::from_input(&call) {
                    Ok(input) => input,
                    Err(error) => return refused(error),
                };
                handlers!(@context call, cx, $($arg),*);
                $(let $arg = match $arg::from_context(&cx) {
                    Ok(arg) => arg,
                    Err(error) => return refused(error),
                };)*
                Box::pin(finish(self(input, $($arg),*)))
            }

            fn steers() -> bool {
                Fut::Output::steers()
            }

            fn asks() -> bool {
                handlers!(@asks $($arg),*)
            }
        }
    )*};
    (@asks) => { false };
    (@asks $($arg:ident),+) => { true };
    (@context $call:ident, $cx:ident,) => {};
    (@context $call:ident, $cx:ident, $($arg:ident),+) => { let $cx = ($call.context)(); };
}

handlers!([], [A], [A, B], [A, B, C], [A, B, C, D], [A, B, C, D, E], [A, B, C, D, E, G]);

/// What can be added to a graph as a node: a function, a [`Node`], an [`Agent`], a compiled graph, a [`ParallelNode`].
///
/// ```
/// use superstep::{AgentState, EchoAgent, IntoNode};
/// fn is_a_node<M>(_: impl IntoNode<AgentState, M>) {}
/// is_a_node(EchoAgent);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node over `{S}`",
    label = "not a node",
    note = "a node is `async fn(State, ..)`: first the state (`{S}` or `Arc<{S}>`) or `Sent<T>`, then what it asks for (`Context`, `Runtime<T>`, `StoreHandle`, ..), returning an update, a `Command`, `()`, or a `Result` of one of these",
    note = "its future must be `Send`: hold no `Rc`, `RefCell` borrow or lock guard of `std` across an `.await`",
    note = "its errors must be `Send + Sync`: return `Result<_, superstep::BoxError>`, not `Box<dyn Error>`",
    note = "a closure that captures clones what it captured and returns a future: `move |s: {S}| {{ let x = x.clone(); async move {{ .. }} }}`",
    note = "types that implement `Node<{S}>` or `Agent<State = {S}>`, and compiled graphs over `{S}`, are nodes too; a graph over another state becomes one with `MappedGraph::new(graph, input, output)`"
)]
pub trait IntoNode<S: State, Marker> {
    /// Erases its type.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn into_node(self) -> BoxedNode<S>;
}

#[diagnostic::do_not_recommend]
impl<S: State, Args, F: Handler<S, Args>> IntoNode<S, (Args,)> for F {
    #[allow(private_interfaces)]
    fn into_node(self) -> BoxedNode<S> {
        let (steers, asks) = (F::steers(), F::asks());
        BoxedNode { asks, steers, ..BoxedNode::new(std::any::type_name::<F>(), move |call| self.start(call)) }
    }
}

/// Tells [`Node`]s from functions.
#[doc(hidden)]
pub struct NodeMarker;
/// Tells [`Agent`]s from functions.
#[doc(hidden)]
pub struct AgentMarker;
/// Tells graphs from functions.
#[doc(hidden)]
pub struct GraphMarker;
/// Tells parallel nodes from functions.
#[doc(hidden)]
pub struct ParallelMarker;

/// A node whose state is turned into writes of every field.
fn whole_state<S, F, Fut>(steers: bool, run: F) -> BoxedNode<S>
where
    S: State<Schema = ()>,
    F: Fn(S) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(S, Next), BoxError>> + Send + 'static,
{
    let run = move |call: Call<'_, S>| match S::from_input(&call) {
        Err(error) => refused(error),
        Ok(state) => {
            let future = run(state);
            Box::pin(async move {
                let (state, next) = future.await?;
                (Outcome { puts: crate::state::replacing(&state), ..Outcome::none() }, next).into_outcome()
            }) as NodeFuture<S>
        }
    };
    BoxedNode { steers, ..BoxedNode::new(std::any::type_name::<F>(), run) }
}

#[diagnostic::do_not_recommend]
impl<S: State<Schema = ()>, N: Node<S>> IntoNode<S, NodeMarker> for N {
    #[allow(private_interfaces)]
    fn into_node(self) -> BoxedNode<S> {
        let node = Arc::new(self);
        whole_state(true, move |state| {
            let node = node.clone();
            async move { node.run(state).await }
        })
    }
}

#[diagnostic::do_not_recommend]
impl<S: State<Schema = ()>, A: Agent<State = S>> IntoNode<S, AgentMarker> for A {
    #[allow(private_interfaces)]
    fn into_node(self) -> BoxedNode<S> {
        let agent = Arc::new(self);
        whole_state(false, move |state| {
            let agent = agent.clone();
            async move { Ok((agent.run(state).await?, Next::Continue)) }
        })
    }
}

/// Tells [`StateNode`]s from functions.
#[doc(hidden)]
pub struct StateNodeMarker;

#[diagnostic::do_not_recommend]
impl<S: State, N: StateNode<S>> IntoNode<S, StateNodeMarker> for N {
    #[allow(private_interfaces)]
    fn into_node(self) -> BoxedNode<S> {
        let (steers, mistakes) = (N::Output::steers(), self.mistakes());
        let node = Arc::new(self);
        let run = move |call: Call<'_, S>| match N::Input::from_input(&call) {
            Err(error) => refused(error),
            Ok(input) => {
                let (node, cx) = (node.clone(), (call.context)());
                Box::pin(async move { node.run(input, cx).await?.into_outcome() }) as NodeFuture<S>
            }
        };
        BoxedNode { steers, mistakes, ..BoxedNode::new(std::any::type_name::<N>(), run) }
    }
}

/// Tells [`PartialAgent`]s from functions.
#[doc(hidden)]
pub struct PartialMarker;

#[diagnostic::do_not_recommend]
impl<S: State<Schema = ()>, A: PartialAgent<State = S>> IntoNode<S, PartialMarker> for A {
    #[allow(private_interfaces)]
    fn into_node(self) -> BoxedNode<S> {
        let agent = Arc::new(self);
        let run = move |state: S| {
            let agent = agent.clone();
            async move { Ok::<_, BoxError>(agent.run_partial(state).await?.into_update()) }
        };
        run.into_node()
    }
}

#[diagnostic::do_not_recommend]
impl<W, M> IntoNode<Workflow<W>, ParallelMarker> for ParallelNode<W, M>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
    W::Checkpoint: Sync + 'static,
    M: MergeStrategy<W> + 'static,
{
    #[allow(private_interfaces)]
    fn into_node(self) -> BoxedNode<Workflow<W>> {
        let node = Arc::new(self);
        let run = move |state: Arc<Workflow<W>>| {
            let node = node.clone();
            async move { Ok::<_, BoxError>(MergedState(node.run(state.0.clone()).await?).into_update()) }
        };
        run.into_node()
    }
}
