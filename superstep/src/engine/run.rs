//! The loop of one run of one graph: begin, step, commit, until there is nothing left to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use serde_json::Value;
use smallvec::SmallVec;
use tokio::sync::Semaphore;

use super::apply::{Applied, apply};
use super::attempt::Pulse;
use super::calls::{CallDesk, CallHost};
use super::live::{Bits, Live, Start};
use super::save::{Header, Loaded, Pending, Saver};
use super::tasks::{self, Task, TaskPath};
use super::writes::TaskWrites;
use crate::checkpoint::{Durability, ListQuery, Source, TaskRecord};
use crate::context::{Answering, Context, NullResume, ReplayState, RunShared, TaskContext, lock};
use crate::error::{Error, ErrorKind, InvalidUpdate, TaskError};
use crate::graph::CompiledStateGraph;
use crate::id::{CheckpointId, TaskId, interrupt_id};
use crate::node::{Answers, Command, Goto, Interrupt, NodeError, ParentCommand};
use crate::plan::{END, Fields, InputMode, Plan, StopAt};
use crate::state::{Put, State};
use crate::stream::Values;

/// How a graph is run: where its checkpoints are, and what its caller asked for.
pub(crate) struct LoopConfig {
    pub(crate) namespace: String,
    /// The checkpoint to start from.
    pub(crate) checkpoint: Option<CheckpointId>,
    /// The checkpoints of the graphs around this one, by namespace.
    pub(crate) ancestors: Arc<BTreeMap<String, CheckpointId>>,
    pub(crate) nested: bool,
    /// What the graph around says: whether it resumes.
    pub(crate) resuming: Option<bool>,
    pub(crate) replay: Option<Arc<ReplayState>>,
    pub(crate) null_resume: Option<Arc<NullResume>>,
    pub(crate) resume_map: Option<Arc<BTreeMap<String, Value>>>,
    pub(crate) stop_before: Option<StopAt>,
    pub(crate) stop_after: Option<StopAt>,
    pub(crate) output: Fields,
    /// One history for all calls: saved even where `exit` saves nothing of subgraphs.
    pub(crate) own_history: bool,
}

/// What a run starts with.
pub(crate) enum RunInput<S: State> {
    Nothing,
    Writes(SmallVec<[Put<S::Write>; 1]>),
    Value(Value),
    Unencodable(String),
    /// Something that is no update.
    Refused(InvalidUpdate),
    Command(Command<S>),
}

/// How a run ended, if not with an error.
pub(crate) enum Ended {
    Done,
    /// It waits: for answers, or, without questions, because it was told to stop here.
    Paused(Vec<Interrupt>),
    /// A command for the graph around this one.
    Parent(ParentCommand),
}

pub(crate) struct Run<S: State> {
    pub(super) graph: CompiledStateGraph<S>,
    pub(super) plan: Arc<Plan<S>>,
    pub(super) shared: Arc<RunShared>,
    pub(super) config: LoopConfig,
    pub(super) saver: Option<Saver<S>>,
    pub(super) live: Live<S>,
    pub(super) pending: Pending<S>,
    pub(super) step: i64,
    pub(super) stop: i64,
    /// The checkpoint that the live state is at; made when it is needed.
    pub(super) checkpoint: Option<CheckpointId>,
    /// The last one that was saved.
    pub(super) saved: Option<CheckpointId>,
    pub(super) previous: Option<CheckpointId>,
    pub(super) source: Option<Source>,
    pub(super) tasks: Vec<Task<S>>,
    pub(super) superseded: bool,
    pub(super) replaying: bool,
    /// Whether the shown fields were given out, and how they were if the state may differ by now.
    pub(super) shown: bool,
    pub(super) last_shown: Option<Values<S>>,
    /// The fields that the step's only task has written ahead.
    pub(super) early: Option<Vec<usize>>,
    pub(super) desk: Option<Arc<CallDesk<S>>>,
    pub(super) previous_value: Option<Value>,
    /// What the step's only task wrote, to be saved with the checkpoint.
    pub(super) unsaved: Vec<TaskRecord>,
    /// The shown fields, as a set.
    output: Bits,
}

/// What the tasks of a step share.
pub(crate) struct StepSeed {
    pub(crate) run: Arc<RunShared>,
    pub(crate) permits: Option<Arc<Semaphore>>,
    /// The fields that have a value.
    pub(crate) present: Bits,
    pub(crate) namespace: String,
    pub(crate) checkpoint: CheckpointId,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    ancestors: Arc<BTreeMap<String, CheckpointId>>,
    null_resume: Arc<NullResume>,
    resume_map: Option<Arc<BTreeMap<String, Value>>>,
    resuming: Option<bool>,
    replay: Option<Arc<ReplayState>>,
    /// The answers that tasks were given before.
    resumes: Vec<(TaskId, Vec<Value>)>,
    has_pending: bool,
    calls: Option<Arc<dyn CallHost>>,
    previous: Option<Value>,
}

impl StepSeed {
    /// The same for calls inside tasks.
    pub(super) fn for_calls(&self, calls: Option<Arc<dyn CallHost>>) -> StepSeed {
        StepSeed {
            run: self.run.clone(),
            permits: None,
            present: self.present.clone(),
            namespace: self.namespace.clone(),
            checkpoint: self.checkpoint,
            step: self.step,
            stop: self.stop,
            ancestors: self.ancestors.clone(),
            null_resume: self.null_resume.clone(),
            resume_map: self.resume_map.clone(),
            resuming: self.resuming,
            replay: self.replay.clone(),
            resumes: self.resumes.clone(),
            has_pending: self.has_pending,
            calls,
            previous: self.previous.clone(),
        }
    }

    pub(crate) fn context(
        &self,
        node: &Arc<str>,
        id: TaskId,
        failure: Option<NodeError>,
        pulse: Option<Arc<Pulse>>,
    ) -> Context {
        let namespace = tasks::task_namespace(&self.namespace, node, id);
        self.context_at(namespace, node, id, failure, pulse)
    }

    pub(crate) fn context_at(
        &self,
        namespace: String,
        node: &Arc<str>,
        id: TaskId,
        failure: Option<NodeError>,
        pulse: Option<Arc<Pulse>>,
    ) -> Context {
        let mut resume = self.resumes.iter().find(|(t, _)| *t == id).map(|(_, r)| r.clone()).unwrap_or_default();
        if let Some(map) = self.resume_map.as_ref().filter(|_| self.has_pending) {
            let ids = [interrupt_id(&namespace, resume.len()), interrupt_id(&namespace, 0)];
            resume.extend(ids.iter().find_map(|id| map.get(id)).cloned());
        }
        Context {
            task: Arc::new(TaskContext {
                run: self.run.clone(),
                node: node.clone(),
                id,
                namespace,
                step: self.step,
                stop: self.stop,
                attempt: AtomicU32::new(1),
                answers: Mutex::new(Answering { resume, ..Answering::default() }),
                null_resume: self.null_resume.clone(),
                resume_map: self.resume_map.clone(),
                ancestors: self.ancestors.clone(),
                resuming: Mutex::new(self.resuming),
                replay: self.replay.clone(),
                failure,
                pulse,
                calls: self.calls.clone(),
                previous: self.previous.clone(),
                cancel: self.run.cancel.child_token(),
            }),
        }
    }
}

impl<S: State> Run<S> {
    pub(crate) fn new(
        graph: CompiledStateGraph<S>,
        shared: Arc<RunShared>,
        config: LoopConfig,
        saver: Option<Saver<S>>,
    ) -> Self {
        let plan = graph.plan.clone();
        let mut output = Bits::default();
        config.output.list().iter().for_each(|f| output.set(*f));
        Self {
            live: Live::empty(&plan),
            plan,
            graph,
            shared,
            config,
            saver,
            pending: Pending::default(),
            step: 0,
            stop: 0,
            checkpoint: None,
            saved: None,
            previous: None,
            source: None,
            tasks: Vec::new(),
            superseded: false,
            replaying: false,
            shown: false,
            last_shown: None,
            early: None,
            desk: None,
            previous_value: None,
            unsaved: Vec::new(),
            output,
        }
    }

    /// Runs to the end, to a pause or to an error; what must be saved is saved in every case.
    pub(crate) async fn drive(&mut self, input: RunInput<S>) -> Result<Ended, Error> {
        let result = self.drive_inner(input).await;
        let paused_or_failed = !matches!(result, Ok(Ended::Done));
        let saved = self.save_exit(paused_or_failed).await;
        let flushed = match &mut self.saver {
            Some(saver) => saver.flush().await,
            None => Ok(()),
        };
        let ended = match result {
            Ok(ended) => ended,
            Err(error) => return Err(error),
        };
        saved?;
        flushed?;
        if let Ended::Paused(interrupts) = &ended
            && !self.config.nested
        {
            self.show_pause(interrupts).await?;
        }
        Ok(ended)
    }

    async fn drive_inner(&mut self, input: RunInput<S>) -> Result<Ended, Error> {
        self.load().await?;
        self.begin(input).await?;
        loop {
            self.prepare();
            if self.is_watched() {
                self.show_checkpoint().await;
            }
            match self.decide()? {
                Tick::Go => {}
                Tick::Done => return Ok(Ended::Done),
                Tick::Paused => return Ok(Ended::Paused(Vec::new())),
            }
            if self.is_watched() {
                self.show_starts().await;
            }
            if self.graph.debug {
                self.log_step();
            }
            match self.execute().await? {
                Ended::Done => {}
                other => return Ok(other),
            }
            if self.after_tick().await? {
                return Ok(Ended::Paused(Vec::new()));
            }
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

    // ---- begin ----

    async fn load(&mut self) -> Result<(), Error> {
        if self.shared.cache.is_none()
            && let Some(node) = self.plan.nodes.iter().find(|n| n.cache.is_some())
        {
            let name = &node.name;
            return Err(Error::invalid(format!(
                "node `{name}` has a cache policy, but the graph has no cache; give it one with `.cache(..)`"
            )));
        }
        let mut last_step = -2;
        if let Some(loaded) = self.find_checkpoint().await? {
            let Loaded { record, live, pending } = loaded;
            last_step = record.step;
            self.live = live;
            self.pending = pending;
            self.checkpoint = Some(record.id);
            self.saved = Some(record.id);
            self.previous = record.parent;
            self.source = Some(record.source);
        } else if self.saver.is_some() {
            self.live.journal = Some(super::save::Journal::default());
        }
        if matches!(self.plan.input, InputMode::Entry) {
            let saved = self.plan.field_named("__previous__").and_then(|f| self.live.state.read(&self.plan.schema, f));
            self.previous_value = saved.and_then(|w| crate::stream::write_json(&self.plan, self.graph.codec, &w));
        }
        self.step = last_step + 1;
        self.stop = self.step + self.shared.recursion_limit as i64 + 1;
        Ok(())
    }

    fn addressed(&self) -> Option<CheckpointId> {
        self.config.checkpoint.or_else(|| self.config.ancestors.get(&self.config.namespace).copied())
    }

    async fn find_checkpoint(&mut self) -> Result<Option<Loaded<S>>, Error> {
        let Some(saver) = &self.saver else { return Ok(None) };
        if let Some(id) = self.addressed() {
            let Some(loaded) = saver.load(&self.plan, Some(id)).await? else {
                return Err(Error::invalid(format!("thread `{}` has no checkpoint {id}", saver.thread)));
            };
            let latest = (*saver.checkpointer).get(&saver.thread, &saver.namespace, None).await?;
            self.superseded = latest.is_some_and(|l| l.record.id != id);
            return Ok(Some(loaded));
        }
        if let Some(replay) = &self.config.replay {
            self.config.resuming = None;
            if replay.first_visit(&self.config.namespace) {
                let query = ListQuery::new().before(replay.before).limit(1);
                let found = (*saver.checkpointer).list(&saver.thread, &saver.namespace, &query).await?;
                return Ok(found.into_iter().next().map(|s| saver.decode(&self.plan, s)).transpose()?);
            }
        }
        Ok(saver.load(&self.plan, None).await?)
    }

    async fn begin(&mut self, input: RunInput<S>) -> Result<(), Error> {
        let is_command = matches!(input, RunInput::Command(_));
        let wants_to_go_on = matches!(input, RunInput::Nothing) || is_command;
        let resuming = self.live.max_version > 0 && self.config.resuming.unwrap_or(wants_to_go_on);
        let time_travel = self.is_time_travel(&input);
        self.replaying = time_travel || self.superseded;
        if time_travel {
            self.pending.null_resume = None;
            self.pending.tasks.iter_mut().for_each(|(_, w)| w.rest_mut().resume = None);
        }
        let old_branch = matches!(self.source, Some(Source::Update | Source::Fork));
        let forks = resuming && time_travel && (!old_branch || self.superseded);
        let mut carried = TaskWrites::default();
        let mut fresh = None;
        match input {
            RunInput::Command(command) => {
                let fresh_thread = self.live.max_version == 0;
                let (writes, goto) = self.take_command(command, forks).await?;
                if fresh_thread {
                    fresh = Some((writes.puts.to_vec(), goto));
                }
                if forks {
                    carried = writes;
                }
            }
            RunInput::Nothing => {}
            RunInput::Writes(puts) => fresh = Some((puts.into_vec(), Vec::new())),
            RunInput::Value(value) => return self.begin_with_value(value, resuming).await,
            RunInput::Refused(refused) => return Err(refused.into()),
            RunInput::Unencodable(why) => return Err(Error::invalid(format!("the input cannot be encoded: {why}"))),
        }
        self.apply_null_writes(carried)?;
        let mut bound = None;
        if resuming {
            self.live.stop_seen = self.live.max_version;
            if forks {
                bound = old_branch.then_some(self.previous).flatten();
                self.pending.tasks.iter_mut().for_each(|(_, w)| w.rest_mut().interrupts = None);
                self.put_checkpoint(Source::Fork).await?;
            }
            self.show_values(&[]).await;
        } else if let Some((puts, goto)) = fresh {
            let start = Start::Writes { puts, goto };
            self.take_input(start).await?;
        } else if self.config.resuming.is_none() {
            return Err(Error::new(ErrorKind::EmptyInput, "there is no input, and no saved work to go on with"));
        }
        self.tell_subgraphs(resuming, time_travel, bound);
        Ok(())
    }

    async fn begin_with_value(&mut self, value: Value, resuming: bool) -> Result<(), Error> {
        if resuming {
            self.live.stop_seen = self.live.max_version;
            self.show_values(&[]).await;
        } else {
            self.take_input(Start::Value(value)).await?;
        }
        self.tell_subgraphs(resuming, false, None);
        Ok(())
    }

    fn is_time_travel(&self, input: &RunInput<S>) -> bool {
        if self.addressed().is_none() && self.config.replay.is_none() {
            return false;
        }
        let own_entry = self.config.nested && self.config.ancestors.contains_key(&self.config.namespace);
        let answers = matches!(input, RunInput::Command(c) if c.resume.is_some());
        own_entry || !(answers || self.config.resuming == Some(true))
    }

    fn tell_subgraphs(&mut self, resuming: bool, time_travel: bool, bound: Option<CheckpointId>) {
        if self.config.nested {
            return;
        }
        self.config.resuming = Some(resuming);
        if time_travel {
            let branched = matches!(self.source, Some(Source::Update | Source::Fork));
            let before = bound.or(self.previous.filter(|_| branched)).unwrap_or_else(|| self.checkpoint_id());
            self.config.replay = Some(Arc::new(ReplayState::new(before)));
        }
    }

    /// Checks a command and notes what it writes; a fork carries it along instead.
    async fn take_command(&mut self, command: Command<S>, forks: bool) -> Result<(TaskWrites<S>, Vec<Goto>), Error> {
        if command.parent.is_some() {
            return Err(Error::new(ErrorKind::InvalidUpdate, "there is no parent graph to command"));
        }
        let mut writes = TaskWrites::of_puts(command.update.into_puts()?);
        for put in &mut writes.puts {
            S::prepare(&self.plan.schema, &mut put.write);
        }
        let goto: Vec<Goto> = command.goto.into_vec();
        for to in &goto {
            self.command_goto(to, &mut writes);
        }
        let resume = match command.resume.map(|r| r.0) {
            Some(_) if self.saver.is_none() => {
                return Err(Error::invalid("a question can only be answered in a graph with a checkpointer"));
            }
            Some(Answers::Unencodable(why)) => {
                return Err(Error::invalid(format!("the answer cannot be encoded: {why}")));
            }
            Some(Answers::ById(map)) => {
                self.check_answers(&map)?;
                self.config.resume_map = Some(Arc::new(map));
                None
            }
            Some(Answers::One(value)) => {
                if self.open_questions().count() > 1 {
                    let words = "several questions are open; answer by their ids with `Resume::by_id`";
                    return Err(Error::new(ErrorKind::AmbiguousResume, words));
                }
                Some(value)
            }
            None => None,
        };
        if !writes.has_output() && resume.is_none() && self.config.resume_map.is_none() {
            return Err(Error::new(ErrorKind::EmptyInput, "the command is empty"));
        }
        if forks {
            self.pending.null_resume = resume;
            return Ok((writes, goto));
        }
        if writes.has_output() || resume.is_some() {
            self.pending.null_resume = resume;
            let null = &mut self.pending.null;
            null.puts.extend(writes.puts.iter().cloned());
            null.signals.extend(writes.signals.iter().copied());
            null.rest_mut().encoded.clear();
            null.rest_mut().sends.extend(writes.sends().iter().cloned());
            if let Some(saver) = &self.saver {
                let record = writes.record(&self.plan, saver.codec, TaskId::NULL, "".into())?;
                self.pending.null_log.extend(record.writes);
            }
            self.save_null_writes().await?;
        }
        Ok((writes, goto))
    }

    fn command_goto(&self, to: &Goto, writes: &mut TaskWrites<S>) {
        match to {
            Goto::Send(send) => writes.rest_mut().sends.push(send.clone()),
            Goto::Node(name) => match self.plan.node(name).and_then(|n| self.plan.wakes(n)) {
                Some(channel) => writes.signals.push((channel, 0)),
                None => {
                    if name != END {
                        tracing::warn!(node = &**name, "there is no such node to go to");
                    }
                    writes.done = true;
                }
            },
        }
    }

    /// An answer must be for a question of this checkpoint.
    fn check_answers(&self, answers: &BTreeMap<String, Value>) -> Result<(), Error> {
        if self.superseded {
            return Ok(());
        }
        let asked = |id: &String| {
            self.pending.tasks.iter().any(|(_, w)| w.interrupts().into_iter().flatten().any(|i| i.id == *id))
        };
        match answers.keys().find(|id| !asked(id)) {
            None => Ok(()),
            Some(id) => {
                let open: Vec<&str> = self.open_questions().map(|i| i.id.as_str()).collect();
                let words = format!("nobody asked a question with id `{id}`; open are {open:?}");
                Err(Error::new(ErrorKind::UnknownInterrupt, words))
            }
        }
    }

    fn open_questions(&self) -> impl Iterator<Item = &Interrupt> {
        self.pending.tasks.iter().flat_map(|(_, w)| w.open_questions())
    }

    fn apply_null_writes(&mut self, mut carried: TaskWrites<S>) -> Result<(), Error> {
        let mut all = self.pending.null.output();
        all.puts.extend(std::mem::take(&mut carried.puts));
        all.signals.extend(std::mem::take(&mut carried.signals));
        all.rest_mut().encoded.clear();
        all.rest_mut().sends.extend(carried.take_rest().map(|r| r.sends).unwrap_or_default());
        if !all.has_output() {
            return Ok(());
        }
        let batch = SmallVec::from_iter([Applied::by_caller(all)]);
        let updated = apply(&self.plan, &mut self.live, None, batch, None)?;
        if let Some(known) = &mut self.live.updated {
            known.extend(updated.into_iter().filter(|c| !known.contains(c)).collect::<Vec<_>>());
        }
        Ok(())
    }

    /// New input: what was left to do is dropped, and the run starts over from the start node.
    async fn take_input(&mut self, start: Start<S>) -> Result<(), Error> {
        let updated = self.live.updated.clone();
        let dropped = tasks::next_tasks(&self.plan, &self.live, updated.as_deref());
        let mut batch: SmallVec<[Applied<S>; 1]> = SmallVec::new();
        let start = match (start, &self.plan.input) {
            (Start::Writes { puts, goto: _ }, InputMode::Fields(fields)) => {
                let known =
                    |p: &Put<S::Write>| S::field_of(&self.plan.schema, &p.write).is_some_and(|f| fields.contains(&f));
                let puts = puts.into_iter().filter(known).collect();
                batch.push(Applied::by_caller(TaskWrites::of_puts(puts)));
                None
            }
            (start, _) => Some(start),
        };
        for task in dropped {
            let woken = (task.path == TaskPath::Pull).then_some(task.node);
            batch.push(Applied { woken, ends_step: true, writes: TaskWrites::default() });
        }
        let updated = apply(&self.plan, &mut self.live, start, batch, None)?;
        self.live.updated = Some(updated);
        self.pending.clear();
        self.put_checkpoint(Source::Input).await
    }

    // ---- step ----

    /// Whether the step that was prepared is to be run.
    fn decide(&mut self) -> Result<Tick, Error> {
        if self.shared.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        if self.step > self.stop {
            let words = format!(
                "the run took {} steps without coming to an end; raise `recursion_limit`, or check that a loop ends",
                self.shared.recursion_limit
            );
            return Err(Error::new(ErrorKind::RecursionLimit, words));
        }
        if self.tasks.is_empty() {
            return Ok(Tick::Done);
        }
        if !self.replaying && !self.pending.is_empty() {
            self.reapply_writes();
        }
        if self.should_stop(self.config.stop_before.as_ref().unwrap_or(&self.plan.stop_before)) {
            return Ok(Tick::Paused);
        }
        if let Some(reason) = self.shared.control.drain_reason() {
            return Err(Error::new(ErrorKind::Drained, format!("the run was asked to stop: {reason}")));
        }
        Ok(Tick::Go)
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
    fn prepare(&mut self) {
        let updated = self.live.updated.take();
        self.tasks.clear();
        // If nothing was updated, nothing can have been woken.
        if !(updated.as_ref().is_some_and(Vec::is_empty) && self.live.sends.is_empty()) {
            tasks::add_next_tasks(&self.plan, &self.live, updated.as_deref(), &mut self.tasks);
        }
        self.live.updated = updated;
    }

    /// Gives tasks back what they wrote before a pause, a failure or a restart.
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
        let mut task = Task::new(handler, TaskPath::Handler { of: failed }, self.tasks[failed].input.clone());
        task.failure = Some(failure);
        self.tasks.push(task);
        let ix = self.tasks.len() - 1;
        let id = self.task_id(ix);
        if !self.replaying
            && let Some(known) = self.pending.of(id).filter(|k| k.is_finished())
        {
            self.tasks[ix].writes = known.output();
            self.tasks[ix].skip = true;
        }
        Some(ix)
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

    /// Applies what the tasks wrote and commits; true if the run stops here.
    async fn after_tick(&mut self) -> Result<bool, Error> {
        let written = self.wrote_output();
        let stops_here = self.stops_after();
        let updated = self.apply_tasks()?;
        let show = written && self.touches_output(&updated);
        self.live.updated = Some(updated);
        self.pending.clear();
        self.desk = None;
        self.replaying = false;
        if self.is_quiet() {
            self.next_step_unseen(show);
        } else if self.shared.durability == Durability::Sync {
            // Commit before showing: nobody must see a step that a crash can take back.
            self.put_checkpoint(Source::Loop).await?;
            if show {
                self.show_values(&[]).await;
            }
        } else {
            if show {
                self.show_values(&[]).await;
            }
            self.put_checkpoint(Source::Loop).await?;
        }
        if stops_here && self.live.max_version > self.live.stop_seen {
            self.prepare();
            self.show_checkpoint().await;
            return Ok(true);
        }
        self.config.resuming = None;
        Ok(false)
    }

    /// Whether nobody saves this graph's steps and nobody sees them.
    pub(super) fn is_quiet(&self) -> bool {
        self.saver.is_none() && !self.is_watched()
    }

    /// Ends a step that nobody saves and nobody sees.
    fn next_step_unseen(&mut self, show: bool) {
        if show {
            self.note_shown(&[]);
        }
        self.source = Some(Source::Loop);
        self.checkpoint = None;
        self.step += 1;
    }

    /// Whether a task wrote a shown field.
    pub(super) fn wrote_output(&self) -> bool {
        let shown = |p: &Put<S::Write>| S::field_of(&self.plan.schema, &p.write).is_some_and(|f| self.output.has(f));
        self.early.as_ref().is_some_and(|e| self.touches_output(e))
            || self.tasks.iter().any(|t| t.writes.puts.iter().any(shown))
    }

    pub(super) fn touches_output(&self, updated: &[usize]) -> bool {
        let controls = self.plan.control.len();
        updated.iter().any(|c| *c >= controls && self.output.has(c - controls))
    }

    /// Applies the writes of all tasks, in the order of their paths.
    pub(super) fn apply_tasks(&mut self) -> Result<Vec<usize>, Error> {
        // The list of the step before is used again.
        let early = self.early.take().or_else(|| self.live.updated.take().map(cleared));
        if let [task] = self.tasks.as_mut_slice() {
            let node = task.node;
            let woken = (task.path == TaskPath::Pull).then_some(node);
            let batch =
                SmallVec::from_iter([Applied { woken, ends_step: true, writes: std::mem::take(&mut task.writes) }]);
            self.tasks.clear();
            return apply(&self.plan, &mut self.live, None, batch, early).map_err(|e| self.torn(e, vec![node]));
        }
        let mut tasks = std::mem::take(&mut self.tasks);
        if tasks.len() > 1 {
            let plan = &self.plan;
            if tasks.iter().any(|t| matches!(t.path, TaskPath::Handler { .. })) {
                let mut keyed: Vec<(Arc<str>, usize)> =
                    (0..tasks.len()).map(|ix| (tasks::path_text(plan, &tasks, ix), ix)).collect();
                keyed.sort();
                let mut slots: Vec<Option<Task<S>>> = tasks.into_iter().map(Some).collect();
                tasks = keyed.into_iter().filter_map(|(_, ix)| slots[ix].take()).collect();
            } else {
                tasks.sort_by_key(|t| match t.path {
                    TaskPath::Push(ix) => (1, ix),
                    _ => (0, plan.nodes[t.node].rank),
                });
            }
        }
        let applied = |t: Task<S>| Applied {
            woken: (t.path == TaskPath::Pull).then_some(t.node),
            ends_step: true,
            writes: t.writes,
        };
        let nodes = tasks.iter().map(|t| t.node).collect();
        let batch = tasks.into_iter().map(applied).collect();
        apply(&self.plan, &mut self.live, None, batch, early).map_err(|e| self.torn(e, nodes))
    }

    /// Writes of these nodes could not be merged. The state is neither the old nor the new one: it is never saved.
    fn torn(&mut self, error: InvalidUpdate, mut nodes: Vec<usize>) -> Error {
        self.checkpoint = self.saved;
        self.pending.clear();
        nodes.sort_unstable_by_key(|n| self.plan.nodes[*n].rank);
        nodes.dedup();
        let names: Vec<&str> = nodes.iter().map(|n| &*self.plan.nodes[*n].name).collect();
        error.in_writes_of(&names)
    }

    // ---- checkpoints ----

    pub(super) fn checkpoint_id(&mut self) -> CheckpointId {
        let step = self.step;
        *self.checkpoint.get_or_insert_with(|| CheckpointId::new(step))
    }

    pub(super) fn task_id(&mut self, ix: usize) -> TaskId {
        if let Some(id) = self.tasks[ix].id {
            return id;
        }
        let failed = match self.tasks[ix].path {
            TaskPath::Handler { of } => Some(self.task_id(of)),
            _ => None,
        };
        let checkpoint = self.checkpoint_id();
        let id = tasks::task_id(&self.plan, checkpoint, &self.config.namespace, self.step, &self.tasks[ix], failed);
        self.tasks[ix].id = Some(id);
        id
    }

    /// Ends a step: a new checkpoint, saved now unless only the end of the run is saved.
    async fn put_checkpoint(&mut self, source: Source) -> Result<(), Error> {
        self.source = Some(source);
        match &self.saver {
            None => self.checkpoint = None,
            Some(saver) => {
                self.checkpoint = Some(CheckpointId::new(self.step));
                if saver.durability != Durability::Exit {
                    self.save_checkpoint(self.step).await?;
                }
            }
        }
        self.step += 1;
        Ok(())
    }

    async fn save_checkpoint(&mut self, step: i64) -> Result<(), Error> {
        let (Some(saver), Some(id), Some(source)) = (&mut self.saver, self.checkpoint, self.source) else {
            return Ok(());
        };
        let header = Header {
            id,
            parent: self.saved,
            base: self.saved,
            source,
            step,
            metadata: self.shared.metadata.clone(),
            parents: self.config.ancestors.clone(),
            writes: std::mem::take(&mut self.unsaved),
        };
        let record = saver.record(&self.plan, &mut self.live, header)?;
        self.previous = self.saved;
        self.saved = Some(id);
        Ok(saver.put(record).await?)
    }

    /// With durability `exit`: the last checkpoint, and what was written after it.
    async fn save_exit(&mut self, paused_or_failed: bool) -> Result<(), Error> {
        let exit = self.saver.as_ref().is_some_and(|s| s.durability == Durability::Exit);
        if !exit || !(!self.config.nested || paused_or_failed || self.config.own_history) {
            return Ok(());
        }
        if self.checkpoint.is_some() && self.checkpoint != self.saved {
            self.save_checkpoint(self.step - 1).await?;
        }
        if self.saved.is_none() {
            return Ok(());
        }
        self.save_null_record().await?;
        for (id, mut writes) in self.pending.tasks.clone() {
            let path = (0..self.tasks.len()).find(|ix| self.tasks[*ix].id == Some(id));
            let path = path.map_or_else(|| "".into(), |ix| tasks::path_text(&self.plan, &self.tasks, ix));
            self.save_record(id, &mut writes, path).await?;
        }
        if let Some(desk) = self.desk.clone() {
            for (id, mut writes) in desk.finished() {
                self.save_record(id, &mut writes, "".into()).await?;
            }
        }
        Ok(())
    }

    async fn save_record(&mut self, id: TaskId, writes: &mut TaskWrites<S>, path: Arc<str>) -> Result<(), Error> {
        let (Some(saver), Some(checkpoint)) = (&mut self.saver, self.saved) else { return Ok(()) };
        let record = writes.record(&self.plan, saver.codec, id, path)?;
        Ok(saver.put_writes(checkpoint, record).await?)
    }

    async fn save_null_writes(&mut self) -> Result<(), Error> {
        match &self.saver {
            Some(saver) if saver.durability != Durability::Exit => self.save_null_record().await,
            _ => Ok(()),
        }
    }

    async fn save_null_record(&mut self) -> Result<(), Error> {
        let (Some(saver), Some(checkpoint)) = (&mut self.saver, self.saved) else { return Ok(()) };
        if self.pending.null_log.is_empty() && self.pending.null_resume.is_none() {
            return Ok(());
        }
        let resume = self.pending.null_resume.clone().map(|v| Value::Array(vec![v]));
        let writes = self.pending.null_log.clone();
        let mut record = TaskWrites::<S>::default().record(&self.plan, saver.codec, TaskId::NULL, "".into())?;
        (record.writes, record.resume) = (writes, resume);
        Ok(saver.put_writes(checkpoint, record).await?)
    }

    /// Saves what a task wrote, unless only the end of the run is saved.
    pub(super) async fn save_writes(&mut self, ix: usize) -> Result<(), Error> {
        if self.saver.is_none() {
            return Ok(());
        }
        let id = self.task_id(ix);
        let path = tasks::path_text(&self.plan, &self.tasks, ix);
        let mut writes = std::mem::take(&mut self.tasks[ix].writes);
        let ended = writes.is_finished() && writes.error().is_none();
        let exit = self.saver.as_ref().is_some_and(|s| s.durability == Durability::Exit);
        // The checkpoint of a step with one task follows at once: both are saved together.
        let alone = self.tasks.len() == 1 && ended && !exit;
        let result = match &self.saver {
            Some(saver) if alone && self.saved.is_some() && saver.durability == Durability::Async => {
                let record = writes.record(&self.plan, saver.codec, id, path)?;
                self.unsaved.push(record);
                Ok(())
            }
            _ if exit || self.saved.is_none() => Ok(()),
            _ => self.save_record(id, &mut writes, path).await,
        };
        if !alone {
            self.pending.set(id, writes.clone());
        }
        self.tasks[ix].writes = writes;
        result
    }

    /// What the tasks of this step share.
    pub(super) fn seed(&mut self) -> StepSeed {
        let checkpoint = self.checkpoint_id();
        let mut ancestors = (*self.config.ancestors).clone();
        ancestors.insert(self.config.namespace.clone(), checkpoint);
        let resumes = self.pending.tasks.iter().filter_map(|(id, w)| Some((*id, w.resume().cloned()?))).collect();
        let has_pending = !self.pending.is_empty();
        let null = NullResume::new(self.pending.null_resume.clone(), self.config.null_resume.clone());
        let desk = CallDesk::new(self, checkpoint);
        self.desk = Some(desk.clone());
        let seed = StepSeed {
            run: self.shared.clone(),
            permits: self.shared.max_concurrency.map(|n| Arc::new(Semaphore::new(n))),
            present: self.live.present.clone(),
            namespace: self.config.namespace.clone(),
            checkpoint,
            step: self.step,
            stop: self.stop,
            ancestors: Arc::new(ancestors),
            null_resume: Arc::new(null),
            resume_map: self.config.resume_map.clone(),
            resuming: self.config.resuming,
            replay: self.config.replay.clone(),
            resumes,
            has_pending,
            calls: Some(desk.clone()),
            previous: self.previous_value.clone(),
        };
        desk.set_seed(&seed);
        seed
    }

    /// The state at the end, and what of it is shown.
    pub(crate) fn finish(&mut self) -> (Arc<S>, Option<Values<S>>) {
        let shown = match self.last_shown.take() {
            Some(values) => Some(values),
            None if self.shown => Some(self.values(Vec::new())),
            None => None,
        };
        (self.live.state.clone(), shown)
    }

    pub(super) fn values(&self, interrupts: Vec<Interrupt>) -> Values<S> {
        Values {
            state: self.live.state.clone(),
            interrupts,
            present: self.live.present.clone(),
            fields: self.config.output.clone(),
            plan: self.plan.clone(),
            codec: self.graph.codec,
        }
    }

    pub(super) fn note_message_ids(&self) {
        lock(&self.shared.seen_messages).extend(self.live.state.message_ids());
    }
}

fn cleared(mut list: Vec<usize>) -> Vec<usize> {
    list.clear();
    list
}

enum Tick {
    Go,
    Done,
    Paused,
}
