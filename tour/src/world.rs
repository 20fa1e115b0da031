//! The world outside the graph: it counts the calls that really reach it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps a record of every tool call; clones share it.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Records>>);

#[derive(Default)]
struct Records {
    process: usize,
    calls: Vec<Record>,
}

struct Record {
    process: usize,
    tool: String,
    finished: bool,
}

/// What became of a tool in a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was not called.
    NotCalled,
    /// It was called, and the process was lost before it answered.
    CutOff,
    /// It was called and answered.
    Finished,
}

impl World {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on, calls come from another process.
    pub(crate) fn next_process(&self) {
        self.records().process += 1;
    }

    /// A tool was called.
    pub(crate) fn enter(&self, tool: &str) -> usize {
        let mut records = self.records();
        let record = Record { process: records.process, tool: tool.to_owned(), finished: false };
        records.calls.push(record);
        records.calls.len() - 1
    }

    /// It answered.
    pub(crate) fn leave(&self, call: usize) {
        self.records().calls[call].finished = true;
    }

    /// All tools ever called, in the order of their first calls.
    pub(crate) fn tools(&self) -> Vec<String> {
        let mut tools: Vec<String> = Vec::new();
        for call in &self.records().calls {
            if !tools.contains(&call.tool) {
                tools.push(call.tool.clone());
            }
        }
        tools
    }

    /// What became of a tool in a process.
    pub(crate) fn fate(&self, process: usize, tool: &str) -> Fate {
        match self.records().calls.iter().find(|c| c.process == process && c.tool == tool) {
            None => Fate::NotCalled,
            Some(call) if call.finished => Fate::Finished,
            Some(_) => Fate::CutOff,
        }
    }

    /// How often a tool was called, in all processes.
    pub(crate) fn count(&self, tool: &str) -> usize {
        self.records().calls.iter().filter(|c| c.tool == tool).count()
    }
}
