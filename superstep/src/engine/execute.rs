//! Runs the tasks of a step.
//!
//! A step with one plain task is polled in place. With several, each is polled once in task
//! order, and only those still pending are spawned: most tasks end there, their events come in
//! task order, and what really waits or works uses every core.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use smallvec::SmallVec;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::apply::{local_state, merge_first};
use super::attempt::{AbortOnDrop, Crash, End, Finished, NodeCall, Watched, call_node, job_of, take_outcome};
use super::cached::{CacheTurn, follow};
use super::paths::Paths;
use super::run::{AtWork, Ended, LoopConfig, Run};
use super::saving::SavedWhen;
use super::seed::StepSeed;
use super::tasks::{Task, TaskPath};
use super::writes::{Rest, TaskWrites};
use crate::bits::Bits;
use crate::call::{Call, Context, Goto, NodeError, ParentCommand, Place, RunShared, Steer, Waiter};
use crate::checkpoint::{Durability, Interrupt};
use crate::error::{Error, ErrorKind, TaskError};
use crate::index::NodeIx;
use crate::plan::Plan;
use crate::state::erased::{Snapshot, Writes};
use crate::wall::{Panicked, Walled, boxed};

type Running = Walled<'static, Finished>;

/// How a task that ran by itself ended, and which it is: with a panic outside of its node, or with nothing if its
/// runtime has dropped it.
type Ending = (usize, Option<Result<Finished, Panicked>>);

/// Tells whoever waits for a task how it ended, even if it does not come to its end.
struct Report {
    ix: usize,
    sender: mpsc::UnboundedSender<Ending>,
    is_made: bool,
}

impl Report {
    fn make(mut self, ended: Result<Finished, Panicked>) {
        self.is_made = true;
        // The step may have ended with an error meanwhile; then nobody waits.
        let _gone = self.sender.send((self.ix, Some(ended)));
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.is_made {
            let _gone = self.sender.send((self.ix, None));
        }
    }
}

/// The tasks of a step that have not ended.
struct Open {
    tasks: Bits,
    last: usize,
    count: usize,
}

impl Open {
    fn new(tasks: &[usize]) -> Self {
        let mut open = Self { tasks: Bits::default(), last: 0, count: 0 };
        tasks.iter().for_each(|ix| open.add(*ix));
        open
    }

    fn add(&mut self, ix: usize) {
        self.tasks.set(ix);
        self.last = self.last.max(ix);
        self.count += 1;
    }

    fn close(&mut self, ix: usize) {
        self.tasks.unset(ix);
        self.count -= 1;
    }

    fn list(&self) -> Vec<usize> {
        (0..=self.last).filter(|ix| self.tasks.has(*ix)).collect()
    }
}

/// What went out of the ordinary in a step.
#[derive(Default)]
struct Trouble {
    failed: Option<Error>,
    bad_answer: Option<Error>,
    /// A graph inside stopped because the run was asked to.
    drained: Option<Error>,
    parent: Option<ParentCommand>,
    asked: Vec<Asked>,
    interrupted: bool,
}

/// What a task asked.
struct Asked {
    task: usize,
    /// Whether it had waited for something else before.
    waited: bool,
    interrupts: Vec<Interrupt>,
}

/// The questions of tasks that did not wait, in task order; then the others, as they came.
fn in_order(mut asked: Vec<Asked>) -> Vec<Interrupt> {
    asked.sort_by_key(|asked| if asked.waited { (true, 0) } else { (false, asked.task) });
    asked.into_iter().flat_map(|asked| asked.interrupts).collect()
}

impl Run {
    /// Runs the tasks that have not run yet, and commits each as it finishes.
    pub(super) async fn run_tasks(&mut self, plan: &Plan) -> Result<Ended, Error> {
        if self.runs_in_place(plan) { self.run_in_place(plan).await } else { boxed(|| self.run_in_time()).await }
    }

    /// Whether the step has one task with nothing around it: it is polled where its step is driven.
    fn runs_in_place(&self, plan: &Plan) -> bool {
        let [task] = self.tasks.as_slice() else { return false };
        let node = &plan.nodes[task.node];
        let is_bare = || {
            node.plain
                && task.timeout.is_none()
                && task.failure.is_none()
                && plan.step_timeout.is_none()
                && self.shared.max_concurrency.is_none()
        };
        !task.skip && (node.hidden || is_bare())
    }

    /// The only task of a step: what it wrote is saved and shown with its step.
    async fn run_in_place(&mut self, plan: &Plan) -> Result<Ended, Error> {
        let node = self.tasks[0].node;
        self.at_work = AtWork::Node(node);
        let context = self.asks_for_context(0).then(|| self.context_of(0, None));
        let mut span = tracing::Span::none();
        let routed = if plan.nodes[node].hidden {
            let (puts, steer) = self.start_outcome();
            let writes = &mut self.tasks[0].writes;
            writes.puts = puts;
            plan.way_out(node, steer, writes)
        } else {
            let call = self.start_in_place(plan, node, context.as_ref());
            span.clone_from(&call.span);
            let result = self.watched(call, context.as_ref()).await.unwrap_or_else(Err);
            if let Err(Crash::Cancelled) = &result {
                return boxed(|| self.cancelled(&[0])).await;
            }
            take_outcome(plan, node, &self.live.state, result, context.as_ref(), &mut self.tasks[0].writes)
        };
        let end = match routed {
            Ok(false) => End::Done,
            Ok(true) => match self.follow_lone(plan, node, context.as_ref(), span).await {
                Ok(end) => end,
                Err(_cancelled) => return boxed(|| self.cancelled(&[0])).await,
            },
            Err(end) => end,
        };
        drop(context);
        match end {
            End::Done if !self.saves_at_exit() => {
                self.keep_with_checkpoint()?;
                if self.is_watched() {
                    boxed(|| self.show_lone()).await;
                }
                Ok(Ended::Done)
            }
            end => boxed(|| self.commit_lone(end)).await,
        }
    }

    /// Whether the code of a task asks for its context, or may speak to listeners.
    fn asks_for_context(&self, ix: usize) -> bool {
        let node = &self.plan.nodes[self.tasks[ix].node];
        let runs_code = !(node.hidden && node.quick_branches);
        node.paths_ask || (node.run.asks && !node.hidden) || (runs_code && self.shared.is_heard())
    }

    fn context_of(&mut self, ix: usize, seed: Option<&StepSeed>) -> Context {
        let (id, name) = (self.task_id(ix), self.plan.nodes[self.tasks[ix].node].name.clone());
        let named = (&name, self.place_of(ix));
        match seed {
            Some(seed) => seed.context(named, id, None, None, None),
            None => self.seed().context(named, id, None, None, None),
        }
    }

    /// Calls the node of the step's only task.
    fn start_in_place(&self, plan: &Plan, node: NodeIx, context: Option<&Context>) -> NodeCall {
        let (step, stop, task) = (self.step, self.stop, &self.tasks[0]);
        let span = tracing::debug_span!("task", node = &*plan.nodes[node].name, step, attempt = 1);
        let entered = span.enter();
        let mut given = || context.cloned().expect("a node that asks for its context has one");
        let (input, state, present) = (task.given(&self.live.state), &self.live.state, &self.live.present);
        let call = plan.call(node, input, (step, stop), &mut given);
        let call = Call { state: Some(state), present: Some(present), ..call };
        let mut future = call_node(&plan.nodes[node], call);
        if let Some(context) = context.filter(|_| self.shared.is_heard()) {
            future = crate::current::inside(context.clone(), future);
        }
        drop(entered);
        NodeCall { future, span }
    }

    /// Follows the conditional edges of the step's only task. Its writes are all there is, so they are merged first and
    /// the state itself is read.
    async fn follow_lone(
        &mut self,
        plan: &Plan,
        node: NodeIx,
        context: Option<&Context>,
        span: tracing::Span,
    ) -> Result<End, Crash> {
        let copy = if self.keeps_state_for_paths(plan, node) {
            self.copy_for_paths(plan).map(Some)
        } else {
            self.merge_lone(plan).map(|()| None)
        };
        let copy = match copy {
            Ok(copy) => copy,
            Err(error) => return Ok(End::Failed(error)),
        };
        let state = copy.as_ref().unwrap_or(&self.live.state);
        let writes = &mut self.tasks[0].writes;
        if plan.nodes[node].quick_branches {
            let followed = plan.follow_sync_branches(node, state, writes);
            return Ok(followed.map_or_else(End::Failed, |()| End::Done));
        }
        let paths = Paths { plan, node, step: self.step, stop: self.stop, context };
        let followed = boxed(|| paths.follow(state, writes).instrument(span));
        watched(&self.shared, &self.config, followed, context).await
    }

    /// Whether the state must stay as it was while the step's only task follows its conditional edges: fields may end the
    /// step by rules of their own, a path may ask (the question shows the state before the task), and a run of which only
    /// the end is saved may have to go back.
    fn keeps_state_for_paths(&self, plan: &Plan, node: NodeIx) -> bool {
        !plan.custom.is_empty() || plan.nodes[node].paths_ask || self.saves_at_exit()
    }

    /// Merges what the step's only task wrote. What is saved of it is encoded before, and what is shown of it is kept:
    /// a write that is merged is used up.
    fn merge_lone(&mut self, plan: &Plan) -> Result<(), Error> {
        let is_watched = self.is_watched();
        let Task { node, writes, .. } = &mut self.tasks[0];
        let (node, names) = (*node, [&*plan.nodes[*node].name]);
        if let Some(saver) = &self.saver
            && let Err(error) = writes.encode(plan, &saver.scribe)
        {
            return Err(self.given_by(node, error));
        }
        let kept = is_watched.then(|| writes.puts.clone());
        merge_first(plan, &mut self.live, node, writes).map_err(|error| error.in_writes_of(&names))?;
        if let Some(kept) = kept {
            writes.puts = kept;
        }
        Ok(())
    }

    fn copy_for_paths(&self, plan: &Plan) -> Result<Snapshot, Error> {
        let Task { node, writes, .. } = &self.tasks[0];
        let copy = local_state(plan, &self.live.state, &writes.puts);
        copy.map_err(|error| error.in_writes_of(&[&plan.nodes[*node].name]))
    }

    /// A future of a task that runs where its step is driven.
    fn watched<'a, F>(&'a self, future: F, context: Option<&'a Context>) -> Watched<'a, F> {
        watched(&self.shared, &self.config, future, context)
    }

    async fn commit_lone(&mut self, end: End) -> Result<Ended, Error> {
        let writes = std::mem::take(&mut self.tasks[0].writes);
        let mut trouble = Trouble::default();
        self.commit(Finished { ix: 0, writes, end }, &mut trouble).await?;
        trouble.into_end()
    }

    async fn run_in_time(&mut self) -> Result<Ended, Error> {
        boxed(|| self.use_cache()).await?;
        let limit = self.plan.step_timeout;
        match limit {
            None => boxed(|| self.run_many()).await,
            Some(limit) => match tokio::time::timeout(limit, boxed(|| self.run_many())).await {
                Ok(ended) => ended,
                Err(_) => {
                    let words = format!("step {} exceeded its timeout of {limit:?}", self.step);
                    Err(Error::new(ErrorKind::Timeout, words).in_step(self.step))
                }
            },
        }
    }

    /// The start node beside others, which waited when an input was put in by hand: its paths may take their time, as
    /// those of any node.
    fn start_beside(&mut self, seed: &Arc<StepSeed>, ix: usize) -> Running {
        let context = self.asks_for_context(ix).then(|| self.context_of(ix, Some(seed)));
        let (plan, seed, state, node) = (self.plan.clone(), seed.clone(), self.live.state.clone(), self.tasks[ix].node);
        let (puts, steer) = self.start_outcome();
        let running = boxed(|| async move {
            let mut writes = TaskWrites::of_puts(puts);
            let end = match plan.way_out(node, steer, &mut writes) {
                Err(end) => end,
                Ok(false) => End::Done,
                Ok(true) => {
                    let paths =
                        Paths { plan: &plan, node, step: seed.step, stop: seed.stop, context: context.as_ref() };
                    boxed(|| paths.follow_beside(&state, &mut writes, &seed)).await
                }
            };
            Finished { ix, writes, end }
        });
        Walled::at_level(self.config.level, running)
    }

    /// What the start node writes: the fields of the input that may be written.
    fn start_outcome(&self) -> (Writes, Option<Box<Steer>>) {
        let Some(super::live::Start::Writes { writes, goto }) = &self.live.start else { return Default::default() };
        let fields = match &self.plan.input {
            crate::plan::InputMode::Start { fields } => fields.as_deref(),
            _ => None,
        };
        let writes = writes.clone().only(|field| fields.is_none_or(|list| list.contains(&field)));
        let goto: SmallVec<[Goto; 1]> = goto.iter().cloned().collect();
        (writes, (!goto.is_empty()).then(|| Box::new(Steer { goto, ..Steer::default() })))
    }

    /// Where a task stands in the step.
    pub(super) fn place_of(&self, ix: usize) -> Place {
        let Task { node, path, .. } = self.tasks[ix];
        match path {
            TaskPath::Pull => Place::Pull { node },
            TaskPath::Push(nth) => Place::Push { node, nth },
            TaskPath::Handler { of } => {
                let nth = if let TaskPath::Push(nth) = self.tasks[of].path { Some(nth) } else { None };
                Place::Handler { node, failed: self.plan.nodes[self.tasks[of].node].name.to_string(), nth }
            }
        }
    }

    async fn run_many(&mut self) -> Result<Ended, Error> {
        let seed = Arc::new(self.seed());
        let todo: Vec<usize> = (0..self.tasks.len()).filter(|ix| !self.tasks[*ix].skip).collect();
        let (sender, mut finished) = mpsc::unbounded_channel();
        let mut spawned: Vec<Option<AbortOnDrop<()>>> = Vec::new();
        let mut trouble = Trouble::default();
        let mut ready = boxed(|| self.poll_once(&seed, &todo, &sender, &mut spawned)).await;
        let mut open = Open::new(&todo);
        while open.count > 0 {
            let batch: Vec<Finished> = if ready.is_empty() {
                match self.next_finished(&mut finished).await {
                    Some(one) => vec![one],
                    None => {
                        let list = open.list();
                        return boxed(|| self.cancelled(&list)).await;
                    }
                }
            } else {
                std::mem::take(&mut ready)
            };
            let mut handlers = Vec::new();
            for done in batch {
                open.close(done.ix);
                handlers.extend(boxed(|| self.commit(done, &mut trouble)).await?);
            }
            if trouble.failed.is_some() {
                break;
            }
            if !handlers.is_empty() {
                handlers.iter().for_each(|ix| open.add(*ix));
                ready = boxed(|| self.poll_once(&seed, &handlers, &sender, &mut spawned)).await;
            }
        }
        drop(spawned);
        for ix in open.list() {
            boxed(|| self.note_cancelled(ix)).await?;
        }
        trouble.into_end()
    }

    async fn next_finished(&self, finished: &mut mpsc::UnboundedReceiver<Ending>) -> Option<Finished> {
        let cancelled = self.shared.cancel.token().cancelled();
        let mut cancelled = std::pin::pin!(cancelled);
        let ended = std::future::poll_fn(|cx| {
            if let Poll::Ready(ended) = finished.poll_recv(cx) {
                return Poll::Ready(ended);
            }
            cancelled.as_mut().poll(cx).map(|()| None)
        });
        ended.await.map(|ended| self.finished(ended))
    }

    /// What became of a task; if it did not come to its end, the error that this is.
    fn finished(&self, (ix, ended): Ending) -> Finished {
        let node = &self.plan.nodes[self.tasks[ix].node].name;
        let error = match ended {
            Some(Ok(finished)) => return finished,
            Some(Err(panicked)) => Error::value_panicked(node, &panicked),
            None => Error::dropped(node),
        };
        Finished { ix, writes: TaskWrites::default(), end: End::Failed(error) }
    }

    /// A task as something that runs by itself.
    #[inline(never)]
    fn start_task(&mut self, seed: &Arc<StepSeed>, ix: usize) -> Running {
        let id = self.task_id(ix);
        let placed = (ix, self.place_of(ix));
        let job = job_of(&self.plan, seed, &self.live.state, placed, &self.tasks[ix], id);
        let turn = self.tasks[ix].turn.take_if(|turn| matches!(**turn, CacheTurn::Waits { .. }));
        let running = match turn.map(|turn| *turn) {
            Some(CacheTurn::Waits { landing, known }) => boxed(|| follow(landing, known, job)),
            _ => boxed(|| job.run()),
        };
        Walled::at_level(self.config.level, running)
    }

    /// Polls each task once, in order; those that are not done go on by themselves.
    async fn poll_once(
        &mut self,
        seed: &Arc<StepSeed>,
        todo: &[usize],
        sender: &mpsc::UnboundedSender<Ending>,
        spawned: &mut Vec<Option<AbortOnDrop<()>>>,
    ) -> Vec<Finished> {
        let mut ready = Vec::new();
        let mut waiting: Vec<(usize, Running)> = Vec::new();
        for &ix in todo {
            let is_start = self.plan.nodes[self.tasks[ix].node].hidden;
            let mut running = if is_start { self.start_beside(seed, ix) } else { self.start_task(seed, ix) };
            match std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut running).poll(cx))).await {
                Poll::Ready(ended) => ready.push(self.finished((ix, Some(ended)))),
                Poll::Pending => waiting.push((ix, running)),
            }
        }
        for (ix, running) in waiting {
            let report = Report { ix, sender: sender.clone(), is_made: false };
            spawned.push(Some(AbortOnDrop::spawn(async move { report.make(running.await) })));
        }
        ready
    }

    /// Saves and shows what became of a task; gives the tasks that handle its failure.
    async fn commit(&mut self, done: Finished, trouble: &mut Trouble) -> Result<Option<usize>, Error> {
        let Finished { ix, mut writes, end } = done;
        self.at_work = AtWork::Node(self.tasks[ix].node);
        // Those who wait for its result look for it when this is dropped: after it was put into the cache.
        let _turn = self.tasks[ix].turn.take();
        match end {
            End::Known => self.commit_known(ix, writes).await?,
            End::Done => {
                writes.done |= !writes.has_output();
                self.tasks[ix].writes = writes;
                self.finish_task(ix).await?;
                if self.plan.nodes[self.tasks[ix].node].cache.is_some() {
                    self.fill_cache(ix).await?;
                }
            }
            End::Interrupted(interrupts, waited) => {
                trouble.interrupted = true;
                if !interrupts.is_empty() {
                    // A handler begins when the task that it is for has failed.
                    let waited = waited || self.tasks[ix].failure.is_some();
                    trouble.asked.push(Asked { task: ix, waited, interrupts: interrupts.clone() });
                    let resume = writes.rest().and_then(|rest| rest.resume.clone());
                    self.tasks[ix].writes =
                        TaskWrites::only(Rest { interrupts: Some(interrupts), resume, ..Rest::default() });
                    self.finish_task(ix).await?;
                    // What a node wrote whose path asks is shown at the pause, and nowhere else.
                    self.tasks[ix].writes = writes;
                }
            }
            End::Parent(command) => trouble.parent = Some(command),
            End::BadAnswer(error) => trouble.bad_answer = Some(error.in_step(self.step)),
            End::Failed(error) => return self.commit_failure(ix, writes, error, trouble).await,
        }
        Ok(None)
    }

    async fn commit_failure(
        &mut self,
        ix: usize,
        mut writes: TaskWrites,
        error: Error,
        trouble: &mut Trouble,
    ) -> Result<Option<usize>, Error> {
        if error.is_drained() {
            // A graph inside stopped as asked: the task has not failed, it has not finished, and the step goes on.
            trouble.drained.get_or_insert(error);
            return Ok(None);
        }
        let error = error.in_step(self.step);
        let error = match &self.tasks[ix].failure {
            Some(first) => error.while_handling(&first.failure),
            None => error,
        };
        let node = &self.plan.nodes[self.tasks[ix].node];
        let (name, handled) = (node.name.clone(), node.handler.is_some() && !node.is_handler);
        if writes.rest().is_some_and(|rest| rest.is_void) {
            writes = writes.how_it_went();
        }
        writes.rest_mut().error = Some((&error).into());
        writes.rest_mut().handled = handled;
        self.tasks[ix].writes = writes;
        self.finish_task(ix).await?;
        if !handled {
            trouble.failed.get_or_insert(error);
            return Ok(None);
        }
        let failure = TaskError::from(&error);
        // What a node wrote whose path failed stays, beside what its handler writes.
        let mut written = self.tasks[ix].writes.output();
        (written.rest_mut().error, written.rest_mut().handled) = (Some(failure.clone()), true);
        self.tasks[ix].writes = written;
        let failure = NodeError { node: name, failure, error: Some(Arc::new(error)) };
        Ok(self.add_handler(ix, failure))
    }

    async fn finish_task(&mut self, ix: usize) -> Result<(), Error> {
        if self.is_quiet() {
            if let Some(interrupts) = self.tasks[ix].writes.interrupts().cloned() {
                self.note_shown(&interrupts);
            }
            return Ok(());
        }
        self.save_and_show(ix, false).await
    }

    /// Saves and shows what a task wrote; `known` if it did not run for it now.
    pub(super) async fn save_and_show(&mut self, ix: usize, known: bool) -> Result<(), Error> {
        if self.shared.durability == Durability::Async {
            self.show_writes(ix, known).await;
            return self.save_writes(ix).await.map(drop);
        }
        // What is shown must be saved already.
        match self.save_writes(ix).await? {
            SavedWhen::Now => self.show_writes(ix, known).await,
            // The writes are gone by then, so the events are made here.
            SavedWhen::WithCheckpoint => {
                let events = self.write_events(ix, known);
                self.unshown.extend(events);
            }
        }
        Ok(())
    }

    /// Shows what the step's only task wrote: now, or when its step is saved if that is to come first. The events are made
    /// now in any case, for what it wrote is used up by then.
    async fn show_lone(&mut self) {
        let mut events = self.write_events(0, false);
        if self.saver.is_some() && self.shared.durability != Durability::Async {
            return self.unshown.append(&mut events);
        }
        for (mode, data) in events {
            self.send(mode, data).await;
        }
    }

    /// A task that was stopped because another failed, or because the run was cancelled.
    async fn note_cancelled(&mut self, ix: usize) -> Result<(), Error> {
        let error = Some(TaskError::new(ErrorKind::Cancelled, "cancelled"));
        self.tasks[ix].writes = TaskWrites::only(Rest { error, ..Rest::default() });
        self.tasks[ix].turn = None;
        self.finish_task(ix).await
    }

    async fn cancelled(&mut self, open: &[usize]) -> Result<Ended, Error> {
        for ix in open {
            self.note_cancelled(*ix).await?;
        }
        Err(Error::cancelled())
    }
}

/// A future of a task that runs where its step is driven: it stops when the run is cancelled.
fn watched<'a, F>(
    shared: &'a RunShared,
    config: &'a LoopConfig,
    future: F,
    context: Option<&'a Context>,
) -> Watched<'a, F> {
    let waiter = Waiter { task: context.map(|cx| &*cx.task), around: config.around.as_deref() };
    Watched { future, cancel: None, run: &shared.cancel, waiter }
}

impl Trouble {
    fn into_end(self) -> Result<Ended, Error> {
        if let Some(error) = self.failed.or(self.bad_answer).or(self.drained) {
            return Err(error);
        }
        if let Some(parent) = self.parent {
            return Ok(Ended::Parent(parent));
        }
        if self.interrupted {
            return Ok(Ended::Paused(in_order(self.asked)));
        }
        Ok(Ended::Done)
    }
}
