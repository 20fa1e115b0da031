//! Messages that functions push which a task called: writes of their own, merged after those of the step's tasks.

use serde_json::Value;

use super::{CallDesk, OneCall};
use crate::call::{Context, lock};
use crate::engine::apply::Applied;
use crate::engine::writes::{Rest, TaskWrites};
use crate::error::{CodecError, Error};
use crate::index::NodeIx;
use crate::state::FieldKind;
use crate::state::erased::Writes;
use crate::value::{decode, encode};
use crate::view::Fields;

/// Begins a cached result that is more than a value; no value begins with it.
const WITH_WRITES: u8 = 0xc1;

/// What a call wrote to the state, which is merged after what the tasks of its step wrote.
pub(in crate::engine) struct CallWrites {
    /// The node whose task called, perhaps through others.
    node: Option<NodeIx>,
    order: String,
    writes: TaskWrites,
}

impl CallWrites {
    pub(in crate::engine) fn applied(&mut self) -> Applied<'_> {
        Applied { node: self.node, woken: None, ends_step: true, writes: &mut self.writes }
    }
}

impl CallDesk {
    /// The messages that calls pushed in this step, in the order in which they are merged.
    pub(in crate::engine) fn take_pushed(&self) -> Vec<CallWrites> {
        let mut pushed = std::mem::take(&mut *lock(&self.pushed));
        pushed.sort_by(|one, other| one.order.cmp(&other.order));
        pushed
    }

    /// Whether a call pushed a message to one of these fields.
    pub(in crate::engine) fn has_pushed(&self, fields: &Fields) -> bool {
        lock(&self.pushed).iter().any(|call| call.writes.puts.touches(|field| fields.has(field)))
    }

    /// Notes what a call pushed, to be merged at the end of the step.
    pub(super) fn note_pushed(&self, call: &OneCall, writes: &TaskWrites) {
        if !writes.puts.is_empty() {
            let order = call.caller.task.call_order(call.nth);
            // A node that is tried again calls again, and gets the result that is known.
            if lock(&self.pushed).iter().any(|known| known.order == order) {
                return;
            }
            let mut pushed = TaskWrites::of_puts(writes.puts.clone());
            pushed.encoded = writes.encoded.clone();
            lock(&self.pushed).push(CallWrites { node: root_node(&call.caller), order, writes: pushed });
        }
    }

    /// The field that messages are pushed to.
    pub(super) fn field_of_messages(&self, named: Option<&str>) -> Result<usize, Error> {
        if let Some(name) = named {
            let unknown = || Error::invalid(format!("the state has no field `{name}` to push a message to"));
            return self.plan.field_named(name).ok_or_else(unknown);
        }
        let is_messages = |field: &usize| self.plan.kind(*field) == FieldKind::Messages;
        let fields: Vec<usize> = (0..self.plan.fields().len()).filter(is_messages).collect();
        match (&*fields, self.plan.field_named("messages")) {
            ([only], _) => Ok(*only),
            (_, Some(field)) => Ok(field),
            ([], None) => Err(Error::invalid(
                "the state has no messages to push to; give it a field of messages, name the field with \
                 `push_message_to`, or only show the message with `emit_message`",
            )),
            (_, None) => Err(Error::invalid(
                "the state has several fields of messages; name the one to push to with `push_message_to`",
            )),
        }
    }

    /// A result as it is kept in the cache.
    pub(super) fn cached_bytes(&self, value: &Value, pushed: &Writes) -> Result<Option<Vec<u8>>, CodecError> {
        if pushed.is_empty() {
            return Ok(Some(encode(value)?.to_vec()));
        }
        // Without the state's codec the messages cannot be kept: the function runs again.
        if !self.plan.ty.can_persist() {
            return Ok(None);
        }
        let mut writes = Vec::new();
        for place in pushed.places() {
            let name = self.plan.fields()[place.field].name();
            writes.push((name, self.plan.ty.encode_write(pushed, place)?.to_vec()));
        }
        Ok(Some([&[WITH_WRITES][..], &encode(&(value, writes))?].concat()))
    }

    /// The result that was kept, with what was written beside it.
    pub(super) fn cached_writes(&self, bytes: &[u8]) -> Result<TaskWrites, CodecError> {
        let Some((&WITH_WRITES, rest)) = bytes.split_first() else {
            let returned = Some(decode(bytes)?);
            return Ok(TaskWrites::only(Rest { returned, ..Rest::default() }));
        };
        let (value, pushed): (Value, Vec<(String, Vec<u8>)>) = decode(rest)?;
        let mut writes = TaskWrites::only(Rest { returned: Some(value), ..Rest::default() });
        for (name, bytes) in pushed {
            let field = self.plan.field_named(&name);
            let field = field.ok_or_else(|| CodecError::new(format!("the state has no field `{name}` any more")))?;
            self.plan.ty.decode_write(&mut writes.puts, field, &bytes, false)?;
        }
        Ok(writes)
    }
}

/// The node that a call comes from.
fn root_node(caller: &Context) -> Option<NodeIx> {
    let mut task = &caller.task;
    while let (None, Some(around)) = (task.place.node(), &task.around) {
        task = around;
    }
    task.place.node()
}
