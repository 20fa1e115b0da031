//! Snapshots: a thread's state at a checkpoint, as it can be looked at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::checkpoint::{CheckpointError, Interrupt, Source};
use crate::error::TaskError;
use crate::id::{CheckpointId, TaskId};
use crate::state::State;
use crate::view::{Form, ShownInput, ShownState, ShownWrites};

/// Where a checkpoint is.
///
/// ```
/// use superstep::CheckpointRef;
/// fn show(at: &CheckpointRef) { println!("{} in {}", at.id, at.thread); }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct CheckpointRef {
    /// The thread.
    pub thread: String,
    /// The namespace: empty for the root graph.
    #[serde(default)]
    pub namespace: String,
    /// The checkpoint.
    pub id: CheckpointId,
    /// The checkpoints of all graphs from the root down to this one, by namespace.
    #[serde(default)]
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
#[non_exhaustive]
pub struct StateSnapshot<S = Value> {
    /// The state; as JSON, the fields that have a value.
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
    pub tasks: Vec<TaskSnapshot>,
    /// The questions of these tasks.
    pub interrupts: Vec<Interrupt>,
    /// What of a checkpoint in a history is nested too deep to be read: such fields have no value, and what tasks wrote
    /// after it is not shown. [`update`](crate::Thread::update) puts other values in their place.
    pub unreadable: Vec<CheckpointError>,
    pub(crate) values: ShownState,
}

impl<S> Clone for StateSnapshot<S> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            next: self.next.clone(),
            checkpoint: self.checkpoint.clone(),
            parent: self.parent.clone(),
            source: self.source,
            step: self.step,
            created_at: self.created_at,
            metadata: self.metadata.clone(),
            tasks: self.tasks.clone(),
            interrupts: self.interrupts.clone(),
            unreadable: self.unreadable.clone(),
            values: self.values.clone(),
        }
    }
}

impl<S> StateSnapshot<S> {
    /// The same in another form.
    pub(crate) fn typed<T: Form>(self) -> StateSnapshot<T> {
        StateSnapshot {
            state: T::of(&self.values),
            next: self.next,
            checkpoint: self.checkpoint,
            parent: self.parent,
            source: self.source,
            step: self.step,
            created_at: self.created_at,
            metadata: self.metadata,
            tasks: self.tasks,
            interrupts: self.interrupts,
            unreadable: self.unreadable,
            values: self.values,
        }
    }
}

impl<S> StateSnapshot<S> {
    /// Whether nothing is left to do. `next` leaves out tasks whose results are saved, so it is empty too when a run
    /// was killed after the last task of a step and before its checkpoint; resuming then continues that step.
    pub fn is_done(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The fields that have a value, as JSON.
    pub fn values(&self) -> Value {
        self.values.json()
    }

    /// The state, if it is a `T`; whatever the form of the snapshot.
    pub fn state_as<T: State>(&self) -> Option<&T> {
        self.values.state.peek()
    }

    /// The snapshot as JSON; times are in UTC, as in `2026-01-02T03:04:05.678901+00:00`.
    pub fn to_json(&self) -> Value {
        let place = (self.checkpoint.as_ref(), self.parent.as_ref(), self.source, self.step, self.created_at);
        to_json(&self.values, place, (&self.next, &self.tasks), &self.metadata, &self.interrupts)
    }
}

/// Where a snapshot stands: its checkpoint, the one before, what made it, in which step and when.
type Place<'a> =
    (Option<&'a CheckpointRef>, Option<&'a CheckpointRef>, Option<Source>, Option<i64>, Option<SystemTime>);

/// Of snapshots of all types of states.
fn to_json(
    values: &ShownState,
    (checkpoint, parent, source, step, created_at): Place<'_>,
    (next, tasks): (&[String], &[TaskSnapshot]),
    metadata: &BTreeMap<String, Value>,
    interrupts: &[Interrupt],
) -> Value {
    let label = |at: Option<&CheckpointRef>| at.map(|at| at.id.to_string());
    let tasks: Vec<Value> = tasks.iter().map(TaskSnapshot::to_json).collect();
    json!({
        "values": values.json(), "next": next, "checkpoint": label(checkpoint), "parent": label(parent),
        "source": source, "step": step, "created_at": created_at.map(utc), "metadata": metadata, "tasks": tasks,
        "interrupts": interrupts,
    })
}

/// As [`to_json`](StateSnapshot::to_json) gives it.
impl<S> serde::Serialize for StateSnapshot<S> {
    fn serialize<Z: serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<S> std::fmt::Debug for StateSnapshot<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

/// A task of the next step.
///
/// ```
/// use superstep::TaskSnapshot;
/// fn show(task: &TaskSnapshot) { println!("{}: {:?}", task.name, task.error); }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// The task.
    pub id: TaskId,
    /// Its node.
    pub name: String,
    /// What can wake it, as in [`TaskStart`](crate::TaskStart).
    pub triggers: Vec<String>,
    /// Its place in the order in which writes are merged, as in [`TaskRecord`](crate::TaskRecord).
    pub path: String,
    /// Its error, if it failed.
    pub error: Option<TaskError>,
    /// Its questions.
    pub interrupts: Vec<Interrupt>,
    /// Where its graph keeps its checkpoints, if the node is a graph; see [`Thread::subgraph`](crate::Thread::subgraph).
    pub namespace: Option<String>,
    /// The state of its graph, if that was [asked for](crate::Thread::state_with_subgraphs).
    pub subgraph: Option<Box<StateSnapshot>>,
    pub(crate) input: ShownInput,
    pub(crate) result: Option<ShownWrites>,
}

impl TaskSnapshot {
    /// What it is given, as JSON: the fields that its node sees, or what was sent to it.
    ///
    /// The steps that remain are those of a run that goes on from here with the usual `recursion_limit`.
    pub fn input(&self) -> Value {
        self.input.json()
    }

    /// What it wrote, as JSON; `None` if it has not finished.
    pub fn result(&self) -> Option<Value> {
        self.result.as_ref().map(|r| r.as_result())
    }

    fn state_json(&self) -> Option<Value> {
        let place = || self.namespace.as_ref().map(|namespace| json!({ "namespace": namespace }));
        self.subgraph.as_ref().map(|snapshot| snapshot.to_json()).or_else(place)
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id.to_string(), "name": self.name, "triggers": self.triggers, "path": self.path,
            "input": self.input(), "error": self.error.as_ref().map(|e| &e.message), "interrupts": self.interrupts,
            "result": self.result(), "state": self.state_json(),
        })
    }
}

impl std::fmt::Debug for TaskSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

/// A time in UTC, as RFC 3339 has it. What was before 1970 is shown as its first moment.
pub(crate) fn utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (since.as_secs(), since.subsec_micros());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+00:00")
}

/// The date that is so many days after 1 January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted in years that begin with March: a leap day is the last of its year, and 400 years are 146,097 days.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_shown_by_the_calendar() {
        let shown = |micros| utc(UNIX_EPOCH + Duration::from_micros(micros));
        assert_eq!(shown(0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(shown(951_782_399_000_001), "2000-02-28T23:59:59.000001+00:00");
        assert_eq!(shown(951_782_400_000_000), "2000-02-29T00:00:00.000000+00:00");
        assert_eq!(shown(1_767_323_045_678_901), "2026-01-02T03:04:05.678901+00:00");
        assert_eq!(shown(4_107_542_399_999_999), "2100-02-28T23:59:59.999999+00:00");
        assert_eq!(shown(4_107_542_400_000_000), "2100-03-01T00:00:00.000000+00:00");
        assert_eq!(utc(UNIX_EPOCH - Duration::from_secs(1)), shown(0));
    }
}
