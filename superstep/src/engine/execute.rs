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

use super::apply::{local_state, put_early};
use super::attempt::{
    AbortOnDrop, Crash, End, Finished, NodeCall, NodeResult, Watched, admitted, call_node, job_of, settle, with_answers,
};
use super::cached::{CacheTurn, follow};
use super::paths::Paths;
use super::run::{AtWork, Ended, Run};
use super::saving::SavedWhen;
use super::seed::StepSeed;
use super::tasks::{Task, TaskPath};
use super::writes::{Rest, TaskWrites};
use crate::bits::Bits;
use crate::call::{Call, Context, Goto, NodeError, NodeFuture, ParentCommand, Place, Steer, Waiter, with_pushed};
use crate::checkpoint::{Durability, Interrupt};
use crate::error::{Error, ErrorKind, TaskError};
use crate::state::erased::Writes;
use crate::state::{Given, TaskInput};
use crate::wall::{Panicked, Walled, boxed};

type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<Ended, Error>> + Send + 'a>>;

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

/// A node that runs where its step is driven.
pub(crate) struct Started {
    pub(crate) context: Option<Context>,
    pub(crate) polled: Polled,
}

/// How far it came.
pub(crate) enum Polled {
    Pending(NodeCall),
    Ready(NodeResult),
    /// Its conditional edges were followed too.
    Ended(Finished),
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
    /// Runs the tasks that have not run yet, and commits each as it finishes. `started` is the
    /// step's only task, if it was started already.
    pub(super) fn execute(&mut self, started: Option<Box<Started>>) -> StepFuture<'_> {
        if started.is_some() {
            return boxed(|| self.run_in_place(started));
        }
        if let [task] = self.tasks.as_slice()
            && !task.skip
            && self.plan.nodes[task.node].hidden
        {
            return boxed(|| self.run_start());
        }
        if self.runs_in_place() { boxed(|| self.run_in_place(None)) } else { boxed(|| self.run_in_time()) }
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

    /// The start node alone in its step.
    async fn run_start(&mut self) -> Result<Ended, Error> {
        let context = self.start_asks().then(|| self.start_context(0, None));
        let done = self.start_input(0, context).await;
        self.commit_lone(done).await
    }

    /// Whether the paths of the start have to be given a context.
    fn start_asks(&self) -> bool {
        let start = self.plan.nodes.iter().find(|node| node.hidden);
        start.is_some_and(|start| start.paths_ask || !start.quick_branches && self.shared.is_heard())
    }

    /// The context for the paths of the start.
    fn start_context(&mut self, ix: usize, seed: Option<&StepSeed>) -> Context {
        let (id, name) = (self.task_id(ix), self.plan.nodes[self.tasks[ix].node].name.clone());
        let named = (&name, self.place_of(ix));
        match seed {
            Some(seed) => seed.context(named, id, None, None, None),
            None => self.seed().context(named, id, None, None, None),
        }
    }

    /// Runs the start node: it writes the input. Others are beside it if an input was put in by hand while they waited.
    async fn start_input(&self, ix: usize, context: Option<Context>) -> Finished {
        let outcome = self.start_outcome();
        let mut writes = TaskWrites::of_puts(outcome.0);
        let node = self.tasks[ix].node;
        let end = match self.plan.way_out(node, outcome.1, &mut writes) {
            Err(end) => end,
            Ok(false) => End::Done,
            Ok(true) => {
                let ended = boxed(|| self.branch_on_copy(node, &mut writes, context.as_ref())).await;
                ended.unwrap_or_else(|_| End::Failed(Error::cancelled()))
            }
        };
        Finished { ix, writes, end }
    }

    /// What the start node writes: the fields of the input that may be written.
    pub(super) fn start_outcome(&self) -> (Writes, Option<Box<Steer>>) {
        let Some(super::live::Start::Writes { writes, goto }) = &self.live.start else { return Default::default() };
        let fields = match &self.plan.input {
            crate::plan::InputMode::Start { fields } => fields.as_deref(),
            _ => None,
        };
        let writes = writes.clone().only(|field| fields.is_none_or(|list| list.contains(&field)));
        let goto: SmallVec<[Goto; 1]> = goto.iter().cloned().collect();
        (writes, (!goto.is_empty()).then(|| Box::new(Steer { goto, ..Steer::default() })))
    }

    fn runs_in_place(&self) -> bool {
        let [task] = self.tasks.as_slice() else { return false };
        !task.skip
            && task.timeout.is_none()
            && self.plan.nodes[task.node].plain
            && self.plan.step_timeout.is_none()
            && self.shared.max_concurrency.is_none()
            && task.failure.is_none()
    }

    /// The only task of a step, polled where we are.
    async fn run_in_place(&mut self, started: Option<Box<Started>>) -> Result<Ended, Error> {
        let node_ix = self.tasks[0].node;
        let plan = self.plan.clone();
        let node = &plan.nodes[node_ix];
        self.at_work = AtWork::Node(node_ix);
        let Started { context, polled } = match started {
            Some(started) => *started,
            None => {
                // The task lets go of the state, so that it can be changed in place.
                let input = self.tasks[0].input.take().expect("a task keeps its input until it runs");
                let (call, context) = self.start_in_place(node_ix, &plan, &input);
                Started { context, polled: Polled::Pending(call) }
            }
        };
        let mut span = tracing::Span::none();
        let result = match polled {
            Polled::Ended(done) => return boxed(|| self.commit_lone(done)).await,
            Polled::Ready(result) => result,
            Polled::Pending(call) => {
                span.clone_from(&call.span);
                self.watched(call, context.as_ref()).await.unwrap_or_else(Err)
            }
        };
        if let Err(Crash::Cancelled) = &result {
            return boxed(|| self.cancelled(&[0])).await;
        }
        let mut writes = with_answers(TaskWrites::default(), context.as_ref());
        let end = match settle(result, context.as_ref(), &node.name) {
            Ok(outcome) => match admitted(&plan, node_ix, outcome.update, &self.live.state) {
                Err(error) => End::Failed(error),
                Ok(puts) => {
                    writes.puts = with_pushed(context.as_ref(), puts);
                    match plan.way_out(node_ix, outcome.steer, &mut writes) {
                        Ok(false) => End::Done,
                        Ok(true) => match self.branch_ahead(&plan, node_ix, &mut writes) {
                            Some(end) => end,
                            None => {
                                let follow =
                                    || self.branch_on_copy(node_ix, &mut writes, context.as_ref()).instrument(span);
                                match boxed(follow).await {
                                    Ok(end) => end,
                                    Err(_cancelled) => return boxed(|| self.cancelled(&[0])).await,
                                }
                            }
                        },
                        Err(end) => end,
                    }
                }
            },
            Err(end) => end,
        };
        drop(context);
        if matches!(end, End::Done) && self.is_quiet() {
            self.tasks[0].writes = writes;
            return Ok(Ended::Done);
        }
        boxed(|| self.commit_lone(Finished { ix: 0, writes, end })).await
    }

    /// A future of a task that runs where its step is driven: it stops when the run is cancelled.
    fn watched<'a, F>(&'a self, future: F, context: Option<&'a Context>) -> Watched<'a, F> {
        let waiter = Waiter { task: context.map(|cx| &*cx.task), around: self.config.around.as_deref() };
        Watched { future, cancel: None, token: self.shared.cancel.token(), waiter }
    }

    async fn commit_lone(&mut self, done: Finished) -> Result<Ended, Error> {
        let mut trouble = Trouble::default();
        self.commit(done, &mut trouble).await?;
        trouble.into_end()
    }

    /// Calls a node that asks for nothing but the state.
    pub(super) fn call_on_state(&self, node: usize, plan: &crate::plan::Plan) -> NodeFuture {
        let (step, stop) = (self.step, self.stop);
        let mut none = || unreachable!("the node asks for no context");
        let input = Given::State(&self.live.state);
        call_node(&plan.nodes[node], plan.call(node, input, (step, stop), &mut none))
    }

    /// Calls the node; a context is made only if it asks for one.
    pub(super) fn start_in_place(
        &mut self,
        node_ix: usize,
        plan: &crate::plan::Plan,
        input: &TaskInput,
    ) -> (NodeCall, Option<Context>) {
        let node = &plan.nodes[node_ix];
        let span = tracing::debug_span!("task", node = &*node.name, step = self.step, attempt = 1);
        let entered = span.enter();
        let mut context: Option<Context> = None;
        let heard = self.shared.is_heard();
        let (step, stop) = (self.step, self.stop);
        let present = node.run.needs_present.then(|| self.live.present.clone());
        let present = present.as_ref();
        let state = matches!(input, TaskInput::Sent(_)).then(|| self.live.state.clone());
        let mut make = || {
            let cx = context.get_or_insert_with(|| {
                let id = self.lone_task_id(node_ix);
                let place = self.place_of(0);
                self.seed().context((&node.name, place), id, None, None, None)
            });
            cx.clone()
        };
        let (input, state) = (input.given(), state.as_ref());
        let call = Call { state, present, ..plan.call(node_ix, input, (step, stop), &mut make) };
        let mut future = call_node(node, call);
        if heard {
            future = crate::current::inside(make(), future);
        } else if node.paths_ask {
            make();
        }
        drop(entered);
        (NodeCall { future, span }, context)
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

    /// The id of the step's only task, which is made here if nothing else needed it.
    fn lone_task_id(&mut self, node: usize) -> crate::id::TaskId {
        self.make_lone_task(node);
        self.task_id(0)
    }

    /// Makes the task of a node that was called without one, unless it was made already.
    pub(super) fn make_lone_task(&mut self, node: usize) {
        if self.tasks.is_empty() {
            self.tasks.push(Task::new(node, TaskPath::Pull, None));
        }
    }

    /// Follows the conditional edges of the step's only task. Its writes are all there is, so the
    /// state itself is what they read: it is changed first. `None` if it may have to be as it was.
    fn branch_ahead(&mut self, plan: &crate::plan::Plan, node: usize, writes: &mut TaskWrites) -> Option<End> {
        let possible = plan.is_steady()
            && plan.nodes[node].quick_branches
            && !self.saver.as_ref().is_some_and(|s| s.durability == Durability::Exit);
        if !possible {
            return None;
        }
        if !self.is_quiet()
            && let Err(error) = self.keep_for_others(writes)
        {
            return Some(End::Failed(self.given_by(node, error)));
        }
        Some(match self.branch_now(plan, node, writes, Vec::new()) {
            Ok(updated) => {
                self.early = Some(updated);
                End::Done
            }
            Err(error) => End::Failed(error),
        })
    }

    /// Merges what the step's only task wrote and follows its conditional edges, which must be plain
    /// functions. Gives the channels that were updated; `list` is an empty list for them.
    pub(super) fn branch_now(
        &mut self,
        plan: &crate::plan::Plan,
        node: usize,
        writes: &mut TaskWrites,
        list: Vec<usize>,
    ) -> Result<Vec<usize>, Error> {
        let merged = put_early(plan, &mut self.live, node, writes, list);
        let updated = merged.map_err(|e| e.in_writes_of(&[&plan.nodes[node].name]))?;
        plan.follow_sync_branches(node, &self.live.state, writes)?;
        Ok(updated)
    }

    /// Follows conditional edges that may wait, on a copy of the state with the task's writes.
    async fn branch_on_copy(
        &self,
        node: usize,
        writes: &mut TaskWrites,
        context: Option<&Context>,
    ) -> Result<End, Crash> {
        let plan = &self.plan;
        let state = match local_state(plan, &self.live.state, &writes.puts) {
            Ok(state) => state,
            Err(error) => return Ok(End::Failed(error.in_writes_of(&[&plan.nodes[node].name]))),
        };
        let paths = Paths { plan, node, step: self.step, stop: self.stop, context };
        let followed = std::pin::pin!(paths.follow(state, writes));
        self.watched(followed, context).await
    }

    /// Keeps what is saved and shown of writes that are merged ahead.
    fn keep_for_others(&self, writes: &mut TaskWrites) -> Result<(), Error> {
        if let Some(saver) = &self.saver {
            writes.encode(&self.plan, &saver.scribe)?;
        }
        if self.sink().is_some() {
            writes.rest_mut().kept = writes.puts.clone();
        }
        Ok(())
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
        let job = job_of(&self.plan, seed, &self.live.state, placed, &mut self.tasks[ix], id);
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
            if self.plan.nodes[self.tasks[ix].node].hidden {
                let context = self.start_asks().then(|| self.start_context(ix, Some(seed)));
                ready.push(boxed(|| self.start_input(ix, context)).await);
                continue;
            }
            let mut running = self.start_task(seed, ix);
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
