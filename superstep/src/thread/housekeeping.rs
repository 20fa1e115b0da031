//! Whole threads: listed, copied, pruned and forgotten.

use std::sync::Arc;

use super::{Place, Thread};
use crate::checkpoint::{Checkpointer, Prune};
use crate::error::Error;
use crate::graph::CompiledStateGraph;
use crate::state::State;

impl<S> Thread<S> {
    /// Forgets old checkpoints of the thread, and says how many. The latest always stays, and those that stay keep
    /// their values, what was written, and open questions.
    ///
    /// ```
    /// # use superstep::{AgentState, EchoAgent, MemorySaver, Message, Prune, StateGraph, START};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), superstep::BoxError> {
    /// # let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo")
    /// #     .checkpointer(MemorySaver::new()).compile()?;
    /// app.invoke(AgentState { messages: vec![Message::user("hi")] }).thread("t").await?;
    /// assert_eq!(app.thread("t").prune(Prune::keep_last(1)).await?, 2);
    /// assert_eq!(app.thread("t").state().await?.state.messages.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the graph has no checkpointer, or pruning fails.
    pub async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        Ok(self.kept_in()?.prune(self.name(), &prune).await?)
    }

    /// Copies the thread with its history to a name that no thread has. Both go on independently.
    ///
    /// ```
    /// # use superstep::{AgentState, EchoAgent, MemorySaver, Message, StateGraph, START};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), superstep::BoxError> {
    /// # let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo")
    /// #     .checkpointer(MemorySaver::new()).compile()?;
    /// app.invoke(AgentState { messages: vec![Message::user("hi")] }).thread("t").await?;
    /// let copy = app.thread("t").copy_to("what if").await?;
    /// copy.invoke(AgentState { messages: vec![Message::user("hello")] }).await?;
    /// assert_eq!(copy.state().await?.state.messages.len(), 4);
    /// assert_eq!(app.thread("t").state().await?.state.messages.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If there is nothing to copy, there is a thread of that name, or copying fails.
    pub async fn copy_to(&self, name: impl Into<String>) -> Result<Thread<S>, Error> {
        let name: Arc<str> = name.into().into();
        if name.is_empty() {
            return Err(Error::invalid("the copy of a thread needs a name with at least one character"));
        }
        if *name == *self.name() {
            return Err(Error::invalid(format!("the copy of thread `{name}` needs another name than its own")));
        }
        self.kept_in()?.copy_thread(self.name(), &name).await?;
        Ok(Place { name, ..self.place.clone() }.into())
    }

    /// Forgets the thread; a run that is on it ends with an error that [is fenced](Error::is_fenced).
    ///
    /// # Errors
    /// If the graph has no checkpointer, or deleting fails.
    pub async fn delete(&self) -> Result<(), Error> {
        Ok(self.kept_in()?.delete_thread(self.name()).await?)
    }

    fn kept_in(&self) -> Result<&Arc<dyn Checkpointer>, Error> {
        self.place.checkpointer.as_ref().ok_or_else(super::no_checkpointer)
    }
}

impl<S: State> CompiledStateGraph<S> {
    /// At most `limit` names of threads, sorted, beginning after one; all threads of the checkpointer, whichever graph
    /// they are of.
    ///
    /// ```
    /// # use superstep::{AgentState, EchoAgent, MemorySaver, Message, StateGraph, START};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), superstep::BoxError> {
    /// # let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo")
    /// #     .checkpointer(MemorySaver::new()).compile()?;
    /// for name in ["ada", "bob", "cyd"] {
    ///     app.invoke(AgentState { messages: vec![Message::user("hi")] }).thread(name).await?;
    /// }
    /// let page = app.threads(None, 2).await?;
    /// assert_eq!(page, ["ada", "bob"]);
    /// assert_eq!(app.threads(page.last().map(String::as_str), 2).await?, ["cyd"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the graph has no checkpointer, or reading fails.
    pub async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, Error> {
        Ok(self.kept_in()?.threads(after, limit).await?)
    }

    /// Forgets a thread; the same as `thread(name).delete()`.
    ///
    /// # Errors
    /// As [`Thread::delete`].
    pub async fn delete_thread(&self, name: impl Into<String>) -> Result<(), Error> {
        self.thread(name).delete().await
    }

    /// Copies a thread; the same as `thread(from).copy_to(to)`.
    ///
    /// # Errors
    /// As [`Thread::copy_to`].
    pub async fn copy_thread(&self, from: impl Into<String>, to: impl Into<String>) -> Result<Thread<S>, Error> {
        self.thread(from).copy_to(to).await
    }

    /// Forgets old checkpoints of several threads, and says how many; the same as `thread(name).prune(..)` for each.
    ///
    /// # Errors
    /// As [`Thread::prune`]. Threads before the one that fails have been pruned.
    pub async fn prune<N: Into<String>>(
        &self,
        threads: impl IntoIterator<Item = N>,
        prune: Prune,
    ) -> Result<usize, Error> {
        let mut forgotten = 0;
        for name in threads {
            forgotten += self.thread(name).prune(prune).await?;
        }
        Ok(forgotten)
    }

    /// Forgets the checkpoints that runs with these ids made, in all threads, and says how many.
    ///
    /// Runs get their ids by [`run_id`](crate::Invoke::run_id). What stays keeps its values: a checkpoint that a later
    /// run made from a forgotten one has all its fields.
    ///
    /// ```
    /// # use superstep::{AgentState, EchoAgent, MemorySaver, Message, StateGraph, START};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), superstep::BoxError> {
    /// # let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo")
    /// #     .checkpointer(MemorySaver::new()).compile()?;
    /// app.invoke(AgentState { messages: vec![Message::user("hi")] }).thread("t").run_id("try 1").await?;
    /// assert_eq!(app.delete_for_runs(["try 1"]).await?, 3);
    /// assert!(app.thread("t").state().await?.checkpoint.is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If the graph has no checkpointer, or deleting fails. Runs before the one that fails have been forgotten.
    pub async fn delete_for_runs(&self, runs: impl IntoIterator<Item: Into<String>>) -> Result<usize, Error> {
        let saver = self.kept_in()?;
        let mut forgotten = 0;
        for run in runs {
            forgotten += saver.delete_run(&run.into()).await?;
        }
        Ok(forgotten)
    }

    fn kept_in(&self) -> Result<Arc<dyn Checkpointer>, Error> {
        self.core.checkpointer().ok_or_else(super::no_checkpointer)
    }
}
