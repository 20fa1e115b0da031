//! Every SQL text of this crate: constants, and functions that put a schema's quoted name into them. Values are always
//! bound, never written into a text.

pub(crate) mod cache;
pub(crate) mod checkpoints;
pub(crate) mod database;
pub(crate) mod steps;
pub(crate) mod store;

use superstep_storage::database::Component;

/// What a schema holds.
pub(crate) const ALL: &[Component] = &[checkpoints::COMPONENT, store::COMPONENT, cache::COMPONENT];
