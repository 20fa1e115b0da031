//! A human's word before tools are called.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::answer_instead;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use superstep::{Block, BoxError, Context, Conversation, Message, Role, ToolCall};

use super::waiting::{settled, settled_last, waiting};
use super::{AskModel, Hooks, Middleware, ModelAsk, Turn};
use crate::model::ModelError;
use crate::tool::open_calls;

const NAME: &str = "approval";

/// Asks a human before chosen tools are called.
///
/// All calls of one message are asked about in one question, an [`ApprovalRequest`]; the answer is an
/// [`ApprovalAnswer`] with a decision for each, in order. An answer that does not fit is refused, and the question stays
/// open. Tools that were not chosen are called without asking, once the question is answered.
///
/// ```
/// use superstep::{MemorySaver, Message, Resume, ToolCall};
/// use superstep_agent::middleware::{Approval, ApprovalAnswer, Decision, Decisions};
/// use superstep_agent::{create_react_agent, tool, ScriptedModel};
///
/// /// Sends a mail.
/// #[tool]
/// fn send_mail(to: String) -> String { format!("sent to {to}") }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let call = ToolCall::new("c1", "send_mail", serde_json::json!({ "to": "all@example.org" }));
/// let model = ScriptedModel::new([Message::calls("", [call]), Message::assistant("Done.")]);
/// let agent = create_react_agent(model, [send_mail])
///     .middleware(Approval::new().tool("send_mail", Decisions::all()))
///     .checkpointer(MemorySaver::new())
///     .compile()?;
/// let asked = agent.invoke("Tell everybody.").thread("t").await?;
/// assert_eq!(asked.interrupts[0].value["action_requests"][0]["name"], "send_mail");
/// let edited = Decision::edit("send_mail", serde_json::json!({ "to": "ann@example.org" }));
/// let out = agent.invoke(Resume::value(ApprovalAnswer::new([edited]))).thread("t").await?;
/// assert_eq!(out.state.messages[2].text(), "sent to ann@example.org");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Approval {
    tools: BTreeMap<String, Decisions>,
    describe: Arc<dyn Fn(&ToolCall) -> String + Send + Sync>,
}

crate::debug::debug_parts!([] Approval, "Approval", this => { tools: this.tools });

impl Approval {
    /// Asks about no tool yet.
    pub fn new() -> Self {
        Self { tools: BTreeMap::new(), describe: Arc::new(described) }
    }

    /// Asks before this tool is called, and lets the human decide among these.
    pub fn tool(mut self, name: impl Into<String>, decisions: Decisions) -> Self {
        self.tools.insert(name.into(), decisions);
        self
    }

    /// With other words about a call.
    ///
    /// ```
    /// use superstep_agent::middleware::{Approval, Decisions};
    /// let approval = Approval::new()
    ///     .tool("send_mail", Decisions::all())
    ///     .describe(|call| format!("May I write to {}?", call.args["to"]));
    /// # let _ = approval;
    /// ```
    pub fn describe(mut self, describe: impl Fn(&ToolCall) -> String + Send + Sync + 'static) -> Self {
        self.describe = Arc::new(describe);
        self
    }

    /// The calls that wait for a word, each with the decisions that are allowed.
    fn waiting(&self, messages: &[Message]) -> Vec<(ToolCall, &Decisions)> {
        let open = open_calls(messages).unwrap_or_default();
        open.into_iter().filter_map(|call| self.tools.get(&call.name).map(|allowed| (call, allowed))).collect()
    }

    fn request(&self, waiting: &[(ToolCall, &Decisions)]) -> ApprovalRequest {
        let action = |call: &ToolCall| ActionRequest {
            name: call.name.clone(),
            args: call.args.clone(),
            description: (self.describe)(call),
        };
        let review = |call: &ToolCall, allowed: &Decisions| ReviewConfig {
            action_name: call.name.clone(),
            allowed_decisions: allowed.clone(),
        };
        ApprovalRequest {
            action_requests: waiting.iter().map(|(call, _)| action(call)).collect(),
            review_configs: waiting.iter().map(|(call, allowed)| review(call, allowed)).collect(),
        }
    }
}

impl Default for Approval {
    fn default() -> Self {
        Self::new()
    }
}

fn described(call: &ToolCall) -> String {
    format!("The tool `{}` is about to be called with {}", call.name, call.args)
}

#[async_trait]
impl<S: Conversation> Middleware<S> for Approval {
    fn name(&self) -> &str {
        NAME
    }

    fn hooks(&self) -> Hooks {
        Hooks { after_model: true, ..Hooks::default() }
    }

    async fn around_model(&self, ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<Message, ModelError> {
        let answer = next.ask(ask).await?;
        let asked_about = answer.tool_calls().filter(|call| self.tools.contains_key(&call.name));
        let ids: Vec<String> = asked_about.map(|call| call.id.clone()).collect();
        Ok(if ids.is_empty() { answer } else { waiting(answer, &ids) })
    }

    async fn after_model(&self, state: Arc<S>, cx: Context) -> Result<Turn<S>, BoxError> {
        let messages = state.conversation();
        let waiting = self.waiting(messages);
        if waiting.is_empty() {
            return Ok(Turn::say(settled_last(messages)));
        }
        let fits = |answer: &Value| ApprovalAnswer::read(answer)?.fits(&waiting);
        let answer = ApprovalAnswer::read(&cx.interrupt_checked(self.request(&waiting), fits)?)?;
        Ok(Turn::say(carried_out(messages, waiting, answer.decisions)))
    }
}

/// What the conversation is told of the decisions: the model's message with other calls, and answers in place of tools.
fn carried_out(messages: &[Message], waiting: Vec<(ToolCall, &Decisions)>, decisions: Vec<Decision>) -> Vec<Message> {
    let mut edits: BTreeMap<String, Action> = BTreeMap::new();
    let mut answers = Vec::new();
    for ((call, _), decision) in waiting.into_iter().zip(decisions) {
        match decision {
            Decision::Approve => {}
            Decision::Edit { edited_action } => drop(edits.insert(call.id, edited_action)),
            Decision::Reject { message } => {
                let words = message.unwrap_or_else(|| format!("A human rejected this call of `{}`.", call.name));
                answers.push(answer_instead(&call, words, true, NAME));
            }
            Decision::Respond { message } => answers.push(answer_instead(&call, message, false, NAME)),
        }
    }
    let asking = messages.iter().rfind(|message| message.role() == Some(Role::Assistant));
    let decided = asking.map(|message| settled(with_edits(message.clone(), &edits)));
    decided.filter(|decided| Some(decided) != asking).into_iter().chain(answers).collect()
}

fn with_edits(message: Message, edits: &BTreeMap<String, Action>) -> Message {
    if edits.is_empty() {
        return message;
    }
    message.with_rich(|rich| {
        for block in &mut rich.blocks {
            if let Block::ToolCall(call) = block
                && let Some(action) = edits.get(&call.id)
            {
                (call.name, call.args) = (action.name.clone(), action.args.clone());
            }
        }
    })
}

/// What a human is asked: the calls, and how each may be decided.
///
/// ```
/// use superstep_agent::middleware::ApprovalRequest;
/// # fn main() -> Result<(), serde_json::Error> {
/// let question = superstep::Interrupt::new("0", serde_json::json!({
///     "action_requests": [{ "name": "pay", "args": { "sum": 3 }, "description": "pay 3?" }],
///     "review_configs": [{ "action_name": "pay", "allowed_decisions": ["approve", "reject"] }],
/// }));
/// let request: ApprovalRequest = question.value_as()?;
/// assert_eq!(request.action_requests[0].args["sum"], 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The calls, in the order in which the decisions must be.
    pub action_requests: Vec<ActionRequest>,
    /// How each may be decided.
    pub review_configs: Vec<ReviewConfig>,
}

/// A call that waits for a human's word.
///
/// ```
/// # use superstep_agent::middleware::ActionRequest;
/// fn show(action: &ActionRequest) { println!("{}", action.description); }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ActionRequest {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Value,
    /// The call in words.
    #[serde(default)]
    pub description: String,
}

/// How a call may be decided.
///
/// ```
/// # use superstep_agent::middleware::{DecisionKind, ReviewConfig};
/// fn may_edit(config: &ReviewConfig) -> bool { config.allowed_decisions.allows(DecisionKind::Edit) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReviewConfig {
    /// The tool.
    pub action_name: String,
    /// What a human may decide.
    pub allowed_decisions: Decisions,
}

/// A human's word: one decision for each call, in their order.
///
/// ```
/// use superstep_agent::middleware::{ApprovalAnswer, Decision};
/// let answer = ApprovalAnswer::new([Decision::approve(), Decision::reject("Ask the boss first.")]);
/// let json = serde_json::json!({ "decisions": [{ "type": "approve" }, { "type": "reject", "message": "Ask the boss first." }] });
/// assert_eq!(serde_json::to_value(answer).unwrap(), json);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    /// The decisions.
    pub decisions: Vec<Decision>,
}

impl ApprovalAnswer {
    /// An answer of these decisions.
    pub fn new(decisions: impl IntoIterator<Item = Decision>) -> Self {
        Self { decisions: decisions.into_iter().collect() }
    }

    fn read(answer: &Value) -> Result<Self, String> {
        let form = r#"answer with a decision for each call, like {"decisions": [{"type": "approve"}]}"#;
        Self::deserialize(answer).map_err(|why| format!("{why}; {form}"))
    }

    /// Why it does not answer what was asked, if so.
    fn fits(&self, waiting: &[(ToolCall, &Decisions)]) -> Result<(), String> {
        let (given, asked) = (self.decisions.len(), waiting.len());
        if given != asked {
            return Err(format!(
                "there are {given} decisions for {asked} tool calls; give one for each, in their order"
            ));
        }
        for (decision, (call, allowed)) in self.decisions.iter().zip(waiting) {
            let kind = decision.kind();
            if !allowed.allows(kind) {
                let (name, allowed) = (&call.name, allowed.in_words());
                return Err(format!("`{}` is not allowed for tool `{name}`; decide among {allowed}", kind.in_words()));
            }
        }
        Ok(())
    }
}

/// What a human decides about one call.
///
/// ```
/// use superstep_agent::middleware::{Decision, DecisionKind};
/// assert_eq!(Decision::respond("It is 42.").kind(), DecisionKind::Respond);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    /// The tool is called.
    Approve,
    /// Something else is called.
    Edit {
        /// What is called.
        edited_action: Action,
    },
    /// The tool is not called, and the model is told so.
    Reject {
        /// What the model is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The tool is not called: the human answers in its place.
    Respond {
        /// The answer.
        message: String,
    },
}

impl Decision {
    /// The tool is called.
    pub fn approve() -> Self {
        Decision::Approve
    }

    /// This tool is called with these arguments instead.
    pub fn edit(name: impl Into<String>, args: Value) -> Self {
        Decision::Edit { edited_action: Action { name: name.into(), args } }
    }

    /// The tool is not called, and the model is told why.
    pub fn reject(message: impl Into<String>) -> Self {
        Decision::Reject { message: Some(message.into()) }
    }

    /// The human answers in the tool's place.
    pub fn respond(message: impl Into<String>) -> Self {
        Decision::Respond { message: message.into() }
    }

    /// Which of the decisions it is.
    pub fn kind(&self) -> DecisionKind {
        match self {
            Decision::Approve => DecisionKind::Approve,
            Decision::Edit { .. } => DecisionKind::Edit,
            Decision::Reject { .. } => DecisionKind::Reject,
            Decision::Respond { .. } => DecisionKind::Respond,
        }
    }
}

/// A tool and its arguments.
///
/// ```
/// use superstep_agent::middleware::Action;
/// let action = Action { name: "pay".into(), args: serde_json::json!({ "sum": 2 }) };
/// # let _ = action;
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Value,
}

/// The decisions that a human may take.
///
/// ```
/// use superstep_agent::middleware::{DecisionKind, Decisions};
/// assert!(Decisions::all().allows(DecisionKind::Edit));
/// assert!(!Decisions::of([DecisionKind::Approve, DecisionKind::Reject]).allows(DecisionKind::Edit));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decisions(Vec<DecisionKind>);

/// A decision without its particulars.
///
/// ```
/// assert_eq!(serde_json::json!(superstep_agent::middleware::DecisionKind::Approve), "approve");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// [`Decision::Approve`]
    Approve,
    /// [`Decision::Edit`]
    Edit,
    /// [`Decision::Reject`]
    Reject,
    /// [`Decision::Respond`]
    Respond,
}

impl DecisionKind {
    fn in_words(self) -> &'static str {
        match self {
            DecisionKind::Approve => "approve",
            DecisionKind::Edit => "edit",
            DecisionKind::Reject => "reject",
            DecisionKind::Respond => "respond",
        }
    }
}

impl Decisions {
    /// All of them.
    pub fn all() -> Self {
        Self::of([DecisionKind::Approve, DecisionKind::Edit, DecisionKind::Reject, DecisionKind::Respond])
    }

    /// These.
    pub fn of(kinds: impl IntoIterator<Item = DecisionKind>) -> Self {
        Self(kinds.into_iter().collect())
    }

    /// Whether it may be taken.
    pub fn allows(&self, kind: DecisionKind) -> bool {
        self.0.contains(&kind)
    }

    fn in_words(&self) -> String {
        let kinds: Vec<String> = self.0.iter().map(|kind| format!("`{}`", kind.in_words())).collect();
        kinds.join(", ")
    }
}
