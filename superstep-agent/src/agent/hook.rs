//! Hooks of middleware as nodes.

use std::sync::Arc;

use async_trait::async_trait;
use superstep::{BoxError, Command, Context, Conversation, Goto, Message, StateNode, add_messages};

use super::route::Routes;
use crate::middleware::{Middleware, Turn};

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    BeforeAgent,
    BeforeModel,
    AfterModel,
    AfterAgent,
}

impl When {
    pub(super) fn has<S: Conversation>(self, middleware: &dyn Middleware<S>) -> bool {
        let hooks = middleware.hooks();
        match self {
            When::BeforeAgent => hooks.before_agent,
            When::BeforeModel => hooks.before_model,
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
            When::AfterAgent => "after_agent",
        };
        format!("{}.{hook}", middleware.name())
    }
}

pub(super) struct HookNode<S: Conversation> {
    pub(super) when: When,
    pub(super) middleware: Arc<dyn Middleware<S>>,
    /// The node after it; nothing if the way after the model parts here.
    pub(super) next: Option<String>,
    pub(super) routes: Arc<Routes>,
}

#[async_trait]
impl<S: Conversation> StateNode<S> for HookNode<S> {
    type Input = Arc<S>;
    type Output = Command<S>;

    async fn run(&self, state: Arc<S>, cx: Context) -> Result<Command<S>, BoxError> {
        let (hook, given) = (&self.middleware, state.clone());
        let turn = match self.when {
            When::BeforeAgent => hook.before_agent(given, cx).await?,
            When::BeforeModel => hook.before_model(given, cx).await?,
            When::AfterModel => hook.after_model(given, cx).await?,
            When::AfterAgent => hook.after_agent(given, cx).await?,
        };
        let goto = self.goto(&state, &turn)?;
        Ok(Command::new().update(turn.update).goto_all(goto))
    }
}

impl<S: Conversation> HookNode<S> {
    fn goto(&self, state: &S, turn: &Turn<S>) -> Result<Vec<Goto>, BoxError> {
        Ok(match (turn.jump, &self.next) {
            (Some(to), _) => self.routes.jump(to, &merged(state, turn)?),
            (None, Some(next)) => vec![Goto::from(next.clone())],
            (None, None) => self.routes.after_model(&merged(state, turn)?),
        })
    }
}

/// The conversation with what the hook said.
fn merged<S: Conversation>(state: &S, turn: &Turn<S>) -> Result<Vec<Message>, BoxError> {
    let said: Vec<Message> = turn.update.puts().iter().flat_map(|put| S::messages(&put.write)).collect();
    Ok(add_messages(state.conversation().to_vec(), said)?)
}
