//! What a run shows: built only if someone asked for it.

use std::sync::Arc;
use std::time::SystemTime;

use super::inspect::{Subgraph, TaskViews};
use super::run::Run;
use super::tasks;
use crate::call::{lock, with_node_metadata};
use crate::checkpoint::{Interrupt, Metadata};
use crate::error::Error;
use crate::snapshot::{CheckpointRef, StateSnapshot};
use crate::stream::{
    DebugEvent, EventData, MessageEvent, Mode, NodeUpdate, RawEvent, Sink, TaskEnd, TaskMetadata, TaskStart,
};
use crate::view::{Fields, ShownWrites};

impl Run {
    /// Where this graph's events go, if anywhere.
    pub(super) fn sink(&self) -> Option<&Sink> {
        self.shared.sink.as_ref().filter(|s| !self.config.nested || s.subgraphs)
    }

    fn wants(&self, mode: Mode) -> bool {
        self.sink().is_some_and(|s| s.wants(mode))
    }

    fn event_namespace(&self) -> Vec<String> {
        if self.config.namespace.is_empty() {
            return Vec::new();
        }
        self.config.namespace.split('|').map(str::to_owned).collect()
    }

    pub(super) async fn send(&self, mode: Mode, data: EventData) {
        if let Some(sink) = self.sink() {
            sink.send(RawEvent::new(self.event_namespace(), mode, self.step, data)).await;
        }
    }

    /// Lets the reader take all that was shown, before a node of the step is run. Graphs inside a streamed one do so even
    /// if their own events are not asked for: the reader may leave, or have something else to do.
    pub(super) async fn give_reader_its_turn(&self) {
        if let Some(sink) = &self.shared.sink {
            sink.give_reader_its_turn().await;
        }
    }

    /// A task or checkpoint event, also as a debug event.
    async fn send_with_debug(&self, mode: Mode, step: i64, make: impl Fn() -> EventData) {
        if self.wants(mode) {
            self.send(mode, make()).await;
        }
        if self.wants(Mode::Debug) {
            let debug = DebugEvent { step, at: SystemTime::now(), event: Box::new(make()) };
            self.send(Mode::Debug, EventData::Debug(debug)).await;
        }
    }

    /// The state as it is now.
    pub(super) async fn show_values(&mut self, interrupts: &[Interrupt]) {
        self.note_shown(interrupts);
        if self.wants(Mode::Values) {
            self.send(Mode::Values, EventData::Values(self.values(interrupts.to_vec()).into())).await;
        }
    }

    /// Remembers that the state was given out, and how it was if it may be otherwise by the end.
    pub(super) fn note_shown(&mut self, interrupts: &[Interrupt]) {
        self.shown = true;
        if !self.plan.transient.is_empty() || !self.plan.custom.is_empty() || !interrupts.is_empty() {
            self.last_shown = Some(self.values(interrupts.to_vec()));
        } else {
            self.last_shown = None;
        }
    }

    /// Whether somebody wants to see the checkpoints that are made.
    pub(super) fn shows_checkpoints(&self) -> bool {
        self.saver.is_some() && (self.wants(Mode::Checkpoints) || self.wants(Mode::Debug))
    }

    /// Whether somebody wants to see how the tasks of the step begin, or what those wrote that have run before.
    pub(super) fn shows_starts(&self) -> bool {
        self.is_watched()
            && (self.wants(Mode::Tasks) || self.wants(Mode::Debug) || self.tasks.iter().any(|task| task.skip))
    }

    pub(super) async fn show_checkpoint(&mut self) {
        if !self.shows_checkpoints() {
            return;
        }
        for ix in 0..self.tasks.len() {
            self.task_id(ix);
        }
        let snapshot = self.checkpoint_snapshot();
        let snapshot = Box::new(snapshot.typed());
        let make = || EventData::Checkpoint(snapshot.clone());
        self.send_with_debug(Mode::Checkpoints, self.step - 1, make).await;
    }

    /// The tasks of the step, to be shown.
    fn views(&self) -> TaskViews<'_> {
        let (plan, live, tasks) = (&self.plan, &self.live, &self.tasks);
        TaskViews { plan, live, tasks, step: self.step, stop: self.stop }
    }

    fn checkpoint_snapshot(&self) -> StateSnapshot<()> {
        let thread = self.saver.as_ref().map(|s| s.thread.to_string()).unwrap_or_default();
        let at = |id| CheckpointRef {
            thread: thread.clone(),
            namespace: self.config.namespace.clone(),
            id,
            parents: (*self.config.ancestors).clone(),
        };
        let mut values = self.values(Vec::new());
        values.view.fields = self.plan.shown.clone();
        StateSnapshot {
            state: Arc::default(),
            next: self.tasks.iter().map(|t| self.plan.nodes[t.node].name.to_string()).collect(),
            checkpoint: self.checkpoint.map(at),
            parent: self.previous.map(at),
            source: self.source,
            step: Some(self.step - 1),
            created_at: self.checkpoint.map(crate::CheckpointId::created_at),
            metadata: (*self.shared.metadata).clone(),
            tasks: (0..self.tasks.len()).map(|ix| self.shown_task(ix)).collect(),
            interrupts: Vec::new(),
            unreadable: Vec::new(),
            values,
        }
    }

    fn shown_task(&self, ix: usize) -> crate::snapshot::TaskSnapshot {
        let known = self.tasks[ix].id.and_then(|id| self.pending.of(id));
        self.views().snapshot(ix, known, &self.config.output, false, Subgraph::default())
    }

    pub(super) async fn show_task_starts(&mut self) {
        if !(self.wants(Mode::Tasks) || self.wants(Mode::Debug)) {
            return;
        }
        for ix in 0..self.tasks.len() {
            if self.plan.nodes[self.tasks[ix].node].hidden {
                continue;
            }
            let id = self.task_id(ix);
            let start = self.task_start(ix, id);
            self.send_with_debug(Mode::Tasks, self.step, || EventData::TaskStart(start.clone())).await;
        }
    }

    fn task_start(&self, ix: usize, id: crate::TaskId) -> TaskStart {
        let (node, views) = (&self.plan.nodes[self.tasks[ix].node], self.views());
        let (triggers, input) = (views.triggers(ix), views.input(ix));
        let (metadata, tags) = (Arc::unwrap_or_clone(self.said_about(ix)), self.shared.tags.to_vec());
        TaskStart { id, name: node.name.to_string(), triggers, metadata, tags, input }
    }

    /// What was said about the run, and about the nodes that a task is in.
    fn said_about(&self, ix: usize) -> Metadata {
        let outer = self.config.around.as_ref().map_or(&self.shared.metadata, |around| around.metadata());
        with_node_metadata(outer, &self.plan.nodes[self.tasks[ix].node].metadata)
    }

    /// What is known of a task, to be shown beside its messages.
    fn task_metadata(&mut self, ix: usize) -> TaskMetadata {
        let id = self.task_id(ix);
        let node = &self.plan.nodes[self.tasks[ix].node].name;
        let name = match &self.live.former {
            Some(former) => former.name_of(self.tasks[ix].node).unwrap_or(node),
            None => node,
        };
        let namespace = tasks::task_namespace(&self.config.namespace, name, id);
        let placed = (self.views().triggers(ix), self.place_of(ix).path(node, None));
        self.shared.task_metadata((node, self.step), &namespace, placed, &self.said_about(ix))
    }

    fn shown_writes(&self, ix: usize, fields: Fields) -> ShownWrites {
        let writes = &self.tasks[ix].writes;
        ShownWrites::new(writes.puts.clone(), fields, writes.returned().cloned(), &self.plan.ty)
    }

    /// Shows what a task wrote, asked or failed with; `known` if it did not run for it now.
    pub(super) async fn show_writes(&mut self, ix: usize, known: bool) {
        let events = self.write_events(ix, known);
        for (mode, data) in events {
            self.send(mode, data).await;
        }
    }

    /// The events of a task that ended, in the order in which they are shown.
    pub(super) fn write_events(&mut self, ix: usize, known: bool) -> Vec<(Mode, EventData)> {
        let mut events = Vec::new();
        // Of the start only questions are shown, which its conditional edges may ask.
        let hidden = self.plan.nodes[self.tasks[ix].node].hidden;
        if let Some(interrupts) = self.tasks[ix].writes.interrupts().cloned() {
            self.add_question(interrupts, &mut events);
        }
        if hidden || !self.is_watched() {
            return events;
        }
        if self.tasks[ix].writes.interrupts().is_none() && self.has_update(ix) {
            self.add_messages(ix, known, &mut events);
            self.add_update(ix, known, &mut events);
        }
        if !known && (self.wants(Mode::Tasks) || self.wants(Mode::Debug)) {
            self.add_task_end(ix, &mut events);
        }
        events
    }

    fn add_question(&mut self, interrupts: Vec<Interrupt>, events: &mut Vec<(Mode, EventData)>) {
        self.note_shown(&interrupts);
        let values = self.wants(Mode::Values).then(|| EventData::Values(self.values(interrupts.clone()).into()));
        if self.wants(Mode::Updates) {
            events.push((Mode::Updates, EventData::Interrupts(interrupts)));
        }
        events.extend(values.map(|values| (Mode::Values, values)));
    }

    /// A task that failed before it wrote anything has no update to show.
    fn has_update(&self, ix: usize) -> bool {
        let writes = &self.tasks[ix].writes;
        writes.error().is_none() || writes.has_output() || writes.resume().is_some()
    }

    fn add_update(&mut self, ix: usize, known: bool, events: &mut Vec<(Mode, EventData)>) {
        if self.wants(Mode::Updates) {
            let (step, task) = (self.step, self.task_id(ix));
            let node = self.plan.nodes[self.tasks[ix].node].name.to_string();
            let writes = self.shown_writes(ix, self.config.output.clone());
            events.push((Mode::Updates, EventData::Updates(NodeUpdate { node, step, task, cached: known, writes })));
        }
    }

    fn add_task_end(&mut self, ix: usize, events: &mut Vec<(Mode, EventData)>) {
        let end = TaskEnd {
            id: self.task_id(ix),
            name: self.plan.nodes[self.tasks[ix].node].name.to_string(),
            error: self.tasks[ix].writes.error().cloned(),
            interrupts: self.tasks[ix].writes.interrupts().cloned().unwrap_or_default(),
            writes: self.shown_writes(ix, self.plan.shown.clone()),
        };
        if self.wants(Mode::Tasks) {
            events.push((Mode::Tasks, EventData::TaskEnd(end.clone())));
        }
        if self.wants(Mode::Debug) {
            let event = Box::new(EventData::TaskEnd(end));
            let debug = DebugEvent { step: self.step, at: SystemTime::now(), event };
            events.push((Mode::Debug, EventData::Debug(debug)));
        }
    }

    /// The chat messages among what a task wrote that nobody has seen yet.
    fn add_messages(&mut self, ix: usize, known: bool, events: &mut Vec<(Mode, EventData)>) {
        if known || !self.wants(Mode::Messages) {
            return;
        }
        self.note_message_ids();
        let writes = self.shown_writes(ix, self.plan.shown.clone());
        let mut metadata: Option<Arc<TaskMetadata>> = None;
        for (message, whole) in writes.messages() {
            let new = message.id.as_ref().is_none_or(|id| lock(&self.shared.seen_messages).insert(id.clone()));
            if new && !crate::message::MessageLike::is_removal(&message) {
                let metadata = metadata.get_or_insert_with(|| Arc::new(self.task_metadata(ix))).clone();
                let (node, step) = (metadata.node.clone(), self.step);
                let data = MessageEvent { message, chunk: None, whole, node, step, metadata };
                events.push((Mode::Messages, EventData::Message(data)));
            }
        }
    }

    /// The last things shown by a run that pauses: what finished beside the question, and the stop itself.
    pub(super) async fn show_pause(&mut self, interrupts: &[Interrupt]) -> Result<(), Error> {
        if self.tasks.iter().any(|t| t.writes.is_finished()) || self.calls_have_pushed() {
            let written = self.wrote_output();
            let plan = self.plan.clone();
            self.apply_tasks(&plan)?;
            if written && self.changed_output(&plan) {
                self.show_values(&[]).await;
            }
        }
        if interrupts.is_empty() && self.wants(Mode::Updates) {
            self.send(Mode::Updates, EventData::Interrupts(Vec::new())).await;
        }
        Ok(())
    }
}
