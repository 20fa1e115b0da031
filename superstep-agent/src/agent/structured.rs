//! The last call of the model: the answer in the form that was asked for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::message::Tally;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::{BoxError, Context, Conversation, Field, StateNode, Update};

use super::ModelSource;
use super::history::with_all_answers;
use crate::middleware::{AskModel, Middleware, ModelAsk};
use crate::model::{ChatRequest, InForm, ModelError};

/// The value where it belongs, and what it took.
type Asked<'a, S> = Pin<Box<dyn Future<Output = Result<(Update<S>, Tally), BoxError>> + Send + 'a>>;
type Ask<S> = dyn for<'a> Fn(ModelAsk<S>, AskModel<'a, S>) -> Asked<'a, S> + Send + Sync;

/// How the answer is asked for and where it goes.
pub(super) struct Structured<S: Conversation>(Arc<Ask<S>>);

impl<S: Conversation> Structured<S> {
    pub(super) fn into_field<T, F>(field: Field<S, Option<F>>, convert: fn(T) -> Result<F, BoxError>) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Send + 'static,
    {
        Self(Arc::new(move |ask, next| {
            Box::pin(async move {
                let (value, took) = in_form::<S, T>(ask, next).await?;
                Ok((Update::new().set(field, Some(convert(value)?)), took))
            })
        }))
    }
}

async fn in_form<S: Conversation, T>(mut ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<(T, Tally), ModelError>
where
    T: DeserializeOwned + JsonSchema,
{
    let (mut form, mut took) = (InForm::of::<T>(ask.request), Tally::default());
    loop {
        ask.request = form.request();
        let name = ask.model.name().to_owned();
        let answer = next.ask(ask.clone()).await?;
        took.add(&Tally::of_answer(&answer));
        if let Some(value) = form.read(answer, &name)? {
            return Ok((value, took));
        }
    }
}

pub(super) struct StructuredNode<S: Conversation> {
    pub(super) name: Option<String>,
    pub(super) model: ModelSource<S>,
    pub(super) structured: Structured<S>,
    pub(super) around: Arc<[Arc<dyn Middleware<S>>]>,
}

#[async_trait]
impl<S: Conversation> StateNode<S> for StructuredNode<S> {
    type Input = Arc<S>;
    type Output = Update<S>;

    async fn run(&self, state: Arc<S>, cx: Context) -> Result<Update<S>, BoxError> {
        let model = (self.model)(&state, &cx);
        let request = ChatRequest::new(with_all_answers(state.conversation()));
        let ask = ModelAsk::new(model, request, state.clone(), cx);
        let next = AskModel::new(&self.around, self.name.as_deref());
        let (update, took) = (self.structured.0)(ask, next).await?;
        Ok(update.and(self.noted(&state, &took)))
    }
}

impl<S: Conversation> StructuredNode<S> {
    /// What the calls took, noted beside the last message: their answers are no part of the conversation. Without
    /// middleware nobody would read it.
    fn noted(&self, state: &S, took: &Tally) -> Update<S> {
        match state.conversation().last() {
            Some(last) if !self.around.is_empty() => S::say(vec![took.beside(last.clone())]),
            _ => Update::new(),
        }
    }
}
