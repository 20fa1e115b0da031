//! The node that asks the model.

use std::sync::Arc;

use async_trait::async_trait;
use superstep::{BoxError, Context, Conversation, Message, StateNode, Update};

use super::history::repaired;
use super::{ModelSource, Prompt};
use crate::middleware::{AskModel, Middleware, ModelAsk};
use crate::model::{ChatRequest, Settings};
use crate::tool::ToolSpec;

pub(super) struct ModelNode<S: Conversation> {
    pub(super) name: Option<String>,
    pub(super) model: ModelSource<S>,
    pub(super) prompt: Prompt<S>,
    pub(super) settings: Settings,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) own_tools: Arc<[String]>,
    pub(super) around: Arc<[Arc<dyn Middleware<S>>]>,
    /// How many steps, from the model's on, it takes to carry out calls and to answer.
    pub(super) round: usize,
}

impl<S: Conversation> ModelNode<S> {
    fn request(&self, state: &S) -> ChatRequest {
        let mut request = ChatRequest::new(self.prompt.messages(state)).tools(self.tools.iter().cloned());
        request.settings = self.settings.clone();
        request
    }
}

/// Whether the calls could not be carried out and answered in the steps that are left.
fn is_too_late(answer: &Message, round: usize, cx: &Context) -> bool {
    cx.remaining_steps() < round && answer.tool_calls().next().is_some()
}

/// The answer, and the answers to calls that have none: nobody is to find the conversation without them.
fn said(conversation: &[Message], answer: Message) -> Vec<Message> {
    match repaired(conversation) {
        Some(whole) => [Message::remove_all()].into_iter().chain(whole).chain([answer]).collect(),
        None => vec![answer],
    }
}

#[async_trait]
impl<S: Conversation> StateNode<S> for ModelNode<S> {
    type Input = Arc<S>;
    type Output = Update<S>;

    async fn run(&self, state: Arc<S>, cx: Context) -> Result<Update<S>, BoxError> {
        let model = (self.model)(&state, &cx);
        let ask = ModelAsk::new(model, self.request(&state), state.clone(), cx.clone());
        let ask = ask.own_tools(self.own_tools.clone());
        let mut answer = AskModel::new(&self.around, self.name.as_deref()).ask(ask).await?;
        if is_too_late(&answer, self.round, &cx) {
            let id = answer.id.take();
            answer = Message { id, ..Message::assistant("Sorry, need more steps to process this request.") };
        }
        if let Some(name) = &self.name {
            answer = answer.with_name(name);
        }
        Ok(S::say(said(state.conversation(), answer)))
    }
}
