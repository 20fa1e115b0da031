//! Channels: the merge rules, as types over JSON values and as functions over typed slots.
//!
//! A channel is told four things: the writes of a step (`update`, also with none), that its
//! readers ran (`consume`), that nothing else is left to run (`finish`), and to give what a
//! checkpoint must keep. The dynamic state and the low-level [`Pregel`](crate::Pregel) graph
//! are made of the types; derived states call the functions in [`typed`].

mod barrier;
mod operator;
mod reducer;
mod value;

use std::fmt;

use serde_json::Value;

use crate::error::InvalidUpdate;
use crate::state::{Change, FieldKind, Put};

pub use barrier::{LastValueAfterFinish, NamedBarrierValue, NamedBarrierValueAfterFinish};
pub use operator::{BinaryOperatorAggregate, DeltaChannel};
pub use reducer::JsonReducer;
pub use value::{AnyValue, EphemeralValue, LastValue, Topic, UntrackedValue};

/// A place for values with a rule for merging what is written to it.
///
/// ```
/// use serde_json::json;
/// use superstep::{Channel, LastValue, Put};
///
/// let mut channel = LastValue::default();
/// channel.update(vec![Put::merge(json!(1))])?;
/// assert_eq!(channel.get(), Some(&json!(1)));
/// assert!(channel.update(vec![Put::merge(json!(2)), Put::merge(json!(3))]).is_err());
/// # Ok::<(), superstep::InvalidUpdate>(())
/// ```
pub trait Channel: fmt::Debug + Send + Sync + 'static {
    /// The kind of field it makes.
    fn kind(&self) -> FieldKind;

    /// Merges the writes of one step, in order; none means a step without a write.
    ///
    /// # Errors
    /// If the rule refuses them.
    fn update(&mut self, writes: Vec<Put<Value>>) -> Result<Change, InvalidUpdate>;

    /// The value, if there is one to read.
    fn get(&self) -> Option<&Value>;

    /// Told after the nodes that the channel triggered have run.
    fn consume(&mut self) -> Change {
        Change::None
    }

    /// Told when nothing else is left to run.
    fn finish(&mut self) -> Change {
        Change::None
    }

    /// What a checkpoint keeps of it.
    fn checkpoint(&self) -> Option<Value>;

    /// The same channel holding what [`checkpoint`](Channel::checkpoint) gave.
    fn from_checkpoint(&self, saved: Option<Value>) -> Box<dyn Channel>;

    /// A copy with its value.
    fn copy(&self) -> Box<dyn Channel>;
}

impl Clone for Box<dyn Channel> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}
