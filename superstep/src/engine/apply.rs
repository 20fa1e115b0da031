//! Applies the writes of one step to the live state. Pure.
//!
//! Writes are applied in task-path order, never in arrival order, so a replay gives the same
//! checkpoint. All channels that change in a step get one version.
#![expect(clippy::inline_always, reason = "the parts of every step: as calls they are 3 % of it")]

use std::cell::Cell;
use std::sync::Arc;

use crate::value::Blob;
use smallvec::SmallVec;

use super::live::{Live, Start};
use super::save::Entry;
use super::writes::TaskWrites;
use crate::error::InvalidUpdate;
use crate::plan::{ControlKind, Plan};
use crate::state::{Change, FieldKind, Put, Scratch, State};
use crate::wall::{DropEach, Panicked, caught, drop_each};

/// The writes of one task, and what they do to triggers.
pub(crate) struct Applied<S: State> {
    /// The node that wrote, if one did.
    pub(crate) node: Option<usize>,
    /// The node whose triggers were used up, if the task was woken by one.
    pub(crate) woken: Option<usize>,
    /// Whether this ends a step, as opposed to what a caller brings along.
    pub(crate) ends_step: bool,
    pub(crate) writes: TaskWrites<S>,
}

impl<S: State> Applied<S> {
    /// Writes of a caller: they do not end a step.
    pub(crate) fn by_caller(writes: TaskWrites<S>) -> Self {
        Self { node: None, woken: None, ends_step: false, writes }
    }
}

/// Applies writes, given in the order in which they count, and returns the channels that were updated.
///
/// `early` are the channels that [`put_early`] has updated already.
pub(crate) fn apply<S: State>(
    plan: &Plan<S>,
    live: &mut Live<S>,
    start: Option<Start<S>>,
    batch: SmallVec<[Applied<S>; 1]>,
    early: Option<Vec<usize>>,
) -> Result<Vec<usize>, InvalidUpdate> {
    guarded(plan, |merging| apply_all(plan, live, start, batch, early, merging))
}

fn apply_all<S: State>(
    plan: &Plan<S>,
    live: &mut Live<S>,
    start: Option<Start<S>>,
    batch: SmallVec<[Applied<S>; 1]>,
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
pub(crate) fn apply_start<S: State>(plan: &Plan<S>, live: &mut Live<S>, start: Start<S>) -> Vec<usize> {
    let merging = Merging::default();
    let mut step = Step::new(plan, live, Vec::new(), false, &merging);
    step.live.start = Some(start);
    step.signal(0, 0);
    step.updated
}

/// Applies what the only task of a step wrote; it is taken out of `writes`.
pub(crate) fn apply_one<S: State>(
    plan: &Plan<S>,
    live: &mut Live<S>,
    woken: Option<usize>,
    writes: &mut TaskWrites<S>,
    early: Vec<usize>,
) -> Result<Vec<usize>, InvalidUpdate> {
    guarded(plan, |merging| apply_lone(Step::new(plan, live, early, true, merging), woken, writes))
}

fn apply_lone<S: State>(
    mut step: Step<'_, S>,
    woken: Option<usize>,
    writes: &mut TaskWrites<S>,
) -> Result<Vec<usize>, InvalidUpdate> {
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
    step.put_all(&mut writes.puts, &mut writes.encoded, woken)?;
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
pub(crate) fn guarded<S: State, T>(
    plan: &Plan<S>,
    merge: impl FnOnce(&Merging) -> Result<T, InvalidUpdate>,
) -> Result<T, InvalidUpdate> {
    let merging = Merging::default();
    // Nobody looks at a state that was left half merged: the run ends without saving it.
    caught(|| merge(&merging)).unwrap_or_else(|panicked| Err(misfortune(plan, merging.get(), &panicked)))
}

/// What panicked while writes were merged.
#[cold]
fn misfortune<S: State>(plan: &Plan<S>, at_work: Work, panicked: &Panicked) -> InvalidUpdate {
    match at_work {
        Work::Prepare => InvalidUpdate::panicked("", "what was written", panicked),
        Work::Copy => InvalidUpdate::state_panicked(panicked),
        Work::Merge(field) => {
            let what = if keeps_last(plan.kind(field)) { "its value" } else { "its reducer" };
            InvalidUpdate::panicked(plan.fields()[field].name(), what, panicked)
        }
    }
}

/// A write, with what applying it needs to know.
struct Due<W> {
    field: usize,
    /// The node that wrote it, if one did.
    writer: Option<usize>,
    put: Put<W>,
    /// Its bytes, if it was saved.
    bytes: Option<Blob>,
}

type Puts<S> = SmallVec<[Due<<S as State>::Write>; 2]>;

/// Why a field of a whole state that a node gave back cannot be taken.
const NOT_ALONE: &str = "a node gave back a whole state in which it was changed in a way that its reducer cannot express, and it was \
                         written by another one in the same step; let the node return an update, or derive `PartialEq` for \
                         the field's type if it was not changed";

/// What a checkpoint can take over from the writes of one field.
struct Saved {
    kind: FieldKind,
    bytes: Option<SmallVec<[Blob; 1]>>,
}

/// The same of a field that was written to once.
fn saved_once<W>(kind: FieldKind, put: &Put<W>, bytes: Option<Blob>) -> Entry {
    match bytes.filter(|_| !put.overwrite) {
        Some(bytes) if keeps_last(kind) => Entry::Whole(bytes),
        Some(bytes) if kind.is_incremental() => Entry::Tail(vec![bytes]),
        _ => Entry::Dirty,
    }
}

/// Whether the value of a field is the last one written to it.
pub(super) fn keeps_last(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::LastValue | FieldKind::AnyValue | FieldKind::Ephemeral)
}

impl Saved {
    fn new<W>(kind: FieldKind, first: &Put<W>, bytes: Option<Blob>) -> Self {
        let mut saved = Self { kind, bytes: Some(SmallVec::new()) };
        saved.add(first, bytes);
        saved
    }

    fn add<W>(&mut self, put: &Put<W>, bytes: Option<Blob>) {
        match (&mut self.bytes, bytes) {
            (Some(list), Some(bytes)) if !put.overwrite => list.push(bytes),
            _ => self.bytes = None,
        }
    }

    fn into_entry(self) -> Entry {
        match (self.kind, self.bytes) {
            (kind, Some(mut list)) if keeps_last(kind) => Entry::Whole(list.pop().expect("there is a write")),
            (kind, Some(list)) if kind.is_incremental() => Entry::Tail(list.into_vec()),
            _ => Entry::Dirty,
        }
    }
}

#[inline(always)]
fn scratch_of(all: &mut Vec<Scratch>, field: usize) -> &mut Scratch {
    if all.len() <= field {
        all.resize_with(field + 1, Scratch::default);
    }
    &mut all[field]
}

struct Step<'a, S: State> {
    plan: &'a Plan<S>,
    live: &'a mut Live<S>,
    version: u64,
    updated: Vec<usize>,
    ends: bool,
    merging: &'a Merging,
}

impl<'a, S: State> Step<'a, S> {
    fn new(plan: &'a Plan<S>, live: &'a mut Live<S>, early: Vec<usize>, ends: bool, merging: &'a Merging) -> Self {
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
        self.live.versions[channel] = self.version;
        self.live.max_version = self.version;
    }

    /// A channel changed; it can trigger nodes if it has a value.
    #[inline]
    fn changed(&mut self, channel: usize, available: bool) {
        self.bump(channel);
        if available && !self.updated.contains(&channel) {
            self.updated.push(channel);
        }
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
                    let change = self.state_for(field).consume(&plan.schema, field);
                    self.note_presence(field, change);
                    change.happened()
                }
            };
            if closed {
                self.bump(*channel);
            }
        }
    }

    fn write(&mut self, start: Option<Start<S>>, batch: SmallVec<[Applied<S>; 1]>) -> Result<(), InvalidUpdate> {
        if let Some(start) = start {
            self.live.start = Some(start);
            self.signal(0, 0);
        }
        let (mut sends, mut puts) = (Vec::new(), Puts::<S>::new());
        for applied in batch {
            let (mut writes, writer) = (applied.writes, applied.node);
            for (channel, member) in std::mem::take(&mut writes.signals) {
                self.signal(channel, member);
            }
            if let Some(rest) = writes.take_rest() {
                sends.extend(rest.sends);
            }
            let mut encoded = std::mem::take(&mut writes.encoded).into_iter();
            for put in std::mem::take(&mut writes.puts) {
                let bytes = encoded.next();
                puts.extend(self.field_of(&put, writer).map(|field| Due { field, writer, put, bytes }));
            }
        }
        self.send(sends);
        self.put(puts)
    }

    /// The state, to change a field of it. Nothing is copied here unless someone else still holds it.
    #[inline(always)]
    fn state_for(&mut self, field: usize) -> &mut S {
        self.merging.set(Work::Copy);
        let state = Arc::make_mut(&mut self.live.state);
        self.merging.set(Work::Merge(field));
        state
    }

    /// The field that a put is for, if it may be written.
    #[inline]
    fn field_of(&self, put: &Put<S::Write>, writer: Option<usize>) -> Option<usize> {
        let field = S::field_of(&self.plan.schema, &put.write);
        if field.is_none() {
            let (field, node) = (S::name_of(&put.write), writer.map(|n| &*self.plan.nodes[n].name));
            tracing::warn!(field, node, "a write to a field that the state does not have is passed over");
        }
        field.filter(|f| !self.plan.kind(*f).is_managed())
    }

    /// The puts of one task.
    #[inline]
    fn put_all(
        &mut self,
        list: &mut SmallVec<[Put<S::Write>; 1]>,
        encoded: &mut SmallVec<[Blob; 1]>,
        writer: Option<usize>,
    ) -> Result<(), InvalidUpdate> {
        if list.len() <= 1 {
            let Some(put) = list.pop() else { return Ok(()) };
            let Some(field) = self.field_of(&put, writer) else { return Ok(()) };
            let saved = self.live.journal.is_some().then(|| saved_once(self.plan.kind(field), &put, encoded.pop()));
            let change = self.update(field, &mut std::iter::once(put))?;
            self.note_put(field, change, saved);
            return Ok(());
        }
        let mut puts = Puts::<S>::new();
        let mut encoded = encoded.drain(..);
        for put in list.drain(..) {
            let bytes = encoded.next();
            puts.extend(self.field_of(&put, writer).map(|field| Due { field, writer, put, bytes }));
        }
        self.put(puts)
    }

    /// Sends wait for one step.
    fn send(&mut self, sends: Vec<crate::node::Send>) {
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

    fn put(&mut self, mut puts: Puts<S>) -> Result<(), InvalidUpdate> {
        if puts.len() > 1 {
            // Stable: the writes of one field stay in task order.
            puts.sort_by_key(|due| due.field);
        }
        let mut rest = DropEach(puts.into_iter().peekable());
        while let Some(first) = rest.0.next() {
            let (field, kind) = (first.field, self.plan.kind(first.field));
            let mut saved = self.live.journal.is_some().then(|| Saved::new(kind, &first.put, first.bytes));
            let (mut writers, mut is_alone) = (SmallVec::<[_; 2]>::from_iter([first.writer]), first.put.stands_alone());
            let mut one_field = std::iter::once(first.put).chain(std::iter::from_fn(|| {
                let due = rest.0.next_if(|due| due.field == field)?;
                if let Some(saved) = &mut saved {
                    saved.add(&due.put, due.bytes);
                }
                writers.push(due.writer);
                is_alone |= due.put.stands_alone();
                Some(due.put)
            }));
            let change = self.update(field, &mut one_field);
            drop_each(one_field.by_ref());
            drop(one_field);
            let not_alone = || InvalidUpdate::new(self.plan.fields()[field].name(), NOT_ALONE);
            let change = if is_alone && writers.len() > 1 { Err(not_alone()) } else { change };
            let change = change.map_err(|error| error.written_by(writers.into_iter().flatten()))?;
            self.note_put(field, change, saved.map(Saved::into_entry));
        }
        Ok(())
    }

    /// Merges the writes of a step into a field.
    #[inline(always)]
    fn update(
        &mut self,
        field: usize,
        writes: &mut dyn Iterator<Item = Put<S::Write>>,
    ) -> Result<Change, InvalidUpdate> {
        self.merging.set(Work::Copy);
        let mut unused = Scratch::default();
        let scratch = match self.plan.kind(field) {
            FieldKind::Messages => scratch_of(&mut self.live.scratch, field),
            _ => &mut unused,
        };
        let state = Arc::make_mut(&mut self.live.state);
        self.merging.set(Work::Merge(field));
        state.update(&self.plan.schema, field, writes, scratch)
    }

    #[inline(always)]
    fn note_put(&mut self, field: usize, change: Change, saved: Option<Entry>) {
        if !change.happened() {
            return;
        }
        let has_value = self.set_presence(field, change);
        if let (Some(journal), Some(saved)) = (&mut self.live.journal, saved) {
            journal.note(field, saved);
        }
        self.changed(self.plan.channel_of_field(field), has_value);
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
                self.state_for(*field).reset(&plan.schema, *field);
                self.note_presence(*field, Change::Cleared);
                self.bump(channel);
            }
        }
        for field in &self.plan.custom {
            let channel = self.plan.channel_of_field(*field);
            if self.live.present.has(*field) && !self.updated.contains(&channel) {
                let (plan, mut unused) = (self.plan, Scratch::default());
                let none = &mut std::iter::empty();
                let change = self.state_for(*field).update(&plan.schema, *field, none, &mut unused)?;
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
            let change = self.state_for(*field).finish(&plan.schema, *field);
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
        let has_value = self.set_presence(field, change);
        if let Some(journal) = &mut self.live.journal {
            if has_value || self.plan.kind(field) == FieldKind::Custom {
                journal.dirty(field);
            } else {
                journal.absent(field);
            }
        }
    }

    #[inline(always)]
    fn set_presence(&mut self, field: usize, change: Change) -> bool {
        let has_value = match self.plan.kind(field) {
            FieldKind::Custom => self.live.state.read(&self.plan.schema, field).is_some(),
            _ => change == Change::Set,
        };
        if has_value {
            self.live.present.set(field);
        } else {
            self.live.present.unset(field);
        }
        has_value
    }
}

/// Merges one task's writes into a copy of the state, for its conditional edges to read.
pub(crate) fn put_into<S: State>(plan: &Plan<S>, state: &mut S, puts: &[Put<S::Write>]) -> Result<(), InvalidUpdate> {
    let field_of = |put: &Put<S::Write>| S::field_of(&plan.schema, &put.write).filter(|f| !plan.kind(*f).is_managed());
    let mut fields: SmallVec<[usize; 4]> = puts.iter().filter_map(field_of).collect();
    fields.sort_unstable();
    fields.dedup();
    guarded(plan, |merging| {
        for field in &fields {
            let mut writes = puts.iter().filter(|p| field_of(p) == Some(*field)).cloned();
            merging.set(Work::Merge(*field));
            state.update(&plan.schema, *field, &mut writes, &mut Scratch::default())?;
        }
        for field in plan.transient.iter().filter(|f| !fields.contains(f)) {
            merging.set(Work::Merge(*field));
            state.reset(&plan.schema, *field);
        }
        Ok(())
    })
}

/// Merges the writes of a step's only task ahead of the rest, so that its conditional edges can
/// read the state in place. The version of the step is not used up yet. `list` is an empty list to use.
pub(crate) fn put_early<S: State>(
    plan: &Plan<S>,
    live: &mut Live<S>,
    node: usize,
    writes: &mut TaskWrites<S>,
    list: Vec<usize>,
) -> Result<Vec<usize>, InvalidUpdate> {
    let before = live.max_version;
    let updated = guarded(plan, |merging| {
        let mut step = Step::new(plan, live, list, false, merging);
        step.put_all(&mut writes.puts, &mut writes.encoded, Some(node))?;
        Ok(step.updated)
    });
    live.max_version = before;
    updated
}
