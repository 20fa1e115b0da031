//! Hooks of middleware as nodes.

use std::sync::Arc;

use async_trait::async_trait;
use superstep::{BoxError, Command, Context, Conversation, Goto, Message, Next, Role, StateNode, add_messages};

use super::route::Routes;
use crate::middleware::{Jump, Middleware, Turn, settled_last};

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    BeforeAgent,
    BeforeModel,
    AfterModel,
    /// Before the call of the model for the structured response.
    BeforeResponse,
    AfterAgent,
}

impl When {
    pub(super) fn has<S: Conversation>(self, middleware: &dyn Middleware<S>) -> bool {
        let hooks = middleware.hooks();
        match self {
            When::BeforeAgent => hooks.before_agent,
            When::BeforeModel | When::BeforeResponse => hooks.before_model,
            When::AfterModel => hooks.after_model,
            When::AfterAgent => hooks.after_agent,
        }
    }

    /// The name of the node.
    pub(super) fn node<S: Conversation>(self, middleware: &dyn Middleware<S>) -> String {
        let hook = match self {
            When::BeforeAgent => "before_agent",
            When::BeforeModel => "before_model",
            When::AfterModel => "after_model",
            When::BeforeResponse => "before_response",
            When::AfterAgent => "after_agent",
        };
        format!("{}.{hook}", middleware.name())
    }
}

pub(super) struct HookNode<S: Conversation> {
    pub(super) when: When,
    pub(super) middleware: Arc<dyn Middleware<S>>,
    pub(super) routes: Arc<Routes>,
}

#[async_trait]
impl<S: Conversation> StateNode<S> for HookNode<S> {
    type Input = Arc<S>;
    type Output = (Command<S>, Next);

    async fn run(&self, state: Arc<S>, cx: Context) -> Result<(Command<S>, Next), BoxError> {
        let (hook, given) = (&self.middleware, state.clone());
        let mut turn = match self.when {
            When::BeforeAgent => hook.before_agent(given, cx).await?,
            When::BeforeModel | When::BeforeResponse => hook.before_model(given, cx).await?,
            When::AfterModel => hook.after_model(given, cx).await?,
            When::AfterAgent => hook.after_agent(given, cx).await?,
        };
        turn.messages = self.signed(turn.messages, state.conversation());
        if turn.jump == Some(Jump::Tools) {
            turn.messages.extend(settled_last(&merged(&*state, &turn)?));
        }
        let (goto, next) = self.way(&state, &turn)?;
        let command = Command::new().update(turn.update).goto_all(goto);
        let command = if turn.messages.is_empty() { command } else { command.update(S::say(turn.messages)) };
        Ok((command, next))
    }
}

impl<S: Conversation> HookNode<S> {
    /// What a hook lets the model say carries the agent's name; what others said before stays as it is.
    fn signed(&self, messages: Vec<Message>, before: &[Message]) -> Vec<Message> {
        let Some(name) = &self.routes.agent else { return messages };
        let is_new = |message: &Message| message.id.is_none() || before.iter().all(|known| known.id != message.id);
        let lacks_name = |message: &Message| message.role() == Some(Role::Assistant) && message.name().is_none();
        let sign = |message: Message| {
            if lacks_name(&message) && is_new(&message) { message.with_name(name) } else { message }
        };
        messages.into_iter().map(sign).collect()
    }

    /// Where it jumps, instead of going along its edge; or along the edge.
    fn way(&self, state: &S, turn: &Turn<S>) -> Result<(Vec<Goto>, Next), BoxError> {
        Ok(match turn.jump {
            // The way to the end leads through the hooks after the agent, and goes on there.
            Some(Jump::End) if self.when == When::AfterAgent => (Vec::new(), Next::Continue),
            Some(to) => (self.routes.jump(to, &merged(state, turn)?), Next::End),
            None => (Vec::new(), Next::Continue),
        })
    }
}

/// The conversation with what the hook said.
fn merged<S: Conversation>(state: &S, turn: &Turn<S>) -> Result<Vec<Message>, BoxError> {
    let written = turn.update.puts().iter().flat_map(|put| S::messages(&put.write));
    let said = written.chain(turn.messages.iter().cloned()).collect();
    Ok(add_messages(state.conversation().to_vec(), said)?)
}
