//! What a run saves, and when: checkpoints at the end of steps, writes at the end of tasks.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::live::Live;
use super::run::Run;
use super::save::Header;
use super::tasks::{self, Task, TaskPath};
use super::writes::TaskWrites;
use crate::checkpoint::{CheckpointRecord, Durability, Source};
use crate::error::{Error, called};
use crate::id::{CheckpointId, TaskId};
use crate::index::NodeIx;
use crate::wall::boxed;

/// When what a task wrote is saved, if it is.
pub(super) enum SavedWhen {
    /// It is, or is on its way.
    Now,
    /// When the checkpoint of the step is.
    WithCheckpoint,
}

impl Run {
    pub(super) fn checkpoint_id(&mut self) -> CheckpointId {
        let step = self.step;
        let ids = self.shared.ids();
        *self.checkpoint.get_or_insert_with(|| ids.next(step))
    }

    /// Says that a value could not be saved which a node gave, if that is what is wrong.
    pub(super) fn given_by(&self, node: NodeIx, error: impl Into<Error>) -> Error {
        let (error, node): (Error, _) = (error.into(), &self.plan.nodes[node]);
        if node.hidden { error } else { error.written_by(&node.name, &called(&node.name)).in_step(self.step) }
    }

    pub(super) fn task_id(&mut self, ix: usize) -> TaskId {
        if let Some(id) = self.tasks[ix].id {
            return id;
        }
        let failed = match self.tasks[ix].path {
            TaskPath::Handler { of } => Some(self.task_id(of)),
            _ => None,
        };
        let checkpoint = self.checkpoint_id();
        let kind = self.tasks[ix].kind();
        let former = self.live.former.as_deref();
        let id = tasks::task_id(&self.plan, former, checkpoint, self.namespace_key, self.step, kind, failed);
        self.tasks[ix].id = Some(id);
        id
    }

    /// Where a task stands in the order in which writes are applied.
    fn path_name(&self, ix: usize) -> Arc<str> {
        tasks::path_name(&self.plan, &self.tasks, ix)
    }

    /// Ends a step: a new checkpoint, saved now unless only the end of the run is saved.
    pub(super) async fn put_checkpoint(&mut self, source: Source) -> Result<(), Error> {
        self.source = Some(source);
        // Previous names are those of the tasks of the previous checkpoint.
        self.live.former = None;
        self.checkpoint = self.saver.is_some().then(|| self.shared.ids().next(self.step));
        if self.saver.is_some() && !self.saves_at_exit() {
            boxed(|| self.save_checkpoint(self.step)).await?;
        }
        self.step += 1;
        Ok(())
    }

    /// Ends a step of tasks: of this node, if it had only one.
    pub(super) async fn put_step(&mut self, only: Option<NodeIx>) -> Result<(), Error> {
        let put = self.put_checkpoint(Source::Loop).await;
        put.map_err(|error| match only {
            Some(node) => self.given_by(node, error),
            None => error,
        })
    }

    /// Makes the record of what the step's only task wrote. It is saved with the checkpoint of the step, which follows.
    pub(super) fn keep_with_checkpoint(&mut self) -> Result<(), Error> {
        if self.saver.is_none() || self.saved.is_none() {
            return Ok(());
        }
        let (id, path) = (self.task_id(0), self.path_name(0));
        let Task { node, writes, .. } = &mut self.tasks[0];
        writes.done |= !writes.has_output();
        let node = *node;
        let Some(saver) = &self.saver else { return Ok(()) };
        let record = writes.record(&self.plan, &saver.scribe, id, path);
        self.unsaved = Some(record.map_err(|error| self.given_by(node, error))?);
        Ok(())
    }

    async fn save_checkpoint(&mut self, step: i64) -> Result<(), Error> {
        let record = self.make_record(step)?;
        match (&self.saver, record) {
            (Some(saver), Some(record)) => Ok(saver.put(record).await?),
            _ => Ok(()),
        }
    }

    /// Makes the record of the live state, if there is someone to save it.
    fn make_record(&mut self, step: i64) -> Result<Option<CheckpointRecord>, Error> {
        let (Some(saver), Some(id), Some(source)) = (&self.saver, self.checkpoint, self.source) else {
            return Ok(None);
        };
        let header = Header { id, parent: self.saved, base: self.saved, head: self.head, source, step };
        let mut record = saver.record(&self.plan, &mut self.live, header)?;
        record.metadata = self.shared.metadata.clone();
        record.parents = self.config.ancestors.clone();
        record.writes.extend(self.unsaved.take());
        self.previous = self.saved;
        self.saved = Some(id);
        self.head = Some(id);
        Ok(Some(record))
    }

    /// With durability `exit`: the last checkpoint, and what was written after it.
    pub(super) async fn save_exit(&mut self, paused_or_failed: bool) -> Result<(), Error> {
        if !self.saves_at_exit() || !(!self.config.nested || paused_or_failed || self.config.own_history) {
            return Ok(());
        }
        if self.is_torn {
            return self.save_input().await;
        }
        if self.checkpoint.is_some() && self.checkpoint != self.saved {
            self.save_checkpoint(self.step - 1).await?;
        }
        if self.saved.is_none() {
            return Ok(());
        }
        self.save_null_record().await?;
        let places: HashMap<TaskId, usize> =
            (0..self.tasks.len()).filter_map(|ix| Some((self.tasks[ix].id?, ix))).collect();
        for id in std::mem::take(&mut self.pending.unsaved) {
            let Some(mut writes) = self.pending.of(id).cloned() else { continue };
            let place = places.get(&id).copied();
            let path = place.map_or_else(|| "".into(), |ix| self.path_name(ix));
            let saved = self.save_record(id, &mut writes, path).await;
            saved.map_err(|error| match place {
                Some(ix) => self.given_by(self.tasks[ix].node, error),
                None => error,
            })?;
        }
        if let Some(desk) = self.desk.clone() {
            for (id, mut writes) in desk.finished() {
                self.save_record(id, &mut writes, "".into()).await?;
            }
        }
        Ok(())
    }

    /// Saves the thread as it was before the run, and with what the run began.
    async fn save_input(&mut self) -> Result<(), Error> {
        let Some(start) = self.input.take() else { return Ok(()) };
        self.live = Live::empty(&self.plan);
        self.load().await?;
        self.take_input(start).await?;
        self.save_checkpoint(self.step - 1).await
    }

    async fn save_record(&mut self, id: TaskId, writes: &mut TaskWrites, path: Arc<str>) -> Result<(), Error> {
        let (Some(saver), Some(checkpoint)) = (&mut self.saver, self.saved) else { return Ok(()) };
        let record = writes.record(&self.plan, &saver.scribe, id, path)?;
        Ok(saver.put_writes(checkpoint, record).await?)
    }

    pub(super) async fn save_null_writes(&mut self) -> Result<(), Error> {
        match &self.saver {
            Some(saver) if saver.durability != Durability::Exit => self.save_null_record().await,
            _ => Ok(()),
        }
    }

    async fn save_null_record(&mut self) -> Result<(), Error> {
        let (Some(saver), Some(checkpoint)) = (&mut self.saver, self.saved) else { return Ok(()) };
        if self.pending.null_log.is_empty() && self.pending.null_resume.is_none() {
            return Ok(());
        }
        let resume = self.pending.null_resume.clone().map(|v| Value::Array(vec![v]));
        let writes = self.pending.null_log.clone();
        let record = TaskWrites::default().record(&self.plan, &saver.scribe, TaskId::NULL, "".into());
        let record = record?.with_writes(writes).with_resume(resume);
        Ok(saver.put_writes(checkpoint, record).await?)
    }

    /// Saves what a task wrote, unless only the end of the run is saved.
    pub(super) async fn save_writes(&mut self, ix: usize) -> Result<SavedWhen, Error> {
        if self.saver.is_none() {
            return Ok(SavedWhen::Now);
        }
        let writes = &self.tasks[ix].writes;
        let ended = writes.is_finished() && writes.error().is_none();
        let exit = self.saves_at_exit();
        // The checkpoint of a step with one task follows at once: both are saved together.
        if self.tasks.len() == 1 && ended && !exit {
            self.keep_with_checkpoint()?;
            return Ok(SavedWhen::WithCheckpoint);
        }
        let id = self.task_id(ix);
        let path = self.path_name(ix);
        let mut writes = std::mem::take(&mut self.tasks[ix].writes);
        // Its record will say that the task has to run again, unless its step is saved.
        let unsaved = !exit && ended && self.holds_unsaved(&writes);
        let mut again = self.handles_again(ix, id).then(|| writes.how_it_went());
        let result = if exit || self.saved.is_none() {
            Ok(())
        } else {
            self.save_record(id, again.as_mut().unwrap_or(&mut writes), path).await
        };
        self.pending.set(id, again.unwrap_or_else(|| writes.clone()));
        if exit {
            self.pending.unsaved.push(id);
        }
        self.tasks[ix].writes = writes;
        result.map_err(|error| self.given_by(self.tasks[ix].node, error))?;
        Ok(if unsaved { SavedWhen::WithCheckpoint } else { SavedWhen::Now })
    }

    fn holds_unsaved(&self, writes: &TaskWrites) -> bool {
        let ty = &self.plan.ty;
        self.saver.is_some() && writes.puts.places().iter().any(|place| ty.is_unsaved(&writes.puts, place))
    }

    /// Whether it is an error handler that finished in an earlier run. What it wrote then stays saved, though nobody reads
    /// it: a record of both runs would be of neither.
    fn handles_again(&self, ix: usize, id: TaskId) -> bool {
        self.tasks[ix].failure.is_some() && self.pending.of(id).is_some_and(TaskWrites::is_finished)
    }
}
