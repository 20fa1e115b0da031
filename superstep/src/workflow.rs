//! Commands as updates: states that change through mutations of their own.
//!
//! A mutation knows how to change its state; the engine applies mutations in task order,
//! saves them as pending writes and streams them as updates. A checkpoint holds the
//! projection that the state chooses, never the run-time parts.

mod log;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{CodecError, InvalidUpdate};
use crate::state::{
    Change, Codec, Difference, FieldKind, FieldSpec, ONE_OVERWRITE, Persist, Put, Scratch, State, Unsaved, Update,
    merged,
};
use crate::value::{decode, decoding, encode_into, encoding, json_of};

pub(crate) use log::apply_entries;
pub use log::{LogEntry, Logged, MutationLog};

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
{
    /// An update made of mutations.
    pub fn mutate(mutations: impl IntoIterator<Item = W::Mutation>) -> Update<Self> {
        Update::from_writes(mutations.into_iter().map(Mutation::Apply))
    }
}

/// A write to a [`Workflow`]: a mutation, or a whole state.
///
/// A whole state is carried as it is, run-time parts included; only what is saved of it is its projection.
#[doc(hidden)]
pub enum Mutation<W: WorkflowState> {
    Apply(W::Mutation),
    Replace(Box<W>),
}

impl<W: WorkflowState> Debug for Mutation<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mutation::Apply(mutation) => mutation.fmt(f),
            Mutation::Replace(_) => f.write_str("a whole state"),
        }
    }
}

impl<W: WorkflowState> Clone for Mutation<W>
where
    W::Mutation: Clone,
{
    fn clone(&self) -> Self {
        match self {
            Mutation::Apply(mutation) => Mutation::Apply(mutation.clone()),
            Mutation::Replace(state) => Mutation::Replace(state.clone()),
        }
    }
}

impl<W> Update<Workflow<W>>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    /// The mutations in it, in order.
    ///
    /// ```
    /// # use superstep::{StateMutation, Workflow, WorkflowState};
    /// # #[derive(Clone, Default)] struct Count(u32);
    /// # #[derive(Debug, Clone, PartialEq)] struct Add(u32);
    /// # impl StateMutation<Count> for Add { fn apply(self, s: &mut Count) { s.0 += self.0; } }
    /// # impl WorkflowState for Count {
    /// #     type Checkpoint = u32; type Mutation = Add;
    /// #     fn snapshot(&self) -> u32 { self.0 } fn restore(c: u32) -> Self { Count(c) }
    /// # }
    /// let update = Workflow::<Count>::mutate([Add(1), Add(2)]);
    /// assert_eq!(update.mutations().collect::<Vec<_>>(), [&Add(1), &Add(2)]);
    /// ```
    pub fn mutations(&self) -> impl Iterator<Item = &W::Mutation> {
        self.puts().iter().filter_map(|put| match &put.write {
            Mutation::Apply(mutation) => Some(mutation),
            Mutation::Replace(_) => None,
        })
    }

    /// The whole state in it, if it has one.
    pub fn whole_state(&self) -> Option<&W> {
        self.puts().iter().find_map(|put| match &put.write {
            Mutation::Apply(_) => None,
            Mutation::Replace(state) => Some(&**state),
        })
    }
}

impl<W> State for Workflow<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    type Schema = ();
    type Write = Mutation<W>;

    /// The projection; a graph that is given a checkpointer with `checkpointer` saves mutations too.
    fn codec() -> Option<&'static Codec<Self>> {
        Some(Self::projection())
    }

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
        let Step { whole, mutations } = Step::of(writes)?;
        let refused = |why: WorkflowError| InvalidUpdate::refused("state", why.to_string());
        match whole {
            None => self.0.apply_batch(mutations).map_err(refused)?,
            Some(mut whole) => {
                // The state stays as it was if its batch is refused.
                whole.apply_batch(mutations).map_err(refused)?;
                self.0 = *whole;
            }
        }
        Ok(Change::Set)
    }

    fn read(&self, (): &(), _: usize) -> Option<Mutation<W>> {
        Some(Mutation::Replace(Box::new(self.0.clone())))
    }

    fn reset(&mut self, (): &(), _: usize) {
        self.0 = W::initial();
    }

    /// A whole state takes the place of the one before; what others do to it in the same step comes on top.
    fn difference(&self, (): &(), write: Mutation<W>) -> Difference<Mutation<W>> {
        Difference::Merge(write)
    }
}

/// The writes of one step: at most one whole state, and the mutations that are applied to it.
///
/// No order of the nodes' names decides: the whole state comes first wherever it stands, and two of them are refused.
struct Step<W: WorkflowState> {
    whole: Option<Box<W>>,
    mutations: Vec<W::Mutation>,
}

impl<W: WorkflowState> Step<W>
where
    W::Mutation: Clone,
{
    fn of(writes: &mut dyn Iterator<Item = Put<Mutation<W>>>) -> Result<Self, InvalidUpdate> {
        let (mut step, mut overwritten) = (Self { whole: None, mutations: Vec::new() }, None);
        for put in writes {
            match (put.write, put.overwrite) {
                (Mutation::Apply(_), true) => return Err(InvalidUpdate::new("state", MUTATION_OVERWRITES)),
                (Mutation::Replace(_), true) if overwritten.is_some() => {
                    return Err(InvalidUpdate::new("state", ONE_OVERWRITE));
                }
                (Mutation::Replace(state), true) => overwritten = Some(state),
                (Mutation::Replace(_), false) if step.whole.is_some() => {
                    return Err(InvalidUpdate::new("state", ONE_WHOLE_STATE));
                }
                (Mutation::Replace(state), false) => step.whole = Some(state),
                (Mutation::Apply(next), false) => push_combined(&mut step.mutations, next),
            }
        }
        Ok(match overwritten {
            Some(state) => Self { whole: Some(state), mutations: Vec::new() },
            None => step,
        })
    }
}

const ONE_WHOLE_STATE: &str = "can receive only one whole state per step, for there is no rule that makes one of two; let \
                               the nodes return mutations, or make them branches of one `ParallelNode`";
const MUTATION_OVERWRITES: &str = "a mutation changes a state and cannot overwrite it; overwrite it with a whole one";

/// Adds a mutation to a batch, joined with the last one if they combine.
fn push_combined<S, M: StateMutation<S> + Clone>(batch: &mut Vec<M>, next: M) {
    match batch.last().and_then(|last| last.clone().combine(next.clone())) {
        Some(joined) => *batch.last_mut().expect("there was a last one") = joined,
        None => batch.push(next),
    }
}

/// A mutation that can be saved before its step has ended. Implemented for everything that serde can write and read back.
#[diagnostic::on_unimplemented(
    message = "the mutation `{Self}` cannot be saved",
    label = "not `Serialize + DeserializeOwned`",
    note = "derive serde's `Serialize` and `Deserialize` for it, so that what a task did is saved when the task ends",
    note = "or save the projection alone, when a step ends: `.projection_checkpointer(saver)` in place of `.checkpointer(saver)`"
)]
#[doc(hidden)]
pub trait SavedMutation<'checked>: Sized {
    fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), CodecError>;
    fn decode_from(bytes: &[u8]) -> Result<Self, CodecError>;
    fn to_json(&self) -> Result<serde_json::Value, CodecError>;
}

#[diagnostic::do_not_recommend]
impl<M: Serialize + DeserializeOwned + Send> SavedMutation<'_> for M {
    fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_into(&SavedWrite::<_, ()>::Apply(self), out)
    }

    fn decode_from(bytes: &[u8]) -> Result<Self, CodecError> {
        match decode::<SavedWrite<M, serde::de::IgnoredAny>>(bytes)? {
            SavedWrite::Apply(mutation) => Ok(mutation),
            SavedWrite::Replace(_) => Err(CodecError::new("it is a whole state, not a mutation")),
        }
    }

    fn to_json(&self) -> Result<serde_json::Value, CodecError> {
        json_of(self)
    }
}

/// The saved form of a write.
#[derive(Serialize, serde::Deserialize)]
enum SavedWrite<M, C> {
    Apply(M),
    Replace(C),
}

fn encode_whole<W: WorkflowState>(state: &W, out: &mut Vec<u8>) -> Result<(), CodecError> {
    encode_into(&SavedWrite::<(), _>::Replace(state.snapshot()), out)
}

/// The whole state that bytes hold; `None` if they hold a mutation.
fn decode_whole<W: WorkflowState>(bytes: &[u8]) -> Result<Option<Mutation<W>>, CodecError> {
    /// Which of the two it is, without a look inside.
    type Kind = SavedWrite<serde::de::IgnoredAny, serde::de::IgnoredAny>;
    if matches!(decode::<Kind>(bytes)?, SavedWrite::Apply(_)) {
        return Ok(None);
    }
    match decode::<SavedWrite<serde::de::IgnoredAny, W::Checkpoint>>(bytes)? {
        SavedWrite::Replace(checkpoint) => Ok(Some(Mutation::Replace(Box::new(W::restore(checkpoint))))),
        SavedWrite::Apply(_) => Ok(None),
    }
}

/// The whole state that JSON gives, as its projection: other programs know no mutations.
fn whole_from_json<W: WorkflowState>(value: &serde_json::Value) -> Result<Mutation<W>, CodecError> {
    let projection =
        <W::Checkpoint as serde::Deserialize>::deserialize(value).map_err(|why| CodecError::new(why.to_string()))?;
    Ok(Mutation::Replace(Box::new(W::restore(projection))))
}

impl<W> Persist for Workflow<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + for<'checked> SavedMutation<'checked> + 'static,
{
    fn encode_write((): &(), write: &Mutation<W>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match write {
            Mutation::Apply(mutation) => mutation.encode_into(out),
            Mutation::Replace(state) => encode_whole(&**state, out),
        }
    }

    fn decode_write((): &(), _: usize, bytes: &[u8]) -> Result<Mutation<W>, CodecError> {
        match decode_whole(bytes)? {
            Some(whole) => Ok(whole),
            None => W::Mutation::decode_from(bytes).map(Mutation::Apply),
        }
    }

    fn write_to_json((): &(), write: &Mutation<W>) -> Result<Option<serde_json::Value>, CodecError> {
        let shown = match write {
            Mutation::Replace(state) => json_of(&state.snapshot())?,
            Mutation::Apply(mutation) => mutation.to_json()?,
        };
        Ok(Some(shown))
    }

    fn write_from_json((): &(), _: usize, value: &serde_json::Value, _: bool) -> Result<Mutation<W>, CodecError> {
        whole_from_json(value)
    }

    fn encode_field(&self, (): &(), _: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        encode_into(&self.0.snapshot(), out)
    }

    fn decode_field(&mut self, (): &(), _: usize, bytes: &[u8]) -> Result<(), CodecError> {
        self.0 = W::restore(decode(bytes)?);
        Ok(())
    }
}

/// A workflow of which only the projection is saved: its mutations are not.
impl<W> Workflow<W>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    const PROJECTION: Codec<Self> = Codec {
        encode_write: |(), write, out| match write {
            Mutation::Replace(state) => encoding(|| encode_whole(&**state, out)),
            Mutation::Apply(_) => Err(CodecError::new("its mutations cannot be saved")),
        },
        decode_write: |(), _, bytes| {
            let whole = decoding(|| decode_whole(bytes))?;
            whole.ok_or_else(|| CodecError::new("it is a mutation, which this graph cannot read"))
        },
        encode_field: |state, (), _, out| encoding(|| encode_into(&state.0.snapshot(), out)),
        decode_field: |state, (), _, bytes| {
            decoding(|| {
                state.0 = W::restore(decode(bytes)?);
                Ok(())
            })
        },
        to_json: |(), write| {
            encoding(|| match write {
                Mutation::Replace(state) => json_of(&state.snapshot()).map(Some),
                Mutation::Apply(mutation) => Ok(Some(format!("{mutation:?}").into())),
            })
        },
        from_json: |(), _, value, _| decoding(|| whole_from_json(value)),
        unsaved: Some(Unsaved {
            is_unsaved: |write| matches!(write, Mutation::Apply(_)),
            as_whole: |state, puts| {
                let merged = merged(state.clone(), Update::from_puts(puts.into()))?;
                Ok(vec![Put::merge(Mutation::Replace(Box::new(merged.0)))])
            },
        }),
    };

    /// How the projection alone is saved.
    pub(crate) fn projection() -> &'static Codec<Self> {
        &Self::PROJECTION
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
