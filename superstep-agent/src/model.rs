//! Chat models: what they are asked, how they answer, and how their words reach the streams of a graph.

mod error;
mod form;
mod record;
mod request;
mod scripted;

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_core::Stream;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::{Message, MessageAssembler, MessageChunk, MessageKind, current};

pub use error::{ModelError, ModelErrorKind};
pub(crate) use form::InForm;
pub use record::{RecordingModel, ReplayModel};
pub use request::{ChatRequest, OutputSchema, Settings, ToolChoice};
pub use scripted::{Reply, ScriptedModel};

/// The pieces of an answer as they come; an error is the last thing that it gives.
pub type ChunkStream = Pin<Box<dyn Stream<Item = Result<MessageChunk, ModelError>> + Send>>;

/// A model that answers conversations.
///
/// Providers implement these two ways to ask; programs use [`ChatModelExt::ask`], which picks the right one.
/// Both must come to the same message.
///
/// ```
/// use superstep_agent::{ChatModel, ChatModelExt, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep_agent::ModelError> {
/// let model: std::sync::Arc<dyn ChatModel> = std::sync::Arc::new(ScriptedModel::new(["Paris"]));
/// let answer = model.ask("What is the capital of France?").await?;
/// assert_eq!(answer.text(), "Paris");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ChatModel: Send + Sync + 'static {
    /// The model's name, for logs and errors.
    fn name(&self) -> &str;

    /// The answer at once.
    async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError>;

    /// The answer in pieces. All pieces carry the id of the message.
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream, ModelError>;
}

macro_rules! behind {
    ($($pointer:ident),*) => {$(
        #[async_trait]
        impl<M: ChatModel + ?Sized> ChatModel for $pointer<M> {
            fn name(&self) -> &str {
                (**self).name()
            }
            async fn generate(&self, request: ChatRequest) -> Result<Message, ModelError> {
                (**self).generate(request).await
            }
            async fn stream(&self, request: ChatRequest) -> Result<ChunkStream, ModelError> {
                (**self).stream(request).await
            }
        }
    )*};
}

behind!(Arc, Box);

/// How programs ask a [`ChatModel`].
///
/// ```
/// use superstep::Message;
/// use superstep_agent::{ChatModelExt, ChatRequest, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep_agent::ModelError> {
/// let model = ScriptedModel::new(["Blue."]);
/// let request = ChatRequest::new([Message::system("Be brief."), Message::user("Which colour has the sky?")]);
/// assert_eq!(model.ask(request.temperature(0.0)).await?.text(), "Blue.");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ChatModelExt: ChatModel {
    /// The model's answer, with an id that no message of the request has.
    ///
    /// Inside a node of a run that is streamed in `messages` mode, its words are seen there as they come.
    async fn ask(&self, request: impl Into<ChatRequest> + Send) -> Result<Message, ModelError> {
        let request = request.into();
        let known: HashSet<String> = request.messages.iter().filter_map(|message| message.id.clone()).collect();
        ask_beside(self, request, &|id| known.contains(id)).await
    }

    /// The model's answer as a value. An answer that does not fit is given back to the model with the reason, twice at
    /// most.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use superstep_agent::{ChatModelExt, ScriptedModel};
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct Weather { celsius: f64 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), superstep_agent::ModelError> {
    /// let model = ScriptedModel::new([r#"{"degrees": 21}"#, r#"{"celsius": 21}"#]);
    /// let weather: Weather = model.ask_for("How warm is it?").await?;
    /// assert_eq!(weather.celsius, 21.0);
    /// # Ok(())
    /// # }
    /// ```
    async fn ask_for<T: DeserializeOwned + JsonSchema>(
        &self,
        request: impl Into<ChatRequest> + Send,
    ) -> Result<T, ModelError> {
        let mut form = InForm::of::<T>(request.into());
        loop {
            let answer = self.ask(form.request()).await?;
            if let Some(value) = form.read(answer, self.name())? {
                return Ok(value);
            }
        }
    }
}

impl<M: ChatModel + ?Sized> ChatModelExt for M {}

/// The model's answer, with an id that is not taken: some servers give the same one again, and the new message would
/// replace the old.
pub(crate) async fn ask_beside<M: ChatModel + ?Sized>(
    model: &M,
    request: ChatRequest,
    is_taken: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Message, ModelError> {
    let mut ids = OwnIds { is_taken, given: Vec::new() };
    if current::wants_messages() {
        return said_aloud(model, request, ids).await;
    }
    let answer = model.generate(request).await?;
    let id = answer.id.clone().map_or_else(Message::new_id, |id| ids.of(id));
    Ok(answer.with_id(id))
}

/// The ids of an answer, and by which they are known here.
struct OwnIds<'a> {
    is_taken: &'a (dyn Fn(&str) -> bool + Sync),
    given: Vec<(String, String)>,
}

impl OwnIds<'_> {
    fn of(&mut self, id: String) -> String {
        if let Some((_, own)) = self.given.iter().find(|(given, _)| *given == id) {
            return own.clone();
        }
        let own = if (self.is_taken)(&id) { Message::new_id() } else { id.clone() };
        self.given.push((id, own.clone()));
        own
    }
}

/// Asks for pieces and passes each on as it comes.
async fn said_aloud<M: ChatModel + ?Sized>(
    model: &M,
    request: ChatRequest,
    mut ids: OwnIds<'_>,
) -> Result<Message, ModelError> {
    let mut pieces = model.stream(request).await?;
    let mut whole = MessageAssembler::new();
    while let Some(piece) = next(&mut pieces).await {
        let mut piece = piece?;
        piece.id = ids.of(piece.id);
        current::emit_chunk(piece.clone()).await;
        whole.push(piece);
    }
    if whole.is_empty() {
        return Err(ModelError::new(
            ModelErrorKind::BrokenStream,
            model.name(),
            "its stream ended before it said anything",
        ));
    }
    Ok(whole.finish())
}

async fn next(pieces: &mut ChunkStream) -> Option<Result<MessageChunk, ModelError>> {
    std::future::poll_fn(|cx| pieces.as_mut().poll_next(cx)).await
}

/// Whether the provider broke off a long turn of the model, which goes on when it is asked again.
pub(crate) fn is_paused(message: &Message) -> bool {
    let MessageKind::Rich(rich) = &message.kind else { return false };
    rich.response.get("finish_reason").is_some_and(|reason| reason == "pause_turn")
}
