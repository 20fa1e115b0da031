//! Parts of a node that ask for themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Context;

/// A part of a task with questions of its own.
pub(crate) struct Scope {
    key: String,
    asked: AtomicUsize,
}

impl Scope {
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The place of the next question.
    pub(super) fn next_question(&self) -> usize {
        self.asked.fetch_add(1, Ordering::Relaxed)
    }

    /// The place of the question that was asked last.
    pub(super) fn last_question(&self) -> usize {
        self.asked.load(Ordering::Relaxed).saturating_sub(1)
    }
}

impl Context {
    /// The same context for a part of the node that asks for itself: its questions count from the first, and their
    /// answers come back to the scope of the same key, whatever other parts ask, in whatever order.
    ///
    /// A node that does several things side by side gives each a scope. Scopes can be made inside scopes.
    ///
    /// ```
    /// use superstep::{AgentState, BoxError, Context};
    ///
    /// async fn pay(order: &str, cx: Context) -> Result<bool, BoxError> {
    ///     Ok(cx.interrupt(format!("pay for {order}?"))?)
    /// }
    ///
    /// async fn pay_all(_: AgentState, cx: Context) -> Result<(), BoxError> {
    ///     let (tea, cups) = (pay("tea", cx.scoped("tea")), pay("cups", cx.scoped("cups")));
    ///     tokio::try_join!(tea, cups)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn scoped(&self, key: impl AsRef<str>) -> Self {
        let key = match &self.scope {
            Some(outer) => format!("{}/{}", outer.key, key.as_ref()),
            None => key.as_ref().to_owned(),
        };
        Self { task: self.task.clone(), scope: Some(Arc::new(Scope { key, asked: AtomicUsize::new(0) })) }
    }

    /// The context of the whole node, outside of all [scopes](Context::scoped).
    #[must_use]
    pub fn unscoped(&self) -> Self {
        Self { task: self.task.clone(), scope: None }
    }
}
