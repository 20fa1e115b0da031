//! The last call of the model: the answer in the form that was asked for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::{BoxError, Command, Context, Conversation, Field, Goto, Message, StateNode, Update};

use super::ModelSource;
use super::history::with_all_answers;
use crate::middleware::{AskModel, Middleware, ModelAsk, Tally};
use crate::model::{ChatRequest, ModelError, value_of};

type Asked<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;
/// Asks the model, through all that is around it.
type Ask<'a> = &'a (dyn Fn(ChatRequest) -> Asked<'a, Message, ModelError> + Send + Sync);
type AskAs<S> = dyn for<'a> Fn(&'a str, ChatRequest, Ask<'a>) -> Asked<'a, Update<S>, BoxError> + Send + Sync;

/// In which form the answer is asked for, and where it goes.
pub(super) struct Structured<S: Conversation>(Arc<AskAs<S>>);

impl<S: Conversation> Structured<S> {
    pub(super) fn into_field<T, F>(field: Field<S, Option<F>>, convert: fn(T) -> Result<F, BoxError>) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Send + 'static,
    {
        Self(Arc::new(move |model, request, ask| {
            Box::pin(async move {
                let value = value_of::<T, _>(model, request, ask).await?;
                Ok(Update::new().set(field, Some(convert(value)?)))
            })
        }))
    }
}

pub(super) struct StructuredNode<S: Conversation> {
    pub(super) name: Option<String>,
    pub(super) model: ModelSource<S>,
    pub(super) structured: Structured<S>,
    pub(super) around: Arc<[Arc<dyn Middleware<S>>]>,
    pub(super) next: String,
}

#[async_trait]
impl<S: Conversation> StateNode<S> for StructuredNode<S> {
    type Input = Arc<S>;
    type Output = Command<S>;

    async fn run(&self, state: Arc<S>, cx: Context) -> Result<Command<S>, BoxError> {
        let model = (self.model)(&state, &cx);
        let took = Mutex::new(Tally::default());
        let ask = |request: ChatRequest| -> Asked<'_, Message, ModelError> {
            let ask = ModelAsk::new(model.clone(), request, state.clone(), cx.clone());
            Box::pin(async {
                let answer = AskModel::new(&self.around, self.name.as_deref()).ask(ask).await?;
                took.lock().unwrap_or_else(PoisonError::into_inner).add(&Tally::of_answer(&answer));
                Ok(answer)
            })
        };
        let request = ChatRequest::new(with_all_answers(state.conversation()));
        let update = (self.structured.0)(model.name(), request, &ask).await?;
        let took = took.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Command::new().update(update).update(self.noted(&state, &took)).goto(Goto::from(self.next.clone())))
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
