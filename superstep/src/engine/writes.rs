//! What a task wrote, in memory.

use std::sync::Arc;

use serde_json::Value;
use smallvec::SmallVec;

use super::save::Scribe;
use crate::call::{Answers, Send, TimeoutPolicy};
use crate::checkpoint::{CheckpointError, Interrupt, TaskRecord, WriteRecord};
use crate::error::{CodecError, TaskError};
use crate::id::TaskId;
use crate::index::ChannelIx;
use crate::names::START;
use crate::plan::{ControlKind, Plan};
use crate::state::erased::Writes;
use crate::value::{Blob, Payload, check_levels, decode, encode};

/// Everything that came of a task so far. Small, because every step moves it: what few tasks have is boxed.
#[derive(Clone, Default)]
pub(crate) struct TaskWrites {
    pub(crate) puts: Writes,
    /// Triggers written, with the member for joins.
    pub(crate) signals: SmallVec<[(ChannelIx, usize); 1]>,
    /// The encoded puts, if someone saved them; empty for those that are never saved.
    pub(crate) encoded: SmallVec<[Blob; 1]>,
    /// The puts are in the state already: of those that nobody wants to see, only the places are left.
    pub(crate) is_merged: bool,
    /// It finished, even if it wrote nothing.
    pub(crate) done: bool,
    rest: Option<Box<Rest>>,
}

/// What few tasks have.
#[derive(Clone, Default)]
pub(crate) struct Rest {
    pub(crate) sends: Vec<Send>,
    pub(crate) returned: Option<Value>,
    pub(crate) error: Option<TaskError>,
    /// The task failed in a way that leaves nothing of what it wrote.
    pub(crate) is_void: bool,
    /// An error handler takes over from it.
    pub(crate) handled: bool,
    pub(crate) interrupts: Option<Vec<Interrupt>>,
    pub(crate) resume: Option<Answers>,
}

pub(super) const TASKS: &str = "__tasks__";
const RETURN: &str = "__return__";
const NO_WRITES: &str = "__no_writes__";
/// Says which version of the state made the writes behind it, if it is newer than that of their checkpoint.
const VERSION: &str = "__version__";

/// Names fields that a task changed in a whole state: what nobody else may write beside it is told by it.
const WHOLE: &str = "__whole__";
/// Says that the task made writes which cannot be saved: it has to run again unless its step was saved.
const UNSAVED: &str = "__unsaved__";

/// What a task that wrote nothing has written.
pub(super) fn finished_mark() -> WriteRecord {
    WriteRecord::new(NO_WRITES, Blob::default())
}

pub(super) fn version_mark(version: u32) -> WriteRecord {
    WriteRecord::new(VERSION, version.to_be_bytes().as_slice().into())
}

/// The version that a write marks, if it is such a mark.
pub(super) fn marked_version(write: &WriteRecord) -> Result<Option<u32>, String> {
    if &*write.channel != VERSION {
        return Ok(None);
    }
    let bytes = <[u8; 4]>::try_from(&write.value[..]).map_err(|_| "a version is not a number".to_owned())?;
    Ok(Some(u32::from_be_bytes(bytes)))
}

/// Whether a field of this name would be taken for something else, in saved writes or in JSON.
pub(crate) fn is_reserved(field: &str) -> bool {
    [START, TASKS, RETURN, NO_WRITES, VERSION, WHOLE, UNSAVED, "__interrupt__"].contains(&field)
        || field.starts_with("branch:to:")
        || field.starts_with("join:")
}

impl TaskWrites {
    /// What few tasks have, made if it is not there.
    pub(crate) fn rest_mut(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    pub(crate) fn rest(&self) -> Option<&Rest> {
        self.rest.as_deref()
    }

    /// Hands over what is to be sent.
    pub(crate) fn take_sends(&mut self, into: &mut Vec<Send>) {
        if let Some(rest) = &mut self.rest {
            into.append(&mut rest.sends);
        }
    }

    /// A question or failure: no output, only how it went.
    pub(crate) fn only(rest: Rest) -> Self {
        Self { rest: Some(Box::new(rest)), ..Self::default() }
    }

    pub(crate) fn of_puts(puts: Writes) -> Self {
        Self { puts, ..Self::default() }
    }

    pub(crate) fn sends(&self) -> &[Send] {
        self.rest().map_or(&[], |r| &r.sends)
    }

    pub(crate) fn returned(&self) -> Option<&Value> {
        self.rest()?.returned.as_ref()
    }

    pub(crate) fn error(&self) -> Option<&TaskError> {
        self.rest()?.error.as_ref()
    }

    pub(crate) fn interrupts(&self) -> Option<&Vec<Interrupt>> {
        self.rest()?.interrupts.as_ref()
    }

    pub(crate) fn resume(&self) -> Option<&Answers> {
        self.rest()?.resume.as_ref()
    }

    pub(crate) fn handled(&self) -> bool {
        self.rest().is_some_and(|r| r.handled)
    }

    /// Whether the task came to its end: it has written something, or noted that it had nothing to write.
    pub(crate) fn is_finished(&self) -> bool {
        self.done || self.has_output()
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.puts.is_empty() || self.has_more_than_puts()
    }

    fn has_more_than_puts(&self) -> bool {
        let more = |r: &Rest| !r.sends.is_empty() || r.returned.is_some();
        !self.signals.is_empty() || self.rest().is_some_and(more)
    }

    /// The questions that still wait for an answer.
    pub(crate) fn open_questions(&self) -> &[Interrupt] {
        if self.is_finished() { &[] } else { self.interrupts().map_or(&[], Vec::as_slice) }
    }

    /// Only what the task gave out, without the record of how it went.
    pub(crate) fn output(&self) -> Self {
        let mut output = self.clone();
        if let Some(rest) = &mut output.rest {
            (rest.error, rest.handled, rest.interrupts, rest.resume) = (None, false, None, None);
        }
        output
    }

    /// Only the record of how it went, without what the task gave out.
    pub(crate) fn how_it_went(&self) -> Self {
        let rest = self.rest().map(|rest| Rest {
            error: rest.error.clone(),
            handled: rest.handled,
            interrupts: rest.interrupts.clone(),
            resume: rest.resume.clone(),
            ..Rest::default()
        });
        rest.map(Self::only).unwrap_or_default()
    }

    /// Encodes each put once: what is merged has no values any more, and the checkpoint takes over the same bytes.
    pub(crate) fn encode(&mut self, plan: &Plan, scribe: &Scribe) -> Result<(), CheckpointError> {
        if self.encoded.len() == self.puts.len() {
            return Ok(());
        }
        self.encoded.clear();
        for put in self.puts.places() {
            if plan.ty.is_unsaved(&self.puts, put) {
                self.encoded.push(Blob::default());
                continue;
            }
            let bytes = plan.ty.encode_write(&self.puts, put);
            self.encoded.push(bytes.map_err(|e| scribe.unsavable(describe(plan, put.field), &e))?);
        }
        Ok(())
    }

    /// Makes the records of the puts.
    fn encode_puts(
        &mut self,
        plan: &Plan,
        scribe: &Scribe,
        into: &mut Vec<WriteRecord>,
    ) -> Result<(), CheckpointError> {
        self.encode(plan, scribe)?;
        for (put, bytes) in self.puts.places().iter().zip(&self.encoded) {
            let field = put.field;
            if bytes.is_empty() {
                into.push(WriteRecord::new(UNSAVED, Blob::default()));
                continue;
            }
            if !plan.untracked.contains(&field) && !plan.kind(field).is_managed() {
                let write = WriteRecord::new(plan.label(plan.channel_of_field(field)), bytes.clone());
                into.push(write.with_overwrite(put.overwrite));
                if put.is_change() {
                    let value = Blob::from(plan.fields()[field].name().as_bytes());
                    into.push(WriteRecord::new(WHOLE, value));
                }
            }
        }
        Ok(())
    }

    /// The record to save.
    pub(crate) fn record(
        &mut self,
        plan: &Plan,
        scribe: &Scribe,
        task: TaskId,
        path: Arc<str>,
    ) -> Result<TaskRecord, CheckpointError> {
        let mut record = TaskRecord::new(task, path).with_run(scribe.run.clone());
        record.writes.reserve_exact(self.puts.len() + self.signals.len() + self.sends().len());
        self.encode_puts(plan, scribe, &mut record.writes)?;
        self.add_rest(plan, scribe, &mut record)?;
        Ok(record)
    }

    /// What a record has beside puts.
    fn add_rest(&self, plan: &Plan, scribe: &Scribe, record: &mut TaskRecord) -> Result<(), CheckpointError> {
        let writes = &mut record.writes;
        for (channel, member) in &self.signals {
            let value = match &plan.control[*channel].kind {
                ControlKind::Join { members } | ControlKind::JoinDeferred { members } => {
                    Blob::from(members[*member].as_bytes())
                }
                _ => Blob::default(),
            };
            writes.push(WriteRecord::new(plan.label(*channel), value));
        }
        for send in self.sends() {
            let value =
                encode_send(plan, send).map_err(|e| scribe.unsavable(format!("a send to `{}`", send.node), &e))?;
            writes.push(WriteRecord::new(TASKS, value));
        }
        if let Some(value) = self.returned() {
            let value = encode(value).map_err(|e| scribe.unsavable("a returned value", &e))?;
            writes.push(WriteRecord::new(RETURN, value));
        }
        if self.done && writes.is_empty() {
            writes.push(finished_mark());
        }
        for asked in self.interrupts().into_iter().flatten() {
            check_levels(&asked.value).map_err(|e| scribe.unsavable("a question", &e))?;
        }
        record.error = self.error().cloned();
        record.handled = self.handled();
        record.interrupts = self.interrupts().cloned();
        record.resume = self.resume().map(Answers::to_value);
        Ok(())
    }

    /// The writes of a saved record. Writes to what the graph no longer has are ignored.
    pub(crate) fn from_record(plan: &Plan, record: &TaskRecord) -> Result<Self, CodecError> {
        let mut writes = Self::only(Rest {
            error: record.error.clone(),
            handled: record.handled,
            interrupts: record.interrupts.clone(),
            resume: record.resume.clone().map(Answers::from_value).transpose().map_err(CodecError::new)?,
            ..Rest::default()
        });
        if record.writes.iter().any(|write| &*write.channel == UNSAVED) {
            return Ok(writes);
        }
        let (marks, others): (Vec<_>, Vec<_>) = record.writes.iter().partition(|write| &*write.channel == WHOLE);
        for write in others {
            writes.take_in(plan, write)?;
        }
        marks.into_iter().for_each(|mark| writes.note_change(plan, mark));
        Ok(writes)
    }

    /// Takes a mark: this field is what the task changed in a whole state. If the field has another name now, all are.
    fn note_change(&mut self, plan: &Plan, mark: &WriteRecord) {
        let is_it = |field: usize| plan.fields()[field].name().as_bytes() == &mark.value[..];
        let is_known = self.puts.touches(is_it);
        self.puts.mark_changes(|field| !is_known || is_it(field));
    }

    fn take_in(&mut self, plan: &Plan, write: &WriteRecord) -> Result<(), CodecError> {
        let failed = |e: CodecError| e.of(&format!("write to `{}`", write.channel));
        match &*write.channel {
            NO_WRITES => self.done = true,
            TASKS => self.rest_mut().sends.push(decode_send(&write.value).map_err(failed)?),
            RETURN => self.rest_mut().returned = Some(decode(&write.value).map_err(failed)?),
            VERSION => {
                let found = marked_version(write).map_err(CodecError::new)?.unwrap_or_default();
                return Err(CodecError::new(newer_version(found, plan.version)));
            }
            name => {
                if let Some((channel, control)) = plan.control.enumerated().find(|(_, c)| c.name == name) {
                    let member = match &control.kind {
                        ControlKind::Join { members } | ControlKind::JoinDeferred { members } => {
                            members.iter().position(|m| m.as_bytes() == &write.value[..])
                        }
                        _ => Some(0),
                    };
                    self.signals.extend(member.map(|m| (channel, m)));
                } else if let Some(field) = plan.field_named(name) {
                    let decoded = plan.ty.decode_write(&mut self.puts, field, &write.value, write.overwrite);
                    decoded.map_err(failed)?;
                    self.encoded.push(write.value.clone());
                } else {
                    tracing::warn!(channel = name, "a saved write is for a channel that the graph no longer has");
                    self.done = true;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn newer_version(found: u32, known: u32) -> String {
    format!("it was written by version {found} of the state, this graph has version {known}; update the program")
}

fn describe(plan: &Plan, field: usize) -> String {
    format!("field `{}`", plan.fields()[field].name())
}

type SavedSend<'a> = (std::borrow::Cow<'a, str>, Blob, Option<(Option<u64>, Option<u64>, bool)>);

/// A send as it is saved: node, payload, timeout in milliseconds.
pub(crate) fn encode_send(plan: &Plan, send: &Send) -> Result<Blob, String> {
    let payload = tracked_payload(plan, &send.payload)?;
    // Rounded up: no limit becomes one of no time.
    let ms =
        |d: Option<std::time::Duration>| d.map(|d| d.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX));
    let timeout = send.timeout.as_ref().map(|t| (ms(t.run), ms(t.idle), t.heartbeat_only));
    let saved: SavedSend<'_> = (send.node.as_ref().into(), payload, timeout);
    encode(&saved).map_err(|e| e.to_string())
}

/// A payload without the untracked fields that it may carry.
fn tracked_payload(plan: &Plan, payload: &Payload) -> Result<Blob, String> {
    if !plan.untracked.is_empty()
        && let Some(Value::Object(map)) = payload.peek::<Value>()
    {
        let mut map = map.clone();
        plan.untracked.iter().for_each(|f| drop(map.remove(plan.fields()[*f].name())));
        return encode(&map).map_err(|e| e.to_string());
    }
    payload.encoded().map_err(|e| e.to_string())
}

pub(crate) fn decode_send(bytes: &[u8]) -> Result<Send, crate::CodecError> {
    let (node, payload, timeout): SavedSend<'static> = decode(bytes)?;
    let ms = |v: Option<u64>| v.map(std::time::Duration::from_millis);
    let timeout =
        timeout.map(|(run, idle, heartbeat_only)| TimeoutPolicy { run: ms(run), idle: ms(idle), heartbeat_only });
    Ok(Send { node: node.into_owned().into(), payload: Payload::saved(payload), timeout: timeout.map(Box::new) })
}
