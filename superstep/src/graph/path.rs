//! Paths: the functions that decide where a conditional edge leads.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::BoxError;
use crate::node::{Call, FromInput, Goto, Send};
use crate::state::State;
use crate::state::erased::Snapshot;

/// Where a path leads: any number of nodes and sends.
pub type Routes = SmallVec<[Goto; 1]>;

type RouteFuture = Pin<Box<dyn Future<Output = Result<Routes, BoxError>> + std::marker::Send>>;
pub(crate) type SyncPath = Arc<dyn Fn(&Snapshot) -> Result<Routes, BoxError> + std::marker::Send + Sync>;
type AsyncPath = Arc<dyn for<'a> Fn(Call<'a>) -> RouteFuture + std::marker::Send + Sync>;

/// A path with its types erased.
#[derive(Clone)]
pub struct Path {
    pub(crate) run: PathFn,
    /// Where it may lead, if its return type says so.
    pub(crate) targets: Option<&'static [&'static str]>,
    pub(crate) name: Option<String>,
}

#[derive(Clone)]
pub(crate) enum PathFn {
    Sync(SyncPath),
    Async(AsyncPath),
}

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

/// A function that can decide a conditional edge: `Fn(&S) -> route`, or an async function of the state.
///
/// ```
/// use superstep::{AgentState, IntoPath, END};
/// fn is_a_path<M>(_: impl IntoPath<AgentState, M>) {}
/// is_a_path(|s: &AgentState| if s.messages.is_empty() { END } else { "reply" });
/// is_a_path(async |s: AgentState| if s.messages.is_empty() { END } else { "reply" });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide a conditional edge of a graph over `{S}`",
    note = "a path is `Fn(&{S}) -> route` or `async fn({S}) -> route`; a route is a node's name, `END`, a `Send`, an enum that derives `Routes`, or a `Vec`, `Option` or `Result` of these"
)]
pub trait IntoPath<S: State, Marker> {
    /// Erases its type.
    #[doc(hidden)]
    fn into_path(self) -> Path;
}

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
pub struct AsyncMarker<I>(std::marker::PhantomData<I>);

impl<S, F, Fut, I> IntoPath<S, AsyncMarker<I>> for F
where
    S: State,
    I: FromInput<S>,
    F: Fn(I) -> Fut + std::marker::Send + Sync + 'static,
    Fut: Future + std::marker::Send + 'static,
    Fut::Output: IntoRoutes,
{
    fn into_path(self) -> Path {
        let run = move |call: Call<'_>| -> RouteFuture {
            match I::from_input(&call) {
                Ok(input) => {
                    let future = self(input);
                    Box::pin(async move { future.await.into_routes() })
                }
                Err(error) => Box::pin(async move { Err(error) }),
            }
        };
        Path { run: PathFn::Async(Arc::new(run)), targets: Fut::Output::targets(), name: None }
    }
}

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
pub struct NamedMarker<M>(std::marker::PhantomData<M>);

impl<S: State, M, P: IntoPath<S, M>> IntoPath<S, NamedMarker<M>> for NamedPath<P> {
    fn into_path(self) -> Path {
        Path { name: Some(self.name), ..self.path.into_path() }
    }
}
