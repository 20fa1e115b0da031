//! Every SQL text of superstep: constants, and functions that put a schema's quoted name into them.
//!
//! Values are always bound, never written into a text.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_cache;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_checkpoints;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_steps;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_store;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite_cache;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite_checkpoints;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite_store;

use super::Component;

/// What a PostgreSQL schema holds.
#[cfg(feature = "postgres")]
pub(crate) const POSTGRES: &[Component] =
    &[postgres_checkpoints::COMPONENT, postgres_store::COMPONENT, postgres_cache::COMPONENT];

/// What a SQLite database holds.
#[cfg(feature = "sqlite")]
pub(crate) const SQLITE: &[Component] =
    &[sqlite_checkpoints::COMPONENT, sqlite_store::COMPONENT, sqlite_cache::COMPONENT];
