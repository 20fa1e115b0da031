//! Functions, trait objects, agents and graphs as nodes.

use std::future::Future;
use std::sync::Arc;

use super::{BoxedNode, FromContext, FromInput, IntoOutcome, Node, NodeInput, PartialAgent, StateNode};
use crate::call::{AnyNode, AnyOutcome, Call, NodeFuture};
use crate::error::BoxError;
use crate::state::{IntoUpdate, State};

/// A function that can be a node of a graph over `S`, async or not. You rarely name it.
///
/// ```
/// use superstep::{AgentState, Context, Handler};
/// fn is_a_node<M>(_: impl Handler<AgentState, M>) {}
/// async fn work(_: AgentState, _: Context) {}
/// fn look(_: &AgentState) {}
/// is_a_node(work);
/// is_a_node(look);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node over `{S}`",
    label = "not a node",
    note = "a node is `fn(State, ..)` or `async fn(State, ..)`: first the state (`{S}`, `Arc<{S}>`, or `&{S}` if it is not async) or `Sent<T>`, then what it asks for (`Context`, `Runtime<T>`, `StoreHandle`, ..), returning an update, the state, a `Command`, `()`, or a `Result` of one of these",
    note = "its future must be `Send`: hold no `Rc`, `RefCell` borrow or lock guard of `std` across an `.await`",
    note = "its errors must be `Send + Sync`: return `Result<_, superstep::BoxError>`, not `Box<dyn Error>`",
    note = "a closure that captures clones what it captured and returns a future: `move |s: {S}| {{ let x = x.clone(); async move {{ .. }} }}`"
)]
pub trait Handler<S: State, Args>: Send + Sync + 'static {
    /// Takes the arguments out of the call and starts the function.
    #[doc(hidden)]
    fn start(self: &Arc<Self>, call: Call<'_>) -> NodeFuture;

    /// Whether what it returns may say where to go.
    #[doc(hidden)]
    fn steers() -> bool;

    /// Whether it asks for anything besides its input.
    #[doc(hidden)]
    fn asks() -> bool;

    /// Whether its input is made of the fields alone that it is to see.
    #[doc(hidden)]
    fn narrows() -> bool;
}

/// Tells async functions from others.
#[doc(hidden)]
#[derive(Debug)]
pub struct Async;
/// Tells plain functions from others.
#[doc(hidden)]
#[derive(Debug)]
pub struct Plain;
/// Tells plain functions that borrow the state from others.
#[doc(hidden)]
#[derive(Debug)]
pub struct ByRef;

fn refused(error: BoxError) -> NodeFuture {
    Box::pin(async move { Err(error) })
}

const NOT_GIVEN: &str = "it gives back a whole state, but was given none that this could be compared with; return an update, or \
                         take the state (`Reached<S, T>` has it beside what was sent)";

/// What a node was given, kept if it may give back a whole state.
pub(crate) struct GivenState<S: State>(Option<(Arc<S>, Arc<S::Schema>)>);

impl<S: State> GivenState<S> {
    /// The state of the step.
    pub(crate) fn of_step(call: &Call<'_>) -> Self {
        Self(call.state_of_step().map(|state| (state, call.typed::<S>().schema().clone())))
    }

    /// What a function that takes `I` was given, if what it returns may be a whole state.
    fn of<I: FromInput<S>, R: IntoOutcome<S>>(call: &Call<'_>) -> Self {
        let given = R::may_be_whole().then(|| I::given_state(call)).flatten();
        Self(given.map(|state| (state, call.typed::<S>().schema().clone())))
    }

    /// What came of the node, with a whole state reduced to what it changed.
    pub(crate) fn outcome(self, result: impl IntoOutcome<S>) -> Result<AnyOutcome, BoxError> {
        let outcome = result.into_outcome()?;
        Ok(match self.0 {
            Some((given, schema)) => outcome.against(&given, &schema).erased(),
            None if outcome.has_whole_state() => return Err(NOT_GIVEN.into()),
            None => outcome.erased(),
        })
    }
}

async fn finish<S: State, Fut: Future>(future: Fut, before: GivenState<S>) -> Result<AnyOutcome, BoxError>
where
    Fut::Output: IntoOutcome<S>,
{
    before.outcome(future.await)
}

macro_rules! handlers {
    ($([$($arg:ident),*]),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl<S, F, Fut, Input, $($arg,)*> Handler<S, (Async, Input, $($arg,)*)> for F
        where
            S: State,
            F: Fn(Input, $($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            Fut::Output: IntoOutcome<S>,
            Input: FromInput<S>,
            $($arg: FromContext,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn start(self: &Arc<Self>, call: Call<'_>) -> NodeFuture {
                let before = GivenState::of::<Input, Fut::Output>(&call);
                let input = handlers!(@take Input::from_input(&call));
                handlers!(@arguments call, $($arg),*);
                Box::pin(finish(self(input, $($arg),*), before))
            }

            handlers!(@facts Fut::Output, Input, $($arg),*);
        }

        #[diagnostic::do_not_recommend]
        impl<S, F, R, Input, $($arg,)*> Handler<S, (Plain, Input, $($arg,)*)> for F
        where
            S: State,
            F: Fn(Input, $($arg),*) -> R + Send + Sync + 'static,
            R: IntoOutcome<S>,
            Input: FromInput<S> + Send + 'static,
            $($arg: FromContext + Send + 'static,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn start(self: &Arc<Self>, call: Call<'_>) -> NodeFuture {
                let (function, before) = (self.clone(), GivenState::of::<Input, R>(&call));
                let input = handlers!(@take Input::from_input(&call));
                handlers!(@arguments call, $($arg),*);
                Box::pin(async move { before.outcome(function(input, $($arg),*)) })
            }

            handlers!(@facts R, Input, $($arg),*);
        }

        #[diagnostic::do_not_recommend]
        impl<S, F, R, $($arg,)*> Handler<S, (ByRef, $($arg,)*)> for F
        where
            S: State,
            F: Fn(&S, $($arg),*) -> R + Send + Sync + 'static,
            R: IntoOutcome<S>,
            $($arg: FromContext + Send + 'static,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn start(self: &Arc<Self>, call: Call<'_>) -> NodeFuture {
                let (function, before) = (self.clone(), GivenState::of::<Arc<S>, R>(&call));
                let state: Arc<S> = handlers!(@take Arc::from_input(&call));
                handlers!(@arguments call, $($arg),*);
                Box::pin(async move { before.outcome(function(&state, $($arg),*)) })
            }

            handlers!(@facts R, Arc<S>, $($arg),*);
        }
    )*};
    (@take $taken:expr) => {
        match $taken {
            Ok(taken) => taken,
            Err(error) => return refused(error),
        }
    };
    (@arguments $call:ident,) => {};
    (@arguments $call:ident, $($arg:ident),+) => {
        let cx = ($call.context)();
        $(let $arg = handlers!(@take $arg::from_context(&cx));)+
    };
    (@facts $returned:ty, $input:ty, $($arg:ident),*) => {
        fn steers() -> bool {
            <$returned>::steers()
        }

        fn asks() -> bool {
            handlers!(@asks $($arg),*)
        }

        fn narrows() -> bool {
            <$input as FromInput<S>>::narrows()
        }
    };
    (@asks) => { false };
    (@asks $($arg:ident),+) => { true };
}

handlers!([], [A], [A, B], [A, B, C], [A, B, C, D], [A, B, C, D, E], [A, B, C, D, E, G]);

/// What can be added to a graph as a node: a function, a [`Node`], an [`Agent`](crate::Agent), a
/// compiled graph, a [`ParallelNode`](crate::ParallelNode).
///
/// ```
/// use superstep::{AgentState, EchoAgent, IntoNode};
/// fn is_a_node<M>(_: impl IntoNode<AgentState, M>) {}
/// is_a_node(EchoAgent);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node over `{S}`",
    label = "not a node",
    note = "a node is `fn(State, ..)` or `async fn(State, ..)`: first the state (`{S}`, `Arc<{S}>`, or `&{S}` if it is not async) or `Sent<T>`, then what it asks for (`Context`, `Runtime<T>`, `StoreHandle`, ..), returning an update, the state, a `Command`, `()`, or a `Result` of one of these",
    note = "its future must be `Send`: hold no `Rc`, `RefCell` borrow or lock guard of `std` across an `.await`",
    note = "its errors must be `Send + Sync`: return `Result<_, superstep::BoxError>`, not `Box<dyn Error>`",
    note = "a closure that captures clones what it captured and returns a future: `move |s: {S}| {{ let x = x.clone(); async move {{ .. }} }}`",
    note = "types that implement `Node<{S}>` or `Agent<State = {S}>`, and compiled graphs over `{S}`, are nodes too; a graph over another state becomes one with `MappedGraph::new(graph, input, output)`"
)]
pub trait IntoNode<S: State, Marker> {
    /// Erases its type.
    #[doc(hidden)]
    fn into_node(self) -> BoxedNode<S>;
}

#[diagnostic::do_not_recommend]
impl<S: State, Args, F: Handler<S, Args>> IntoNode<S, (Args,)> for F {
    fn into_node(self) -> BoxedNode<S> {
        let (steers, asks, narrows) = (F::steers(), F::asks(), F::narrows());
        let handler = Arc::new(self);
        let run = move |call: Call<'_>| handler.start(call);
        AnyNode { asks, steers, narrows, ..AnyNode::new(std::any::type_name::<F>(), run) }.into()
    }
}

/// Tells [`Node`]s from functions.
#[doc(hidden)]
#[derive(Debug)]
pub struct NodeMarker;
/// Tells graphs from functions.
#[doc(hidden)]
#[derive(Debug)]
pub struct GraphMarker;
#[diagnostic::do_not_recommend]
impl<S: State<Schema = ()>, N: Node<S>> IntoNode<S, NodeMarker> for N {
    fn into_node(self) -> BoxedNode<S> {
        boxed_node(Arc::new(self))
    }
}

/// Tells boxed nodes from functions.
#[doc(hidden)]
#[derive(Debug)]
pub struct Boxed<M>(std::marker::PhantomData<M>);

#[diagnostic::do_not_recommend]
impl<S: State<Schema = ()>, N: Node<S>> IntoNode<S, Boxed<NodeMarker>> for Box<N> {
    fn into_node(self) -> BoxedNode<S> {
        boxed_node::<S, N>(Arc::from(self))
    }
}

fn boxed_node<S: State<Schema = ()>, N: Node<S>>(node: Arc<N>) -> BoxedNode<S> {
    let (steers, mistakes) = (node.steers(), node.mistakes());
    let run = move |call: Call<'_>| {
        let (node, before, input) = (node.clone(), GivenState::of_step(&call), NodeInput::of(&call));
        let cx = (call.context)();
        Box::pin(async move { before.outcome(node.call(input?, cx).await) }) as NodeFuture
    };
    AnyNode { steers, mistakes, ..AnyNode::new(std::any::type_name::<N>(), run) }.into()
}

/// Tells [`StateNode`]s from functions.
#[doc(hidden)]
#[derive(Debug)]
pub struct StateNodeMarker;

#[diagnostic::do_not_recommend]
impl<S: State, N: StateNode<S>> IntoNode<S, StateNodeMarker> for N {
    fn into_node(self) -> BoxedNode<S> {
        boxed_state_node(Arc::new(self))
    }
}

#[diagnostic::do_not_recommend]
impl<S: State, N: StateNode<S>> IntoNode<S, Boxed<StateNodeMarker>> for Box<N> {
    fn into_node(self) -> BoxedNode<S> {
        boxed_state_node::<S, N>(Arc::from(self))
    }
}

fn boxed_state_node<S: State, N: StateNode<S>>(node: Arc<N>) -> BoxedNode<S> {
    let (steers, mistakes) = (N::Output::steers(), node.mistakes());
    let run = move |call: Call<'_>| match N::Input::from_input(&call) {
        Err(error) => refused(error),
        Ok(input) => {
            let before = GivenState::of::<N::Input, N::Output>(&call);
            let (node, cx) = (node.clone(), (call.context)());
            Box::pin(async move { before.outcome(node.run(input, cx).await?) }) as NodeFuture
        }
    };
    AnyNode { steers, mistakes, ..AnyNode::new(std::any::type_name::<N>(), run) }.into()
}

/// Tells [`PartialAgent`]s from functions.
#[doc(hidden)]
#[derive(Debug)]
pub struct PartialMarker;

#[diagnostic::do_not_recommend]
impl<S: State<Schema = ()>, A: PartialAgent<State = S>> IntoNode<S, PartialMarker> for A {
    fn into_node(self) -> BoxedNode<S> {
        let agent = Arc::new(self);
        let run = move |state: S| {
            let agent = agent.clone();
            async move { Ok::<_, BoxError>(agent.run_partial(state).await?.into_update()) }
        };
        run.into_node()
    }
}
