//! Looking at a checkpoint: its values, what runs next, and what tasks did so far.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::apply::{Applied, apply};
use super::live::{Live, Start};
use super::run::DEFAULT_LIMIT;
use super::save::{Loaded, Reading, Saver};
use super::tasks::{self, Task, TaskPath};
use super::writes::TaskWrites;
use crate::bits::Bits;
use crate::checkpoint::{Durability, SavedCheckpoint};
use crate::error::Error;
use crate::plan::{GraphCore, Plan};
use crate::snapshot::{CheckpointRef, StateSnapshot, TaskSnapshot};
use crate::state::erased::{Snapshot, Writes};
use crate::state::{FieldSpec, Given};
use crate::view::{Fields, ShownInput, ShownState, ShownWrites, View};
use crate::wall::boxed;

/// The tasks of a step, as streams and snapshots show them.
pub(super) struct TaskViews<'a> {
    pub(super) plan: &'a Arc<Plan>,
    pub(super) live: &'a Live,
    pub(super) tasks: &'a [Task],
    pub(super) step: i64,
    pub(super) stop: i64,
}

impl TaskViews<'_> {
    /// A task with what it did so far. `waiting`: only questions that still wait.
    pub(super) fn snapshot(
        &self,
        ix: usize,
        known: Option<&TaskWrites>,
        fields: &Fields,
        waiting: bool,
        subgraph: Subgraph,
    ) -> TaskSnapshot {
        let finished = known.filter(|k| k.is_finished());
        let interrupts = match known {
            None => Vec::new(),
            Some(k) if waiting => k.open_questions().to_vec(),
            Some(k) => k.interrupts().cloned().unwrap_or_default(),
        };
        TaskSnapshot {
            id: self.tasks[ix].id.unwrap_or(crate::TaskId(0)),
            name: self.plan.nodes[self.tasks[ix].node].name.to_string(),
            triggers: self.triggers(ix),
            path: tasks::path_text(self.plan, self.tasks, ix).into_owned(),
            error: known.and_then(|k| k.error().cloned()),
            interrupts,
            subgraph: subgraph.state,
            namespace: subgraph.namespace,
            input: self.input(ix),
            result: finished.map(|k| self.writes(k.puts.clone(), fields.clone(), k.returned().cloned())),
        }
    }

    /// The channels that wake a task.
    pub(super) fn triggers(&self, ix: usize) -> Vec<String> {
        match self.tasks[ix].path {
            TaskPath::Pull => self.plan.nodes[self.tasks[ix].node].trigger_names.clone(),
            TaskPath::Push(_) | TaskPath::Handler { .. } => vec!["__pregel_push".to_owned()],
        }
    }

    /// What a task is given.
    pub(super) fn input(&self, ix: usize) -> ShownInput {
        let task = &self.tasks[ix];
        let node = &self.plan.nodes[task.node];
        match &self.live.start {
            Some(Start::Value(value)) if node.returns => ShownInput::Value(value.clone()),
            Some(Start::Writes { writes, .. }) if node.hidden => {
                ShownInput::Start(self.writes(writes.clone(), self.plan.shown.clone(), None))
            }
            _ => match task.given(&self.live.state) {
                Given::Sent(payload) => ShownInput::Sent(payload.clone()),
                Given::State(state) => ShownInput::State {
                    state: state.clone(),
                    present: self.live.present.clone(),
                    reads: shown_reads(self.plan, node.reads.as_ref()),
                    step: self.step,
                    stop: self.stop,
                    ty: self.plan.ty.clone(),
                },
            },
        }
    }

    fn writes(&self, puts: Writes, fields: Fields, returned: Option<serde_json::Value>) -> ShownWrites {
        ShownWrites::new(puts, fields, returned, &self.plan.ty)
    }
}

/// The fields of a task's input that are shown: those that its node sees, but for internal ones.
fn shown_reads(plan: &Plan, reads: Option<&Arc<[usize]>>) -> Option<Arc<[usize]>> {
    let fields = plan.fields();
    if !fields.iter().any(FieldSpec::is_internal) {
        return reads.cloned();
    }
    let is_shown = |field: &usize| !fields[*field].is_internal();
    Some(match reads {
        Some(list) => list.iter().copied().filter(is_shown).collect(),
        None => (0..fields.len()).filter(is_shown).collect(),
    })
}

/// How a snapshot is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Looking {
    /// As it is now: what finished tasks wrote is in the values, and they are not next any more.
    pub(crate) live: bool,
    /// With the states of subgraphs.
    pub(crate) deep: bool,
    pub(crate) reading: Reading,
}

/// The snapshot of a saved checkpoint; of an empty thread if there is none.
pub(crate) async fn snapshot_of(
    graph: &GraphCore,
    saver: &Saver,
    saved: Option<SavedCheckpoint>,
    looking: Looking,
) -> Result<StateSnapshot<()>, Error> {
    let plan = &graph.plan;
    let Some(saved) = saved else { return Ok(empty_snapshot(graph)) };
    let Loaded { record, mut live, pending, too_deep, .. } = *saver.decode_as(plan, saved, looking.reading)?;
    live.journal = None;
    let step = record.step + 1;
    let mut tasks = tasks::next_tasks(plan, &live, None);
    let namespace = crate::id::name_key(&saver.namespace);
    for ix in 0..tasks.len() {
        let (former, kind) = (live.former.as_deref(), tasks[ix].kind());
        tasks[ix].id = Some(tasks::task_id(plan, former, record.id, namespace, step, kind, None));
    }
    let subgraphs = subgraphs(graph, saver, &live, &tasks, looking.deep).await?;
    if pending.null.has_output() {
        apply(plan, &mut live, None, &mut [Applied::by_caller(&mut pending.null.output())])?;
    }
    // How many steps a run may take is not saved: as if one went on from here with the usual limit.
    let stop = step + DEFAULT_LIMIT as i64 + 1;
    let views = TaskViews { plan, live: &live, tasks: &tasks, step, stop };
    let snapshots = subgraphs.into_iter().enumerate().map(|(ix, subgraph)| {
        let known = tasks[ix].id.and_then(|id| pending.of(id));
        views.snapshot(ix, known, &plan.shown, looking.live, subgraph)
    });
    let snapshots: Vec<_> = snapshots.collect();
    let mut next: Vec<String> = tasks.iter().map(|t| plan.nodes[t.node].name.to_string()).collect();
    if looking.live {
        let finished = |t: &Task| t.id.and_then(|id| pending.of(id)).is_some_and(TaskWrites::is_finished);
        next = tasks.iter().filter(|t| !finished(t)).map(|t| plan.nodes[t.node].name.to_string()).collect();
        apply_finished(plan, &mut live, &tasks, &pending)?;
    }
    let at = |id| CheckpointRef {
        thread: saver.thread.to_string(),
        namespace: saver.namespace.to_string(),
        id,
        parents: (*record.parents).clone(),
    };
    Ok(StateSnapshot {
        state: Arc::default(),
        next,
        checkpoint: Some(at(record.id)),
        parent: record.parent.map(at),
        source: Some(record.source),
        step: Some(record.step),
        created_at: Some(record.created_at),
        metadata: (*record.metadata).clone(),
        interrupts: snapshots.iter().flat_map(|t| t.interrupts.iter().cloned()).collect(),
        tasks: snapshots,
        unreadable: too_deep.into_iter().map(|value| value.error).collect(),
        values: values_of(graph, live.state, live.present),
    })
}

/// Puts what finished tasks wrote into the values.
fn apply_finished(plan: &Plan, live: &mut Live, tasks: &[Task], pending: &super::save::Pending) -> Result<(), Error> {
    let mut done: Vec<(std::borrow::Cow<'_, str>, usize, TaskWrites)> = Vec::new();
    for ix in 0..tasks.len() {
        let Some(known) = tasks[ix].id.and_then(|id| pending.of(id)).filter(|k| k.is_finished()) else { continue };
        done.push((tasks::path_text(plan, tasks, ix), ix, known.output()));
    }
    if !done.is_empty() {
        done.sort_by(|a, b| a.0.cmp(&b.0));
        let batch = done.iter_mut().map(|(_, ix, writes)| Applied::result_of(&tasks[*ix], writes));
        apply(plan, live, None, &mut batch.collect::<Vec<_>>())?;
        // As in LangGraph, looking ends the step for fields that live for one step.
        for field in plan.transient.iter().filter(|f| live.present.has(**f)).copied().collect::<Vec<_>>() {
            plan.ty.reset(&mut live.state, field);
            live.present.unset(field);
        }
    }
    Ok(())
}

/// The graph inside a task: where it keeps its checkpoints, and its state if that is asked for.
#[derive(Default)]
pub(super) struct Subgraph {
    namespace: Option<String>,
    state: Option<Box<StateSnapshot>>,
}

async fn subgraphs(
    graph: &GraphCore,
    saver: &Saver,
    live: &Live,
    tasks: &[Task],
    deep: bool,
) -> Result<Vec<Subgraph>, Error> {
    let mut found = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some(inside) = graph.inside(task.node) else {
            found.push(Subgraph::default());
            continue;
        };
        let (name, id) = (live.task_name(&graph.plan, task.node), task.id.expect("ids were given above"));
        let namespace = tasks::task_namespace(&saver.namespace, name, id);
        let state = if deep { Some(boxed_state_inside(inside, saver, &namespace).await?) } else { None };
        found.push(Subgraph { namespace: Some(namespace), state });
    }
    Ok(found)
}

/// The type says that it can be sent, which the compiler cannot find out of something that calls itself.
fn boxed_state_inside<'a>(
    graph: &'a GraphCore,
    outer: &'a Saver,
    namespace: &'a str,
) -> Pin<Box<dyn Future<Output = Result<Box<StateSnapshot>, Error>> + Send + 'a>> {
    boxed(move || state_inside(graph, outer, namespace))
}

async fn state_inside(graph: &GraphCore, outer: &Saver, namespace: &str) -> Result<Box<StateSnapshot>, Error> {
    let (saver, thread, namespace) =
        (outer.checkpointer.clone(), outer.thread.clone(), graph.history_namespace(namespace));
    let saver = Saver::new(saver, thread, namespace, Durability::Sync, outer.ids.clone(), None);
    let saved = (*saver.checkpointer).get(&saver.thread, &saver.namespace, None).await?;
    let looking = Looking { live: true, deep: true, reading: Reading::Whole };
    Ok(Box::new(snapshot_of(graph, &saver, saved, looking).await?.typed()))
}

fn values_of(graph: &GraphCore, state: Snapshot, present: Bits) -> ShownState {
    let view = View { present, fields: graph.plan.shown.clone(), ty: graph.plan.ty.clone() };
    ShownState { state, interrupts: Vec::new(), view }
}

fn empty_snapshot(graph: &GraphCore) -> StateSnapshot<()> {
    let state = graph.plan.ty.empty();
    let mut values = values_of(graph, state, Bits::default());
    values.view.fields = Fields::none();
    StateSnapshot {
        values,
        state: Arc::default(),
        next: Vec::new(),
        checkpoint: None,
        parent: None,
        source: None,
        step: None,
        created_at: None,
        metadata: std::collections::BTreeMap::new(),
        tasks: Vec::new(),
        interrupts: Vec::new(),
        unreadable: Vec::new(),
    }
}
