//! Every SQL text of this crate. Values are always bound, never written into a text.

pub(crate) mod cache;
pub(crate) mod checkpoints;
pub(crate) mod database;
pub(crate) mod store;

use superstep_storage::database::Component;

/// What a database holds.
pub(crate) const ALL: &[Component] = &[checkpoints::COMPONENT, store::COMPONENT, cache::COMPONENT];
