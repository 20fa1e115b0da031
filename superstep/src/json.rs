//! The dynamic state: fields and rules given at run time, values in JSON.
//!
//! Each field is a [`Channel`]; the server, configuration-made graphs and the conformance
//! runner use it through the same engine as typed states.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::channel::{
    AnyValue, BinaryOperatorAggregate, Channel, DeltaChannel, EphemeralValue, JsonReducer, LastValue, Topic,
    UntrackedValue,
};
use crate::error::{CodecError, InvalidUpdate};
use crate::message::{
    Message, MessageLike, each_message, json_from_message, message_from_json, messages_in, texts_to_messages,
};
use crate::state::{Change, Codec, FieldKind, FieldSpec, IntoUpdate, Persist, Put, Scratch, State, Update};
use crate::value::{Payload, decode, encode_into};

/// A state whose fields are known at run time.
///
/// ```
/// use serde_json::json;
/// use superstep::{JsonInput, JsonState, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::dynamic(JsonState::schema().append("log").last_value("topic"))
///     .add_node("note", async |input: JsonInput| json!({ "log": [input["topic"]] }))
///     .add_edge(START, "note")
///     .compile()?;
/// let out = app.invoke(json!({ "topic": "tea" })).await?;
/// assert_eq!(out.to_json(), json!({ "log": ["tea"], "topic": "tea" }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct JsonState {
    channels: Vec<Box<dyn Channel>>,
}

impl JsonState {
    /// Starts a list of fields.
    pub fn schema() -> JsonFields {
        JsonFields::default()
    }

    /// The value of a field, if it has one.
    pub fn get<'a>(&'a self, schema: &JsonFields, field: &str) -> Option<&'a Value> {
        self.channels.get(*schema.places.get(field)?)?.get()
    }

    /// The value of a field by its number.
    pub(crate) fn at(&self, field: usize) -> Option<&Value> {
        self.channels.get(field)?.get()
    }
}

/// The fields of a [`JsonState`], each with its channel.
///
/// ```
/// use superstep::{JsonState, Topic};
/// let fields = JsonState::schema().sum("tokens").field("tags", Topic::new().unique());
/// assert_eq!(fields.names().collect::<Vec<_>>(), ["tokens", "tags"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct JsonFields {
    specs: Vec<FieldSpec>,
    places: HashMap<Arc<str>, usize>,
    channels: Vec<Box<dyn Channel>>,
    pub(crate) clashes: Vec<(String, String)>,
    version: Option<u32>,
}

impl JsonFields {
    /// The version of the fields; 1 without it. See [`StateGraph::migrate`](crate::StateGraph::migrate).
    pub fn version(self, version: u32) -> Self {
        Self { version: Some(version), ..self }
    }

    /// Adds a field with any channel.
    ///
    /// Adding a name again keeps the first channel if the new one is a plain last value or of
    /// the same kind; otherwise compiling the graph reports it.
    pub fn field(self, name: impl Into<String>, channel: impl Channel) -> Self {
        self.boxed(name.into(), Box::new(channel))
    }

    fn boxed(mut self, name: String, channel: Box<dyn Channel>) -> Self {
        let kind = channel.kind();
        if let Some(place) = self.places.get(name.as_str()) {
            let known = self.specs[*place].kind;
            if kind != FieldKind::LastValue && kind != known {
                self.clashes.push((name, format!("it is {known:?} in one place and {kind:?} in another")));
            }
            return self;
        }
        self.places.insert(name.as_str().into(), self.specs.len());
        self.specs.push(FieldSpec::named(name, kind));
        self.channels.push(channel);
        self
    }

    /// A field that keeps the last value; two writers in one step are an error.
    pub fn last_value(self, name: impl Into<String>) -> Self {
        self.field(name, LastValue::default())
    }

    /// A field in which the last writer of a step wins.
    pub fn any(self, name: impl Into<String>) -> Self {
        self.field(name, AnyValue::default())
    }

    /// A field that lives for one step.
    pub fn ephemeral(self, name: impl Into<String>) -> Self {
        self.field(name, EphemeralValue::default())
    }

    /// A field that no checkpoint holds.
    pub fn untracked(self, name: impl Into<String>) -> Self {
        self.field(name, UntrackedValue::default())
    }

    /// A list to which writes append.
    pub fn append(self, name: impl Into<String>) -> Self {
        self.field(name, BinaryOperatorAggregate::new(JsonReducer::Add, Some(json!([]))))
    }

    /// A number to which writes are added.
    pub fn sum(self, name: impl Into<String>) -> Self {
        self.field(name, BinaryOperatorAggregate::new(JsonReducer::Add, Some(json!(0))))
    }

    /// Chat messages, merged by id.
    pub fn messages(self, name: impl Into<String>) -> Self {
        self.field(name, BinaryOperatorAggregate::new(JsonReducer::Messages, Some(json!([]))))
    }

    /// A field with a reducer and, if it has one, an initial value.
    pub fn reducer(self, name: impl Into<String>, reducer: JsonReducer, initial: Option<Value>) -> Self {
        self.field(name, BinaryOperatorAggregate::new(reducer, initial))
    }

    /// Values collected for one step.
    pub fn topic(self, name: impl Into<String>) -> Self {
        self.field(name, Topic::new())
    }

    /// A list saved as its tail.
    pub fn delta(self, name: impl Into<String>) -> Self {
        self.field(name, DeltaChannel::default())
    }

    /// Keeps fields that were added before to the graph's nodes: they are saved with the thread, but no input writes them, and
    /// no output, event or snapshot shows them.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::{JsonInput, JsonState, MemorySaver, StateGraph, START};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::dynamic(JsonState::schema().sum("runs").last_value("said").internal(["runs"]))
    ///     .add_node("count", async |seen: JsonInput| json!({ "runs": 1, "said": format!("{} before", seen["runs"]) }))
    ///     .add_edge(START, "count")
    ///     .checkpointer(MemorySaver::new())
    ///     .compile()?;
    /// app.invoke(json!({})).thread("t").await?;
    /// let out = app.invoke(json!({ "runs": 100 })).thread("t").await?;
    /// assert_eq!(out.to_json(), json!({ "said": "1 before" }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn internal(mut self, names: impl IntoIterator<Item: Into<String>>) -> Self {
        for name in names {
            let name = name.into();
            match self.place(&name) {
                Some(place) => self.specs[place] = self.specs[place].clone().internal(),
                None => self.clashes.push((name, "it is to be internal, but was not added before".to_owned())),
            }
        }
        self
    }

    /// Whether this is the last step that the recursion limit allows.
    pub fn is_last_step(self, name: impl Into<String>) -> Self {
        self.boxed(name.into(), Box::new(Managed(FieldKind::IsLastStep)))
    }

    /// How many steps the recursion limit leaves.
    pub fn remaining_steps(self, name: impl Into<String>) -> Self {
        self.boxed(name.into(), Box::new(Managed(FieldKind::RemainingSteps)))
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(FieldSpec::name)
    }

    /// The number of a field.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }
}

/// A value that the engine computes; nothing can be written to it.
#[derive(Debug, Clone)]
struct Managed(FieldKind);

impl Channel for Managed {
    fn kind(&self) -> FieldKind {
        self.0
    }
    fn update(&mut self, _: Vec<Put<Value>>) -> Result<Change, InvalidUpdate> {
        Ok(Change::None)
    }
    fn get(&self) -> Option<&Value> {
        None
    }
    fn checkpoint(&self) -> Option<Value> {
        None
    }
    fn from_checkpoint(&self, _: Option<Value>) -> Box<dyn Channel> {
        self.copy()
    }
    fn copy(&self) -> Box<dyn Channel> {
        Box::new(self.clone())
    }
}

/// A write to a field of a [`JsonState`], by name.
///
/// ```
/// let write = superstep::JsonWrite::new("log", serde_json::json!(["x"]));
/// assert_eq!(write.field(), "log");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonWrite {
    field: Arc<str>,
    value: Value,
}

impl JsonWrite {
    /// A write of `value` to `field`.
    pub fn new(field: impl Into<Arc<str>>, value: Value) -> Self {
        Self { field: field.into(), value }
    }

    /// The field's name.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

impl State for JsonState {
    type Schema = JsonFields;
    type Write = JsonWrite;

    fn codec() -> Option<&'static Codec<Self>> {
        Some(Codec::of())
    }

    fn fields(schema: &JsonFields) -> &[FieldSpec] {
        &schema.specs
    }

    fn version(schema: &JsonFields) -> u32 {
        schema.version.unwrap_or(1)
    }

    fn empty(schema: &JsonFields) -> Self {
        Self { channels: schema.channels.clone() }
    }

    fn field_of(schema: &JsonFields, write: &JsonWrite) -> Option<usize> {
        schema.place(&write.field)
    }

    fn name_of(write: &JsonWrite) -> Option<&str> {
        Some(&write.field)
    }

    fn update(
        &mut self,
        schema: &JsonFields,
        field: usize,
        writes: &mut dyn Iterator<Item = Put<JsonWrite>>,
        _: &mut Scratch,
    ) -> Result<Change, InvalidUpdate> {
        let writes = writes.map(|put| put.map(|w| w.value)).collect();
        self.channels[field].update(writes).map_err(|mut error| {
            error.field = schema.specs[field].name().to_owned();
            error
        })
    }

    fn read(&self, schema: &JsonFields, field: usize) -> Option<JsonWrite> {
        Some(JsonWrite::new(schema.specs[field].name(), self.at(field)?.clone()))
    }

    fn reset(&mut self, schema: &JsonFields, field: usize) {
        self.channels[field] = schema.channels[field].copy();
    }

    fn consume(&mut self, _: &JsonFields, field: usize) -> Change {
        self.channels[field].consume()
    }

    fn finish(&mut self, _: &JsonFields, field: usize) -> Change {
        self.channels[field].finish()
    }

    fn prepare(schema: &JsonFields, write: &mut JsonWrite) {
        let Some(place) = schema.place(&write.field) else { return };
        if schema.specs[place].kind == FieldKind::Messages {
            texts_to_messages(&mut write.value);
            each_message(&mut write.value, |message| {
                if message.get("id").is_none_or(Value::is_null) && !message.removes_all() {
                    message.set_id(crate::id::random_uuid());
                }
            });
        }
    }

    fn message_write(schema: &JsonFields, field: usize, message: Message) -> Option<JsonWrite> {
        let spec = &schema.specs[field];
        (!spec.kind.is_managed()).then(|| JsonWrite::new(spec.name(), json_from_message(message)))
    }

    fn messages(write: &JsonWrite) -> Vec<Message> {
        messages_in(&write.value).map(message_from_json).collect()
    }

    fn whole_messages(write: &JsonWrite) -> Vec<Value> {
        messages_in(&write.value).cloned().collect()
    }

    fn message_ids(&self) -> Vec<String> {
        let messages = self.channels.iter().filter_map(|c| c.get()).flat_map(messages_in);
        messages.filter_map(|v| v.id().map(str::to_owned)).collect()
    }
}

impl Persist for JsonState {
    fn from_payload(_: &JsonFields, payload: &Payload) -> Result<Update<Self>, CodecError> {
        Ok(payload.to_json()?.into_update())
    }

    fn encode_write(_: &JsonFields, write: &JsonWrite, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_into(&write.value, out)
    }

    fn decode_write(schema: &JsonFields, field: usize, bytes: &[u8]) -> Result<JsonWrite, CodecError> {
        Ok(JsonWrite::new(schema.specs[field].name(), decode(bytes)?))
    }

    fn encode_field(&self, _: &JsonFields, field: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_into(&self.channels[field].checkpoint(), out)
    }

    fn decode_field(&mut self, schema: &JsonFields, field: usize, bytes: &[u8]) -> Result<(), CodecError> {
        self.channels[field] = schema.channels[field].from_checkpoint(decode_present(bytes)?);
        Ok(())
    }

    fn write_from_json(schema: &JsonFields, field: usize, value: &Value, _: bool) -> Result<JsonWrite, CodecError> {
        Ok(JsonWrite::new(schema.specs[field].name(), value.clone()))
    }

    fn write_to_json(_: &JsonFields, write: &JsonWrite) -> Result<Option<Value>, CodecError> {
        Ok(Some(write.value.clone()))
    }
}

/// A saved value; nil is the value null, which is not the same as no value.
fn decode_present(bytes: &[u8]) -> Result<Option<Value>, CodecError> {
    decode::<Value>(bytes).map(Some)
}

impl IntoUpdate<JsonState> for Value {
    /// An object writes its keys, null writes nothing; anything else is refused when it is used.
    fn into_update(self) -> Update<JsonState> {
        match self {
            Value::Object(map) => Update::from_puts(map.into_iter().map(|(k, v)| put_of(k, v)).collect()),
            Value::Null => Update::new(),
            other => Update::refused(format!("expected an object, got {other}")),
        }
    }

    /// As the input of a run, null is no input: it resumes what is left to do, like [`GoOn`](crate::GoOn).
    fn is_nothing(&self) -> bool {
        self.is_null()
    }
}

/// A write; the JSON form `{"__overwrite__": value}` marks an overwrite.
fn put_of(key: String, value: Value) -> Put<JsonWrite> {
    match value {
        Value::Object(mut map) if map.len() == 1 && map.contains_key("__overwrite__") => {
            Put::overwrite(JsonWrite::new(key, map.remove("__overwrite__").expect("the guard saw the key")))
        }
        value => Put::merge(JsonWrite::new(key, value)),
    }
}
