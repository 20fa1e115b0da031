//! The second stage: attributes as lists of entries, and what each entry means by itself.

mod container;
mod entry;
mod field;
pub(crate) mod serde;

pub(crate) use container::{ContainerAttr, container};
pub(crate) use entry::entries;
pub(crate) use field::{FieldAttr, Kind, Rule, field};
