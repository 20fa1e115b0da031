//! The log outside of the database. Lines of several processes stand in the order in which they were written.
//!
//! ```text
//! claimed THREAD EPOCH             a worker was given a thread
//! start THREAD TASK EPOCH PROGRESS a task begins, of a node or a function, on a state that is so far
//! ask THREAD ID EPOCH              a worker is about to save a checkpoint, or what a task wrote
//! saved THREAD TASK EPOCH          a task's result was acknowledged
//! checkpoint THREAD ID EPOCH       a checkpoint was acknowledged
//! taken THREAD ID EPOCH            what was asked for was acknowledged
//! fenced THREAD ID EPOCH           what was asked for was refused, because another worker has the thread
//! shown THREAD task TASK EPOCH     whoever watches was shown that a task has ended, and was promised that it stays so
//! shown THREAD checkpoint ID EPOCH the same of a checkpoint
//! shown THREAD state N EPOCH       the same of a state that is so far
//! killed BATCH                     the worker of these threads is dead
//! ```

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::Result;

pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }

    /// Adds a line or several, in one write.
    pub(crate) fn add(&self, lines: &str) {
        (&self.0).write_all(format!("{lines}\n").as_bytes()).expect("the log can be written to");
    }
}
