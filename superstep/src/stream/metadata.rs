//! What is known of the task that a message comes from.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::id::RunId;

/// What is known of the task that a [`MessageEvent`](crate::MessageEvent) comes from, and of its run.
///
/// It is made once for each task, and only if somebody streams messages.
///
/// ```
/// use superstep::{AgentState, EventData, Message, Mode, NodeOptions, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new()
///     .add_node_with("poet", |_: AgentState| async { vec![Message::assistant("to be")] },
///         NodeOptions::new().metadata("team", "verse"))
///     .add_edge(START, "poet")
///     .compile()?;
/// let mut events = app.stream(()).mode(Mode::Messages).tag("evening").start();
/// while let Some(event) = events.next().await {
///     if let EventData::Message(said) = event?.data {
///         assert_eq!(said.metadata.tags, ["evening"]);
///         assert_eq!(said.metadata.to_json()["langgraph_node"], "poet");
///         assert_eq!(said.metadata.to_json()["team"], "verse");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// The node, or the function that was called.
    pub node: String,
    /// The step.
    pub step: i64,
    /// What can wake the node.
    pub triggers: Vec<String>,
    /// Where the task stands in its step, as LangGraph writes it: `["__pregel_pull", node]`, or
    /// `["__pregel_push", n, false]` for the nth send.
    pub path: Value,
    /// The namespace of the task: those of the graphs around it, and its own.
    pub namespace: String,
    /// The thread, if the run has one.
    pub thread: Option<String>,
    /// The run.
    pub run_id: RunId,
    /// The tags of the run.
    pub tags: Vec<String>,
    /// What the caller said about the run, and over it what the graphs said about the nodes that the task is in.
    pub metadata: BTreeMap<String, Value>,
}

impl TaskMetadata {
    /// As LangGraph shows it: what was said about run and node, and beside it `langgraph_node`, `langgraph_step`,
    /// `langgraph_triggers`, `langgraph_path`, `langgraph_checkpoint_ns`, `run_id`, and `thread_id` and `tags` if there
    /// are such.
    pub fn to_json(&self) -> Value {
        let mut map: Map<String, Value> = self.metadata.clone().into_iter().collect();
        let mut tell = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        tell("langgraph_node", json!(self.node));
        tell("langgraph_step", json!(self.step));
        tell("langgraph_triggers", json!(self.triggers));
        tell("langgraph_path", self.path.clone());
        tell("langgraph_checkpoint_ns", json!(self.namespace));
        self.thread.iter().for_each(|thread| tell("thread_id", json!(thread)));
        tell("run_id", json!(self.run_id));
        if !self.tags.is_empty() {
            tell("tags", json!(self.tags));
        }
        Value::Object(map)
    }
}
