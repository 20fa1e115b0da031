//! Where a task stands in its step, and what is known of it for that.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{RunShared, TaskContext};
use crate::checkpoint::Metadata;
use crate::index::NodeIx;
use crate::stream::TaskMetadata;

/// The word for tasks that are woken by edges, and that for sends, calls and handlers.
const PULL: &str = "__pregel_pull";
pub(crate) const PUSH: &str = "__pregel_push";

/// Where a task stands in its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A node that was woken by an edge.
    Pull { node: NodeIx },
    /// The nth send.
    Push { node: NodeIx, nth: usize },
    /// The handler of this failed node, which was the nth send if it was one.
    Handler { node: NodeIx, failed: String, nth: Option<usize> },
    /// The nth function that the task around it called.
    Call { nth: usize },
}

impl Place {
    /// The node; a function that was called is none.
    pub(crate) fn node(&self) -> Option<NodeIx> {
        match self {
            Self::Pull { node } | Self::Push { node, .. } | Self::Handler { node, .. } => Some(*node),
            Self::Call { .. } => None,
        }
    }

    /// As LangGraph writes it. `name` is that of the task, and `around` the task around it.
    pub(crate) fn path(&self, name: &str, around: Option<&TaskContext>) -> Value {
        match self {
            Self::Pull { .. } => json!([PULL, name]),
            Self::Push { nth, .. } => json!([PUSH, nth, false]),
            Self::Handler { failed, nth: None, .. } => json!([PULL, failed, "node_error_handler", false]),
            Self::Handler { nth: Some(nth), .. } => json!([PUSH, nth, false, "node_error_handler", false]),
            Self::Call { nth } => json!([PUSH, around.map(TaskContext::path), nth, true]),
        }
    }
}

/// What was said about a run and the nodes around a node, with what was said about the node itself.
pub(crate) fn with_node_metadata(outer: &Metadata, node: &BTreeMap<String, Value>) -> Metadata {
    if node.is_empty() {
        return outer.clone();
    }
    let outer = outer.iter().map(|(key, value)| (key.clone(), value.clone()));
    let own = node.iter().map(|(key, value)| (key.clone(), value.clone()));
    outer.chain(own).collect::<BTreeMap<_, _>>().into()
}

impl RunShared {
    /// What is known of a task, for the messages that it says.
    pub(crate) fn task_metadata(
        &self,
        (node, step): (&str, i64),
        namespace: &str,
        (triggers, path): (Vec<String>, Value),
        said: &Metadata,
    ) -> TaskMetadata {
        TaskMetadata {
            node: node.to_owned(),
            step,
            triggers,
            path,
            namespace: namespace.to_owned(),
            thread: self.thread.as_deref().map(str::to_owned),
            run_id: self.run_id().clone(),
            tags: self.tags.to_vec(),
            metadata: (**said).clone(),
        }
    }
}

impl TaskContext {
    fn path(&self) -> Value {
        self.place.path(&self.node, self.around.as_deref())
    }

    /// The place of a call in the order in which what calls wrote is merged, as text.
    pub(crate) fn call_order(&self, nth: usize) -> String {
        order_text(&json!([PUSH, self.path(), nth]))
    }

    /// What is known of it, for the messages that it says.
    pub(super) fn described(&self) -> TaskMetadata {
        let triggers = match (&self.place, &self.calls) {
            (Place::Pull { node }, Some(host)) => host.triggers(*node).to_vec(),
            _ => vec![PUSH.to_owned()],
        };
        let named = (&*self.node, self.step);
        self.run.task_metadata(named, &self.namespace, (triggers, self.path()), self.metadata())
    }

    /// What was said about the run and about the nodes that the task is in; made when it is first asked for.
    pub(crate) fn metadata(&self) -> &Metadata {
        self.metadata.get_or_init(|| {
            let outer = self.around.as_ref().map_or(&self.run.metadata, |around| around.metadata());
            match (self.place.node(), &self.calls) {
                (Some(node), Some(host)) => with_node_metadata(outer, host.node_metadata(node)),
                _ => outer.clone(),
            }
        })
    }

    /// How many functions were called one in the other to come here from a node.
    fn depth_of_calls(&self) -> usize {
        match (&self.place, &self.around) {
            (Place::Call { .. }, Some(caller)) => 1 + caller.depth_of_calls(),
            _ => 0,
        }
    }

    /// Whether the graph that the task belongs to is inside no other.
    pub(crate) fn is_of_root(&self) -> bool {
        self.namespace.split('|').count() == 1 + self.depth_of_calls()
    }

    /// The namespace of the graph that the task belongs to: a function that a node called belongs to the node's graph.
    pub(crate) fn graph_namespace(&self) -> Vec<String> {
        let mut parts = self.parts();
        parts.truncate(parts.len().saturating_sub(1 + self.depth_of_calls()));
        parts
    }

    /// The namespace of what is around the task: its graph, or who called it.
    pub(crate) fn outer_namespace(&self) -> Vec<String> {
        let mut parts = self.parts();
        parts.pop();
        parts
    }

    fn parts(&self) -> Vec<String> {
        self.namespace.split('|').map(str::to_owned).collect()
    }
}

/// A path as text whose order is that of merging.
fn order_text(path: &Value) -> String {
    match path {
        Value::Array(list) => format!("~{}", list.iter().map(order_text).collect::<Vec<_>>().join(", ")),
        Value::Number(number) => format!("{:010}", number.as_u64().unwrap_or_default()),
        Value::Bool(is_call) => format!("{:010}", u8::from(*is_call)),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}
