//! What a running task knows and can ask for.
//!
//! A context is made only for nodes that ask for one: the plain path of a step allocates
//! nothing for it.

mod answering;
mod given;
mod place;
mod push;
mod slot;
mod scope;
mod waiting;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{CallHost, Interrupted, NodeError, Pulse, Why};
use crate::cache::Cache;
use crate::checkpoint::{Ancestors, Checkpointer, Durability, Epoch, Metadata};
use crate::error::{BoxError, Error};
use crate::id::{CheckpointId, IdSource, RunId, TaskId};
use crate::message::{Message, MessageChunk};
use crate::state::erased::Writes;
use crate::store::Store;
use crate::stream::{EventData, MessageEvent, Mode, RawEvent, Sink, TaskMetadata, ToolEvent};
pub(crate) use answering::{Answering, Answers, scoped_namespace};
pub(crate) use given::{ContextType, GivenContext};
pub(crate) use place::{PUSH, Place, with_node_metadata};
pub(crate) use push::{PushedMessage, with_pushed};
pub(crate) use scope::Scope;
pub(crate) use slot::Slot;
pub(crate) use waiting::{Waiter, Waiting};

/// The surroundings of a running node: questions to humans, events, store, cancellation, subgraphs.
///
/// Take it as an argument after the state; it is cheap to clone and may be moved into helpers.
///
/// ```
/// use superstep::{AgentState, Context};
/// use serde_json::json;
///
/// async fn work(_: AgentState, cx: Context) {
///     cx.emit(json!({ "progress": 0.5 })).await;
///     println!("step {} of node {} attempt {}", cx.step(), cx.node(), cx.attempt());
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    pub(crate) task: Arc<TaskContext>,
    pub(crate) scope: Option<Arc<Scope>>,
}

/// What all tasks of a run share, its subgraphs included.
pub(crate) struct RunShared {
    pub(crate) thread: Option<Arc<str>>,
    pub(crate) run_name: Option<Arc<str>>,
    /// Made when it is needed, unless the caller gave one.
    pub(crate) run_id: OnceLock<RunId>,
    /// The claim of the thread, for the graphs inside too.
    pub(crate) epoch: OnceLock<Epoch>,
    /// Makes the ids of checkpoints, for the graphs inside too.
    pub(crate) ids: OnceLock<Arc<IdSource>>,
    pub(crate) contexts: Vec<GivenContext>,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) cache: Option<Arc<dyn Cache>>,
    /// Made when someone asks for it, unless the caller gave one.
    pub(crate) control: OnceLock<RunControl>,
    pub(crate) cancel: Cancel,
    pub(crate) recursion_limit: usize,
    pub(crate) durability: Durability,
    pub(crate) checkpointer: Option<Arc<dyn Checkpointer>>,
    pub(crate) sink: Option<Sink>,
    /// The most tasks of one graph, and calls inside them, that run at once.
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Box<[String]>,
    pub(crate) seen_messages: Mutex<HashSet<String>>,
}

impl RunShared {
    /// What code shares that is called while no run is under way.
    pub(crate) fn of_no_run(
        thread: Arc<str>,
        store: Option<Arc<dyn Store>>,
        cache: Option<Arc<dyn Cache>>,
        recursion_limit: usize,
    ) -> Self {
        Self {
            thread: Some(thread),
            run_name: None,
            run_id: OnceLock::new(),
            epoch: OnceLock::new(),
            ids: OnceLock::new(),
            contexts: Vec::new(),
            store,
            cache,
            control: OnceLock::new(),
            cancel: Cancel::new(None),
            recursion_limit,
            durability: Durability::default(),
            checkpointer: None,
            sink: None,
            max_concurrency: None,
            metadata: Metadata::default(),
            tags: Vec::new().into(),
            seen_messages: Mutex::default(),
        }
    }

    /// Made when the first id is needed: most runs that nobody saves need none.
    pub(crate) fn ids(&self) -> &Arc<IdSource> {
        self.ids.get_or_init(|| Arc::new(IdSource::new()))
    }

    /// The name of the run.
    pub(crate) fn run_id(&self) -> &RunId {
        self.run_id.get_or_init(RunId::random)
    }

    /// Whether somebody waits for what is sent by code that may have no context.
    pub(crate) fn is_heard(&self) -> bool {
        self.hears(Mode::Messages) || self.hears(Mode::Tools)
    }

    /// Whether somebody waits for events of a mode.
    pub(crate) fn hears(&self, mode: Mode) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.wants(mode))
    }

    /// The tags as spans show them.
    pub(crate) fn tags_text(&self) -> Option<String> {
        (!self.tags.is_empty()).then(|| self.tags.join(","))
    }

    /// Whether the words of models and the calls of tools are kept out of the stream.
    fn is_muted(&self) -> bool {
        self.tags.iter().any(|tag| tag == "nostream")
    }

    /// Tells of contexts that nobody asked for: most likely another type was meant.
    pub(crate) fn warn_of_untaken(&self, graph: &str) {
        for given in self.contexts.iter().filter(|given| !given.was_taken()) {
            let context = given.type_name;
            tracing::warn!(graph, context, "the run was given a context that nobody asked for by this type");
        }
    }

    /// Why the run was asked to stop, if it was.
    pub(crate) fn drain_reason(&self) -> Option<&str> {
        self.control.get()?.drain.get().map(String::as_str)
    }
}

/// The end of a run before its end. Most runs need no token of their own: it is made when someone waits for it.
pub(crate) struct Cancel {
    outer: Option<CancellationToken>,
    own: OnceLock<CancellationToken>,
}

impl Cancel {
    /// Cancelled together with `outer`.
    pub(crate) fn new(outer: Option<CancellationToken>) -> Self {
        Self { outer, own: OnceLock::new() }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        let new = || self.outer.as_ref().map(CancellationToken::child_token).unwrap_or_default();
        self.own.get_or_init(new)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.own.get().or(self.outer.as_ref()).is_some_and(CancellationToken::is_cancelled)
    }
}

/// Cancels what a run has left behind when it ends or is dropped.
pub(crate) struct CancelOnDrop(pub(crate) Arc<RunShared>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(token) = self.0.cancel.own.get() {
            token.cancel();
        }
    }
}

pub(crate) struct TaskContext {
    pub(crate) run: Arc<RunShared>,
    /// The store of its graph, if the run has none.
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) node: Arc<str>,
    pub(crate) place: Place,
    pub(crate) id: TaskId,
    /// `node:id` under the namespace of the graph.
    pub(crate) namespace: String,
    /// How deep the graph of the task is inside others: 1 if it is in none.
    pub(crate) level: usize,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    pub(crate) attempt: AtomicU32,
    pub(crate) answers: Mutex<Answering>,
    pub(crate) null_resume: Arc<NullResume>,
    pub(crate) resume_map: Option<Arc<BTreeMap<String, Value>>>,
    pub(crate) ancestors: Ancestors,
    pub(crate) resuming: Mutex<Option<bool>>,
    pub(crate) replay: Option<Arc<ReplayState>>,
    pub(crate) failure: Option<NodeError>,
    pub(crate) pulse: Option<Arc<Pulse>>,
    /// Its slot, if the run limits how many tasks run at once.
    pub(crate) slot: Option<Arc<Slot>>,
    pub(crate) calls: Option<Arc<dyn CallHost>>,
    pub(crate) previous: Option<Value>,
    pub(crate) cancel: CancellationToken,
    /// The task around its graph, if the graph is inside one.
    pub(crate) around: Option<Arc<TaskContext>>,
    pub(crate) waiting: Waiting,
    /// The messages that it pushed in this attempt, as writes of its graph's state.
    pub(crate) pushed: Mutex<Writes>,
    /// What was said about the run and the nodes, once somebody asked.
    pub(crate) metadata: OnceLock<Metadata>,
    /// What is shown beside its messages, once there is one.
    pub(crate) shown: OnceLock<Arc<TaskMetadata>>,
}

/// The answer that a caller gave without saying for whom; the first question takes it.
#[derive(Default)]
pub(crate) struct NullResume {
    own: Option<Mutex<Option<Value>>>,
    parent: Option<Arc<NullResume>>,
}

impl NullResume {
    pub(crate) fn new(own: Option<Value>, parent: Option<Arc<NullResume>>) -> Self {
        Self { own: own.map(|v| Mutex::new(Some(v))), parent }
    }

    pub(crate) fn take(&self) -> Option<Value> {
        match (&self.own, &self.parent) {
            (Some(own), _) => lock(own).take(),
            (None, Some(parent)) => parent.take(),
            (None, None) => None,
        }
        .filter(|v| !v.is_null())
    }
}

/// Which subgraphs have already gone back to before the point that a replay starts from.
pub(crate) struct ReplayState {
    pub(crate) before: CheckpointId,
    visited: Mutex<HashSet<String>>,
}

impl ReplayState {
    pub(crate) fn new(before: CheckpointId) -> Self {
        Self { before, visited: Mutex::default() }
    }

    /// Whether this is the first visit of a subgraph, told by its namespace without the last task id.
    pub(crate) fn first_visit(&self, namespace: &str) -> bool {
        let stable = namespace.rsplit_once(':').map_or(namespace, |(head, _)| head);
        lock(&self.visited).insert(stable.to_owned())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TaskContext {
    /// Makes ready for another attempt: questions count from the first again.
    pub(crate) fn begin_attempt(&self, attempt: u32) {
        self.attempt.store(attempt, Ordering::Relaxed);
        lock(&self.answers).begin_attempt();
        lock(&self.pushed).clear();
    }

    pub(crate) fn touch(&self) {
        if let Some(pulse) = &self.pulse {
            pulse.sign_of_life();
        }
    }
}

impl Context {
    /// Asks a human: ends the node with the question, or gives the answer if there is one.
    ///
    /// The node is run again from its first line when the answer comes, so what it did before
    /// asking happens again. Several questions in one node are answered one after another, in
    /// order, and then those of its [paths](crate::IntoPath). The run needs a checkpointer to be resumed.
    ///
    /// The answer is read as the type that you ask for, so say it: `let go: bool = ..`, or `cx.interrupt::<bool>(..)`.
    ///
    /// ```
    /// use superstep::{AgentState, Context, Interrupted};
    ///
    /// async fn approve(_: AgentState, cx: Context) -> Result<(), Interrupted> {
    ///     let go: bool = cx.interrupt("shall I?")?;
    ///     if go { println!("going"); }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Interrupted`] while there is no answer, or if the answer is not a `T`: pass it on with `?`.
    pub fn interrupt<T: DeserializeOwned>(&self, question: impl Serialize) -> Result<T, Interrupted> {
        self.interrupt_checked(question, |_| Ok(()))
    }

    /// Asks a human, like [`interrupt`](Context::interrupt), and looks at the answer: one that `check` refuses counts as
    /// not given. The run fails with the reason, and the question stays open.
    ///
    /// ```
    /// use superstep::{AgentState, Context, Interrupted};
    ///
    /// async fn rate(_: AgentState, cx: Context) -> Result<(), Interrupted> {
    ///     let in_range = |stars: &u8| if *stars <= 5 { Ok(()) } else { Err("there are five stars".to_owned()) };
    ///     let stars: u8 = cx.interrupt_checked("how many stars?", in_range)?;
    ///     println!("{stars} stars");
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Interrupted`] while there is no answer, or if it does not fit: pass it on with `?`.
    pub fn interrupt_checked<T: DeserializeOwned>(
        &self,
        question: impl Serialize,
        check: impl FnOnce(&T) -> Result<(), String>,
    ) -> Result<T, Interrupted> {
        let question =
            serde_json::to_value(question).map_err(|e| Interrupted { why: Why::BadQuestion(e.to_string()) })?;
        self.task.touch();
        let mut answers = lock(&self.task.answers);
        let given = match &self.scope {
            Some(scope) => answers.ask_in(scope, question, &self.task),
            None => answers.ask(question, &self.task),
        };
        let Some(given) = given else { return Err(Interrupted { why: Why::Asked }) };
        let answer = T::deserialize(&given).map_err(|error| error.to_string());
        answer.and_then(|answer| check(&answer).map(|()| answer)).map_err(|why| {
            answers.take_back(self.scope.as_deref());
            Interrupted { why: Why::BadAnswer(why) }
        })
    }

    /// Sends an event to whoever streams the run in `custom` mode; waits while their buffer is full.
    pub async fn emit(&self, value: impl Serialize) {
        self.task.touch();
        let Some(sink) = self.sink(Mode::Custom) else { return };
        match serde_json::to_value(value) {
            Ok(value) => self.send(sink, self.task.outer_namespace(), Mode::Custom, EventData::Custom(value)).await,
            Err(error) => tracing::warn!(node = &*self.task.node, %error, "an event cannot be encoded and is not sent"),
        }
    }

    /// Sends a message, or a piece of one, to whoever streams the run in `messages` mode.
    pub async fn emit_message(&self, message: Message) {
        self.say(message, None).await;
    }

    /// Sends a piece of a message to whoever streams the run in `messages` mode.
    ///
    /// The message itself is not shown again if it has the id of its pieces.
    pub async fn emit_chunk(&self, chunk: MessageChunk) {
        let piece = Message::assistant(chunk.words()).with_id(&*chunk.id);
        let piece = chunk.name.iter().fold(piece, |piece, name| piece.with_name(name));
        self.say(piece, Some(chunk)).await;
    }

    /// Sends what happens to a call of a tool to whoever streams the run in `tools` mode.
    ///
    /// Agents and tool nodes do so by themselves; this is for those who call tools in another way.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::{AgentState, Context, ToolEvent};
    ///
    /// async fn search(_: AgentState, cx: Context) {
    ///     cx.emit_tool(ToolEvent::started("c1", "search", Some(json!({ "q": "tea" })))).await;
    ///     cx.emit_tool(ToolEvent::delta("c1", "three of ")).await;
    ///     cx.emit_tool(ToolEvent::finished("c1", "three of five")).await;
    /// }
    /// # let _ = superstep::StateGraph::<AgentState>::new().add_node("search", search);
    /// ```
    pub async fn emit_tool(&self, event: ToolEvent) {
        self.task.touch();
        if self.task.run.is_muted() {
            return;
        }
        let Some(sink) = self.sink(Mode::Tools) else { return };
        self.send(sink, self.task.graph_namespace(), Mode::Tools, EventData::Tool(event)).await;
    }

    /// Whether somebody streams the run in `tools` mode: if not, there is no need to make such events.
    pub fn wants_tools(&self) -> bool {
        self.sink(Mode::Tools).is_some() && !self.task.run.is_muted()
    }

    async fn say(&self, message: Message, chunk: Option<MessageChunk>) {
        if !self.task.run.is_muted() {
            self.show(message, chunk, None).await;
        }
    }

    async fn show(&self, message: Message, chunk: Option<MessageChunk>, whole: Option<Value>) {
        self.task.touch();
        let Some(sink) = self.sink(Mode::Messages) else { return };
        if let Some(id) = &message.id {
            lock(&self.task.run.seen_messages).insert(id.clone());
        }
        let metadata = self.task.shown.get_or_init(|| Arc::new(self.task.described())).clone();
        let (node, step) = (self.task.node.to_string(), self.task.step);
        let said = MessageEvent { message, chunk, whole, node, step, metadata };
        self.send(sink, self.task.graph_namespace(), Mode::Messages, EventData::Message(said)).await;
    }

    async fn send(&self, sink: &Sink, namespace: Vec<String>, mode: Mode, data: EventData) {
        sink.send(RawEvent::new(namespace, mode, self.task.step, data)).await;
    }

    /// Where events of a mode go, if somebody waits for those of the task's graph.
    fn sink(&self, mode: Mode) -> Option<&Sink> {
        let sink = self.task.run.sink.as_ref().filter(|sink| sink.wants(mode))?;
        (sink.subgraphs || self.task.is_of_root()).then_some(sink)
    }

    /// Whether somebody waits for what the code inside the task says: a reader of messages, or a limit on its silence.
    pub(crate) fn is_listened_to(&self) -> bool {
        self.task.pulse.is_some() || self.task.run.is_heard()
    }

    /// Tells that the node is alive: its idle timeout starts again.
    pub fn heartbeat(&self) {
        if let Some(pulse) = &self.task.pulse {
            pulse.heartbeat();
        }
    }

    /// The long-term store: that of the outermost graph, or of a graph inside if those around it have none.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.task.run.store.as_ref().or(self.task.store.as_ref())
    }

    /// What the caller gave the run, by type.
    pub fn context<T: std::any::Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.task.run.contexts.iter().find_map(GivenContext::take)
    }

    /// The node's name.
    pub fn node(&self) -> &str {
        &self.task.node
    }

    /// The step.
    pub fn step(&self) -> i64 {
        self.task.step
    }

    /// How many steps the recursion limit leaves, this one included.
    pub fn remaining_steps(&self) -> usize {
        (self.task.stop - self.task.step).max(0) as usize
    }

    /// Whether this is the last step that the recursion limit allows.
    pub fn is_last_step(&self) -> bool {
        self.task.step == self.task.stop - 1
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.task.attempt.load(Ordering::Relaxed)
    }

    /// The thread, if the run has one.
    pub fn thread(&self) -> Option<&str> {
        self.task.run.thread.as_deref()
    }

    /// Names the run: as its caller said, or else by a random UUID if it is saved; empty otherwise.
    pub fn run_id(&self) -> &str {
        self.task.run.run_id().as_str()
    }

    /// Names the task: the same work has the same id in every attempt and after a restart.
    pub fn task_id(&self) -> TaskId {
        self.task.id
    }

    /// A key for outside effects: the same for every attempt of the same work, different for all other work.
    ///
    /// Hand it to services that take idempotency keys, so that a retry or a resume has no second effect.
    pub fn idempotency_key(&self) -> String {
        let thread = self.thread().unwrap_or_default();
        let hash = xxhash_rust::xxh3::xxh3_128(format!("{thread}\0{}", self.task.namespace).as_bytes());
        format!("{hash:032x}")
    }

    /// What the caller said about the run, and over it what the graph said about the node, and those around it about
    /// the nodes that they are in.
    ///
    /// ```
    /// use superstep::{AgentState, Context, NodeOptions, StateGraph, START};
    ///
    /// async fn node(_: AgentState, cx: Context) {
    ///     assert_eq!((&cx.metadata()["user"], &cx.metadata()["team"]), (&"ada".into(), &"verse".into()));
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::<AgentState>::new()
    ///     .add_node_with("poet", node, NodeOptions::new().metadata("team", "verse"))
    ///     .add_edge(START, "poet")
    ///     .compile()?;
    /// app.invoke(()).metadata("user", "ada").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn metadata(&self) -> &BTreeMap<String, Value> {
        self.task.metadata()
    }

    /// The tags of the run.
    pub fn tags(&self) -> &[String] {
        &self.task.run.tags
    }

    /// Cancelled when the run is: hand it to what the node starts.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.task.cancel
    }

    /// The run's control: ask it to stop at the next checkpoint.
    pub fn control(&self) -> &RunControl {
        self.task.run.control.get_or_init(RunControl::new)
    }

    /// What the entrypoint saved in the run before, for workflows made of functions.
    ///
    /// # Errors
    /// If it is not a `T`.
    pub fn previous<T: DeserializeOwned>(&self) -> Result<Option<T>, BoxError> {
        Ok(self.task.previous.as_ref().map(T::deserialize).transpose()?)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("node", &self.task.node).field("step", &self.task.step).finish_non_exhaustive()
    }
}

/// Asks a run to stop at the next checkpoint, from outside or from within.
///
/// ```
/// use superstep::{AgentState, Context, ErrorKind, RunControl, StateGraph};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// async fn first(_: AgentState, cx: Context) { cx.control().request_drain("deploy"); }
/// async fn second(_: AgentState) {}
/// let app = StateGraph::<AgentState>::new().add_node("first", first).add_node("second", second)
///     .add_sequence(["first", "second"]).compile()?;
/// let error = app.invoke(()).control(RunControl::new()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Drained);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunControl {
    drain: Arc<OnceLock<String>>,
}

impl RunControl {
    /// A control of no run yet; give it to one with `control`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the step that runs now finish and be saved, and starts no other.
    pub fn request_drain(&self, reason: impl Into<String>) {
        self.drain.get_or_init(|| reason.into());
    }

    /// Why the run was asked to stop, if it was.
    pub fn drain_reason(&self) -> Option<String> {
        self.drain.get().cloned()
    }
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Self {
        Error::invalid(interrupted.to_string())
    }
}
