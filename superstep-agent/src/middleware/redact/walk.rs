//! Through all that has words: messages, results of tools, JSON.

use serde_json::Value;
use superstep::{Block, Conversation, Media, Message, MessageKind, Role};

use super::{Blocked, Redact};
use crate::model::{ModelError, ModelErrorKind};
use crate::tool::ToolOutput;

impl Redact {
    /// A message with other words, if it holds something; nothing if it may stay as it is.
    pub(super) fn message(&self, message: &Message) -> Result<Option<Message>, Blocked> {
        let mut blocks = message.blocks().into_owned();
        Ok(self.blocks(&mut blocks, false)?.then(|| message.clone().with_rich(|rich| rich.blocks = blocks)))
    }

    /// What a model said. What it said in an asked form stays in that form.
    pub(super) fn answer(&self, answer: Message, in_form: bool, model: &str) -> Result<Message, ModelError> {
        let mut blocks = answer.blocks().into_owned();
        match self.blocks(&mut blocks, in_form) {
            Ok(false) => Ok(answer),
            Ok(true) => Ok(answer.with_rich(|rich| rich.blocks = blocks)),
            Err(blocked) => {
                let words = format!("its answer is not given: {blocked}");
                Err(ModelError::new(ModelErrorKind::Refused, model, words).caused_by(blocked))
            }
        }
    }

    /// What a tool gave back: its result, what is kept beside it, and what its command says.
    pub(super) fn output<S: Conversation>(&self, mut output: ToolOutput) -> Result<ToolOutput, Blocked> {
        let (blocks, artifact) = output.parts_mut();
        self.blocks(blocks, false)?;
        artifact.map(|artifact| self.json(artifact)).transpose()?;
        output.change_messages::<S, Blocked>(|message| self.said(message))
    }

    /// The human's words in what a model is about to read.
    pub(super) fn clean_input(&self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|message| message.role() == Some(Role::User)) {
            if let Ok(Some(clean)) = self.message(message) {
                *message = clean;
            }
        }
    }

    /// A message with all that is kept beside it.
    fn said(&self, message: Message) -> Result<Message, Blocked> {
        let message = self.message(&message)?.unwrap_or(message);
        let MessageKind::Rich(rich) = &message.kind else { return Ok(message) };
        let mut artifact = rich.answer.as_ref().and_then(|answer| answer.artifact.clone());
        artifact.as_mut().map(|artifact| self.json(artifact)).transpose()?;
        Ok(message.with_rich(|rich| rich.answer.iter_mut().for_each(|answer| answer.artifact.clone_from(&artifact))))
    }

    /// Whether anything had to be changed.
    fn blocks(&self, blocks: &mut [Block], in_form: bool) -> Result<bool, Blocked> {
        blocks.iter_mut().try_fold(false, |changed, block| Ok(changed | self.block(block, in_form)?))
    }

    fn block(&self, block: &mut Block, in_form: bool) -> Result<bool, Blocked> {
        match block {
            Block::Text { text, extra } => {
                let changed = if in_form { self.form(text)? } else { self.words(text)? };
                Ok(changed | self.fields(extra.values_mut())?)
            }
            Block::Reasoning { text, signature, extra } => {
                let changed = self.words(text)? | self.fields(extra.values_mut())?;
                if changed {
                    // It proves that the thoughts are as they were.
                    *signature = None;
                }
                Ok(changed)
            }
            Block::Opaque { value, .. } => self.json(value),
            Block::Image(Media { name: Some(name), .. })
            | Block::Audio(Media { name: Some(name), .. })
            | Block::File(Media { name: Some(name), .. }) => self.words(name),
            _ => Ok(false),
        }
    }

    fn words(&self, text: &mut String) -> Result<bool, Blocked> {
        let clean = self.text(text)?;
        let changed = clean != *text;
        *text = clean;
        Ok(changed)
    }

    /// JSON in a text stays JSON.
    fn form(&self, text: &mut String) -> Result<bool, Blocked> {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else { return self.words(text) };
        let changed = self.json(&mut value)?;
        if changed {
            *text = value.to_string();
        }
        Ok(changed)
    }

    fn json(&self, value: &mut Value) -> Result<bool, Blocked> {
        match value {
            Value::String(text) => self.words(text),
            Value::Array(items) => self.fields(items.iter_mut()),
            Value::Object(map) => {
                let mut changed = self.fields(map.values_mut())?;
                for (name, value) in std::mem::take(map) {
                    let clean = self.text(&name)?;
                    changed |= clean != name;
                    map.insert(clean, value);
                }
                Ok(changed)
            }
            _ => Ok(false),
        }
    }

    fn fields<'a>(&self, mut values: impl Iterator<Item = &'a mut Value>) -> Result<bool, Blocked> {
        values.try_fold(false, |changed, value| Ok(changed | self.json(value)?))
    }
}
