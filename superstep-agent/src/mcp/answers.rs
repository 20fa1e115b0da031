//! Finds the answer that a human gave to the same question before.
//!
//! Each question is asked in a scope of its own, named by its key, so answers find it whatever else is asked. A server
//! that does not say for which call it asks may tell one call of what another wants to know: such questions count for
//! the whole task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use superstep::{Context, Interrupted};

use super::elicitation::{Elicitation, ElicitationAnswer};

type Scopes = Mutex<HashMap<String, Context>>;

#[derive(Default)]
pub(super) struct KnownAnswers {
    tasks: Mutex<HashMap<String, Weak<Scopes>>>,
}

/// The questions of a call.
pub(super) struct Questions {
    task: Context,
    of_call: Scopes,
    of_task: Arc<Scopes>,
}

impl KnownAnswers {
    /// Those of a call; the calls of a task share what could be anybody's as long as one of them runs.
    pub(super) fn of(&self, cx: &Context) -> Questions {
        let task = format!("{}-{}", cx.idempotency_key(), cx.attempt());
        let mut tasks = lock(&self.tasks);
        let of_task = tasks.get(&task).and_then(Weak::upgrade).unwrap_or_default();
        tasks.retain(|_, scopes| scopes.strong_count() > 0);
        tasks.insert(task, Arc::downgrade(&of_task));
        Questions { task: cx.unscoped(), of_call: Scopes::default(), of_task }
    }
}

impl Questions {
    /// The answer to a question, which is surely one of this call or not.
    ///
    /// # Errors
    /// If there is none yet: the task pauses.
    pub(super) fn ask(&self, question: &Elicitation, is_named: bool) -> Result<ElicitationAnswer, Interrupted> {
        let scopes = if is_named { &self.of_call } else { &*self.of_task };
        let scope = lock(scopes).entry(question.key.clone()).or_insert_with(|| self.scope(question)).clone();
        let fits = |answer: &ElicitationAnswer| match &answer.key {
            Some(key) if *key != question.key => Err("it answers another question".to_owned()),
            _ => Ok(()),
        };
        scope.interrupt_checked(question, fits)
    }

    fn scope(&self, question: &Elicitation) -> Context {
        self.task.scoped("elicitation").scoped(&question.key)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
