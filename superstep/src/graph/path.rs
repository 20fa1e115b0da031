//! Paths: the functions that decide where a conditional edge leads.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::call::{Call, Goto, Path, PathFn, RouteFuture, Routes, Send};
use crate::error::BoxError;
use crate::node::{FromContext, FromInput};
use crate::state::State;
use crate::state::erased::Snapshot;

/// What a path may return.
///
/// ```
/// use superstep::{IntoRoutes, Send, END};
/// assert_eq!("next".into_routes()?.len(), 1);
/// assert_eq!(vec![Send::new("work", 1), Send::new("work", 2)].into_routes()?.len(), 2);
/// assert_eq!(Vec::<&str>::new().into_routes()?.len(), 0);
/// # let _ = END;
/// # Ok::<(), superstep::BoxError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a conditional edge cannot lead to `{Self}`",
    note = "return a node's name, `END`, a `Send`, a `Goto`, an enum that derives `Routes`, or a `Vec`, `Option` or `Result` of these"
)]
pub trait IntoRoutes {
    /// Turns it into a list of places to go to.
    ///
    /// # Errors
    /// If the path failed.
    fn into_routes(self) -> Result<Routes, BoxError>;

    /// Where it may lead, if the type says so.
    #[doc(hidden)]
    fn targets() -> Option<&'static [&'static str]>
    where
        Self: Sized,
    {
        None
    }
}

fn one(goto: impl Into<Goto>) -> Result<Routes, BoxError> {
    Ok(SmallVec::from_iter([goto.into()]))
}

impl IntoRoutes for &'static str {
    fn into_routes(self) -> Result<Routes, BoxError> {
        one(self)
    }
}

impl IntoRoutes for String {
    fn into_routes(self) -> Result<Routes, BoxError> {
        one(self)
    }
}

impl IntoRoutes for Goto {
    fn into_routes(self) -> Result<Routes, BoxError> {
        one(self)
    }
}

impl IntoRoutes for Send {
    fn into_routes(self) -> Result<Routes, BoxError> {
        one(self)
    }
}

impl<T: IntoRoutes> IntoRoutes for Vec<T> {
    fn into_routes(self) -> Result<Routes, BoxError> {
        let mut all = Routes::new();
        for item in self {
            all.extend(item.into_routes()?);
        }
        Ok(all)
    }
    fn targets() -> Option<&'static [&'static str]> {
        T::targets()
    }
}

impl<T: IntoRoutes> IntoRoutes for Option<T> {
    fn into_routes(self) -> Result<Routes, BoxError> {
        self.map_or_else(|| Ok(Routes::new()), IntoRoutes::into_routes)
    }
    fn targets() -> Option<&'static [&'static str]> {
        T::targets()
    }
}

impl<T: IntoRoutes, E: Into<BoxError>> IntoRoutes for Result<T, E> {
    fn into_routes(self) -> Result<Routes, BoxError> {
        self.map_err(Into::into)?.into_routes()
    }
    fn targets() -> Option<&'static [&'static str]> {
        T::targets()
    }
}

/// An enum of routes, so that a conditional edge is exhaustive; `#[derive(Routes)]` writes it.
///
/// ```
/// use superstep::{RouteMap, Routes};
///
/// #[derive(Routes)]
/// enum After { Review, #[route(END)] Done }
/// assert_eq!(After::TARGETS, ["review", "__end__"]);
/// assert_eq!(After::Done.target(), "__end__");
/// ```
pub trait RouteMap {
    /// All names that it can lead to.
    const TARGETS: &'static [&'static str];

    /// The name that this route leads to.
    fn target(&self) -> &'static str;
}

impl<R: RouteMap> IntoRoutes for R {
    fn into_routes(self) -> Result<Routes, BoxError> {
        one(self.target())
    }
    fn targets() -> Option<&'static [&'static str]> {
        Some(R::TARGETS)
    }
}

/// What a path may name, and where that leads: an entry of the map of a conditional edge.
///
/// A pair maps a name to a node; a node's name alone stands for itself, so that a map may be a list of nodes.
///
/// ```
/// use superstep::{PathTarget, END};
/// assert_eq!(("enough", END).entry(), ("enough".to_owned(), END.to_owned()));
/// assert_eq!("ask".entry(), ("ask".to_owned(), "ask".to_owned()));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no target of a conditional edge",
    note = "a list of targets has the names of nodes, as in `[\"ask\", END]`; a map has pairs, as in `[(\"again\", \"ask\"), (\"enough\", END)]`"
)]
pub trait PathTarget {
    /// What the path names, and the node that this leads to.
    fn entry(self) -> (String, String);
}

#[diagnostic::do_not_recommend]
impl<L: Into<String>, T: Into<String>> PathTarget for (L, T) {
    fn entry(self) -> (String, String) {
        (self.0.into(), self.1.into())
    }
}

macro_rules! names_are_targets {
    ($($name:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl PathTarget for $name {
            fn entry(self) -> (String, String) {
                let name = String::from(self);
                (name.clone(), name)
            }
        }
    )*};
}

names_are_targets!(&str, &String, String, Cow<'_, str>);

/// A function that can decide a conditional edge: `Fn(&S) -> route`, or an async function of the state.
///
/// An async path takes what a node takes: first the state (`S`, `Arc<S>`, a [`Narrow`](crate::Narrow) view), then whatever
/// implements [`FromContext`]: [`Context`](crate::Context), [`Runtime`](crate::Runtime), [`StoreHandle`](crate::StoreHandle)
/// and so on. It runs inside its node's task, after the node: it may ask, emit, use the store, call tasks and graphs; the
/// node's retries run both again, its timeouts bound both, its error handler gets the failures of both. Its questions count
/// on from those of the node; when the answer comes, the node runs again from its first line, and then the path.
///
/// ```
/// use superstep::{AgentState, BoxError, Context, IntoPath, StoreHandle, END};
/// fn is_a_path<M>(_: impl IntoPath<AgentState, M>) {}
/// is_a_path(|s: &AgentState| if s.messages.is_empty() { END } else { "reply" });
/// is_a_path(async |s: AgentState| if s.messages.is_empty() { END } else { "reply" });
/// is_a_path(async |_: AgentState, cx: Context, _: StoreHandle| -> Result<&str, BoxError> {
///     Ok(if cx.interrupt("shall I reply?")? { "reply" } else { END })
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide a conditional edge of a graph over `{S}`",
    label = "not a path",
    note = "a path is `Fn(&{S}) -> route` of the state alone, or `async fn({S}, ..) -> route`, which takes after the state what it asks for (`Context`, `Runtime<T>`, `StoreHandle`, ..)",
    note = "a route is a node's name, `END`, a `Send`, an enum that derives `Routes`, or a `Vec`, `Option` or `Result` of these",
    note = "its future must be `Send`: hold no `Rc`, `RefCell` borrow or lock guard of `std` across an `.await`",
    note = "its errors must be `Send + Sync`: return `Result<_, superstep::BoxError>`, not `Box<dyn Error>`",
    note = "a closure that captures clones what it captured and returns a future: `move |s: {S}| {{ let x = x.clone(); async move {{ .. }} }}`"
)]
pub trait IntoPath<S: State, Marker> {
    /// Erases its type.
    #[doc(hidden)]
    fn into_path(self) -> Path;
}

#[diagnostic::do_not_recommend]
impl<S, F, R> IntoPath<S, fn(&S) -> R> for F
where
    S: State,
    F: Fn(&S) -> R + std::marker::Send + Sync + 'static,
    R: IntoRoutes,
{
    fn into_path(self) -> Path {
        Path {
            run: PathFn::Sync(Arc::new(move |state: &Snapshot| self(state.get()).into_routes())),
            targets: R::targets(),
            name: None,
        }
    }
}

/// Tells async paths from plain ones.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsyncMarker<Args>(std::marker::PhantomData<Args>);

fn refused(error: BoxError) -> RouteFuture {
    Box::pin(async move { Err(error) })
}

async fn routes<Fut: Future<Output: IntoRoutes>>(path: Fut) -> Result<Routes, BoxError> {
    path.await.into_routes()
}

macro_rules! async_paths {
    ($([$($arg:ident),*]),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl<S, F, Fut, Input, $($arg,)*> IntoPath<S, AsyncMarker<(Input, $($arg,)*)>> for F
        where
            S: State,
            F: Fn(Input, $($arg),*) -> Fut + std::marker::Send + Sync + 'static,
            Fut: Future + std::marker::Send + 'static,
            Fut::Output: IntoRoutes,
            Input: FromInput<S>,
            $($arg: FromContext,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn into_path(self) -> Path {
                let run = move |call: Call<'_>| -> RouteFuture {
                    let input = async_paths!(@take Input::from_input(&call));
                    async_paths!(@arguments call, $($arg),*);
                    Box::pin(routes(self(input, $($arg),*)))
                };
                let run = PathFn::Async { run: Arc::new(run), asks: async_paths!(@asks $($arg),*) };
                Path { run, targets: Fut::Output::targets(), name: None }
            }
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
        $(let $arg = async_paths!(@take $arg::from_context(&cx));)+
    };
    (@asks) => { false };
    (@asks $($arg:ident),+) => { true };
}

async_paths!([], [A], [A, B], [A, B, C], [A, B, C, D], [A, B, C, D, E], [A, B, C, D, E, G]);

/// A path with a name, by which mistakes and errors speak of it. The names of a node's paths must differ.
///
/// ```
/// use superstep::{AgentState, NamedPath, StateGraph, END, START};
/// # async fn n(_: AgentState) {}
/// let by_length = NamedPath::new("by_length", |s: &AgentState| if s.messages.len() < 3 { "more" } else { "enough" });
/// let app = StateGraph::<AgentState>::new()
///     .add_node("ask", n)
///     .add_edge(START, "ask")
///     .add_conditional_edges_with_map("ask", by_length, [("more", "ask"), ("enough", END)])
///     .compile()?;
/// # Ok::<(), superstep::CompilationError>(())
/// ```
#[derive(Debug, Clone)]
pub struct NamedPath<P> {
    name: String,
    path: P,
}

impl<P> NamedPath<P> {
    /// Gives a path a name.
    pub fn new(name: impl Into<String>, path: P) -> Self {
        Self { name: name.into(), path }
    }
}

/// Tells named paths from plain ones.
#[doc(hidden)]
#[derive(Debug)]
pub struct NamedMarker<M>(std::marker::PhantomData<M>);

#[diagnostic::do_not_recommend]
impl<S: State, M, P: IntoPath<S, M>> IntoPath<S, NamedMarker<M>> for NamedPath<P> {
    fn into_path(self) -> Path {
        Path { name: Some(self.name), ..self.path.into_path() }
    }
}
