//! Answers that come as the arguments of a tool, for models that cannot be held to a form otherwise.

use std::collections::BTreeMap;

use serde_json::Value;
use superstep::{Block, Delta, DeltaPart, MessageChunk};

use super::http::{Decode, Fault};
use super::sse::Event;

/// Lets the arguments of one tool be the text of the answer. The text comes as a whole, when the answer ends.
pub(crate) struct AnswerTool<D> {
    decoder: D,
    tool: Option<String>,
    held: BTreeMap<u32, String>,
}

impl<D: Decode> AnswerTool<D> {
    pub(crate) fn new(decoder: D, tool: Option<String>) -> Self {
        Self { decoder, tool, held: BTreeMap::new() }
    }

    /// Takes the calls of the tool out of a piece.
    fn hold(&mut self, mut piece: MessageChunk) -> MessageChunk {
        if let Some(tool) = &self.tool {
            piece.deltas.retain(|delta| !holds(tool, &mut self.held, delta));
        }
        piece
    }
}

/// Whether something belongs to a call of the tool, and is kept.
fn holds(tool: &str, held: &mut BTreeMap<u32, String>, delta: &Delta) -> bool {
    let (name, args) = match &delta.part {
        DeltaPart::ToolCall { name, args, .. } => (name.as_deref(), args.clone()),
        DeltaPart::Block { value: Block::ToolCall(call) } => (Some(&*call.name), call.args.to_string()),
        DeltaPart::Extra { .. } => (None, String::new()),
        _ => return false,
    };
    if name == Some(tool) {
        held.entry(delta.block).or_default();
    }
    held.get_mut(&delta.block).map(|text| text.push_str(&args)).is_some()
}

impl<D: Decode> Decode for AnswerTool<D> {
    fn whole(&mut self, answer: Value) -> Result<MessageChunk, Fault> {
        let piece = self.decoder.whole(answer)?;
        Ok(self.hold(piece))
    }

    fn event(&mut self, event: &Event) -> Result<Option<MessageChunk>, Fault> {
        let piece = self.decoder.event(event)?;
        Ok(piece.map(|piece| self.hold(piece)))
    }

    fn has_ended(&self) -> bool {
        self.decoder.has_ended()
    }

    fn finish(&mut self) -> Result<MessageChunk, Fault> {
        let piece = self.decoder.finish()?;
        let mut piece = self.hold(piece);
        for (block, text) in std::mem::take(&mut self.held) {
            // The same text whether the arguments came as JSON or as its text.
            let text = serde_json::from_str::<Value>(&text).map_or(text, |value| value.to_string());
            piece.deltas.push(Delta::new(block, DeltaPart::Block { value: Block::text(text) }));
        }
        Ok(piece)
    }
}
