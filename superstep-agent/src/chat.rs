//! The simplest agent: a model that answers.

use std::sync::Arc;

use async_trait::async_trait;
use superstep::{Agent, AgentState, BoxError, Message};

use crate::model::{ChatModel, ChatModelExt};

/// Lets a model answer the conversation, without tools. It is a node of any graph over [`AgentState`].
///
/// ```
/// use superstep::{Agent, AgentState, Message, StateGraph, START};
/// use superstep_agent::{ChatAgent, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let agent = ChatAgent::new(ScriptedModel::new(["Hello.", "Hello again."])).system("Be brief.");
/// let state = agent.run(AgentState { messages: vec![Message::user("hi")] }).await?;
/// assert_eq!(state.messages[1].text(), "Hello.");
///
/// let app = StateGraph::<AgentState>::new().add_node("chat", agent).add_edge(START, "chat").compile()?;
/// assert_eq!(app.invoke(state).await?.state.messages[2].text(), "Hello again.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ChatAgent {
    model: Arc<dyn ChatModel>,
    system: Option<Message>,
}

crate::debug::debug_parts!([] ChatAgent, "ChatAgent", this => { system: this.system });

impl ChatAgent {
    /// An agent that passes the conversation to a model.
    pub fn new(model: impl ChatModel) -> Self {
        Self { model: Arc::new(model), system: None }
    }

    /// With instructions, which do not become part of the conversation.
    pub fn system(mut self, words: impl Into<String>) -> Self {
        self.system = Some(Message::system(words));
        self
    }
}

#[async_trait]
impl Agent for ChatAgent {
    type State = AgentState;

    async fn run(&self, mut state: AgentState) -> Result<AgentState, BoxError> {
        let read: Vec<Message> = self.system.iter().chain(&state.messages).cloned().collect();
        state.messages.push(self.model.ask(read).await?);
        Ok(state)
    }
}
