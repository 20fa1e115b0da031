//! What servers send, as parts of messages, and the other way round.

use rmcp::model::{CallToolResult, ContentBlock, PromptMessage, Resource, ResourceContents};
use superstep::{Block, Media, MediaSource, Message, RichMessage, Role};

use crate::tool::ToolOutput;

/// The result of a tool. Data is kept beside the words; the model reads it only if there are no words.
pub(super) fn output(result: CallToolResult) -> ToolOutput {
    let mut blocks: Vec<Block> = result.content.into_iter().map(block).collect();
    if let (true, Some(data)) = (blocks.is_empty(), &result.structured_content) {
        blocks.push(Block::text(data.to_string()));
    }
    let output = ToolOutput::blocks(blocks).of_error(result.is_error == Some(true));
    result.structured_content.into_iter().fold(output, ToolOutput::artifact)
}

/// A message of a prompt.
pub(super) fn message(said: PromptMessage) -> Message {
    let role = match said.role {
        rmcp::model::Role::Assistant => Role::Assistant,
        rmcp::model::Role::User => Role::User,
    };
    RichMessage::new(role, vec![block(said.content)]).into()
}

pub(super) fn block(content: ContentBlock) -> Block {
    match content {
        ContentBlock::Text(text) => Block::text(text.text),
        ContentBlock::Image(image) => Block::Image(Media::base64(image.mime_type, image.data)),
        ContentBlock::Audio(audio) => Block::Audio(Media::base64(audio.mime_type, audio.data)),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => Block::text(told(&link)),
        unknown => {
            Block::Opaque { provider: "mcp".to_owned(), value: serde_json::to_value(unknown).unwrap_or_default() }
        }
    }
}

/// What a resource holds: text as words, everything else as what it is.
pub(super) fn resource(contents: ResourceContents) -> Block {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => Block::text(text),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            let mut media = Media::base64(mime.clone(), blob);
            media.name = Some(uri);
            match mime.split('/').next() {
                Some("image") => Block::Image(media),
                Some("audio") => Block::Audio(media),
                _ => Block::File(media),
            }
        }
        unknown => {
            Block::Opaque { provider: "mcp".to_owned(), value: serde_json::to_value(unknown).unwrap_or_default() }
        }
    }
}

/// A link in words: its address means something to its server only.
fn told(link: &Resource) -> String {
    match &link.description {
        Some(description) => format!("{} ({}): {description}", link.name, link.uri),
        None => format!("{} ({})", link.name, link.uri),
    }
}

/// A part of a message for a client; parts that MCP has no word for are left out.
pub(super) fn content(block: &Block) -> Option<ContentBlock> {
    let inline = |media: &Media| match (&media.source, &media.mime) {
        (MediaSource::Base64(data), Some(mime)) => Some((data.clone(), mime.clone())),
        _ => None,
    };
    match block {
        Block::Text { text, .. } => Some(ContentBlock::text(text.clone())),
        Block::Image(media) => inline(media).map(|(data, mime)| ContentBlock::image(data, mime)),
        Block::Audio(media) => inline(media).map(|(data, mime)| ContentBlock::audio(data, mime)),
        _ => None,
    }
}
