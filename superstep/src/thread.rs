//! Threads: one durable conversation each, looked at, rewound, forked and changed.

mod change;
mod housekeeping;
mod log;

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use change::Step;
pub use change::{Fork, IntoChange, Revise, Superstep};

use crate::checkpoint::{Checkpointer, Durability, ListQuery};
use crate::engine::{Looking, Reading, Revision, Saver, revise, snapshot_of};
use crate::error::{Error, ErrorKind};
use crate::graph::{AnyGraph, CompiledStateGraph};
use crate::id::{CheckpointId, IdSource};
use crate::plan::{GraphCore, Persistence};
use crate::run::{GoOn, IntoInput, Invoke, Streaming};
use crate::snapshot::{CheckpointRef, StateSnapshot};
use crate::state::State;
use crate::view::Form;
use crate::wall::{Walled, boxed};

/// A thread of a graph, or one of its checkpoints.
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, EchoAgent, MemorySaver, Message, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo")
///     .checkpointer(MemorySaver::new()).compile()?;
/// app.invoke(AgentState { messages: vec![Message::user("hi")] }).thread("t").await?;
///
/// let thread = app.thread("t");
/// let history = thread.history().await?;
/// let before_echo = history[1].checkpoint.clone().expect("it was saved");
/// let fork = thread.at(before_echo.id).fork(AgentStateUpdate { messages: Some(vec![Message::user("hello")]) }).await?;
/// let out = fork.resume().await?;
/// assert_eq!(out.state.messages.last().unwrap().text(), "hello");
/// # Ok(())
/// # }
/// ```
pub struct Thread<S = Value> {
    place: Place,
    state: PhantomData<fn() -> S>,
}

/// The same without the form of the state: all that a thread does is done here.
#[derive(Clone)]
struct Place {
    graph: GraphCore,
    name: Arc<str>,
    namespace: String,
    checkpoint: Option<CheckpointId>,
    checkpointer: Option<Arc<dyn Checkpointer>>,
}

impl<S> From<Place> for Thread<S> {
    fn from(place: Place) -> Self {
        Self { place, state: PhantomData }
    }
}

impl<S> Clone for Thread<S> {
    fn clone(&self) -> Self {
        self.place.clone().into()
    }
}

impl<S> std::fmt::Debug for Thread<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place { name, namespace, checkpoint, .. } = &self.place;
        let mut shown = f.debug_struct("Thread");
        shown.field("name", name).field("namespace", namespace).field("checkpoint", checkpoint);
        shown.finish_non_exhaustive()
    }
}

impl GraphCore {
    fn thread_place(&self, name: String) -> Place {
        let (name, checkpointer) = (name.into(), self.checkpointer());
        Place { graph: self.clone(), name, namespace: String::new(), checkpoint: None, checkpointer }
    }

    fn checkpointer(&self) -> Option<Arc<dyn Checkpointer>> {
        match &self.persistence {
            Persistence::In(checkpointer) => Some(checkpointer.clone()),
            _ => None,
        }
    }
}

impl AnyGraph {
    /// A thread of this graph.
    pub fn thread(&self, name: impl Into<String>) -> Thread {
        self.core.thread_place(name.into()).into()
    }
}

impl<S: State> CompiledStateGraph<S> {
    /// A thread of this graph.
    pub fn thread(&self, name: impl Into<String>) -> Thread<S> {
        self.core.thread_place(name.into()).into()
    }

    /// The state of a thread; the same as `thread(name).state()`.
    ///
    /// # Errors
    /// If the graph has no checkpointer, or reading fails.
    pub async fn get_state(&self, thread: impl Into<String>) -> Result<StateSnapshot<S>, Error> {
        self.thread(thread).state().await
    }

    /// The history of a thread, newest first; the same as `thread(name).history()`.
    ///
    /// # Errors
    /// If the graph has no checkpointer, or reading fails.
    pub async fn get_state_history(&self, thread: impl Into<String>) -> Result<Vec<StateSnapshot<S>>, Error> {
        self.thread(thread).history().await
    }

    /// Changes the state of a thread as if `as_node` had returned the update.
    ///
    /// # Errors
    /// If there is no such node, or the update does not fit.
    pub async fn update_state<M>(
        &self,
        thread: impl Into<String>,
        update: impl IntoChange<S, M>,
        as_node: Option<&str>,
    ) -> Result<CheckpointRef, Error> {
        let revision = self.thread(thread).update(update);
        match as_node {
            Some(node) => revision.as_node(node).await,
            None => revision.await,
        }
    }

    /// Makes several steps by hand; the same as `thread(name).bulk_update(steps)`.
    ///
    /// # Errors
    /// If there is no step, a node is unknown, or an update does not fit.
    pub async fn bulk_update_state(
        &self,
        thread: impl Into<String>,
        steps: impl IntoIterator<Item = Superstep<S>>,
    ) -> Result<CheckpointRef, Error> {
        self.thread(thread).bulk_update(steps).await
    }
}

impl<S> Thread<S> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.place.name
    }

    /// The same thread at one of its checkpoints.
    pub fn at(&self, checkpoint: CheckpointId) -> Thread<S> {
        Place { checkpoint: Some(checkpoint), ..self.place.clone() }.into()
    }

    /// The part of the thread that a graph inside has, to look at it and change it, typed or as JSON. `namespace` says which,
    /// as [`TaskSnapshot::namespace`](crate::TaskSnapshot) does.
    ///
    /// # Errors
    /// If no graph keeps its checkpoints there, or its state has another form than `C`.
    pub fn subgraph<C: Form>(&self, namespace: impl Into<String>) -> Result<Thread<C>, Error> {
        let place = self.place.inside(namespace.into())?;
        if C::is_form_of(place.graph.plan.ty.as_any()) {
            return Ok(place.into());
        }
        let (graph, asked) = (&place.graph.plan.name, std::any::type_name::<C>());
        Err(Error::invalid(format!("the states of graph `{graph}` are no `{asked}`")))
    }

    /// Drops what is left to do.
    ///
    /// # Errors
    /// If saving fails.
    pub async fn clear_tasks(&self) -> Result<CheckpointRef, Error> {
        boxed(|| self.place.revise(Revision::End)).await
    }

    /// Copies this checkpoint (or the latest) beside itself; it becomes the latest.
    ///
    /// # Errors
    /// If there is nothing to copy.
    pub async fn copy(&self) -> Result<Thread<S>, Error> {
        let at = boxed(|| self.place.revise(Revision::Copy(Vec::new()))).await?;
        Ok(self.at(at.id))
    }

    /// Makes several steps by hand; each becomes a checkpoint.
    ///
    /// # Errors
    /// If there is no step, a node is unknown, or an update does not fit. Steps before the one that fails stay.
    pub async fn bulk_update(&self, steps: impl IntoIterator<Item = Superstep<S>>) -> Result<CheckpointRef, Error> {
        let steps = steps.into_iter().map(Superstep::into_step).collect();
        boxed(|| self.place.bulk_update(steps)).await
    }

    /// Puts in an input without running it: the next run begins the graph with it, beside what the thread waits for.
    ///
    /// Nothing is dropped: an open question is asked again, and what failed is tried again, in the step in which the input is
    /// merged. [`clear_tasks`](Thread::clear_tasks) drops these first.
    ///
    /// ```
    /// use superstep::{Entrypoint, MemorySaver};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let double = Entrypoint::new("double", async |n: i64| n * 2).checkpointer(MemorySaver::new()).compile();
    /// let thread = double.thread("t");
    /// thread.update_as_input(4).await?;
    /// assert_eq!(thread.resume().await?.get::<i64>()?, 8);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is no input, or it is none for the graph.
    pub async fn update_as_input<M>(&self, input: impl IntoInput<S, M>) -> Result<CheckpointRef, Error> {
        let revision = Revision::AsInput(input.into_input().of(&self.place.graph));
        boxed(|| self.place.revise(revision)).await
    }

    /// Runs the graph on this thread, from this checkpoint if it is one; await the result.
    ///
    /// The thread of a subgraph cannot go on by itself: run that of the graph around it.
    pub fn invoke<M>(&self, input: impl IntoInput<S, M>) -> Invoke<S> {
        let input = input.into_input().of(&self.place.graph);
        let run = Invoke::new(self.place.graph.clone(), input).thread(self.name());
        if !self.place.namespace.is_empty() {
            return run.refused("a subgraph resumes with the graph around it; resume that graph's thread");
        }
        match self.place.checkpoint {
            Some(id) => run.checkpoint(id),
            None => run,
        }
    }

    /// The same, and shows what happens.
    pub fn stream<M>(&self, input: impl IntoInput<S, M>) -> Streaming<S> {
        Streaming(self.invoke(input))
    }
}

impl<S: Form> Thread<S> {
    /// The state at this checkpoint, or now.
    ///
    /// Now, what finished tasks of an unfinished step wrote is in the values; at a checkpoint, the
    /// values are those that its step started from.
    ///
    /// # Errors
    /// If the graph has no checkpointer, there is no such checkpoint, or reading fails; or if what finished tasks wrote cannot
    /// be merged, as the run of that step found. [`history`](Thread::history) shows it then, and
    /// [`update`](Thread::update) lets the thread go on.
    pub async fn state(&self) -> Result<StateSnapshot<S>, Error> {
        Ok(boxed(|| self.place.look(false)).await?.typed())
    }

    /// The same with the states of subgraphs that wait.
    ///
    /// # Errors
    /// As [`state`](Thread::state).
    pub async fn state_with_subgraphs(&self) -> Result<StateSnapshot<S>, Error> {
        Ok(boxed(|| self.place.look(true)).await?.typed())
    }

    /// All checkpoints, newest first. Values that are nested too deep to be read are left out, and named in
    /// [`unreadable`](StateSnapshot::unreadable).
    ///
    /// # Errors
    /// If the graph has no checkpointer, or reading fails.
    pub async fn history(&self) -> Result<Vec<StateSnapshot<S>>, Error> {
        self.history_with(ListQuery::new()).await
    }

    /// The checkpoints that a query asks for, newest first.
    ///
    /// # Errors
    /// If the graph has no checkpointer, or reading fails.
    pub async fn history_with(&self, query: ListQuery) -> Result<Vec<StateSnapshot<S>>, Error> {
        let found = boxed(|| self.place.history(query)).await?;
        Ok(found.into_iter().map(StateSnapshot::typed).collect())
    }

    /// Resumes: from the latest checkpoint with what is left to do, or again from this one.
    pub fn resume(&self) -> Invoke<S> {
        self.invoke(GoOn)
    }
}

impl<S> Thread<S> {
    /// Changes the state; await it, after saying as which node if that is not clear. If a field is nested too deep to be
    /// read, it must be among those that are written.
    pub fn update<M>(&self, update: impl IntoChange<S, M>) -> Revise<S> {
        Revise::new(self.clone(), update.into_change())
    }

    /// Changes the state of this checkpoint and gives the thread at the result, to go on from there; await it,
    /// after saying as which node if that is not clear.
    pub fn fork<M>(&self, update: impl IntoChange<S, M>) -> Fork<S> {
        Fork(self.update(update))
    }

    /// Copies a checkpoint and puts in updates as if these nodes had made them.
    ///
    /// # Errors
    /// If there is nothing to copy, or an update does not fit.
    pub async fn copy_with<U: IntoChange<S, M>, N: Into<String>, M>(
        &self,
        updates: impl IntoIterator<Item = (U, N)>,
    ) -> Result<Thread<S>, Error> {
        let step = Superstep::copy_with(updates).into_step();
        let at = boxed(|| self.place.bulk_update(vec![step])).await?;
        Ok(self.at(at.id))
    }
}

impl Place {
    /// The same thread in a graph inside.
    fn inside(&self, namespace: String) -> Result<Place, Error> {
        let below = namespace.strip_prefix(&self.namespace).map(|below| below.trim_start_matches('|'));
        let Some(graph) = below.and_then(|below| self.graph.at(below)).cloned() else {
            return Err(Error::invalid(format!(
                "the graph has none inside that keeps its checkpoints under `{namespace}`"
            )));
        };
        let (name, checkpointer) = (self.name.clone(), self.checkpointer.clone());
        Ok(Place { graph, name, namespace, checkpoint: None, checkpointer })
    }

    fn saver(&self) -> Result<Saver, Error> {
        let checkpointer = self.checkpointer.clone().ok_or_else(no_checkpointer)?;
        if !self.graph.plan.ty.can_persist() {
            return Err(no_checkpointer());
        }
        let (namespace, ids) = (self.graph.history_namespace(&self.namespace), Arc::new(IdSource::new()));
        Ok(Saver::new(checkpointer, self.name.clone(), namespace, Durability::Sync, ids, None))
    }

    fn no_such_checkpoint(&self, id: CheckpointId) -> Error {
        Error::invalid(format!("thread `{}` has no checkpoint {id}", self.name))
    }

    async fn look(&self, deep: bool) -> Result<StateSnapshot<()>, Error> {
        self.behind_wall("reading the state", boxed(|| self.look_up(deep))).await
    }

    /// Code that is not superstep's own may panic in the states that are read and changed, and in the checkpointer.
    async fn behind_wall<T>(
        &self,
        doing: &str,
        work: Pin<Box<dyn Future<Output = Result<T, Error>> + Send + '_>>,
    ) -> Result<T, Error> {
        Walled::new(work).await.unwrap_or_else(|panicked| {
            let words = format!("{doing} of thread `{}` panicked: {panicked}", self.name);
            Err(Error::new(ErrorKind::Panic, words))
        })
    }

    async fn look_up(&self, deep: bool) -> Result<StateSnapshot<()>, Error> {
        let saver = self.saver()?;
        let saved = (*saver.checkpointer).get(&saver.thread, &saver.namespace, self.checkpoint).await?;
        if let (None, Some(id)) = (&saved, self.checkpoint) {
            return Err(self.no_such_checkpoint(id));
        }
        let looking = Looking { live: self.checkpoint.is_none(), deep, reading: Reading::Whole };
        snapshot_of(&self.graph, &saver, saved, looking).await
    }

    async fn history(&self, query: ListQuery) -> Result<Vec<StateSnapshot<()>>, Error> {
        self.behind_wall("reading the history", boxed(|| self.read_history(query))).await
    }

    async fn read_history(&self, mut query: ListQuery) -> Result<Vec<StateSnapshot<()>>, Error> {
        let saver = self.saver()?;
        query.only = query.only.or(self.checkpoint);
        let found = (*saver.checkpointer).list(&saver.thread, &saver.namespace, &query).await?;
        let mut history = Vec::with_capacity(found.len());
        for saved in found {
            let looking = Looking { live: false, deep: false, reading: Reading::WithoutTooDeep };
            history.push(snapshot_of(&self.graph, &saver, Some(saved), looking).await?);
        }
        Ok(history)
    }

    async fn revise(&self, revision: Revision) -> Result<CheckpointRef, Error> {
        let mut saver = self.saver()?;
        let revised = boxed(|| revise(&self.graph, &mut saver, self.checkpoint, revision));
        let id = self.behind_wall("a change", revised).await?;
        let parents = std::collections::BTreeMap::new();
        Ok(CheckpointRef { thread: self.name.to_string(), namespace: saver.namespace.to_string(), id, parents })
    }

    async fn bulk_update(&self, steps: Vec<Step>) -> Result<CheckpointRef, Error> {
        let empty = || Error::invalid("a bulk update needs at least one step, and every step at least one update");
        let steps = steps.into_iter().map(|step| step.of(&self.graph)).collect::<Result<Vec<_>, Error>>()?;
        if steps.iter().any(|step| matches!(step, Revision::AsNodes(updates) if updates.is_empty())) {
            return Err(empty());
        }
        let mut at: Option<CheckpointRef> = None;
        for step in steps {
            let checkpoint = at.as_ref().map(|at| at.id).or(self.checkpoint);
            at = Some(Place { checkpoint, ..self.clone() }.revise(step).await?);
        }
        at.ok_or_else(empty)
    }
}

fn no_checkpointer() -> Error {
    Error::invalid("the graph has no checkpointer; give it one with `.checkpointer(..)`")
}
