//! Reading a checkpoint of a graph that has changed since: what its names and numbers are now.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::control::Reader;
use super::writes::{TASKS, decode_send, encode_send, finished_mark, marked_version, newer_version};
use crate::call::{Goto, Send};
use crate::checkpoint::{SavedField, TaskRecord, WriteRecord};
use crate::index::{ChannelIx, NodeIx};
use crate::names::{DEFAULT_HANDLER, HANDLER_OF, START};
use crate::plan::{Now, Piece, Plan, SavedFields};
use crate::value::Blob;

const BRANCH: &str = "branch:to:";
const JOIN: &str = "join:";

/// What a checkpoint says of the graph that saved it, beside the graph as it is now.
pub(super) struct Bridge {
    /// The version of the state that it holds.
    pub(super) version: u32,
    channels: Vec<Passage>,
    seen: Vec<Option<usize>>,
    nodes: Vec<String>,
    fields: Vec<String>,
    /// The name that the graph had been given, if that is known.
    name: Option<String>,
    /// Nodes that had another name.
    pub(super) former: Vec<(NodeIx, Arc<str>)>,
}

/// Where a trigger is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Passage {
    To(ChannelIx),
    /// A join of so many whose node was replaced: when it is complete, it wakes another node.
    Joined {
        members: usize,
        wake: ChannelIx,
    },
    /// What it holds means nothing any more.
    Closed,
    /// It was for this node, and nobody said what became of it.
    Lost(String),
}

/// The version of a state as the names of its graph tell it; what follows is left.
pub(super) fn read_version(input: &mut Reader<'_>) -> Result<u32, String> {
    if input.is_empty() {
        return Ok(1);
    }
    u32::try_from(input.number()?).map_err(|e| e.to_string())
}

impl Bridge {
    pub(super) fn read(plan: &Plan, shape: &[u8]) -> Result<Self, String> {
        let mut input = Reader::new(shape);
        let mut channels = Vec::new();
        let mut fields = Vec::new();
        for _ in 0..input.number()? {
            let name = input.text()?;
            channels.push(passage(plan, name));
            if name != START && !name.starts_with(BRANCH) && !name.starts_with(JOIN) {
                fields.push(name.to_owned());
            }
        }
        let (mut seen, mut nodes, mut former) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..input.number()? {
            let name = input.text()?;
            let node = same_node(plan, name);
            nodes.push(name.to_owned());
            former.extend(node.filter(|n| *plan.nodes[*n].name != *name).map(|n| (n, name.into())));
            for _ in 0..input.number()? {
                let channel = match channels.get(input.number()? as usize) {
                    Some(Passage::To(channel)) => Some(*channel),
                    _ => None,
                };
                let trigger = |n: NodeIx| plan.nodes[n].triggers.iter().position(|c| Some(*c) == channel);
                seen.push(node.and_then(|n| Some(plan.nodes[n].seen_at + trigger(n)?)));
            }
        }
        let version = read_version(&mut input)?;
        let name = if input.is_empty() { None } else { Some(input.text()?.to_owned()) };
        Ok(Self { version, channels, seen, nodes, fields, name, former })
    }

    /// The nodes that users know.
    fn shown_nodes(&self) -> impl Iterator<Item = &String> {
        self.nodes.iter().filter(|name| *name != START && *name != DEFAULT_HANDLER && !name.starts_with(HANDLER_OF))
    }

    /// Whether the graph has, or knows of, a node of the graph that saved.
    pub(super) fn knows_a_node(&self, plan: &Plan) -> bool {
        self.shown_nodes().any(|name| now(plan, name) != Now::Lost)
    }

    /// Whether both graphs were given names, and not the same.
    pub(super) fn is_named_otherwise(&self, plan: &Plan) -> bool {
        matches!((self.name.as_deref(), plan.given_name()), (Some(saved), Some(name)) if saved != name)
    }

    /// Whether another graph saved, with nothing in common that this one could resume: no node, and no field either or
    /// the graphs have different names. A migration of the state says that it is the same graph.
    pub(super) fn is_of_another_graph(&self, plan: &Plan) -> bool {
        let has_field = || self.fields.iter().any(|name| plan.field_named(name).is_some());
        let is_migrated =
            || self.version < plan.version && plan.evolution.missing(self.version, plan.version).is_none();
        !self.knows_a_node(plan) && (self.is_named_otherwise(plan) || !has_field() && !is_migrated())
    }

    /// The graph that saved, in words.
    pub(super) fn describe(&self) -> String {
        described(self.name.as_deref(), self.shown_nodes(), self.fields.iter())
    }

    pub(super) fn channel(&self, number: u64) -> &Passage {
        self.channels.get(number as usize).unwrap_or(&Passage::Closed)
    }

    pub(super) fn seen(&self, at: usize) -> Option<usize> {
        self.seen.get(at).copied().flatten()
    }

    /// The place of a join's member that threads know by this name.
    pub(super) fn member(plan: &Plan, members: &[String], name: &str) -> Option<usize> {
        let now = same_node(plan, name).map_or(name, |node| &*plan.nodes[node].name);
        members.iter().position(|member| member == now)
    }

    /// A send to a node of the graph as it is now. One that is dropped keeps its place: the places of the others are
    /// part of the ids of their tasks.
    pub(super) fn send(&self, plan: &Plan, mut send: Send, lost: &mut Vec<String>) -> Send {
        if let Some(now) = self.node_now(plan, &send.node, lost) {
            send.node = now.into();
        }
        send
    }

    pub(super) fn goto(&self, plan: &Plan, goto: Goto, lost: &mut Vec<String>) -> Goto {
        match goto {
            Goto::Node(name) => self.node_now(plan, &name, lost).map_or(Goto::Node(name), Goto::from),
            Goto::Send(send) => Goto::Send(self.send(plan, send, lost)),
        }
    }

    /// The name that a node has now; a name that the saved graph did not know either stays as it is.
    fn node_now(&self, plan: &Plan, name: &str, lost: &mut Vec<String>) -> Option<String> {
        if !self.nodes.iter().any(|known| known == name) {
            return None;
        }
        match now(plan, name) {
            Now::Same(to) | Now::Other(to) => Some(to.to_owned()).filter(|to| to != name),
            Now::Forgotten => None,
            Now::Lost => {
                lost.push(name.to_owned());
                None
            }
        }
    }

    /// The record of a task as this graph would have saved it.
    pub(super) fn record(
        &self,
        plan: &Plan,
        mut record: TaskRecord,
        lost: &mut Vec<String>,
    ) -> Result<TaskRecord, String> {
        let finished = record.is_finished();
        let mut kept = Vec::new();
        let mut version = self.version;
        let mut of_version: Vec<WriteRecord> = Vec::new();
        for write in std::mem::take(&mut record.writes) {
            if let Some(newer) = marked_version(&write)? {
                kept.extend(fields_of(plan, version, std::mem::take(&mut of_version))?);
                version = newer;
            } else if super::is_reserved(&write.channel) {
                kept.extend(self.control_write(plan, write, lost)?);
            } else {
                of_version.push(write);
            }
        }
        kept.extend(fields_of(plan, version, of_version)?);
        if finished && kept.is_empty() {
            kept.push(finished_mark());
        }
        record.writes = kept;
        Ok(record)
    }

    fn control_write(
        &self,
        plan: &Plan,
        write: WriteRecord,
        lost: &mut Vec<String>,
    ) -> Result<Option<WriteRecord>, String> {
        if &*write.channel == TASKS {
            let send = decode_send(&write.value).map_err(|e| e.to_string())?;
            let value = encode_send(plan, &self.send(plan, send, lost))?;
            return Ok(Some(WriteRecord { value, ..write }));
        }
        if !write.channel.starts_with(BRANCH) && !write.channel.starts_with(JOIN) {
            return Ok(Some(write));
        }
        Ok(match passage(plan, &write.channel) {
            Passage::To(channel) => {
                let member = std::str::from_utf8(&write.value).map_err(|e| e.to_string())?;
                let member = same_node(plan, member).map_or(member, |node| &*plan.nodes[node].name);
                let value = Blob::from(member.as_bytes());
                Some(WriteRecord { channel: plan.control[channel].name.as_str().into(), value, ..write })
            }
            Passage::Lost(node) => {
                lost.push(node);
                None
            }
            Passage::Joined { .. } | Passage::Closed => None,
        })
    }
}

/// The graph as it is now, in words.
pub(super) fn describe(plan: &Plan) -> String {
    let nodes = plan.nodes.iter().filter(|node| !node.hidden && !node.is_handler).map(|node| &*node.name);
    described(plan.given_name(), nodes, plan.fields().iter().map(crate::state::FieldSpec::name))
}

fn described<T: AsRef<str>, U: AsRef<str>>(
    name: Option<&str>,
    nodes: impl Iterator<Item = T>,
    fields: impl Iterator<Item = U>,
) -> String {
    let name = name.map_or_else(|| "a graph".to_owned(), |name| format!("graph `{name}`"));
    format!("{name} (nodes {}; fields {})", listed(nodes), listed(fields))
}

/// A few names.
fn listed<T: AsRef<str>>(names: impl Iterator<Item = T>) -> String {
    const MOST: usize = 8;
    let mut listed: Vec<String> = names.take(MOST + 1).map(|name| format!("`{}`", name.as_ref())).collect();
    if listed.len() > MOST {
        listed[MOST] = "..".to_owned();
    }
    listed.join(", ")
}

/// Writes to fields, as this version of the state has them.
fn fields_of(plan: &Plan, version: u32, writes: Vec<WriteRecord>) -> Result<Vec<WriteRecord>, String> {
    if version > plan.version {
        return Err(newer_version(version, plan.version));
    }
    if version == plan.version || writes.is_empty() {
        return Ok(writes);
    }
    let writes = writes.into_iter().map(|write| (write.channel.to_string(), write.value, write.overwrite));
    let migrated = migrated_writes(plan, version, writes)?.into_iter();
    Ok(migrated.map(|(name, value, overwrite)| WriteRecord::new(name, value).with_overwrite(overwrite)).collect())
}

/// Writes of an earlier version: names, values, and whether they replace what is there.
pub(super) fn migrated_writes(
    plan: &Plan,
    version: u32,
    writes: impl IntoIterator<Item = (String, Blob, bool)>,
) -> Result<Vec<(String, Blob, bool)>, String> {
    let mut fields = SavedFields::of_writes();
    writes.into_iter().for_each(|(name, value, overwrite)| fields.push(&name, Piece::write(value, overwrite)));
    plan.evolution.migrate(version, plan.version, &mut fields)?;
    let mut migrated = Vec::new();
    for (name, pieces) in fields.into_fields() {
        for piece in pieces {
            let bytes = piece.bytes().map_err(|why| format!("field `{name}`: {why}"))?;
            migrated.push((name.clone(), bytes, piece.overwrite));
        }
    }
    Ok(migrated)
}

/// A state of an earlier version.
pub(super) fn migrated_state(plan: &Plan, version: u32, saved: &[SavedField]) -> Result<Vec<SavedField>, String> {
    let mut fields = SavedFields::of_state();
    for field in saved {
        field.whole.iter().for_each(|whole| fields.push(&field.name, Piece::whole(whole.clone())));
        field.tail.iter().for_each(|write| fields.push(&field.name, Piece::write(write.clone(), false)));
    }
    plan.evolution.migrate(version, plan.version, &mut fields)?;
    let mut migrated = Vec::new();
    for (name, pieces) in fields.into_fields() {
        let mut field = SavedField::new(name.as_str(), None, Vec::new());
        for piece in pieces {
            let bytes = piece.bytes().map_err(|why| format!("field `{name}`: {why}"))?;
            if piece.is_whole { field.whole = Some(bytes) } else { field.tail.push(bytes) }
        }
        migrated.push(field);
    }
    Ok(migrated)
}

fn now<'a>(plan: &'a Plan, name: &'a str) -> Now<'a> {
    plan.evolution.now(name, |name| plan.node(name).is_some())
}

/// The number of the node that had this name; its error handler goes with it.
fn same_node(plan: &Plan, name: &str) -> Option<NodeIx> {
    if let Some(handled) = name.strip_prefix(HANDLER_OF) {
        let handled = same_node(plan, handled)?;
        return plan.node(&format!("{HANDLER_OF}{}", plan.nodes[handled].name));
    }
    match now(plan, name) {
        Now::Same(name) => plan.node(name),
        _ => None,
    }
}

fn passage(plan: &Plan, name: &str) -> Passage {
    // Control channels come first and win over fields of the same name.
    if let Some(channel) = find(plan, name) {
        return Passage::To(channel);
    }
    if let Some(node) = name.strip_prefix(BRANCH) {
        return branch_passage(plan, node);
    }
    match name.strip_prefix(JOIN).and_then(|join| join.rsplit_once(':')) {
        Some((sources, to)) => join_passage(plan, sources, to),
        None => Passage::Closed,
    }
}

fn find(plan: &Plan, name: &str) -> Option<ChannelIx> {
    plan.triggered.places().find(|channel| super::control::channel_name(plan, *channel) == name)
}

fn branch_passage(plan: &Plan, node: &str) -> Passage {
    if node == DEFAULT_HANDLER || node.starts_with(HANDLER_OF) {
        return Passage::Closed;
    }
    match now(plan, node) {
        Now::Same(to) | Now::Other(to) => wake(plan, to).map_or(Passage::Closed, Passage::To),
        Now::Forgotten => Passage::Closed,
        Now::Lost => Passage::Lost(node.to_owned()),
    }
}

fn wake(plan: &Plan, node: &str) -> Option<ChannelIx> {
    plan.nodes[plan.node(node)?].wake
}

fn join_passage(plan: &Plan, sources: &str, to: &str) -> Passage {
    let name_now = |name: &str| same_node(plan, name).map_or(name.to_owned(), |node| plan.nodes[node].name.to_string());
    let sources: Vec<String> = sources.split('+').map(name_now).collect();
    if let Some(channel) = find(plan, &format!("{JOIN}{}:{}", sources.join("+"), name_now(to))) {
        return Passage::To(channel);
    }
    match now(plan, to) {
        Now::Lost => Passage::Lost(to.to_owned()),
        Now::Other(other) => match wake(plan, other) {
            Some(wake) => Passage::Joined { members: sources.into_iter().collect::<BTreeSet<_>>().len(), wake },
            None => Passage::Closed,
        },
        Now::Same(_) | Now::Forgotten => Passage::Closed,
    }
}
