//! Finds the answer that a human gave to the same question before.
//!
//! A run gives a task its answers in the order in which they came. Calls that run side by side may ask in another order
//! when they run again, so answers carry the key of their question, and those for others are kept for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use superstep::{Context, Interrupted};

use super::elicitation::{Elicitation, ElicitationAnswer};

type Answers = Mutex<Vec<ElicitationAnswer>>;

#[derive(Default)]
pub(super) struct KnownAnswers {
    tasks: Mutex<HashMap<String, Weak<Answers>>>,
}

/// The answers that a task has had and not used.
pub(super) struct TaskAnswers {
    cx: Context,
    kept: Arc<Answers>,
}

impl KnownAnswers {
    /// Those of a task; its calls share them as long as one of them runs.
    pub(super) fn of(&self, cx: &Context) -> TaskAnswers {
        let task = format!("{}-{}", cx.idempotency_key(), cx.attempt());
        let mut tasks = lock(&self.tasks);
        let kept = tasks.get(&task).and_then(Weak::upgrade).unwrap_or_default();
        tasks.retain(|_, kept| kept.strong_count() > 0);
        tasks.insert(task, Arc::downgrade(&kept));
        TaskAnswers { cx: cx.clone(), kept }
    }
}

impl TaskAnswers {
    /// The answer to a question.
    ///
    /// # Errors
    /// If there is none yet: the task pauses.
    pub(super) fn ask(&self, question: &Elicitation) -> Result<ElicitationAnswer, Interrupted> {
        let mut kept = lock(&self.kept);
        if let Some(at) = kept.iter().position(|answer| answer.key.as_ref() == Some(&question.key)) {
            return Ok(kept.remove(at));
        }
        loop {
            let answer: ElicitationAnswer = self.cx.interrupt(question)?;
            if answer.key.as_ref().is_none_or(|key| *key == question.key) {
                return Ok(answer);
            }
            kept.push(answer);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
