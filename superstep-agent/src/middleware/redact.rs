//! Things that nobody should read, taken out of what is said.

mod find;
mod model;
mod walk;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use superstep::{BoxError, Context, Conversation, Interrupted, Message, Role};

use super::{AskModel, CallTool, Hooks, Middleware, ModelAsk, ToolAsk, Turn};
use crate::model::ModelError;
use crate::tool::{ToolError, ToolOutput};
use find::Finder;
use model::{RedactingModel, Said};

/// Takes e-mail addresses, card numbers and the like out of what humans, models and tools say.
///
/// Answers of models and results of tools are changed before they are saved or streamed, with all that belongs to them:
/// thoughts, answers in an asked form, artifacts, messages that a tool's command says, words about errors. A model whose
/// answers are looked at is heard at once, not word by word. A human's words are changed before the model reads them; the
/// input as it came has been saved by then if the thread has a checkpointer. Arguments of tool calls stay as they are, and
/// so do pictures, sound and documents.
///
/// ```
/// use superstep_agent::middleware::{Redact, Redaction, Sensitive};
/// use superstep_agent::{create_react_agent, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let redact = Redact::new()
///     .find(Sensitive::Email, Redaction::Replace)
///     .find(Sensitive::CreditCard, Redaction::Mask)
///     .pattern("badge", |text| text.match_indices("#7").map(|(at, found)| at..at + found.len()).collect(), Redaction::Hash);
/// assert_eq!(redact.text("ann@example.org paid with 4111 1111 1111 1111")?, "[REDACTED_EMAIL] paid with ****-****-****-1111");
/// let agent = create_react_agent(ScriptedModel::new(["Write to bob@example.org."]), ()).middleware(redact).compile()?;
/// assert_eq!(agent.invoke("Whom?").await?.state.messages[1].text(), "Write to [REDACTED_EMAIL].");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Redact {
    rules: Arc<Vec<Rule>>,
    places: BTreeSet<Place>,
}

crate::debug::debug_parts!([] Redact, "Redact", this => { rules: this.rules.iter().map(|rule| &rule.name).collect::<Vec<_>>(), places: this.places });

#[derive(Clone)]
struct Rule {
    name: String,
    finder: Finder,
    redaction: Redaction,
}

/// What can be found without a pattern of one's own.
///
/// ```
/// use superstep_agent::middleware::{Redact, Redaction, Sensitive};
/// let redact = Redact::new().find(Sensitive::Ip, Redaction::Mask);
/// assert_eq!(redact.text("from 10.0.0.17").unwrap(), "from *.*.*.17");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sensitive {
    /// E-mail addresses.
    Email,
    /// Numbers of payment cards, whose check digit is right.
    CreditCard,
    /// Internet addresses of both versions.
    Ip,
    /// Addresses of network hardware.
    Mac,
    /// Web addresses, with a scheme or beginning with `www.`.
    Url,
}

/// What becomes of what was found.
///
/// ```
/// use superstep_agent::middleware::{Redact, Redaction, Sensitive};
/// let mail = |redaction| Redact::new().find(Sensitive::Email, redaction).text("to ann@example.org");
/// assert_eq!(mail(Redaction::Replace).unwrap(), "to [REDACTED_EMAIL]");
/// assert_eq!(mail(Redaction::Mask).unwrap(), "to a****@****.org");
/// assert!(mail(Redaction::Hash).unwrap().starts_with("to <email_hash:"));
/// assert!(mail(Redaction::Block).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redaction {
    /// The name of its kind takes its place.
    Replace,
    /// Most of it is starred out.
    Mask,
    /// A hash takes its place: the same for the same text.
    Hash,
    /// Nothing is said at all: the run fails with [`Blocked`].
    Block,
}

/// Whose words are looked at.
///
/// ```
/// use superstep_agent::middleware::{Place, Redact, Redaction, Sensitive};
/// let redact = Redact::new().find(Sensitive::Email, Redaction::Mask).only([Place::Input]);
/// # let _ = redact;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Place {
    /// A human's.
    Input,
    /// The model's.
    Output,
    /// Those of tools.
    ToolResults,
}

/// Why something was not said.
///
/// ```
/// use superstep_agent::middleware::{Redact, Redaction, Sensitive};
/// let blocked = Redact::new().find(Sensitive::Url, Redaction::Block).text("see www.example.org").unwrap_err();
/// assert_eq!(blocked.to_string(), "there is something of the kind `url` in the text, which is blocked");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is something of the kind `{kind}` in the text, which is blocked")]
pub struct Blocked {
    kind: String,
}

shown_in_words!(Blocked);

impl Blocked {
    /// What was found: the name of a pattern, or `email`, `credit_card`, `ip`, `mac_address`, `url`.
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl Redact {
    /// Looks at everything that is said, for nothing yet.
    pub fn new() -> Self {
        Self { rules: Arc::default(), places: [Place::Input, Place::Output, Place::ToolResults].into() }
    }

    /// Finds this, and does that with it.
    pub fn find(self, what: Sensitive, redaction: Redaction) -> Self {
        self.with(Rule { name: what.name().to_owned(), finder: what.finder(), redaction })
    }

    /// Finds what a function says is to be found, as places in the text.
    pub fn pattern(
        self,
        name: impl Into<String>,
        find: impl Fn(&str) -> Vec<Range<usize>> + Send + Sync + 'static,
        redaction: Redaction,
    ) -> Self {
        self.with(Rule { name: name.into(), finder: Finder::Custom(Arc::new(find)), redaction })
    }

    /// Looks only at what these say.
    pub fn only(mut self, places: impl IntoIterator<Item = Place>) -> Self {
        self.places = places.into_iter().collect();
        self
    }

    /// What becomes of a text.
    ///
    /// # Errors
    /// If something in it is blocked.
    pub fn text(&self, text: &str) -> Result<String, Blocked> {
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for (range, rule) in self.findings(text) {
            clean.push_str(&text[end..range.start]);
            clean.push_str(&rule.instead_of(&text[range.clone()])?);
            end = range.end;
        }
        clean.push_str(&text[end..]);
        Ok(clean)
    }

    fn with(mut self, rule: Rule) -> Self {
        Arc::make_mut(&mut self.rules).push(rule);
        self
    }

    /// What is found, in the order of the text; what overlaps is one finding, of the rule that comes first.
    fn findings(&self, text: &str) -> Vec<(Range<usize>, &Rule)> {
        let all = self.rules.iter().enumerate();
        let mut found: Vec<(Range<usize>, usize)> =
            all.flat_map(|(ix, rule)| rule.finder.find(text).into_iter().map(move |range| (range, ix))).collect();
        found.sort_by_key(|(range, ix)| (range.start, *ix));
        let mut merged: Vec<(Range<usize>, usize)> = Vec::new();
        for (range, ix) in found {
            match merged.last_mut() {
                Some((last, first)) if range.start < last.end => {
                    (last.end, *first) = (last.end.max(range.end), (*first).min(ix));
                }
                _ => merged.push((range, ix)),
            }
        }
        merged.into_iter().map(|(range, ix)| (range, &self.rules[ix])).collect()
    }

    /// The same rules without blocking.
    fn softened(&self) -> Self {
        let soften = |rule: &Rule| match rule.redaction {
            Redaction::Block => Rule { redaction: Redaction::Replace, ..rule.clone() },
            _ => rule.clone(),
        };
        Self { rules: Arc::new(self.rules.iter().map(soften).collect()), places: self.places.clone() }
    }

    /// A tool's error with other words, if its words hold something.
    fn error(&self, error: ToolError) -> ToolError {
        let words = error.to_string();
        match (self.text(&words), error) {
            (Err(blocked), _) => ToolError::failed(blocked),
            (Ok(clean), error) if clean == words => error,
            (Ok(clean), ToolError::InvalidArguments(_)) => ToolError::invalid(clean),
            (Ok(clean), _) => ToolError::failed(clean),
        }
    }
}

impl Default for Redact {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl<S: Conversation> Middleware<S> for Redact {
    fn name(&self) -> &'static str {
        "redact"
    }

    fn hooks(&self) -> Hooks {
        Hooks { before_agent: self.places.contains(&Place::Input), ..Hooks::default() }
    }

    /// Only the newest of a human's messages can be blocked: one that was blocked before must not block the thread for
    /// good, nor reach the model.
    async fn before_agent(&self, state: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        let human = state.conversation().iter().filter(|message| message.role() == Some(Role::User));
        let human: Vec<&Message> = human.collect();
        let Some((newest, older)) = human.split_last() else { return Ok(Turn::go_on()) };
        let softened = self.softened();
        let mut changed = Vec::new();
        for message in older {
            changed.extend(softened.message(message)?);
        }
        changed.extend(self.message(newest)?);
        Ok(Turn::say(changed))
    }

    async fn around_model(&self, mut ask: ModelAsk<S>, next: AskModel<'_, S>) -> Result<Message, ModelError> {
        if self.places.contains(&Place::Input) {
            self.softened().clean_input(&mut ask.request.messages);
        }
        if !self.places.contains(&Place::Output) {
            return next.ask(ask).await;
        }
        let (said, in_form, name) = (Said::default(), ask.request.output.is_some(), ask.model.name().to_owned());
        let (redact, heard) = (self.clone(), said.clone());
        ask.wrap_model(move |model| Arc::new(RedactingModel::new(model, redact.clone(), heard.clone())));
        let answer = next.ask(ask).await?;
        // Somebody in between may have said it instead.
        if said.is(&answer) { Ok(answer) } else { self.answer(answer, in_form, &name) }
    }

    async fn around_tool(&self, ask: ToolAsk<S>, next: CallTool<'_, S>) -> Result<ToolOutput, ToolError> {
        let result = next.call(ask).await;
        if !self.places.contains(&Place::ToolResults) {
            return result;
        }
        match result {
            Ok(output) => self.output::<S>(output).map_err(ToolError::failed),
            Err(error) if means_something_to_the_graph(&error) => Err(error),
            Err(error) => Err(self.error(error)),
        }
    }

    fn tell_error(&self, words: String) -> String {
        if !self.places.contains(&Place::ToolResults) {
            return words;
        }
        self.softened().text(&words).unwrap_or(words)
    }
}

fn means_something_to_the_graph(error: &ToolError) -> bool {
    matches!(error, ToolError::Failed(error) if error.is::<Interrupted>() || error.is::<superstep::Error>())
}

impl Rule {
    fn instead_of(&self, found: &str) -> Result<String, Blocked> {
        Ok(match self.redaction {
            Redaction::Replace => format!("[REDACTED_{}]", self.name.to_uppercase()),
            Redaction::Mask => self.finder.mask(found),
            Redaction::Hash => format!("<{}_hash:{}>", self.name, hash(found)),
            Redaction::Block => return Err(Blocked { kind: self.name.clone() }),
        })
    }
}

/// The first 64 bits of SHA-256.
fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).fold(String::new(), |mut hex, byte| {
        let _infallible = write!(hex, "{byte:02x}");
        hex
    })
}

impl Sensitive {
    fn name(self) -> &'static str {
        match self {
            Sensitive::Email => "email",
            Sensitive::CreditCard => "credit_card",
            Sensitive::Ip => "ip",
            Sensitive::Mac => "mac_address",
            Sensitive::Url => "url",
        }
    }

    fn finder(self) -> Finder {
        match self {
            Sensitive::Email => Finder::Email,
            Sensitive::CreditCard => Finder::Card,
            Sensitive::Ip => Finder::Ip,
            Sensitive::Mac => Finder::Mac,
            Sensitive::Url => Finder::Url,
        }
    }
}
