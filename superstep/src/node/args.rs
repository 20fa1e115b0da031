//! The arguments that nodes may ask for.

use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::call::{Call, Context, NodeError};
use crate::error::{BoxError, Terminal};
use crate::id::RunId;
use crate::state::{Given, State};
use crate::store::Store;
use crate::value::Payload;
use crate::workflow::{Workflow, WorkflowState};

/// What can be a node's first argument: the state or a part of it, or what was sent.
///
/// ```
/// use std::sync::Arc;
/// use superstep::{AgentState, Sent};
///
/// async fn by_value(_: AgentState) {}
/// async fn shared(_: Arc<AgentState>) {}          // no copy: best for large states
/// async fn sent(_: Sent<u32>) {}
/// # use superstep::StateGraph;
/// # let _ = StateGraph::<AgentState>::new().add_node("a", by_value).add_node("b", shared).add_node("c", sent);
/// ```
#[diagnostic::on_unimplemented(
    message = "a node over `{S}` cannot take `{Self}` as its first argument",
    note = "take the state (`{S}` or `Arc<{S}>`), `Narrow<View>` with `View: From<&{S}>`, or `Sent<T>` for a payload"
)]
pub trait FromInput<S: State>: Sized {
    /// Takes it out of the task's input.
    ///
    /// # Errors
    /// If the input is something else.
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError>;

    /// Whether it is made of the fields alone that the node's options let it see.
    #[doc(hidden)]
    fn narrows() -> bool {
        false
    }

    /// The state that a whole state which the node gives back is compared with: none if it sees no state.
    #[doc(hidden)]
    fn given_state(_call: &Call<'_>) -> Option<Arc<S>> {
        None
    }
}

fn not_the_state() -> BoxError {
    "it takes the state but was sent a payload; take `Sent<T>` as its first argument".into()
}

/// The state that was sent: as it is, or as a checkpoint kept it.
fn sent_state<S: State>(call: &Call<'_>, payload: &Payload) -> Result<Arc<S>, BoxError> {
    if let Some(state) = payload.peek::<S>() {
        return Ok(Arc::new(state.clone()));
    }
    let sent = if payload.is_saved() { call.typed::<S>().sent(payload) } else { None };
    let Some(state) = sent else { return Err(not_the_state()) };
    state.map(Arc::new).map_err(|why| format!("{}, or send the whole state: {why}", not_the_state()).into())
}

impl<S: State> FromInput<S> for S {
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError> {
        match call.input {
            Given::State(state) => Ok(state.get::<S>().clone()),
            Given::Sent(payload) => sent_state(call, payload).map(Arc::unwrap_or_clone),
        }
    }

    fn given_state(call: &Call<'_>) -> Option<Arc<S>> {
        <Arc<_> as FromInput<_>>::from_input(call).ok()
    }
}

impl<S: State> FromInput<S> for Arc<S> {
    #[inline]
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError> {
        match call.input {
            Given::State(state) => Ok(state.share()),
            Given::Sent(payload) => sent_state(call, payload),
        }
    }

    fn given_state(call: &Call<'_>) -> Option<Arc<S>> {
        <Arc<_> as FromInput<_>>::from_input(call).ok()
    }
}

/// The workflow's own state, out of the graph's.
impl<W> FromInput<Workflow<W>> for W
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError> {
        Workflow::from_input(call).map(|workflow| workflow.0)
    }

    fn given_state(call: &Call<'_>) -> Option<Arc<Workflow<W>>> {
        <Arc<_> as FromInput<_>>::from_input(call).ok()
    }
}

/// A smaller view of the state, made by `From<&S>`.
///
/// ```
/// use superstep::{AgentState, Narrow};
///
/// struct LastWords(String);
/// impl From<&AgentState> for LastWords {
///     fn from(s: &AgentState) -> Self { LastWords(s.messages.last().map(|m| m.text().into_owned()).unwrap_or_default()) }
/// }
/// async fn node(Narrow(words): Narrow<LastWords>) { println!("{}", words.0); }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("a", node);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Narrow<V>(pub V);

impl<S: State, V: for<'a> From<&'a S>> FromInput<S> for Narrow<V> {
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError> {
        match call.input {
            Given::State(state) => Ok(Narrow(V::from(state.get::<S>()))),
            Given::Sent(_) => Err(not_the_state()),
        }
    }
}

/// What a [`Send`](crate::Send) carried.
///
/// ```
/// use superstep::{AgentState, Sent};
/// async fn work(Sent(number): Sent<u32>) { println!("{number}"); }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("work", work);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Sent<T>(pub T);

impl<S: State, T: DeserializeOwned + Clone + 'static> FromInput<S> for Sent<T> {
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError> {
        match call.input {
            Given::Sent(payload) => payload.get().map(Sent).map_err(|e| {
                let (wanted, why) = (std::any::type_name::<T>(), in_words::<T>(payload).unwrap_or(e.to_string()));
                format!("it takes `{wanted}`, but what it was sent is something else: {why}").into()
            }),
            Given::State(_) => Err("it takes a payload but was reached by an edge; reach it with `Send`".into()),
        }
    }
}

/// Why a payload is no `T`, in the words of JSON: those of saved bytes speak of markers.
fn in_words<T: DeserializeOwned>(payload: &Payload) -> Option<String> {
    let json = payload.to_json().ok()?;
    serde_json::from_value::<T>(json).err().map(|e| e.to_string())
}

/// The state at the beginning of the step, and what the node was sent, if it was reached by a [`Send`](crate::Send).
///
/// A payload can so stay small: the state need not be part of it.
///
/// ```
/// use superstep::{AgentState, Reached};
/// async fn work(Reached { state, sent }: Reached<AgentState, u32>) {
///     println!("{} messages, {sent:?}", state.messages.len());
/// }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("work", work);
/// ```
#[derive(Debug, Clone)]
pub struct Reached<S, T> {
    /// The state.
    pub state: Arc<S>,
    /// What it was sent; nothing if it was reached by an edge.
    pub sent: Option<T>,
}

impl<S: State, T: DeserializeOwned + Clone + 'static> FromInput<S> for Reached<S, T> {
    fn from_input(call: &Call<'_>) -> Result<Self, BoxError> {
        match (call.input, call.state) {
            (Given::State(state), _) => Ok(Self { state: state.share(), sent: None }),
            (Given::Sent(_), None) => Err(not_the_state()),
            (Given::Sent(_), Some(state)) => {
                let Sent(sent) = <Sent<T> as FromInput<S>>::from_input(call)?;
                Ok(Self { state: state.share(), sent: Some(sent) })
            }
        }
    }

    fn given_state(call: &Call<'_>) -> Option<Arc<S>> {
        call.state_of_step()
    }

    fn narrows() -> bool {
        true
    }
}

/// What nodes, and async [paths](crate::IntoPath), may ask for after their first argument.
///
/// ```
/// use superstep::{AgentState, Context, RemainingSteps, StreamWriter};
/// async fn node(_: AgentState, cx: Context, left: RemainingSteps, writer: StreamWriter) {}
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("a", node);
/// ```
#[diagnostic::on_unimplemented(
    message = "neither a node nor a path can ask for `{Self}`",
    note = "after the state they may ask for `Context`, `Runtime<T>`, `StoreHandle`, `StreamWriter`, `RunConfig`, `RemainingSteps`, `Attempt`, `CancellationToken`, `Previous<T>` or `NodeError`"
)]
pub trait FromContext: Sized {
    /// Takes it out of the task's context.
    ///
    /// # Errors
    /// If it is not there.
    fn from_context(cx: &Context) -> Result<Self, BoxError>;
}

impl FromContext for Context {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        Ok(cx.clone())
    }
}

impl FromContext for CancellationToken {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        Ok(cx.cancellation().clone())
    }
}

impl<T: FromContext> FromContext for Option<T> {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        Ok(T::from_context(cx).ok())
    }
}

/// What the caller gave the run with `.context(..)`, by type.
///
/// ```
/// use superstep::{AgentState, Runtime, StateGraph, START};
/// struct Deps { model: &'static str }
/// async fn node(_: AgentState, deps: Runtime<Deps>) { assert_eq!(deps.model, "small"); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("a", node).add_edge(START, "a").compile()?;
/// app.invoke(()).context(Deps { model: "small" }).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Runtime<T>(pub Arc<T>);

impl<T> Deref for Runtime<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: std::any::Any + Send + Sync> FromContext for Runtime<T> {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        cx.context().map(Runtime).ok_or_else(|| {
            let wanted = std::any::type_name::<T>();
            let given: Vec<String> = cx.task.run.contexts.iter().map(|c| format!("`{}`", c.type_name)).collect();
            let given =
                if given.is_empty() { String::new() } else { format!(", but the run was given {}", given.join(", ")) };
            let words =
                format!("it asks for a context of type `{wanted}`{given}; give the run one with `.context(..)`");
            Terminal::new(words).into()
        })
    }
}

/// The graph's long-term store.
///
/// ```
/// use superstep::{AgentState, Store, StoreHandle};
/// async fn node(_: AgentState, store: StoreHandle) -> Result<(), superstep::BoxError> {
///     store.put(["users", "ada"], "likes", serde_json::json!("tea")).await?;
///     Ok(())
/// }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("a", node);
/// ```
#[derive(Clone)]
pub struct StoreHandle(pub Arc<dyn Store>);

crate::debug::debug_parts!([] StoreHandle, "StoreHandle", _this => {  });

impl Deref for StoreHandle {
    type Target = Arc<dyn Store>;
    fn deref(&self) -> &Arc<dyn Store> {
        &self.0
    }
}

impl FromContext for StoreHandle {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        let missing = || Terminal::new("it asks for a store; give the graph one with `.store(..)`").into();
        cx.store().cloned().map(StoreHandle).ok_or_else(missing)
    }
}

/// Sends events to the `custom` stream.
///
/// ```
/// use superstep::{AgentState, StreamWriter};
/// async fn node(_: AgentState, writer: StreamWriter) { writer.send("half way").await; }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("a", node);
/// ```
#[derive(Debug, Clone)]
pub struct StreamWriter(Context);

impl StreamWriter {
    /// Sends an event; waits while the reader's buffer is full, does nothing if nobody reads.
    pub async fn send(&self, value: impl Serialize) {
        self.0.emit(value).await;
    }
}

impl FromContext for StreamWriter {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        Ok(Self(cx.clone()))
    }
}

/// How the run was called.
///
/// ```
/// use superstep::{AgentState, RunConfig};
/// async fn node(_: AgentState, config: RunConfig) { println!("{:?}", config.thread); }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("a", node);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunConfig {
    /// The thread.
    pub thread: Option<String>,
    /// The run.
    pub run_id: RunId,
    /// What the run is called, if the caller said so.
    pub run_name: Option<String>,
    /// The most steps it may take.
    pub recursion_limit: usize,
    /// What the caller said about it, and over that what the graph said about the node.
    pub metadata: std::collections::BTreeMap<String, Value>,
    /// Its tags.
    pub tags: Vec<String>,
}

impl FromContext for RunConfig {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        Ok(Self {
            thread: cx.thread().map(str::to_owned),
            run_id: cx.task.run.run_id().clone(),
            run_name: cx.task.run.run_name.as_deref().map(str::to_owned),
            recursion_limit: cx.task.run.recursion_limit,
            metadata: cx.metadata().clone(),
            tags: cx.tags().to_vec(),
        })
    }
}

/// How many steps the recursion limit leaves, this one included.
///
/// ```
/// use superstep::{AgentState, RemainingSteps};
/// async fn node(_: AgentState, left: RemainingSteps) { if left.0 < 2 { println!("hurry"); } }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("a", node);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemainingSteps(pub usize);

impl FromContext for RemainingSteps {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        Ok(Self(cx.remaining_steps()))
    }
}

/// Which attempt of the node this is, from 1.
///
/// ```
/// use superstep::{AgentState, Attempt};
/// async fn node(_: AgentState, attempt: Attempt) { println!("attempt {}", attempt.0); }
/// # let _ = superstep::StateGraph::<AgentState>::new().add_node("a", node);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(pub u32);

impl FromContext for Attempt {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        Ok(Self(cx.attempt()))
    }
}

/// What an entrypoint saved in the run before.
///
/// ```
/// use superstep::{Entrypoint, Previous};
/// let count = Entrypoint::new("count", async |n: u32, before: Previous<u32>| before.0.unwrap_or(0) + n);
/// # let _ = count;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Previous<T>(pub Option<T>);

impl<T: DeserializeOwned> FromContext for Previous<T> {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        cx.previous().map(Previous)
    }
}

impl FromContext for NodeError {
    fn from_context(cx: &Context) -> Result<Self, BoxError> {
        let not_a_handler = || "it asks for a `NodeError` but is no error handler".into();
        cx.task.failure.clone().ok_or_else(not_a_handler)
    }
}
