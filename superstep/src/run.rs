//! Starting runs: what to run on, on which thread, with what around it.

mod events;
mod handle;
mod input;
mod inside;
mod options;
mod output;

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use events::EventStream;
pub use handle::{RunHandle, RunStatus, Watch};
pub(crate) use input::AnyInput;
pub use input::{GoOn, IntoInput, JsonCommand, JsonGoto};
pub use options::RunOptions;
use options::{beside_options, run_options, stream_options};
pub use output::Output;

use crate::call::{Cancel, CancelOnDrop, GivenContext, RunControl, RunShared};
use crate::checkpoint::Durability;
use crate::engine::{DEFAULT_LIMIT, Ended, LoopConfig, RunInput, Running, Saver};
use crate::error::{Error, ErrorKind};
use crate::graph::{AnyGraph, CompiledStateGraph, level_below};
use crate::id::{CheckpointId, RunId};
use crate::index::NodeIx;
use crate::plan::{GraphCore, Persistence, StopAt};
use crate::state::State;
use crate::stream::{Event, Mode, Modes, RunEvents, Sink};
use crate::value::check_levels;
use crate::view::{Fields, Form, RunEnd};
use crate::wall::{Walled, boxed, caught};

/// A run that is set up and not started yet: await it.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let out = app.invoke(AgentState { messages: vec![Message::user("hi")] }).recursion_limit(50).await?;
/// # let _ = out;
/// # Ok(())
/// # }
/// ```
#[must_use = "a run does nothing until it is awaited"]
pub struct Invoke<S = Value> {
    run: AnyInvoke,
    state: PhantomData<fn() -> S>,
}

crate::debug::debug_parts!([S] Invoke<S>, "Invoke", this => { graph: this.run.graph.plan.name, options: this.run.options.given });

/// The same without the type of the state.
pub(crate) struct AnyInvoke {
    graph: GraphCore,
    input: RunInput,
    options: Options,
}

/// What a caller said about a run: as data, and what cannot be written down.
#[derive(Default)]
pub(crate) struct Options {
    given: RunOptions,
    contexts: Vec<GivenContext>,
    control: Option<RunControl>,
    cancel: Option<CancellationToken>,
    /// Why the run cannot be started at all.
    refused: Option<&'static str>,
}

/// How many events wait for a slow reader, unless it says otherwise.
const BUFFER: usize = 64;

impl<S: State> CompiledStateGraph<S> {
    /// Runs the graph on an input; await the result.
    pub fn invoke<M>(&self, input: impl IntoInput<S, M>) -> Invoke<S> {
        self.invoke_raw(input.into_input().of(&self.core))
    }

    /// Runs the graph on an input and shows what happens.
    pub fn stream<M>(&self, input: impl IntoInput<S, M>) -> Streaming<S> {
        Streaming(self.invoke(input))
    }

    pub(crate) fn stream_raw(&self, input: RunInput) -> Streaming<S> {
        Streaming(self.invoke_raw(input))
    }

    pub(crate) fn invoke_raw(&self, input: RunInput) -> Invoke<S> {
        Invoke::new(self.core.clone(), input)
    }
}

impl AnyGraph {
    /// Runs the graph on JSON, or on an answer; await the result.
    pub fn invoke<M>(&self, input: impl IntoInput<Value, M>) -> Invoke {
        Invoke::new(self.core.clone(), input.into_input().of(&self.core))
    }

    /// Runs the graph on JSON, or on an answer, and shows what happens.
    pub fn stream<M>(&self, input: impl IntoInput<Value, M>) -> Streaming {
        Streaming(self.invoke(input))
    }
}

impl<S> Invoke<S> {
    run_options!(self => self.run.options.given);
    beside_options!(self => self.run.options);

    pub(crate) fn new(graph: GraphCore, input: RunInput) -> Self {
        Self { run: AnyInvoke { graph, input, options: Options::default() }, state: PhantomData }
    }

    /// A run that ends before it starts, with these words.
    pub(crate) fn refused(mut self, why: &'static str) -> Self {
        self.run.options.refused = Some(why);
        self
    }
}

impl<S: Form> Invoke<S> {
    pub(crate) fn run(self) -> impl Future<Output = Result<Output<S>, Error>> + Send {
        let output = self.run.graph.plan.output.clone();
        self.run_with(None, output)
    }

    async fn run_with(self, sink: Option<Sink>, output: Fields) -> Result<Output<S>, Error> {
        let graph = self.run.graph.plan.name.clone();
        let end = boxed(|| self.run.run_with(sink, output)).await?;
        // The state is copied for the caller if somebody else holds it.
        let output = caught(|| Output::new(end));
        output.map_err(|panicked| Error::run_panicked(&graph, "the run", &panicked))
    }

    /// Runs it to the end on this thread, in a runtime of its own.
    ///
    /// # Errors
    /// As the run itself; also if no runtime can be started, or this is called inside one.
    pub fn blocking(self) -> Result<Output<S>, Error> {
        crate::blocking::block_on(self.run())
    }
}

impl AnyInvoke {
    /// Runs it behind a wall; shows these fields unless others were chosen.
    async fn run_with(self, sink: Option<Sink>, output: Fields) -> Result<RunEnd, Error> {
        let graph = self.graph.plan.name.clone();
        let ended = Walled::new(boxed(|| self.run_behind_wall(sink, output))).await;
        ended.unwrap_or_else(|panicked| Err(Error::run_panicked(&graph, "the run", &panicked)))
    }

    async fn run_behind_wall(mut self, sink: Option<Sink>, output: Fields) -> Result<RunEnd, Error> {
        // A node may start a run without saying that it is inside of one.
        let level = level_below(crate::wall::level(), &self.graph.plan.name, String::new)?;
        let output = self.graph.chosen_output(self.options.given.output_keys.as_deref(), output)?;
        let shared = self.options.shared(&self.graph, sink)?;
        if self.options.given.at.is_some() {
            boxed(|| self.options.check_place(&shared)).await?;
        }
        let _cancel_tree = CancelOnDrop(shared.clone());
        let (graph, thread, tags) = (&*self.graph.plan.name, shared.thread.as_deref(), shared.tags_text());
        let span = tracing::debug_span!("run", graph, thread, name = shared.run_name.as_deref(), tags);
        let graph_name = self.graph.plan.name.clone();
        let (mut run, input) = self.begin(shared.clone(), output, level)?;
        let ended = {
            use tracing::Instrument;
            let driven = boxed(|| run.run().drive(input));
            if span.is_disabled() { driven.await? } else { driven.instrument(span).await? }
        };
        let interrupts = match ended {
            Ended::Done => {
                shared.warn_of_untaken(&graph_name);
                None
            }
            Ended::Paused(interrupts) => Some(interrupts),
            Ended::Parent(_) => {
                return Err(Error::new(
                    ErrorKind::ParentCommand,
                    "a command for a parent graph reached the root graph",
                ));
            }
        };
        let (state, shown) = run.finish()?;
        Ok(RunEnd { state, shown, paused: interrupts.is_some(), interrupts: interrupts.unwrap_or_default() })
    }

    #[inline(never)]
    fn begin(mut self, shared: Arc<RunShared>, output: Fields, level: usize) -> Result<(Running, RunInput), Error> {
        let config = self.options.config(&self.graph, output, level)?;
        let saver = saver_of(&self.graph, &shared);
        Ok((Running::new(self.graph, shared, config, saver), self.input))
    }
}

impl<S: Form> IntoFuture for Invoke<S> {
    type Output = Result<Output<S>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// A run that will be streamed: say what to show, then start it.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Mode, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let mut events = app.stream(()).mode(Mode::Updates).start();
/// while let Some(event) = events.next().await { event?; }
/// # Ok(())
/// # }
/// ```
#[must_use = "a stream does nothing until it is started"]
pub struct Streaming<S = Value>(pub(crate) Invoke<S>);

crate::debug::debug_parts!([S] Streaming<S>, "Streaming", this => { run: this.0 });

impl<S> Streaming<S> {
    run_options!(self => self.0.run.options.given);
    stream_options!(self => self.0.run.options.given);
    beside_options!(self => self.0.run.options);

    /// The run with its events; `updates` are shown if nothing else was asked for.
    fn events(self) -> RunEvents {
        let mut run = self.0.run;
        let given = &mut run.options.given;
        let modes = given.modes.take().unwrap_or_else(|| vec![Mode::Updates]);
        let modes = modes.into_iter().fold(Modes::default(), Modes::with);
        // A buffer of none is refused when the run starts; the channel could not even be made.
        let (sink, events) = Sink::new(modes, given.subgraphs, given.buffer.unwrap_or(BUFFER).max(1));
        let id = given.run_id.get_or_insert_with(RunId::random).clone();
        let shown = run.graph.plan.shown.clone();
        RunEvents::new(id, Box::pin(run.run_with(Some(sink), shown)), events)
    }
}

impl<S: Form> Streaming<S> {
    /// Starts the run; it goes on as its events are read. `updates` are shown if nothing else was asked for.
    pub fn start(self) -> EventStream<S> {
        let graph = self.0.run.graph.plan.name.clone();
        EventStream::new(self.events(), graph)
    }

    /// Starts the run as a task of its own: it goes on when nobody watches.
    ///
    /// Its events are kept, numbered, until nobody holds a handle or watches any more. Without a runtime of tokio around,
    /// the run fails at once.
    ///
    /// ```
    /// use superstep::{AgentState, EchoAgent, Message, StateGraph, START};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
    /// let run = app.stream(AgentState { messages: vec![Message::user("hi")] }).spawn();
    /// let first = run.watch(0).next().await.expect("the node wrote something");
    /// assert_eq!((first.sequence, &first.run), (1, run.id()));
    /// assert_eq!(run.join().await?.state.messages.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn(mut self) -> RunHandle<S> {
        let cancel = self.0.run.options.cancel.take().map_or_else(CancellationToken::new, |outer| outer.child_token());
        self.0.run.options.cancel = Some(cancel.clone());
        let graph = self.0.run.graph.plan.name.clone();
        RunHandle::spawn(self.events(), cancel, graph)
    }

    /// Reads all events on this thread, in a runtime of its own.
    ///
    /// # Errors
    /// The first error, after the events before it were handed over.
    pub fn blocking(self, mut each: impl FnMut(Event)) -> Result<(), Error> {
        crate::blocking::block_on(async move {
            let mut events = self.start();
            while let Some(event) = events.next().await {
                each(event?);
            }
            Ok(())
        })
    }
}

impl Options {
    fn shared(&mut self, graph: &GraphCore, sink: Option<Sink>) -> Result<Arc<RunShared>, Error> {
        if let Some(why) = self.refused {
            return Err(Error::invalid(why));
        }
        self.settle_place();
        self.settle_context(graph)?;
        if self.given.recursion_limit == Some(0) {
            return Err(Error::invalid("a recursion limit must be at least 1"));
        }
        if self.given.thread.as_deref() == Some("") {
            return Err(Error::invalid("a thread needs a name: `.thread(\"..\")` with at least one character"));
        }
        if sink.is_some() && self.given.buffer == Some(0) {
            return Err(Error::invalid("`buffer` must be at least 1"));
        }
        if self.given.max_concurrency == Some(0) {
            return Err(Error::invalid("`max_concurrency` must be at least 1"));
        }
        let checkpointer = match &graph.persistence {
            Persistence::In(checkpointer) => Some(checkpointer.clone()),
            Persistence::Own => {
                return Err(Error::invalid(
                    "a `persistent` graph keeps its history in a parent's checkpointer; run it inside one",
                ));
            }
            Persistence::Inherit | Persistence::Never => None,
        };
        if checkpointer.is_some() && self.given.thread.is_none() {
            return Err(Error::invalid("the graph has a checkpointer, so a run needs a thread: `.thread(\"..\")`"));
        }
        if checkpointer.is_none() && self.given.durability.is_some() {
            tracing::warn!(graph = &*graph.plan.name, "`durability` has no effect: the graph has no checkpointer");
        }
        if (self.given.checkpoint.is_some() || self.given.at.is_some()) && checkpointer.is_none() {
            return Err(Error::invalid("a checkpoint was named, but the graph has no checkpointer"));
        }
        for (key, value) in self.given.metadata.iter().filter(|_| checkpointer.is_some()) {
            check_levels(value).map_err(|why| Error::invalid(format!("metadata `{key}` cannot be saved: {why}")))?;
        }
        Ok(Arc::new(RunShared {
            thread: self.given.thread.as_deref().map(Into::into),
            run_id: self.given.run_id.take().map_or_else(OnceLock::new, OnceLock::from),
            epoch: OnceLock::new(),
            ids: OnceLock::new(),
            contexts: std::mem::take(&mut self.contexts),
            store: graph.store.clone(),
            cache: graph.cache.clone(),
            control: self.control.take().map_or_else(OnceLock::new, OnceLock::from),
            cancel: Cancel::new(self.cancel.take()),
            recursion_limit: self.given.recursion_limit.unwrap_or(DEFAULT_LIMIT),
            run_name: self.given.run_name.take().map(Into::into),
            durability: self.given.durability.unwrap_or_default(),
            checkpointer,
            sink,
            max_concurrency: self.given.max_concurrency,
            metadata: std::mem::take(&mut self.given.metadata).into(),
            tags: std::mem::take(&mut self.given.tags).into(),
            seen_messages: Mutex::default(),
        }))
    }

    /// Works out which thread and checkpoint of the root a place in a subgraph means.
    fn settle_place(&mut self) {
        if let Some(at) = &mut self.given.at {
            at.parents.insert(at.namespace.clone(), at.id);
            self.given.thread = Some(at.thread.clone());
            self.given.checkpoint = at.parents.get("").copied();
        }
    }

    /// Reads the context that was given as JSON.
    fn settle_context(&mut self, graph: &GraphCore) -> Result<(), Error> {
        let Some(value) = self.given.context.take() else { return Ok(()) };
        let Some(context) = &graph.context else {
            return Err(Error::invalid(
                "the graph takes no context from JSON; say of which type it is with `context_schema` when it is built",
            ));
        };
        let context = (context.read)(&value).map_err(|why| Error::invalid(format!("the context: {why}")))?;
        self.contexts.push(context);
        Ok(())
    }

    /// The checkpoint inside a subgraph that the run starts at must exist: it is asked for only when the run
    /// comes there, and not at all by a subgraph that starts anew.
    async fn check_place(&self, shared: &RunShared) -> Result<(), Error> {
        let (Some(at), Some(checkpointer), Some(thread)) = (&self.given.at, &shared.checkpointer, &shared.thread)
        else {
            return Ok(());
        };
        let (namespace, id) = (&at.namespace, at.id);
        if !namespace.is_empty() && checkpointer.get(thread, namespace, Some(id)).await?.is_none() {
            return Err(Error::invalid(format!("thread `{thread}` has no checkpoint {id}")));
        }
        Ok(())
    }

    fn config(&mut self, graph: &GraphCore, output: Fields, level: usize) -> Result<LoopConfig, Error> {
        let stop_at =
            |list: &Option<Vec<String>>, what: &str| list.as_ref().map(|l| graph.stop_at(l, what)).transpose();
        let ancestors = self.given.at.take().map(|at| at.parents).unwrap_or_default();
        Ok(LoopConfig {
            namespace: String::new(),
            checkpoint: self.given.checkpoint,
            ancestors: ancestors.into(),
            nested: false,
            level,
            resuming: None,
            replay: None,
            null_resume: None,
            resume_map: None,
            stop_before: stop_at(&self.given.interrupt_before, "interrupt_before")?,
            stop_after: stop_at(&self.given.interrupt_after, "interrupt_after")?,
            output,
            around: None,
            own_history: false,
        })
    }
}

/// The way to the checkpointer, if the run is saved.
fn saver_of(graph: &GraphCore, shared: &RunShared) -> Option<Saver> {
    let (checkpointer, thread) = (shared.checkpointer.clone()?, shared.thread.clone()?);
    let (run, ids) = (shared.run_id().shared(), shared.ids().clone());
    if !graph.plan.ty.can_persist() {
        return None;
    }
    Some(Saver::new(checkpointer, thread, "", shared.durability, ids, Some(run)))
}

impl GraphCore {
    fn chosen_output(&self, chosen: Option<&[String]>, default: Fields) -> Result<Fields, Error> {
        let Some(names) = chosen else { return Ok(default) };
        let place = |name: &String| {
            let unknown = || Error::invalid(format!("`output_keys` names unknown field `{name}`"));
            self.plan.field_named(name).ok_or_else(unknown)
        };
        let fields: Vec<usize> = names.iter().map(place).collect::<Result<_, _>>()?;
        match fields.iter().map(|field| &self.plan.fields()[*field]).find(|field| field.is_internal()) {
            None => Ok(Fields::many(fields)),
            Some(field) => {
                let name = field.name();
                Err(Error::invalid(format!("`output_keys` names `{name}`, but `{name}` is internal to the graph")))
            }
        }
    }

    fn stop_at(&self, names: &[String], what: &str) -> Result<StopAt, Error> {
        if names.is_empty() {
            return Ok(StopAt::Nowhere);
        }
        if names.iter().any(|n| n == "*") {
            return Ok(StopAt::Everywhere);
        }
        let here: Vec<NodeIx> =
            names.iter().filter_map(|name| self.stop_here(name, what).transpose()).collect::<Result<_, _>>()?;
        Ok(if here.is_empty() { StopAt::Nowhere } else { StopAt::Nodes(here) })
    }

    /// The node of this name, if it is one of this graph itself. The stops of a run are those of its own graph alone.
    fn stop_here(&self, name: &str, what: &str) -> Result<Option<NodeIx>, Error> {
        let here = self.plan.node(name);
        if here.is_none() {
            if !self.plan.nodes.iter().any(|node| node.run.nodes_inside.iter().any(|inside| **inside == *name)) {
                return Err(Error::invalid(format!("`{what}` names unknown node `{name}`")));
            }
            tracing::warn!(
                node = name,
                "`{what}` of a run names a node of a graph inside, where the run does not stop; say it when that graph is built"
            );
        }
        Ok(here)
    }
}
