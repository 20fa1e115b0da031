//! The engine's own part of a checkpoint: triggers, versions, sends and a waiting input.
//!
//! Numbers stand for names that are kept beside them, so a graph may gain and lose nodes between runs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smallvec::SmallVec;

use super::bridge::{Bridge, Passage, migrated_writes};
use super::live::{Live, MOST_STEPS, Signal, Start};
use super::writes::{decode_send, encode_send};
use crate::call::Goto;
use crate::index::{ChannelIx, Ix};
use crate::plan::{ControlKind, Plan};
use crate::state::erased::Writes;
use crate::value::{Blob, decode as decode_value, encode_into, encode_with};

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

    fn channel(&mut self, channel: ChannelIx) {
        self.number(channel.get() as u64);
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

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn number(&mut self) -> Result<u64, String> {
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

    /// The newest version in the list of seen versions that comes next.
    fn peek_newest(&self) -> Result<u64, String> {
        let mut ahead = Reader(self.0);
        let mut newest = 0;
        for _ in 0..ahead.number()? {
            let (_, version) = (ahead.number()?, ahead.number()?);
            newest = newest.max(version);
        }
        Ok(newest)
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let len = usize::try_from(self.number()?).map_err(|e| e.to_string())?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|e| e.to_string())
    }
}

pub(super) fn channel_name(plan: &Plan, channel: ChannelIx) -> &str {
    match plan.control.get(channel) {
        Some(control) => &control.name,
        None => plan.fields()[plan.field_of_channel(channel).expect("it is no control channel")].name(),
    }
}

/// The names that the numbers of a checkpoint's control part stand for: triggers, then nodes; then the version of the
/// state and the graph's name, unless it is 1 and none was given. One text for all checkpoints of a graph.
pub(crate) fn shape(plan: &Plan) -> Blob {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.number(plan.triggered.len() as u64);
    plan.triggered.places().for_each(|c| out.text(channel_name(plan, c)));
    out.number(plan.nodes.len() as u64);
    for node in plan.nodes.iter() {
        out.text(&node.name);
        out.number(node.triggers.len() as u64);
        node.triggers.iter().for_each(|c| out.channel(*c));
    }
    if plan.version != 1 || plan.given_name().is_some() {
        out.number(u64::from(plan.version));
    }
    plan.given_name().into_iter().for_each(|name| out.text(name));
    bytes.into()
}

pub(crate) fn encode(plan: &Plan, live: &Live) -> Result<Blob, String> {
    encode_with(|bytes| write_all(&mut Writer(bytes), plan, live))
}

/// Only what is open is written: of everything else, the next version is new to every node.
fn write_all(out: &mut Writer<'_>, plan: &Plan, live: &Live) -> Result<(), String> {
    out.number(live.max_version);
    out.number(live.stop_seen);
    let waits = |c: &&ChannelIx| match live.signals.get(**c) {
        Some(signal) => *signal != Signal::default(),
        None => live.versions[**c] > 0,
    };
    let lasting = || plan.lasting.iter().filter(waits);
    out.number((live.open.len() + lasting().count()) as u64);
    for channel in &live.open {
        write_channel(out, plan, live, *channel);
    }
    lasting().for_each(|channel| write_channel(out, plan, live, *channel));
    write_last_seen(out, live);
    out.number(live.sends.len() as u64);
    for send in &live.sends {
        let saved = encode_send(plan, send).map_err(|why| format!("a send to `{}`: {why}", send.node))?;
        out.bytes(&saved);
    }
    match &live.start {
        Some(start) => {
            let mut bytes = Vec::with_capacity(64);
            encode_into(&saved_start(plan, start)?, &mut bytes).map_err(|e| format!("the input: {e}"))?;
            out.bytes(&bytes);
        }
        None => out.number(0),
    }
    // Zero: not known. Otherwise one more than the number of updated channels.
    out.number(live.updated.as_ref().map_or(0, |list| list.len() as u64 + 1));
    live.updated.iter().flatten().for_each(|c| out.channel(*c));
    Ok(())
}

/// Nodes that are gone leave a place behind that no graph has.
fn write_last_seen(out: &mut Writer<'_>, live: &Live) {
    if live.last_seen.is_empty() && live.last_gone {
        return [1, live.seen.len() as u64, 0].into_iter().for_each(|n| out.number(n));
    }
    out.number(live.last_seen.len() as u64);
    for at in &live.last_seen {
        out.number(*at as u64);
        out.number(live.seen[*at]);
    }
}

fn write_channel(out: &mut Writer<'_>, plan: &Plan, live: &Live, channel: ChannelIx) {
    out.channel(channel);
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
    let flags = u64::from(signal.set) | u64::from(signal.finished) << 1;
    if members.is_empty() {
        return out.number(flags);
    }
    let written = || members.iter().enumerate().filter(|(i, _)| signal.members.has(*i));
    out.number(flags | (written().count() as u64) << 2);
    written().for_each(|(_, m)| out.text(m));
}

/// The places of the versions of a channel that its nodes have run on.
fn seen_of(plan: &Plan, channel: ChannelIx) -> impl Iterator<Item = usize> {
    plan.triggered[channel].iter().filter_map(move |node| {
        let node = &plan.nodes[*node];
        Some(node.seen_at + node.triggers.iter().position(|c| *c == channel)?)
    })
}

fn saved_start(plan: &Plan, start: &Start) -> Result<SavedStart, String> {
    Ok(match start {
        Start::Value(value) => SavedStart::Value(value.clone()),
        Start::Writes { writes, goto } => {
            let mut saved = Vec::with_capacity(writes.len());
            for put in writes.places().iter().filter(|put| !plan.untracked.contains(&put.field)) {
                let name = plan.fields()[put.field].name().to_owned();
                let bytes = plan.ty.encode_write(writes, put).map_err(|e| format!("input field `{name}`: {e}"))?;
                saved.push((name, bytes, put.overwrite));
            }
            let goto = goto.iter().map(|g| match g {
                Goto::Node(name) => Ok(SavedGoto::Node(name.to_string())),
                Goto::Send(send) => encode_send(plan, send).map(SavedGoto::Send),
            });
            SavedStart::Writes { puts: saved, goto: goto.collect::<Result<_, String>>()? }
        }
    })
}

/// Reads the control part of a checkpoint; with a bridge if the graph has changed since.
pub(super) fn decode(plan: &Plan, bridge: Option<&Bridge>, bytes: &[u8], live: &mut Live) -> Result<(), String> {
    let mut input = Reader(bytes);
    live.max_version = input.number()?;
    if live.max_version > MOST_STEPS as u64 {
        return Err(format!("the newest version, {}, is more than any thread comes to", live.max_version));
    }
    live.stop_seen = input.number()?;
    for _ in 0..input.number()? {
        read_channel(&mut input, plan, bridge, live)?;
    }
    let some_ran = input.0.first().is_some_and(|count| *count > 0);
    live.last_seen = read_seen(&mut input, bridge, live)?;
    live.last_gone = some_ran && live.last_seen.is_empty();
    read_work(&mut input, plan, bridge, live)?;
    let updated = input.number()?;
    let mut list: Vec<ChannelIx> = Vec::new();
    for _ in 1..updated {
        match passage(plan, bridge, input.number()?).as_ref() {
            Passage::To(channel) | Passage::Joined { wake: channel, .. } => list.push(*channel),
            Passage::Lost(_) | Passage::Closed => {}
        }
    }
    live.updated = Some(list).filter(|list| !list.is_empty());
    Ok(())
}

/// Reads a trigger and what its nodes have seen of it.
fn read_channel(input: &mut Reader<'_>, plan: &Plan, bridge: Option<&Bridge>, live: &mut Live) -> Result<(), String> {
    let passage = passage(plan, bridge, input.number()?);
    let version = input.number()?;
    if version > live.max_version {
        return Err(format!("a trigger has version {version}, and the newest is {}", live.max_version));
    }
    let newest_seen = if bridge.is_some() { input.peek_newest()? } else { 0 };
    read_seen(input, bridge, live)?;
    let saved = SavedChannel::read(input)?;
    match passage.as_ref() {
        Passage::To(channel) => saved.restore(plan, bridge.is_some(), live, *channel, version),
        Passage::Joined { members, wake } if saved.members.len() == *members && newest_seen < version => {
            SavedChannel { flags: saved.flags | 1, members: Vec::new() }.restore(plan, true, live, *wake, version);
        }
        Passage::Lost(node) if saved.holds_something() && newest_seen < version => live.lost.push(node.clone()),
        Passage::Joined { .. } | Passage::Lost(_) | Passage::Closed => {}
    }
    Ok(())
}

/// Where the trigger with this number is now.
fn passage<'a>(plan: &Plan, bridge: Option<&'a Bridge>, number: u64) -> Cow<'a, Passage> {
    match bridge {
        Some(bridge) => Cow::Borrowed(bridge.channel(number)),
        None => {
            let channel = plan.triggered.places().nth(number as usize);
            Cow::Owned(channel.map_or(Passage::Closed, Passage::To))
        }
    }
}

/// Reads sends and a waiting input.
fn read_work(input: &mut Reader<'_>, plan: &Plan, bridge: Option<&Bridge>, live: &mut Live) -> Result<(), String> {
    live.sends.clear();
    for _ in 0..input.number()? {
        let send = decode_send(input.bytes()?).map_err(|e| e.to_string())?;
        live.sends.push(match bridge {
            Some(bridge) => bridge.send(plan, send, &mut live.lost),
            None => send,
        });
    }
    live.start = match input.bytes()? {
        [] => None,
        saved => {
            let saved = decode_value(saved).map_err(|e| e.to_string())?;
            Some(restored_start(plan, saved, bridge, &mut live.lost)?)
        }
    };
    Ok(())
}

/// Reads versions that nodes have run on, and says where they are.
fn read_seen(input: &mut Reader<'_>, bridge: Option<&Bridge>, live: &mut Live) -> Result<SmallVec<[usize; 2]>, String> {
    let mut read = SmallVec::new();
    for _ in 0..input.number()? {
        let (at, version) = (input.number()? as usize, input.number()?);
        let at = match bridge {
            None => Some(at),
            Some(bridge) => bridge.seen(at),
        };
        if let Some(at) = at.filter(|at| *at < live.seen.len()) {
            live.seen[at] = version;
            read.push(at);
        }
    }
    Ok(read)
}

/// What a trigger holds, as it was saved.
struct SavedChannel<'a> {
    flags: u64,
    members: Vec<&'a str>,
}

impl<'a> SavedChannel<'a> {
    fn read(input: &mut Reader<'a>) -> Result<Self, String> {
        let flags = input.number()?;
        let mut members = Vec::new();
        for _ in 0..flags >> 2 {
            members.push(input.text()?);
        }
        Ok(Self { flags, members })
    }

    fn holds_something(&self) -> bool {
        self.flags & 1 == 1 || !self.members.is_empty()
    }

    fn restore(&self, plan: &Plan, moved: bool, live: &mut Live, channel: ChannelIx, version: u64) {
        live.versions[channel] = version;
        let Some(control) = plan.control.get(channel) else { return };
        let signal = &mut live.signals[channel];
        let was_set = signal.set;
        (signal.set, signal.finished) = (self.flags & 1 == 1, self.flags & 2 == 2);
        if let ControlKind::Join { members: all } | ControlKind::JoinDeferred { members: all } = &control.kind {
            let place = |m: &&str| all.iter().position(|a| a == *m).or_else(|| Bridge::member(plan, all, m));
            self.members.iter().filter_map(place).for_each(|m| signal.members.set(m));
        }
        let opens = signal.set && matches!(control.kind, ControlKind::Start | ControlKind::Branch);
        // Two nodes of the saved graph may be one now.
        if opens && !was_set && !(moved && live.open.contains(&channel)) {
            live.open.push(channel);
        }
    }
}

fn restored_start(
    plan: &Plan,
    start: SavedStart,
    bridge: Option<&Bridge>,
    lost: &mut Vec<String>,
) -> Result<Start, String> {
    let (mut puts, goto) = match start {
        SavedStart::Value(value) => return Ok(Start::Value(value)),
        SavedStart::Writes { puts, goto } => (puts, goto),
    };
    if let Some(older) = bridge.map(|bridge| bridge.version).filter(|version| *version < plan.version) {
        puts = migrated_writes(plan, older, puts)?;
    }
    let mut restored = Writes::default();
    for (name, bytes, overwrite) in puts {
        let Some(field) = plan.field_named(&name) else { continue };
        let decoded = plan.ty.decode_write(&mut restored, field, &bytes, overwrite);
        decoded.map_err(|e| format!("input field `{name}`: {e}"))?;
    }
    let goto = goto.into_iter().map(|g| {
        let goto = match g {
            SavedGoto::Node(name) => Goto::from(name),
            SavedGoto::Send(bytes) => Goto::Send(decode_send(&bytes).map_err(|e| e.to_string())?),
        };
        Ok(match bridge {
            Some(bridge) => bridge.goto(plan, goto, lost),
            None => goto,
        })
    });
    Ok(Start::Writes { writes: restored, goto: goto.collect::<Result<_, String>>()? })
}
