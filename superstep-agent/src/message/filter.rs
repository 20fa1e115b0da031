//! Conversations with some of their messages only.

use std::collections::HashSet;

use superstep::{Message, Role};

/// The messages that a filter keeps, in order.
///
/// ```
/// use superstep::{Message, Role};
/// use superstep_agent::message::{filter_messages, MessageFilter};
/// let messages = [Message::system("Be brief."), Message::user("hi"), Message::assistant("hello").with_name("writer")];
/// let kept = filter_messages(&messages, &MessageFilter::new().roles([Role::User, Role::Assistant]).without_names(["writer"]));
/// assert_eq!(kept, [Message::user("hi")]);
/// ```
pub fn filter_messages(messages: &[Message], filter: &MessageFilter) -> Vec<Message> {
    messages.iter().filter(|message| filter.keeps(message)).cloned().collect()
}

/// Which messages are kept: those that fit any of what is wanted, if something is, and nothing of what is unwanted.
///
/// ```
/// use superstep::{Message, Role};
/// use superstep_agent::message::MessageFilter;
/// let filter = MessageFilter::new().ids(["a"]).roles([Role::System]);
/// assert!(filter.keeps(&Message::user("hi").with_id("a")));
/// assert!(filter.keeps(&Message::system("Be brief.")));
/// assert!(!filter.keeps(&Message::user("hi")));
/// ```
#[derive(Debug, Clone, Default)]
pub struct MessageFilter {
    wanted: Traits,
    unwanted: Traits,
}

#[derive(Debug, Clone, Default)]
struct Traits {
    roles: HashSet<Role>,
    names: HashSet<String>,
    ids: HashSet<String>,
}

impl MessageFilter {
    /// One that keeps all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wants what these say.
    pub fn roles(mut self, roles: impl IntoIterator<Item = Role>) -> Self {
        self.wanted.roles.extend(roles);
        self
    }

    /// Wants what is said under these names.
    pub fn names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.wanted.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Wants these messages.
    pub fn ids<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.wanted.ids.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Leaves out what these say.
    pub fn without_roles(mut self, roles: impl IntoIterator<Item = Role>) -> Self {
        self.unwanted.roles.extend(roles);
        self
    }

    /// Leaves out what is said under these names.
    pub fn without_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.unwanted.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Leaves out these messages.
    pub fn without_ids<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.unwanted.ids.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Whether a message is kept.
    pub fn keeps(&self, message: &Message) -> bool {
        (self.wanted.is_empty() || self.wanted.fit(message)) && !self.unwanted.fit(message)
    }
}

impl Traits {
    fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.names.is_empty() && self.ids.is_empty()
    }

    fn fit(&self, message: &Message) -> bool {
        message.role().is_some_and(|role| self.roles.contains(&role))
            || message.name().is_some_and(|name| self.names.contains(name))
            || message.id.as_ref().is_some_and(|id| self.ids.contains(id))
    }
}
