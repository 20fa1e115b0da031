//! Durable, typed agent graphs: describe a state, nodes and edges; superstep runs them in
//! supersteps, merges what they write through reducers, saves a checkpoint after every step,
//! and can pause for a human, resume, rewind, fork and stream.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use superstep::{MemorySaver, State, StateGraph, END, START};
//!
//! #[derive(State, Clone, Default, Serialize, Deserialize)]
//! struct Draft {
//!     topic: String,
//!     #[state(append)]
//!     lines: Vec<String>,
//! }
//!
//! async fn write(draft: Draft) -> DraftUpdate {
//!     Draft::update().lines([format!("a line about {}", draft.topic)])
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = StateGraph::<Draft>::new()
//!     .add_node("write", write)
//!     .add_edge(START, "write")
//!     .add_conditional_edges("write", |draft: &Draft| if draft.lines.len() < 3 { "write" } else { END })
//!     .checkpointer(MemorySaver::new())
//!     .compile()?;
//! let out = app.invoke(Draft::update().topic("tea")).thread("t1").await?;
//! assert_eq!(out.state.lines.len(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `derive` (default) | `#[derive(State)]`, `#[derive(Routes)]` and `#[debug_node]` |
//! | `schema` | JSON schema of states and inputs |
//! | `svg` | drawings as SVG |
//! | `png` | drawings as PNG |
//! | `conformance` | suites that a checkpointer, store or cache of your own must pass |
//!
//! Checkpoints, stores and caches in databases are crates of their own: `superstep-sqlite` and `superstep-postgres`.

// The layers: a module uses those above it, and none below it. `tests/it/tidy/layers.rs` reads this list.
mod debug;
mod names;
mod bits;
mod index;
mod wall;
mod error;
mod blocking;
mod id;
mod value;
mod message;
mod state;
mod channel;
mod json;
mod workflow;
#[cfg(feature = "schema")]
mod schema;
pub mod checkpoint;
pub mod store;
mod cache;
mod view;
mod draw;
mod snapshot;
mod stream;
mod call;
pub mod current;
mod plan;
mod engine;
mod node;
mod graph;
mod run;
mod thread;
mod func;
#[cfg(feature = "conformance")]
pub mod conformance;
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

#[doc(no_inline)]
pub use async_trait::async_trait;
pub use cache::{Cache, CacheError, CacheKey, MemoryCache};
pub use call::{
    Context, Goto, Interrupted, Next, NodeError, Resume, RetryPolicy, Routes as RouteList, RunControl, Send,
    TimeoutPolicy,
};
pub use channel::{
    AnyValue, BinaryOperatorAggregate, Channel, DeltaChannel, EphemeralValue, JsonReducer, LastValue,
    LastValueAfterFinish, NamedBarrierValue, NamedBarrierValueAfterFinish, Topic, UntrackedValue,
};
pub use checkpoint::{
    CheckpointError, CheckpointErrorKind, CheckpointRecord, Checkpointer, Claim, Deletion, Durability, Epoch,
    FieldRecord, FieldValue, Interrupt, Lease, ListQuery, MemorySaver, Prune, SavedCheckpoint, SavedField, Source,
    Swept, TaskRecord, WriteRecord,
};
#[cfg(feature = "png")]
pub use draw::DrawError;
pub use draw::{Drawing, DrawnEdge, DrawnNode};
pub use error::{
    BoxError, BuildError, CodecError, CompilationError, Error, ErrorKind, Hint, InvalidUpdate, TaskError, Terminal,
    explain,
};
pub use func::{Calling, CompiledEntrypoint, EntryFn, Entrypoint, Final, IntoReturned, Returned, Task, TaskFn};
pub use graph::{
    AnyGraph, CompiledStateGraph, GraphSchema, IntoPath, IntoRoutes, JoinSources, MAX_LEVELS, MappedGraph,
    MessageGraph, NamedPath, NodeBuilder, ParallelNode, ParallelNodeBuilder, PathTarget, Pregel, PregelBuilder,
    RouteMap, StateGraph, StepFn,
};
pub use id::{CheckpointId, InvalidId, RunId, TaskId};
pub use json::{JsonFields, JsonState, JsonWrite};
pub use message::{
    Block, Delta, DeltaPart, JsonMap, Media, MediaSource, Message, MessageAssembler, MessageChunk, MessageKind,
    MessageLike, RichMessage, Role, ToolAnswer, ToolCall, Usage, add_messages, normal_message,
};
pub use names::{END, START};
pub use node::{
    Agent, Attempt, CachePolicy, Command, EchoAgent, FromContext, FromInput, Handler, IntoNode, IntoOutcome, JsonInput,
    Narrow, Node, NodeDefaults, NodeInput, NodeOptions, Outcome, OutcomeResult, PartialAgent, Previous, Reached,
    RemainingSteps, RunConfig, Runtime, Sent, StateNode, StoreHandle, StreamWriter,
};
pub use plan::{Diagnostic, Migrated, SavedFields, Then};
pub use run::{
    EventStream, GoOn, IntoInput, Invoke, JsonCommand, JsonGoto, Output, RunHandle, RunOptions, RunStatus, Streaming,
    Watch,
};
#[cfg(feature = "schema")]
pub use schema::StateSchema;
pub use snapshot::{CheckpointRef, StateSnapshot, TaskSnapshot};
pub use state::{
    AddMessages, AgentState, AgentStateUpdate, Append, Change, Codec, Conversation, Difference, Field, FieldKind,
    FieldSpec, IntoUpdate, MaxReducer, Persist, Put, Reducer, ReducerFn, Replace, Scratch, State, Sum, Update,
};
pub use store::{
    Clause, Comparison, Condition, Cursor, Embedder, FieldPath, Filter, Indexing, Item, MemoryStore, Metric, Namespace,
    NamespaceQuery, Near, NewItem, PutIf, PutOutcome, SearchPage, SearchQuery, Store, StoreError, StoreIndex, StoreOp,
    StoreReply, Ttl, TtlConfig,
};
pub use stream::{
    DebugEvent, Event, EventData, MessageEvent, Mode, NodeUpdate, TaskEnd, TaskMetadata, TaskStart, ToolEvent, Values,
};
#[cfg(feature = "derive")]
pub use superstep_derive::{Routes, State, debug_node};
pub use thread::{Fork, IntoChange, Revise, Superstep, Thread};
pub use tokio_util::sync::CancellationToken;
pub use value::{Blob, Payload};
pub use view::Form;
pub use workflow::{
    LastWriteWins, LogEntry, Logged, MergeStrategy, MutationLog, StateMutation, Workflow, WorkflowError, WorkflowState,
};

/// Keeps its body if superstep is built with feature `schema`.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! __schema {
    ($($body:tt)*) => { $($body)* };
}

/// Keeps its body if superstep is built with feature `schema`.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __schema {
    ($($body:tt)*) => {};
}

#[cfg(doctest)]
#[doc = include_str!("../../docs/from-langgraph.md")]
struct FromLangGraph;

#[cfg(doctest)]
#[doc = include_str!("../../docs/encryption.md")]
struct Encryption;
#[cfg(doctest)]
#[doc = include_str!("../../docs/nodes.md")]
struct NodesGuide;
#[cfg(doctest)]
#[doc = include_str!("../../docs/migrations.md")]
struct Migrations;
#[cfg(doctest)]
#[doc = include_str!("../../docs/store.md")]
struct StoreGuide;

#[cfg(doctest)]
#[doc = include_str!("../../docs/storage.md")]
struct StorageGuide;
