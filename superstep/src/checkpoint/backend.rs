//! What a backend need not write itself: the rules that all checkpointers keep, as functions of plain values.
//!
//! A [`Checkpointer`](crate::Checkpointer) of one's own keeps four things: the epoch of each thread, the latest checkpoint
//! of each namespace, checkpoints by id, and what tasks wrote under them. A save finds [`Facts`] and does what they
//! [decide](Facts::decide_put), in one transaction; a checkpoint is kept as a [`KeptCheckpoint`] and read back by
//! [`assemble`]; what tasks wrote comes together by [`merge_tasks`]. [`encode_record`] and [`decode_record`] make bytes of
//! all of that. The tests of superstep have a backend on redb of this kind, and the suite of the feature `conformance`
//! tells whether one is right.
//!
//! ```
//! use superstep::checkpoint::backend::{KeptCheckpoint, assemble, decode_record, encode_record};
//! use superstep::{Blob, CheckpointId, CheckpointRecord, FieldRecord, FieldValue, Source};
//!
//! let note = |text: &str| Blob::from(text.as_bytes());
//! let notes = |value| vec![FieldRecord::new("notes", value)];
//! let (one, two) = (CheckpointId::from_u128(1 << 64), CheckpointId::from_u128(2 << 64));
//! let first = CheckpointRecord::new(one, Source::Loop, 0).with_fields(notes(FieldValue::Whole(note("[]"))));
//! let first = KeptCheckpoint::new(first, None);
//! let second = CheckpointRecord::new(two, Source::Loop, 1).with_fields(notes(FieldValue::Tail(vec![note("tea")])));
//! let second = KeptCheckpoint::new(second.with_base(Some(one)), Some(&first));
//!
//! let bytes = encode_record(&second)?;
//! let second: KeptCheckpoint = decode_record(&bytes)?;
//! let saved = assemble([second, first], Vec::new());
//! assert_eq!(saved.fields()[0].whole(), Some(&note("[]")));
//! assert_eq!(saved.fields()[0].tail(), [note("tea")]);
//! # Ok::<(), superstep::CheckpointError>(())
//! ```

mod decide;
mod kept;
mod removal;
mod tasks;

pub use super::check_name;
pub use super::prune::Kept;
pub use decide::{Decision, Facts, Successor};
pub use kept::{KeptCheckpoint, assemble, decode_record, encode_record};
pub use removal::{CheckpointSummary, Deletion, plan_prune};
pub use tasks::{merge_runs, merge_task, merge_tasks};
