//! What a model is asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use superstep::{JsonMap, Message};

use crate::tool::ToolSpec;

/// A conversation that waits for an answer, and how it may be answered.
///
/// ```
/// use superstep::Message;
/// use superstep_agent::{ChatRequest, ToolChoice};
/// let request = ChatRequest::new([Message::user("hi")]).temperature(0.2).max_tokens(100).tool_choice(ToolChoice::None);
/// assert_eq!(request.messages.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// Whether it must.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// Whether it may call several at once; the provider decides if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The form that the answer must have: the text of the answer is JSON then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// How it is to answer.
    #[serde(default)]
    pub settings: Settings,
}

/// Whether a model calls tools.
///
/// ```
/// assert_eq!(superstep_agent::ToolChoice::default(), superstep_agent::ToolChoice::Auto);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// Not this time.
    None,
    /// It must call one at least.
    Required,
    /// It must call this one.
    Tool(String),
}

/// How a model is to answer; what is not said is left to the provider.
///
/// ```
/// assert!(superstep_agent::Settings::default().temperature.is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// How freely it picks its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// From how much of the likely words it picks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// How many tokens it may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Words at which it stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Fields of the provider's own, added to the request as they are.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub extra: JsonMap,
}

/// The form that an answer must have.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// struct Weather { celsius: f64 }
/// let schema = superstep_agent::OutputSchema::of::<Weather>();
/// assert_eq!(schema.name, "Weather");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputSchema {
    /// Its name.
    pub name: String,
    /// Its JSON schema.
    pub schema: Value,
}

impl OutputSchema {
    /// The form of a type.
    pub fn of<T: JsonSchema>() -> Self {
        Self::new(T::schema_name(), schemars::schema_for!(T).to_value())
    }

    /// A form by its schema.
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self { name: name.into(), schema }
    }
}

impl ChatRequest {
    /// A request for the next message of a conversation.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// With tools that may be called.
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolSpec>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// With a word on whether to call them.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// With a word on whether to call several at once.
    pub fn parallel_tool_calls(mut self, allowed: bool) -> Self {
        self.parallel_tool_calls = Some(allowed);
        self
    }

    /// With the form that the answer must have.
    pub fn output(mut self, schema: OutputSchema) -> Self {
        self.output = Some(schema);
        self
    }

    /// See [`Settings::temperature`].
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.settings.temperature = Some(temperature);
        self
    }

    /// See [`Settings::max_tokens`].
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.settings.max_tokens = Some(tokens);
        self
    }
}

impl From<Vec<Message>> for ChatRequest {
    fn from(messages: Vec<Message>) -> Self {
        Self::new(messages)
    }
}

impl From<&[Message]> for ChatRequest {
    fn from(messages: &[Message]) -> Self {
        Self::new(messages.iter().cloned())
    }
}

impl From<&Vec<Message>> for ChatRequest {
    fn from(messages: &Vec<Message>) -> Self {
        messages.as_slice().into()
    }
}

impl From<Message> for ChatRequest {
    fn from(message: Message) -> Self {
        Self::new([message])
    }
}

/// A human's question.
impl From<&str> for ChatRequest {
    fn from(question: &str) -> Self {
        Message::user(question).into()
    }
}

/// A human's question.
impl From<String> for ChatRequest {
    fn from(question: String) -> Self {
        Message::user(question).into()
    }
}
