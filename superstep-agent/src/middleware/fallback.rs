//! Other models for when one fails.

use std::sync::Arc;

use async_trait::async_trait;
use superstep::{Conversation, Message};

use super::{AskModel, Middleware, ModelAsk};
use crate::model::{ChatModel, ModelError};

/// Asks other models, one after the other, when the agent's own fails.
///
/// What a model said before it failed has been streamed already; the next one's words have an id of their own.
///
/// ```
/// use superstep_agent::middleware::Fallback;
/// use superstep_agent::{create_react_agent, ModelError, ModelErrorKind, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let large = ScriptedModel::new([ModelError::new(ModelErrorKind::Overloaded, "large", "try later")]);
/// let agent = create_react_agent(large, ()).middleware(Fallback::to(ScriptedModel::new(["Hello."]))).compile()?;
/// assert_eq!(agent.invoke("hi").await?.state.messages[1].text(), "Hello.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fallback {
    models: Vec<Arc<dyn ChatModel>>,
    when: Arc<dyn Fn(&ModelError) -> bool + Send + Sync>,
}

crate::debug::debug_parts!([] Fallback, "Fallback", this => { models: this.models.len() });

impl Fallback {
    /// Asks this model when the agent's own fails.
    pub fn to(model: impl ChatModel) -> Self {
        Self { models: vec![Arc::new(model)], when: Arc::new(|_| true) }
    }

    /// And this one, when those before fail too.
    pub fn then(mut self, model: impl ChatModel) -> Self {
        self.models.push(Arc::new(model));
        self
    }

    /// Only for these errors; others end the run.
    ///
    /// ```
    /// use superstep_agent::{middleware::Fallback, ModelError, ScriptedModel};
    /// let fallback = Fallback::to(ScriptedModel::new(["ok"])).when(ModelError::is_retryable);
    /// # let _ = fallback;
    /// ```
    pub fn when(mut self, is_for: impl Fn(&ModelError) -> bool + Send + Sync + 'static) -> Self {
        self.when = Arc::new(is_for);
        self
    }
}

#[async_trait]
impl<S: Conversation> Middleware<S> for Fallback {
    fn name(&self) -> &'static str {
        "fallback"
    }

    async fn around_model(&self, ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<Message, ModelError> {
        let mut answer = next.ask(ask.clone()).await;
        for model in &self.models {
            let Err(error) = &answer else { break };
            if !(self.when)(error) {
                break;
            }
            tracing::info!(%error, instead = model.name(), "the model failed and another is asked");
            answer = next.ask(ModelAsk { model: model.clone(), ..ask.clone() }).await;
        }
        answer
    }
}
