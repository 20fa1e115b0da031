//! Workflows made of functions: an entrypoint that calls tasks whose results are kept.
//!
//! A task that finished is never run again: not after a question, a failure or a restart.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cache::Cache;
use crate::call::{
    AnyNode, Call, CallFn, CallFuture, CallOptions, Context, NodeFuture, RetryPolicy, TimeoutPolicy, json_of, lock,
    mistakes, no_time_to_keep,
};
use crate::checkpoint::Checkpointer;
use crate::engine::RunInput;
use crate::error::{BoxError, CodecError, Error, InvalidUpdate};
use crate::graph::{AnyGraph, CompiledStateGraph, Settings, finish_plan, node_plan};
use crate::index::{ChannelIx, Indexed};
use crate::names::START;
use crate::node::{FromContext, NodeRules, Outcome};
use crate::plan::{ControlChannel, ControlKind, Evolution, GraphCore, InputMode, NameTable, Persistence};
use crate::run::{AnyInput, IntoInput, Invoke, Streaming};
use crate::state::erased::{StateType, Typed};
use crate::state::{Change, Codec, FieldKind, FieldSpec, Persist, Put, Scratch, State};
use crate::store::Store;
use crate::thread::Thread;
use crate::view::Fields;

/// The state of a workflow made of functions: what it returned last, and what it saved for the next run.
///
/// ```
/// use superstep::Returned;
/// assert_eq!(Returned::default().value, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Returned {
    /// What the entrypoint returned.
    pub value: Option<Value>,
    /// What it saved; the next run gets it as [`Previous`](crate::Previous).
    pub saved: Option<Value>,
}

impl Returned {
    /// What the entrypoint returned, as a `T`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn get<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(self.value.as_ref().unwrap_or(&Value::Null))
    }
}

const VALUE: usize = 0;
const SAVED: usize = 1;

impl State for Returned {
    type Schema = ();
    type Write = (usize, Value);

    fn codec() -> Option<&'static Codec<Self>> {
        Some(Codec::of())
    }

    fn fields((): &()) -> &[FieldSpec] {
        const FIELDS: &[FieldSpec] =
            &[FieldSpec::new("__end__", FieldKind::LastValue), FieldSpec::new("__previous__", FieldKind::LastValue)];
        FIELDS
    }

    fn empty((): &()) -> Self {
        Self::default()
    }

    fn field_of((): &(), write: &(usize, Value)) -> Option<usize> {
        Some(write.0)
    }

    fn update(
        &mut self,
        (): &(),
        field: usize,
        writes: &mut dyn Iterator<Item = Put<(usize, Value)>>,
        _: &mut Scratch,
    ) -> Result<Change, InvalidUpdate> {
        let name = Self::fields(&())[field].name();
        let slot = if field == VALUE { &mut self.value } else { &mut self.saved };
        let mut writes = writes.map(|put| put.map(|(_, value)| Some(value)));
        crate::state::rules::last_value(slot, name, &mut writes)
    }

    fn read(&self, (): &(), field: usize) -> Option<(usize, Value)> {
        let slot = if field == VALUE { &self.value } else { &self.saved };
        slot.clone().map(|value| (field, value))
    }

    fn reset(&mut self, (): &(), field: usize) {
        *(if field == VALUE { &mut self.value } else { &mut self.saved }) = None;
    }
}

impl Persist for Returned {
    fn encode_write((): &(), write: &(usize, Value), out: &mut Vec<u8>) -> Result<(), CodecError> {
        crate::value::encode_into(&write.1, out)
    }

    fn decode_write((): &(), field: usize, bytes: &[u8]) -> Result<(usize, Value), CodecError> {
        Ok((field, crate::value::decode(bytes)?))
    }

    fn encode_field(&self, (): &(), field: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        crate::value::encode_into(if field == VALUE { &self.value } else { &self.saved }, out)
    }

    fn decode_field(&mut self, (): &(), field: usize, bytes: &[u8]) -> Result<(), CodecError> {
        *(if field == VALUE { &mut self.value } else { &mut self.saved }) = Some(crate::value::decode(bytes)?);
        Ok(())
    }

    fn write_to_json((): &(), write: &(usize, Value)) -> Result<Option<Value>, CodecError> {
        Ok(Some(write.1.clone()))
    }
}

/// What an entrypoint returns to its caller, and what it saves for the next run instead.
///
/// ```
/// use superstep::{Entrypoint, Final, Previous};
/// let sum = Entrypoint::new("sum", async |n: i64, before: Previous<i64>| {
///     let total = before.0.unwrap_or(0) + n;
///     Final { value: format!("so far {total}"), save: total }
/// });
/// # let _ = sum;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Final<V, P> {
    /// For the caller.
    pub value: V,
    /// For the next run.
    pub save: P,
}

/// What an entrypoint may return: anything that serde can write, [`Final`], or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "an entrypoint cannot return `{Self}`",
    note = "return something that implements serde's `Serialize`, a `Final`, or a `Result` of these"
)]
pub trait IntoReturned<Marker> {
    /// The value for the caller and the value to save.
    ///
    /// # Errors
    /// If the entrypoint failed, or a value cannot be encoded.
    fn into_returned(self) -> Result<(Value, Value), BoxError>;
}

/// Tells plain values from the other things that an entrypoint may return.
#[doc(hidden)]
#[derive(Debug)]
pub struct PlainMarker;
/// Tells finals from the other things that an entrypoint may return.
#[doc(hidden)]
#[derive(Debug)]
pub struct FinalMarker;
/// Tells results from the other things that an entrypoint may return.
#[doc(hidden)]
#[derive(Debug)]
pub struct ResultMarker<M>(PhantomData<M>);

impl<T: Serialize> IntoReturned<PlainMarker> for T {
    fn into_returned(self) -> Result<(Value, Value), BoxError> {
        let value = serde_json::to_value(self)?;
        Ok((value.clone(), value))
    }
}

impl<V: Serialize, P: Serialize> IntoReturned<FinalMarker> for Final<V, P> {
    fn into_returned(self) -> Result<(Value, Value), BoxError> {
        Ok((serde_json::to_value(self.value)?, serde_json::to_value(self.save)?))
    }
}

impl<M, T: IntoReturned<M>, E: Into<BoxError>> IntoReturned<ResultMarker<M>> for Result<T, E> {
    fn into_returned(self) -> Result<(Value, Value), BoxError> {
        self.map_err(Into::into)?.into_returned()
    }
}

/// An async function that can be an entrypoint: an input, then what it asks for.
pub trait EntryFn<I, Args>: Send + Sync + 'static {
    /// Starts it.
    #[doc(hidden)]
    fn start(&self, input: I, cx: &Context) -> EntryFuture;
}

type EntryFuture = std::pin::Pin<Box<dyn Future<Output = Result<(Value, Value), BoxError>> + Send>>;

macro_rules! entry_fns {
    ($([$($arg:ident),*]),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl<I, F, Fut, M, $($arg,)*> EntryFn<I, (M, $($arg,)*)> for F
        where
            F: Fn(I, $($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            Fut::Output: IntoReturned<M>,
            $($arg: FromContext,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn start(&self, input: I, cx: &Context) -> EntryFuture {
                $(let $arg = match $arg::from_context(cx) {
                    Ok(arg) => arg,
                    Err(error) => return Box::pin(async move { Err(error) }),
                };)*
                let future = self(input, $($arg),*);
                Box::pin(async move { future.await.into_returned() })
            }
        }
    )*};
}

entry_fns!([], [A], [A, B], [A, B, C], [A, B, C, D]);

/// A workflow made of functions: one function that may call [`Task`]s, ask, loop and branch as Rust does.
///
/// ```
/// use superstep::{BoxError, Context, Entrypoint, MemorySaver, Task};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let double = Task::new("double", async |n: i64| Ok::<_, BoxError>(n * 2));
/// let workflow = Entrypoint::new("workflow", move |n: i64, cx: Context| {
///     let double = double.clone();
///     async move {
///         let once = double.call(&cx, n).await?;
///         let (a, b) = (double.call(&cx, once), double.call(&cx, 1));   // both run at once
///         Ok::<_, BoxError>(a.await? + b.await?)
///     }
/// })
/// .checkpointer(MemorySaver::new())
/// .compile();
/// let out = workflow.invoke(3).thread("t").await?;
/// assert_eq!(out.get::<i64>()?, 14);
/// # Ok(())
/// # }
/// ```
pub struct Entrypoint<I> {
    name: String,
    run: Arc<dyn Fn(Value, &Context) -> EntryFuture + Send + Sync>,
    persistence: Persistence,
    store: Option<Arc<dyn Store>>,
    cache: Option<Arc<dyn Cache>>,
    retry: Vec<RetryPolicy>,
    timeout: Option<TimeoutPolicy>,
    evolution: Evolution,
    input: PhantomData<fn(I)>,
}

crate::debug::debug_parts!([I] Entrypoint<I>, "Entrypoint", this => { name: this.name });

/// The mistake of a name that is none.
fn nameless(name: &str) -> Option<String> {
    name.is_empty().then(|| "its name is empty; results are kept by name, so give it one".to_owned())
}

impl<I: DeserializeOwned + Send + 'static> Entrypoint<I> {
    /// A workflow that is this function.
    pub fn new<M>(name: impl Into<String>, run: impl EntryFn<I, M>) -> Self {
        let run = move |input: Value, cx: &Context| match serde_json::from_value::<I>(input) {
            Ok(input) => run.start(input, cx),
            Err(error) => {
                let error =
                    Box::new(Error::invalid(format!("the input does not fit the entrypoint: {error}"))) as BoxError;
                Box::pin(async move { Err(error) })
            }
        };
        Self {
            name: name.into(),
            run: Arc::new(run),
            persistence: Persistence::Inherit,
            store: None,
            cache: None,
            retry: Vec::new(),
            timeout: None,
            evolution: Evolution::default(),
            input: PhantomData,
        }
    }

    /// Says that it had another name when threads were saved: what it saved for its next run, and what was left for it to
    /// do, is this one's.
    ///
    /// ```
    /// use superstep::{Entrypoint, Previous};
    /// let sum = Entrypoint::new("total", async |n: i64, before: Previous<i64>| before.0.unwrap_or(0) + n)
    ///     .renamed_from("sum")
    ///     .compile();
    /// # let _ = sum;
    /// ```
    pub fn renamed_from(mut self, old: impl Into<String>) -> Self {
        self.evolution.rename(old.into(), self.name.clone());
        self
    }

    /// Saves results, so that the workflow can be resumed.
    pub fn checkpointer(mut self, checkpointer: impl Checkpointer) -> Self {
        self.persistence = Persistence::In(Arc::new(checkpointer));
        self
    }

    /// Long-term memory.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Where results of cached tasks are kept.
    pub fn cache(mut self, cache: impl Cache) -> Self {
        self.cache = Some(Arc::new(cache));
        self
    }

    /// Runs the entrypoint again when it fails; tasks that finished are not run again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry.push(policy);
        self
    }

    /// Limits how long an attempt may take, or how long it may be silent; a bare duration limits the whole attempt.
    ///
    /// Events, calls of tasks and [`Context::heartbeat`] are signs of life. What a task that it called does is not.
    pub fn timeout(mut self, limit: impl Into<TimeoutPolicy>) -> Self {
        self.timeout = Some(limit.into());
        self
    }

    /// Makes it ready to run.
    pub fn compile(self) -> CompiledEntrypoint<I> {
        let run = self.run;
        let timeout = self.timeout;
        let mistake = nameless(&self.name).or_else(|| mistakes(timeout.as_ref(), &self.retry).next());
        let mistake = mistake.map(|why| format!("entrypoint `{}`: {why}", self.name));
        let start = move |call: Call<'_>| -> NodeFuture {
            if let Some(why) = &mistake {
                let error = Box::new(Error::invalid(why.clone())) as BoxError;
                return Box::pin(async move { Err(error) });
            }
            let cx = (call.context)();
            let input = match call.input {
                crate::state::Given::Sent(payload) => payload.to_json().unwrap_or_default(),
                crate::state::Given::State(_) => Value::Null,
            };
            let future = run(input, &cx);
            Box::pin(async move {
                let (value, saved) = future.await?;
                let puts = [Put::merge((VALUE, value)), Put::merge((SAVED, saved))];
                Ok(Outcome::<Returned> { puts: puts.into_iter().collect(), ..Outcome::none() }.erased())
            })
        };
        let boxed = AnyNode::new("", start);
        let ty: Arc<dyn StateType> = Arc::new(Typed::<Returned>::new(Arc::new(()), Some(Codec::of())));
        let retry = (!self.retry.is_empty()).then_some(self.retry);
        let options = NodeRules { retry, timeout, ..NodeRules::default() };
        let mut node = node_plan(&self.name, boxed, options, ty.fields());
        node.triggers.push(ChannelIx::FIRST);
        node.returns = true;
        let mut nodes = Indexed::default();
        let names = NameTable::from_iter([(self.name.as_str().into(), nodes.push(node))]);
        let control = Indexed::from_iter([ControlChannel { name: START.to_owned(), kind: ControlKind::Start }]);
        let mut settings = Settings::named(self.name.clone());
        settings.checkpointer = self.persistence;
        settings.evolution = self.evolution;
        settings.store = self.store;
        settings.cache = self.cache;
        let mut plan = finish_plan(nodes, names, control, &ty, &settings);
        plan.input = InputMode::Entry;
        plan.output = Fields::One(VALUE);
        plan.shown = Fields::One(VALUE);
        CompiledEntrypoint {
            graph: CompiledStateGraph::of(GraphCore::new(plan, settings, Vec::new())),
            input: PhantomData,
        }
    }
}

/// An [`Entrypoint`] that is ready to run.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hello = superstep::Entrypoint::new("hello", async |name: String| format!("hello, {name}")).compile();
/// assert_eq!(hello.invoke("Ada").await?.get::<String>()?, "hello, Ada");
/// # Ok(())
/// # }
/// ```
pub struct CompiledEntrypoint<I> {
    graph: CompiledStateGraph<Returned>,
    input: PhantomData<fn(I)>,
}

crate::debug::debug_parts!([I] CompiledEntrypoint<I>, "CompiledEntrypoint", this => { name: this.graph.name() });

impl<I> Clone for CompiledEntrypoint<I> {
    fn clone(&self) -> Self {
        Self { graph: self.graph.clone(), input: PhantomData }
    }
}

impl<I> CompiledEntrypoint<I> {
    /// Runs it on an input; await the result.
    pub fn invoke(&self, input: impl Serialize) -> Invoke<Returned> {
        self.graph.invoke_raw(input_of(input))
    }

    /// Runs it and shows what happens.
    pub fn stream(&self, input: impl Serialize) -> Streaming<Returned> {
        self.graph.stream_raw(input_of(input))
    }

    /// Goes on: with an answer to a question, or after a failure.
    pub fn resume<M>(&self, with: impl IntoInput<Returned, M>) -> Invoke<Returned> {
        self.graph.invoke(with)
    }

    /// A thread of it.
    pub fn thread(&self, name: impl Into<String>) -> Thread<Returned> {
        self.graph.thread(name)
    }

    /// The graph that it is: one node.
    pub fn graph(&self) -> &CompiledStateGraph<Returned> {
        &self.graph
    }
}

impl<I> From<CompiledEntrypoint<I>> for AnyGraph {
    fn from(entrypoint: CompiledEntrypoint<I>) -> Self {
        entrypoint.graph.into()
    }
}

/// Tells the values that workflows run on from the other inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct ValueMarker;

impl<T: Serialize> IntoInput<Returned, ValueMarker> for T {
    fn into_input(self) -> AnyInput {
        input_of(self).into()
    }
}

fn input_of(input: impl Serialize) -> RunInput {
    match json_of(input) {
        Ok(Value::Null) => RunInput::Nothing,
        Ok(value) => RunInput::Value(value),
        Err(why) => RunInput::Unencodable(why),
    }
}

/// A function whose results are kept: called inside an entrypoint, a node or another task.
///
/// See [`Entrypoint`] for a whole program.
///
/// ```
/// use superstep::{BoxError, RetryPolicy, Task};
/// let fetch = Task::new("fetch", async |url: String| Ok::<_, BoxError>(url.len())).retry(RetryPolicy::new());
/// # let _ = fetch;
/// ```
pub struct Task<A, R> {
    name: Arc<str>,
    run: CallFn,
    options: CallOptions,
    types: PhantomData<fn(A) -> R>,
}

crate::debug::debug_parts!([A, R] Task<A, R>, "Task", this => { name: this.name });

impl<A, R> Clone for Task<A, R> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), run: self.run.clone(), options: self.options.clone(), types: PhantomData }
    }
}

/// An async function that can be a task: an argument, and the task's own context if it asks for it.
pub trait TaskFn<A, R, Marker>: Send + Sync + 'static {
    /// Starts it.
    #[doc(hidden)]
    fn start(&self, argument: A, cx: Context) -> std::pin::Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>>;
}

/// Tells tasks that ask for their context from those that do not.
#[doc(hidden)]
#[derive(Debug)]
pub struct WithContext<E>(PhantomData<E>);
/// Tells tasks without context.
#[doc(hidden)]
#[derive(Debug)]
pub struct WithoutContext<E>(PhantomData<E>);

impl<A, R, E, F, Fut> TaskFn<A, R, WithoutContext<E>> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    E: Into<BoxError>,
{
    fn start(&self, argument: A, _: Context) -> std::pin::Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>> {
        let future = self(argument);
        Box::pin(async move { future.await.map_err(Into::into) })
    }
}

impl<A, R, E, F, Fut> TaskFn<A, R, WithContext<E>> for F
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    E: Into<BoxError>,
{
    fn start(&self, argument: A, cx: Context) -> std::pin::Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>> {
        let future = self(argument, cx);
        Box::pin(async move { future.await.map_err(Into::into) })
    }
}

impl<A, R> Task<A, R>
where
    A: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    /// A task that is this function.
    pub fn new<M>(name: impl Into<String>, run: impl TaskFn<A, R, M>) -> Self {
        let options = CallOptions { made_of: std::any::type_name_of_val(&run), ..CallOptions::default() };
        let run = Arc::new(run);
        let run = move |argument: Value, cx: Context| -> CallFuture {
            let run = run.clone();
            Box::pin(async move {
                let argument: A = serde_json::from_value(argument)?;
                Ok(serde_json::to_value(run.start(argument, cx).await?)?)
            })
        };
        Self { name: name.into().into(), run: Arc::new(run), options, types: PhantomData }
    }

    /// Runs it again when it fails.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.options.retry.push(policy);
        self
    }

    /// Limits how long an attempt may take, or how long it may be silent; a bare duration limits the whole attempt.
    ///
    /// ```
    /// use std::time::Duration;
    /// use superstep::{BoxError, Context, Task, TimeoutPolicy};
    /// let fetch = Task::new("fetch", async |pages: u32, cx: Context| {
    ///     for _ in 0..pages { cx.heartbeat(); }
    ///     Ok::<_, BoxError>(pages)
    /// })
    /// .timeout(TimeoutPolicy::idle_only(Duration::from_secs(5)));
    /// # let _ = fetch;
    /// ```
    ///
    /// Events, calls of other tasks and [`Context::heartbeat`] are signs of life, as they are of a node.
    pub fn timeout(mut self, limit: impl Into<TimeoutPolicy>) -> Self {
        self.options.timeout = Some(limit.into());
        self
    }

    /// Keeps results in the workflow's cache, by argument, for good or for a while. Without a cache a
    /// call is an error.
    pub fn cached(mut self, ttl: Option<Duration>) -> Self {
        self.options.cache = Some(ttl);
        self
    }

    /// Calls it: it starts at once, and its result is awaited. Several calls run side by side.
    ///
    /// The order of calls in their caller names them, so it must not depend on chance.
    pub fn call(&self, cx: &Context, argument: A) -> Calling<R> {
        cx.task.touch();
        let ix = {
            let mut answers = lock(&cx.task.answers);
            answers.calls += 1;
            answers.calls - 1
        };
        let timeout = self.options.timeout.as_ref();
        let mistake = nameless(&self.name)
            .or_else(|| mistakes(timeout, &self.options.retry).next())
            .or_else(|| no_time_to_keep(self.options.cache.flatten()));
        let running = match (serde_json::to_value(argument), cx.task.calls.clone()) {
            _ if mistake.is_some() => {
                let words = format!("task `{}`: {}", self.name, mistake.unwrap_or_default());
                Running::Refused(Some(Box::new(Error::invalid(words))))
            }
            (Ok(value), Some(host)) => {
                let future =
                    host.call(cx.clone(), ix, self.name.clone(), value, self.options.clone(), self.run.clone());
                Running::Spawned(crate::engine::AbortOnDrop::spawn(future))
            }
            (Err(error), _) => Running::Refused(Some(error.into())),
            (_, None) => Running::Refused(Some("tasks can only be called inside a run".into())),
        };
        Calling { running, result: PhantomData }
    }
}

/// A task that was called: await its result. Dropping it cancels the task.
///
/// ```
/// # use superstep::{BoxError, Context, Task};
/// # async fn f(double: Task<i64, i64>, cx: Context) -> Result<i64, BoxError> {
/// let (a, b) = (double.call(&cx, 1), double.call(&cx, 2));
/// Ok(a.await? + b.await?)
/// # }
/// ```
#[must_use = "a call that is not awaited is cancelled"]
pub struct Calling<R> {
    running: Running,
    result: PhantomData<fn() -> R>,
}

crate::debug::debug_parts!([R] Calling<R>, "Calling", this => { is_refused: matches!(this.running, Running::Refused(_)) });

enum Running {
    Spawned(crate::engine::AbortOnDrop<Result<Value, BoxError>>),
    Refused(Option<BoxError>),
}

impl<R: DeserializeOwned> Future for Calling<R> {
    type Output = Result<R, BoxError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        let value = match &mut self.running {
            Running::Refused(error) => {
                return std::task::Poll::Ready(Err(error.take().unwrap_or_else(|| "polled again".into())));
            }
            Running::Spawned(task) => match std::task::ready!(std::pin::Pin::new(task).poll(cx)) {
                Ok(result) => result?,
                Err(stopped) => return std::task::Poll::Ready(Err(stopped.into())),
            },
        };
        std::task::Poll::Ready(serde_json::from_value(value).map_err(Into::into))
    }
}
