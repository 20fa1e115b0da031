//! The last call of the model: the answer in the form that was asked for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::{BoxError, Command, Context, Conversation, Field, Goto, StateNode, Update};

use super::ModelSource;
use super::history::with_all_answers;
use crate::model::{ChatModel, ChatModelExt, ChatRequest};

type Asked<S> = Pin<Box<dyn Future<Output = Result<Update<S>, BoxError>> + Send>>;

/// How the answer is asked for and where it goes.
pub(super) struct Structured<S: Conversation>(Arc<dyn Fn(Arc<dyn ChatModel>, ChatRequest) -> Asked<S> + Send + Sync>);

impl<S: Conversation> Structured<S> {
    pub(super) fn into_field<T, F>(field: Field<S, Option<F>>, convert: fn(T) -> Result<F, BoxError>) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Send + 'static,
    {
        Self(Arc::new(move |model, request| {
            Box::pin(async move {
                let value = model.ask_for::<T>(request).await?;
                Ok(Update::new().set(field, Some(convert(value)?)))
            })
        }))
    }
}

pub(super) struct StructuredNode<S: Conversation> {
    pub(super) model: ModelSource<S>,
    pub(super) structured: Structured<S>,
    pub(super) next: String,
}

#[async_trait]
impl<S: Conversation> StateNode<S> for StructuredNode<S> {
    type Input = Arc<S>;
    type Output = Command<S>;

    async fn run(&self, state: Arc<S>, cx: Context) -> Result<Command<S>, BoxError> {
        let model = (self.model)(&state, &cx);
        let request = ChatRequest::new(with_all_answers(state.conversation()));
        let update = (self.structured.0)(model, request).await?;
        Ok(Command::new().update(update).goto(Goto::from(self.next.clone())))
    }
}
