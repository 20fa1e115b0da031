//! The engine's own part of a checkpoint: triggers, versions, sends and a waiting input.
//!
//! Everything is kept by name, so a graph may gain and lose nodes between runs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::live::{Live, Start};
use super::writes::{decode_send, encode_send};
use crate::checkpoint::Codec;
use crate::node::Goto;
use crate::plan::{ControlKind, Plan};
use crate::state::{Put, State, encode as encode_value};

#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    max: u64,
    stop: u64,
    /// Channels that ever changed: version, then the signal.
    #[serde(borrow)]
    channels: Vec<SavedChannel<'a>>,
    /// Nodes that ever ran: the versions of their triggers.
    #[serde(borrow)]
    seen: Vec<(Cow<'a, str>, Vec<(Cow<'a, str>, u64)>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sends: Vec<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<SavedStart>,
    #[serde(borrow)]
    updated: Option<Vec<Cow<'a, str>>>,
}

/// Name, version, set, finished, members of a join.
type SavedChannel<'a> = (Cow<'a, str>, u64, bool, bool, Vec<Cow<'a, str>>);

#[derive(Serialize, Deserialize)]
enum SavedStart {
    Writes { puts: Vec<(String, Vec<u8>, bool)>, goto: Vec<SavedGoto> },
    Value(Value),
}

#[derive(Serialize, Deserialize)]
enum SavedGoto {
    Node(String),
    Send(Vec<u8>),
}

fn channel_name<S: State>(plan: &Plan<S>, channel: usize) -> &str {
    match plan.control.get(channel) {
        Some(control) => &control.name,
        None => plan.fields()[channel - plan.control.len()].name(),
    }
}

pub(crate) fn encode<S: State>(plan: &Plan<S>, codec: &Codec<S>, live: &Live<S>) -> Result<Bytes, String> {
    let is_trigger = |c: &usize| !plan.triggered[*c].is_empty();
    let channels = (0..plan.triggered.len()).filter(is_trigger).filter(|c| live.versions[*c] > 0);
    let saved = Saved {
        max: live.max_version,
        stop: live.stop_seen,
        channels: channels.map(|c| saved_channel(plan, live, c)).collect(),
        seen: saved_seen(plan, live),
        sends: live.sends.iter().map(|s| Ok(encode_send(plan, s)?.to_vec())).collect::<Result<_, String>>()?,
        start: live.start.as_ref().map(|s| saved_start(plan, codec, s)).transpose()?,
        updated: live.updated.as_ref().map(|list| list.iter().map(|c| channel_name(plan, *c).into()).collect()),
    };
    encode_value(&saved).map_err(|e| e.to_string())
}

fn saved_channel<'a, S: State>(plan: &'a Plan<S>, live: &Live<S>, channel: usize) -> SavedChannel<'a> {
    let name = channel_name(plan, channel).into();
    let version = live.versions[channel];
    let Some(control) = plan.control.get(channel) else { return (name, version, false, false, Vec::new()) };
    let signal = &live.signals[channel];
    let members = match &control.kind {
        ControlKind::Join { members } | ControlKind::JoinDeferred { members } => {
            members.iter().enumerate().filter(|(i, _)| signal.members.has(*i)).map(|(_, m)| m.into()).collect()
        }
        _ => Vec::new(),
    };
    (name, version, signal.set, signal.finished, members)
}

fn saved_seen<'a, S: State>(plan: &'a Plan<S>, live: &Live<S>) -> Vec<(Cow<'a, str>, Vec<(Cow<'a, str>, u64)>)> {
    let of_node = |(ix, node): (usize, &'a crate::plan::NodePlan<S>)| {
        let at = plan.seen_at[ix];
        let triggers = node.triggers.iter().enumerate().filter(|(i, _)| live.seen[at + i] > 0);
        let seen: Vec<_> = triggers.map(|(i, c)| (channel_name(plan, *c).into(), live.seen[at + i])).collect();
        (!seen.is_empty()).then(|| ((&*node.name).into(), seen))
    };
    plan.nodes.iter().enumerate().filter_map(of_node).collect()
}

fn saved_start<S: State>(plan: &Plan<S>, codec: &Codec<S>, start: &Start<S>) -> Result<SavedStart, String> {
    Ok(match start {
        Start::Value(value) => SavedStart::Value(value.clone()),
        Start::Writes { puts, goto } => {
            let mut saved = Vec::with_capacity(puts.len());
            for put in puts {
                let Some(field) = S::field_of(&plan.schema, &put.write) else { continue };
                if plan.untracked.contains(&field) {
                    continue;
                }
                let name = plan.fields()[field].name().to_owned();
                let bytes = codec.write(&plan.schema, &put.write).map_err(|e| format!("input field `{name}`: {e}"))?;
                saved.push((name, bytes.to_vec(), put.overwrite));
            }
            let goto = goto.iter().map(|g| match g {
                Goto::Node(name) => Ok(SavedGoto::Node(name.to_string())),
                Goto::Send(send) => encode_send(plan, send).map(|b| SavedGoto::Send(b.to_vec())),
            });
            SavedStart::Writes { puts: saved, goto: goto.collect::<Result<_, String>>()? }
        }
    })
}

pub(crate) fn decode<S: State>(plan: &Plan<S>, codec: &Codec<S>, bytes: &[u8], live: &mut Live<S>) -> Result<(), String> {
    let saved: Saved<'_> = rmp_serde::from_slice(bytes).map_err(|e| e.to_string())?;
    let names: BTreeMap<&str, usize> = (0..plan.triggered.len()).rev().map(|c| (channel_name(plan, c), c)).collect();
    live.max_version = saved.max;
    live.stop_seen = saved.stop;
    for (name, version, set, finished, members) in saved.channels {
        let Some(&channel) = names.get(&*name) else { continue };
        live.versions[channel] = version;
        let Some(control) = plan.control.get(channel) else { continue };
        let signal = &mut live.signals[channel];
        (signal.set, signal.finished) = (set, finished);
        if let ControlKind::Join { members: all } | ControlKind::JoinDeferred { members: all } = &control.kind {
            let place = |m: &Cow<'_, str>| all.iter().position(|a| *a == **m);
            members.iter().filter_map(place).for_each(|m| signal.members.set(m));
        }
        if set && matches!(control.kind, ControlKind::Start | ControlKind::Branch) {
            live.open.push(channel);
        }
    }
    for (node, seen) in saved.seen {
        let Some(node) = plan.node(&node) else { continue };
        for (name, version) in seen {
            let trigger = plan.nodes[node].triggers.iter().position(|c| channel_name(plan, *c) == name);
            if let Some(trigger) = trigger {
                live.seen[plan.seen_at[node] + trigger] = version;
            }
        }
    }
    live.sends = saved.sends.iter().map(|s| decode_send(s).map_err(|e| e.to_string())).collect::<Result<_, _>>()?;
    live.start = saved.start.map(|s| restored_start(plan, codec, s)).transpose()?;
    let updated = saved.updated.map(|list| list.iter().filter_map(|n| names.get(&**n).copied()).collect::<Vec<_>>());
    live.updated = updated.filter(|list| !list.is_empty());
    Ok(())
}

fn restored_start<S: State>(plan: &Plan<S>, codec: &Codec<S>, start: SavedStart) -> Result<Start<S>, String> {
    Ok(match start {
        SavedStart::Value(value) => Start::Value(value),
        SavedStart::Writes { puts, goto } => {
            let mut restored = Vec::with_capacity(puts.len());
            for (name, bytes, overwrite) in puts {
                let Some(field) = plan.field_named(&name) else { continue };
                let write = (codec.decode_write)(&plan.schema, field, &bytes);
                restored.push(Put { write: write.map_err(|e| format!("input field `{name}`: {e}"))?, overwrite });
            }
            let goto = goto.into_iter().map(|g| match g {
                SavedGoto::Node(name) => Ok(Goto::from(name)),
                SavedGoto::Send(bytes) => decode_send(&bytes).map(Goto::Send).map_err(|e| e.to_string()),
            });
            Start::Writes { puts: restored, goto: goto.collect::<Result<_, String>>()? }
        }
    })
}
