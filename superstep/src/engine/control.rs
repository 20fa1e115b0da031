//! The engine's own part of a checkpoint: triggers, versions, sends and a waiting input.
//!
//! Numbers stand for names that are kept beside them, so a graph may gain and lose nodes between runs.

use crate::checkpoint::Blob;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smallvec::SmallVec;

use super::live::{Live, MOST_STEPS, Signal, Start};
use super::writes::{decode_send, encode_send};
use crate::checkpoint::{Codec, with_scratch};
use crate::node::Goto;
use crate::plan::{ControlKind, Plan};
use crate::state::{Put, State, decode as decode_value, encode as encode_value};

/// A waiting input as it is saved.
#[derive(Serialize, Deserialize)]
enum SavedStart {
    Writes { puts: Vec<(String, Blob, bool)>, goto: Vec<SavedGoto> },
    Value(Value),
}

#[derive(Serialize, Deserialize)]
enum SavedGoto {
    Node(String),
    Send(Blob),
}

/// Numbers in as few bytes as they need, and text with its length in front.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    #[inline]
    fn number(&mut self, number: u64) {
        if number < 0x80 { self.0.push(number as u8) } else { self.long_number(number) }
    }

    fn long_number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or("it ends too early")?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number is too long".to_owned())
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let len = usize::try_from(self.number()?).map_err(|e| e.to_string())?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|e| e.to_string())
    }
}

fn channel_name<S: State>(plan: &Plan<S>, channel: usize) -> &str {
    match plan.control.get(channel) {
        Some(control) => &control.name,
        None => plan.fields()[channel - plan.control.len()].name(),
    }
}

/// The names that the numbers of a checkpoint's control part stand for: triggers, then nodes.
/// One text for all checkpoints of a graph.
pub(crate) fn shape<S: State>(plan: &Plan<S>) -> Blob {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.number(plan.triggered.len() as u64);
    (0..plan.triggered.len()).for_each(|c| out.text(channel_name(plan, c)));
    out.number(plan.nodes.len() as u64);
    for node in &plan.nodes {
        out.text(&node.name);
        out.number(node.triggers.len() as u64);
        node.triggers.iter().for_each(|c| out.number(*c as u64));
    }
    bytes.into()
}

pub(crate) fn encode<S: State>(plan: &Plan<S>, codec: &Codec<S>, live: &Live<S>) -> Result<Blob, String> {
    with_scratch(|bytes| write_all(&mut Writer(bytes), plan, codec, live))
}

/// Only what is open is written: of everything else, the next version is new to every node.
fn write_all<S: State>(out: &mut Writer<'_>, plan: &Plan<S>, codec: &Codec<S>, live: &Live<S>) -> Result<(), String> {
    out.number(live.max_version);
    out.number(live.stop_seen);
    let waits = |c: &&usize| match live.signals.get(**c) {
        Some(signal) => *signal != Signal::default(),
        None => live.versions[**c] > 0,
    };
    let active = || live.open.iter().chain(plan.lasting.iter().filter(waits));
    out.number(active().count() as u64);
    active().for_each(|c| write_channel(out, plan, live, *c));
    write_last_seen(out, live);
    out.number(live.sends.len() as u64);
    for send in &live.sends {
        out.bytes(&encode_send(plan, send)?);
    }
    match &live.start {
        Some(start) => out.bytes(&encode_value(&saved_start(plan, codec, start)?).map_err(|e| e.to_string())?),
        None => out.bytes(&[]),
    }
    // Zero: not known. Otherwise one more than the number of updated channels.
    out.number(live.updated.as_ref().map_or(0, |list| list.len() as u64 + 1));
    live.updated.iter().flatten().for_each(|c| out.number(*c as u64));
    Ok(())
}

/// Nodes that are gone leave a place behind that no graph has.
fn write_last_seen<S: State>(out: &mut Writer<'_>, live: &Live<S>) {
    if live.last_seen.is_empty() && live.last_gone {
        return [1, live.seen.len() as u64, 0].into_iter().for_each(|n| out.number(n));
    }
    out.number(live.last_seen.len() as u64);
    for at in &live.last_seen {
        out.number(*at as u64);
        out.number(live.seen[*at]);
    }
}

fn write_channel<S: State>(out: &mut Writer<'_>, plan: &Plan<S>, live: &Live<S>, channel: usize) {
    out.number(channel as u64);
    out.number(live.versions[channel]);
    let seen = || seen_of(plan, channel).filter(|at| live.seen[*at] > 0);
    out.number(seen().count() as u64);
    for at in seen() {
        out.number(at as u64);
        out.number(live.seen[at]);
    }
    let Some(control) = plan.control.get(channel) else { return out.number(0) };
    let signal = &live.signals[channel];
    let members = match &control.kind {
        ControlKind::Join { members } | ControlKind::JoinDeferred { members } => members.as_slice(),
        _ => &[],
    };
    let written = || members.iter().enumerate().filter(|(i, _)| signal.members.has(*i));
    let flags = u64::from(signal.set) | u64::from(signal.finished) << 1;
    out.number(flags | (written().count() as u64) << 2);
    written().for_each(|(_, m)| out.text(m));
}

/// The places of the versions of a channel that its nodes have run on.
fn seen_of<S: State>(plan: &Plan<S>, channel: usize) -> impl Iterator<Item = usize> {
    plan.triggered[channel].iter().filter_map(move |node| {
        let node = &plan.nodes[*node];
        Some(node.seen_at + node.triggers.iter().position(|c| *c == channel)?)
    })
}

/// What the numbers of a saved control part are in the graph as it is now.
struct Places {
    channels: Vec<Option<usize>>,
    seen: Vec<Option<usize>>,
}

impl Places {
    fn read<S: State>(plan: &Plan<S>, shape: &[u8]) -> Result<Self, String> {
        let mut input = Reader(shape);
        // Control channels come first and win over fields of the same name.
        let find = |name: &str| (0..plan.triggered.len()).find(|c| channel_name(plan, *c) == name);
        let mut channels = Vec::new();
        for _ in 0..input.number()? {
            channels.push(find(input.text()?));
        }
        let mut seen = Vec::new();
        for _ in 0..input.number()? {
            let node = plan.node(input.text()?);
            for _ in 0..input.number()? {
                let channel = channels.get(input.number()? as usize).copied().flatten();
                let trigger = |n: usize| plan.nodes[n].triggers.iter().position(|c| Some(*c) == channel);
                seen.push(node.and_then(|n| Some(plan.nodes[n].seen_at + trigger(n)?)));
            }
        }
        Ok(Self { channels, seen })
    }

    fn channel(&self, number: u64) -> Option<usize> {
        self.channels.get(number as usize).copied().flatten()
    }
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
                saved.push((name, bytes, put.overwrite));
            }
            let goto = goto.iter().map(|g| match g {
                Goto::Node(name) => Ok(SavedGoto::Node(name.to_string())),
                Goto::Send(send) => encode_send(plan, send).map(|b| SavedGoto::Send(b)),
            });
            SavedStart::Writes { puts: saved, goto: goto.collect::<Result<_, String>>()? }
        }
    })
}

pub(crate) fn decode<S: State>(
    plan: &Plan<S>,
    codec: &Codec<S>,
    shape: &[u8],
    bytes: &[u8],
    live: &mut Live<S>,
) -> Result<(), String> {
    let places = (*shape != *plan.texts.shape).then(|| Places::read(plan, shape)).transpose()?;
    let channel = |number: u64| match &places {
        None => Some(number as usize).filter(|c| *c < plan.triggered.len()),
        Some(places) => places.channel(number),
    };
    let mut input = Reader(bytes);
    live.max_version = input.number()?;
    if live.max_version > MOST_STEPS as u64 {
        return Err(format!("the newest version, {}, is more than any thread comes to", live.max_version));
    }
    live.stop_seen = input.number()?;
    for _ in 0..input.number()? {
        let channel = channel(input.number()?);
        let version = input.number()?;
        read_seen(&mut input, places.as_ref(), live)?;
        read_channel(&mut input, plan, live, channel, version)?;
    }
    let some_ran = input.0.first().is_some_and(|count| *count > 0);
    live.last_seen = read_seen(&mut input, places.as_ref(), live)?;
    live.last_gone = some_ran && live.last_seen.is_empty();
    live.sends.clear();
    for _ in 0..input.number()? {
        live.sends.push(decode_send(input.bytes()?).map_err(|e| e.to_string())?);
    }
    live.start = match input.bytes()? {
        [] => None,
        saved => Some(restored_start(plan, codec, decode_value(saved).map_err(|e| e.to_string())?)?),
    };
    let updated = input.number()?;
    let mut list = Vec::new();
    for _ in 1..updated {
        list.extend(channel(input.number()?));
    }
    live.updated = Some(list).filter(|list| !list.is_empty());
    Ok(())
}

/// Reads versions that nodes have run on, and says where they are.
fn read_seen<S: State>(
    input: &mut Reader<'_>,
    places: Option<&Places>,
    live: &mut Live<S>,
) -> Result<SmallVec<[usize; 2]>, String> {
    let mut read = SmallVec::new();
    for _ in 0..input.number()? {
        let (at, version) = (input.number()? as usize, input.number()?);
        let at = match places {
            None => Some(at),
            Some(places) => places.seen.get(at).copied().flatten(),
        };
        if let Some(at) = at.filter(|at| *at < live.seen.len()) {
            live.seen[at] = version;
            read.push(at);
        }
    }
    Ok(read)
}

fn read_channel<S: State>(
    input: &mut Reader<'_>,
    plan: &Plan<S>,
    live: &mut Live<S>,
    channel: Option<usize>,
    version: u64,
) -> Result<(), String> {
    let flags = input.number()?;
    let mut members = Vec::new();
    for _ in 0..flags >> 2 {
        members.push(input.text()?);
    }
    let Some(channel) = channel else { return Ok(()) };
    live.versions[channel] = version;
    let Some(control) = plan.control.get(channel) else { return Ok(()) };
    let signal = &mut live.signals[channel];
    (signal.set, signal.finished) = (flags & 1 == 1, flags & 2 == 2);
    if let ControlKind::Join { members: all } | ControlKind::JoinDeferred { members: all } = &control.kind {
        let place = |m: &&str| all.iter().position(|a| a == *m);
        members.iter().filter_map(place).for_each(|m| signal.members.set(m));
    }
    if signal.set && matches!(control.kind, ControlKind::Start | ControlKind::Branch) {
        live.open.push(channel);
    }
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
