//! The frozen graph: dense tables that the engine runs on.
//!
//! Names are resolved here once; a step touches numbers only. Control channels come first,
//! then the fields: a channel number below `control.len()` is a trigger of the graph's own.

mod core;
mod diagnostic;
mod evolution;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use smallvec::SmallVec;

use crate::bits::Bits;
use crate::call::{AnyNode, CacheRule, Call, Context, Path, PathFn, RetryPolicy, TimeoutPolicy};
use crate::index::{ChannelIx, Indexed, Ix, NodeIx};
use crate::names::{DEFAULT_NAME, PREGEL_NAME};
use crate::state::erased::StateType;
use crate::state::{FieldKind, FieldSpec, Given};
use crate::value::Blob;
use crate::view::Fields;

pub(crate) use core::{GraphCore, Persistence};
pub use diagnostic::Diagnostic;
pub(crate) use evolution::{Evolution, Now, Piece};
pub use evolution::{Migrated, SavedFields, Then};

/// A frozen graph.
pub(crate) struct Plan {
    pub(crate) name: Arc<str>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What can be done with the states of the graph.
    pub(crate) ty: Arc<dyn StateType>,
    pub(crate) nodes: Indexed<NodeIx, NodePlan>,
    /// How many levels of graphs inside graphs it is, itself included.
    pub(crate) levels: usize,
    pub(crate) names: NameTable,
    pub(crate) control: Indexed<ChannelIx, ControlChannel>,
    /// The kinds of the fields.
    pub(crate) kinds: Vec<FieldKind>,
    /// The names of control channels, of fields, and the places of nodes, to share with records.
    pub(crate) labels: Labels,
    /// For every channel, control and field, the nodes that it triggers.
    pub(crate) triggered: Indexed<ChannelIx, Woken>,
    /// The length of the table of seen versions.
    pub(crate) seen_len: usize,
    /// Fields that a step without a write empties.
    pub(crate) transient: Vec<usize>,
    /// Fields with a rule of their own, and fields that trigger nodes.
    pub(crate) custom: Vec<usize>,
    pub(crate) initial: Bits,
    /// Control channels that wait for the rest of the graph.
    pub(crate) deferred: Vec<ChannelIx>,
    /// Control channels that may be written for more than one step, and fields that trigger nodes.
    pub(crate) lasting: Vec<ChannelIx>,
    pub(crate) untracked: Vec<usize>,
    pub(crate) input: InputMode,
    pub(crate) output: Fields,
    /// What the `values` stream and snapshots show.
    pub(crate) shown: Fields,
    pub(crate) stop_before: StopAt,
    pub(crate) stop_after: StopAt,
    pub(crate) step_timeout: Option<std::time::Duration>,
    /// Whether names of nodes that the graph does not have are ignored where a run is led to them.
    pub(crate) ignores_unknown: bool,
    /// The version of the state.
    pub(crate) version: u32,
    /// What earlier versions of the graph were like.
    pub(crate) evolution: Evolution,
}

/// Where a run's input goes.
pub(crate) enum InputMode {
    /// Into the start channel; the start node writes these fields.
    Start { fields: Option<Vec<usize>> },
    /// Into the start channel; a node reads it as it is.
    Entry,
    /// Straight into fields.
    Fields(Vec<usize>),
}

/// Nodes at which a run stops.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum StopAt {
    #[default]
    Nowhere,
    Nodes(Vec<NodeIx>),
    Everywhere,
}

/// Numbers of channels: mostly one.
pub(crate) type Numbers = SmallVec<[ChannelIx; 1]>;

/// The nodes that a channel wakes: mostly one.
pub(crate) type Woken = SmallVec<[NodeIx; 1]>;

/// What every step needs comes first, side by side: a long chain runs through the memory of its nodes.
#[repr(C)]
pub(crate) struct NodePlan {
    pub(crate) run: AnyNode,
    pub(crate) name: Arc<str>,
    pub(crate) triggers: Numbers,
    /// Stands for its name in the ids of tasks.
    pub(crate) key: u64,
    /// Where the node's triggers start in the table of seen versions.
    pub(crate) seen_at: usize,
    /// The start node: it runs, but nobody sees it.
    pub(crate) hidden: bool,
    /// The engine may run it without retry, timeout, cache or handler around it.
    pub(crate) plain: bool,
    /// Its conditional edges are plain functions.
    pub(crate) quick_branches: bool,
    /// Some of its conditional edges ask for the task's context.
    pub(crate) paths_ask: bool,
    /// It has triggers that its run uses up.
    pub(crate) consumes: bool,
    /// The channel that wakes it, unless only fields do.
    pub(crate) wake: Option<ChannelIx>,
    pub(crate) edges: Numbers,
    /// A static edge leads from it to `END`; drawings show it.
    pub(crate) ends: bool,
    pub(crate) branches: Vec<BranchPlan>,
    pub(crate) joins: Vec<(ChannelIx, usize)>,
    /// The triggers' names in order, part of the ids of the node's tasks.
    pub(crate) trigger_names: Vec<String>,
    /// The node's place in the order of names.
    pub(crate) rank: usize,
    pub(crate) reads: Option<Arc<[usize]>>,
    pub(crate) retry: Arc<[RetryPolicy]>,
    pub(crate) timeout: Option<TimeoutPolicy>,
    pub(crate) cache: Option<CacheRule>,
    pub(crate) handler: Option<NodeIx>,
    pub(crate) is_handler: bool,
    pub(crate) defer: bool,
    pub(crate) blocking: bool,
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) destinations: Option<Vec<(String, Option<String>)>>,
    /// Writes to `__root__`-like output: an entrypoint's result.
    pub(crate) returns: bool,
}

impl NodePlan {
    /// Notes what the rest comes to, once it is known.
    pub(crate) fn settle(&mut self, seen_at: usize, control: &Indexed<ChannelIx, ControlChannel>) {
        let kind = |c: &ChannelIx| control.get(*c).map(|c| &c.kind);
        let wakes = |c: &&ChannelIx| matches!(kind(c), Some(ControlKind::Branch | ControlKind::BranchDeferred));
        self.wake = self.triggers.iter().find(wakes).copied();
        let stays = |c: &ChannelIx| matches!(kind(c), Some(ControlKind::Start | ControlKind::Branch));
        self.consumes = !self.triggers.iter().all(stays);
        self.seen_at = seen_at;
        self.plain = self.retry.is_empty()
            && self.timeout.is_none()
            && self.handler.is_none()
            && !self.blocking
            && self.cache.is_none();
        self.quick_branches = self.branches.iter().all(|b| matches!(b.path.run, PathFn::Sync(_)));
        self.paths_ask = self.branches.iter().any(|b| matches!(b.path.run, PathFn::Async { asks: true, .. }));
    }
}

pub(crate) struct BranchPlan {
    pub(crate) path: Path,
    /// Labels and where they lead; `None` leads anywhere.
    pub(crate) map: Option<Vec<(String, String)>>,
}

/// A trigger of the graph's own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ControlChannel {
    pub(crate) name: String,
    pub(crate) kind: ControlKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ControlKind {
    /// Holds a run's input for one step.
    Start,
    /// Wakes a node in the next step.
    Branch,
    /// Wakes a node when nothing else is left to run.
    BranchDeferred,
    /// Wakes a node when all members have written.
    Join { members: Vec<String> },
    /// The same, when nothing else is left to run.
    JoinDeferred { members: Vec<String> },
}

impl Plan {
    pub(crate) fn fields(&self) -> &[FieldSpec] {
        self.ty.fields()
    }

    pub(crate) fn field_named(&self, name: &str) -> Option<usize> {
        self.fields().iter().position(|f| f.name() == name)
    }

    #[inline]
    pub(crate) fn kind(&self, field: usize) -> FieldKind {
        self.kinds[field]
    }

    /// The number of a field among all channels.
    pub(crate) fn channel_of_field(&self, field: usize) -> ChannelIx {
        ChannelIx::new(self.control.len() + field)
    }

    /// The field that a channel is, unless it is a control channel.
    pub(crate) fn field_of_channel(&self, channel: ChannelIx) -> Option<usize> {
        channel.get().checked_sub(self.control.len())
    }

    /// Where the text stands that puts a node's tasks in the order in which writes are applied.
    pub(crate) fn path_text(&self, node: NodeIx) -> usize {
        self.triggered.len() + node.get()
    }

    /// The name that records have for a channel.
    pub(crate) fn label(&self, channel: ChannelIx) -> Arc<str> {
        self.labels.names[channel.get()].clone()
    }

    /// The name that its user gave it, if one was given.
    pub(crate) fn given_name(&self) -> Option<&str> {
        Some(&*self.name).filter(|name| *name != DEFAULT_NAME && *name != PREGEL_NAME)
    }

    /// A call of a node, or of a path of it.
    #[inline]
    pub(crate) fn call<'a>(
        &'a self,
        node: NodeIx,
        input: Given<'a>,
        (step, stop): (i64, i64),
        context: &'a mut dyn FnMut() -> Context,
    ) -> Call<'a> {
        let node = &self.nodes[node];
        let (name, reads) = (&node.name, node.reads.as_deref());
        Call { ty: &self.ty, node: name, reads, input, state: None, present: None, step, stop, context }
    }

    pub(crate) fn node(&self, name: &str) -> Option<NodeIx> {
        self.names.get(name).copied()
    }
}

/// What records call the parts of a graph.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Of channels, then the paths of the nodes.
    pub(crate) names: Vec<Arc<str>>,
    /// The names that the numbers in a checkpoint's control part stand for, encoded.
    pub(crate) shape: Blob,
}

pub(crate) type NameTable = HashMap<Arc<str>, NodeIx>;
