//! What the graph around a task does for code inside of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Context, PushedMessage, RetryPolicy, TimeoutPolicy};
use crate::error::{BoxError, Error};
use crate::index::NodeIx;
use crate::message::Message;

pub(crate) type CallFuture = Pin<Box<dyn Future<Output = Result<Value, BoxError>> + Send>>;
pub(crate) type CallFn = Arc<dyn Fn(Value, Context) -> CallFuture + Send + Sync>;

/// What a graph does for the tasks of a step, which do not know the type of its state.
pub(crate) trait CallHost: Send + Sync {
    fn call(
        self: Arc<Self>,
        caller: Context,
        ix: usize,
        name: Arc<str>,
        input: Value,
        options: CallOptions,
        run: CallFn,
    ) -> CallFuture;

    /// A message as a write to the field with this name, or to the state's messages.
    fn push(&self, field: Option<&str>, message: Message) -> Result<PushedMessage, Error>;

    /// What the graph says about a node.
    fn node_metadata(&self, node: NodeIx) -> &BTreeMap<String, Value>;

    /// What can wake a node.
    fn triggers(&self, node: NodeIx) -> &[String];
}

/// How a call is made.
#[derive(Clone, Default)]
pub(crate) struct CallOptions {
    pub(crate) retry: Vec<RetryPolicy>,
    pub(crate) timeout: Option<TimeoutPolicy>,
    /// The name of the function's type: tells tasks of one name apart in a cache.
    pub(crate) made_of: &'static str,
    /// Whether results are cached, and for how long.
    pub(crate) cache: Option<Option<Duration>>,
}
