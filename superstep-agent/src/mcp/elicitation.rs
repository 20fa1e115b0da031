//! Questions that a server asks the user in the middle of a call.

use rmcp::model::{ElicitRequestParams, ElicitResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use superstep::ToolCall;

use super::calls::Whose;

/// A question of an MCP server to the user, as the value of an [`Interrupt`](superstep::Interrupt).
///
/// The run pauses with it. When it is resumed with an answer, the tool is called again, and the server gets the answer
/// when it asks the same question.
///
/// ```
/// use serde_json::json;
/// use superstep::Interrupt;
/// use superstep_agent::mcp::Elicitation;
///
/// // As it comes out of a run: `out.interrupts`.
/// # let value = json!({ "type": "elicitation", "key": "k", "server": "travel", "tool": "book", "message": "Which seat?",
/// #     "schema": { "type": "object", "properties": { "seat": { "type": "string" } } } });
/// # let interrupt = Interrupt::new("0123456789abcdef0123456789abcdef", value);
/// let question: Elicitation = interrupt.value_as()?;
/// assert_eq!((question.server.as_str(), question.message.as_str()), ("travel", "Which seat?"));
/// // The run resumes with it: `app.invoke(Resume::value(answer)).thread("t")`.
/// let answer = question.accept(json!({ "seat": "12A" }));
/// # let _ = answer;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "elicitation")]
#[non_exhaustive]
pub struct Elicitation {
    /// Tells the question from all others; answers carry it.
    pub key: String,
    /// The server.
    pub server: String,
    /// The tool that was called; nothing if several were called at once, and the server does not say for which it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What to ask the user.
    pub message: String,
    /// The JSON schema of the answer; nothing if the user is to open an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// An address for the user to open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What the user says to an [`Elicitation`].
///
/// One that is made by hand, as JSON, needs no `key`: it answers the question that waits.
///
/// ```
/// use superstep_agent::mcp::{ElicitationAction, ElicitationAnswer};
/// let answer: ElicitationAnswer = serde_json::from_str(r#"{ "action": "decline" }"#)?;
/// assert_eq!(answer.action, ElicitationAction::Decline);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitationAnswer {
    /// Whether there is an answer.
    pub action: ElicitationAction,
    /// The answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Whether a question is answered.
///
/// ```
/// use superstep_agent::mcp::ElicitationAction;
/// assert_eq!(serde_json::to_value(ElicitationAction::Accept).unwrap(), "accept");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationAction {
    /// It is.
    Accept,
    /// The user does not want to say.
    Decline,
    /// The user wants the whole thing to stop.
    Cancel,
}

impl Elicitation {
    /// The user's answer.
    pub fn accept(&self, content: Value) -> ElicitationAnswer {
        ElicitationAnswer { content: Some(content), ..self.answer(ElicitationAction::Accept) }
    }

    /// The user does not want to say.
    pub fn decline(&self) -> ElicitationAnswer {
        self.answer(ElicitationAction::Decline)
    }

    /// The user wants the whole thing to stop.
    pub fn cancel(&self) -> ElicitationAnswer {
        self.answer(ElicitationAction::Cancel)
    }

    fn answer(&self, action: ElicitationAction) -> ElicitationAnswer {
        ElicitationAnswer { action, content: None, key: Some(self.key.clone()) }
    }
}

/// What a server asks.
pub(super) struct Asked {
    pub(super) message: String,
    pub(super) schema: Option<Value>,
    pub(super) url: Option<String>,
}

impl Asked {
    pub(super) fn new(params: ElicitRequestParams) -> Option<Self> {
        match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).ok()?;
                Some(Self { message, schema: Some(schema), url: None })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                Some(Self { message, schema: None, url: Some(url) })
            }
            _ => None,
        }
    }

    /// A question whose schema is none that the protocol knows.
    pub(super) fn from_json(params: Option<Value>) -> Option<Self> {
        let mut params = params?;
        let message = params["message"].as_str()?.to_owned();
        Some(Self { message, schema: Some(params["requestedSchema"].take()), url: None })
    }

    /// As the question of a call. What makes its key must be the same whenever the call is made again: the call itself
    /// only if the server always names it.
    pub(super) fn at(self, server: &str, whose: Whose, call: &ToolCall, tool: &str) -> Elicitation {
        let schema = self.schema.as_ref().map(Value::to_string).unwrap_or_default();
        let named = if whose == Whose::Named { &call.id } else { "" };
        let parts = [server, named, &self.message, &schema, self.url.as_deref().unwrap_or_default()];
        let hash = xxhash_rust::xxh3::xxh3_128(parts.join("\0").as_bytes());
        Elicitation {
            key: format!("{hash:032x}"),
            server: server.to_owned(),
            tool: (whose != Whose::OneOfTask).then(|| tool.to_owned()),
            message: self.message,
            schema: self.schema,
            url: self.url,
        }
    }
}

impl From<ElicitationAnswer> for ElicitResult {
    fn from(answer: ElicitationAnswer) -> Self {
        let result = ElicitResult::new(match answer.action {
            ElicitationAction::Accept => rmcp::model::ElicitationAction::Accept,
            ElicitationAction::Decline => rmcp::model::ElicitationAction::Decline,
            ElicitationAction::Cancel => rmcp::model::ElicitationAction::Cancel,
        });
        answer.content.into_iter().fold(result, ElicitResult::with_content)
    }
}
