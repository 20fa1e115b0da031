//! One task from its first attempt to its last: retries, timeouts, panics, and the way out of the node.
//!
//! An attempt is the node and then its conditional edges: whatever bounds or watches the one does so with the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::apply::put_into;
use super::paths::Paths;
use super::seed::StepSeed;
use super::tasks::Task;
use super::writes::TaskWrites;
use crate::checkpoint::Codec;
use crate::context::{Context, Waiter, lock};
use crate::error::{BoxError, Error, ErrorKind, Hint, InvalidUpdate, called};
use crate::id::TaskId;
use crate::node::{
    Call, Goto, Interrupt, Interrupted, Next, NodeError, Outcome, ParentCommand, RetryPolicy, Steer, TaskInput,
    TimeoutPolicy,
};
use crate::plan::{END, Plan, START};
use crate::state::{Put, State, changes_to};
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

/// When a node last showed that it is alive.
pub(crate) struct Pulse {
    last: Mutex<Instant>,
    heartbeat_only: bool,
}

impl Pulse {
    fn new(heartbeat_only: bool) -> Self {
        Self { last: Mutex::new(Instant::now()), heartbeat_only }
    }

    /// Anything that the node does.
    pub(crate) fn sign_of_life(&self) {
        if !self.heartbeat_only {
            self.heartbeat();
        }
    }

    pub(crate) fn heartbeat(&self) {
        *lock(&self.last) = Instant::now();
    }

    /// Ends when there was no sign of life for `limit`.
    async fn idle(&self, limit: Duration) {
        loop {
            let until = *lock(&self.last) + limit;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
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
pub(crate) struct Job<S: State> {
    pub(crate) plan: Arc<Plan<S>>,
    pub(crate) codec: Option<&'static Codec<S>>,
    pub(crate) seed: Arc<StepSeed>,
    pub(crate) ix: usize,
    pub(crate) node: usize,
    pub(crate) id: TaskId,
    pub(crate) input: TaskInput<S>,
    /// The state that conditional edges start from.
    pub(crate) state: Arc<S>,
    pub(crate) timeout: Option<TimeoutPolicy>,
    pub(crate) failure: Option<NodeError>,
}

impl<S: State> Clone for Job<S> {
    fn clone(&self) -> Self {
        Self {
            plan: self.plan.clone(),
            codec: self.codec,
            seed: self.seed.clone(),
            ix: self.ix,
            node: self.node,
            id: self.id,
            input: self.input.clone(),
            state: self.state.clone(),
            timeout: self.timeout,
            failure: self.failure.clone(),
        }
    }
}

/// What became of a job.
pub(crate) struct Finished<S: State> {
    pub(crate) ix: usize,
    pub(crate) writes: TaskWrites<S>,
    pub(crate) end: End,
}

impl<S: State> Job<S> {
    pub(crate) async fn run(self) -> Finished<S> {
        let _permit = match &self.seed.permits {
            Some(permits) => boxed(|| permits.clone().acquire_owned()).await.ok(),
            None => None,
        };
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
            let (writes, end) = self.attempt(&mut context, pulse.as_ref(), failures + 1).await;
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
        attempt: u32,
    ) -> (TaskWrites<S>, End) {
        let call = self.start(context, pulse, attempt);
        let (context, token) = (context.as_ref(), self.seed.run.cancel.token());
        let ended = if self.plan.nodes[self.node].blocking {
            boxed(|| on_blocking_pool(self.clone(), call, context.cloned(), token)).await
        } else {
            let waiter = Waiter { task: context.map(|cx| &*cx.task), around: self.seed.around.as_deref() };
            let whole = Watched { future: std::pin::pin!(self.play(call, context)), cancel: None, token, waiter };
            if self.timeout.is_some() { boxed(|| in_time(whole, self.timeout, pulse)).await } else { whole.await }
        };
        ended.unwrap_or_else(|crash| match self.route(Err(crash), context) {
            Routed::Ended(writes, end) => (writes, end),
            Routed::Branches(..) => unreachable!("a node that crashed leads nowhere"),
        })
    }

    /// The node, and what follows from what it returned: writes, and its conditional edges.
    async fn play(&self, call: NodeCall<S>, context: Option<&Context>) -> (TaskWrites<S>, End) {
        let span = call.span.clone();
        match self.route(call.await, context) {
            Routed::Ended(writes, end) => (writes, end),
            Routed::Branches(mut writes, state) => {
                let (step, stop) = (self.seed.step, self.seed.stop);
                let paths = Paths { plan: &self.plan, node: self.node, step, stop, context };
                let end = boxed(|| paths.follow(state, &mut writes).instrument(span)).await;
                (writes, end)
            }
        }
    }

    /// Calls the node.
    #[inline(never)]
    fn start(&self, context: &mut Option<Context>, pulse: Option<&Arc<Pulse>>, attempt: u32) -> NodeCall<S> {
        let node = &self.plan.nodes[self.node];
        let span = tracing::debug_span!("task", node = &*node.name, step = self.seed.step, attempt);
        let future = {
            let _entered = span.enter();
            let mut make = || {
                context
                    .get_or_insert_with(|| self.seed.context(&node.name, self.id, self.failure.clone(), pulse.cloned()))
                    .clone()
            };
            let call = Call {
                plan: &self.plan,
                node: self.node,
                input: self.input.given(),
                state: Some(&self.state),
                present: Some(&self.seed.present),
                codec: self.codec,
                step: self.seed.step,
                stop: self.seed.stop,
                context: &mut make,
            };
            let future = call_node(&self.plan, call);
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
    fn route(&self, result: NodeResult<S>, context: Option<&Context>) -> Routed<S> {
        let node = &self.plan.nodes[self.node];
        let outcome = match settle(result, context, &node.name) {
            Ok(outcome) => outcome,
            Err(end) => return Routed::Ended(with_answers(TaskWrites::default(), context), end),
        };
        // Of a command out of a graph inside; what the node itself gave back is compared already.
        let puts = changes_to(&*self.state, &self.plan.schema, outcome.puts);
        let mut writes = with_answers(TaskWrites::of_puts(puts), context);
        match self.plan.way_out(self.node, outcome.steer, &mut writes) {
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
enum Routed<S: State> {
    Ended(TaskWrites<S>, End),
    /// Its conditional edges are to be followed on this state.
    Branches(TaskWrites<S>, Arc<S>),
}

/// `compile` refuses the timeouts of nodes; this is for those of sends.
fn no_timeout(node: &str) -> Error {
    let words = format!(
        "a send to `{node}` has a timeout, but work on the blocking pool cannot be stopped; \
         send it without one, or do not run the node with `blocking`"
    );
    Error::invalid(words).at(node)
}

/// The state with one task's own writes in it.
pub(crate) fn local_state<S: State>(
    plan: &Plan<S>,
    state: &Arc<S>,
    puts: &[Put<S::Write>],
) -> Result<Arc<S>, InvalidUpdate> {
    if puts.is_empty() && plan.transient.is_empty() {
        return Ok(state.clone());
    }
    let mut local = copy_of(&**state)?;
    put_into(plan, &mut local, puts)?;
    Ok(Arc::new(local))
}

/// A copy of the state, to change.
pub(crate) fn copy_of<S: State>(state: &S) -> Result<S, InvalidUpdate> {
    caught(|| S::clone(state)).map_err(|panicked| InvalidUpdate::state_panicked(&panicked))
}

/// The answers that an attempt used are part of what it wrote.
pub(crate) fn with_answers<S: State>(mut writes: TaskWrites<S>, context: Option<&Context>) -> TaskWrites<S> {
    note_answers(&mut writes, context);
    writes
}

pub(super) fn note_answers<S: State>(writes: &mut TaskWrites<S>, context: Option<&Context>) {
    if let Some(answers) = context.and_then(|cx| lock(&cx.task.answers).to_save()) {
        writes.rest_mut().resume = Some(answers);
    }
}

pub(crate) type NodeResult<S> = Result<Outcome<S>, Crash>;

/// How a node's future can end badly.
pub(crate) enum Crash {
    Error(BoxError),
    Panic(String),
    TimedOut(&'static str, Duration),
    Cancelled,
}

/// Starts a node; a panic while it takes its arguments is its error too.
#[inline]
pub(crate) fn call_node<S: State>(plan: &Plan<S>, call: Call<'_, S>) -> crate::node::NodeFuture<S> {
    let run = &plan.nodes[call.node].run.run;
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
pub(crate) fn poll_node<S: State>(
    future: &mut crate::node::NodeFuture<S>,
    span: &tracing::Span,
    cx: &mut Poller<'_>,
) -> Poll<NodeResult<S>> {
    let _entered = span.enter();
    match caught(|| future.as_mut().poll(cx)) {
        Ok(polled) => polled.map_err(Crash::Error),
        Err(panicked) => Poll::Ready(Err(Crash::Panic(panicked.0))),
    }
}

/// A node that was called: its panics become errors.
pub(crate) struct NodeCall<S: State> {
    pub(crate) future: crate::node::NodeFuture<S>,
    pub(crate) span: tracing::Span,
}

impl<S: State> Future for NodeCall<S> {
    type Output = NodeResult<S>;

    fn poll(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<NodeResult<S>> {
        let this = self.get_mut();
        poll_node(&mut this.future, &this.span, cx)
    }
}

/// A future of a task: it stops when the run is cancelled.
pub(crate) struct Watched<'a, F> {
    pub(crate) future: F,
    pub(crate) cancel: Option<Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>>,
    pub(crate) token: &'a CancellationToken,
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
        let cancel = this.cancel.get_or_insert_with(|| Box::pin(this.token.clone().cancelled_owned()));
        cancel.as_mut().poll(cx).map(|()| Err(Crash::Cancelled))
    }
}

async fn in_time<T>(
    mut future: Watched<'_, impl Future<Output = T> + Unpin>,
    timeout: Option<TimeoutPolicy>,
    pulse: Option<&Arc<Pulse>>,
) -> Result<T, Crash> {
    let (Some(timeout), Some(pulse)) = (timeout, pulse) else { return future.await };
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
            return Poll::Ready(result);
        }
        if run.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Crash::TimedOut("run", timeout.run.unwrap_or_default())));
        }
        if idle.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Crash::TimedOut("idle", timeout.idle.unwrap_or_default())));
        }
        Poll::Pending
    })
    .await
}

async fn on_blocking_pool<S: State>(
    job: Job<S>,
    call: NodeCall<S>,
    context: Option<Context>,
    cancel: &CancellationToken,
) -> Result<(TaskWrites<S>, End), Crash> {
    let (handle, token) = (tokio::runtime::Handle::current(), cancel.clone());
    let level = crate::wall::level();
    let blocking = tokio::task::spawn_blocking(move || {
        let whole = async move {
            let played = std::pin::pin!(job.play(call, context.as_ref()));
            Watched { future: played, cancel: None, token: &token, waiter: Waiter::default() }.await
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
pub(crate) fn settle<S: State>(
    result: NodeResult<S>,
    context: Option<&Context>,
    node: &str,
) -> Result<Outcome<S>, End> {
    if let Some(cx) = context {
        if let Some(parent) = lock(&cx.task.answers).parent.take() {
            // It came out of a graph inside: it is for this graph.
            return parent_outcome(parent).map_err(|e| End::Failed(Error::node_failed(node, e)));
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
        Err(Crash::TimedOut(what, limit)) => Err(End::Failed(Error::timed_out(node, what, limit))),
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
fn parent_outcome<S: State>(command: ParentCommand) -> Result<Outcome<S>, BoxError> {
    let update = match command.update.map(|u| u.downcast::<crate::Update<S>>()) {
        None => crate::Update::new(),
        Some(Ok(update)) => *update,
        Some(Err(_)) => {
            return Err("a command for the parent graph carries an update of another state than the parent's".into());
        }
    };
    Ok(Outcome::going(update.into_puts()?, command.goto.into()))
}

#[expect(clippy::inline_always, reason = "the way out of every node: as calls they are 1 % of a step")]
impl<S: State> Plan<S> {
    /// The way out of a node: completes the puts in `writes`, and adds where it wants to go and its static edges.
    /// True if its conditional edges are to be followed.
    #[inline(always)]
    pub(crate) fn way_out(
        &self,
        node: usize,
        mut steer: Option<Box<Steer>>,
        writes: &mut TaskWrites<S>,
    ) -> Result<bool, End> {
        if let Some(parent) = steer.as_mut().and_then(|steer| steer.parent.take()) {
            return Err(End::Parent(*parent));
        }
        for put in &mut writes.puts {
            S::prepare(&self.schema, &mut put.write);
        }
        let node = &self.nodes[node];
        if let Some(steer) = steer {
            for goto in steer.goto {
                if let Some(why) = goto.mistake() {
                    return Err(failed_to_route(refused(&called(&node.name), &node.name, &why), writes));
                }
                if let Goto::Send(send) = &goto
                    && !node.hidden
                    && let Some(to) = runs_nothing(&send.node)
                {
                    return Err(failed_to_route(sent_nowhere(&called(&node.name), &node.name, to), writes));
                }
                self.go(goto, writes);
            }
            match steer.next {
                Some(Next::End) => return Ok(false),
                Some(Next::Node(name)) => {
                    if !self.leads_to(&name, writes) {
                        return Err(failed_to_route(self.no_such_next(&node.name, &name), writes));
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
        let known = self.nodes.iter().filter(|n| n.wake.is_some()).map(|n| &*n.name);
        let hint = Hint::near(next, known);
        let (shown, advice) = match next {
            START => ("START".to_owned(), "name the node to go to".to_owned()),
            _ => (format!("{next:?}"), format!("add it with `add_node({next:?}, ..)`")),
        };
        let did = format!("{} returned `Next::node({shown})`", called(node));
        let rest = format!(", but the graph has no such node{hint}; {advice}, or end with `Next::End`");
        Error::of_step(ErrorKind::Invalid, did, &rest).at(node)
    }

    pub(super) fn go(&self, goto: Goto, writes: &mut TaskWrites<S>) {
        match goto {
            Goto::Send(send) => writes.rest_mut().sends.push(send),
            Goto::Node(name) => self.go_to(&name, writes),
        }
    }

    #[inline(always)]
    pub(super) fn go_to(&self, name: &str, writes: &mut TaskWrites<S>) {
        if !self.leads_to(name, writes) {
            tracing::warn!(node = name, "there is no such node to go to");
            writes.done = true;
        }
    }

    /// Wakes the node with this name; false if there is none.
    #[inline(always)]
    fn leads_to(&self, name: &str, writes: &mut TaskWrites<S>) -> bool {
        if name == END {
            return true;
        }
        let wake = self.node(name).and_then(|n| self.nodes[n].wake);
        wake.inspect(|channel| writes.signals.push((*channel, 0))).is_some()
    }
}

/// A node that cannot go where it wants to has failed, and what it wrote is dropped: it runs again.
#[cold]
fn failed_to_route<S: State>(error: Error, writes: &mut TaskWrites<S>) -> End {
    writes.puts.clear();
    writes.signals.clear();
    if !writes.sends().is_empty() {
        writes.rest_mut().sends.clear();
    }
    End::Failed(error)
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
pub(crate) fn job_of<S: State>(
    plan: &Arc<Plan<S>>,
    codec: Option<&'static Codec<S>>,
    seed: &Arc<StepSeed>,
    state: &Arc<S>,
    ix: usize,
    task: &mut Task<S>,
    id: TaskId,
) -> Job<S> {
    let node = &plan.nodes[task.node];
    Job {
        plan: plan.clone(),
        codec,
        seed: seed.clone(),
        ix,
        node: task.node,
        id,
        input: task.input.clone().expect("a task keeps its input until it runs"),
        state: state.clone(),
        timeout: task.timeout.as_deref().copied().or(node.timeout),
        failure: task.failure.as_deref().cloned(),
    }
}
