//! One task from its first attempt to its last: retries, timeouts, panics, and the way out of the node.
//!
//! An attempt is the node and then its conditional edges: whatever bounds or watches the one does so with the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::Instrument;

use super::apply::local_state;
use super::paths::Paths;
use super::seed::StepSeed;
use super::tasks::Task;
use super::writes::TaskWrites;
use crate::call::{
    AnyOutcome, Call, Cancel, Context, Goto, Interrupted, Next, NodeError, ParentCommand, Path, Place, Pulse,
    RetryPolicy, Slot, Steer, TimeoutPolicy, Waiter, lock, with_pushed,
};
use crate::checkpoint::Interrupt;
use crate::error::{BoxError, Error, ErrorKind, Hint, InvalidUpdate, called};
use crate::id::TaskId;
use crate::index::NodeIx;
use crate::names::{END, START};
use crate::plan::{NodePlan, Plan};
use crate::state::TaskInput;
use crate::state::erased::{AnyUpdate, Snapshot, Writes};
use crate::wall::{Panicked, Walled, boxed, caught, words_of};

/// A spawned future that stops when its handle is dropped.
pub(crate) struct AbortOnDrop<T>(JoinHandle<T>);

impl<T: Send + 'static> AbortOnDrop<T> {
    pub(crate) fn spawn(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(future.in_current_span()))
    }
}

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How a task ended.
pub(crate) enum End {
    Done,
    /// Another task came to its result.
    Known,
    /// It asked, and waits for answers. Whether it had waited for something else before.
    Interrupted(Vec<Interrupt>, bool),
    /// It has a command for the graph around this one.
    Parent(ParentCommand),
    Failed(Error),
    /// An answer did not fit: as if it had not been given.
    BadAnswer(Error),
}

/// A task on its way, with everything it needs to run by itself.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) plan: Arc<Plan>,
    pub(crate) seed: Arc<StepSeed>,
    pub(crate) ix: usize,
    pub(crate) node: NodeIx,
    pub(crate) place: Place,
    pub(crate) id: TaskId,
    pub(crate) input: TaskInput,
    /// The state that conditional edges start from.
    pub(crate) state: Snapshot,
    pub(crate) timeout: Option<TimeoutPolicy>,
    pub(crate) failure: Option<NodeError>,
}

/// What became of a job.
pub(crate) struct Finished {
    pub(crate) ix: usize,
    pub(crate) writes: TaskWrites,
    pub(crate) end: End,
}

impl Job {
    pub(crate) async fn run(self) -> Finished {
        let taken = match &self.seed.permits {
            Some(permits) => Some(boxed(|| Slot::take(permits)).await),
            None => None,
        };
        let slot = taken.as_ref().map(|taken| &taken.0);
        let node = &self.plan.nodes[self.node];
        if node.blocking && self.timeout.is_some() {
            return Finished { ix: self.ix, writes: TaskWrites::default(), end: End::Failed(no_timeout(&node.name)) };
        }
        let pulse = self.timeout.map(|t| Arc::new(Pulse::new(t.heartbeat_only)));
        let mut context: Option<Context> = None;
        let mut failures = 0;
        loop {
            if let Some(pulse) = &pulse {
                pulse.heartbeat();
            }
            if let Some(cx) = &context {
                cx.task.begin_attempt(failures + 1);
            }
            let (writes, end) = self.attempt(&mut context, pulse.as_ref(), slot, failures + 1).await;
            let End::Failed(error) = end else { return Finished { ix: self.ix, writes, end } };
            let error = error.in_step(self.seed.step);
            failures += 1;
            let policy = match RetryPolicy::after(&node.retry, failures, &error, &called(&node.name)) {
                Ok(Some(policy)) => policy,
                Ok(None) => return Finished { ix: self.ix, writes, end: End::Failed(error) },
                Err(panicked) => {
                    let end = End::Failed(panicked.at(&node.name).in_step(self.seed.step));
                    return Finished { ix: self.ix, writes, end };
                }
            };
            let pause = policy.pause_with_jitter(failures);
            tracing::info!(node = &*node.name, attempt = failures, ?pause, %error, "the node failed and is run again");
            boxed(|| tokio::time::sleep(pause)).await;
            // A graph inside is told to go on, as in LangGraph; it starts over all the same, because
            // another attempt is another call of it, which has no checkpoint yet.
            if let Some(cx) = &context {
                cx.task.note_waiting();
                *lock(&cx.task.resuming) = Some(true);
            }
        }
    }

    async fn attempt(
        &self,
        context: &mut Option<Context>,
        pulse: Option<&Arc<Pulse>>,
        slot: Option<&Arc<Slot>>,
        attempt: u32,
    ) -> (TaskWrites, End) {
        let call = self.start(context, pulse, slot, attempt);
        let (context, run) = (context.as_ref(), &self.seed.run.cancel);
        let ended = if self.plan.nodes[self.node].blocking {
            boxed(|| on_blocking_pool(self.clone(), call, context.cloned())).await
        } else {
            let waiter = Waiter { task: context.map(|cx| &*cx.task), around: self.seed.around.as_deref() };
            let whole = Watched { future: std::pin::pin!(self.play(call, context)), cancel: None, run, waiter };
            if self.timeout.is_some() { boxed(|| in_time(whole, self.timeout, pulse)).await } else { whole.await }
        };
        ended.unwrap_or_else(|crash| match self.route(Err(crash), context) {
            Routed::Ended(writes, end) => (writes, end),
            Routed::Branches(..) => unreachable!("a node that crashed leads nowhere"),
        })
    }

    /// The node, and what follows from what it returned: writes, and its conditional edges.
    async fn play(&self, call: NodeCall, context: Option<&Context>) -> (TaskWrites, End) {
        let span = call.span.clone();
        match self.route(call.await, context) {
            Routed::Ended(writes, end) => (writes, end),
            Routed::Branches(mut writes, state) => {
                let (step, stop) = (self.seed.step, self.seed.stop);
                let paths = Paths { plan: &self.plan, node: self.node, step, stop, context };
                let end = boxed(|| paths.follow(&state, &mut writes).instrument(span)).await;
                (writes, end)
            }
        }
    }

    /// Calls the node.
    #[inline(never)]
    fn start(
        &self,
        context: &mut Option<Context>,
        pulse: Option<&Arc<Pulse>>,
        slot: Option<&Arc<Slot>>,
        attempt: u32,
    ) -> NodeCall {
        let node = &self.plan.nodes[self.node];
        let span = tracing::debug_span!("task", node = &*node.name, step = self.seed.step, attempt);
        let future = {
            let _entered = span.enter();
            let mut make = || {
                context
                    .get_or_insert_with(|| {
                        let named = (&node.name, self.place.clone());
                        self.seed.context(named, self.id, self.failure.clone(), pulse.cloned(), slot.cloned())
                    })
                    .clone()
            };
            let steps = (self.seed.step, self.seed.stop);
            let call = Call {
                state: Some(&self.state),
                present: Some(&self.seed.present),
                ..self.plan.call(self.node, self.input.given(), steps, &mut make)
            };
            let future = call_node(node, call);
            let listens = pulse.is_some() || self.seed.run.is_heard();
            let context = (listens || node.paths_ask).then(make);
            match context.filter(|_| listens) {
                Some(cx) => crate::current::inside(cx, future),
                None => future,
            }
        };
        NodeCall { future, span }
    }

    /// Turns what the node returned into writes.
    #[inline(never)]
    fn route(&self, result: NodeResult, context: Option<&Context>) -> Routed {
        let node = &self.plan.nodes[self.node];
        let mut writes = TaskWrites::default();
        match take_outcome(&self.plan, self.node, &self.state, result, context, &mut writes) {
            Err(end) => return Routed::Ended(writes, end),
            Ok(false) => return Routed::Ended(writes, End::Done),
            Ok(true) => {}
        }
        match local_state(&self.plan, &self.state, &writes.puts) {
            Ok(state) => Routed::Branches(writes, state),
            Err(error) => {
                if node.handler.is_some() {
                    // What cannot be merged is not left beside what the handler writes.
                    writes.puts.clear();
                }
                Routed::Ended(writes, End::Failed(error.in_writes_of(&[&node.name])))
            }
        }
    }
}

/// How far a task is on its way out.
enum Routed {
    Ended(TaskWrites, End),
    /// Its conditional edges are to be followed on this state.
    Branches(TaskWrites, Snapshot),
}

/// `compile` refuses the timeouts of nodes; this is for those of sends.
fn no_timeout(node: &str) -> Error {
    let words = format!(
        "a send to `{node}` has a timeout, but work on the blocking pool cannot be stopped; \
         send it without one, or do not run the node with `blocking`"
    );
    Error::invalid(words).at(node)
}

/// Turns what a node returned into writes. True if its conditional edges are to be followed.
pub(super) fn take_outcome(
    plan: &Plan,
    node: NodeIx,
    state: &Snapshot,
    result: NodeResult,
    context: Option<&Context>,
    writes: &mut TaskWrites,
) -> Result<bool, End> {
    note_answers(writes, context);
    let outcome = settle(result, context, &plan.nodes[node].name)?;
    let puts = admitted(plan, node, outcome.update, state).map_err(End::Failed)?;
    writes.puts = with_pushed(context, puts);
    plan.way_out(node, outcome.steer, writes)
}

/// The answers that an attempt used are part of what it wrote.
pub(super) fn note_answers(writes: &mut TaskWrites, context: Option<&Context>) {
    if let Some(answers) = context.and_then(|cx| lock(&cx.task.answers).to_save()) {
        writes.rest_mut().resume = Some(answers);
    }
}

pub(crate) type NodeResult = Result<AnyOutcome, Crash>;

/// How a node's future can end badly.
pub(crate) enum Crash {
    Error(BoxError),
    Panic(String),
    TimedOut(&'static str, Duration),
    Cancelled,
}

/// Starts a node; a panic while it takes its arguments is its error too.
#[inline]
pub(crate) fn call_node(node: &NodePlan, call: Call<'_>) -> crate::call::NodeFuture {
    let run = &node.run.run;
    caught(|| run(call)).unwrap_or_else(|panicked| Box::pin(async move { Err(Box::new(panicked) as BoxError) }))
}

/// A future whose panic is its error.
pub(super) async fn caught_future<T>(
    future: Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>,
) -> Result<T, BoxError> {
    Walled::new(future).await.unwrap_or_else(|panicked| Err(Box::new(panicked)))
}

/// Polls a node's future in its span; its panic is its error.
#[inline]
pub(crate) fn poll_node(
    future: &mut crate::call::NodeFuture,
    span: &tracing::Span,
    cx: &mut Poller<'_>,
) -> Poll<NodeResult> {
    let _entered = span.enter();
    match caught(|| future.as_mut().poll(cx)) {
        Ok(polled) => polled.map_err(Crash::Error),
        Err(panicked) => Poll::Ready(Err(Crash::Panic(panicked.0))),
    }
}

/// A node that was called: its panics become errors.
pub(crate) struct NodeCall {
    pub(crate) future: crate::call::NodeFuture,
    pub(crate) span: tracing::Span,
}

impl Future for NodeCall {
    type Output = NodeResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<NodeResult> {
        let this = self.get_mut();
        poll_node(&mut this.future, &this.span, cx)
    }
}

/// A future of a task: it stops when the run is cancelled.
pub(crate) struct Watched<'a, F> {
    pub(crate) future: F,
    pub(crate) cancel: Option<Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>>,
    /// The run's. Its token is made when something really waits.
    pub(crate) run: &'a Cancel,
    pub(crate) waiter: Waiter<'a>,
}

impl<T, F: Future<Output = T> + Unpin> Future for Watched<'_, F> {
    type Output = Result<T, Crash>;

    fn poll(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(result) = Pin::new(&mut this.future).poll(cx) {
            return Poll::Ready(Ok(result));
        }
        this.waiter.note();
        // Only a future that really waits pays for being cancelled.
        let cancel = this.cancel.get_or_insert_with(|| Box::pin(this.run.token().clone().cancelled_owned()));
        cancel.as_mut().poll(cx).map(|()| Err(Crash::Cancelled))
    }
}

async fn in_time<T>(
    future: Watched<'_, impl Future<Output = T> + Unpin>,
    timeout: Option<TimeoutPolicy>,
    pulse: Option<&Arc<Pulse>>,
) -> Result<T, Crash> {
    let (Some(timeout), Some(pulse)) = (timeout, pulse) else { return future.await };
    within(future, timeout, pulse).await.unwrap_or_else(|(what, limit)| Err(Crash::TimedOut(what, limit)))
}

/// What came of a future within its limits; else which of them was exceeded.
pub(super) async fn within<T>(
    mut future: impl Future<Output = T> + Unpin,
    timeout: TimeoutPolicy,
    pulse: &Pulse,
) -> Result<T, (&'static str, Duration)> {
    let mut run = std::pin::pin!(async {
        match timeout.run {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    });
    let mut idle = std::pin::pin!(async {
        match timeout.idle {
            Some(limit) => pulse.idle(limit).await,
            None => std::future::pending().await,
        }
    });
    std::future::poll_fn(|cx| {
        if let Poll::Ready(result) = Pin::new(&mut future).poll(cx) {
            return Poll::Ready(Ok(result));
        }
        if run.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(("run", timeout.run.unwrap_or_default())));
        }
        if idle.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(("idle", timeout.idle.unwrap_or_default())));
        }
        Poll::Pending
    })
    .await
}

async fn on_blocking_pool(job: Job, call: NodeCall, context: Option<Context>) -> Result<(TaskWrites, End), Crash> {
    let handle = tokio::runtime::Handle::current();
    // Made before the run goes on: it may be dropped before the job begins.
    job.seed.run.cancel.token();
    let level = crate::wall::level();
    let blocking = tokio::task::spawn_blocking(move || {
        let whole = async move {
            let played = std::pin::pin!(job.play(call, context.as_ref()));
            Watched { future: played, cancel: None, run: &job.seed.run.cancel, waiter: Waiter::default() }.await
        };
        let ended = handle.block_on(Walled::at_level(level, Box::pin(whole)));
        ended.unwrap_or_else(|panicked| Err(Crash::Panic(panicked.0)))
    });
    blocking.await.unwrap_or_else(|lost| match lost.try_into_panic() {
        Ok(panic) => Err(Crash::Panic(Panicked::of(panic).0)),
        Err(_) => Err(Crash::Cancelled),
    })
}

/// Tells a question, a command and a failure apart.
fn settle(result: NodeResult, context: Option<&Context>, node: &str) -> Result<AnyOutcome, End> {
    if let Some(cx) = context {
        if let Some(parent) = lock(&cx.task.answers).parent.take() {
            // It came out of a graph inside: it is for this graph.
            return parent_outcome(parent).map_err(|e| End::Failed(Error::node_failed(node, e.into())));
        }
        let error = if let Err(Crash::Error(error)) = &result { Some(error) } else { None };
        if let Some(end) = left_open(cx, node, || called(node), error) {
            return Err(end);
        }
    }
    match result {
        Ok(outcome) => Ok(outcome),
        Err(Crash::Error(error)) => Err(End::Failed(failure_of(error, node))),
        Err(Crash::Panic(text)) => Err(End::Failed(Error::panicked(node, &called(node), &text))),
        Err(Crash::TimedOut(what, limit)) => Err(End::Failed(Error::timed_out(node, &called(node), what, limit))),
        Err(Crash::Cancelled) => Err(End::Failed(Error::cancelled().at(node))),
    }
}

/// What a task's code left behind that has ended: a question, or an answer that does not fit.
pub(super) fn left_open(
    cx: &Context,
    node: &str,
    called: impl FnOnce() -> String,
    error: Option<&BoxError>,
) -> Option<End> {
    let mut answers = lock(&cx.task.answers);
    if let Some(open) = answers.open.take() {
        return Some(End::Interrupted(open, cx.task.has_waited()));
    }
    answers.bad_answer.then(|| {
        let why = error.map_or_else(|| "the answer does not fit the question".to_owned(), |error| words_of(&**error));
        End::BadAnswer(refused(&called(), node, &why))
    })
}

/// A node's error as the run's error: what a graph inside said keeps its kind.
fn failure_of(error: BoxError, node: &str) -> Error {
    failure_of_called(error, node, &called(node))
}

/// The same for what was called for a node.
pub(super) fn failure_of_called(error: BoxError, node: &str, called: &str) -> Error {
    let error = match error.downcast::<Error>() {
        Ok(inner) => return inner.at(node),
        Err(error) => error,
    };
    let error = match error.downcast::<InvalidUpdate>() {
        Ok(invalid) => {
            let (did, rest) = (format!("{called} returned an update"), format!(" that does not fit: {invalid}"));
            return Error::of_step(invalid.kind, did, &rest).at(node);
        }
        Err(error) => error,
    };
    let error = match error.downcast::<Panicked>() {
        Ok(panicked) => return Error::panicked(node, called, &panicked.0),
        Err(error) => error,
    };
    if error.is::<Interrupted>() {
        return refused(called, node, &error.to_string());
    }
    Error::failed(node, called, error)
}

/// What was called for a node cannot be served.
pub(super) fn refused(called: &str, node: &str, why: &str) -> Error {
    Error::of_step(ErrorKind::Invalid, called.to_owned(), &format!(": {why}")).at(node)
}

/// A command from a graph inside, as this graph's own.
fn parent_outcome(command: ParentCommand) -> Result<AnyOutcome, InvalidUpdate> {
    let steer = (!command.goto.is_empty()).then(|| Box::new(Steer { goto: command.goto.into(), ..Steer::default() }));
    Ok(AnyOutcome { update: command.update?, steer })
}

const ANOTHER_STATE: &str = "a command for the parent graph carries an update of another state than the parent's";

/// What a node returned as writes. Whole states in it, which come out of a graph inside, count for what they change; what
/// the node itself gave back is compared already.
#[inline]
fn admitted(plan: &Plan, node: NodeIx, update: Option<AnyUpdate>, state: &Snapshot) -> Result<Writes, Error> {
    let name = &plan.nodes[node].name;
    // Only a command out of a graph inside can be of another state than the graph's own nodes.
    let admitted = plan.ty.admit(update, Some(name)).map_err(|_| Error::node_failed(name, ANOTHER_STATE.into()))?;
    Ok(plan.ty.changes_to(state, admitted))
}

#[expect(clippy::inline_always, reason = "the way out of every node: as calls they are 1 % of a step")]
impl Plan {
    /// The way out of a node: completes the puts in `writes`, and adds where it wants to go and its static edges.
    /// True if its conditional edges are to be followed.
    #[inline(always)]
    pub(crate) fn way_out(
        &self,
        node: NodeIx,
        mut steer: Option<Box<Steer>>,
        writes: &mut TaskWrites,
    ) -> Result<bool, End> {
        if let Some(parent) = steer.as_mut().and_then(|steer| steer.parent.take()) {
            return Err(End::Parent(*parent));
        }
        let node = &self.nodes[node];
        if let Some(steer) = steer {
            for goto in steer.goto {
                if let Err(error) = self.go(goto, node, None, writes) {
                    writes.rest_mut().is_void = true;
                    return Err(End::Failed(error));
                }
            }
            match steer.next {
                Some(Next::End) => return Ok(false),
                Some(Next::Node(name)) => {
                    if !self.leads_to(&name, writes) {
                        writes.rest_mut().is_void = true;
                        return Err(End::Failed(self.no_such_next(&node.name, &name)));
                    }
                    return Ok(false);
                }
                None | Some(Next::Continue) => {}
            }
        }
        node.edges.iter().for_each(|c| writes.signals.push((*c, 0)));
        node.joins.iter().for_each(|join| writes.signals.push(*join));
        Ok(!node.branches.is_empty())
    }

    /// A node chose a successor that the graph does not have.
    #[cold]
    fn no_such_next(&self, node: &str, next: &str) -> Error {
        let hint = self.near(next);
        let (shown, advice) = match next {
            START => ("START".to_owned(), "name the node to go to".to_owned()),
            _ => (format!("{next:?}"), format!("add it with `add_node({next:?}, ..)`")),
        };
        let did = format!("{} returned `Next::node({shown})`", called(node));
        let rest = format!(", but the graph has no such node{hint}; {advice}, or end with `Next::End`");
        Error::of_step(ErrorKind::Invalid, did, &rest).at(node)
    }

    /// The known node whose name is nearest to this one.
    fn near(&self, name: &str) -> Hint {
        Hint::near(name, self.nodes.iter().filter(|n| n.wake.is_some()).map(|n| &*n.name))
    }

    /// Goes where a node wants to, or the path of a conditional edge of it.
    pub(super) fn go(
        &self,
        goto: Goto,
        from: &NodePlan,
        path: Option<&Path>,
        writes: &mut TaskWrites,
    ) -> Result<(), Error> {
        if let Some(why) = goto.mistake() {
            return Err(refused(&leader(from, path), &from.name, &why));
        }
        match goto {
            Goto::Send(send) => {
                self.check_send(&send, from, path, writes)?;
                writes.rest_mut().sends.push(send);
                Ok(())
            }
            Goto::Node(name) => self.go_to(&name, from, path, writes),
        }
    }

    /// What is sent must be for a node.
    fn check_send(
        &self,
        send: &crate::call::Send,
        from: &NodePlan,
        path: Option<&Path>,
        writes: &mut TaskWrites,
    ) -> Result<(), Error> {
        if let Some(to) = runs_nothing(&send.node) {
            let is_refused = match path {
                None => !from.hidden,
                Some(_) => to == "END" || !self.ignores_unknown,
            };
            return if is_refused { Err(sent_nowhere(&leader(from, path), &from.name, to)) } else { Ok(()) };
        }
        match self.node(&send.node) {
            Some(_) => Ok(()),
            None => self.no_such_target(&format!("{} sent to", leader(from, path)), &from.name, &send.node, writes),
        }
    }

    #[inline(always)]
    pub(super) fn go_to(
        &self,
        name: &str,
        from: &NodePlan,
        path: Option<&Path>,
        writes: &mut TaskWrites,
    ) -> Result<(), Error> {
        if !self.leads_to(name, writes) {
            let verb = if path.is_some() { "led to" } else { "goes to" };
            self.no_such_target(&format!("{} {verb}", leader(from, path)), &from.name, name, writes)?;
            writes.done = true;
        }
        Ok(())
    }

    /// A node that cannot go where it wants to has failed, and what it wrote is dropped: it runs again.
    #[cold]
    fn no_such_target(&self, did: &str, from: &str, to: &str, writes: &mut TaskWrites) -> Result<(), Error> {
        self.unknown_target(did, from, to).inspect_err(|_| writes.rest_mut().is_void = true)
    }

    /// Somebody chose a node that the graph does not have: an error, unless the graph passes such names over.
    #[cold]
    pub(crate) fn unknown_target(&self, did: &str, from: &str, to: &str) -> Result<(), Error> {
        if self.ignores_unknown {
            tracing::warn!(
                graph = &*self.name,
                from,
                node = to,
                "{did} a node that the graph does not have; it is ignored"
            );
            return Ok(());
        }
        let (shown, advice) = match to {
            START => ("`START`".to_owned(), "name a node".to_owned()),
            END => ("`END`".to_owned(), "name a node".to_owned()),
            _ => (format!("`{to}`"), format!("add it with `add_node({to:?}, ..)`")),
        };
        let rest = format!(
            ", but the graph has no such node{}; {advice}, or let the graph ignore such names with \
             `ignore_unknown_targets(true)`",
            self.near(to)
        );
        Err(Error::of_step(ErrorKind::Invalid, format!("{did} {shown}"), &rest).at(from))
    }

    /// Wakes the node with this name; false if there is none.
    #[inline(always)]
    fn leads_to(&self, name: &str, writes: &mut TaskWrites) -> bool {
        if name == END {
            return true;
        }
        let wake = self.node(name).and_then(|n| self.nodes[n].wake);
        wake.inspect(|channel| writes.signals.push((*channel, 0))).is_some()
    }
}

/// How errors speak of a node that chose where to go, or of a conditional edge of it.
#[cold]
pub(super) fn leader(node: &NodePlan, path: Option<&Path>) -> String {
    match path {
        None if node.hidden => "the command that the run began with".to_owned(),
        None => called(&node.name),
        Some(path) => edge_of(path.name.as_deref(), &node.name),
    }
}

/// How errors speak of a conditional edge.
pub(super) fn edge_of(path: Option<&str>, from: &str) -> String {
    let from = if from == START { "START" } else { from };
    match path {
        Some(path) => format!("the conditional edge `{path}` of `{from}`"),
        None => format!("a conditional edge of `{from}`"),
    }
}

/// The name by which users know a place that nothing can be sent to.
fn runs_nothing(name: &str) -> Option<&'static str> {
    match name {
        START => Some("START"),
        END => Some("END"),
        _ => None,
    }
}

/// What was called for a node sent something to where nothing runs.
#[cold]
pub(super) fn sent_nowhere(called: &str, node: &str, to: &str) -> Error {
    let rest = format!("; `{to}` runs nothing, send to a node");
    Error::of_step(ErrorKind::InvalidUpdate, format!("{called} sent to `{to}`"), &rest).at(node)
}

/// A task of the step as a job of its own.
pub(crate) fn job_of(
    plan: &Arc<Plan>,
    seed: &Arc<StepSeed>,
    state: &Snapshot,
    (ix, place): (usize, Place),
    task: &Task,
    id: TaskId,
) -> Job {
    let node = &plan.nodes[task.node];
    Job {
        plan: plan.clone(),
        seed: seed.clone(),
        ix,
        node: task.node,
        place,
        id,
        input: task.input(state),
        state: state.clone(),
        timeout: task.timeout.as_deref().copied().or(node.timeout),
        failure: task.failure.as_deref().cloned(),
    }
}
