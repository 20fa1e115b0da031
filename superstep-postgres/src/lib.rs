//! Checkpoints, long-term memory and cached results of [superstep] in PostgreSQL, shared by all processes that use them.
//!
//! ```no_run
//! use superstep::{AgentState, EchoAgent, Message, START, StateGraph};
//! use superstep_postgres::{PostgresDatabase, PostgresSaver, PostgresStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let database = PostgresDatabase::connect("postgres://agent:secret@db.example.com/agents").await?;
//! let mut graph = StateGraph::<AgentState>::new();
//! graph.add_node("echo", EchoAgent).add_edge(START, "echo");
//! graph.checkpointer(PostgresSaver::new(&database)).store(PostgresStore::new(&database));
//! let app = graph.compile()?;
//! app.invoke(AgentState { messages: vec![Message::user("tea")] }).thread("ada").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `tls` | encrypted connections |
//! | `compression` | `Seal::compress`: smaller values on disk |
//! | `encryption` | `Seal::encrypt`: values on disk that only your keys open |

// The layers: a module uses those above it, and none below it.
mod sql;
mod database;
mod saver;
mod store;
mod cache;

pub use self::cache::PostgresCache;
#[cfg(feature = "tls")]
pub use self::database::PostgresTls;
pub use self::database::{PostgresBuilder, PostgresDatabase};
pub use self::saver::PostgresSaver;
pub use self::store::{PostgresStore, VectorSearch};
#[cfg(feature = "compression")]
#[doc(no_inline)]
pub use superstep_storage::Compression;
#[doc(no_inline)]
pub use superstep_storage::{Clock, DatabaseError, Seal, SealError};
#[cfg(feature = "encryption")]
#[doc(no_inline)]
pub use superstep_storage::{Key, KeyError, Keys};
