//! Whether a task waited for something of its own.
//!
//! Questions of a step are given out in the order in which they were asked. Between tasks that did not wait that order is
//! the one of the tasks: how long the engine took to save what they did must not show. A graph inside a task, and a call
//! of a function, wait when their own nodes and functions do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::TaskContext;

/// What is known of a task's waiting.
#[derive(Default)]
pub(crate) struct Waiting {
    noted: AtomicBool,
    /// How many graphs and functions run inside the task: they tell for themselves.
    inside: AtomicUsize,
}

impl TaskContext {
    /// Whether it, or something inside it, waited.
    pub(crate) fn has_waited(&self) -> bool {
        self.waiting.noted.load(Ordering::Relaxed)
    }

    /// Notes that it waits, and so do the tasks around it.
    pub(crate) fn note_waiting(&self) {
        let mut at = Some(self);
        while let Some(task) = at {
            task.waiting.noted.store(true, Ordering::Relaxed);
            at = task.around.as_deref();
        }
    }

    /// Until the guard is dropped, something runs inside the task.
    pub(crate) fn enter(self: &Arc<Self>) -> Inside {
        self.waiting.inside.fetch_add(1, Ordering::Relaxed);
        Inside(self.clone())
    }
}

/// Something runs inside a task.
pub(crate) struct Inside(Arc<TaskContext>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.waiting.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whose future it is that waits: a task's, or that of a node without a context inside another task.
#[derive(Clone, Copy, Default)]
pub(crate) struct Waiter<'a> {
    pub(crate) task: Option<&'a TaskContext>,
    pub(crate) around: Option<&'a TaskContext>,
}

impl Waiter<'_> {
    /// The future is not ready.
    pub(crate) fn note(self) {
        match (self.task, self.around) {
            (Some(task), _) if task.waiting.inside.load(Ordering::Relaxed) > 0 => {}
            (Some(task), _) | (None, Some(task)) => task.note_waiting(),
            (None, None) => {}
        }
    }
}
