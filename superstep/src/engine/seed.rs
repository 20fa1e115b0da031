//! What the tasks of a step share, and the context that a task gets of it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::calls::CallDesk;
use super::run::Run;
use super::tasks;
use crate::bits::Bits;
use crate::call::{
    Answering, Answers, CallHost, Context, NodeError, NullResume, Place, Pulse, ReplayState, RunShared, Slot,
    TaskContext, Waiting,
};
use crate::checkpoint::Ancestors;
use crate::id::{CheckpointId, TaskId};
use crate::store::Store;

/// What limits a call: its sign of life, and its slot.
pub(super) struct CallLimits {
    pub(super) pulse: Option<Arc<Pulse>>,
    pub(super) slot: Option<Arc<Slot>>,
}

/// What the tasks of a step share.
pub(crate) struct StepSeed {
    pub(crate) run: Arc<RunShared>,
    pub(crate) permits: Option<Arc<Semaphore>>,
    store: Option<Arc<dyn Store>>,
    /// The fields that have a value.
    pub(crate) present: Bits,
    pub(crate) namespace: String,
    pub(crate) checkpoint: CheckpointId,
    pub(crate) step: i64,
    pub(crate) stop: i64,
    level: usize,
    ancestors: Ancestors,
    null_resume: Arc<NullResume>,
    resume_map: Option<Arc<BTreeMap<String, Value>>>,
    resuming: Option<bool>,
    replay: Option<Arc<ReplayState>>,
    /// The answers that tasks were given before.
    resumes: Vec<(TaskId, Answers)>,
    has_pending: bool,
    calls: Option<Arc<dyn CallHost>>,
    previous: Option<Value>,
    /// The task around the graph.
    pub(crate) around: Option<Arc<TaskContext>>,
    /// Nodes by their names now, with the names that their tasks go by.
    former: Vec<(Arc<str>, Arc<str>)>,
}

impl StepSeed {
    /// The same for calls inside tasks. The desk of calls keeps it, so it must not keep the desk.
    pub(super) fn for_calls(&self) -> StepSeed {
        StepSeed {
            run: self.run.clone(),
            permits: self.permits.clone(),
            store: self.store.clone(),
            present: self.present.clone(),
            namespace: self.namespace.clone(),
            checkpoint: self.checkpoint,
            step: self.step,
            stop: self.stop,
            level: self.level,
            ancestors: self.ancestors.clone(),
            null_resume: self.null_resume.clone(),
            resume_map: self.resume_map.clone(),
            resuming: self.resuming,
            replay: self.replay.clone(),
            resumes: self.resumes.clone(),
            has_pending: self.has_pending,
            calls: None,
            previous: self.previous.clone(),
            around: self.around.clone(),
            former: self.former.clone(),
        }
    }

    /// For the conditional edges of a node as which a thread is changed by hand.
    pub(super) fn by_hand(run: RunShared, namespace: String, checkpoint: CheckpointId, step: i64) -> Self {
        Self {
            run: Arc::new(run),
            permits: None,
            store: None,
            present: Bits::default(),
            namespace,
            checkpoint,
            step,
            stop: step + 2,
            level: 1,
            ancestors: Ancestors::default(),
            null_resume: Arc::default(),
            resume_map: None,
            resuming: None,
            replay: None,
            resumes: Vec::new(),
            has_pending: false,
            calls: None,
            previous: None,
            around: None,
            former: Vec::new(),
        }
    }

    pub(crate) fn context(
        &self,
        (node, place): (&Arc<str>, Place),
        id: TaskId,
        failure: Option<NodeError>,
        pulse: Option<Arc<Pulse>>,
        slot: Option<Arc<Slot>>,
    ) -> Context {
        let name = self.former.iter().find(|(now, _)| now == node).map_or(node, |(_, before)| before);
        let namespace = tasks::task_namespace(&self.namespace, name, id);
        let (calls, around) = (self.calls.clone(), self.around.clone());
        let task = TaskContext { failure, pulse, slot, calls, around, ..self.task(namespace, (node, place), id) };
        Context { scope: None, task: Arc::new(task) }
    }

    /// The context of a function that a task called.
    pub(super) fn context_of_call(
        &self,
        namespace: String,
        (name, nth): (&Arc<str>, usize),
        id: TaskId,
        host: Arc<dyn CallHost>,
        caller: Arc<TaskContext>,
        limits: CallLimits,
    ) -> Context {
        let CallLimits { pulse, slot } = limits;
        let (calls, around) = (Some(host), Some(caller));
        let named = (name, Place::Call { nth });
        let task = TaskContext { pulse, slot, calls, around, ..self.task(namespace, named, id) };
        Context { scope: None, task: Arc::new(task) }
    }

    /// What every task gets of the step.
    fn task(&self, namespace: String, (node, place): (&Arc<str>, Place), id: TaskId) -> TaskContext {
        let saved = self.resumes.iter().find(|(t, _)| *t == id).map(|(_, r)| r.clone()).unwrap_or_default();
        let by_id = self.resume_map.as_deref().filter(|_| self.has_pending);
        let answers = Answering::new(saved, &namespace, by_id, &self.null_resume);
        TaskContext {
            run: self.run.clone(),
            store: self.store.clone(),
            node: node.clone(),
            place,
            id,
            namespace,
            level: self.level,
            step: self.step,
            stop: self.stop,
            attempt: AtomicU32::new(1),
            answers: Mutex::new(answers),
            null_resume: self.null_resume.clone(),
            resume_map: self.resume_map.clone(),
            ancestors: self.ancestors.clone(),
            resuming: Mutex::new(self.resuming),
            replay: self.replay.clone(),
            failure: None,
            pulse: None,
            slot: None,
            calls: None,
            previous: self.previous.clone(),
            cancel: self.run.cancel.token().child_token(),
            around: None,
            waiting: Waiting::default(),
            pushed: Mutex::default(),
            metadata: OnceLock::new(),
            shown: OnceLock::new(),
        }
    }
}

impl Run {
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
        let former = self.live.former.iter().flat_map(|former| &former.0);
        let former = former.map(|(node, name)| (self.plan.nodes[*node].name.clone(), name.clone())).collect();
        let seed = StepSeed {
            run: self.shared.clone(),
            permits: self.shared.max_concurrency.map(|n| Arc::new(Semaphore::new(n))),
            store: self.store.clone(),
            present: self.live.present.clone(),
            namespace: self.config.namespace.clone(),
            checkpoint,
            step: self.step,
            stop: self.stop,
            level: self.config.level,
            ancestors: ancestors.into(),
            null_resume: Arc::new(null),
            resume_map: self.config.resume_map.clone(),
            resuming: self.config.resuming,
            replay: self.config.replay.clone(),
            resumes,
            has_pending,
            calls: Some(desk.clone()),
            previous: self.previous_value.clone(),
            around: self.config.around.clone(),
            former,
        };
        desk.set_seed(&seed);
        seed
    }
}
