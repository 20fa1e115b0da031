//! What a caller may say about a run, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::Durability;
use crate::id::{CheckpointId, RunId};
use crate::snapshot::CheckpointRef;
use crate::stream::Mode;

/// What a caller may say about a run, as data: to be kept, sent, and given to [`Invoke::options`](crate::Invoke::options).
///
/// ```
/// use superstep::{Mode, RunOptions};
/// let options: RunOptions = serde_json::from_value(serde_json::json!({ "thread": "t1", "modes": ["values", "custom"] }))?;
/// assert_eq!(options, RunOptions::new().thread("t1").modes([Mode::Values, Mode::Custom]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunOptions {
    /// The thread to run on.
    pub thread: Option<String>,
    /// The checkpoint of the thread to start from.
    pub checkpoint: Option<CheckpointId>,
    /// The checkpoint to start from, in a subgraph too; it says the thread as well.
    pub at: Option<CheckpointRef>,
    /// The most steps that the run may take.
    pub recursion_limit: Option<usize>,
    /// When steps are saved.
    pub durability: Option<Durability>,
    /// What a stream shows.
    pub modes: Option<Vec<Mode>>,
    /// Whether a stream shows events of subgraphs.
    pub subgraphs: bool,
    /// How many events wait for a slow reader.
    pub buffer: Option<usize>,
    /// The nodes to stop before.
    pub interrupt_before: Option<Vec<String>>,
    /// The nodes to stop after.
    pub interrupt_after: Option<Vec<String>>,
    /// The fields to show.
    pub output_keys: Option<Vec<String>>,
    /// The most tasks that run at once.
    pub max_concurrency: Option<usize>,
    /// What is said about the run.
    pub metadata: BTreeMap<String, Value>,
    /// The tags of the run.
    pub tags: Vec<String>,
    /// What the run is called.
    pub run_name: Option<String>,
    /// The id of the run.
    pub run_id: Option<RunId>,
    /// What nodes may ask for, as the graph's [`context_schema`](crate::StateGraph::context_schema) reads it.
    pub context: Option<Value>,
}

/// The options of all runs.
macro_rules! run_options {
    ($self:ident => $options:expr) => {
        /// The thread to run on; needed with a checkpointer.
        pub fn thread(mut $self, thread: impl Into<String>) -> Self {
            $options.thread = Some(thread.into());
            $self
        }

        /// Starts from this checkpoint of the thread instead of the latest.
        pub fn checkpoint(mut $self, checkpoint: CheckpointId) -> Self {
            $options.checkpoint = Some(checkpoint);
            $self
        }

        /// Starts with a subgraph at one of its checkpoints, as a snapshot of it says.
        pub fn at(mut $self, at: &crate::CheckpointRef) -> Self {
            $options.at = Some(at.clone());
            $self
        }

        /// The most steps that the run may take, 10,007 unless said otherwise. As in LangGraph the run must be over before
        /// the last of them: with new input, N steps need a limit of N + 1.
        pub fn recursion_limit(mut $self, limit: usize) -> Self {
            $options.recursion_limit = Some(limit);
            $self
        }

        /// When steps are saved. Without a checkpointer nothing is, and a warning in the log says so.
        pub fn durability(mut $self, durability: Durability) -> Self {
            $options.durability = Some(durability);
            $self
        }

        /// Stops before these nodes, instead of where the graph says; `"*"` stands for all.
        ///
        /// It is about the graph that is run. A graph inside stops where it says itself
        /// ([`StateGraph::interrupt_before`](crate::StateGraph::interrupt_before)): names of its nodes are ignored with a warning.
        pub fn interrupt_before<N: Into<String>>(mut $self, nodes: impl IntoIterator<Item = N>) -> Self {
            $options.interrupt_before = Some(nodes.into_iter().map(Into::into).collect());
            $self
        }

        /// Stops after these nodes, instead of where the graph says; `"*"` stands for all.
        ///
        /// It is about the graph that is run. A graph inside stops where it says itself
        /// ([`StateGraph::interrupt_after`](crate::StateGraph::interrupt_after)): names of its nodes are ignored with a warning.
        pub fn interrupt_after<N: Into<String>>(mut $self, nodes: impl IntoIterator<Item = N>) -> Self {
            $options.interrupt_after = Some(nodes.into_iter().map(Into::into).collect());
            $self
        }

        /// The fields to show, instead of the graph's output.
        pub fn output_keys<N: Into<String>>(mut $self, fields: impl IntoIterator<Item = N>) -> Self {
            $options.output_keys = Some(fields.into_iter().map(Into::into).collect());
            $self
        }

        /// The most tasks that run at once: nodes, tasks that were sent, and calls of [`Task`](crate::Task)s inside them.
        ///
        /// It holds for each graph of the run by itself: a graph inside a node has as many places of its own. A task that
        /// waits while its own calls are under way gives its place to them and takes one again when they have ended, so no
        /// limit keeps a run from its end.
        pub fn max_concurrency(mut $self, tasks: usize) -> Self {
            $options.max_concurrency = Some(tasks);
            $self
        }

        /// Says something about the run; kept in its checkpoints.
        pub fn metadata(mut $self, key: impl Into<String>, value: impl Into<Value>) -> Self {
            $options.metadata.insert(key.into(), value.into());
            $self
        }

        /// Marks the run: its tasks and streamed messages show the tag, and nodes can read it. With the tag `nostream`
        /// what models say and what happens to calls of tools is not streamed; what nodes return or push is.
        pub fn tag(self, tag: impl Into<String>) -> Self {
            self.tags([tag])
        }

        /// Marks the run with several tags more.
        pub fn tags<T: Into<String>>(mut $self, tags: impl IntoIterator<Item = T>) -> Self {
            for tag in tags.into_iter().map(Into::into) {
                if !$options.tags.contains(&tag) {
                    $options.tags.push(tag);
                }
            }
            $self
        }

        /// Names the run; one that nobody names gets a random id.
        pub fn run_id(mut $self, id: impl Into<RunId>) -> Self {
            $options.run_id = Some(id.into());
            $self
        }

        /// Says what the run is called: nodes and spans show it.
        pub fn run_name(mut $self, name: impl Into<String>) -> Self {
            $options.run_name = Some(name.into());
            $self
        }
    };
}

/// The options of streams.
macro_rules! stream_options {
    ($self:ident => $options:expr) => {
        /// Shows one more thing.
        pub fn mode(self, mode: Mode) -> Self {
            self.modes([mode])
        }

        /// Shows several things more; nothing at all if there is none.
        pub fn modes(mut $self, modes: impl IntoIterator<Item = Mode>) -> Self {
            $options.modes.get_or_insert_default().extend(modes);
            $self
        }

        /// Shows events of subgraphs too.
        pub fn subgraphs(mut $self) -> Self {
            $options.subgraphs = true;
            $self
        }

        /// How many events wait for a slow reader before the run waits too; 64 unless said otherwise.
        pub fn buffer(mut $self, events: usize) -> Self {
            $options.buffer = Some(events);
            $self
        }
    };
}

/// What cannot be written down: it stands beside the options.
macro_rules! beside_options {
    ($self:ident => $options:expr) => {
        /// Takes all options at once, in the place of those that were set before.
        pub fn options(mut $self, options: RunOptions) -> Self {
            $options.given = options;
            $self
        }

        /// Something that nodes may ask for by its type, as [`Runtime`](crate::Runtime); the last of a type counts.
        ///
        /// A node that asks for a type that was not given fails with an error that names what was. A context that nobody has
        /// asked for when the run comes to its end is named in a warning in the log.
        pub fn context<T: Any + Send + Sync>(mut $self, context: T) -> Self {
            $options.contexts.retain(|given| !given.is::<T>());
            $options.contexts.push(GivenContext::new(context));
            $self
        }

        /// A control that can ask the run to stop at the next checkpoint.
        pub fn control(mut $self, control: RunControl) -> Self {
            $options.control = Some(control);
            $self
        }

        /// Cancels the whole run, subgraphs included.
        pub fn cancellation(mut $self, token: CancellationToken) -> Self {
            $options.cancel = Some(token);
            $self
        }
    };
}

pub(super) use {beside_options, run_options, stream_options};

impl RunOptions {
    /// Nothing said.
    pub fn new() -> Self {
        Self::default()
    }

    run_options!(self => self);
    stream_options!(self => self);

    /// What nodes may ask for, as the graph's [`context_schema`](crate::StateGraph::context_schema) reads it.
    pub fn context(mut self, context: Value) -> Self {
        self.context = Some(context);
        self
    }
}
