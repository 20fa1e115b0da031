//! The loop of one run of one graph: begin, step, commit, until there is nothing left to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use smallvec::SmallVec;
use tracing::Instrument;

use super::apply::{Applied, apply_step};
use super::calls::{CallDesk, CallWrites};
use super::live::{Live, Start};
use super::save::{Pending, Saver};
use super::tasks::{self, Task, TaskPath};
use crate::cache::Cache;
use crate::call::{AnyCommand, NodeError, NullResume, ParentCommand, ReplayState, RunShared, TaskContext, lock};
use crate::checkpoint::{Ancestors, Durability, Interrupt, Source, TaskRecord};
use crate::error::{Error, ErrorKind, InvalidUpdate, TaskError};
use crate::id::{CheckpointId, name_key};
use crate::index::{ChannelIx, NodeIx};
use crate::plan::{GraphCore, Plan, StopAt};
use crate::state::erased::{AnyUpdate, Snapshot};
use crate::store::Store;
use crate::stream::{EventData, Mode};
use crate::view::{Fields, Shown, ShownState, View};
use crate::wall::{Drops, Panicked, Walled, boxed, caught};

/// The limit of steps of a run that sets none.
pub(crate) const DEFAULT_LIMIT: usize = 10_007;

/// How a graph is run: where its checkpoints are, and what its caller asked for.
pub(crate) struct LoopConfig {
    pub(crate) namespace: String,
    /// The checkpoint to start from.
    pub(crate) checkpoint: Option<CheckpointId>,
    /// The checkpoints of the graphs around this one, by namespace.
    pub(crate) ancestors: Ancestors,
    pub(crate) nested: bool,
    /// How deep it is inside others: 1 if it is in none.
    pub(crate) level: usize,
    /// What the graph around says: whether it resumes.
    pub(crate) resuming: Option<bool>,
    pub(crate) replay: Option<Arc<ReplayState>>,
    pub(crate) null_resume: Option<Arc<NullResume>>,
    pub(crate) resume_map: Option<Arc<BTreeMap<String, Value>>>,
    pub(crate) stop_before: Option<StopAt>,
    pub(crate) stop_after: Option<StopAt>,
    pub(crate) output: Fields,
    /// The task that the graph runs in, if it is inside another.
    pub(crate) around: Option<Arc<TaskContext>>,
    /// One history for all calls: saved even where `exit` saves nothing of subgraphs.
    pub(crate) own_history: bool,
}

/// A run from its beginning to its end. What it holds of its user is dropped piece by piece, behind a wall.
pub(crate) struct Running(Option<Box<Run>>);

impl Running {
    /// In a box, and made in a frame of its own: a run is large, and graphs inside graphs stand on top of each other.
    #[inline(never)]
    pub(crate) fn new(graph: GraphCore, shared: Arc<RunShared>, config: LoopConfig, saver: Option<Saver>) -> Self {
        Self(Some(Box::new(Run::new(graph, shared, config, saver))))
    }

    pub(crate) fn run(&mut self) -> &mut Run {
        self.0.as_mut().expect("a run is there until it is dropped")
    }

    /// The state at the end, and what of it is shown.
    pub(crate) fn finish(mut self) -> Result<(Snapshot, Shown), Error> {
        let graph = self.run().plan.name.clone();
        let finished = self.run().finish();
        match self.let_go() {
            Ok(()) => Ok(finished),
            Err(panicked) => Err(Error::run_panicked(&graph, "the end of a run", &panicked)),
        }
    }

    fn let_go(&mut self) -> Result<(), Panicked> {
        let run = self.0.take();
        caught(|| run.map_or((), |run| run.dismantle()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A run that failed has said why; one that nobody waits for has nobody to tell.
        if let Err(panicked) = self.let_go() {
            tracing::error!(%panicked, "what was left of a run panicked when it was dropped");
        }
    }
}

/// What a run starts with.
pub(crate) enum RunInput {
    Nothing,
    Writes(Option<AnyUpdate>),
    Value(Value),
    Unencodable(String),
    /// Something that is no update.
    Refused(InvalidUpdate),
    Command(AnyCommand),
}

/// How a run ended, if not with an error.
pub(crate) enum Ended {
    Done,
    /// It waits: for answers, or, without questions, because it was told to stop here.
    Paused(Vec<Interrupt>),
    /// A command for the graph around this one.
    Parent(ParentCommand),
}

pub(crate) struct Run {
    pub(super) plan: Arc<Plan>,
    pub(super) cache: Option<Arc<dyn Cache>>,
    /// The store of a graph inside, if the run has none.
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) debug: bool,
    pub(super) shared: Arc<RunShared>,
    pub(super) config: LoopConfig,
    pub(super) saver: Option<Saver>,
    pub(super) live: Live,
    pub(super) pending: Pending,
    pub(super) step: i64,
    pub(super) stop: i64,
    /// The checkpoint that the live state is at; made when it is needed.
    pub(super) checkpoint: Option<CheckpointId>,
    /// The last one that was saved.
    pub(super) saved: Option<CheckpointId>,
    /// The latest one of the namespace.
    pub(super) head: Option<CheckpointId>,
    pub(super) previous: Option<CheckpointId>,
    pub(super) source: Option<Source>,
    pub(super) tasks: Vec<Task>,
    pub(super) superseded: bool,
    pub(super) replaying: bool,
    /// Whether the shown fields were given out, and how they were if the state may differ by now.
    pub(super) shown: bool,
    pub(super) last_shown: Option<ShownState>,
    /// What tasks have to show that are saved with the checkpoint of the step: shown after it.
    pub(super) unshown: Vec<(Mode, EventData)>,
    pub(super) desk: Option<Arc<CallDesk>>,
    pub(super) previous_value: Option<Value>,
    /// What the step's only task wrote, to be saved with the checkpoint of the step.
    pub(super) unsaved: Option<TaskRecord>,
    pub(super) namespace_key: u64,
    /// The input, if only the end of the run is saved: it must not be lost with a state that cannot be.
    pub(super) input: Option<Start>,
    /// Writes were merged in part: the state cannot be saved.
    pub(super) is_torn: bool,
    /// For whom the engine is at work, to say if something panics.
    pub(super) at_work: AtWork,
}

/// For whom the engine is at work.
#[derive(Clone, Copy)]
pub(super) enum AtWork {
    /// The caller: a checkpoint is read, and the input taken.
    Begin,
    /// A node that runs, or what it gave back.
    Node(NodeIx),
    /// The step that has ended.
    Step,
}

impl Run {
    fn new(graph: GraphCore, shared: Arc<RunShared>, config: LoopConfig, saver: Option<Saver>) -> Self {
        let GraphCore { plan, cache, store, debug, .. } = graph;
        let around = config.around.as_ref().and_then(|task| task.store.clone());
        let store = around.or(store).filter(|_| shared.store.is_none());
        let namespace_key = name_key(&config.namespace);
        Self {
            live: Live::empty(&plan),
            plan,
            cache,
            store,
            debug,
            shared,
            config,
            saver,
            pending: Pending::default(),
            step: 0,
            stop: 0,
            checkpoint: None,
            saved: None,
            head: None,
            previous: None,
            source: None,
            tasks: Vec::new(),
            superseded: false,
            replaying: false,
            shown: false,
            last_shown: None,
            unshown: Vec::new(),
            desk: None,
            previous_value: None,
            unsaved: None,
            namespace_key,
            input: None,
            is_torn: false,
            at_work: AtWork::Begin,
        }
    }

    /// Runs to the end, to a pause or to an error; what must be saved is saved in every case.
    pub(crate) async fn drive(&mut self, input: RunInput) -> Result<Ended, Error> {
        let level = self.config.level;
        let result = match Walled::at_level(level, boxed(|| self.drive_inner(input))).await {
            Ok(result) => result,
            Err(panicked) => Err(self.panicked(&panicked)),
        };
        if self.saver.is_none() && matches!(result, Ok(Ended::Done)) {
            return result;
        }
        boxed(|| self.end(result)).await
    }

    /// Saves what must be saved, and shows the end.
    async fn end(&mut self, result: Result<Ended, Error>) -> Result<Ended, Error> {
        let paused_or_failed = !matches!(result, Ok(Ended::Done));
        let saved = if self.saves_at_exit() { self.save_end(paused_or_failed).await } else { Ok(()) };
        let flushed = match &mut self.saver {
            Some(saver) => saver.flush().await,
            None => Ok(()),
        };
        let ended = match result {
            Ok(ended) => ended,
            Err(error) => {
                for lost in [saved.err(), flushed.err().map(Error::from)].into_iter().flatten() {
                    tracing::warn!(error = %lost, "a run failed, and its end could not be saved");
                }
                return Err(error);
            }
        };
        saved?;
        flushed?;
        if let Ended::Paused(interrupts) = &ended
            && !self.config.nested
        {
            boxed(|| self.show_pause(interrupts)).await?;
        }
        Ok(ended)
    }

    /// The same for a graph inside a task, in the span that says where it is.
    pub(crate) async fn drive_inside(&mut self, input: RunInput, attempt: u32) -> Result<Ended, Error> {
        let (graph, thread, namespace) = (&*self.plan.name, self.shared.thread.as_deref(), &*self.config.namespace);
        let tags = self.shared.tags_text();
        let span = tracing::debug_span!("run", graph, thread, namespace, attempt, tags);
        boxed(|| self.drive(input)).instrument(span).await
    }

    async fn save_end(&mut self, paused_or_failed: bool) -> Result<(), Error> {
        match Walled::new(boxed(|| self.save_exit(paused_or_failed))).await {
            Ok(saved) => saved,
            Err(panicked) => Err(self.panicked(&panicked)),
        }
    }

    /// Code that the run was given panicked where no wall stands that would know more. What a node did is lost; if its
    /// writes were being merged, so is the state.
    #[cold]
    fn panicked(&mut self, panicked: &Panicked) -> Error {
        let is_whole = matches!(self.at_work, AtWork::Node(_)) && self.saves_at_exit();
        if !is_whole {
            self.is_torn = true;
            self.checkpoint = self.saved;
            self.pending.clear();
        }
        match self.at_work {
            AtWork::Begin => Error::run_panicked(&self.plan.name, "the beginning of a run", panicked),
            AtWork::Node(node) => Error::value_panicked(&self.plan.nodes[node].name, panicked).in_step(self.step),
            AtWork::Step => Error::run_panicked(&self.plan.name, &format!("the end of step {}", self.step), panicked),
        }
    }

    async fn load_and_begin(&mut self, input: RunInput) -> Result<(), Error> {
        self.load().await?;
        self.begin(input).await
    }

    async fn drive_inner(&mut self, input: RunInput) -> Result<Ended, Error> {
        boxed(|| self.load_and_begin(input)).await?;
        let plan = self.plan.clone();
        loop {
            if let Some(ended) = self.step(&plan).await? {
                return Ok(ended);
            }
            // Nodes may never wait: others on this thread must have their turn all the same.
            tokio::task::consume_budget().await;
        }
    }

    /// One step: choose, run, apply, save, show. What nobody wants is left out, but the way is always this one. Gives how
    /// the run ended, if it did.
    async fn step(&mut self, plan: &Plan) -> Result<Option<Ended>, Error> {
        self.at_work = AtWork::Step;
        self.choose(plan);
        if self.shows_checkpoints() {
            boxed(|| self.show_checkpoint()).await;
        }
        match self.decide()? {
            Tick::Go => {}
            Tick::Done => return Ok(Some(Ended::Done)),
            Tick::Paused => return Ok(Some(Ended::Paused(Vec::new()))),
        }
        if self.shows_starts() {
            boxed(|| self.show_starts()).await;
        }
        if self.shared.sink.is_some() && self.has_work() {
            boxed(|| self.give_reader_its_turn()).await;
        }
        if self.debug {
            self.log_step();
        }
        let span = self.step_span();
        match self.run_tasks(plan).instrument(span).await? {
            Ended::Done => {}
            other => return Ok(Some(other)),
        }
        self.at_work = AtWork::Step;
        let stops_here = self.stops_after();
        self.end_step(plan).await?;
        if stops_here && self.live.max_version > self.live.stop_seen {
            self.choose(plan);
            boxed(|| self.show_checkpoint()).await;
            return Ok(Some(Ended::Paused(Vec::new())));
        }
        self.config.resuming = None;
        Ok(None)
    }

    /// Whether a node of the step is to be run; the start is none.
    pub(super) fn has_work(&self) -> bool {
        self.tasks.iter().any(|task| !task.skip && !self.plan.nodes[task.node].hidden)
    }

    /// The span around the tasks of the step; none for the start, which nobody sees.
    fn step_span(&self) -> tracing::Span {
        match self.tasks.as_slice() {
            [task] if self.plan.nodes[task.node].hidden => tracing::Span::none(),
            tasks => tracing::debug_span!("step", step = self.step, tasks = tasks.len()),
        }
    }

    fn log_step(&self) {
        tracing::info!(graph = &*self.plan.name, step = self.step, tasks = self.tasks.len(), "step");
        for task in &self.tasks {
            tracing::info!(
                graph = &*self.plan.name,
                step = self.step,
                node = &*self.plan.nodes[task.node].name,
                "task"
            );
        }
    }

    /// Whether the step that was prepared is to be run.
    pub(super) fn decide(&mut self) -> Result<Tick, Error> {
        self.may_step()?;
        if self.tasks.is_empty() {
            return Ok(Tick::Done);
        }
        if !self.replaying && !self.pending.is_empty() {
            self.reapply_writes();
        }
        if self.should_stop(self.config.stop_before.as_ref().unwrap_or(&self.plan.stop_before)) {
            return Ok(Tick::Paused);
        }
        if let Some(reason) = self.shared.drain_reason() {
            return Err(Error::new(ErrorKind::Drained, format!("the run was asked to stop: {reason}")));
        }
        Ok(Tick::Go)
    }

    /// A run goes on unless it was cancelled or came to its limit.
    pub(super) fn may_step(&self) -> Result<(), Error> {
        if self.shared.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        if self.step > self.stop {
            let (limit, s) = (self.shared.recursion_limit, if self.shared.recursion_limit == 1 { "" } else { "s" });
            let words = format!(
                "the run took {limit} step{s} without coming to an end; raise `recursion_limit`, or check that a loop ends"
            );
            return Err(Error::new(ErrorKind::RecursionLimit, words));
        }
        Ok(())
    }

    /// Shows the tasks of the step, and what those wrote that have run before.
    async fn show_starts(&mut self) {
        self.show_task_starts().await;
        for ix in 0..self.tasks.len() {
            if self.tasks[ix].skip {
                self.show_writes(ix, true).await;
            }
        }
    }

    /// Whether anyone sees this graph's events.
    pub(super) fn is_watched(&self) -> bool {
        self.sink().is_some()
    }

    /// Chooses the tasks of the step.
    fn choose(&mut self, plan: &Plan) {
        self.tasks.clear();
        let updated = self.live.updated.as_deref();
        // If nothing was updated, nothing can have been woken.
        if !(updated.is_some_and(<[ChannelIx]>::is_empty) && self.live.sends.is_empty()) {
            tasks::add_next_tasks(plan, &self.live, updated, &mut self.tasks);
        }
        self.live.open_step();
    }

    /// Gives tasks back what they wrote before a pause, a failure or a restart; error handlers run again.
    fn reapply_writes(&mut self) {
        for ix in 0..self.tasks.len() {
            let id = self.task_id(ix);
            let Some(known) = self.pending.of(id) else { continue };
            if known.is_finished() {
                self.tasks[ix].writes = known.output();
                self.tasks[ix].skip = true;
            }
        }
        let failed: Vec<(usize, TaskError)> = (0..self.tasks.len())
            .filter_map(|ix| {
                let known = self.pending.of(self.tasks[ix].id?)?;
                let handler = self.plan.nodes[self.tasks[ix].node].handler;
                known.error().cloned().filter(|_| known.handled() && handler.is_some()).map(|e| (ix, e))
            })
            .collect();
        // A handler runs again, even one that finished: so does LangGraph's.
        for (ix, failure) in failed {
            self.tasks[ix].skip = true;
            self.tasks[ix].writes.rest_mut().error = Some(failure.clone());
            let node = self.plan.nodes[self.tasks[ix].node].name.clone();
            self.add_handler(ix, NodeError { node, failure, error: None });
        }
    }

    /// Adds the task that handles a failed one.
    pub(super) fn add_handler(&mut self, failed: usize, failure: NodeError) -> Option<usize> {
        let handler = self.plan.nodes[self.tasks[failed].node].handler?;
        let mut task = Task::new(handler, TaskPath::Handler { of: failed }, self.tasks[failed].sent.clone());
        task.failure = Some(Box::new(failure));
        self.tasks.push(task);
        Some(self.tasks.len() - 1)
    }

    fn should_stop(&self, at: &StopAt) -> bool {
        self.live.max_version > self.live.stop_seen && self.names_a_task(at)
    }

    fn stops_after(&self) -> bool {
        self.names_a_task(self.config.stop_after.as_ref().unwrap_or(&self.plan.stop_after))
    }

    fn names_a_task(&self, at: &StopAt) -> bool {
        *at != StopAt::Nowhere
            && self.tasks.iter().any(|t| match at {
                StopAt::Nowhere => false,
                StopAt::Everywhere => !self.plan.nodes[t.node].hidden,
                StopAt::Nodes(nodes) => nodes.contains(&t.node),
            })
    }

    /// Applies what the tasks wrote, saves the step and shows it.
    async fn end_step(&mut self, plan: &Plan) -> Result<(), Error> {
        let written = self.wrote_output();
        let only = if let [task] = &*self.tasks { Some(task.node) } else { None };
        self.apply_tasks(plan)?;
        let show = written && self.changed_output(plan);
        self.pending.clear();
        self.desk = None;
        self.replaying = false;
        // With `async` nobody waits for what is saved. Otherwise nobody must see a step that a crash can take back: it is
        // saved first.
        let shows_first = self.shared.durability == Durability::Async;
        if show && shows_first {
            self.show_step(show).await;
        }
        self.put_step(only).await?;
        if !shows_first && (show || !self.unshown.is_empty()) {
            self.show_step(show).await;
        }
        Ok(())
    }

    /// Shows what was held back until the end of the step, and the state if the step changed what is shown of it.
    async fn show_step(&mut self, changed: bool) {
        if self.is_watched() {
            boxed(|| self.show_held_back(changed)).await;
        } else if changed {
            self.note_shown(&[]);
        }
    }

    async fn show_held_back(&mut self, changed: bool) {
        for (mode, data) in std::mem::take(&mut self.unshown) {
            self.send(mode, data).await;
        }
        if changed {
            self.show_values(&[]).await;
        }
    }

    /// Whether nobody saves this graph's steps and nobody sees them.
    pub(super) fn is_quiet(&self) -> bool {
        self.saver.is_none() && !self.is_watched()
    }

    /// Whether a task wrote a shown field.
    pub(super) fn wrote_output(&self) -> bool {
        self.tasks.iter().any(|t| t.writes.puts.touches(|field| self.config.output.has(field)))
            || self.calls_have_pushed()
    }

    /// Whether functions that tasks called have pushed messages that are shown.
    pub(super) fn calls_have_pushed(&self) -> bool {
        self.desk.as_ref().is_some_and(|desk| desk.has_pushed(&self.config.output))
    }

    /// Whether the last step has updated a shown field.
    pub(super) fn changed_output(&self, plan: &Plan) -> bool {
        let fields = self.live.updated.iter().flatten().filter_map(|channel| plan.field_of_channel(*channel));
        fields.into_iter().any(|field| self.config.output.has(field))
    }

    /// Applies the writes of all tasks, in the order of their paths.
    pub(super) fn apply_tasks(&mut self, plan: &Plan) -> Result<(), Error> {
        let mut pushed = self.desk.as_ref().map(|desk| desk.take_pushed()).unwrap_or_default();
        let is_one = self.tasks.len() == 1 && pushed.is_empty();
        let before = (!is_one && self.saves_at_exit()).then(|| self.live.copy());
        tasks::sort_by_path(plan, &mut self.tasks);
        let of_tasks = self.tasks.iter_mut().map(Applied::of_task);
        let mut batch: SmallVec<[Applied<'_>; 1]> =
            of_tasks.chain(pushed.iter_mut().map(CallWrites::applied)).collect();
        let applied = apply_step(plan, &mut self.live, &mut batch);
        drop(batch);
        if let Err(error) = applied {
            let nodes = self.tasks.drain(..).map(|task| task.node).collect();
            return Err(match before {
                None => self.torn(error, nodes),
                Some(before) => self.taken_back(before, error, nodes),
            });
        }
        self.tasks.clear();
        Ok(())
    }

    pub(super) fn saves_at_exit(&self) -> bool {
        self.saver.as_ref().is_some_and(|s| s.durability == Durability::Exit)
    }

    /// Writes of these nodes could not be merged, and nothing of the run is saved yet: it ends as it was before them.
    fn taken_back(&mut self, before: Live, error: InvalidUpdate, nodes: Vec<NodeIx>) -> Error {
        let journal = self.live.journal.take();
        self.live = Live { journal, ..before };
        self.merge_failure(error, nodes)
    }

    /// Writes of these nodes could not be merged. The state is neither the old nor the new one: it is never saved.
    pub(super) fn torn(&mut self, error: InvalidUpdate, nodes: Vec<NodeIx>) -> Error {
        self.is_torn = true;
        self.checkpoint = self.saved;
        self.merge_failure(error, nodes)
    }

    fn merge_failure(&mut self, mut error: InvalidUpdate, mut nodes: Vec<NodeIx>) -> Error {
        self.pending.clear();
        if !error.writers.is_empty() {
            nodes = std::mem::take(&mut error.writers);
        }
        nodes.sort_unstable_by_key(|n| self.plan.nodes[*n].rank);
        nodes.dedup();
        let names: Vec<&str> = nodes.iter().map(|n| &*self.plan.nodes[*n].name).collect();
        error.in_writes_of(&names).in_step(self.step)
    }

    /// The state at the end, and what of it is shown.
    fn finish(&mut self) -> (Snapshot, Shown) {
        let shown = match self.last_shown.take() {
            Some(values) => Shown::Earlier(values),
            None if self.shown => {
                // Copied: a small piece of memory that is taken last and given back last. Without one the allocator gives all
                // that a run had back to the system, and fetches it again for the next: a tenth of a long conversation's time.
                let (present, fields) = (std::mem::take(&mut self.live.present), self.config.output.clone());
                Shown::Last(View { present, fields, ty: self.plan.ty.clone() })
            }
            None => Shown::Nothing,
        };
        (self.live.state.clone(), shown)
    }

    /// Drops what users gave, each by itself.
    fn dismantle(self) {
        let Run { live, tasks, pending, last_shown, input, .. } = self;
        let Live { state, start, sends, scratch, .. } = live;
        let mut drops = Drops::default();
        drops.each(tasks);
        drops.one(pending.null);
        drops.each(pending.tasks.into_values());
        drops.one((input, start));
        drops.each(sends);
        drops.each(scratch);
        drops.one(last_shown);
        drops.one(state);
        drops.end();
    }

    pub(super) fn values(&self, interrupts: Vec<Interrupt>) -> ShownState {
        let view =
            View { present: self.live.present.clone(), fields: self.config.output.clone(), ty: self.plan.ty.clone() };
        ShownState { state: self.live.state.clone(), interrupts, view }
    }

    pub(super) fn note_message_ids(&self) {
        lock(&self.shared.seen_messages).extend(self.plan.ty.message_ids(&self.live.state));
    }
}

/// What is to be done with a step that was prepared.
pub(super) enum Tick {
    Go,
    Done,
    Paused,
}
