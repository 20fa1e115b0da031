//! Checkpoints, long-term memory and cached results of [superstep] in SQLite: in a file, for several processes, or in memory.
//!
//! ```
//! use superstep::{AgentState, EchoAgent, Message, START, StateGraph};
//! use superstep_sqlite::SqliteSaver;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::env::temp_dir().join(format!("superstep-sqlite-doc-{}.db", std::process::id()));
//! let mut graph = StateGraph::<AgentState>::new();
//! graph.add_node("echo", EchoAgent).add_edge(START, "echo");
//! let app = graph.checkpointer(SqliteSaver::open(&path)?).compile()?;
//! app.invoke(AgentState { messages: vec![Message::user("tea")] }).thread("ada").await?;
//!
//! let state = app.thread("ada").state().await?;
//! assert_eq!(state.state.messages.len(), 2);
//! # drop(app);
//! # std::fs::remove_file(&path)?;
//! # Ok(())
//! # }
//! ```
//!
//! One [`SqliteDatabase`] can hold all three: a [`SqliteSaver`], a [`SqliteStore`] and a [`SqliteCache`].
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `compression` | `Seal::compress`: smaller values on disk |
//! | `encryption` | `Seal::encrypt`: values on disk that only your keys open |

// The layers: a module uses those above it, and none below it.
mod sql;
mod database;
mod saver;
mod store;
mod cache;

pub use self::cache::SqliteCache;
pub use self::database::SqliteDatabase;
pub use self::saver::SqliteSaver;
pub use self::store::SqliteStore;
#[cfg(feature = "compression")]
#[doc(no_inline)]
pub use superstep_storage::Compression;
#[doc(no_inline)]
pub use superstep_storage::{Clock, DatabaseError, Seal, SealError};
#[cfg(feature = "encryption")]
#[doc(no_inline)]
pub use superstep_storage::{Key, KeyError, Keys};
