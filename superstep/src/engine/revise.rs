//! Changing a thread by hand: an update as if a node had made it, a copy, an end.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::apply::{Applied, apply, guarded, local_state};
use super::attempt::End;
use super::begin::{no_value, unencodable_input};
use super::live::{Live, Start};
use super::paths::Paths;
use super::run::{DEFAULT_LIMIT, RunInput};
use super::save::{Header, Journal, Loaded, Pending, Reading, Saver, TooDeep};
use super::seed::StepSeed;
use super::tasks::{self, Task};
use super::writes::TaskWrites;
use crate::call::{AnyOutcome, Context, Place, RunShared};
use crate::checkpoint::{CheckpointRecord, Source, TaskRecord};
use crate::error::{Error, ErrorKind};
use crate::id::{CheckpointId, TaskId, name_key};
use crate::index::{Ix, NodeIx};
use crate::names::END;
use crate::plan::{GraphCore, InputMode, Plan};
use crate::state::erased::Snapshot;

/// One change of a thread.
pub(crate) enum Revision {
    /// As if these nodes had returned these updates, in one step. `None` finds the node itself.
    AsNodes(NodeUpdates),
    /// As a new input, without running it.
    AsInput(RunInput),
    /// Drops what is left to do.
    End,
    /// A copy beside the checkpoint, and updates to put into it at once.
    Copy(Vec<(String, AnyOutcome)>),
}

/// Applies a change to a checkpoint (the latest, unless one is named) and saves the result.
pub(crate) async fn revise(
    graph: &GraphCore,
    saver: &mut Saver,
    checkpoint: Option<CheckpointId>,
    revision: Revision,
) -> Result<CheckpointId, Error> {
    // An update may put other values in the place of those that cannot be read.
    let reading = if matches!(revision, Revision::AsNodes(_)) { Reading::WithoutTooDeep } else { Reading::Whole };
    let (head, loaded) = saver.claim(&graph.plan, checkpoint, reading).await?;
    if let (None, Some(id)) = (&loaded, checkpoint) {
        return Err(Error::invalid(format!("thread `{}` has no checkpoint {id}", saver.thread)));
    }
    let mut reviser = Reviser::new(graph, saver, head, loaded);
    match revision {
        Revision::AsNodes(updates) => reviser.as_nodes(updates).await,
        Revision::AsInput(input) => reviser.as_input(input).await,
        Revision::End => reviser.end().await,
        Revision::Copy(updates) => {
            let id = reviser.copy().await?;
            if updates.is_empty() {
                Ok(id)
            } else {
                let base_step = reviser.step;
                let loaded = saver.load(&graph.plan, Some(id)).await?;
                let mut reviser = Reviser::new(graph, saver, Some(id), loaded);
                // The ids of the copy's tasks are those of the step after it.
                reviser.task_step = base_step + 2;
                let updates = updates.into_iter().map(|(node, outcome)| (Some(node), outcome)).collect();
                reviser.as_nodes(grouped(updates)).await
            }
        }
    }
}

pub(crate) type NodeUpdates = Vec<(Option<String>, AnyOutcome)>;

/// Updates of one node stand together, nodes in order of their first update.
fn grouped(updates: NodeUpdates) -> NodeUpdates {
    let mut groups: Vec<(Option<String>, NodeUpdates)> = Vec::new();
    for update in updates {
        match groups.iter_mut().find(|(node, _)| *node == update.0) {
            Some((_, group)) => group.push(update),
            None => groups.push((update.0.clone(), vec![update])),
        }
    }
    groups.into_iter().flat_map(|(_, group)| group).collect()
}

struct Reviser<'a> {
    graph: &'a GraphCore,
    plan: &'a Arc<Plan>,
    saver: &'a mut Saver,
    head: Option<CheckpointId>,
    record: Option<CheckpointRecord>,
    live: Live,
    pending: Pending,
    too_deep: Vec<TooDeep>,
    /// The step of the checkpoint; -1 if there is none.
    step: i64,
    task_step: i64,
}

impl<'a> Reviser<'a> {
    fn new(
        graph: &'a GraphCore,
        saver: &'a mut Saver,
        head: Option<CheckpointId>,
        loaded: Option<Box<Loaded>>,
    ) -> Self {
        let plan = &graph.plan;
        let (record, live, pending, too_deep) = match loaded.map(|loaded| *loaded) {
            Some(Loaded { record, live, pending, too_deep, .. }) => (Some(record), live, pending, too_deep),
            None => {
                let mut live = Live::empty(plan);
                live.journal = Some(Journal::default());
                (None, live, Pending::default(), Vec::new())
            }
        };
        let step = record.as_ref().map_or(-1, |r| r.step);
        Self { graph, plan, saver, head, record, live, pending, too_deep, step, task_step: step + 1 }
    }

    /// The tasks of the checkpoint, with their ids.
    fn tasks(&self) -> Vec<Task> {
        let Some(record) = &self.record else { return Vec::new() };
        let mut tasks = tasks::next_tasks(self.plan, &self.live, None);
        let namespace = name_key(&self.saver.namespace);
        for ix in 0..tasks.len() {
            let (former, kind) = (self.live.former.as_deref(), tasks[ix].kind());
            let id = tasks::task_id(self.plan, former, record.id, namespace, self.task_step, kind, None);
            tasks[ix].id = Some(id);
        }
        tasks
    }

    async fn save(
        &mut self,
        source: Source,
        step: i64,
        parent: Option<CheckpointId>,
        base: Option<CheckpointId>,
        writes: Vec<TaskRecord>,
    ) -> Result<CheckpointId, Error> {
        let id = self.saver.ids.next(step);
        let parents = self.record.as_ref().map(|r| r.parents.clone()).unwrap_or_default();
        let header = Header { id, parent, base, head: self.head, source, step };
        let record = self.saver.record(self.plan, &mut self.live, header)?;
        self.saver.put(record.with_parents(parents).with_writes(writes)).await?;
        Ok(id)
    }

    fn base(&self) -> Option<CheckpointId> {
        self.record.as_ref().map(|r| r.id)
    }

    async fn end(&mut self) -> Result<CheckpointId, Error> {
        let tasks = self.tasks();
        if self.pending.null.has_output() {
            let mut writes = self.pending.null.output();
            apply(self.plan, &mut self.live, None, &mut [Applied::by_caller(&mut writes)])?;
        }
        let mut done: Vec<(Cow<'_, str>, usize, TaskWrites)> = Vec::new();
        for ix in 0..tasks.len() {
            let known = tasks[ix].id.and_then(|id| self.pending.of(id)).filter(|k| k.is_finished());
            let writes = known.map(TaskWrites::output).unwrap_or_default();
            done.push((tasks::path_text(self.plan, &tasks, ix), ix, writes));
        }
        done.sort_by(|a, b| a.0.cmp(&b.0));
        let batch = done.iter_mut().map(|(_, ix, writes)| Applied::result_of(&tasks[*ix], writes));
        apply(self.plan, &mut self.live, None, &mut batch.collect::<Vec<_>>())?;
        self.live.updated = None;
        let base = self.base();
        self.save(Source::Update, self.step + 1, base, base, Vec::new()).await
    }

    async fn as_input(&mut self, input: RunInput) -> Result<CheckpointId, Error> {
        let mut fields = None;
        let start = match (input, &self.plan.input) {
            (RunInput::Writes(puts), InputMode::Fields(_)) => {
                fields = Some(TaskWrites::of_puts(self.plan.ty.admit(puts, None)?));
                None
            }
            (RunInput::Writes(_), InputMode::Entry) => return Err(no_value()),
            (RunInput::Writes(puts), InputMode::Start { .. }) => {
                let writes = self.plan.ty.admit(puts, None)?;
                let writes = guarded(self.plan, |_| self.plan.ty.savable(&self.live.state, writes))?;
                Some(Start::Writes { writes, goto: Vec::new() })
            }
            (RunInput::Value(value), _) => Some(Start::Value(value)),
            (RunInput::Refused(refused), _) => return Err(refused.into()),
            (RunInput::Unencodable(why), _) => return Err(unencodable_input(&why)),
            (RunInput::Nothing | RunInput::Command(_), _) => {
                return Err(Error::new(ErrorKind::InvalidUpdate, "there is no input to put in"));
            }
        };
        let mut batch: Vec<_> = fields.iter_mut().map(Applied::by_caller).collect();
        apply(self.plan, &mut self.live, start, &mut batch)?;
        self.live.updated = None;
        let step = if self.record.is_some() { self.step + 1 } else { -1 };
        let base = self.base();
        self.save(Source::Input, step, base, base, Vec::new()).await
    }

    async fn copy(&mut self) -> Result<CheckpointId, Error> {
        let Some(record) = &self.record else {
            return Err(Error::new(ErrorKind::InvalidUpdate, "there is no checkpoint to copy"));
        };
        let (parent, base) = (record.parent, Some(record.id));
        self.live.updated = None;
        self.save(Source::Fork, self.step + 1, parent, base, Vec::new()).await
    }

    async fn as_nodes(&mut self, updates: NodeUpdates) -> Result<CheckpointId, Error> {
        let mut free: BTreeMap<NodeIx, VecDeque<TaskId>> = BTreeMap::new();
        for task in self.tasks() {
            free.entry(task.node).or_default().extend(task.id);
        }
        let superseded = self.base().is_some() && self.base() != self.head;
        let mut written = Vec::new();
        let mut results = Vec::new();
        for (ix, (node, outcome)) in updates.into_iter().enumerate() {
            let node = self.resolve(node)?;
            let mut writes = self.writes_of(node, outcome).await?;
            let id = free.get_mut(&node).and_then(VecDeque::pop_front).unwrap_or_else(|| self.made_up_id(ix));
            if self.record.is_some() && !superseded {
                // The history shows what was put in as the result of the node's task.
                let mut shown = writes.clone();
                shown.done = !shown.has_output();
                if shown.has_output() {
                    let path = format!("~__interrupt__, {ix:010}").into();
                    results.push(shown.record(self.plan, &self.saver.scribe, id, path)?);
                }
                shown.done = writes.done;
                writes = shown;
            }
            written.push(writes);
        }
        self.check_replaced(&written)?;
        let batch = written.iter_mut().map(|writes| Applied { node: None, woken: None, ends_step: true, writes });
        apply(self.plan, &mut self.live, None, &mut batch.collect::<Vec<_>>())?;
        self.live.updated = None;
        let base = self.base();
        // Results by hand are saved with the checkpoint that they made, or not at all.
        self.save(Source::Update, self.step + 1, base, base, results).await
    }

    /// A field that cannot be read must get another value.
    fn check_replaced(&mut self, written: &[TaskWrites]) -> Result<(), Error> {
        let is_written = |field| written.iter().any(|writes| writes.puts.touches(|other| other == field));
        match self.too_deep.iter().position(|value| value.field.is_some_and(|field| !is_written(field))) {
            Some(left) => Err(self.too_deep.swap_remove(left).error.into()),
            None => Ok(()),
        }
    }

    fn made_up_id(&self, ix: usize) -> TaskId {
        TaskId::derive(self.base(), &["__update__", &ix.to_string()])
    }

    fn resolve(&self, node: Option<String>) -> Result<NodeIx, Error> {
        let invalid = |words: String| Error::new(ErrorKind::InvalidUpdate, words);
        match node {
            Some(name) if name == END => {
                Err(invalid("`END` makes no updates; use `clear_tasks` to drop what is left to do".to_owned()))
            }
            Some(name) => {
                self.plan.node(&name).ok_or_else(|| invalid(format!("there is no node `{name}` to update as")))
            }
            None => self.last_node().ok_or_else(|| {
                invalid("it is not clear which node the update is from; say so with `as_node`".to_owned())
            }),
        }
    }

    /// The node that ran last, if that is one node.
    fn last_node(&self) -> Option<NodeIx> {
        if self.plan.nodes.len() == 1 {
            return Some(NodeIx::FIRST);
        }
        match self.live.last_seen.as_slice() {
            [] if self.live.last_gone => None,
            [] => self.plan.nodes.places().find(|n| self.plan.nodes[*n].hidden),
            [at] => self.plan.nodes.places().rfind(|n| self.plan.nodes[*n].seen_at <= *at),
            _ => None,
        }
    }

    async fn writes_of(&self, node: NodeIx, outcome: AnyOutcome) -> Result<TaskWrites, Error> {
        let mut puts = self.plan.ty.admit(outcome.update, Some(&self.plan.nodes[node].name))?;
        if self.plan.nodes[node].hidden
            && let InputMode::Start { fields: Some(fields) } = &self.plan.input
        {
            puts = puts.only(|field| fields.contains(&field));
        }
        let mut writes = TaskWrites::of_puts(self.plan.ty.changes_to(&self.live.state, puts));
        let branches = self.plan.way_out(node, outcome.steer, &mut writes).map_err(|end| match end {
            End::Failed(error) => error,
            _ => Error::new(ErrorKind::InvalidUpdate, "an update by hand cannot command a parent graph"),
        })?;
        if branches {
            let state = local_state(self.plan, &self.live.state, &writes.puts)?;
            self.follow(node, &state, &mut writes).await?;
        }
        Ok(writes)
    }

    async fn follow(&self, node: NodeIx, state: &Snapshot, writes: &mut TaskWrites) -> Result<(), Error> {
        let context = self.plan.nodes[node].paths_ask.then(|| self.context(node));
        let (step, stop) = (self.step, self.step + 2);
        let paths = Paths { plan: self.plan, node, step, stop, context: context.as_ref() };
        match paths.follow(state, writes).await {
            End::Failed(error) => Err(error),
            End::Interrupted(..) | End::BadAnswer(_) => Err(asked_by_hand(&self.plan.nodes[node].name)),
            _ => Ok(()),
        }
    }

    /// What the paths of a node may ask for: there is no run, so nobody listens, and nothing that they call is saved.
    fn context(&self, node: NodeIx) -> Context {
        let GraphCore { store, cache, .. } = self.graph;
        let run = RunShared::of_no_run(self.saver.thread.clone(), store.clone(), cache.clone(), DEFAULT_LIMIT);
        let checkpoint = self.base().unwrap_or_else(|| self.saver.ids.next(self.step));
        let seed = StepSeed::by_hand(run, self.saver.namespace.to_string(), checkpoint, self.step);
        let named = (&self.plan.nodes[node].name, Place::Pull { node });
        seed.context(named, self.made_up_id(node.get()), None, None, None)
    }
}

#[cold]
fn asked_by_hand(node: &str) -> Error {
    Error::invalid(format!(
        "a conditional edge of `{node}` asks, but nobody can answer it while a thread is changed by hand; \
         let the node run, or update as another node"
    ))
    .at(node)
}
