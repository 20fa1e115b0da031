//! The live state of a run: values, triggers and versions.

use std::sync::Arc;

use serde_json::Value;
use smallvec::SmallVec;

use crate::bits::Bits;
use crate::call::{Goto, Send};
use crate::index::{ChannelIx, Indexed, NodeIx};
use crate::plan::{ControlKind, Plan};
use crate::state::Scratch;
use crate::state::erased::{Snapshot, Writes};

/// More steps than any thread takes; twice as many are still a number.
pub(crate) const MOST_STEPS: i64 = i64::MAX / 4;

/// What a trigger of the graph's own holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Signal {
    /// A value was written.
    pub(crate) set: bool,
    /// A deferred trigger is open.
    pub(crate) finished: bool,
    /// The members of a join that have written.
    pub(crate) members: Bits,
}

impl Signal {
    pub(crate) fn available(&self, kind: &ControlKind) -> bool {
        match kind {
            ControlKind::Start | ControlKind::Branch => self.set,
            ControlKind::BranchDeferred => self.set && self.finished,
            ControlKind::Join { members } => self.members.count() == members.len(),
            ControlKind::JoinDeferred { members } => self.finished && self.members.count() == members.len(),
        }
    }
}

/// The input of a run, until the start node has taken it.
#[derive(Clone)]
pub(crate) enum Start {
    Writes { writes: Writes, goto: Vec<Goto> },
    Value(Value),
}

pub(crate) struct Live {
    pub(crate) state: Snapshot,
    /// The fields that have a value.
    pub(crate) present: Bits,
    pub(crate) signals: Indexed<ChannelIx, Signal>,
    /// Triggers that are open for one step.
    pub(crate) open: SmallVec<[ChannelIx; 2]>,
    pub(crate) start: Option<Start>,
    pub(crate) sends: Vec<Send>,
    /// The step in which each channel changed last; one number for all changes of a step.
    pub(crate) versions: Indexed<ChannelIx, u64>,
    pub(crate) max_version: u64,
    /// For each node, the versions of its triggers that it has run on.
    pub(crate) seen: Vec<u64>,
    /// The places in `seen` with the newest version of all: where the nodes are that ran last.
    pub(crate) last_seen: SmallVec<[usize; 2]>,
    /// Whether the nodes that ran last are no longer part of the graph; then `last_seen` is empty.
    pub(crate) last_gone: bool,
    /// The newest version when the run was resumed last: what stops hold against.
    pub(crate) stop_seen: u64,
    /// The channels that the last step updated; `None` if that is not known.
    pub(crate) updated: Option<Vec<ChannelIx>>,
    /// The version of all that the step under way changes.
    pub(crate) version: u64,
    /// The channels that the step under way has updated so far.
    pub(crate) changed: Vec<ChannelIx>,
    pub(crate) scratch: Vec<Scratch>,
    /// Nodes that had another name when the checkpoint was saved: its tasks go by that one.
    pub(crate) former: Option<Arc<Former>>,
    /// Nodes that work was left for and that are gone.
    pub(crate) lost: Vec<String>,
    /// Fields changed since the last checkpoint, if anyone saves them.
    pub(crate) journal: Option<super::save::Journal>,
}

/// Names that nodes had before.
pub(crate) struct Former(pub(crate) Vec<(NodeIx, Arc<str>)>);

impl Former {
    pub(crate) fn name_of(&self, node: NodeIx) -> Option<&Arc<str>> {
        self.0.iter().find(|(known, _)| *known == node).map(|(_, name)| name)
    }
}

impl Live {
    /// Before anything was written.
    pub(crate) fn empty(plan: &Plan) -> Self {
        Self {
            state: plan.ty.empty(),
            present: plan.initial.clone(),
            signals: plan.control.iter().map(|_| Signal::default()).collect(),
            open: SmallVec::new(),
            start: None,
            sends: Vec::new(),
            versions: plan.triggered.iter().map(|_| 0).collect(),
            max_version: 0,
            seen: vec![0; plan.seen_len],
            last_seen: SmallVec::new(),
            last_gone: false,
            stop_seen: 0,
            updated: None,
            version: 1,
            changed: Vec::new(),
            scratch: Vec::new(),
            former: None,
            lost: Vec::new(),
            journal: None,
        }
    }

    /// The same once more, to go back to; what is only there to be quick or to be saved is left out.
    pub(crate) fn copy(&self) -> Self {
        Self {
            state: self.state.clone(),
            present: self.present.clone(),
            signals: self.signals.clone(),
            open: self.open.clone(),
            start: self.start.clone(),
            sends: self.sends.clone(),
            versions: self.versions.clone(),
            max_version: self.max_version,
            seen: self.seen.clone(),
            last_seen: self.last_seen.clone(),
            last_gone: self.last_gone,
            stop_seen: self.stop_seen,
            updated: self.updated.clone(),
            version: self.version,
            changed: self.changed.clone(),
            scratch: Vec::new(),
            former: self.former.clone(),
            lost: self.lost.clone(),
            journal: None,
        }
    }

    /// Begins a step: whatever it changes gets one version, which is newer than all others.
    pub(crate) fn open_step(&mut self) {
        self.version = self.max_version + 1;
        self.changed.clear();
    }

    /// Ends a step: what it has updated decides who runs in the next one.
    pub(crate) fn close_step(&mut self) {
        // The list of the step before is used again.
        let before = self.updated.take().unwrap_or_default();
        self.updated = Some(std::mem::replace(&mut self.changed, before));
    }

    /// The name under which the tasks of a node go: that of the node when the checkpoint was saved.
    pub(crate) fn task_name<'a>(&'a self, plan: &'a Plan, node: NodeIx) -> &'a Arc<str> {
        self.former.as_ref().and_then(|former| former.name_of(node)).unwrap_or(&plan.nodes[node].name)
    }

    pub(crate) fn available(&self, plan: &Plan, channel: ChannelIx) -> bool {
        match plan.control.get(channel) {
            Some(control) => self.signals[channel].available(&control.kind),
            None => plan.field_of_channel(channel).is_some_and(|field| self.present.has(field)),
        }
    }

    /// Whether a node has something new to run on.
    pub(crate) fn triggers(&self, plan: &Plan, node: NodeIx) -> bool {
        let node = &plan.nodes[node];
        let is_new = |i: usize, channel: ChannelIx| self.versions[channel] > self.seen[node.seen_at + i];
        node.triggers.iter().enumerate().any(|(i, c)| is_new(i, *c) && self.available(plan, *c))
    }
}
