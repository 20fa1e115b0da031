//! A node of branches that run side by side on copies of the state.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::StateGraph;
use crate::call::{AnyNode, AnyOutcome, Call, Context, Interrupted, NodeFuture};
use crate::engine::AbortOnDrop;
use crate::error::{BoxError, Terminal};
use crate::names::START;
use crate::node::{BoxedNode, IntoNode, update_outcome};
use crate::state::{Given, Scratch, State, Update};
use crate::workflow::{LastWriteWins, MergeStrategy, Workflow, WorkflowState};

/// A node that runs branches side by side on copies of the state and merges what they make of it.
///
/// A branch is whatever can be a node: a function of the state, async or not, with or without a [`Context`]; a
/// [`Node`](crate::Node); an [`Agent`](crate::Agent). It returns the state, or mutations, which are applied to its copy.
/// What the strategy makes of the copies is the node's whole state: mutations of nodes beside it are applied to that.
///
/// ```
/// use superstep::{Context, LastWriteWins, ParallelNode, StateGraph, Update, Workflow, START};
/// # use superstep::{StateMutation, WorkflowState, WorkflowError, MergeStrategy};
/// # #[derive(Clone, Default)] struct Sum(u32);
/// # #[derive(Debug, Clone)] struct Add(u32);
/// # impl StateMutation<Sum> for Add { fn apply(self, sum: &mut Sum) { sum.0 += self.0; } }
/// # impl WorkflowState for Sum {
/// #     type Checkpoint = u32; type Mutation = Add;
/// #     fn snapshot(&self) -> u32 { self.0 } fn restore(c: u32) -> Self { Sum(c) }
/// # }
/// struct Total;
/// impl MergeStrategy<Sum> for Total {
///     fn merge(branches: Vec<Sum>) -> Result<Sum, WorkflowError> { Ok(Sum(branches.iter().map(|sum| sum.0).sum())) }
///     fn default_instance() -> Self { Total }
/// }
///
/// async fn one(sum: Sum) -> Sum { Sum(sum.0 + 1) }
/// async fn two(_: Workflow<Sum>, _: Context) -> Update<Workflow<Sum>> { Workflow::<Sum>::mutate([Add(2)]) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let both = ParallelNode::builder().merge_strategy(Total).branch("one", one).branch("two", two).build();
/// let app = StateGraph::<Workflow<Sum>>::new().add_node("both", both).add_edge(START, "both").compile()?;
/// assert_eq!(app.invoke(()).await?.state.0.0, 3);
/// # Ok(())
/// # }
/// ```
pub struct ParallelNode<W, M>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    branches: Vec<(Arc<str>, BoxedNode<Workflow<W>>)>,
    strategy: PhantomData<fn() -> M>,
}

crate::debug::debug_parts!(
    [W: WorkflowState<Mutation: Clone + 'static> + Default + 'static, M]
    ParallelNode<W, M>, "ParallelNode", this => { branches: this.branches.iter().map(|(name, _)| name).collect::<Vec<_>>() }
);

impl<W> ParallelNode<W, LastWriteWins>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    /// Starts a node; [`LastWriteWins`] unless a strategy is given.
    pub fn builder() -> ParallelNodeBuilder<W, LastWriteWins> {
        ParallelNodeBuilder(ParallelNode { branches: Vec::new(), strategy: PhantomData })
    }
}

impl<W, M> Clone for ParallelNode<W, M>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    fn clone(&self) -> Self {
        Self { branches: self.branches.clone(), strategy: PhantomData }
    }
}

impl<W, M> ParallelNode<W, M>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
    M: MergeStrategy<W> + 'static,
{
    /// Runs all branches on copies of `state` and merges them in the order of adding, outside of any graph.
    ///
    /// # Errors
    /// The first error of a branch, in that order, with the branch's name; or the strategy's refusal.
    pub async fn run(&self, state: W) -> Result<W, BoxError> {
        let mut graph = StateGraph::<Workflow<W>>::new();
        let app = graph.add_node("parallel", self.clone()).add_edge(START, "parallel").compile()?;
        let out = app.invoke(Workflow(state)).await?;
        if !out.interrupts.is_empty() {
            return Err(
                "a branch asks a question; run it in a graph with a checkpointer, where it can be answered".into()
            );
        }
        Ok(out.state.0)
    }

    /// What is wrong with the branches.
    fn mistakes(&self) -> Vec<String> {
        let names: Vec<&str> = self.branches.iter().map(|(name, _)| &**name).collect();
        let repeated = (1..names.len()).filter(|ix| names[..*ix].contains(&names[*ix]));
        let twice = repeated.map(|ix| format!("two branches are named `{}`; give one of them another name", names[ix]));
        let inside = self.branches.iter().flat_map(|(name, branch)| {
            branch.node.mistakes.iter().map(move |mistake| format!("branch `{name}`: {mistake}"))
        });
        twice.chain(inside).collect()
    }

    /// Starts every branch on the call of the node.
    fn start(&self, call: &mut Call<'_>) -> Vec<(Arc<str>, NodeFuture)> {
        let cx = (call.context)();
        let start = |(name, branch): &(Arc<str>, BoxedNode<Workflow<W>>)| {
            // Each branch asks for itself: its answers are its own.
            let mut context = || -> Context { cx.scoped(&**name) };
            (name.clone(), (branch.node.run)(call.with_context(&mut context)))
        };
        self.branches.iter().map(start).collect()
    }
}

/// What a branch made of its copy of the state.
fn made_of<W>(state: &W, outcome: AnyOutcome) -> Result<W, BoxError>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    if outcome.steer.is_some() {
        return Err("a branch cannot say where to go; its node's edges do".into());
    }
    let mut copy = Workflow(state.clone());
    if let Some(update) = outcome.update {
        copy.update(&(), 0, &mut update.into_puts::<Workflow<W>>().into_iter(), &mut Scratch::default())?;
    }
    Ok(copy.0)
}

/// An error of a branch, with its name.
#[derive(Debug)]
struct BranchFailed {
    branch: Arc<str>,
    error: BoxError,
}

impl fmt::Display for BranchFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "branch `{}`: {}", self.branch, self.error)
    }
}

impl std::error::Error for BranchFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

fn in_branch(branch: &Arc<str>, error: BoxError) -> BoxError {
    if error.is::<Interrupted>() {
        return error;
    }
    let is_terminal = error.is::<Terminal>();
    let failed: BoxError = Box::new(BranchFailed { branch: branch.clone(), error });
    if is_terminal { Terminal::new(failed).into() } else { failed }
}

/// Tells parallel nodes from functions.
#[doc(hidden)]
#[derive(Debug)]
pub struct ParallelMarker;

#[diagnostic::do_not_recommend]
impl<W, M> IntoNode<Workflow<W>, ParallelMarker> for ParallelNode<W, M>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
    M: MergeStrategy<W> + 'static,
{
    fn into_node(self) -> BoxedNode<Workflow<W>> {
        let mistakes = self.mistakes();
        let levels = self.branches.iter().map(|(_, branch)| branch.node.levels).max().unwrap_or_default();
        let run = move |mut call: Call<'_>| -> NodeFuture {
            let Given::State(given) = call.input else {
                return Box::pin(async { Err("a parallel node runs on the state, not on what it was sent".into()) });
            };
            let (given, branches) = (given.share::<Workflow<W>>(), self.start(&mut call));
            Box::pin(async move {
                let running = branches.into_iter().map(|(name, branch)| (name, AbortOnDrop::spawn(branch)));
                let running: Vec<_> = running.collect();
                let mut made = Vec::with_capacity(running.len());
                for (name, branch) in running {
                    let outcome = branch.await.unwrap_or_else(|panic| Err(panic.into()));
                    made.push(outcome.and_then(|o| made_of(&given.0, o)).map_err(|error| in_branch(&name, error))?);
                }
                let merged: Update<Workflow<W>> = crate::state::IntoUpdate::into_update(Workflow(M::merge(made)?));
                Ok(update_outcome(merged)?.erased())
            })
        };
        AnyNode { levels, mistakes, ..AnyNode::new(std::any::type_name::<Self>(), run) }.into()
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
/// let node = ParallelNode::builder().branch("same", async |n: Count| n).build();
/// # let _: ParallelNode<Count, _> = node;
/// ```
pub struct ParallelNodeBuilder<W, M>(ParallelNode<W, M>)
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static;

crate::debug::debug_parts!(
    [W: WorkflowState<Mutation: Clone + 'static> + Default + 'static, M]
    ParallelNodeBuilder<W, M>, "ParallelNodeBuilder", this => { node: this.0 }
);

impl<W, M> ParallelNodeBuilder<W, M>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    /// Merges with this strategy.
    pub fn merge_strategy<N: MergeStrategy<W>>(self, _strategy: N) -> ParallelNodeBuilder<W, N> {
        ParallelNodeBuilder(ParallelNode { branches: self.0.branches, strategy: PhantomData })
    }

    /// Adds a branch: anything that can be a node of a graph over the state.
    pub fn branch<K>(mut self, name: impl Into<String>, branch: impl IntoNode<Workflow<W>, K>) -> Self {
        self.0.branches.push((name.into().into(), branch.into_node()));
        self
    }

    /// The node.
    pub fn build(self) -> ParallelNode<W, M> {
        self.0
    }
}
