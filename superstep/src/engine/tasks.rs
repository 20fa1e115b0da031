//! Choosing the tasks of the next step. Pure.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::cached::CacheTurn;
use super::live::{Former, Live, Start};
use super::writes::TaskWrites;
use crate::call::{NodeError, TimeoutPolicy};
use crate::id::{CheckpointId, TaskId, name_key};
use crate::index::{ChannelIx, NodeIx};
use crate::plan::Plan;
use crate::state::erased::Snapshot;
use crate::state::{Given, TaskInput};
use crate::value::Payload;

/// One run of a node in a step.
pub(crate) struct Task {
    pub(crate) node: NodeIx,
    pub(crate) path: TaskPath,
    /// What it was sent; without it, it is given the state of its step.
    pub(crate) sent: Option<Payload>,
    /// Overrides the node's timeout. Boxed, like the failure: few have one, and every step makes tasks.
    pub(crate) timeout: Option<Box<TimeoutPolicy>>,
    pub(crate) id: Option<TaskId>,
    pub(crate) writes: TaskWrites,
    /// What a handler is there for.
    pub(crate) failure: Option<Box<NodeError>>,
    /// Whether it computes a result that is to be cached, or waits for it.
    pub(crate) turn: Option<Box<CacheTurn>>,
    /// The task is not to be run: it has its writes from before.
    pub(crate) skip: bool,
}

/// What makes a task one of its kind in its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskPath {
    /// Woken by an edge.
    Pull,
    /// The nth send.
    Push(usize),
    /// The handler of the failed task at this place.
    Handler { of: usize },
}

impl Task {
    pub(crate) fn new(node: NodeIx, path: TaskPath, sent: Option<Payload>) -> Self {
        let writes = TaskWrites::default();
        Self { node, path, sent, timeout: None, id: None, writes, failure: None, turn: None, skip: false }
    }

    /// What it is given in a step that begins with this state.
    pub(crate) fn input(&self, state: &Snapshot) -> TaskInput {
        self.sent.clone().map_or_else(|| TaskInput::State(state.clone()), TaskInput::Sent)
    }

    /// The same, to look at.
    pub(crate) fn given<'a>(&'a self, state: &'a Snapshot) -> Given<'a> {
        self.sent.as_ref().map_or(Given::State(state), Given::Sent)
    }

    /// The node whose triggers it uses up, if it was woken by one.
    pub(crate) fn woken(&self) -> Option<NodeIx> {
        (self.path == TaskPath::Pull).then_some(self.node)
    }

    /// What its id is made of.
    pub(crate) fn kind(&self) -> (NodeIx, TaskPath) {
        (self.node, self.path)
    }
}

/// The tasks of the next step: sends first, then the nodes with open triggers.
pub(crate) fn next_tasks(plan: &Plan, live: &Live, updated: Option<&[ChannelIx]>) -> Vec<Task> {
    let mut tasks = Vec::new();
    add_next_tasks(plan, live, updated, &mut tasks);
    tasks
}

/// The same, into a list that is used again and again.
pub(crate) fn add_next_tasks(plan: &Plan, live: &Live, updated: Option<&[ChannelIx]>, tasks: &mut Vec<Task>) {
    tasks.reserve(live.sends.len() + 1);
    for (ix, send) in live.sends.iter().enumerate() {
        match plan.node(&send.node) {
            Some(node) if !plan.nodes[node].hidden => {
                let mut task = Task::new(node, TaskPath::Push(ix), Some(send.payload.clone()));
                task.timeout = send.timeout.clone();
                tasks.push(task);
            }
            _ => tracing::warn!(node = &*send.node, "a send to an unknown node is ignored"),
        }
    }
    let pull = |node: NodeIx| {
        let sent = match &live.start {
            Some(Start::Value(value)) if plan.nodes[node].returns => Some(Payload::new(value.clone())),
            _ => None,
        };
        Task::new(node, TaskPath::Pull, sent)
    };
    match updated {
        Some(updated) if !updated.is_empty() => {
            let mut nodes = SmallVec::<[NodeIx; 8]>::new();
            updated.iter().for_each(|c| plan.triggered[*c].iter().for_each(|n| nodes.push(*n)));
            if nodes.len() > 1 {
                nodes.sort_unstable_by_key(|n| plan.nodes[*n].rank);
                nodes.dedup();
            }
            tasks.extend(nodes.into_iter().filter(|n| live.triggers(plan, *n)).map(pull));
        }
        _ if live.max_version == 0 => {}
        _ => tasks.extend(plan.nodes.places().filter(|n| live.triggers(plan, *n)).map(pull)),
    }
}

/// Sorts tasks by the order in which their writes are applied.
pub(crate) fn sort_by_path(plan: &Plan, tasks: &mut Vec<Task>) {
    if tasks.len() < 2 {
        return;
    }
    if !tasks.iter().any(|task| matches!(task.path, TaskPath::Handler { .. })) {
        return tasks.sort_by_key(|task| match task.path {
            TaskPath::Push(ix) => (1, ix),
            _ => (0, plan.nodes[task.node].rank),
        });
    }
    let mut keyed: Vec<(Cow<'_, str>, usize)> = (0..tasks.len()).map(|ix| (path_text(plan, tasks, ix), ix)).collect();
    keyed.sort();
    let mut slots: Vec<Option<Task>> = std::mem::take(tasks).into_iter().map(Some).collect();
    tasks.extend(keyed.into_iter().filter_map(|(_, ix)| slots[ix].take()));
}

/// The id of a task of a graph whose namespace has this key.
pub(crate) fn task_id(
    plan: &Plan,
    former: Option<&Former>,
    checkpoint: CheckpointId,
    namespace: u64,
    step: i64,
    (node, path): (NodeIx, TaskPath),
    failed: Option<TaskId>,
) -> TaskId {
    let (kind, place) = match path {
        TaskPath::Pull => (0, 0),
        TaskPath::Push(ix) => (1, ix as u64),
        TaskPath::Handler { .. } => (2, failed.map_or(0, |f| f.0 as u64)),
    };
    let key = match former.and_then(|former| former.name_of(node)) {
        None => plan.nodes[node].key,
        Some(name) => name_key(name),
    };
    TaskId::of(checkpoint, [namespace, key, step as u64, kind, place])
}

/// The place of a task in the order in which writes are applied, as text.
pub(crate) fn path_text<'a>(plan: &'a Plan, tasks: &[Task], task: usize) -> Cow<'a, str> {
    match tasks[task].path {
        TaskPath::Pull => Cow::Borrowed(&plan.labels.names[plan.path_text(tasks[task].node)]),
        TaskPath::Push(ix) => format!("~__pregel_push, {ix:010}, {:010}", 0).into(),
        TaskPath::Handler { of } => match tasks[of].path {
            TaskPath::Push(ix) => format!("~__pregel_push, {ix:010}, {:010}, node_error_handler, {:010}", 0, 0).into(),
            _ => format!("{}, node_error_handler, {:010}", path_text(plan, tasks, of), 0).into(),
        },
    }
}

/// The same, as records have it.
pub(crate) fn path_name(plan: &Plan, tasks: &[Task], task: usize) -> Arc<str> {
    match path_text(plan, tasks, task) {
        Cow::Borrowed(_) => plan.labels.names[plan.path_text(tasks[task].node)].clone(),
        Cow::Owned(text) => text.into(),
    }
}

/// The namespace of a task: its graph's, its node and its id.
pub(crate) fn task_namespace(graph: &str, node: &Arc<str>, id: TaskId) -> String {
    if graph.is_empty() { format!("{node}:{id}") } else { format!("{graph}|{node}:{id}") }
}
