//! Lets a server ask a model.
#![expect(deprecated, reason = "servers go on to ask models, whatever the protocol wants to become")]

use rmcp::ErrorData;
use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, SamplingMessage, SamplingMessageContentBlock};
use superstep::{Block, Media, Message, RichMessage, Role};

use crate::model::{ChatModel, ChatModelExt, ChatRequest};

pub(super) async fn ask(
    model: &dyn ChatModel,
    params: CreateMessageRequestParams,
) -> Result<CreateMessageResult, ErrorData> {
    let request = request(params)?;
    let answer = model.ask(request).await.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
    let said = SamplingMessage::assistant_text(answer.text());
    Ok(CreateMessageResult::new(said, model.name().to_owned())
        .with_stop_reason(CreateMessageResult::STOP_REASON_END_TURN))
}

fn request(params: CreateMessageRequestParams) -> Result<ChatRequest, ErrorData> {
    if params.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err(ErrorData::invalid_params("the model can be given no tools of yours", None));
    }
    let instructions = params.system_prompt.map(Message::system).map(Ok);
    let messages = instructions.into_iter().chain(params.messages.into_iter().map(message));
    let mut request = ChatRequest::new(messages.collect::<Result<Vec<_>, _>>()?).max_tokens(params.max_tokens);
    request.settings.temperature = params.temperature.map(f64::from);
    request.settings.stop = params.stop_sequences.unwrap_or_default();
    Ok(request)
}

fn message(said: SamplingMessage) -> Result<Message, ErrorData> {
    let role = match said.role {
        rmcp::model::Role::Assistant => Role::Assistant,
        rmcp::model::Role::User => Role::User,
    };
    let blocks = said.content.into_vec().into_iter().map(block).collect::<Result<_, _>>()?;
    Ok(RichMessage::new(role, blocks).into())
}

fn block(content: SamplingMessageContentBlock) -> Result<Block, ErrorData> {
    match content {
        SamplingMessageContentBlock::Text(text) => Ok(Block::text(text.text)),
        SamplingMessageContentBlock::Image(image) => Ok(Block::Image(Media::base64(image.mime_type, image.data))),
        SamplingMessageContentBlock::Audio(audio) => Ok(Block::Audio(Media::base64(audio.mime_type, audio.data))),
        _ => Err(ErrorData::invalid_params("the model can be asked with text, images and audio only", None)),
    }
}
