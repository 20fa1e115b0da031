//! Applies the writes of one step to the live state. Pure.
//!
//! Writes are applied in task-path order, never in arrival order, so a replay gives the same
//! checkpoint. All channels that change in a step get one version.
#![expect(clippy::inline_always, reason = "the parts of every step: as calls they are 3 % of it")]

use std::cell::Cell;

use smallvec::SmallVec;

use super::live::{Live, Start};
use super::save::{Entry, Journal};
use super::tasks::Task;
use super::writes::TaskWrites;
use crate::bits::Bits;
use crate::error::InvalidUpdate;
use crate::index::{ChannelIx, Indexed, NodeIx};
use crate::plan::{ControlKind, Plan};
use crate::state::erased::{Due, MergeWatch, Snapshot, Writes};
use crate::state::{Change, FieldKind, Scratch};
use crate::value::Blob;
use crate::wall::{Panicked, caught};

/// The writes of one task, and what they do to triggers.
pub(crate) struct Applied<'a> {
    /// The node that wrote, if one did.
    pub(crate) node: Option<NodeIx>,
    /// The node whose triggers were used up, if the task was woken by one.
    pub(crate) woken: Option<NodeIx>,
    /// Whether this ends a step, as opposed to what a caller brings along.
    pub(crate) ends_step: bool,
    /// Used up by being applied.
    pub(crate) writes: &'a mut TaskWrites,
}

impl<'a> Applied<'a> {
    /// Writes of a caller: they do not end a step.
    pub(crate) fn by_caller(writes: &'a mut TaskWrites) -> Self {
        Self { node: None, woken: None, ends_step: false, writes }
    }

    /// What a task wrote.
    pub(crate) fn of_task(task: &'a mut Task) -> Self {
        Self { node: Some(task.node), woken: task.woken(), ends_step: true, writes: &mut task.writes }
    }

    /// What is known of a task that did not run here.
    pub(crate) fn result_of(task: &Task, writes: &'a mut TaskWrites) -> Self {
        Self { node: task.woken(), woken: task.woken(), ends_step: true, writes }
    }
}

/// Applies writes, given in the order in which they count, as a step of their own.
pub(crate) fn apply(
    plan: &Plan,
    live: &mut Live,
    start: Option<Start>,
    batch: &mut [Applied<'_>],
) -> Result<(), InvalidUpdate> {
    live.open_step();
    guarded(plan, |merging| apply_all(plan, live, start, batch, merging))
}

/// Applies the writes of the step under way, given in the order in which they count.
pub(crate) fn apply_step(plan: &Plan, live: &mut Live, batch: &mut [Applied<'_>]) -> Result<(), InvalidUpdate> {
    guarded(plan, |merging| apply_all(plan, live, None, batch, merging))
}

fn apply_all(
    plan: &Plan,
    live: &mut Live,
    start: Option<Start>,
    batch: &mut [Applied<'_>],
    merging: &Merging,
) -> Result<(), InvalidUpdate> {
    let mut step = Step { plan, live, merging };
    for node in batch.iter().filter_map(|applied| applied.woken) {
        step.note_seen(node);
    }
    for node in batch.iter().filter_map(|applied| applied.woken).filter(|node| plan.nodes[*node].consumes) {
        step.consume(node);
    }
    if let Some(start) = start {
        step.begin(start);
    }
    let ends = batch.iter().any(|applied| applied.ends_step);
    step.write(batch, ends)?;
    if ends {
        step.end()?;
    }
    live.close_step();
    Ok(())
}

/// The first input of a thread: it wakes the start node, and there is nothing else yet.
pub(crate) fn apply_start(plan: &Plan, live: &mut Live, start: Start) {
    live.open_step();
    Step { plan, live, merging: &Merging::default() }.begin(start);
    live.close_step();
}

/// Merges what the only task of a step wrote before the rest of the step is applied: its conditional edges read the state
/// itself then, where they would need a copy if others had written too.
///
/// The state must be what such a copy would be: fields that live for one step are emptied unless the task wrote them, as
/// they are at the end of the step anyway. Whether a node has seen the channels that it was woken by is noted after this,
/// by version: that is right only if the node cannot write them, so if no field triggers nodes (`plan.custom`).
pub(crate) fn merge_first(
    plan: &Plan,
    live: &mut Live,
    node: NodeIx,
    writes: &mut TaskWrites,
) -> Result<(), InvalidUpdate> {
    debug_assert!(plan.custom.is_empty(), "fields with rules of their own are merged with the rest of their step");
    guarded(plan, |merging| {
        let mut step = Step { plan, live, merging };
        step.put(&mut [Applied { node: Some(node), woken: None, ends_step: true, writes: &mut *writes }])?;
        step.empty_transient();
        Ok(())
    })?;
    writes.is_merged = true;
    Ok(())
}

/// Whose code is at work while writes are merged.
#[derive(Clone, Copy, Default)]
pub(crate) enum Work {
    #[default]
    Prepare,
    /// The state's, which is copied because others hold it.
    Copy,
    /// That of a field's rule and values.
    Merge(usize),
}

type Merging = Cell<Work>;

/// Runs rules of fields. A panic of a rule is a refusal: the run fails and its process lives on.
pub(crate) fn guarded<T>(
    plan: &Plan,
    merge: impl FnOnce(&Merging) -> Result<T, InvalidUpdate>,
) -> Result<T, InvalidUpdate> {
    let merging = Merging::default();
    // Nobody looks at a state that was left half merged: the run ends without saving it.
    caught(|| merge(&merging)).unwrap_or_else(|panicked| Err(misfortune(plan, merging.get(), &panicked)))
}

/// What panicked while writes were merged.
#[cold]
fn misfortune(plan: &Plan, at_work: Work, panicked: &Panicked) -> InvalidUpdate {
    match at_work {
        Work::Prepare => InvalidUpdate::panicked("", "what was written", panicked),
        Work::Copy => InvalidUpdate::state_panicked(panicked),
        Work::Merge(field) => {
            let what = if keeps_last(plan.kind(field)) { "its value" } else { "its reducer" };
            InvalidUpdate::panicked(plan.fields()[field].name(), what, panicked)
        }
    }
}

/// Who writes, and the bytes of what is written.
type Source<'a> = (Option<NodeIx>, &'a SmallVec<[Blob; 1]>);

/// Why a field of a whole state that a node gave back cannot be taken.
const NOT_ALONE: &str = "a node gave back a whole state in which it was changed in a way that its reducer cannot express, and it was \
                         written by another one in the same step; let the node return an update, or derive `PartialEq` for \
                         the field's type if it was not changed";

/// Whether the value of a field is the last one written to it.
pub(super) fn keeps_last(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::LastValue | FieldKind::AnyValue | FieldKind::Ephemeral)
}

/// What a checkpoint can take over from the writes of one field: nothing if one of them overwrites or was not saved.
fn saved(kind: FieldKind, due: &[Due], sources: &[Source<'_>]) -> Entry {
    let bytes = |due: &Due| sources[due.writer].1.get(due.place).cloned();
    if due.iter().any(|due| due.overwrites) {
        return Entry::Dirty;
    }
    if keeps_last(kind) {
        return due.last().and_then(bytes).map_or(Entry::Dirty, Entry::Whole);
    }
    if !kind.is_incremental() {
        return Entry::Dirty;
    }
    due.iter().map(bytes).collect::<Option<Vec<_>>>().map_or(Entry::Dirty, Entry::Tail)
}

#[inline(always)]
fn scratch_of(all: &mut Vec<Scratch>, field: usize) -> &mut Scratch {
    if all.len() <= field {
        all.resize_with(field + 1, Scratch::default);
    }
    &mut all[field]
}

/// The step under way.
struct Step<'a> {
    plan: &'a Plan,
    live: &'a mut Live,
    merging: &'a Merging,
}

impl Step<'_> {
    /// What follows when everything is written.
    #[inline(always)]
    fn end(&mut self) -> Result<(), InvalidUpdate> {
        self.close_unwritten();
        self.empty_transient();
        self.leave_custom()?;
        if self.is_last() {
            self.finish();
        }
        Ok(())
    }

    #[inline(always)]
    fn note_seen(&mut self, node: NodeIx) {
        let node = &self.plan.nodes[node];
        let Live { seen, versions, last_seen, .. } = &mut *self.live;
        for (i, channel) in node.triggers.iter().enumerate() {
            let (at, version) = (node.seen_at + i, versions[*channel]);
            if version == 0 || (seen[at] == version) {
                continue;
            }
            let newest = last_seen.first().map_or(0, |first| seen[*first]);
            if version > newest {
                last_seen.clear();
            }
            if version >= newest {
                last_seen.push(at);
            }
            seen[at] = version;
        }
    }

    #[inline]
    fn bump(&mut self, channel: ChannelIx) {
        self.versions().bump(channel);
    }

    /// A channel changed; it can trigger nodes if it has a value.
    #[inline]
    fn changed(&mut self, channel: ChannelIx, available: bool) {
        self.versions().changed(channel, available);
    }

    /// Closes joins and deferred triggers whose nodes have run.
    #[inline]
    fn consume(&mut self, node: NodeIx) {
        for channel in &self.plan.nodes[node].triggers {
            let closed = match self.plan.control.get(*channel).map(|c| &c.kind) {
                Some(ControlKind::Start | ControlKind::Branch) => false,
                Some(kind) => {
                    let signal = &mut self.live.signals[*channel];
                    let open = signal.available(kind);
                    if open {
                        *signal = super::live::Signal::default();
                    }
                    open
                }
                None => {
                    let (plan, field) =
                        (self.plan, self.plan.field_of_channel(*channel).expect("it is no control channel"));
                    let change = plan.ty.consume(self.state_for(field), field);
                    self.note_presence(field, change);
                    change.happened()
                }
            };
            if closed {
                self.bump(*channel);
            }
        }
    }

    /// An input wakes the start node.
    fn begin(&mut self, start: Start) {
        self.live.start = Some(start);
        self.signal(ChannelIx::FIRST, 0);
    }

    fn write(&mut self, batch: &mut [Applied<'_>], ends: bool) -> Result<(), InvalidUpdate> {
        let mut sends = Vec::new();
        for applied in &mut *batch {
            for (channel, member) in &applied.writes.signals {
                self.signal(*channel, *member);
            }
            applied.writes.take_sends(&mut sends);
        }
        self.send(sends, ends);
        self.put(batch)
    }

    /// The state, to change a field of it. Nothing is copied here unless someone else still holds it.
    #[inline(always)]
    fn state_for(&mut self, field: usize) -> &mut Snapshot {
        self.merging.set(Work::Merge(field));
        &mut self.live.state
    }

    /// Sends wait for one step.
    fn send(&mut self, mut sends: Vec<crate::call::Send>, ends: bool) {
        let ended = if ends { std::mem::take(&mut self.live.sends) } else { Vec::new() };
        if !(ended.is_empty() && sends.is_empty()) {
            self.live.sends.append(&mut sends);
            self.live.max_version = self.live.version;
        }
    }

    #[inline(always)]
    fn signal(&mut self, channel: ChannelIx, member: usize) {
        let signal = &mut self.live.signals[channel];
        let (changed, available) = match &self.plan.control[channel].kind {
            ControlKind::Start | ControlKind::Branch => {
                if !signal.set {
                    self.live.open.push(channel);
                }
                signal.set = true;
                (true, true)
            }
            ControlKind::BranchDeferred => {
                signal.set = true;
                signal.finished = false;
                (true, false)
            }
            kind => {
                let new = !signal.members.has(member);
                signal.members.set(member);
                (new, signal.available(kind))
            }
        };
        if changed {
            self.changed(channel, available);
        }
    }

    /// Merges what was written, field by field.
    fn put(&mut self, batch: &mut [Applied<'_>]) -> Result<(), InvalidUpdate> {
        let due = self.due(batch);
        if due.is_empty() {
            return Ok(());
        }
        let (plan, ty) = (self.plan, &*self.plan.ty);
        let Live { state, scratch, present, versions, max_version, journal, version, changed, .. } = &mut *self.live;
        let (version, merging) = (*version, self.merging);
        let noted = Noted { plan, versions, max_version, present, journal, changed, version };
        let (mut sources, mut writes) = (SmallVec::<[Source<'_>; 1]>::new(), SmallVec::<[&mut Writes; 1]>::new());
        for applied in batch {
            let TaskWrites { puts, encoded, .. } = &mut *applied.writes;
            sources.push((applied.node, encoded));
            writes.push(puts);
        }
        let mut watch = Watch { noted, scratch, unused: Scratch::default(), sources: &sources, merging };
        ty.merge(state, &mut writes, &due, &mut watch)
    }

    /// The writes to merge, by field. What one field is written stays in task order.
    fn due(&self, batch: &[Applied<'_>]) -> SmallVec<[Due; 2]> {
        let unmerged = batch.iter().enumerate().filter(|(_, applied)| !applied.writes.is_merged);
        let each = unmerged.flat_map(|(writer, applied)| {
            applied.writes.puts.places().iter().enumerate().map(move |(place, at)| Due::new(at, writer, place))
        });
        let mut due: SmallVec<[Due; 2]> = each.filter(|due| !self.plan.kind(due.field).is_managed()).collect();
        if due.len() > 1 {
            due.sort_by_key(|due| due.field);
        }
        due
    }

    /// Closes the triggers that were open for one step, but for those that this step has written: only they have its version.
    #[inline(always)]
    fn close_unwritten(&mut self) {
        let Live { open, versions, signals, start, max_version, version, changed, .. } = &mut *self.live;
        let (mut kept, list) = (0, open.as_mut_slice());
        for place in 0..list.len() {
            let channel = list[place];
            if versions[channel] == *version {
                debug_assert!(changed.contains(&channel), "a newer version than the thread's newest");
                list[kept] = channel;
                kept += 1;
                continue;
            }
            signals[channel].set = false;
            (versions[channel], *max_version) = (*version, *version);
            if channel == ChannelIx::FIRST {
                *start = None;
            }
        }
        open.truncate(kept);
    }

    /// Empties fields that live for one step and that the step has not written.
    fn empty_transient(&mut self) {
        for field in &self.plan.transient {
            let channel = self.plan.channel_of_field(*field);
            if self.live.present.has(*field) && !self.live.changed.contains(&channel) {
                let plan = self.plan;
                plan.ty.reset(self.state_for(*field), *field);
                self.note_presence(*field, Change::Cleared);
                self.bump(channel);
            }
        }
    }

    /// Tells fields with rules of their own that the step has not written them.
    fn leave_custom(&mut self) -> Result<(), InvalidUpdate> {
        for field in &self.plan.custom {
            let channel = self.plan.channel_of_field(*field);
            if self.live.present.has(*field) && !self.live.changed.contains(&channel) {
                let plan = self.plan;
                let change = plan.ty.leave(self.state_for(*field), *field)?;
                self.note_presence(*field, change);
                if change.happened() {
                    self.changed(channel, self.live.present.has(*field));
                }
            }
        }
        Ok(())
    }

    /// Whether nothing that was updated wakes a node.
    #[inline]
    fn is_last(&self) -> bool {
        self.live.changed.iter().all(|c| self.plan.triggered[*c].is_empty())
    }

    /// Opens what waits for the rest of the graph.
    fn finish(&mut self) {
        for channel in &self.plan.deferred {
            let signal = &mut self.live.signals[*channel];
            let ready = match &self.plan.control[*channel].kind {
                ControlKind::BranchDeferred => signal.set,
                ControlKind::JoinDeferred { members } => signal.members.count() == members.len(),
                _ => false,
            };
            if ready && !signal.finished {
                signal.finished = true;
                self.changed(*channel, true);
            }
        }
        for field in &self.plan.custom {
            let plan = self.plan;
            let change = plan.ty.finish(self.state_for(*field), *field);
            self.note_presence(*field, change);
            if change.happened() {
                self.changed(self.plan.channel_of_field(*field), self.live.present.has(*field));
            }
        }
    }

    /// A field changed otherwise than by a write.
    fn note_presence(&mut self, field: usize, change: Change) {
        if !change.happened() {
            return;
        }
        let mut noted = self.versions();
        let has_value = noted.set_presence(field, change);
        let is_custom = noted.plan.kind(field) == FieldKind::Custom;
        if let Some(journal) = noted.journal {
            if has_value || is_custom {
                journal.dirty(field);
            } else {
                journal.absent(field);
            }
        }
    }

    #[inline(always)]
    fn versions(&mut self) -> Noted<'_> {
        let Live { present, versions, max_version, journal, version, changed, .. } = &mut *self.live;
        Noted { plan: self.plan, versions, max_version, present, journal, changed, version: *version }
    }
}

/// What is noted of channels that change.
struct Noted<'a> {
    plan: &'a Plan,
    versions: &'a mut Indexed<ChannelIx, u64>,
    max_version: &'a mut u64,
    present: &'a mut Bits,
    journal: &'a mut Option<Journal>,
    changed: &'a mut Vec<ChannelIx>,
    version: u64,
}

impl Noted<'_> {
    #[inline(always)]
    fn bump(&mut self, channel: ChannelIx) {
        self.versions[channel] = self.version;
        *self.max_version = self.version;
    }

    /// A channel changed; it can trigger nodes if it has a value.
    #[inline(always)]
    fn changed(&mut self, channel: ChannelIx, available: bool) {
        self.bump(channel);
        if available && !self.changed.contains(&channel) {
            self.changed.push(channel);
        }
    }

    #[inline(always)]
    fn set_presence(&mut self, field: usize, change: Change) -> bool {
        let has_value = change == Change::Set;
        if has_value {
            self.present.set(field);
        } else {
            self.present.unset(field);
        }
        has_value
    }
}

/// Notes what is merged.
struct Watch<'a> {
    noted: Noted<'a>,
    scratch: &'a mut Vec<Scratch>,
    unused: Scratch,
    sources: &'a [Source<'a>],
    merging: &'a Merging,
}

impl MergeWatch for Watch<'_> {
    fn copying(&mut self) {
        self.merging.set(Work::Copy);
    }

    fn merging(&mut self, field: usize) -> &mut Scratch {
        self.merging.set(Work::Merge(field));
        match self.noted.plan.kind(field) {
            FieldKind::Messages => scratch_of(self.scratch, field),
            _ => &mut self.unused,
        }
    }

    fn merged(&mut self, result: Result<Change, InvalidUpdate>, due: &[Due]) -> Result<(), InvalidUpdate> {
        let (plan, field) = (self.noted.plan, due[0].field);
        let is_alone = due.iter().any(|due| due.stands_alone);
        let not_alone = || InvalidUpdate::new(plan.fields()[field].name(), NOT_ALONE);
        let result = if is_alone && due.len() > 1 { Err(not_alone()) } else { result };
        let writers = || due.iter().filter_map(|due| self.sources[due.writer].0);
        let change = result.map_err(|error| error.written_by(writers()))?;
        if !change.happened() {
            return Ok(());
        }
        let has_value = self.noted.set_presence(field, change);
        if let Some(journal) = &mut *self.noted.journal {
            journal.note(field, saved(plan.kind(field), due, self.sources));
        }
        self.noted.changed(plan.channel_of_field(field), has_value);
        Ok(())
    }
}

/// The state with one task's own writes in it, for its conditional edges to read; a copy, as others hold the state.
pub(crate) fn local_state(plan: &Plan, state: &Snapshot, writes: &Writes) -> Result<Snapshot, InvalidUpdate> {
    if writes.is_empty() && plan.transient.is_empty() {
        return Ok(state.clone());
    }
    let (mut local, mut writes) = (state.clone(), writes.clone());
    guarded(plan, |merging| {
        let mut due: SmallVec<[Due; 4]> = (0..writes.len())
            .map(|place| Due::new(&writes.places()[place], 0, place))
            .filter(|due| !plan.kind(due.field).is_managed())
            .collect();
        due.sort_by_key(|due| due.field);
        let unwritten: Vec<usize> =
            plan.transient.iter().copied().filter(|field| !due.iter().any(|due| due.field == *field)).collect();
        for due in due.chunk_by(|one, next| one.field == next.field) {
            let mut watch = Unwatched { merging, scratch: &mut Scratch::default() };
            plan.ty.merge(&mut local, &mut [&mut writes], due, &mut watch)?;
        }
        for field in unwritten {
            merging.set(Work::Merge(field));
            plan.ty.reset(&mut local, field);
        }
        Ok(())
    })?;
    Ok(local)
}

/// Merges a write that was saved into a field, as it was merged before it was saved.
pub(crate) fn merge_again(
    plan: &Plan,
    state: &mut Snapshot,
    mut write: Writes,
    scratch: &mut Scratch,
) -> Result<(), InvalidUpdate> {
    let due: SmallVec<[Due; 1]> = write.places().iter().map(|place| Due::new(place, 0, 0)).collect();
    guarded(plan, |merging| plan.ty.merge(state, &mut [&mut write], &due, &mut Unwatched { merging, scratch }))
}

/// Notes only what is at work.
struct Unwatched<'a> {
    merging: &'a Merging,
    scratch: &'a mut Scratch,
}

impl MergeWatch for Unwatched<'_> {
    fn copying(&mut self) {
        self.merging.set(Work::Copy);
    }

    fn merging(&mut self, field: usize) -> &mut Scratch {
        self.merging.set(Work::Merge(field));
        self.scratch
    }

    fn merged(&mut self, result: Result<Change, InvalidUpdate>, _: &[Due]) -> Result<(), InvalidUpdate> {
        result.map(drop)
    }
}
