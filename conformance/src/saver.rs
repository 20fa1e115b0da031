//! Where the checkpoints of a scenario are kept.

use std::str::FromStr;
use std::sync::Arc;

use superstep::{Checkpointer, MemorySaver};

/// The kinds of checkpointer that a scenario can be run with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Kind {
    #[default]
    Memory,
}

impl Kind {
    /// An empty checkpointer of this kind.
    pub(crate) fn open(self) -> Arc<dyn Checkpointer> {
        match self {
            Self::Memory => Arc::new(MemorySaver::new()),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "memory" => Ok(Self::Memory),
            other => Err(format!("checkpointer `{other}` is not known here; there is `memory`")),
        }
    }
}
