//! What one run of a scenario shares: the scenario, what is kept outside of the graph, and side effects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use superstep::{Checkpointer, CompilationError, CompiledStateGraph, JsonState, MemoryCache, MemoryStore, Task};
use superstep_sqlite::DatabaseError;

use crate::build;
use crate::saver::{Keeper, Kind};
use crate::scenario::Scenario;

pub(crate) type App = CompiledStateGraph<JsonState>;

/// What survives a restart, and the graphs that nodes call.
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    keeper: Mutex<Option<Keeper>>,
    pub(crate) store: MemoryStore,
    pub(crate) cache: MemoryCache,
    effects: Mutex<Effects>,
    subgraphs: Mutex<HashMap<String, App>>,
    tasks: Mutex<HashMap<String, Task<Value, Value>>>,
}

/// Effects of nodes that no graph knows of.
#[derive(Default)]
struct Effects {
    counters: BTreeMap<String, i64>,
    /// How often each `fail` was reached.
    attempts: HashMap<String, u64>,
    /// The messages that were raised.
    raised: HashSet<String>,
}

impl World {
    pub(crate) async fn new(scenario: Scenario, kind: Kind) -> Result<Arc<Self>, DatabaseError> {
        let keeper = if scenario.checkpointer { Some(Keeper::new(kind).await?) } else { None };
        Ok(Arc::new(Self {
            keeper: Mutex::new(keeper),
            scenario,
            store: MemoryStore::new(),
            cache: MemoryCache::new(),
            effects: Mutex::default(),
            subgraphs: Mutex::default(),
            tasks: Mutex::default(),
        }))
    }

    /// Where checkpoints are kept, if the scenario keeps any.
    pub(crate) fn saver(&self) -> Option<Arc<dyn Checkpointer>> {
        lock(&self.keeper).as_ref().map(Keeper::saver)
    }

    /// Closes and opens the database, and forgets all graphs, so that they are built again.
    pub(crate) async fn restart(&self) -> Result<(), DatabaseError> {
        lock(&self.subgraphs).clear();
        lock(&self.tasks).clear();
        let keeper = lock(&self.keeper).take();
        if let Some(keeper) = keeper {
            let reopened = keeper.reopen().await?;
            *lock(&self.keeper) = Some(reopened);
        }
        Ok(())
    }

    /// Leaves nothing behind.
    pub(crate) async fn end(&self) -> Result<(), DatabaseError> {
        let keeper = lock(&self.keeper).take();
        match keeper {
            Some(keeper) => keeper.remove().await,
            None => Ok(()),
        }
    }

    /// A named graph, built when it is first asked for; `None` if the scenario has none of that name.
    pub(crate) fn subgraph(self: &Arc<Self>, name: &str) -> Option<Result<App, CompilationError>> {
        if let Some(app) = lock(&self.subgraphs).get(name) {
            return Some(Ok(app.clone()));
        }
        let app = build::subgraph(self, name, self.scenario.subgraphs.get(name)?);
        if let Ok(app) = &app {
            lock(&self.subgraphs).insert(name.to_owned(), app.clone());
        }
        Some(app)
    }

    pub(crate) fn add_task(&self, name: &str, task: Task<Value, Value>) {
        lock(&self.tasks).insert(name.to_owned(), task);
    }

    pub(crate) fn task(&self, name: &str) -> Option<Task<Value, Value>> {
        lock(&self.tasks).get(name).cloned()
    }

    pub(crate) fn count(&self, counter: &str) {
        *lock(&self.effects).counters.entry(counter.to_owned()).or_default() += 1;
    }

    pub(crate) fn counter(&self, counter: &str) -> i64 {
        lock(&self.effects).counters.get(counter).copied().unwrap_or_default()
    }

    pub(crate) fn counters(&self) -> BTreeMap<String, i64> {
        lock(&self.effects).counters.clone()
    }

    /// Notes that the `fail` at this place was reached, and says for which time.
    pub(crate) fn attempt(&self, place: &str) -> u64 {
        let mut effects = lock(&self.effects);
        let attempts = effects.attempts.entry(place.to_owned()).or_default();
        *attempts += 1;
        *attempts
    }

    pub(crate) fn raise(&self, message: &str) {
        lock(&self.effects).raised.insert(message.to_owned());
    }

    /// Whether a `fail` raised this message.
    pub(crate) fn has_raised(&self, message: &str) -> bool {
        lock(&self.effects).raised.contains(message)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
