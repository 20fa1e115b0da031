//! Applies the writes of one step to the live state. Pure.
//!
//! Writes are applied in task-path order, never in arrival order, so a replay gives the same
//! checkpoint. All channels that change in a step get one version.
#![expect(clippy::inline_always, reason = "the parts of every step: as calls they are 3 % of it")]

use std::cell::Cell;

use smallvec::SmallVec;

use super::live::{Live, Start};
use super::save::{Entry, Journal};
use super::writes::TaskWrites;
use crate::bits::Bits;
use crate::error::InvalidUpdate;
use crate::plan::{ControlKind, Plan};
use crate::state::erased::{Due, MergeWatch, Snapshot, Writes};
use crate::state::{Change, FieldKind, Scratch};
use crate::value::Blob;
use crate::wall::{Panicked, caught};

/// The writes of one task, and what they do to triggers.
pub(crate) struct Applied {
    /// The node that wrote, if one did.
    pub(crate) node: Option<usize>,
    /// The node whose triggers were used up, if the task was woken by one.
    pub(crate) woken: Option<usize>,
    /// Whether this ends a step, as opposed to what a caller brings along.
    pub(crate) ends_step: bool,
    pub(crate) writes: TaskWrites,
}

impl Applied {
    /// Writes of a caller: they do not end a step.
    pub(crate) fn by_caller(writes: TaskWrites) -> Self {
        Self { node: None, woken: None, ends_step: false, writes }
    }
}

/// Applies writes, given in the order in which they count, and returns the channels that were updated.
///
/// `early` are the channels that [`put_early`] has updated already.
pub(crate) fn apply(
    plan: &Plan,
    live: &mut Live,
    start: Option<Start>,
    batch: SmallVec<[Applied; 1]>,
    early: Option<Vec<usize>>,
) -> Result<Vec<usize>, InvalidUpdate> {
    guarded(plan, |merging| apply_all(plan, live, start, batch, early, merging))
}

fn apply_all(
    plan: &Plan,
    live: &mut Live,
    start: Option<Start>,
    batch: SmallVec<[Applied; 1]>,
    early: Option<Vec<usize>>,
    merging: &Merging,
) -> Result<Vec<usize>, InvalidUpdate> {
    let ends = batch.iter().any(|a| a.ends_step);
    let mut step = Step::new(plan, live, early.unwrap_or_default(), ends, merging);
    batch.iter().filter_map(|a| a.woken).for_each(|node| step.note_seen(node));
    batch.iter().filter_map(|a| a.woken).for_each(|node| step.consume(node));
    step.write(start, batch)?;
    step.end()
}

/// The first input of a thread: it wakes the start node, and there is nothing else yet.
pub(crate) fn apply_start(plan: &Plan, live: &mut Live, start: Start) -> Vec<usize> {
    let merging = Merging::default();
    let mut step = Step::new(plan, live, Vec::new(), false, &merging);
    step.live.start = Some(start);
    step.signal(0, 0);
    step.updated
}

/// Applies what the only task of a step wrote; it is taken out of `writes`.
pub(crate) fn apply_one(
    plan: &Plan,
    live: &mut Live,
    woken: Option<usize>,
    writes: &mut TaskWrites,
    early: Vec<usize>,
) -> Result<Vec<usize>, InvalidUpdate> {
    guarded(plan, |merging| apply_lone(Step::new(plan, live, early, true, merging), woken, writes))
}

fn apply_lone(mut step: Step<'_>, woken: Option<usize>, writes: &mut TaskWrites) -> Result<Vec<usize>, InvalidUpdate> {
    if let Some(node) = woken {
        step.note_seen(node);
        if step.plan.nodes[node].consumes {
            step.consume(node);
        }
    }
    for (channel, member) in &writes.signals {
        step.signal(*channel, *member);
    }
    match writes.take_rest() {
        Some(rest) => step.send(rest.sends),
        None => step.end_sends(),
    }
    step.put(&mut [Writer::of(woken, writes)])?;
    step.end()
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

/// One who writes in a step.
struct Writer {
    /// The node, if it is one.
    node: Option<usize>,
    writes: Writes,
    /// The bytes of each write, if it was saved.
    encoded: SmallVec<[Blob; 1]>,
}

/// Who writes, and the bytes of what is written.
type Source<'a> = (Option<usize>, &'a SmallVec<[Blob; 1]>);

impl Writer {
    /// Takes what a task wrote to fields.
    fn of(node: Option<usize>, task: &mut TaskWrites) -> Self {
        Self { node, writes: std::mem::take(&mut task.puts), encoded: std::mem::take(&mut task.encoded) }
    }
}

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

struct Step<'a> {
    plan: &'a Plan,
    live: &'a mut Live,
    version: u64,
    updated: Vec<usize>,
    ends: bool,
    merging: &'a Merging,
}

impl<'a> Step<'a> {
    fn new(plan: &'a Plan, live: &'a mut Live, early: Vec<usize>, ends: bool, merging: &'a Merging) -> Self {
        let version = live.max_version + 1;
        if !early.is_empty() {
            live.max_version = version;
        }
        Self { version, updated: early, plan, live, ends, merging }
    }

    /// What follows when everything is written.
    #[inline(always)]
    fn end(mut self) -> Result<Vec<usize>, InvalidUpdate> {
        if self.ends {
            self.close_unwritten();
            if !self.plan.is_steady() {
                self.end_unwritten()?;
            }
            if self.is_last() {
                self.finish();
            }
        }
        Ok(self.updated)
    }

    #[inline(always)]
    fn note_seen(&mut self, node: usize) {
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
    fn bump(&mut self, channel: usize) {
        self.versions().bump(channel);
    }

    /// A channel changed; it can trigger nodes if it has a value.
    #[inline]
    fn changed(&mut self, channel: usize, available: bool) {
        self.versions().changed(channel, available);
    }

    /// Closes joins and deferred triggers whose nodes have run.
    #[inline]
    fn consume(&mut self, node: usize) {
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
                    let (plan, field) = (self.plan, channel - self.plan.control.len());
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

    fn write(&mut self, start: Option<Start>, batch: SmallVec<[Applied; 1]>) -> Result<(), InvalidUpdate> {
        if let Some(start) = start {
            self.live.start = Some(start);
            self.signal(0, 0);
        }
        let (mut sends, mut writers) = (Vec::new(), SmallVec::<[Writer; 1]>::new());
        for applied in batch {
            let (mut writes, writer) = (applied.writes, applied.node);
            for (channel, member) in std::mem::take(&mut writes.signals) {
                self.signal(channel, member);
            }
            if let Some(rest) = writes.take_rest() {
                sends.extend(rest.sends);
            }
            writers.push(Writer::of(writer, &mut writes));
        }
        self.send(sends);
        self.put(&mut writers)
    }

    /// The state, to change a field of it. Nothing is copied here unless someone else still holds it.
    #[inline(always)]
    fn state_for(&mut self, field: usize) -> &mut Snapshot {
        self.merging.set(Work::Merge(field));
        &mut self.live.state
    }

    /// Sends wait for one step.
    fn send(&mut self, sends: Vec<crate::call::Send>) {
        if sends.is_empty() {
            return self.end_sends();
        }
        if self.ends {
            self.live.sends.clear();
        }
        self.live.sends.extend(sends);
        self.live.max_version = self.version;
    }

    #[inline]
    fn end_sends(&mut self) {
        if self.ends && !self.live.sends.is_empty() {
            self.live.sends.clear();
            self.live.max_version = self.version;
        }
    }

    #[inline(always)]
    fn signal(&mut self, channel: usize, member: usize) {
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
    fn put(&mut self, writers: &mut [Writer]) -> Result<(), InvalidUpdate> {
        let due = self.due(writers);
        if due.is_empty() {
            return Ok(());
        }
        let (plan, ty) = (self.plan, &*self.plan.ty);
        let Live { state, scratch, present, versions, max_version, journal, .. } = &mut *self.live;
        let (version, updated, merging) = (self.version, &mut self.updated, self.merging);
        let noted = Noted { plan, versions, max_version, present, journal, updated, version };
        let (mut sources, mut writes) = (SmallVec::<[Source<'_>; 1]>::new(), SmallVec::<[&mut Writes; 1]>::new());
        for writer in writers {
            sources.push((writer.node, &writer.encoded));
            writes.push(&mut writer.writes);
        }
        let mut watch = Watch { noted, scratch, unused: Scratch::default(), sources: &sources, merging };
        ty.merge(state, &mut writes, &due, &mut watch)
    }

    /// The writes to merge, by field. What one field is written stays in task order.
    fn due(&self, writers: &[Writer]) -> SmallVec<[Due; 2]> {
        let each = writers.iter().enumerate().flat_map(|(writer, by)| {
            by.writes.places().iter().enumerate().map(move |(place, at)| Due::new(at, writer, place))
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
        let Live { open, versions, signals, start, max_version, .. } = &mut *self.live;
        let (mut kept, list) = (0, open.as_mut_slice());
        for place in 0..list.len() {
            let channel = list[place];
            if versions[channel] == self.version {
                debug_assert!(self.updated.contains(&channel), "a newer version than the thread's newest");
                list[kept] = channel;
                kept += 1;
                continue;
            }
            signals[channel].set = false;
            (versions[channel], *max_version) = (self.version, self.version);
            if channel == 0 {
                *start = None;
            }
        }
        open.truncate(kept);
    }

    /// Empties transient fields that the step has not written, and tells custom ones.
    fn end_unwritten(&mut self) -> Result<(), InvalidUpdate> {
        for field in &self.plan.transient {
            let channel = self.plan.channel_of_field(*field);
            if self.live.present.has(*field) && !self.updated.contains(&channel) {
                let plan = self.plan;
                plan.ty.reset(self.state_for(*field), *field);
                self.note_presence(*field, Change::Cleared);
                self.bump(channel);
            }
        }
        for field in &self.plan.custom {
            let channel = self.plan.channel_of_field(*field);
            if self.live.present.has(*field) && !self.updated.contains(&channel) {
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
        self.updated.iter().all(|c| self.plan.triggered[*c].is_empty())
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
        let Live { present, versions, max_version, journal, .. } = &mut *self.live;
        let (plan, updated, version) = (self.plan, &mut self.updated, self.version);
        Noted { plan, versions, max_version, present, journal, updated, version }
    }
}

/// What is noted of channels that change.
struct Noted<'a> {
    plan: &'a Plan,
    versions: &'a mut Vec<u64>,
    max_version: &'a mut u64,
    present: &'a mut Bits,
    journal: &'a mut Option<Journal>,
    updated: &'a mut Vec<usize>,
    version: u64,
}

impl Noted<'_> {
    #[inline(always)]
    fn bump(&mut self, channel: usize) {
        self.versions[channel] = self.version;
        *self.max_version = self.version;
    }

    /// A channel changed; it can trigger nodes if it has a value.
    #[inline(always)]
    fn changed(&mut self, channel: usize, available: bool) {
        self.bump(channel);
        if available && !self.updated.contains(&channel) {
            self.updated.push(channel);
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

/// Merges the writes of a step's only task ahead of the rest, so that its conditional edges can
/// read the state in place. The version of the step is not used up yet. `list` is an empty list to use.
pub(crate) fn put_early(
    plan: &Plan,
    live: &mut Live,
    node: usize,
    writes: &mut TaskWrites,
    list: Vec<usize>,
) -> Result<Vec<usize>, InvalidUpdate> {
    let before = live.max_version;
    let updated = guarded(plan, |merging| {
        let mut step = Step::new(plan, live, list, false, merging);
        step.put(&mut [Writer::of(Some(node), writes)])?;
        Ok(step.updated)
    });
    live.max_version = before;
    updated
}
