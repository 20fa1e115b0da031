//! Where a task stands with its questions and its calls.
//!
//! Answers are saved as a list, those to the task's own questions in their order; if it has scopes, as an object of that
//! list and of what each scope has. What people answered is always inside, so no answer can pass for it. A scope that
//! waits is saved too, so that the next answer finds it.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{NullResume, Scope, TaskContext};
use crate::call::ParentCommand;
use crate::checkpoint::Interrupt;
use crate::id::interrupt_id;

/// Where a task stands with its questions and its calls.
#[derive(Default)]
pub(crate) struct Answering {
    /// The answers it has.
    has: Answers,
    asked: usize,
    /// How many answers this attempt has used, if it used any.
    used: Option<usize>,
    /// The questions it waits for, in the order in which what asks was begun.
    pub(crate) open: Option<Vec<Interrupt>>,
    /// The place of each open question in that order.
    places: Vec<usize>,
    /// How many questions were asked, and graphs and functions begun, in this attempt.
    begun: usize,
    /// A command for the parent graph that came out of a graph called inside.
    pub(crate) parent: Option<ParentCommand>,
    /// An answer did not fit: the attempt counts as if it had not been given.
    pub(crate) bad_answer: bool,
    pub(crate) calls: usize,
    subgraphs: HashMap<String, usize>,
}

/// The answers that a task has been given.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    /// Those to its own questions, in order.
    pub(crate) given: Vec<Value>,
    scopes: BTreeMap<String, InScope>,
}

impl Answers {
    /// As they are saved.
    pub(crate) fn to_value(&self) -> Value {
        if self.scopes.is_empty() {
            return Value::Array(self.given.clone());
        }
        serde_json::to_value(self).expect("answers are JSON, and the keys of scopes are text")
    }

    /// As they were saved.
    pub(crate) fn from_value(saved: Value) -> Result<Self, String> {
        match saved {
            Value::Array(given) => Ok(Self { given, ..Self::default() }),
            scoped => serde_json::from_value(scoped).map_err(|e| format!("answers: {e}")),
        }
    }
}

/// Where a scope stands.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct InScope {
    /// The answers to its own questions, in order.
    given: Vec<Value>,
    /// Whether it waits for an answer to a question of its own.
    waits: bool,
    /// The questions of a graph called in it that wait.
    inside: Vec<String>,
    /// Answers for that graph, kept until it is called again: another scope may end the task before.
    kept: BTreeMap<String, Value>,
}

impl InScope {
    /// Takes the answers that came for what it waits for.
    fn take_answers(&mut self, namespace: &str, by_id: Option<&BTreeMap<String, Value>>, unaddressed: &NullResume) {
        let find = |id: &str| by_id.and_then(|map| map.get(id).cloned()).or_else(|| unaddressed.take());
        if std::mem::take(&mut self.waits) {
            self.given.extend(find(&interrupt_id(namespace, self.given.len())));
        }
        for id in std::mem::take(&mut self.inside) {
            self.kept.extend(find(&id).map(|answer| (id, answer)));
        }
    }
}

impl Answering {
    /// With the answers that were saved, and those that came now.
    pub(crate) fn new(
        mut saved: Answers,
        namespace: &str,
        by_id: Option<&BTreeMap<String, Value>>,
        unaddressed: &NullResume,
    ) -> Self {
        for (key, scope) in &mut saved.scopes {
            scope.take_answers(&scoped_namespace(namespace, key), by_id, unaddressed);
        }
        let ids = [interrupt_id(namespace, saved.given.len()), interrupt_id(namespace, 0)];
        saved.given.extend(by_id.and_then(|map| ids.iter().find_map(|id| map.get(id)).cloned()));
        Self { has: saved, ..Self::default() }
    }

    /// Makes ready for another attempt: questions count from the first again.
    pub(super) fn begin_attempt(&mut self) {
        (self.asked, self.used, self.calls, self.begun) = (0, None, 0, 0);
        self.places.clear();
        (self.open, self.parent, self.bad_answer) = (None, None, false);
        self.has.scopes.values_mut().for_each(|scope| (scope.waits, scope.inside) = (false, Vec::new()));
    }

    /// The place of a question, or of a graph or function that may ask, among those of the task.
    pub(crate) fn begin(&mut self) -> usize {
        self.begun += 1;
        self.begun
    }

    /// The answer to the task's next question; if there is none yet, the question is open.
    pub(super) fn ask(&mut self, question: Value, task: &TaskContext) -> Option<Value> {
        let ix = self.asked;
        self.asked += 1;
        if ix >= self.has.given.len() {
            let Some(answer) = task.null_resume.take() else {
                let id = interrupt_id(&task.namespace, self.has.given.len());
                let place = self.begin();
                self.wait_for(place, [Interrupt::new(id, question)]);
                return None;
            };
            self.has.given.push(answer);
        }
        self.used = Some(ix + 1);
        Some(self.has.given[ix].clone())
    }

    /// The same for the next question of a scope.
    pub(super) fn ask_in(&mut self, scope: &Scope, question: Value, task: &TaskContext) -> Option<Value> {
        let ix = scope.next_question();
        let known = self.has.scopes.entry(scope.key().to_owned()).or_default();
        if ix >= known.given.len() {
            let Some(answer) = task.null_resume.take() else {
                known.waits = true;
                let id = interrupt_id(&scoped_namespace(&task.namespace, scope.key()), known.given.len());
                let place = self.begin();
                self.wait_for(place, [Interrupt::new(id, question)]);
                return None;
            };
            known.given.push(answer);
        }
        Some(known.given[ix].clone())
    }

    /// The answer that was given last does not fit: it counts as not given.
    pub(super) fn take_back(&mut self, scope: Option<&Scope>) {
        self.bad_answer = true;
        match scope.and_then(|scope| Some((self.has.scopes.get_mut(scope.key())?, scope.last_question()))) {
            Some((known, place)) => {
                known.given.truncate(place);
                known.waits = true;
            }
            None => self.used = self.used.map(|used| used - 1).filter(|used| *used > 0),
        }
    }

    /// The answers that were kept for a graph that is called in a scope now.
    pub(crate) fn take_kept(&mut self, scope: Option<&Scope>) -> BTreeMap<String, Value> {
        let known = scope.and_then(|scope| self.has.scopes.get_mut(scope.key()));
        known.map(|known| std::mem::take(&mut known.kept)).unwrap_or_default()
    }

    /// A graph or function called inside asks, which was begun at this place.
    pub(crate) fn wait_inside(&mut self, scope: Option<&Scope>, place: usize, questions: Vec<Interrupt>) {
        if let Some(scope) = scope {
            let known = self.has.scopes.entry(scope.key().to_owned()).or_default();
            known.inside = questions.iter().map(|question| question.id.clone()).collect();
        }
        self.wait_for(place, questions);
    }

    /// Keeps questions open beside those that others ask in the same task: graphs inside may run at once. Of a task's
    /// own questions the first is kept, because they are answered one after another.
    fn wait_for(&mut self, place: usize, questions: impl IntoIterator<Item = Interrupt>) {
        let open = self.open.get_or_insert_default();
        for question in questions {
            if open.iter().all(|known| known.id != question.id) {
                let at = self.places.partition_point(|known| *known <= place);
                self.places.insert(at, place);
                open.insert(at, question);
            }
        }
    }

    /// How many graphs were called before in this scope.
    pub(crate) fn count_subgraph(&mut self, scope: Option<&Scope>) -> usize {
        let count = self.subgraphs.entry(scope.map_or("", |scope| scope.key()).to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    /// The answers that this attempt used, to be saved.
    pub(crate) fn to_save(&self) -> Option<Answers> {
        let used = match self.used {
            None if self.has.scopes.is_empty() => return None,
            used => used.unwrap_or(self.has.given.len()),
        };
        Some(Answers { given: self.has.given[..used].to_vec(), scopes: self.has.scopes.clone() })
    }
}

/// The namespace that names the questions of a scope, and the graphs called in it: the id of the task is longer by it.
pub(crate) fn scoped_namespace(namespace: &str, scope: &str) -> String {
    format!("{namespace}.{}", scope.replace(['|', ':'], "_"))
}
