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
//! | `derive` (default) | `#[derive(State)]` and `#[derive(Routes)]` |
//! | `schema` | JSON schema of states and inputs |
//! | `postgres` | stores, caches and databases in PostgreSQL |
//! | `postgres-tls` | encrypted connections to PostgreSQL |
//! | `sqlite` | stores, caches and databases in SQLite files |
//! | `svg` | drawings as SVG |
//! | `png` | drawings as PNG |
//! | `conformance` | suites that a checkpointer, store or cache of your own must pass |
//! | `compression` | `Seal::compress`: smaller values on disk |
//! | `encryption` | `Seal::encrypt`: values on disk that only your keys open |

// The layers: a module uses those above it, and none below it. `tests/it/tidy/layers.rs` reads this list.
mod names;
mod bits;
mod wall;
mod error;
mod blocking;
mod id;
mod value;
mod message;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod clock;
#[cfg_attr(
    not(any(feature = "fuzzing", feature = "postgres", feature = "sqlite")),
    expect(dead_code, reason = "it is for what keeps values on disk")
)]
mod seal;
mod state;
mod channel;
mod json;
mod workflow;
#[cfg(feature = "schema")]
mod schema;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod database;
mod checkpoint;
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
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

#[cfg(feature = "postgres")]
pub use cache::PostgresCache;
#[cfg(feature = "sqlite")]
pub use cache::SqliteCache;
pub use cache::{Cache, CacheError, CacheKey, MemoryCache};
pub use call::{
    Context, Goto, Interrupted, Next, NodeError, Resume, RetryPolicy, Routes as RouteList, RunControl, Send,
    TimeoutPolicy,
};
pub use channel::{
    AnyValue, BinaryOperatorAggregate, Channel, DeltaChannel, EphemeralValue, JsonReducer, LastValue,
    LastValueAfterFinish, NamedBarrierValue, NamedBarrierValueAfterFinish, Topic, UntrackedValue,
};
#[cfg(feature = "postgres")]
pub use checkpoint::PostgresSaver;
#[cfg(feature = "sqlite")]
pub use checkpoint::SqliteSaver;
pub use checkpoint::{
    CheckpointError, CheckpointErrorKind, CheckpointRecord, Checkpointer, Claim, Durability, Epoch, Few, FewIntoIter,
    FieldRecord, FieldValue, Interrupt, Lease, ListQuery, MemorySaver, Name, Prune, SavedCheckpoint, SavedField,
    Saving, Shape, SharedMap, Source, Swept, TaskRecord, WriteRecord,
};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use clock::Clock;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use database::DatabaseError;
#[cfg(feature = "postgres-tls")]
pub use database::PostgresTls;
#[cfg(feature = "sqlite")]
pub use database::SqliteDatabase;
#[cfg(feature = "postgres")]
pub use database::{PostgresBuilder, PostgresDatabase};
#[cfg(feature = "png")]
pub use draw::DrawError;
pub use draw::{Drawing, DrawnEdge, DrawnNode};
pub use error::{
    BoxError, BuildError, CodecError, CompilationError, Error, ErrorKind, Hint, InvalidUpdate, TaskError, Terminal,
    explain,
};
pub use func::{Calling, CompiledEntrypoint, EntryFn, Entrypoint, Final, IntoReturned, Returned, Task, TaskFn};
pub use graph::{
    CompiledStateGraph, IntoPath, IntoRoutes, JoinSources, MAX_LEVELS, MappedGraph, MessageGraph, NamedPath,
    NodeBuilder, ParallelNode, ParallelNodeBuilder, Pregel, PregelBuilder, RouteMap, StateGraph, StepFn,
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
pub use run::{EventStream, GoOn, IntoInput, Invoke, Output, Streaming};
#[cfg(feature = "schema")]
pub use schema::StateSchema;
#[cfg(feature = "compression")]
pub use seal::Compression;
#[cfg(feature = "encryption")]
pub use seal::{Key, KeyError, Keys};
pub use seal::{Seal, SealError};
pub use snapshot::{CheckpointRef, StateSnapshot, TaskSnapshot};
pub use state::{
    AddMessages, AgentState, AgentStateUpdate, Append, Change, Codec, Conversation, Difference, Field, FieldKind,
    FieldSpec, IntoUpdate, MaxReducer, Persist, Put, Reducer, ReducerFn, Replace, Scratch, State, Sum, Update,
};
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;
pub use store::{
    Clause, Comparison, Condition, Cursor, Embedder, FieldPath, Filter, Indexing, Item, MemoryStore, Metric, Namespace,
    NamespaceQuery, Near, NewItem, PutIf, PutOutcome, SearchPage, SearchQuery, Store, StoreError, StoreIndex, StoreOp,
    StoreReply, Ttl, TtlConfig,
};
#[cfg(feature = "postgres")]
pub use store::{PostgresStore, VectorSearch};
pub use stream::{
    DebugEvent, Event, EventData, MessageEvent, Mode, NodeUpdate, TaskEnd, TaskMetadata, TaskStart, ToolEvent, Values,
};
#[cfg(feature = "derive")]
pub use superstep_derive::{Routes, State};
pub use thread::{Fork, Revise, Superstep, Thread};
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

#[cfg(all(doctest, feature = "compression", feature = "encryption", feature = "sqlite"))]
#[doc = include_str!("../../docs/encryption.md")]
struct Encryption;
#[cfg(doctest)]
#[doc = include_str!("../../docs/migrations.md")]
struct Migrations;
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../docs/store.md")]
struct StoreGuide;

#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../docs/storage.md")]
struct StorageGuide;
