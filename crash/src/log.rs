//! The log outside of the database. Lines of several processes stand in the order in which they were written.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::Result;

pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }

    /// Adds a line, in one write.
    pub(crate) fn add(&self, line: &str) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).expect("the log can be written to");
    }
}
