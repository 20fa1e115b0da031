//! Changes of a thread by hand: one update, a fork, or several steps at once.

use std::marker::PhantomData;
use std::pin::Pin;

use super::Thread;
use crate::call::AnyOutcome;
use crate::engine::Revision;
use crate::error::{Error, ErrorKind};
use crate::node::{IntoOutcome, Outcome};
use crate::run::IntoInput;
use crate::snapshot::CheckpointRef;
use crate::state::State;
use crate::wall::{caught, words_of};

fn outcome<S: State>(update: impl IntoOutcome<S>) -> Result<AnyOutcome, Error> {
    let outcome = caught(|| update.into_outcome()).map_err(|panicked| {
        Error::new(ErrorKind::Panic, format!("what the thread is to be changed by panicked: {panicked}"))
    })?;
    outcome.map(Outcome::erased).map_err(|e| Error::new(ErrorKind::InvalidUpdate, words_of(&*e)))
}

/// A change of a thread's state; await it.
///
/// ```
/// # use superstep::{AgentState, AgentStateUpdate, CheckpointRef, Error, Message, Thread};
/// # async fn f(thread: Thread<AgentState>) -> Result<CheckpointRef, Error> {
/// thread.update(AgentStateUpdate { messages: Some(vec![Message::user("hi")]) }).as_node("chat").await
/// # }
/// ```
#[must_use = "an update does nothing until it is awaited"]
pub struct Revise<S: State> {
    thread: Thread<S>,
    outcome: Result<AnyOutcome, Error>,
    as_node: Option<String>,
}

crate::debug::debug_parts!([S: State] Revise<S>, "Revise", this => { thread: this.thread.name(), as_node: this.as_node });

impl<S: State> Revise<S> {
    pub(super) fn new(thread: Thread<S>, update: impl IntoOutcome<S>) -> Self {
        Self { thread, outcome: outcome(update), as_node: None }
    }

    /// The node that the update is from: its edges decide what runs next.
    pub fn as_node(mut self, node: impl Into<String>) -> Self {
        self.as_node = Some(node.into());
        self
    }
}

impl<S: State> IntoFuture for Revise<S> {
    type Output = Result<CheckpointRef, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.thread.revise(Revision::AsNodes(vec![(self.as_node, self.outcome?)])).await })
    }
}

/// A change of a thread that gives the thread at the result, to go on from there; await it.
///
/// ```
/// # use superstep::{AgentState, CheckpointId, Error, Message, Output, Thread};
/// # async fn f(thread: Thread<AgentState>, before: CheckpointId) -> Result<Output<AgentState>, Error> {
/// let fork = thread.at(before).fork(vec![Message::user("hello")]).as_node("chat").await?;
/// fork.resume().await
/// # }
/// ```
#[must_use = "a fork does nothing until it is awaited"]
pub struct Fork<S: State>(pub(super) Revise<S>);

crate::debug::debug_parts!([S: State] Fork<S>, "Fork", this => { update: this.0 });

impl<S: State> Fork<S> {
    /// The node that the update is from: its edges decide what runs next.
    pub fn as_node(self, node: impl Into<String>) -> Self {
        Self(self.0.as_node(node))
    }
}

impl<S: State> IntoFuture for Fork<S> {
    type Output = Result<Thread<S>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let thread = self.0.thread.clone();
            Ok(thread.at(self.0.await?.id))
        })
    }
}

/// One step of [`Thread::bulk_update`].
///
/// ```
/// # use superstep::{AgentState, CheckpointRef, Error, Message, Superstep, Thread};
/// # async fn f(thread: Thread<AgentState>) -> Result<CheckpointRef, Error> {
/// thread.bulk_update([
///     Superstep::input(AgentState { messages: vec![Message::user("hi")] }),
///     Superstep::updates([(vec![Message::assistant("hello")], "greet"), (vec![Message::assistant("tea?")], "offer")]),
///     Superstep::clear_tasks(),
/// ]).await
/// # }
/// ```
pub struct Superstep<S: State>(Result<Revision, Error>, PhantomData<fn(S)>);

crate::debug::debug_parts!([S: State] Superstep<S>, "Superstep", this => { error: this.0.as_ref().err() });

impl<S: State> Superstep<S> {
    /// An update as if the node that ran last had made it.
    pub fn update(update: impl IntoOutcome<S>) -> Self {
        Self(outcome(update).map(|outcome| Revision::AsNodes(vec![(None, outcome)])), PhantomData)
    }

    /// Updates as if these nodes had made them side by side.
    pub fn updates<U: IntoOutcome<S>, N: Into<String>>(updates: impl IntoIterator<Item = (U, N)>) -> Self {
        let updates = updates.into_iter().map(|(update, node)| Ok((Some(node.into()), outcome(update)?)));
        Self(updates.collect::<Result<_, _>>().map(Revision::AsNodes), PhantomData)
    }

    /// An input that is put in and not run; as [`Thread::update_as_input`].
    pub fn input<M>(input: impl IntoInput<S, M>) -> Self {
        Self(Ok(Revision::AsInput(input.into_input())), PhantomData)
    }

    /// Drops what is left to do; as [`Thread::clear_tasks`].
    pub fn clear_tasks() -> Self {
        Self(Ok(Revision::End), PhantomData)
    }

    /// Copies the checkpoint and puts in updates as if these nodes had made them; as [`Thread::copy_with`].
    pub fn copy_with<U: IntoOutcome<S>, N: Into<String>>(updates: impl IntoIterator<Item = (U, N)>) -> Self {
        let updates = updates.into_iter().map(|(update, node)| Ok((node.into(), outcome(update)?)));
        Self(updates.collect::<Result<_, _>>().map(Revision::Copy), PhantomData)
    }

    pub(super) fn into_revision(self) -> Result<Revision, Error> {
        self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.0, Ok(Revision::AsNodes(updates)) if updates.is_empty())
    }
}
