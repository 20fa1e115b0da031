//! Pieces of a message as a model says it, and the message that they make.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Block, JsonMap, Message, RichMessage, Role, ToolCall, Usage};

/// A piece of a message that is being said.
///
/// All pieces of a message carry its id, under which it is kept when it is whole.
///
/// ```
/// use superstep::{MessageAssembler, MessageChunk};
///
/// let mut whole = MessageAssembler::new();
/// whole.push(MessageChunk::text("m1", "Hel"));
/// whole.push(MessageChunk::text("m1", "lo"));
/// let message = whole.finish();
/// assert_eq!((message.id.as_deref(), &*message.text()), (Some("m1"), "Hello"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageChunk {
    /// The id of the message.
    pub id: String,
    /// The name of who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deltas: Vec<Delta>,
    /// What the model took so far; replaces what was told before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the provider tells about its answer.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub response: JsonMap,
    /// What the provider wants back with the message.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub extra: JsonMap,
}

/// What a piece adds to one block of the message.
///
/// ```
/// let delta = superstep::Delta::text(0, "Hel");
/// assert_eq!(delta.block, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Delta {
    /// The place of the block among the blocks of the message; places may be left out.
    pub block: u32,
    /// What is added.
    #[serde(flatten)]
    pub part: DeltaPart,
}

/// What can be added to a block.
///
/// ```
/// use superstep::DeltaPart;
/// assert!(matches!(DeltaPart::Text { text: "Hel".into() }, DeltaPart::Text { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeltaPart {
    /// More words.
    Text {
        /// The words.
        text: String,
    },
    /// More thoughts.
    Reasoning {
        /// The thoughts.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// The proof of their origin; pieces of it are joined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// More of a tool call.
    ToolCall {
        /// The id of the call, in its first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The tool, in the first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// More of the arguments' JSON text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        args: String,
    },
    /// What the provider wants back with the block.
    Extra {
        /// The fields; they replace those of the same name.
        extra: JsonMap,
    },
    /// A whole block at once.
    Block {
        /// The block.
        value: Block,
    },
}

impl Delta {
    /// What is added to a block.
    pub fn new(block: u32, part: DeltaPart) -> Self {
        Self { block, part }
    }

    /// More words of a block.
    pub fn text(block: u32, text: impl Into<String>) -> Self {
        Self::new(block, DeltaPart::Text { text: text.into() })
    }
}

impl MessageChunk {
    /// A piece that says nothing yet.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: None,
            deltas: Vec::new(),
            usage: None,
            response: JsonMap::new(),
            extra: JsonMap::new(),
        }
    }

    /// A piece of words.
    pub fn text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id).with(Delta::text(0, text))
    }

    /// The same piece with more in it.
    pub fn with(mut self, delta: Delta) -> Self {
        self.deltas.push(delta);
        self
    }

    /// The words in it.
    pub fn words(&self) -> String {
        let words = self.deltas.iter().filter_map(|delta| match &delta.part {
            DeltaPart::Text { text } => Some(text.as_str()),
            DeltaPart::Block { value } => value.as_text(),
            _ => None,
        });
        words.collect()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        *self == Self { name: self.name.clone(), ..Self::new(&*self.id) }
    }
}

/// Puts the pieces of one message together.
///
/// ```
/// use superstep::{Delta, DeltaPart, MessageAssembler, MessageChunk};
///
/// let mut whole = MessageAssembler::new();
/// let call = |args: &str| DeltaPart::ToolCall { id: Some("c1".into()), name: Some("add".into()), args: args.into() };
/// whole.push(MessageChunk::new("m1").with(Delta::new(1, call(r#"{"a":"#))));
/// whole.push(MessageChunk::new("m1").with(Delta::new(1, DeltaPart::ToolCall { id: None, name: None, args: "1}".into() })));
/// let message = whole.finish();
/// assert_eq!(message.tool_calls().next().unwrap().args["a"], 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct MessageAssembler {
    id: Option<String>,
    name: Option<String>,
    blocks: BTreeMap<u32, Growing>,
    usage: Option<Usage>,
    response: JsonMap,
    extra: JsonMap,
}

/// A block of which there may be more.
#[derive(Debug, Clone)]
struct Growing {
    part: DeltaPart,
    extra: JsonMap,
}

impl MessageAssembler {
    /// One without pieces.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no piece came yet.
    pub fn is_empty(&self) -> bool {
        self.id.is_none()
    }

    /// Adds the next piece.
    pub fn push(&mut self, chunk: MessageChunk) {
        self.id.get_or_insert(chunk.id);
        self.name = chunk.name.or(self.name.take());
        self.usage = chunk.usage.or(self.usage.take());
        self.response.extend(chunk.response);
        self.extra.extend(chunk.extra);
        for delta in chunk.deltas {
            match self.blocks.get_mut(&delta.block) {
                Some(block) => block.grow(delta.part),
                None => drop(self.blocks.insert(delta.block, Growing::new(delta.part))),
            }
        }
    }

    /// The message that the pieces make. Blocks that stayed empty are left out; arguments of a call that are no JSON
    /// stay the text that they are.
    pub fn finish(self) -> Message {
        let blocks = self.blocks.into_values().filter_map(Growing::finish).collect();
        let rich = RichMessage {
            name: self.name,
            usage: self.usage,
            response: self.response,
            extra: self.extra,
            ..RichMessage::new(Role::Assistant, blocks)
        };
        Message { id: self.id, ..rich.into() }
    }
}

impl Growing {
    fn new(part: DeltaPart) -> Self {
        match part {
            // What it belongs to comes later.
            DeltaPart::Extra { extra } => Self { part: DeltaPart::Text { text: String::new() }, extra },
            part => Self { part, extra: JsonMap::new() },
        }
    }

    fn grow(&mut self, more: DeltaPart) {
        match (&mut self.part, more) {
            (_, DeltaPart::Extra { extra }) => self.extra.extend(extra),
            (DeltaPart::Text { text }, DeltaPart::Text { text: more }) => text.push_str(&more),
            (
                DeltaPart::Reasoning { text, signature },
                DeltaPart::Reasoning { text: more, signature: more_signature },
            ) => {
                text.push_str(&more);
                if let Some(more) = more_signature {
                    signature.get_or_insert_default().push_str(&more);
                }
            }
            (
                DeltaPart::ToolCall { id, name, args },
                DeltaPart::ToolCall { id: more_id, name: more_name, args: more_args },
            ) => {
                *id = id.take().or(more_id);
                *name = name.take().or(more_name);
                args.push_str(&more_args);
            }
            // A block that only had something to give back, or one that is replaced as a whole.
            (part, more) => *part = more,
        }
    }

    fn finish(self) -> Option<Block> {
        let mut extra = self.extra;
        Some(match self.part {
            DeltaPart::Text { text } if text.is_empty() && extra.is_empty() => return None,
            DeltaPart::Text { text } => Block::Text { text, extra },
            DeltaPart::Reasoning { text, signature } => {
                if text.is_empty() && signature.is_none() && extra.is_empty() {
                    return None;
                }
                Block::Reasoning { text, signature, extra }
            }
            DeltaPart::ToolCall { id, name, args } => {
                let mut call = ToolCall::new(id.unwrap_or_default(), name.unwrap_or_default(), arguments(args));
                call.extra.append(&mut extra);
                Block::ToolCall(call)
            }
            DeltaPart::Block { value } => value,
            DeltaPart::Extra { .. } => return None,
        })
    }
}

/// The arguments that a model wrote; nothing stands for none.
fn arguments(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(JsonMap::new());
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
