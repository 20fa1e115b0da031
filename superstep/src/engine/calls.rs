//! Functions called inside a node whose results are kept: the tasks of workflows made of functions.
//!
//! A call is named by its caller, its place among the caller's calls, and the checkpoint. A call
//! that finished before a pause, a failure or a restart gives its result without running again.

mod pushed;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use tracing::Instrument;

use super::attempt::{caught_future, within};
use super::cached::key_text;
use super::run::Run;
use super::save::Saver;
use super::seed::{CallLimits, StepSeed};
use super::writes::{Rest, TaskWrites};
use crate::cache::{Cache, CacheKey, Flight, Turn, take_off};
use crate::call::{
    CallFn, CallFuture, CallHost, CallOptions, Context, Interrupted, PUSH, Pulse, PushedMessage, RetryPolicy, Slot,
    Waiter, lock,
};
use crate::checkpoint::Durability;
use crate::error::{BoxError, Error, ErrorKind, TaskError};
use crate::id::{CheckpointId, TaskId};
use crate::index::NodeIx;
use crate::message::Message;
use crate::plan::Plan;
use crate::state::erased::Writes;
use crate::stream::{DebugEvent, EventData, Mode, NodeUpdate, RawEvent, TaskEnd, TaskStart};
use crate::view::{Fields, ShownInput, ShownWrites};
use crate::wall::{Panicked, Walled, boxed, words_of};

pub(super) use pushed::CallWrites;

pub(crate) struct CallDesk {
    plan: Arc<Plan>,
    cache: Option<Arc<dyn Cache>>,
    saver: Option<Saver>,
    saved: Option<CheckpointId>,
    checkpoint: CheckpointId,
    namespace: Vec<String>,
    /// What calls gave before.
    known: Vec<(TaskId, TaskWrites)>,
    done: Mutex<Vec<(TaskId, TaskWrites)>>,
    /// The messages that calls pushed, to be merged at the end of the step.
    pushed: Mutex<Vec<CallWrites>>,
    /// Enough of the step's seed to make contexts for calls. It does not lead back to the desk.
    seed: OnceLock<StepSeed>,
    nested: bool,
}

impl CallDesk {
    pub(super) fn new(run: &Run, checkpoint: CheckpointId) -> Arc<Self> {
        let known = if run.replaying { Vec::new() } else { run.pending.tasks.clone().into_iter().collect() };
        Arc::new(Self {
            plan: run.plan.clone(),
            cache: run.cache().cloned(),
            saver: run.saver.clone(),
            saved: run.saved,
            checkpoint,
            namespace: if run.config.namespace.is_empty() {
                Vec::new()
            } else {
                run.config.namespace.split('|').map(str::to_owned).collect()
            },
            known,
            done: Mutex::default(),
            pushed: Mutex::default(),
            seed: OnceLock::new(),
            nested: run.config.nested,
        })
    }

    /// Lets the desk make contexts for calls.
    pub(super) fn set_seed(&self, seed: &StepSeed) {
        let _already = self.seed.set(seed.for_calls());
    }

    /// What calls came to in this step, for the end of the run to save.
    pub(super) fn finished(&self) -> Vec<(TaskId, TaskWrites)> {
        lock(&self.done).clone()
    }

    async fn save(&self, call: &OneCall, writes: &mut TaskWrites) -> Result<(), Error> {
        self.save_record(call.id, writes).await.map_err(|error| {
            let called = format!("task `{}`", call.name);
            error.written_by(&call.name, &called).in_step(call.caller.task.step)
        })
    }

    async fn save_record(&self, id: TaskId, writes: &mut TaskWrites) -> Result<(), Error> {
        lock(&self.done).push((id, writes.clone()));
        let (Some(saver), Some(saved)) = (&self.saver, self.saved) else { return Ok(()) };
        if saver.durability == Durability::Exit {
            return Ok(());
        }
        let record = writes.record(&self.plan, &saver.scribe, id, "".into())?;
        Ok(saver.put_writes(saved, record).await?)
    }

    async fn show(&self, cx: &Context, mode: Mode, make: impl Fn() -> EventData) {
        let Some(sink) = cx.task.run.sink.as_ref().filter(|s| !self.nested || s.subgraphs) else { return };
        let send = |mode, data| sink.send(RawEvent::new(self.namespace.clone(), mode, cx.task.step, data));
        if sink.wants(mode) {
            send(mode, make()).await;
        }
        if mode == Mode::Tasks && sink.wants(Mode::Debug) {
            let debug = DebugEvent { step: cx.task.step, at: std::time::SystemTime::now(), event: Box::new(make()) };
            send(Mode::Debug, EventData::Debug(debug)).await;
        }
    }

    fn shown(&self, returned: Option<Value>) -> ShownWrites {
        ShownWrites::new(Writes::default(), Fields::none(), returned, &self.plan.ty)
    }

    /// What a call returned, beside what it pushed.
    fn shown_result(&self, writes: &TaskWrites) -> ShownWrites {
        let returned = writes.returned().cloned();
        ShownWrites::new(writes.puts.clone(), self.plan.shown.clone(), returned, &self.plan.ty)
    }

    /// Saves and shows what a call came to. With durability `sync`, what is shown must be saved already.
    async fn finish(&self, call: &OneCall, mut writes: TaskWrites, cached: bool) -> Result<(), Error> {
        if self.saver.as_ref().is_some_and(|saver| saver.durability == Durability::Sync) {
            self.save(call, &mut writes).await?;
            self.show_end(call, &writes, cached).await;
        } else {
            self.show_end(call, &writes, cached).await;
            self.save(call, &mut writes).await?;
        }
        self.note_pushed(call, &writes);
        Ok(())
    }

    async fn show_end(&self, call: &OneCall, writes: &TaskWrites, cached: bool) {
        let Some(came_to) = writes.rest() else { return };
        if came_to.returned.is_some() {
            let update = || {
                let (node, writes) = (call.name.to_string(), self.shown(came_to.returned.clone()));
                EventData::Updates(NodeUpdate { node, step: call.caller.task.step, task: call.id, cached, writes })
            };
            self.show(&call.caller, Mode::Updates, update).await;
        }
        // The caller asks in the call's name, and shows the question.
        if !cached && came_to.interrupts.is_none() {
            let end = || TaskEnd {
                id: call.id,
                name: call.name.to_string(),
                error: came_to.error.clone(),
                interrupts: came_to.interrupts.clone().unwrap_or_default(),
                writes: self.shown_result(writes),
            };
            self.show(&call.caller, Mode::Tasks, || EventData::TaskEnd(end())).await;
        }
    }

    async fn run_call(self: Arc<Self>, call: OneCall) -> Result<Value, BoxError> {
        let cache = self.cache_for(&call)?;
        self.show(&call.caller, Mode::Tasks, || EventData::TaskStart(call.start())).await;
        if let Some((value, writes)) = self.known_result(call.id) {
            self.note_pushed(&call, &writes);
            return Ok(value);
        }
        // Held until the result is in the cache.
        let _flight = match &cache {
            Some((cache, key)) => first_or_waited(&**cache, key).await,
            None => None,
        };
        if let Some((cache, key)) = &cache
            && let Some(bytes) = cache.get(std::slice::from_ref(key)).await?.into_iter().next().flatten()
        {
            let mut writes = self.cached_writes(&bytes)?;
            let value = writes.rest_mut().returned.clone().unwrap_or_default();
            self.finish(&call, writes, true).await?;
            return Ok(value);
        }
        if let Some(sink) = &call.caller.task.run.sink {
            sink.give_reader_its_turn().await;
        }
        let taken = match &self.seed().permits {
            Some(permits) => Some(Slot::take(permits).await),
            None => None,
        };
        let cx = self.context_of(&call, taken.as_ref().map(|taken| taken.0.clone()));
        let result = call.attempts(&cx).await;
        drop(taken);
        let pushed = cx.take_pushed();
        let kept = if cache.is_some() { pushed.clone() } else { Writes::default() };
        let value = self.settle(&call, &cx, (result, pushed)).await?;
        if let Some((cache, key)) = cache {
            let ttl = call.options.cache.flatten();
            let bytes = self.cached_bytes(&value, &kept).map_err(|why| {
                let words = format!("the result of task `{}` cannot be kept in the cache: {why}", call.name);
                Error::new(ErrorKind::Store, words).at(&call.name)
            })?;
            if let Some(bytes) = bytes {
                cache.set(vec![(key, bytes.into(), ttl)]).await?;
            }
        }
        Ok(value)
    }

    /// Where the results of a call are kept, if they are, and by which key.
    fn cache_for(&self, call: &OneCall) -> Result<Option<(Arc<dyn Cache>, CacheKey)>, Error> {
        match (&self.cache, call.options.cache) {
            (_, None) => Ok(None),
            (Some(cache), Some(_)) => Ok(Some((cache.clone(), call.cache_key()))),
            (None, Some(_)) => {
                let name = &call.name;
                let words = format!(
                    "the results of task `{name}` are cached, but there is no cache; give one with `.cache(..)`"
                );
                Err(Error::invalid(words).at(name))
            }
        }
    }

    /// What the call gave before.
    fn known_result(&self, id: TaskId) -> Option<(Value, TaskWrites)> {
        let of = |list: &[(TaskId, TaskWrites)]| {
            let own = list.iter().filter(|(task, _)| *task == id);
            own.map(|(_, writes)| writes).find_map(|writes| Some((writes.returned()?.clone(), writes.clone())))
        };
        of(&self.known).or_else(|| of(&lock(&self.done)))
    }

    fn seed(&self) -> &StepSeed {
        self.seed.get().expect("the desk got its seed when it was made")
    }

    fn context_of(self: &Arc<Self>, call: &OneCall, slot: Option<Arc<Slot>>) -> Context {
        let namespace = format!("{}:{}", call.namespace, call.id);
        let pulse = call.options.timeout.map(|timeout| Arc::new(Pulse::new(timeout.heartbeat_only)));
        let limits = CallLimits { pulse, slot };
        self.seed().context_of_call(
            namespace,
            (&call.name, call.nth),
            call.id,
            self.clone(),
            call.caller.task.clone(),
            limits,
        )
    }

    /// Tells a question, a value and a failure apart; each is shown and saved.
    async fn settle(
        &self,
        call: &OneCall,
        cx: &Context,
        (result, pushed): (Result<Value, BoxError>, Writes),
    ) -> Result<Value, BoxError> {
        let (open, resume) = {
            let mut answers = lock(&cx.task.answers);
            (answers.open.take(), answers.to_save())
        };
        if let Some(open) = open {
            // The caller asks in the call's name: the question is one and the same.
            let asked = Rest { interrupts: Some(open.clone()), resume, ..Rest::default() };
            self.finish(call, TaskWrites::only(asked), false).await?;
            lock(&call.caller.task.answers).wait_inside(call.caller.scope.as_deref(), call.place, open);
            return Err("the call waits for an answer".into());
        }
        let came_to = match &result {
            Ok(value) => Rest { returned: Some(value.clone()), resume, ..Rest::default() },
            Err(error) => Rest { error: Some(failure_text(error)), resume, ..Rest::default() },
        };
        let mut writes = TaskWrites::only(came_to);
        if result.is_ok() {
            writes.puts = pushed;
        }
        self.finish(call, writes, false).await?;
        result
    }
}

impl CallHost for CallDesk {
    fn call(
        self: Arc<Self>,
        caller: Context,
        ix: usize,
        name: Arc<str>,
        input: Value,
        options: CallOptions,
        run: CallFn,
    ) -> CallFuture {
        let namespace = format!("{}|{name}", caller.task.namespace);
        let step = caller.task.step.to_string();
        let (path, place) = (format!("~__pregel_pull, {}", caller.task.node), ix.to_string());
        let parts = [&namespace, &step, &*name, PUSH, &path, &caller.task.id.to_string(), &place];
        let id = TaskId::derive(Some(self.checkpoint), &parts);
        let (inside, begun) = (caller.task.enter(), lock(&caller.task.answers).begin());
        let (level, task, in_step) = (caller.task.level, name.clone(), caller.task.step);
        let under_way = caller.task.slot.as_ref().map(Slot::begin_call);
        let call = OneCall { caller, place: begun, nth: ix, name, id, namespace, input, options, run };
        let call = Walled::at_level(level, boxed(|| self.run_call(call)));
        Box::pin(async move {
            let _until_it_ends = (inside, under_way);
            call.await.unwrap_or_else(|panicked| {
                let error = Error::panicked(&task, &format!("task `{task}`"), &panicked.0);
                Err(Box::new(error.in_step(in_step)))
            })
        })
    }

    fn push(&self, field: Option<&str>, message: Message) -> Result<PushedMessage, Error> {
        let field = self.field_of_messages(field)?;
        let name = self.plan.fields()[field].name();
        let Some(write) = self.plan.ty.message_write(field, message) else {
            let words = format!("field `{name}` holds no messages of type `Message`; nothing can be pushed to it");
            return Err(Error::invalid(words));
        };
        let shown = write.places().first().map(|place| self.plan.ty.messages(&write, place));
        let whole = shown.and_then(|shown| shown.into_iter().next()).and_then(|(_, whole)| whole);
        Ok(PushedMessage { write, whole })
    }

    fn node_metadata(&self, node: NodeIx) -> &BTreeMap<String, Value> {
        &self.plan.nodes[node].metadata
    }

    fn triggers(&self, node: NodeIx) -> &[String] {
        &self.plan.nodes[node].trigger_names
    }
}

/// Waits while another computes the result of `key`. The first there is gets the right to do so.
async fn first_or_waited(cache: &dyn Cache, key: &CacheKey) -> Option<Flight> {
    match take_off(cache, key) {
        Turn::First(flight) => Some(flight),
        Turn::Waits(landing) => {
            landing.wait().await;
            None
        }
    }
}

/// One call of a task.
struct OneCall {
    caller: Context,
    /// Its place among what its caller begins.
    place: usize,
    /// Its place among the calls of its caller.
    nth: usize,
    name: Arc<str>,
    id: TaskId,
    namespace: String,
    input: Value,
    options: CallOptions,
    run: CallFn,
}

impl OneCall {
    fn start(&self) -> TaskStart {
        TaskStart {
            id: self.id,
            name: self.name.to_string(),
            triggers: vec![PUSH.to_owned()],
            metadata: (**self.caller.task.metadata()).clone(),
            tags: self.caller.tags().to_vec(),
            input: ShownInput::Value(self.input.clone()),
        }
    }

    fn cache_key(&self) -> CacheKey {
        let key = key_text(self.options.made_of, self.input.to_string().as_bytes());
        CacheKey { namespace: vec!["superstep".to_owned(), "call".to_owned(), self.name.to_string()], key }
    }

    /// Runs it until it succeeds, asks, or has no attempts left.
    async fn attempts(&self, cx: &Context) -> Result<Value, BoxError> {
        let mut failures = 0;
        loop {
            if failures > 0 {
                cx.task.begin_attempt(failures + 1);
            }
            cx.heartbeat();
            let error = match self.attempt(cx).await {
                Ok(value) => return Ok(value),
                Err(_) if lock(&cx.task.answers).open.is_some() => return Ok(Value::Null),
                Err(error) => named(&self.name, cx.task.step, error),
            };
            failures += 1;
            let called = format!("task `{}`", self.name);
            let policy = RetryPolicy::after(&self.options.retry, failures, &error, &called);
            let policy = policy.map_err(|panicked| panicked.at(&self.name).in_step(cx.task.step))?;
            let Some(policy) = policy else { return Err(passed_on(error)) };
            tokio::time::sleep(policy.pause_with_jitter(failures)).await;
        }
    }

    async fn attempt(&self, cx: &Context) -> Result<Value, BoxError> {
        let span = tracing::debug_span!("call", task = &*self.name, step = cx.task.step, attempt = cx.attempt());
        let call = || {
            let future = (self.run)(self.input.clone(), cx.clone());
            let is_heard = cx.task.pulse.is_some() || cx.task.run.is_heard();
            if is_heard { crate::current::inside(cx.clone(), future) } else { future }
        };
        let running = noting_waits(span.in_scope(|| caught_future(call())).instrument(span), cx);
        let running = match &cx.task.slot {
            Some(slot) => slot.clone().hold(Box::pin(running)),
            None => boxed(|| running),
        };
        let (Some(timeout), Some(pulse)) = (self.options.timeout, &cx.task.pulse) else { return running.await };
        within(running, timeout, pulse).await.unwrap_or_else(|(what, limit)| {
            Err(Box::new(
                Error::timed_out(&self.name, &format!("task `{}`", self.name), what, limit).in_step(cx.task.step),
            ))
        })
    }
}

/// Lets the function's caller know that the function waits.
async fn noting_waits<T>(running: impl Future<Output = T>, cx: &Context) -> T {
    let mut running = std::pin::pin!(running);
    let waiter = Waiter { task: Some(&cx.task), around: None };
    std::future::poll_fn(|poller| {
        let polled = running.as_mut().poll(poller);
        if polled.is_pending() {
            waiter.note();
        }
        polled
    })
    .await
}

/// A call's error with the name of its task; what came out of a call or a graph inside has a name already.
fn named(task: &str, step: i64, error: BoxError) -> Error {
    let error = match error.downcast::<Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    let called = format!("task `{task}`");
    match error.downcast::<Panicked>() {
        Ok(panicked) => Error::panicked(task, &called, &panicked.to_string()).in_step(step),
        Err(error) => Error::failed(task, &called, error).in_step(step),
    }
}

/// The error as the caller gets it: what is wrong with a question or its answer goes up as it is.
fn passed_on(error: Error) -> BoxError {
    let source = std::error::Error::source(&error).filter(|_| error.downcast_ref::<Interrupted>().is_some());
    match source.and_then(|source| source.downcast_ref::<Interrupted>()) {
        Some(question) => Box::new(question.clone()),
        None => match source.and_then(|source| source.downcast_ref::<Error>()) {
            Some(inside) => Box::new(inside.clone()),
            None => Box::new(error),
        },
    }
}

/// A call's error as it is shown and saved.
fn failure_text(error: &BoxError) -> TaskError {
    match error.downcast_ref::<Error>() {
        Some(error) => error.into(),
        None => TaskError::new(ErrorKind::Node, words_of(&**error)),
    }
}
