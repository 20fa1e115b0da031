//! Functions called inside a node whose results are kept: the tasks of workflows made of functions.
//!
//! A call is named by its caller, its place among the caller's calls, and the checkpoint. A call
//! that finished before a pause, a failure or a restart gives its result without running again.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::run::Run;
use super::save::Saver;
use super::seed::StepSeed;
use super::writes::{Rest, TaskWrites};
use crate::cache::{Cache, CacheKey};
use crate::checkpoint::{Codec, Durability};
use crate::context::{Context, lock};
use crate::error::{BoxError, Error, ErrorKind, TaskError};
use crate::func::CallOptions;
use crate::id::{CheckpointId, TaskId};
use crate::node::Interrupt;
use crate::plan::{Fields, Plan};
use crate::state::State;
use crate::stream::{DebugEvent, EventData, Mode, NodeUpdate, RawEvent, ShownInput, ShownWrites, TaskEnd, TaskStart};

pub(crate) type CallFuture = Pin<Box<dyn Future<Output = Result<Value, BoxError>> + Send>>;
pub(crate) type CallFn = Arc<dyn Fn(Value, Context) -> CallFuture + Send + Sync>;

/// What runs the calls of a step's tasks.
pub(crate) trait CallHost: Send + Sync {
    fn call(
        self: Arc<Self>,
        caller: Context,
        ix: usize,
        name: Arc<str>,
        input: Value,
        options: CallOptions,
        run: CallFn,
    ) -> CallFuture;
}

pub(crate) struct CallDesk<S: State> {
    plan: Arc<Plan<S>>,
    codec: Option<&'static Codec<S>>,
    cache: Option<Arc<dyn Cache>>,
    saver: Option<Saver<S>>,
    saved: Option<CheckpointId>,
    checkpoint: CheckpointId,
    namespace: Vec<String>,
    /// What calls gave before.
    known: Vec<(TaskId, TaskWrites<S>)>,
    done: Mutex<Vec<(TaskId, TaskWrites<S>)>>,
    /// Enough of the step's seed to make contexts for calls. It does not lead back to the desk.
    seed: OnceLock<StepSeed>,
    nested: bool,
}

impl<S: State> CallDesk<S> {
    pub(super) fn new(run: &Run<S>, checkpoint: CheckpointId) -> Arc<Self> {
        let known = if run.replaying { Vec::new() } else { run.pending.tasks.clone() };
        Arc::new(Self {
            plan: run.plan.clone(),
            codec: run.graph.codec,
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
            seed: OnceLock::new(),
            nested: run.config.nested,
        })
    }

    /// Lets the desk make contexts for calls.
    pub(super) fn set_seed(&self, seed: &StepSeed) {
        let _already = self.seed.set(seed.for_calls());
    }

    /// What calls came to in this step, for the end of the run to save.
    pub(super) fn finished(&self) -> Vec<(TaskId, TaskWrites<S>)> {
        lock(&self.done).clone()
    }

    async fn save(&self, id: TaskId, mut writes: TaskWrites<S>) -> Result<(), Error> {
        lock(&self.done).push((id, writes.clone()));
        let (Some(saver), Some(saved)) = (&self.saver, self.saved) else { return Ok(()) };
        if saver.durability == Durability::Exit {
            return Ok(());
        }
        let record = writes.record(&self.plan, &saver.scribe, id, "".into())?;
        Ok(saver.put_writes(saved, record).await?)
    }

    async fn show(&self, cx: &Context, mode: Mode, make: impl Fn() -> EventData<S>) {
        let Some(sink) = cx.task.run.sink.as_ref().filter(|s| !self.nested || s.subgraphs) else { return };
        let send = |mode, data| sink.send(RawEvent { namespace: self.namespace.clone(), mode, data: Box::new(data) });
        if sink.wants(mode) {
            send(mode, make()).await;
        }
        if mode == Mode::Tasks && sink.wants(Mode::Debug) {
            let debug = DebugEvent { step: cx.task.step, at: std::time::SystemTime::now(), event: Box::new(make()) };
            send(Mode::Debug, EventData::Debug(debug)).await;
        }
    }

    fn shown(&self, returned: Option<Value>) -> ShownWrites<S> {
        ShownWrites {
            puts: Vec::new(),
            fields: Fields::Many(Vec::new()),
            returned,
            plan: self.plan.clone(),
            codec: self.codec,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an end has all of these; they are named where it is called")]
    async fn show_end(
        &self,
        cx: &Context,
        name: &Arc<str>,
        id: TaskId,
        returned: Option<Value>,
        error: Option<TaskError>,
        interrupts: Vec<Interrupt>,
        cached: bool,
    ) {
        if returned.is_some() {
            let update = || NodeUpdate {
                node: name.to_string(),
                step: cx.task.step,
                task: id,
                cached,
                writes: self.shown(returned.clone()),
            };
            self.show(cx, Mode::Updates, || EventData::Updates(update())).await;
        }
        if !cached {
            let end = || TaskEnd {
                id,
                name: name.to_string(),
                error: error.clone(),
                interrupts: interrupts.clone(),
                writes: self.shown(returned.clone()),
            };
            self.show(cx, Mode::Tasks, || EventData::TaskEnd(end())).await;
        }
    }

    async fn run_call(
        self: Arc<Self>,
        caller: Context,
        ix: usize,
        name: Arc<str>,
        input: Value,
        options: CallOptions,
        run: CallFn,
    ) -> Result<Value, BoxError> {
        let namespace = format!("{}|{name}", caller.task.namespace);
        let step = caller.task.step.to_string();
        let (path, place) = (format!("~__pregel_pull, {}", caller.task.node), ix.to_string());
        let parts = [&namespace, &step, &*name, "__pregel_push", &path, &caller.task.id.to_string(), &place];
        let id = TaskId::derive(self.checkpoint, &parts);
        let start = || TaskStart {
            id,
            name: name.to_string(),
            triggers: vec!["__pregel_push".to_owned()],
            metadata: std::collections::BTreeMap::new(),
            input: ShownInput::Value(input.clone()),
        };
        self.show(&caller, Mode::Tasks, || EventData::TaskStart(start())).await;
        if let Some((_, known)) = self.known.iter().find(|(t, w)| *t == id && w.returned().is_some()) {
            return Ok(known.returned().cloned().unwrap_or_default());
        }
        if let Some((_, known)) = lock(&self.done).iter().find(|(t, w)| *t == id && w.returned().is_some()) {
            return Ok(known.returned().cloned().unwrap_or_default());
        }
        let key = options.cache.is_some().then(|| cache_key(&name, &input));
        if let (Some(key), Some(cache)) = (&key, &self.cache)
            && let Some(bytes) = cache.get(std::slice::from_ref(key)).await?.into_iter().next().flatten()
        {
            let value: Value = crate::state::decode(&bytes)?;
            self.show_end(&caller, &name, id, Some(value.clone()), None, Vec::new(), true).await;
            self.save(id, TaskWrites::only(Rest { returned: Some(value.clone()), ..Rest::default() })).await?;
            return Ok(value);
        }
        let seed = self.seed.get().expect("the desk got its seed when it was made");
        let cx = seed.context_at(format!("{namespace}:{id}"), &name, id, None, None, Some(self.clone()));
        let result = attempts(&options, &name, &cx, || run(input.clone(), cx.clone())).await;
        let (open, used) = {
            let mut answers = lock(&cx.task.answers);
            let used = answers.used.map(|n| answers.resume[..n].to_vec());
            (answers.open.take(), used)
        };
        if let Some(open) = open {
            // The caller asks in the call's name: the question is one and the same.
            let asked = TaskWrites::only(Rest { interrupts: Some(open.clone()), resume: used, ..Rest::default() });
            self.show_end(&caller, &name, id, None, None, open.clone(), false).await;
            self.save(id, asked).await?;
            lock(&caller.task.answers).open = Some(open);
            return Err("the call waits for an answer".into());
        }
        match result {
            Ok(value) => {
                self.show_end(&caller, &name, id, Some(value.clone()), None, Vec::new(), false).await;
                self.save(
                    id,
                    TaskWrites::only(Rest { returned: Some(value.clone()), resume: used, ..Rest::default() }),
                )
                .await?;
                if let (Some(key), Some(cache)) = (key, &self.cache) {
                    let ttl = options.cache.flatten();
                    cache.set(vec![(key, crate::state::encode(&value)?.into(), ttl)]).await?;
                }
                Ok(value)
            }
            Err(error) => {
                let kind = error.downcast_ref::<Error>().map_or(ErrorKind::Node, Error::kind);
                let failure = Some(TaskError::new(kind, error.to_string()));
                self.show_end(&caller, &name, id, None, failure.clone(), Vec::new(), false).await;
                self.save(id, TaskWrites::only(Rest { error: failure, resume: used, ..Rest::default() })).await?;
                Err(error)
            }
        }
    }
}

impl<S: State> CallHost for CallDesk<S> {
    fn call(
        self: Arc<Self>,
        caller: Context,
        ix: usize,
        name: Arc<str>,
        input: Value,
        options: CallOptions,
        run: CallFn,
    ) -> CallFuture {
        Box::pin(self.run_call(caller, ix, name, input, options, run))
    }
}

fn cache_key(name: &str, input: &Value) -> CacheKey {
    let key = format!("{:032x}", xxh3_128(input.to_string().as_bytes()));
    CacheKey { namespace: vec!["superstep".to_owned(), "call".to_owned(), name.to_owned()], key }
}

/// A call whose panic is its error.
async fn caught(name: &str, mut call: CallFuture) -> Result<Value, BoxError> {
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(panic) => {
            let words = format!("task `{name}` panicked: {}", super::attempt::panic_text(&*panic));
            Poll::Ready(Err(Box::new(Error::new(ErrorKind::Panic, words).at(name))))
        }
    })
    .await
}

/// Runs a call until it succeeds, asks, or has no attempts left.
async fn attempts(
    options: &CallOptions,
    name: &str,
    cx: &Context,
    run: impl Fn() -> CallFuture,
) -> Result<Value, BoxError> {
    let mut failures = 0;
    loop {
        if failures > 0 {
            cx.task.begin_attempt(failures + 1);
        }
        let result = match options.timeout {
            Some(limit) => match tokio::time::timeout(limit, caught(name, run())).await {
                Ok(result) => result,
                Err(_) => Err(Box::new(Error::timed_out(name, "run", limit)) as BoxError),
            },
            None => caught(name, run()).await,
        };
        let error = match result {
            Ok(value) => return Ok(value),
            Err(_) if lock(&cx.task.answers).open.is_some() => return Ok(Value::Null),
            Err(error) => error,
        };
        failures += 1;
        let asked = match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::node_failed(name, error),
        };
        let policy = options.retry.iter().find(|p| (p.retry_on)(&asked)).filter(|p| failures < p.max_attempts);
        let Some(policy) = policy else { return Err(unwrapped(asked)) };
        tokio::time::sleep(policy.pause_with_jitter(failures)).await;
    }
}

/// The error as the call returned it.
fn unwrapped(error: Error) -> BoxError {
    if error.kind() != crate::ErrorKind::Node {
        return Box::new(error);
    }
    error.into_failure().source.unwrap_or_else(|| "the call failed".into())
}
