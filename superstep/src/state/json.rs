//! The dynamic state: fields and rules given at run time, values in JSON.
//!
//! Each field is a [`Channel`]; the server, configuration-made graphs and the conformance
//! runner use it through the same engine as typed states.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::message::merge_messages;
use super::{
    Block, Change, CodecError, FieldKind, FieldSpec, IntoUpdate, Message, MessageIndex, MessageLike, Persist, Put,
    RichMessage, Role, Scratch, State, Update,
};
use crate::channel::{
    AnyValue, BinaryOperatorAggregate, Channel, DeltaChannel, EphemeralValue, LastValue, Topic, UntrackedValue,
};
use crate::error::InvalidUpdate;

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

    fn message_write(schema: &JsonFields, field: usize, message: Message) -> Option<JsonWrite> {
        let spec = &schema.specs[field];
        (!spec.kind.is_managed()).then(|| JsonWrite::new(spec.name(), json_from_message(message)))
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
    fn from_payload(_: &JsonFields, payload: &crate::Payload) -> Result<Update<Self>, CodecError> {
        Ok(payload.to_json()?.into_update())
    }

    fn encode_write(_: &JsonFields, write: &JsonWrite, out: &mut Vec<u8>) -> Result<(), CodecError> {
        super::encode_into(&write.value, out)
    }

    fn decode_write(schema: &JsonFields, field: usize, bytes: &[u8]) -> Result<JsonWrite, CodecError> {
        Ok(JsonWrite::new(schema.specs[field].name(), super::decode(bytes)?))
    }

    fn encode_field(&self, _: &JsonFields, field: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        super::encode_into(&self.channels[field].checkpoint(), out)
    }

    fn decode_field(&mut self, schema: &JsonFields, field: usize, bytes: &[u8]) -> Result<(), CodecError> {
        self.channels[field] = schema.channels[field].from_checkpoint(decode_present(bytes)?);
        Ok(())
    }

    fn write_to_json(_: &JsonFields, write: &JsonWrite) -> Result<Option<Value>, CodecError> {
        Ok(Some(write.value.clone()))
    }
}

/// A saved value; nil is the value null, which is not the same as no value.
fn decode_present(bytes: &[u8]) -> Result<Option<Value>, CodecError> {
    super::decode::<Value>(bytes).map(Some)
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

    /// As the input of a run, null is no input: it goes on with what is left to do, like [`GoOn`](crate::GoOn).
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

/// What a node over a [`JsonState`] reads: its fields as an object, or the payload it was sent.
///
/// ```
/// use superstep::JsonInput;
/// let input = JsonInput(serde_json::json!({ "topic": "tea" }));
/// assert_eq!(input["topic"], "tea");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonInput(pub Value);

impl std::ops::Deref for JsonInput {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.0
    }
}

/// How a dynamic field merges.
///
/// ```
/// use serde_json::json;
/// use superstep::JsonReducer;
///
/// let mut value = json!({ "a": 1 });
/// JsonReducer::Merge.merge(&mut value, json!({ "b": 2 }))?;
/// assert_eq!(value, json!({ "a": 1, "b": 2 }));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum JsonReducer {
    /// Adds numbers, joins strings, appends lists.
    Add,
    /// The union of two objects; the update's keys win.
    Merge,
    /// The greater of two values.
    Max,
    /// Chat messages by id.
    Messages,
    /// Any function; its error says why the value cannot be merged.
    Custom(Arc<dyn Fn(&mut Value, Value) -> Result<(), String> + Send + Sync>),
}

impl fmt::Debug for JsonReducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonReducer::Add => "Add",
            JsonReducer::Merge => "Merge",
            JsonReducer::Max => "Max",
            JsonReducer::Messages => "Messages",
            JsonReducer::Custom(_) => "Custom",
        })
    }
}

impl JsonReducer {
    /// Merges `update` into `current`.
    ///
    /// # Errors
    /// If the two do not go together.
    pub fn merge(&self, current: &mut Value, update: Value) -> Result<(), String> {
        match self {
            JsonReducer::Add => add(current, update),
            JsonReducer::Merge => merge_objects(current, update),
            JsonReducer::Max => keep_greater(current, update),
            JsonReducer::Messages => merge_json_messages(current, update),
            JsonReducer::Custom(f) => f(current, update),
        }
    }
}

fn add(current: &mut Value, update: Value) -> Result<(), String> {
    match (current, update) {
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (current @ (Value::Number(_) | Value::Bool(_)), update @ (Value::Number(_) | Value::Bool(_))) => {
            *current = add_numbers(current, &update)
                .ok_or_else(|| format!("the sum of {current} and {update} is out of range"))?;
        }
        (current, update) => return Err(format!("cannot add {} to {}", kind_of(&update), kind_of(current))),
    }
    Ok(())
}

fn add_numbers(a: &Value, b: &Value) -> Option<Value> {
    let number = |v: &Value| v.as_i64().map(i128::from).or_else(|| v.as_u64().map(i128::from));
    let whole = |v: &Value| v.as_bool().map(i128::from).or_else(|| number(v));
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => {
            i64::try_from(a + b).map(Value::from).or_else(|_| u64::try_from(a + b).map(Value::from)).ok()
        }
        _ => serde_json::Number::from_f64(a.as_f64()? + b.as_f64()?).map(Value::Number),
    }
}

fn merge_objects(current: &mut Value, update: Value) -> Result<(), String> {
    match (current, update) {
        (Value::Object(map), Value::Object(more)) => map.extend(more),
        (current, update) => return Err(format!("cannot merge {} into {}", kind_of(&update), kind_of(current))),
    }
    Ok(())
}

fn keep_greater(current: &mut Value, update: Value) -> Result<(), String> {
    let greater = match (&*current, &update) {
        (Value::Number(a), Value::Number(b)) => b.as_f64() > a.as_f64(),
        (Value::String(a), Value::String(b)) => b > a,
        (a, b) => return Err(format!("cannot compare {} with {}", kind_of(a), kind_of(b))),
    };
    if greater {
        *current = update;
    }
    Ok(())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

// ---- messages in JSON ----

impl MessageLike for Value {
    fn id(&self) -> Option<&str> {
        self.get("id")?.as_str()
    }
    fn set_id(&mut self, id: String) {
        if let Value::Object(map) = self {
            map.insert("id".to_owned(), Value::String(id));
        }
    }
    fn is_removal(&self) -> bool {
        self.get("type").and_then(Value::as_str) == Some("remove")
    }
    fn removes_all(&self) -> bool {
        self.is_removal() && self.id() == Some("__remove_all__")
    }
}

fn each_message(value: &mut Value, mut f: impl FnMut(&mut Value)) {
    match value {
        Value::Array(list) => list.iter_mut().filter(|v| v.is_object()).for_each(f),
        value @ Value::Object(_) => f(value),
        _ => {}
    }
}

/// Texts and pairs of role and content become messages before they get their ids.
fn texts_to_messages(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(text_to_message),
        one => text_to_message(one),
    }
}

fn text_to_message(value: &mut Value) {
    // What is no message is left as it is, and refused when it is merged.
    if (value.is_string() || value.is_array())
        && let Ok(message) = normal_message(value.clone())
    {
        *value = message;
    }
}

fn merge_json_messages(current: &mut Value, update: Value) -> Result<(), String> {
    let update = match update {
        Value::Array(list) => list,
        one => vec![one],
    };
    let update = update.into_iter().map(normal_message).collect::<Result<Vec<_>, _>>()?;
    let Value::Array(list) = current else { return Err("messages must be a list".to_owned()) };
    merge_messages("messages", list, update, &mut MessageIndex::default()).map_err(|e| e.why)
}

/// The messages that a value is or lists.
fn messages_in(value: &Value) -> impl Iterator<Item = &Value> {
    let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    listed.iter().filter(|v| is_message(v))
}

/// Whether a value is a message in its normal form, as opposed to a `{role, content}` pair.
fn is_message(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    matches!(kind, Some("human" | "ai" | "system" | "tool")) && value.get("content").is_some()
}

/// A chat message in the form that dynamic states hold: `{type, content, ..}`, from a text, `[role, content]` or
/// `{role, content, ..}`.
///
/// ```
/// use serde_json::json;
/// use superstep::normal_message;
///
/// let message = normal_message(json!({ "role": "assistant", "content": "hi", "name": "Ada" }))?;
/// assert_eq!(message, json!({ "type": "ai", "content": "hi", "name": "Ada" }));
/// assert_eq!(normal_message(json!("hi"))?, json!({ "type": "human", "content": "hi" }));
/// assert_eq!(normal_message(json!(["ai", "hi"]))?, json!({ "type": "ai", "content": "hi" }));
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// If it is none of these, its role is not known, it has no content, or it is a tool's and has no `tool_call_id`.
pub fn normal_message(value: Value) -> Result<Value, String> {
    let mut map = match value {
        Value::Object(map) => map,
        Value::String(text) => return Ok(json!({ "type": "human", "content": text })),
        Value::Array(pair) => pair_to_map(pair)?,
        other => return Err(format!("{} is not a message", kind_of(&other))),
    };
    if let Some(Value::Number(number)) = map.get("id") {
        let text = number.to_string();
        map.insert("id".to_owned(), Value::String(text));
    }
    let role = map.remove("role").or_else(|| map.remove("type"));
    let kind = match role.as_ref().and_then(Value::as_str) {
        Some("user" | "human") => "human",
        Some("assistant" | "ai") => "ai",
        Some("system" | "developer") => "system",
        Some("tool") => "tool",
        Some("remove") => "remove",
        _ => return Err(unknown_role(role)),
    };
    map.insert("type".to_owned(), json!(kind));
    if kind == "remove" {
        return Ok(Value::Object(map));
    }
    normal_content(&mut map)?;
    if kind == "tool" && map.get("tool_call_id").is_none_or(Value::is_null) {
        return Err("a tool's message needs the `tool_call_id` of the call that it answers".to_owned());
    }
    for call in map.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(call) = call {
            normal_call(call)?;
        }
    }
    Ok(Value::Object(map))
}

/// A call as `{name, args, id}`; the APIs of models also have it as `{id, function: {name, arguments}}`.
fn normal_call(call: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(Value::Object(mut function)) = call.remove("function") {
        let arguments = match function.remove("arguments").unwrap_or_default() {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| format!("the `arguments` of a tool call are not JSON: {error}"))?,
            arguments => arguments,
        };
        call.insert("name".to_owned(), function.remove("name").unwrap_or_default());
        call.insert("args".to_owned(), arguments);
    }
    call.insert("type".to_owned(), json!("tool_call"));
    Ok(())
}

/// The message that `[role, content]` stands for.
fn pair_to_map(pair: Vec<Value>) -> Result<Map<String, Value>, String> {
    match <[Value; 2]>::try_from(pair) {
        Ok([_, Value::Null]) => Err(NO_CONTENT.to_owned()),
        Ok([role, content]) => Ok(Map::from_iter([("role".to_owned(), role), ("content".to_owned(), content)])),
        Err(list) => Err(format!("a list of {} is not a message; write `[role, content]`", list.len())),
    }
}

fn unknown_role(role: Option<Value>) -> String {
    let known = "`user`, `assistant`, `system`, `developer` or `tool`";
    match role {
        Some(role) => format!("a message's `role` is {known}, not {role}"),
        None => format!("a message needs a `role`: {known}"),
    }
}

const NO_CONTENT: &str = "a message needs `content`; an object without words has the content null or an empty text";

/// Content is text or a list of parts; a message that has only calls has the content null, which counts as no words.
fn normal_content(message: &mut Map<String, Value>) -> Result<(), String> {
    match message.get_mut("content") {
        None => Err(NO_CONTENT.to_owned()),
        Some(Value::String(_)) => Ok(()),
        Some(content) if content.is_null() || content.as_array().is_some_and(Vec::is_empty) => {
            *content = json!("");
            Ok(())
        }
        Some(Value::Array(parts)) if parts.iter().all(|part| part.is_string() || part.is_object()) => Ok(()),
        Some(other) => Err(format!("a message's `content` is text or a list of parts, not {other}")),
    }
}

/// A JSON message as a [`Message`]; of content in parts, the texts.
fn message_from_json(value: &Value) -> Message {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let content = match value.get("content") {
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|p| p.as_str().or_else(|| p.get("text")?.as_str())).collect()
        }
        _ => text("content"),
    };
    let message = match value.get("type").and_then(Value::as_str) {
        Some("human") => Message::user(content),
        Some("system") => Message::system(content),
        Some("tool") => Message::tool_result(text("tool_call_id"), content),
        _ => match calls_from_json(value.get("tool_calls")) {
            calls if calls.is_empty() => Message::assistant(content),
            calls => super::MessageKind::AssistantCalls { text: content, calls }.into(),
        },
    };
    Message { id: value.id().map(str::to_owned), ..message }
}

/// A [`Message`] in the form that dynamic states hold.
fn json_from_message(message: Message) -> Value {
    let id = message.id.clone();
    let rich = match message.into_rich() {
        Ok(rich) => rich,
        Err(removal) if removal.removes_all() => return json!({ "type": "remove", "id": "__remove_all__" }),
        Err(_) => return json!({ "type": "remove", "id": id }),
    };
    let kind = match rich.role {
        Role::User => "human",
        Role::Assistant => "ai",
        Role::System => "system",
        Role::Tool => "tool",
    };
    let mut json = Map::from_iter([("type".to_owned(), json!(kind)), ("content".to_owned(), content_of(&rich))]);
    let mut tell = |key: &str, value: Option<Value>| json.extend(value.map(|value| (key.to_owned(), value)));
    let call = |c: &super::ToolCall| json!({ "name": c.name, "args": c.args, "id": c.id, "type": "tool_call" });
    let calls: Vec<Value> = rich.tool_calls().map(call).collect();
    tell("id", id.map(Value::String));
    tell("name", rich.name.map(Value::String));
    tell("tool_calls", (!calls.is_empty()).then_some(Value::Array(calls)));
    if let Some(answer) = rich.answer {
        tell("tool_call_id", Some(Value::String(answer.call)));
        tell("status", answer.is_error.then(|| json!("error")));
        tell("artifact", answer.artifact);
    }
    let usage =
        |u: super::Usage| json!({ "input_tokens": u.input, "output_tokens": u.output, "total_tokens": u.total() });
    tell("usage_metadata", rich.usage.map(usage));
    tell("response_metadata", (!rich.response.is_empty()).then_some(Value::Object(rich.response)));
    tell("additional_kwargs", (!rich.extra.is_empty()).then_some(Value::Object(rich.extra)));
    Value::Object(json)
}

/// The content of a message: its text, or its parts if it has others. Calls of tools stand apart.
fn content_of(rich: &RichMessage) -> Value {
    let parts: Vec<&Block> = rich.blocks.iter().filter(|block| !matches!(block, Block::ToolCall(_))).collect();
    if parts.iter().all(|block| matches!(block, Block::Text { extra, .. } if extra.is_empty())) {
        return json!(rich.text());
    }
    json!(parts)
}

fn calls_from_json(calls: Option<&Value>) -> Vec<super::ToolCall> {
    let listed = calls.and_then(Value::as_array).into_iter().flatten();
    listed
        .map(|c| {
            let text = |key: &str| c.get(key).and_then(Value::as_str).unwrap_or_default();
            super::ToolCall::new(text("id"), text("name"), c.get("args").cloned().unwrap_or_default())
        })
        .collect()
}

/// The fields that a node reads as an object, computed values included.
pub(crate) fn json_object(
    plan: &crate::plan::Plan<JsonState>,
    state: &JsonState,
    reads: Option<&[usize]>,
    steps: Option<(i64, i64)>,
) -> Value {
    let mut map = Map::new();
    for (ix, spec) in plan.schema.specs.iter().enumerate() {
        if reads.is_some_and(|list| !list.contains(&ix)) || (reads.is_none() && plan.private.contains(&ix)) {
            continue;
        }
        let value = match (spec.kind, steps) {
            (FieldKind::IsLastStep, Some((step, stop))) => Some(json!(step == stop - 1)),
            (FieldKind::RemainingSteps, Some((step, stop))) => Some(json!(stop - step)),
            _ => state.at(ix).cloned(),
        };
        map.extend(value.map(|v| (spec.name().to_owned(), v)));
    }
    Value::Object(map)
}
