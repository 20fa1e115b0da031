//! What a batch comes to for each key, so that all keys can be written at once.

use std::collections::BTreeMap;

use superstep::StoreReply;
use superstep::store::backend::{PreparedOp, PreparedPut};
use superstep_storage::items::bytes_of;

/// A namespace as bytes, and a key in it.
pub(super) type Name = (Vec<u8>, String);

/// The changes of a batch by key.
#[derive(Default)]
pub(super) struct Changes(pub(super) BTreeMap<Name, Change>);

/// What becomes of one key.
#[derive(Default)]
pub(super) struct Change {
    /// What was there is deleted first.
    pub(super) deleted: bool,
    pub(super) put: Option<Put>,
}

/// The last put of a key.
pub(super) struct Put {
    /// The version of the first put since the key was deleted: its place, if it is new.
    pub(super) first_version: u64,
    pub(super) version: u64,
    pub(super) item: PreparedPut,
}

impl Changes {
    /// Follows the writes in their order; puts get the versions after `last_version`, which their replies tell.
    pub(super) fn of(ops: Vec<PreparedOp>, replies: &mut [StoreReply], mut last_version: u64) -> Self {
        let mut changes = Self::default();
        for (op, reply) in ops.into_iter().zip(replies) {
            match op {
                PreparedOp::Put(item) => {
                    last_version += 1;
                    *reply = StoreReply::Stored(last_version);
                    changes.put(*item, last_version);
                }
                PreparedOp::Delete { namespace, key } => {
                    changes.0.insert((bytes_of(&namespace), key), Change { deleted: true, put: None });
                }
                PreparedOp::Get { .. } | PreparedOp::Search(_) | PreparedOp::ListNamespaces(_) => {}
            }
        }
        changes
    }

    fn put(&mut self, item: PreparedPut, version: u64) {
        let change = self.0.entry((bytes_of(&item.namespace), item.key.clone())).or_default();
        let first_version = change.put.as_ref().map_or(version, |put| put.first_version);
        change.put = Some(Put { first_version, version, item });
    }
}
