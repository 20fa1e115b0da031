//! Starting runs: what to run on, on which thread, with what around it.

mod events;
mod output;

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use events::EventStream;
pub use output::Output;

use crate::call::{Cancel, CancelOnDrop, GivenContext, Resume, RunControl, RunShared};
use crate::checkpoint::Durability;
use crate::engine::{DEFAULT_LIMIT, Ended, LoopConfig, RunInput, Running, Saver};
use crate::error::{Error, ErrorKind};
use crate::graph::{CompiledStateGraph, GraphCore, Persistence, level_below};
use crate::id::{CheckpointId, RunId};
use crate::index::NodeIx;
use crate::node::Command;
use crate::plan::StopAt;
use crate::state::erased::AnyUpdate;
use crate::state::{IntoUpdate, State};
use crate::stream::{Event, Mode, Modes, RunEvents, Sink};
use crate::value::check_levels;
use crate::view::{Fields, RunEnd};
use crate::wall::{Walled, boxed, caught};

/// What a run can start with: a state or update, a [`Command`], a [`Resume`], or [`GoOn`]. A workflow made of functions runs
/// on any value that serde can write instead of an update.
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, Command, GoOn, IntoInput, Resume};
/// fn is_input<M>(_: impl IntoInput<AgentState, M>) {}
/// is_input(AgentState::default());
/// is_input(AgentStateUpdate::default());
/// is_input(Command::<AgentState>::new().goto("somewhere"));
/// is_input(Resume::value("yes"));
/// is_input(GoOn);
/// ```
#[diagnostic::on_unimplemented(
    message = "a graph over `{S}` cannot be run on `{Self}`",
    note = "run it on the state, an update of it, a `Command<{S}>`, a `Resume`, or `GoOn`; a workflow on a value"
)]
pub trait IntoInput<S: State, Marker> {
    /// Turns it into an input.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn into_input(self) -> RunInput;
}

/// Resumes what is left to do on a thread.
///
/// ```
/// # use superstep::{AgentState, CompiledStateGraph, Error, GoOn, Output};
/// # async fn f(app: CompiledStateGraph<AgentState>) -> Result<Output<AgentState>, Error> {
/// app.invoke(GoOn).thread("t").await
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoOn;

/// Tells updates from the other inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct UpdateMarker;
/// Tells commands from the other inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct CommandMarker;

impl<S: State, U: IntoUpdate<S>> IntoInput<S, UpdateMarker> for U {
    #[allow(private_interfaces)]
    fn into_input(self) -> RunInput {
        if self.is_nothing() {
            return RunInput::Nothing;
        }
        let puts = self.into_update().into_puts();
        puts.map_or_else(RunInput::Refused, |puts| RunInput::Writes(AnyUpdate::of::<S>(puts)))
    }
}

impl<S: State> IntoInput<S, CommandMarker> for Command<S> {
    #[allow(private_interfaces)]
    fn into_input(self) -> RunInput {
        RunInput::Command(self.into())
    }
}

impl<S: State> IntoInput<S, CommandMarker> for Resume {
    #[allow(private_interfaces)]
    fn into_input(self) -> RunInput {
        RunInput::Command(Command::<S> { resume: Some(self), ..Command::new() }.into())
    }
}

impl<S: State> IntoInput<S, CommandMarker> for GoOn {
    #[allow(private_interfaces)]
    fn into_input(self) -> RunInput {
        RunInput::Nothing
    }
}

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
pub struct Invoke<S: State> {
    run: AnyInvoke,
    state: PhantomData<fn() -> S>,
}

crate::debug::debug_parts!([S: State] Invoke<S>, "Invoke", this => { graph: this.run.graph.plan.name, thread: this.run.options.thread });

/// The same without the type of the state.
pub(crate) struct AnyInvoke {
    graph: GraphCore,
    input: RunInput,
    options: Options,
}

/// What a caller may say about a run.
pub(crate) struct Options {
    thread: Option<Arc<str>>,
    checkpoint: Option<CheckpointId>,
    namespace: Option<(String, BTreeMap<String, CheckpointId>)>,
    recursion_limit: usize,
    durability: Option<Durability>,
    stop_before: Option<Vec<String>>,
    stop_after: Option<Vec<String>>,
    output: Option<Vec<String>>,
    contexts: Vec<GivenContext>,
    control: Option<RunControl>,
    cancel: Option<CancellationToken>,
    max_concurrency: Option<usize>,
    metadata: BTreeMap<String, Value>,
    tags: Vec<String>,
    run_id: Option<RunId>,
    /// What is shown, if that was said.
    modes: Option<Modes>,
    subgraphs: bool,
    buffer: usize,
    /// Why the run cannot be started at all.
    refused: Option<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            thread: None,
            checkpoint: None,
            namespace: None,
            recursion_limit: DEFAULT_LIMIT,
            durability: None,
            stop_before: None,
            stop_after: None,
            output: None,
            contexts: Vec::new(),
            control: None,
            cancel: None,
            max_concurrency: None,
            metadata: BTreeMap::new(),
            tags: Vec::new(),
            run_id: None,
            modes: None,
            subgraphs: false,
            buffer: 64,
            refused: None,
        }
    }
}

impl<S: State> CompiledStateGraph<S> {
    /// Runs the graph on an input; await the result.
    pub fn invoke<M>(&self, input: impl IntoInput<S, M>) -> Invoke<S> {
        self.invoke_raw(input.into_input())
    }

    /// Runs the graph on an input and shows what happens.
    pub fn stream<M>(&self, input: impl IntoInput<S, M>) -> Streaming<S> {
        Streaming(self.invoke(input))
    }

    pub(crate) fn stream_raw(&self, input: RunInput) -> Streaming<S> {
        Streaming(self.invoke_raw(input))
    }

    pub(crate) fn invoke_raw(&self, input: RunInput) -> Invoke<S> {
        let run = AnyInvoke { graph: self.core.clone(), input, options: Options::default() };
        Invoke { run, state: PhantomData }
    }
}

macro_rules! run_options {
    ($self:ident => $options:expr) => {
        /// The thread to run on; needed with a checkpointer.
        pub fn thread(mut $self, thread: impl Into<String>) -> Self {
            $options.thread = Some(thread.into().into());
            $self
        }

        /// Starts from this checkpoint of the thread instead of the latest.
        pub fn checkpoint(mut $self, checkpoint: CheckpointId) -> Self {
            $options.checkpoint = Some(checkpoint);
            $self
        }

        /// Starts with a subgraph at one of its checkpoints, as a snapshot of it says.
        pub fn at(mut $self, at: &crate::CheckpointRef) -> Self {
            $options.thread = Some(at.thread.as_str().into());
            let mut map = at.parents.clone();
            map.insert(at.namespace.clone(), at.id);
            $options.checkpoint = map.get("").copied();
            $options.namespace = Some((at.namespace.clone(), map));
            $self
        }

        /// The most steps that the run may take, 10,007 unless said otherwise. As in LangGraph the run must be over before
        /// the last of them: with new input, N steps need a limit of N + 1.
        pub fn recursion_limit(mut $self, limit: usize) -> Self {
            $options.recursion_limit = limit;
            $self
        }

        /// When steps are saved. Without a checkpointer nothing is, and a warning in the log says so.
        pub fn durability(mut $self, durability: Durability) -> Self {
            $options.durability = Some(durability);
            $self
        }

        /// Stops before these nodes, instead of where the graph says; `"*"` stands for all.
        ///
        /// It is about the graph that is run. A graph inside stops where it says itself
        /// ([`StateGraph::interrupt_before`](crate::StateGraph::interrupt_before)): names of its nodes are ignored with a warning.
        pub fn interrupt_before<N: Into<String>>(mut $self, nodes: impl IntoIterator<Item = N>) -> Self {
            $options.stop_before = Some(nodes.into_iter().map(Into::into).collect());
            $self
        }

        /// Stops after these nodes, instead of where the graph says; `"*"` stands for all.
        ///
        /// It is about the graph that is run. A graph inside stops where it says itself
        /// ([`StateGraph::interrupt_after`](crate::StateGraph::interrupt_after)): names of its nodes are ignored with a warning.
        pub fn interrupt_after<N: Into<String>>(mut $self, nodes: impl IntoIterator<Item = N>) -> Self {
            $options.stop_after = Some(nodes.into_iter().map(Into::into).collect());
            $self
        }

        /// The fields to show, instead of the graph's output.
        pub fn output_keys<N: Into<String>>(mut $self, fields: impl IntoIterator<Item = N>) -> Self {
            $options.output = Some(fields.into_iter().map(Into::into).collect());
            $self
        }

        /// Something that nodes may ask for by its type, as [`Runtime`](crate::Runtime); the last of a type counts.
        ///
        /// A node that asks for a type that was not given fails with an error that names what was. A context that nobody has
        /// asked for when the run comes to its end is named in a warning in the log.
        pub fn context<T: Any + Send + Sync>(mut $self, context: T) -> Self {
            $options.contexts.retain(|given| !given.is::<T>());
            $options.contexts.push(GivenContext::new(context));
            $self
        }

        /// A control that can ask the run to stop at the next checkpoint.
        pub fn control(mut $self, control: RunControl) -> Self {
            $options.control = Some(control);
            $self
        }

        /// Cancels the whole run, subgraphs included.
        pub fn cancellation(mut $self, token: CancellationToken) -> Self {
            $options.cancel = Some(token);
            $self
        }

        /// The most tasks that run at once: nodes, tasks that were sent, and calls of [`Task`](crate::Task)s inside them.
        ///
        /// It holds for each graph of the run by itself: a graph inside a node has as many places of its own. A task that
        /// waits while its own calls are under way gives its place to them and takes one again when they have ended, so no
        /// limit keeps a run from its end.
        pub fn max_concurrency(mut $self, tasks: usize) -> Self {
            $options.max_concurrency = Some(tasks);
            $self
        }

        /// Says something about the run; kept in its checkpoints.
        pub fn metadata(mut $self, key: impl Into<String>, value: impl Into<Value>) -> Self {
            $options.metadata.insert(key.into(), value.into());
            $self
        }

        /// Marks the run: its tasks and streamed messages show the tag, and nodes can read it. With the tag `nostream`
        /// what models say and what happens to calls of tools is not streamed; what nodes return or push is.
        pub fn tag(self, tag: impl Into<String>) -> Self {
            self.tags([tag])
        }

        /// Marks the run with several tags more.
        pub fn tags<T: Into<String>>(mut $self, tags: impl IntoIterator<Item = T>) -> Self {
            for tag in tags.into_iter().map(Into::into) {
                if !$options.tags.contains(&tag) {
                    $options.tags.push(tag);
                }
            }
            $self
        }

        /// Names the run; one that nobody names gets a random id.
        pub fn run_id(mut $self, id: impl Into<RunId>) -> Self {
            $options.run_id = Some(id.into());
            $self
        }
    };
}

impl<S: State> Invoke<S> {
    run_options!(self => self.run.options);

    /// A run that ends before it starts, with these words.
    pub(crate) fn refused(mut self, why: &'static str) -> Self {
        self.run.options.refused = Some(why);
        self
    }

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
        let output = self.graph.chosen_output(self.options.output.as_deref(), output)?;
        let shared = self.options.shared(&self.graph, sink)?;
        if self.options.namespace.is_some() {
            boxed(|| self.options.check_place(&shared)).await?;
        }
        let _cancel_tree = CancelOnDrop(shared.clone());
        let (graph, thread, tags) = (&*self.graph.plan.name, shared.thread.as_deref(), shared.tags_text());
        let span = tracing::debug_span!("run", graph, thread, tags);
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
                Vec::new()
            }
            Ended::Paused(interrupts) => interrupts,
            Ended::Parent(_) => {
                return Err(Error::new(
                    ErrorKind::ParentCommand,
                    "a command for a parent graph reached the root graph",
                ));
            }
        };
        let (state, shown) = run.finish()?;
        Ok(RunEnd { state, shown, interrupts })
    }

    #[inline(never)]
    fn begin(mut self, shared: Arc<RunShared>, output: Fields, level: usize) -> Result<(Running, RunInput), Error> {
        let config = self.options.config(&self.graph, output, level)?;
        let saver = saver_of(&self.graph, &shared);
        Ok((Running::new(self.graph, shared, config, saver), self.input))
    }
}

impl<S: State> IntoFuture for Invoke<S> {
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
pub struct Streaming<S: State>(pub(crate) Invoke<S>);

crate::debug::debug_parts!([S: State] Streaming<S>, "Streaming", this => { run: this.0 });

impl<S: State> Streaming<S> {
    run_options!(self => self.0.run.options);

    /// Shows one more thing.
    pub fn mode(self, mode: Mode) -> Self {
        self.modes([mode])
    }

    /// Shows several things more; nothing at all if there is none.
    pub fn modes(mut self, modes: impl IntoIterator<Item = Mode>) -> Self {
        let known = self.0.run.options.modes.unwrap_or_default();
        self.0.run.options.modes = Some(modes.into_iter().fold(known, Modes::with));
        self
    }

    /// Shows events of subgraphs too.
    pub fn subgraphs(mut self) -> Self {
        self.0.run.options.subgraphs = true;
        self
    }

    /// How many events wait for a slow reader before the run waits too.
    pub fn buffer(mut self, events: usize) -> Self {
        self.0.run.options.buffer = events;
        self
    }

    /// Starts the run; it goes on as its events are read. `updates` are shown if nothing else was asked for.
    pub fn start(self) -> EventStream<S> {
        let mut invoke = self.0;
        let options = &mut invoke.run.options;
        let modes = options.modes.unwrap_or_else(|| Modes::default().with(Mode::Updates));
        // A buffer of none is refused when the run starts; the channel could not even be made.
        let (sink, events) = Sink::new(modes, options.subgraphs, options.buffer.max(1));
        let id = options.run_id.get_or_insert_with(RunId::random).clone();
        let shown = invoke.run.graph.plan.shown.clone();
        let graph = invoke.run.graph.plan.name.clone();
        EventStream::new(RunEvents::new(id, Box::pin(invoke.run.run_with(Some(sink), shown)), events), graph)
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
        if self.recursion_limit == 0 {
            return Err(Error::invalid("a recursion limit must be at least 1"));
        }
        if self.thread.as_deref() == Some("") {
            return Err(Error::invalid("a thread needs a name: `.thread(\"..\")` with at least one character"));
        }
        if sink.is_some() && self.buffer == 0 {
            return Err(Error::invalid("`buffer` must be at least 1"));
        }
        if self.max_concurrency == Some(0) {
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
        if checkpointer.is_some() && self.thread.is_none() {
            return Err(Error::invalid("the graph has a checkpointer, so a run needs a thread: `.thread(\"..\")`"));
        }
        if checkpointer.is_none() && self.durability.is_some() {
            tracing::warn!(graph = &*graph.plan.name, "`durability` has no effect: the graph has no checkpointer");
        }
        if (self.checkpoint.is_some() || self.namespace.is_some()) && checkpointer.is_none() {
            return Err(Error::invalid("a checkpoint was named, but the graph has no checkpointer"));
        }
        for (key, value) in self.metadata.iter().filter(|_| checkpointer.is_some()) {
            check_levels(value).map_err(|why| Error::invalid(format!("metadata `{key}` cannot be saved: {why}")))?;
        }
        Ok(Arc::new(RunShared {
            thread: self.thread.clone(),
            run_id: self.run_id.take().map_or_else(OnceLock::new, OnceLock::from),
            epoch: OnceLock::new(),
            ids: OnceLock::new(),
            contexts: std::mem::take(&mut self.contexts),
            store: graph.store.clone(),
            cache: graph.cache.clone(),
            control: self.control.take().map_or_else(OnceLock::new, OnceLock::from),
            cancel: Cancel::new(self.cancel.take()),
            recursion_limit: self.recursion_limit,
            durability: self.durability.unwrap_or_default(),
            checkpointer,
            sink,
            max_concurrency: self.max_concurrency,
            metadata: std::mem::take(&mut self.metadata).into(),
            tags: std::mem::take(&mut self.tags).into(),
            seen_messages: Mutex::default(),
        }))
    }

    /// The checkpoint inside a subgraph that the run starts at must exist: it is asked for only when the run
    /// comes there, and not at all by a subgraph that starts anew.
    async fn check_place(&self, shared: &RunShared) -> Result<(), Error> {
        let (Some((namespace, map)), Some(checkpointer), Some(thread)) =
            (&self.namespace, &shared.checkpointer, &shared.thread)
        else {
            return Ok(());
        };
        match map.get(namespace) {
            Some(id) if !namespace.is_empty() && checkpointer.get(thread, namespace, Some(*id)).await?.is_none() => {
                Err(Error::invalid(format!("thread `{thread}` has no checkpoint {id}")))
            }
            _ => Ok(()),
        }
    }

    fn config(&mut self, graph: &GraphCore, output: Fields, level: usize) -> Result<LoopConfig, Error> {
        let stop_at =
            |list: &Option<Vec<String>>, what: &str| list.as_ref().map(|l| graph.stop_at(l, what)).transpose();
        let (_, ancestors) = self.namespace.take().unwrap_or_default();
        Ok(LoopConfig {
            namespace: String::new(),
            checkpoint: self.checkpoint,
            ancestors: ancestors.into(),
            nested: false,
            level,
            resuming: None,
            replay: None,
            null_resume: None,
            resume_map: None,
            stop_before: stop_at(&self.stop_before, "interrupt_before")?,
            stop_after: stop_at(&self.stop_after, "interrupt_after")?,
            output,
            around: None,
            own_history: false,
        })
    }
}

/// The way to the checkpointer, if the run is saved.
fn saver_of(graph: &GraphCore, shared: &RunShared) -> Option<Saver> {
    let (checkpointer, thread) = (shared.checkpointer.clone()?, shared.thread.clone()?);
    let (texts, ids) = (&graph.plan.texts, shared.ids().clone());
    if !graph.plan.ty.can_persist() {
        return None;
    }
    Some(Saver::new(checkpointer, thread, "", shared.durability, ids, texts))
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
