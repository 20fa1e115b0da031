//! Snapshots: a thread's state at a checkpoint, as it can be looked at.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::checkpoint::Source;
use crate::error::TaskError;
use crate::id::{CheckpointId, TaskId};
use crate::node::Interrupt;
use crate::state::State;
use crate::stream::{ShownWrites, Values};

/// Where a checkpoint is.
///
/// ```
/// use superstep::CheckpointRef;
/// fn show(at: &CheckpointRef) { println!("{} in {}", at.id, at.thread); }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointRef {
    /// The thread.
    pub thread: String,
    /// The namespace: empty for the root graph.
    pub namespace: String,
    /// The checkpoint.
    pub id: CheckpointId,
    /// The checkpoints of all graphs from the root down to this one, by namespace.
    pub parents: BTreeMap<String, CheckpointId>,
}

/// A thread's state at a checkpoint.
///
/// ```
/// use superstep::{AgentState, EchoAgent, MemorySaver, Message, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo")
///     .checkpointer(MemorySaver::new()).compile()?;
/// app.invoke(AgentState { messages: vec![Message::user("hi")] }).thread("t").await?;
/// let snapshot = app.thread("t").state().await?;
/// assert_eq!(snapshot.state.messages.len(), 2);
/// assert!(snapshot.next.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct StateSnapshot<S: State> {
    /// The state.
    pub state: Arc<S>,
    /// The nodes that run next.
    pub next: Vec<String>,
    /// The checkpoint; `None` if the thread has none.
    pub checkpoint: Option<CheckpointRef>,
    /// The checkpoint before it.
    pub parent: Option<CheckpointRef>,
    /// What made it.
    pub source: Option<Source>,
    /// The number of the step that made it.
    pub step: Option<i64>,
    /// When it was made.
    pub created_at: Option<SystemTime>,
    /// What the caller said about the run.
    pub metadata: BTreeMap<String, Value>,
    /// The tasks of the next step, with what they did so far.
    pub tasks: Vec<TaskSnapshot<S>>,
    /// The questions of these tasks.
    pub interrupts: Vec<Interrupt>,
    pub(crate) values: Values<S>,
}

impl<S: State> StateSnapshot<S> {
    /// Whether nothing is left to do. `next` leaves out tasks whose results are saved, so it is empty too when a run
    /// was killed after the last task of a step and before its checkpoint; resuming then goes on with that step.
    pub fn is_done(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The fields that have a value, as JSON.
    pub fn values(&self) -> Value {
        self.values.json(None)
    }

    /// The snapshot as JSON.
    pub fn to_json(&self) -> Value {
        let label = |at: &Option<CheckpointRef>| at.as_ref().map(|at| at.id.to_string());
        let tasks: Vec<Value> = self.tasks.iter().map(TaskSnapshot::to_json).collect();
        json!({
            "values": self.values(), "next": self.next, "checkpoint": label(&self.checkpoint),
            "parent": label(&self.parent), "source": self.source, "step": self.step,
            "metadata": self.metadata, "tasks": tasks, "interrupts": self.interrupts,
        })
    }
}

impl<S: State> std::fmt::Debug for StateSnapshot<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

/// A task of the next step.
///
/// ```
/// use superstep::{AgentState, TaskSnapshot};
/// fn show(task: &TaskSnapshot<AgentState>) { println!("{}: {:?}", task.name, task.error); }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskSnapshot<S: State> {
    /// The task.
    pub id: TaskId,
    /// Its node.
    pub name: String,
    /// Its error, if it failed.
    pub error: Option<TaskError>,
    /// Its questions.
    pub interrupts: Vec<Interrupt>,
    /// Its subgraph's state.
    pub state: Option<SubgraphState>,
    pub(crate) result: Option<ShownWrites<S>>,
}

impl<S: State> TaskSnapshot<S> {
    /// What it wrote, as JSON; `None` if it has not finished.
    pub fn result(&self) -> Option<Value> {
        self.result.as_ref().map(|r| r.as_result(None, false))
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id.to_string(), "name": self.name, "error": self.error.as_ref().map(|e| &e.message), "interrupts": self.interrupts,
            "result": self.result(), "state": self.state.as_ref().map(SubgraphState::to_json),
        })
    }
}

/// The state of a task's subgraph: where it is, or all of it.
///
/// ```
/// use superstep::{AgentState, SubgraphState};
/// fn show(state: &SubgraphState) {
///     if let Some(snapshot) = state.snapshot::<AgentState>() { println!("{:?}", snapshot.next); }
/// }
/// ```
#[derive(Clone)]
pub struct SubgraphState {
    pub(crate) namespace: String,
    pub(crate) snapshot: Option<Arc<dyn AnySnapshot>>,
    pub(crate) thread: Arc<dyn Any + Send + Sync>,
}

pub(crate) trait AnySnapshot: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn json(&self) -> Value;
}

impl<S: State> AnySnapshot for StateSnapshot<S> {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn json(&self) -> Value {
        self.to_json()
    }
}

impl SubgraphState {
    /// The subgraph's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The subgraph's snapshot, if it was asked for and its state is a `C`.
    pub fn snapshot<C: State>(&self) -> Option<&StateSnapshot<C>> {
        (**self.snapshot.as_ref()?).as_any().downcast_ref()
    }

    /// The subgraph's part of the thread, to look at it and change it, if its state is a `C`.
    pub fn thread<C: State>(&self) -> Option<crate::Thread<C>> {
        self.thread.downcast_ref::<crate::Thread<C>>().cloned()
    }

    fn to_json(&self) -> Value {
        self.snapshot.as_ref().map_or_else(|| json!({ "namespace": self.namespace }), |s| s.json())
    }
}
