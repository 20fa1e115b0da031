//! States and what is written to them, without their types: the only form in which the engine holds them.
//!
//! The engine shares a [`Snapshot`], collects [`Writes`], and asks a [`StateType`] to merge, encode and decode. Which field a
//! write is for, and whether it overwrites, is plain data. What is inside is known to [`Typed`] alone, which is written once
//! over [`State`] and its [`Codec`].

use std::any::{Any, type_name};
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use smallvec::SmallVec;

use super::update::{Origin, Puts, changes_to};
use super::{Change, Codec, Describer, FieldKind, FieldSpec, Put, Scratch, State, Update};
use crate::error::{CodecError, InvalidUpdate};
use crate::message::Message;
use crate::names::ROOT;
use crate::value::{Blob, Payload};
use crate::wall::{DropEach, drop_each};

const ONE_STATE: &str = "all that a graph holds is of its state's type";

/// Any state, as far as the engine knows.
pub(crate) type AnyState = dyn Any + Send + Sync;

/// A shared state, of the type that the graph's [`StateType`] knows.
#[derive(Clone)]
pub struct Snapshot(Arc<AnyState>);

crate::debug::debug_parts!([] Snapshot, "Snapshot", _this => {  });

impl Snapshot {
    pub(crate) fn new<S: State>(state: S) -> Self {
        Self(Arc::new(state))
    }

    pub(crate) fn get<S: State>(&self) -> &S {
        self.0.downcast_ref().expect(ONE_STATE)
    }

    /// The state, if it is an `S`.
    pub(crate) fn peek<S: State>(&self) -> Option<&S> {
        self.0.downcast_ref()
    }

    /// The state to keep; a count.
    pub(crate) fn share<S: State>(&self) -> Arc<S> {
        self.clone().into_shared()
    }

    pub(crate) fn into_shared<S: State>(self) -> Arc<S> {
        self.0.downcast().unwrap_or_else(|_| unreachable!("{ONE_STATE}"))
    }

    /// The state, to change it. It is copied if somebody else holds it, be it by a weak reference.
    fn edit<S: State>(&mut self) -> &mut S {
        // Nobody can come to hold it between these lines: one would need another reference for that.
        if Arc::strong_count(&self.0) != 1 || Arc::weak_count(&self.0) != 0 {
            self.0 = Arc::new(self.get::<S>().clone());
        }
        let state = Arc::get_mut(&mut self.0).and_then(|state| state.downcast_mut());
        state.expect("the lines above made it the only one")
    }
}

/// What one update writes, not looked at yet.
pub(crate) struct AnyUpdate(Box<dyn AnyPuts>);

type Kept<S> = SmallVec<[Option<Put<<S as State>::Write>>; 1]>;

/// Puts, each until it is merged. They are dropped one by one, so that two that panic do not end the process.
struct Held<S: State>(Kept<S>);

impl<S: State> Drop for Held<S> {
    fn drop(&mut self) {
        if self.0.len() > 1 || std::thread::panicking() {
            drop_each(self.0.drain(..));
        }
    }
}

trait AnyPuts: Any + Send + Sync {
    fn copy(&self) -> Box<dyn AnyPuts>;
}

impl<S: State> AnyPuts for Held<S> {
    fn copy(&self) -> Box<dyn AnyPuts> {
        Box::new(Self(self.0.clone()))
    }
}

impl Clone for AnyUpdate {
    fn clone(&self) -> Self {
        // Of what is in the box: the box itself could be one as well.
        Self((*self.0).copy())
    }
}

impl AnyUpdate {
    /// Nothing if there are no puts.
    pub(crate) fn of<S: State>(puts: Puts<S>) -> Option<Self> {
        (!puts.is_empty()).then(|| Self(Box::new(Held::<S>(puts.into_iter().map(Some).collect()))))
    }

    fn is<S: State>(&self) -> bool {
        (&*self.0 as &dyn Any).is::<Held<S>>()
    }

    fn get<S: State>(&self) -> &Kept<S> {
        &(&*self.0 as &dyn Any).downcast_ref::<Held<S>>().expect(ONE_STATE).0
    }

    fn get_mut<S: State>(&mut self) -> &mut Kept<S> {
        &mut (&mut *self.0 as &mut dyn Any).downcast_mut::<Held<S>>().expect(ONE_STATE).0
    }

    /// The puts of an update of `S`.
    pub(crate) fn into_puts<S: State>(mut self) -> Puts<S> {
        self.get_mut::<S>().drain(..).flatten().collect()
    }
}

/// Writes to fields, in order.
#[derive(Clone, Default)]
pub(crate) struct Writes {
    places: SmallVec<[Place; 1]>,
    updates: SmallVec<[AnyUpdate; 1]>,
}

/// One write: which field it is for, and where its value is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) field: usize,
    pub(crate) overwrite: bool,
    pub(crate) origin: Origin,
    update: u32,
    at: u32,
}

impl Place {
    /// Whether it is what a node changed in a whole state.
    pub(crate) fn is_change(&self) -> bool {
        self.origin == Origin::Change
    }
}

impl Writes {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Whether one of these fields is written.
    pub(crate) fn touches(&self, mut fields: impl FnMut(usize) -> bool) -> bool {
        self.places.iter().any(|place| fields(place.field))
    }

    /// Leaves out the writes to other fields than these.
    pub(crate) fn only(mut self, mut fields: impl FnMut(usize) -> bool) -> Self {
        self.places.retain(|place| fields(place.field));
        self
    }

    /// Adds writes behind these.
    pub(crate) fn extend(&mut self, more: Writes) {
        let shift = self.updates.len() as u32;
        self.updates.extend(more.updates);
        self.places.extend(more.places.into_iter().map(|place| Place { update: place.update + shift, ..place }));
    }

    /// Notes which writes are what a task changed in a whole state.
    pub(crate) fn mark_changes(&mut self, mut fields: impl FnMut(usize) -> bool) {
        let marked = self.places.iter_mut().filter(|place| fields(place.field));
        marked.for_each(|place| place.origin = Origin::Change);
    }

    /// Drops all, one by one.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        drop_each(self.updates.drain(..));
    }
}

/// A write that is to be merged: its field, whose it is, and which of theirs. Given field by field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub(crate) field: usize,
    /// Among the writers of the step.
    pub(crate) writer: usize,
    /// Among the writer's places.
    pub(crate) place: usize,
    pub(crate) overwrites: bool,
    /// Whether it is the only write of its field that a step can have.
    pub(crate) stands_alone: bool,
}

impl Due {
    pub(crate) fn new(at: &Place, writer: usize, place: usize) -> Self {
        let stands_alone = at.is_change() && at.overwrite;
        Self { field: at.field, writer, place, overwrites: at.overwrite, stands_alone }
    }
}

/// What is told of a merge as it goes on.
pub(crate) trait MergeWatch {
    /// The state is copied now, because somebody else holds it.
    fn copying(&mut self);

    /// The rule of a field is at work now; gives the memory that it keeps from step to step.
    fn merging(&mut self, field: usize) -> &mut Scratch;

    /// The writes of a field were merged, or refused.
    fn merged(&mut self, result: Result<Change, InvalidUpdate>, due: &[Due]) -> Result<(), InvalidUpdate>;
}

/// What the engine can do with the states of one type.
///
/// Writes and snapshots that it is given must be of that type; the shell sees to it. What a state's codec does fails if there
/// is none: [`can_persist`](StateType::can_persist) tells.
pub(crate) trait StateType: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn fields(&self) -> &[FieldSpec];
    fn version(&self) -> u32;
    fn empty(&self) -> Snapshot;

    /// An update as writes: completed, and without those to fields that the state does not have. `node` made it, if one did.
    ///
    /// # Errors
    /// If it is for another state.
    fn admit(&self, update: Option<AnyUpdate>, node: Option<&str>) -> Result<Writes, InvalidUpdate>;
    /// Whole states among the writes, reduced to what they change in `given`.
    fn changes_to(&self, given: &Snapshot, writes: Writes) -> Writes;
    /// The values of these fields, as writes.
    fn read(&self, state: &Snapshot, fields: &mut dyn Iterator<Item = usize>) -> Writes;
    fn has_value(&self, state: &Snapshot, field: usize) -> bool;

    /// Merges what is due, field by field; the values are taken out of their places.
    fn merge(
        &self,
        state: &mut Snapshot,
        writers: &mut [&mut Writes],
        due: &[Due],
        watch: &mut dyn MergeWatch,
    ) -> Result<(), InvalidUpdate>;
    /// Tells a field that a step has not written it.
    fn leave(&self, state: &mut Snapshot, field: usize) -> Result<Change, InvalidUpdate>;
    fn reset(&self, state: &mut Snapshot, field: usize);
    fn consume(&self, state: &mut Snapshot, field: usize) -> Change;
    fn finish(&self, state: &mut Snapshot, field: usize) -> Change;

    /// The messages of a write, each with all that is in it if that is more than a [`Message`] holds.
    fn messages(&self, writes: &Writes, place: &Place) -> Vec<(Message, Option<Value>)>;
    fn message_ids(&self, state: &Snapshot) -> Vec<String>;
    /// The write that adds one chat message to a field; nothing if the field holds none of this type.
    fn message_write(&self, field: usize, message: Message) -> Option<Writes>;

    fn can_persist(&self) -> bool;
    fn encode_field(&self, state: &Snapshot, field: usize) -> Result<Blob, CodecError>;
    fn decode_field(&self, state: &mut Snapshot, field: usize, bytes: &[u8]) -> Result<(), CodecError>;
    fn encode_write(&self, writes: &Writes, place: &Place) -> Result<Blob, CodecError>;
    /// Adds a write that was saved.
    fn decode_write(&self, into: &mut Writes, field: usize, bytes: &[u8], overwrite: bool) -> Result<(), CodecError>;
    /// Whether a write has no bytes of its own, though the state has.
    fn is_unsaved(&self, writes: &Writes, place: &Place) -> bool;
    /// What a caller writes, as something that can be saved.
    fn savable(&self, state: &Snapshot, writes: Writes) -> Result<Writes, InvalidUpdate>;
    /// A write as JSON; nothing if it is never saved.
    fn write_json(&self, writes: &Writes, place: &Place) -> Result<Option<Value>, CodecError>;
    /// Adds a write that JSON gives.
    fn write_from_json(
        &self,
        into: &mut Option<AnyUpdate>,
        field: usize,
        value: &Value,
        overwrite: bool,
    ) -> Result<(), CodecError>;
    /// What JSON a field holds, or takes, as a JSON schema.
    fn describe(&self, field: usize, takes: bool, describer: &mut Describer) -> Value;
    /// A field as JSON; nothing if it has no value, or is never saved.
    fn field_json(&self, state: &Snapshot, field: usize) -> Result<Option<Value>, CodecError>;
}

impl dyn StateType {
    /// What JSON writes: an object by fields, where `{"__overwrite__": value}` overwrites; null writes nothing. The value of
    /// a state of one nameless field is given bare.
    ///
    /// # Errors
    /// If a value does not fit, or a field is unknown; a `lenient` graph ignores such a field, with a warning.
    pub(crate) fn update_from_json(&self, value: &Value, lenient: bool) -> Result<Option<AnyUpdate>, InvalidUpdate> {
        let mut update = None;
        match value {
            Value::Null => {}
            value if matches!(self.fields(), [only] if only.name() == ROOT) => self.add_json(&mut update, 0, value)?,
            Value::Object(map) => {
                for (name, value) in map {
                    match self.fields().iter().position(|field| field.name() == name && is_open(field)) {
                        Some(field) => self.add_json(&mut update, field, value)?,
                        None if lenient => {
                            tracing::warn!(field = name, "a write to a field that the state does not have is ignored");
                        }
                        None => return Err(self.unknown_field(name)),
                    }
                }
            }
            other => {
                let words = format!("expected an object with fields of the state, got {other}");
                return Err(InvalidUpdate::refused("", words));
            }
        }
        Ok(update)
    }

    fn add_json(&self, update: &mut Option<AnyUpdate>, field: usize, value: &Value) -> Result<(), InvalidUpdate> {
        let whole = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("__overwrite__"));
        let written = self.write_from_json(update, field, whole.unwrap_or(value), whole.is_some());
        written.map_err(|why| InvalidUpdate::refused(self.fields()[field].name(), why.to_string()))
    }

    fn unknown_field(&self, name: &str) -> InvalidUpdate {
        let known = self.fields().iter().filter(|field| is_open(field)).map(|field| format!("`{}`", field.name()));
        let known: Vec<_> = known.collect();
        InvalidUpdate::refused(name, format!("the state has no such field; it has {}", known.join(", ")))
    }
}

/// Whether a field can be written from outside.
fn is_open(field: &FieldSpec) -> bool {
    !field.kind.is_managed() && !field.is_internal()
}

/// The [`StateType`] of `S`.
pub(crate) struct Typed<S: State> {
    schema: Arc<S::Schema>,
    /// How it is saved, from when that is known: a graph may come to know it when it is put into one that is saved.
    codec: OnceLock<&'static Codec<S>>,
}

impl<S: State> Typed<S> {
    pub(crate) fn new(schema: Arc<S::Schema>, codec: Option<&'static Codec<S>>) -> Self {
        Self { schema, codec: codec.map_or_else(OnceLock::new, OnceLock::from) }
    }

    /// The type of the graph's states, for code that knows it.
    pub(crate) fn of(ty: &dyn StateType) -> &Self {
        ty.as_any().downcast_ref().expect(ONE_STATE)
    }

    pub(crate) fn schema(&self) -> &Arc<S::Schema> {
        &self.schema
    }

    /// Tells how it is saved, unless that is known.
    pub(crate) fn save_by(&self, codec: &'static Codec<S>) {
        let _known = self.codec.set(codec);
    }

    /// The state that something with some of its fields is: a state on its way to a node.
    pub(crate) fn sent(&self, payload: &Payload) -> Option<Result<S, CodecError>> {
        self.known_codec().map(|codec| codec.sent(&self.schema, payload))
    }

    /// How it is saved: as the graph was told, or as the state says.
    fn known_codec(&self) -> Option<&'static Codec<S>> {
        self.codec.get().copied().or_else(S::codec)
    }

    fn codec(&self) -> Result<&'static Codec<S>, CodecError> {
        let unknown = || CodecError::new(format!("`{}` cannot be saved", type_name::<S>()));
        self.known_codec().ok_or_else(unknown)
    }

    fn admitted(&self, mut update: AnyUpdate, node: Option<&str>) -> Writes {
        let mut places = SmallVec::new();
        for (at, put) in update.get_mut::<S>().iter_mut().enumerate() {
            let Some(put) = put else { continue };
            S::prepare(&self.schema, &mut put.write);
            match S::field_of(&self.schema, &put.write) {
                Some(field) => places.push(Place::of(put, field, 0, at)),
                None => {
                    let field = S::name_of(&put.write);
                    tracing::warn!(field, node, "a write to a field that the state does not have is ignored");
                }
            }
        }
        let updates = if places.is_empty() { SmallVec::new() } else { SmallVec::from_iter([update]) };
        Writes { places, updates }
    }

    /// The puts that writes are.
    pub(crate) fn puts_of(writes: &Writes) -> impl Iterator<Item = &Put<S::Write>> {
        writes.places.iter().map(|place| Self::put(writes, place))
    }

    /// Writes as an update.
    pub(crate) fn update_of(writes: &Writes) -> Update<S> {
        Update::from_puts(Self::puts_of(writes).cloned().collect())
    }

    fn put<'a>(writes: &'a Writes, place: &Place) -> &'a Put<S::Write> {
        let put = &writes.updates[place.update as usize].get::<S>()[place.at as usize];
        put.as_ref().expect("a write is looked at before it is merged")
    }

    /// Takes the puts out of writes, in order.
    fn take_all(mut writes: Writes) -> Puts<S> {
        let places = std::mem::take(&mut writes.places);
        places.iter().map(|place| take::<S>(&mut writes, place)).collect()
    }

    fn whole(&self, puts: impl IntoIterator<Item = Put<S::Write>>) -> Writes {
        AnyUpdate::of::<S>(puts.into_iter().collect())
            .map_or_else(Writes::default, |update| self.admitted(update, None))
    }
}

fn take<S: State>(writes: &mut Writes, place: &Place) -> Put<S::Write> {
    let put = writes.updates[place.update as usize].get_mut::<S>()[place.at as usize].take();
    let put = put.expect("a write is merged once");
    // The engine may know better by now where it comes from.
    Put { origin: place.origin, ..put }
}

impl Place {
    fn of<W>(put: &Put<W>, field: usize, update: usize, at: usize) -> Self {
        Self { field, overwrite: put.overwrite, origin: put.origin, update: update as u32, at: at as u32 }
    }
}

impl<S: State> Typed<S> {
    /// What became of a field: one with a rule of its own says only in its value whether it has one.
    fn change_of(&self, state: &S, field: usize, change: Change) -> Change {
        match self.fields()[field].kind {
            FieldKind::Custom if change.happened() && state.read(&self.schema, field).is_some() => Change::Set,
            FieldKind::Custom if change.happened() => Change::Cleared,
            _ => change,
        }
    }
}

impl<S: State> StateType for Typed<S> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn fields(&self) -> &[FieldSpec] {
        S::fields(&self.schema)
    }

    fn version(&self) -> u32 {
        S::version(&self.schema)
    }

    fn empty(&self) -> Snapshot {
        Snapshot::new(S::empty(&self.schema))
    }

    fn admit(&self, update: Option<AnyUpdate>, node: Option<&str>) -> Result<Writes, InvalidUpdate> {
        match update {
            None => Ok(Writes::default()),
            Some(update) if update.is::<S>() => Ok(self.admitted(update, node)),
            Some(_) => Err(InvalidUpdate::new("", "it is an update of another state than the graph's")),
        }
    }

    fn changes_to(&self, given: &Snapshot, writes: Writes) -> Writes {
        if !writes.places.iter().any(|place| place.origin == Origin::WholeState) {
            return writes;
        }
        let puts = Self::take_all(writes);
        self.whole(changes_to(given.get::<S>(), &self.schema, puts))
    }

    fn read(&self, state: &Snapshot, fields: &mut dyn Iterator<Item = usize>) -> Writes {
        let state = state.get::<S>();
        self.whole(fields.filter_map(|field| state.read(&self.schema, field)).map(Put::merge))
    }

    fn has_value(&self, state: &Snapshot, field: usize) -> bool {
        state.get::<S>().read(&self.schema, field).is_some()
    }

    fn merge(
        &self,
        state: &mut Snapshot,
        writers: &mut [&mut Writes],
        due: &[Due],
        watch: &mut dyn MergeWatch,
    ) -> Result<(), InvalidUpdate> {
        watch.copying();
        let state = state.edit::<S>();
        for due in due.chunk_by(|one, next| one.field == next.field) {
            let field = due[0].field;
            let scratch = watch.merging(field);
            let mut puts = DropEach(due.iter().map(|due| {
                let writes = &mut *writers[due.writer];
                let place = writes.places[due.place];
                take::<S>(writes, &place)
            }));
            let result = state.update(&self.schema, field, &mut puts.0, scratch);
            drop(puts);
            let result = result.map(|change| self.change_of(state, field, change));
            watch.merged(result, due)?;
        }
        Ok(())
    }

    fn leave(&self, state: &mut Snapshot, field: usize) -> Result<Change, InvalidUpdate> {
        let state = state.edit::<S>();
        let change = state.update(&self.schema, field, &mut std::iter::empty(), &mut Scratch::default())?;
        Ok(self.change_of(state, field, change))
    }

    fn reset(&self, state: &mut Snapshot, field: usize) {
        state.edit::<S>().reset(&self.schema, field);
    }

    fn consume(&self, state: &mut Snapshot, field: usize) -> Change {
        let state = state.edit::<S>();
        let change = state.consume(&self.schema, field);
        self.change_of(state, field, change)
    }

    fn finish(&self, state: &mut Snapshot, field: usize) -> Change {
        let state = state.edit::<S>();
        let change = state.finish(&self.schema, field);
        self.change_of(state, field, change)
    }

    fn messages(&self, writes: &Writes, place: &Place) -> Vec<(Message, Option<Value>)> {
        let write = &Self::put(writes, place).write;
        let mut whole = S::whole_messages(write).into_iter();
        S::messages(write).into_iter().map(|message| (message, whole.next())).collect()
    }

    fn message_ids(&self, state: &Snapshot) -> Vec<String> {
        state.get::<S>().message_ids()
    }

    fn message_write(&self, field: usize, message: Message) -> Option<Writes> {
        S::message_write(&self.schema, field, message).map(|write| self.whole([Put::merge(write)]))
    }

    fn can_persist(&self) -> bool {
        self.known_codec().is_some()
    }

    fn encode_field(&self, state: &Snapshot, field: usize) -> Result<Blob, CodecError> {
        self.codec()?.field(state.get::<S>(), &self.schema, field)
    }

    fn decode_field(&self, state: &mut Snapshot, field: usize, bytes: &[u8]) -> Result<(), CodecError> {
        (self.codec()?.decode_field)(state.edit::<S>(), &self.schema, field, bytes)
    }

    fn encode_write(&self, writes: &Writes, place: &Place) -> Result<Blob, CodecError> {
        self.codec()?.write(&self.schema, &Self::put(writes, place).write)
    }

    fn decode_write(&self, into: &mut Writes, field: usize, bytes: &[u8], overwrite: bool) -> Result<(), CodecError> {
        let write = (self.codec()?.decode_write)(&self.schema, field, bytes)?;
        let put = if overwrite { Put::overwrite(write) } else { Put::merge(write) };
        into.places.push(Place::of(&put, field, into.updates.len(), 0));
        into.updates.extend(AnyUpdate::of::<S>(SmallVec::from_iter([put])));
        Ok(())
    }

    fn is_unsaved(&self, writes: &Writes, place: &Place) -> bool {
        self.known_codec().is_some_and(|codec| codec.is_unsaved(&Self::put(writes, place).write))
    }

    fn savable(&self, state: &Snapshot, writes: Writes) -> Result<Writes, InvalidUpdate> {
        match self.known_codec() {
            Some(codec) if writes.places.iter().any(|place| self.is_unsaved(&writes, place)) => {
                let puts = Self::take_all(writes).into_vec();
                Ok(self.whole(codec.savable(state.get::<S>(), puts)?))
            }
            _ => Ok(writes),
        }
    }

    fn write_json(&self, writes: &Writes, place: &Place) -> Result<Option<Value>, CodecError> {
        (self.codec()?.to_json)(&self.schema, &Self::put(writes, place).write)
    }

    fn write_from_json(
        &self,
        into: &mut Option<AnyUpdate>,
        field: usize,
        value: &Value,
        overwrite: bool,
    ) -> Result<(), CodecError> {
        let write = (self.codec()?.from_json)(&self.schema, field, value, overwrite)?;
        let put = if overwrite { Put::overwrite(write) } else { Put::merge(write) };
        match into {
            Some(update) => update.get_mut::<S>().push(Some(put)),
            None => *into = AnyUpdate::of::<S>(SmallVec::from_iter([put])),
        }
        Ok(())
    }

    fn describe(&self, field: usize, takes: bool, describer: &mut Describer) -> Value {
        S::describe(&self.schema, field, takes, describer)
    }

    fn field_json(&self, state: &Snapshot, field: usize) -> Result<Option<Value>, CodecError> {
        let Some(write) = state.get::<S>().read(&self.schema, field) else { return Ok(None) };
        (self.codec()?.to_json)(&self.schema, &write)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::JsonState;
    use crate::message::Message;
    use crate::state::{AgentState, IntoUpdate, Persist};
    use crate::workflow::{StateMutation, Workflow, WorkflowState};

    /// Collects what is told of a merge.
    #[derive(Default)]
    struct Told {
        scratch: Scratch,
        merged: Vec<(usize, Change)>,
    }

    impl MergeWatch for Told {
        fn copying(&mut self) {}

        fn merging(&mut self, _: usize) -> &mut Scratch {
            &mut self.scratch
        }

        fn merged(&mut self, result: Result<Change, InvalidUpdate>, due: &[Due]) -> Result<(), InvalidUpdate> {
            self.merged.push((due[0].field, result?));
            Ok(())
        }
    }

    fn typed<S: Persist>(schema: S::Schema) -> Typed<S> {
        Typed::new(Arc::new(schema), Some(Codec::of()))
    }

    fn admitted<S: State>(ty: &Typed<S>, update: impl IntoUpdate<S>) -> Writes {
        let puts = update.into_update().into_puts().expect("it is an update");
        ty.admit(AnyUpdate::of::<S>(puts), None).expect("it is of this state")
    }

    fn merge<S: State>(ty: &Typed<S>, state: &mut Snapshot, mut writes: Writes) -> Vec<(usize, Change)> {
        let mut told = Told::default();
        let places = writes.places().to_vec();
        let mut due: Vec<Due> = places.iter().enumerate().map(|(at, place)| Due::new(place, 0, at)).collect();
        due.sort_by_key(|due| due.field);
        ty.merge(state, &mut [&mut writes], &due, &mut told).expect("the rules take it");
        told.merged
    }

    /// What is erased does what the state itself does: it is merged, saved and read back, and shown alike.
    fn check<S: Persist>(ty: &Typed<S>, update: impl IntoUpdate<S>, shown: &Value) {
        let writes = admitted(ty, update);
        for place in writes.places() {
            let (mut again, bytes) = (Writes::default(), ty.encode_write(&writes, place).expect("it is encoded"));
            ty.decode_write(&mut again, place.field, &bytes, place.overwrite).expect("it is decoded");
            let one = ty.write_json(&writes, place).expect("it is shown");
            assert_eq!(ty.write_json(&again, &again.places()[0]).expect("it is shown"), one);
        }
        let mut state = ty.empty();
        assert!(merge(ty, &mut state, writes).iter().all(|(_, change)| *change == Change::Set));
        let json = |state: &Snapshot| {
            let fields = ty.fields().iter().enumerate();
            let shown = fields.filter_map(|(ix, spec)| Some((spec.name().to_owned(), ty.field_json(state, ix).ok()??)));
            Value::Object(shown.collect())
        };
        assert_eq!(json(&state), *shown);
        let mut read = ty.empty();
        for field in (0..ty.fields().len()).filter(|field| ty.has_value(&state, *field)) {
            let bytes = ty.encode_field(&state, field).expect("it is encoded");
            ty.decode_field(&mut read, field, &bytes).expect("it is decoded");
        }
        assert_eq!(json(&read), *shown);
    }

    #[derive(Clone, Default)]
    struct Count(u32);

    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct Add(u32);

    impl StateMutation<Count> for Add {
        fn apply(self, state: &mut Count) {
            state.0 += self.0;
        }
    }

    impl WorkflowState for Count {
        type Checkpoint = u32;
        type Mutation = Add;
        fn snapshot(&self) -> u32 {
            self.0
        }
        fn restore(count: u32) -> Self {
            Self(count)
        }
    }

    #[test]
    fn states_of_every_kind_are_merged_saved_and_shown_as_by_themselves() {
        let said = Message::user("hi").with_id("a");
        let conversation = json!({ "messages": [{ "id": "a", "type": "user", "content": "hi" }] });
        check(&typed::<AgentState>(()), AgentState { messages: vec![said] }, &conversation);
        let fields = JsonState::schema().append("log").last_value("topic");
        check(
            &typed::<JsonState>(fields),
            json!({ "log": ["one"], "topic": "tea" }),
            &json!({ "log": ["one"], "topic": "tea" }),
        );
        check(&typed::<Workflow<Count>>(()), Workflow::<Count>::mutate([Add(2), Add(3)]), &json!({ "state": 5 }));
    }

    #[test]
    fn a_state_that_somebody_holds_is_copied_before_it_is_changed_and_no_other() {
        let ty = typed::<AgentState>(());
        let say = |text: &str| admitted(&ty, AgentState { messages: vec![Message::user(text)] });
        let mut state = ty.empty();
        merge(&ty, &mut state, say("one"));
        let place = std::ptr::from_ref(state.get::<AgentState>());
        merge(&ty, &mut state, say("two"));
        assert_eq!(std::ptr::from_ref(state.get::<AgentState>()), place, "nobody else held it");

        let held = state.share::<AgentState>();
        merge(&ty, &mut state, say("three"));
        assert_eq!((held.messages.len(), state.get::<AgentState>().messages.len()), (2, 3));

        let weak = Arc::downgrade(&state.share::<AgentState>());
        merge(&ty, &mut state, say("four"));
        assert!(weak.upgrade().is_none(), "it was copied, and what was before is gone");
        assert_eq!(state.get::<AgentState>().messages.len(), 4);
    }

    #[test]
    fn writes_are_chosen_joined_and_copied_without_a_look_at_their_values() {
        let ty = typed::<JsonState>(JsonState::schema().last_value("a").last_value("b").last_value("c"));
        let mut writes = admitted(&ty, json!({ "a": 1, "b": 2, "unknown": 0 })).only(|field| field == 1);
        writes.extend(admitted(&ty, json!({ "c": 3 })));
        let copy = writes.clone();
        assert_eq!(writes.places().iter().map(|place| place.field).collect::<Vec<_>>(), [1, 2]);
        for writes in [writes, copy] {
            let mut state = ty.empty();
            merge(&ty, &mut state, writes);
            assert_eq!(ty.field_json(&state, 0).expect("it is shown"), None);
            assert_eq!(ty.field_json(&state, 2).expect("it is shown"), Some(json!(3)));
        }
    }

    #[test]
    fn an_update_of_another_state_is_refused() {
        let update = AnyUpdate::of::<AgentState>(SmallVec::from_iter([Put::merge(vec![Message::user("hi")])]));
        assert!(typed::<Workflow<Count>>(()).admit(update, None).is_err());
    }
}
