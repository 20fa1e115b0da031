//! Commands as updates: states that change through mutations of their own.
//!
//! A mutation knows how to change its state; the engine applies mutations in task order,
//! saves them as pending writes and streams them as updates. A checkpoint holds the
//! projection that the state chooses, never the run-time parts.

use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Change, CodecError, FieldKind, FieldSpec, IntoUpdate, Persist, Put, Scratch, State, Update};
use crate::error::{BoxError, InvalidUpdate};

/// A command that changes a state.
///
/// ```
/// use superstep::StateMutation;
///
/// #[derive(Debug)]
/// enum Step { Add(u32) }
/// impl StateMutation<u32> for Step {
///     fn apply(self, state: &mut u32) {
///         let Step::Add(n) = self;
///         *state += n;
///     }
///     fn combine(self, other: Self) -> Option<Self> {
///         let (Step::Add(a), Step::Add(b)) = (self, other);
///         Some(Step::Add(a + b))
///     }
/// }
/// let mut n = 1;
/// Step::Add(2).combine(Step::Add(3)).expect("they add up").apply(&mut n);
/// assert_eq!(n, 6);
/// ```
pub trait StateMutation<S>: Sized + Send + Sync + Debug {
    /// Changes the state.
    fn apply(self, state: &mut S);

    /// Joins this mutation with the one after it, to apply both at once; `None` keeps them apart,
    /// which is why it takes copies.
    fn combine(self, _other: Self) -> Option<Self> {
        None
    }
}

/// A state that changes through mutations, and knows what of it to save.
///
/// Wrap it in [`Workflow`] to use it in a graph.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use superstep::{StateMutation, Workflow, WorkflowState, StateGraph, START};
///
/// #[derive(Clone, Default)]
/// struct Count { n: u32, cache: Vec<String> }      // the cache is not saved
///
/// #[derive(Debug, Clone, Serialize, Deserialize)]
/// enum Mutation { Add(u32) }
/// impl StateMutation<Count> for Mutation {
///     fn apply(self, state: &mut Count) { let Mutation::Add(n) = self; state.n += n; }
/// }
///
/// impl WorkflowState for Count {
///     type Checkpoint = u32;
///     type Mutation = Mutation;
///     fn snapshot(&self) -> u32 { self.n }
///     fn restore(n: u32) -> Self { Count { n, cache: vec![] } }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<Workflow<Count>>::new()
///     .add_node("add", async |s: Workflow<Count>| Workflow::<Count>::mutate([Mutation::Add(s.n + 1)]))
///     .add_edge(START, "add")
///     .compile()?;
/// assert_eq!(app.invoke(Workflow::<Count>::mutate([Mutation::Add(20)])).await?.state.n, 41);
/// # Ok(())
/// # }
/// ```
pub trait WorkflowState: Clone + Send + Sync {
    /// What a checkpoint holds.
    type Checkpoint: Serialize + DeserializeOwned + Clone + Send;
    /// The commands that change the state.
    type Mutation: StateMutation<Self>;

    /// The projection to save.
    fn snapshot(&self) -> Self::Checkpoint;

    /// The state from a saved projection; run-time parts are made anew.
    fn restore(checkpoint: Self::Checkpoint) -> Self;

    /// Applies mutations in order. Override it to validate, commit or roll back as a whole.
    ///
    /// # Errors
    /// If the batch cannot be applied; the state must then be as it was.
    fn apply_batch(&mut self, mutations: impl IntoIterator<Item = Self::Mutation>) -> Result<(), WorkflowError> {
        for mutation in mutations {
            mutation.apply(self);
        }
        Ok(())
    }

    /// The state to begin with.
    fn initial() -> Self
    where
        Self: Default,
    {
        Self::default()
    }
}

/// What can go wrong with a workflow's state.
///
/// ```
/// let error = superstep::WorkflowError::MergeConflict("no branches to merge".into());
/// assert_eq!(error.to_string(), "state merge conflict: no branches to merge");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum WorkflowError {
    /// Branches that cannot be merged.
    #[error("state merge conflict: {0}")]
    MergeConflict(String),
    /// A mutation that cannot be applied.
    #[error("failed to apply mutation: {0}")]
    ApplyFailed(String),
    /// A projection that does not encode or decode.
    #[error("state serialization error: {0}")]
    Serialization(#[from] serde_json::Error),
}

crate::error::shown_in_words!(WorkflowError);

/// A [`WorkflowState`] as the state of a graph: its writes are its mutations.
///
/// See [`WorkflowState`] for a whole program.
///
/// ```
/// # use superstep::{StateMutation, Workflow, WorkflowState};
/// # #[derive(Clone, Default)] struct Count(u8);
/// # #[derive(Debug, Clone)] struct Never;
/// # impl StateMutation<Count> for Never { fn apply(self, _: &mut Count) {} }
/// # impl WorkflowState for Count {
/// #     type Checkpoint = u8; type Mutation = Never;
/// #     fn snapshot(&self) -> u8 { self.0 } fn restore(c: u8) -> Self { Count(c) }
/// # }
/// assert_eq!(Workflow(Count(7)).0.0, 7);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Workflow<W>(pub W);

impl<W> std::ops::Deref for Workflow<W> {
    type Target = W;
    fn deref(&self) -> &W {
        &self.0
    }
}

impl<W> Workflow<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
    W::Checkpoint: Sync + 'static,
{
    /// An update made of mutations.
    pub fn mutate(mutations: impl IntoIterator<Item = W::Mutation>) -> Update<Self> {
        Update::from_writes(mutations.into_iter().map(Mutation::Apply))
    }
}

/// A write to a [`Workflow`]: a mutation, or a whole state from a merge of branches.
#[doc(hidden)]
#[derive(Debug)]
pub enum Mutation<W: WorkflowState> {
    Apply(W::Mutation),
    Replace(W::Checkpoint),
}

impl<W: WorkflowState> Clone for Mutation<W>
where
    W::Mutation: Clone,
{
    fn clone(&self) -> Self {
        match self {
            Mutation::Apply(m) => Mutation::Apply(m.clone()),
            Mutation::Replace(c) => Mutation::Replace(c.clone()),
        }
    }
}

impl<W> State for Workflow<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
    W::Checkpoint: Sync + 'static,
{
    type Schema = ();
    type Write = Mutation<W>;

    fn fields((): &()) -> &[FieldSpec] {
        const FIELDS: &[FieldSpec] = &[FieldSpec::new("state", FieldKind::Reducer)];
        FIELDS
    }

    fn empty((): &()) -> Self {
        Self(W::initial())
    }

    fn field_of((): &(), _: &Mutation<W>) -> Option<usize> {
        Some(0)
    }

    fn update(
        &mut self,
        (): &(),
        _: usize,
        writes: &mut dyn Iterator<Item = Put<Mutation<W>>>,
        _: &mut Scratch,
    ) -> Result<Change, InvalidUpdate> {
        let mut batch: Vec<W::Mutation> = Vec::new();
        for put in writes {
            match put.write {
                Mutation::Apply(next) => push_combined(&mut batch, next),
                Mutation::Replace(checkpoint) => {
                    batch.clear();
                    self.0 = W::restore(checkpoint);
                }
            }
        }
        self.0.apply_batch(batch).map_err(|e| InvalidUpdate::refused("state", e.to_string()))?;
        Ok(Change::Set)
    }

    fn read(&self, (): &(), _: usize) -> Option<Mutation<W>> {
        Some(Mutation::Replace(self.0.snapshot()))
    }

    fn reset(&mut self, (): &(), _: usize) {
        self.0 = W::initial();
    }
}

/// Adds a mutation to a batch, joined with the last one if they combine.
fn push_combined<S, M: StateMutation<S> + Clone>(batch: &mut Vec<M>, next: M) {
    match batch.last().and_then(|last| last.clone().combine(next.clone())) {
        Some(joined) => *batch.last_mut().expect("there was a last one") = joined,
        None => batch.push(next),
    }
}

/// The saved form of a write.
#[derive(Serialize, serde::Deserialize)]
enum SavedMutation<M, C> {
    Apply(M),
    Replace(C),
}

impl<W> Persist for Workflow<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + Serialize + DeserializeOwned + 'static,
    W::Checkpoint: Sync + 'static,
{
    fn encode_write((): &(), write: &Mutation<W>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match write {
            Mutation::Apply(m) => super::encode_into(&SavedMutation::<_, &W::Checkpoint>::Apply(m), out),
            Mutation::Replace(c) => super::encode_into(&SavedMutation::<&W::Mutation, _>::Replace(c), out),
        }
    }

    fn decode_write((): &(), _: usize, bytes: &[u8]) -> Result<Mutation<W>, CodecError> {
        Ok(match super::decode(bytes)? {
            SavedMutation::Apply(m) => Mutation::Apply(m),
            SavedMutation::Replace(c) => Mutation::Replace(c),
        })
    }

    fn encode_field(&self, (): &(), _: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        super::encode_into(&self.0.snapshot(), out)
    }

    fn decode_field(&mut self, (): &(), _: usize, bytes: &[u8]) -> Result<(), CodecError> {
        self.0 = W::restore(super::decode(bytes)?);
        Ok(())
    }
}

/// How the states of parallel branches become one.
///
/// ```
/// use superstep::{MergeStrategy, WorkflowError};
///
/// struct Greatest;
/// impl MergeStrategy<u32> for Greatest {
///     fn merge(branches: Vec<u32>) -> Result<u32, WorkflowError> {
///         branches.into_iter().max().ok_or_else(|| WorkflowError::MergeConflict("no branches".into()))
///     }
///     fn default_instance() -> Self { Greatest }
/// }
/// assert_eq!(Greatest::merge(vec![1, 3, 2])?, 3);
/// # Ok::<(), WorkflowError>(())
/// ```
pub trait MergeStrategy<S>: Send + Sync {
    /// Merges the branches, given in the order in which they were added.
    ///
    /// # Errors
    /// If they cannot be merged.
    fn merge(branches: Vec<S>) -> Result<S, WorkflowError>;

    /// The strategy itself.
    fn default_instance() -> Self;
}

/// Takes the last branch.
///
/// ```
/// use superstep::{LastWriteWins, MergeStrategy};
/// assert_eq!(LastWriteWins::merge(vec![1, 2])?, 2);
/// assert!(<LastWriteWins as MergeStrategy<u8>>::merge(vec![]).is_err());
/// # Ok::<(), superstep::WorkflowError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct LastWriteWins;

impl<S> MergeStrategy<S> for LastWriteWins {
    fn merge(branches: Vec<S>) -> Result<S, WorkflowError> {
        branches.into_iter().last().ok_or_else(|| WorkflowError::MergeConflict("no branches to merge".into()))
    }

    fn default_instance() -> Self {
        LastWriteWins
    }
}

type Branch<W> = Arc<dyn Fn(W) -> Pin<Box<dyn Future<Output = Result<W, BoxError>> + Send>> + Send + Sync>;

/// A node that runs branches side by side on copies of the state and merges what they make of it.
///
/// ```
/// use superstep::{LastWriteWins, ParallelNode, StateGraph, Workflow, START};
/// # use superstep::{StateMutation, WorkflowState, WorkflowError, MergeStrategy};
/// # #[derive(Clone, Default)] struct Sum(u32);
/// # #[derive(Debug, Clone)] struct Never;
/// # impl StateMutation<Sum> for Never { fn apply(self, _: &mut Sum) {} }
/// # impl WorkflowState for Sum {
/// #     type Checkpoint = u32; type Mutation = Never;
/// #     fn snapshot(&self) -> u32 { self.0 } fn restore(c: u32) -> Self { Sum(c) }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let both = ParallelNode::builder()
///     .merge_strategy(LastWriteWins)
///     .branch("one", async |s: Sum| Ok(Sum(s.0 + 1)))
///     .branch("two", async |s: Sum| Ok(Sum(s.0 + 2)))
///     .build();
/// let app = StateGraph::<Workflow<Sum>>::new().add_node("both", both).add_edge(START, "both").compile()?;
/// assert_eq!(app.invoke(()).await?.state.0.0, 2);
/// # Ok(())
/// # }
/// ```
pub struct ParallelNode<W, M> {
    branches: Vec<(String, Branch<W>)>,
    strategy: PhantomData<fn() -> M>,
}

impl<W: WorkflowState + 'static> ParallelNode<W, LastWriteWins> {
    /// Starts a node; [`LastWriteWins`] unless a strategy is given.
    pub fn builder() -> ParallelNodeBuilder<W, LastWriteWins> {
        ParallelNodeBuilder(ParallelNode { branches: Vec::new(), strategy: PhantomData })
    }
}

impl<W, M> Clone for ParallelNode<W, M> {
    fn clone(&self) -> Self {
        Self { branches: self.branches.clone(), strategy: PhantomData }
    }
}

impl<W, M> ParallelNode<W, M>
where
    W: WorkflowState + 'static,
    M: MergeStrategy<W>,
{
    /// Runs all branches on copies of `state` and merges them in the order of adding.
    ///
    /// # Errors
    /// The first error of a branch, in that order, or the strategy's refusal.
    pub async fn run(&self, state: W) -> Result<W, BoxError> {
        let running: Vec<_> = self
            .branches
            .iter()
            .map(|(name, branch)| (name, crate::engine::AbortOnDrop::spawn(branch(state.clone()))))
            .collect();
        let mut merged = Vec::with_capacity(running.len());
        for (name, task) in running {
            merged.push(task.await.map_err(|e| format!("branch `{name}`: {e}"))??);
        }
        Ok(M::merge(merged)?)
    }
}

/// Builds a [`ParallelNode`].
///
/// ```
/// # use superstep::{ParallelNode, StateMutation, WorkflowState};
/// # #[derive(Clone, Default)] struct Count(u8);
/// # #[derive(Debug, Clone)] struct Never;
/// # impl StateMutation<Count> for Never { fn apply(self, _: &mut Count) {} }
/// # impl WorkflowState for Count {
/// #     type Checkpoint = u8; type Mutation = Never;
/// #     fn snapshot(&self) -> u8 { self.0 } fn restore(c: u8) -> Self { Count(c) }
/// # }
/// let node = ParallelNode::builder().branch("same", async |n: Count| Ok(n)).build();
/// # let _: ParallelNode<Count, _> = node;
/// ```
pub struct ParallelNodeBuilder<W, M>(ParallelNode<W, M>);

impl<W: WorkflowState + 'static, M> ParallelNodeBuilder<W, M> {
    /// Merges with this strategy.
    pub fn merge_strategy<N: MergeStrategy<W>>(self, _strategy: N) -> ParallelNodeBuilder<W, N> {
        ParallelNodeBuilder(ParallelNode { branches: self.0.branches, strategy: PhantomData })
    }

    /// Adds a branch.
    pub fn branch<F, Fut>(mut self, name: impl Into<String>, run: F) -> Self
    where
        F: Fn(W) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<W, BoxError>> + Send + 'static,
    {
        self.0.branches.push((name.into(), Arc::new(move |state| Box::pin(run(state)))));
        self
    }

    /// The node.
    pub fn build(self) -> ParallelNode<W, M> {
        self.0
    }
}

/// An ordered record of mutations, for audit and deterministic replay.
///
/// ```
/// use superstep::{MutationLog, StateMutation, WorkflowState};
///
/// # #[derive(Clone, Default, PartialEq, Debug)] struct Count(u32);
/// # #[derive(Debug, Clone)] struct Add(u32);
/// # impl StateMutation<Count> for Add { fn apply(self, s: &mut Count) { s.0 += self.0; } }
/// # impl WorkflowState for Count {
/// #     type Checkpoint = u32; type Mutation = Add;
/// #     fn snapshot(&self) -> u32 { self.0 } fn restore(c: u32) -> Self { Count(c) }
/// # }
/// let log = MutationLog::<Count>::default();
/// log.record(1, "plan", Add(2));
/// log.record(2, "act", Add(3));
/// assert_eq!(log.replay(Count(1))?, Count(6));
/// assert_eq!(log.entries()[1].node, "act");
/// # Ok::<(), superstep::WorkflowError>(())
/// ```
pub struct MutationLog<W: WorkflowState> {
    entries: Mutex<Vec<LogEntry<W::Mutation>>>,
}

/// One line of a [`MutationLog`].
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry<M> {
    /// The step.
    pub step: i64,
    /// The node that made it.
    pub node: String,
    /// The mutation.
    pub mutation: M,
}

impl<W: WorkflowState> Default for MutationLog<W> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<W: WorkflowState> MutationLog<W>
where
    W::Mutation: Clone,
{
    /// Writes a mutation down.
    pub fn record(&self, step: i64, node: impl Into<String>, mutation: W::Mutation) {
        self.lock().push(LogEntry { step, node: node.into(), mutation });
    }

    /// Everything recorded, in order.
    pub fn entries(&self) -> Vec<LogEntry<W::Mutation>> {
        self.lock().clone()
    }

    /// Applies the recorded mutations to a state.
    ///
    /// # Errors
    /// If the state refuses one.
    pub fn replay(&self, mut from: W) -> Result<W, WorkflowError> {
        from.apply_batch(self.entries().into_iter().map(|e| e.mutation))?;
        Ok(from)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<LogEntry<W::Mutation>>> {
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A merged state replaces the one before it.
impl<W> IntoUpdate<Workflow<W>> for MergedState<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
    W::Checkpoint: Sync + 'static,
{
    fn into_update(self) -> Update<Workflow<W>> {
        Update::from_writes([Mutation::Replace(self.0.snapshot())])
    }
}

/// What a [`ParallelNode`] returns.
pub(crate) struct MergedState<W>(pub(crate) W);
