//! Per-node options: retry, timeouts, cache, error handlers.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{FromInput, IntoNode};
use crate::call::{AnyNode, CacheRule, Call, RetryPolicy, TimeoutPolicy};
use crate::state::State;

/// Which results of a node are kept, and for how long.
///
/// The graph needs a cache: [`StateGraph::cache`](crate::StateGraph::cache).
///
/// ```
/// use std::time::Duration;
/// use superstep::{AgentState, CachePolicy};
///
/// let policy: CachePolicy<AgentState> =
///     CachePolicy::by(|s: &AgentState| s.messages.last().map(|m| m.text().into_owned())).ttl(Duration::from_secs(60));
/// # let _ = policy;
/// ```
pub struct CachePolicy<S: State> {
    pub(crate) rule: CacheRule,
    state: PhantomData<fn(S)>,
}

impl<S: State> Clone for CachePolicy<S> {
    fn clone(&self) -> Self {
        Self { rule: self.rule.clone(), state: PhantomData }
    }
}

impl<S: State> CachePolicy<S> {
    /// A result is kept for its whole input.
    pub fn new() -> Self {
        Self { rule: CacheRule::default(), state: PhantomData }
    }

    /// A result is kept for a key made of what the node takes first: the state, or what it was sent.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use superstep::{AgentState, CachePolicy, Sent};
    ///
    /// let of_the_state: CachePolicy<AgentState> = CachePolicy::by(|s: &Arc<AgentState>| s.messages.len());
    /// let of_a_payload: CachePolicy<AgentState> = CachePolicy::by(|Sent(word): &Sent<String>| word.to_lowercase());
    /// # let _ = (of_the_state, of_a_payload);
    /// ```
    pub fn by<I: FromInput<S>, K: serde::Serialize>(key: impl Fn(&I) -> K + Send + Sync + 'static) -> Self {
        let of_call = move |call: &Call<'_>| Ok(crate::value::encode(&key(&I::from_input(call)?))?.to_vec());
        Self { rule: CacheRule { key: Some(Arc::new(of_call)), ttl: None }, state: PhantomData }
    }

    /// How long a result is kept; for good if not given.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.rule.ttl = Some(ttl);
        self
    }
}

impl<S: State> Default for CachePolicy<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> fmt::Debug for CachePolicy<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachePolicy")
            .field("whole_input", &self.rule.key.is_none())
            .field("ttl", &self.rule.ttl)
            .finish()
    }
}

/// The options of one node.
///
/// ```
/// use std::time::Duration;
/// use superstep::{AgentState, NodeOptions, RetryPolicy, StateGraph, START};
///
/// async fn call_model(_: AgentState) {}
/// async fn collect(_: AgentState) {}
/// let app = StateGraph::<AgentState>::new()
///     .add_node_with("model", call_model, NodeOptions::new().retry(RetryPolicy::new()).timeout(Duration::from_secs(30)))
///     .add_node_with("collect", collect, NodeOptions::new().defer())
///     .add_sequence(["model", "collect"])
///     .compile()?;
/// # Ok::<(), superstep::CompilationError>(())
/// ```
#[derive(Clone)]
pub struct NodeOptions<S: State> {
    pub(crate) rules: NodeRules,
    state: PhantomData<fn(S)>,
}

crate::debug::debug_parts!([S: State] NodeOptions<S>, "NodeOptions", this => { rules: this.rules });

/// What options say of a node, without the type of its state.
#[derive(Clone, Default)]
pub(crate) struct NodeRules {
    pub(crate) retry: Option<Vec<RetryPolicy>>,
    pub(crate) timeout: Option<TimeoutPolicy>,
    pub(crate) cache: Option<CacheRule>,
    pub(crate) defer: bool,
    pub(crate) handler: Option<AnyNode>,
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) destinations: Option<Vec<(String, Option<String>)>>,
    pub(crate) fields: Option<Vec<String>>,
    pub(crate) blocking: bool,
    pub(crate) writes: Option<Vec<String>>,
}

crate::debug::debug_parts!([] NodeRules, "NodeRules", this => { retry: this.retry, timeout: this.timeout, is_cached: this.cache.is_some(), defer: this.defer, has_handler: this.handler.is_some(), metadata: this.metadata, destinations: this.destinations, fields: this.fields, blocking: this.blocking });

impl<S: State> Default for NodeOptions<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> NodeOptions<S> {
    /// No options.
    pub fn new() -> Self {
        Self { rules: NodeRules::default(), state: PhantomData }
    }

    /// Runs the node again when it fails. Given several times, the first policy that is for an error is used.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.rules.retry.get_or_insert_default().push(policy);
        self
    }

    /// Limits how long an attempt may take; a bare duration limits the whole attempt.
    pub fn timeout(mut self, policy: impl Into<TimeoutPolicy>) -> Self {
        self.rules.timeout = Some(policy.into());
        self
    }

    /// Keeps results.
    pub fn cache(mut self, policy: CachePolicy<S>) -> Self {
        self.rules.cache = Some(policy.rule);
        self
    }

    /// Runs the node only when nothing else is left to run.
    pub fn defer(mut self) -> Self {
        self.rules.defer = true;
        self
    }

    /// Runs this instead, in the same step, when the node failed for good. It may ask for [`NodeError`](crate::NodeError).
    ///
    /// If the step does not end (a sibling asks or fails, the process dies), the handler runs again when it is gone on
    /// with, even if it had finished. Put its effects into a [`Task`](crate::Task), whose result is kept, or use
    /// [`Context::idempotency_key`](crate::Context::idempotency_key), which is the same in both runs.
    pub fn error_handler<M>(mut self, handler: impl IntoNode<S, M>) -> Self {
        self.rules.handler = Some(handler.into_node().node);
        self
    }

    /// Says something about the node; drawn, shown in the `tasks` and `messages` streams, and read by the node with
    /// [`Context::metadata`](crate::Context::metadata).
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.rules.metadata.insert(key.into(), value.into());
        self
    }

    /// Where the node's commands may lead: for drawing and checking, not enforced.
    pub fn destinations<N: Into<String>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.rules.destinations.get_or_insert_default().extend(nodes.into_iter().map(|n| (n.into(), None)));
        self
    }

    /// A destination with a label to draw.
    pub fn destination(mut self, node: impl Into<String>, label: impl Into<String>) -> Self {
        self.rules.destinations.get_or_insert_default().push((node.into(), Some(label.into())));
        self
    }

    /// The fields that the node reads. The others are hidden from it: they are empty in the state that it is given, and
    /// left out of the object that a dynamic node takes. What it does not see it may write all the same.
    ///
    /// A whole state that the node gives back counts for what it changed in what it was given, so fields that were hidden
    /// keep their values. The node is given a copy of the state; its conditional edges see all of it.
    ///
    /// ```
    /// use superstep::{NodeOptions, State, StateGraph, START};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(State, Clone, Default, Serialize, Deserialize)]
    /// struct Letter { text: String, salary: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::<Letter>::new()
    ///     .add_node_with("write", async |letter: Letter| {
    ///         Letter { text: format!("{} earns {}", letter.text, letter.salary), ..letter }
    ///     }, NodeOptions::new().fields(["text"]))
    ///     .add_edge(START, "write")
    ///     .compile()?;
    /// let out = app.invoke(Letter { text: "Ada".into(), salary: 9000 }).await?.state;
    /// assert_eq!((out.text.as_str(), out.salary), ("Ada earns 0", 9000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn fields<N: Into<String>>(mut self, fields: impl IntoIterator<Item = N>) -> Self {
        self.rules.fields = Some(fields.into_iter().map(Into::into).collect());
        self
    }

    /// The fields that the node writes: for checking that no two nodes of a step write one last-value field.
    pub fn writes<N: Into<String>>(mut self, fields: impl IntoIterator<Item = N>) -> Self {
        self.rules.writes = Some(fields.into_iter().map(Into::into).collect());
        self
    }

    /// Runs the node's future on the blocking pool: for heavy computing and for calls that block.
    ///
    /// The nodes of a step share one thread until they wait, so one that never waits holds the others up.
    pub fn blocking(mut self) -> Self {
        self.rules.blocking = true;
        self
    }
}

/// Options for every node that has none of its own.
///
/// ```
/// use std::time::Duration;
/// use superstep::{AgentState, NodeDefaults, RetryPolicy, StateGraph};
///
/// let mut graph = StateGraph::<AgentState>::new();
/// graph.set_node_defaults(NodeDefaults::new().retry(RetryPolicy::new()).timeout(Duration::from_secs(30)));
/// ```
#[derive(Clone)]
pub struct NodeDefaults<S: State> {
    pub(crate) rules: NodeRules,
    state: PhantomData<fn(S)>,
}

crate::debug::debug_parts!([S: State] NodeDefaults<S>, "NodeDefaults", this => { rules: this.rules });

impl<S: State> Default for NodeDefaults<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> NodeDefaults<S> {
    /// No defaults.
    pub fn new() -> Self {
        Self { rules: NodeRules::default(), state: PhantomData }
    }

    /// The retry policies of nodes and handlers without their own.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.rules.retry.get_or_insert_default().push(policy);
        self
    }

    /// The timeout of nodes and handlers without their own.
    pub fn timeout(mut self, policy: impl Into<TimeoutPolicy>) -> Self {
        self.rules.timeout = Some(policy.into());
        self
    }

    /// The cache policy of nodes without their own.
    pub fn cache(mut self, policy: CachePolicy<S>) -> Self {
        self.rules.cache = Some(policy.rule);
        self
    }

    /// The error handler of nodes without their own.
    pub fn error_handler<M>(mut self, handler: impl IntoNode<S, M>) -> Self {
        self.rules.handler = Some(handler.into_node().node);
        self
    }
}
