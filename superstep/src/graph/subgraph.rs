//! Graphs inside graphs: as nodes, or called by nodes.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::call::{
    AnyNode, AnyOutcome, Call, Context, Interrupted, NodeFuture, TaskContext, Why, lock, scoped_namespace,
};
use crate::engine::{Ended, LoopConfig, RunInput, Running, Saver};
use crate::error::{BoxError, Error, ErrorKind};
use crate::graph::compile::CompiledStateGraph;
use crate::node::{BoxedNode, GivenState, GraphMarker, IntoNode};
use crate::plan::Persistence;
use crate::state::erased::{AnyUpdate, Snapshot, Typed};
use crate::state::{Codec, Given, IntoUpdate, Persist, Put, State};
use crate::view::Shown;
use crate::wall::boxed;

/// How many graphs deep graphs may run inside graphs, the outermost included. One that would run deeper is an error of
/// [its own kind](crate::ErrorKind::Nesting); a graph that holds them as nodes is not compiled.
///
/// Each level needs room on the stack of the thread that drives the run: with this many, the 2 MiB of a thread of tokio are
/// enough in a build without optimization too. What a node gives to `tokio::spawn` begins anew.
///
/// ```
/// use superstep::{AgentState, EchoAgent, StateGraph, MAX_LEVELS, START};
/// let mut graph = StateGraph::<AgentState>::new().add_node("in", EchoAgent).add_edge(START, "in").compile()?;
/// for _ in 1..MAX_LEVELS {
///     graph = StateGraph::<AgentState>::new().add_node("in", graph).add_edge(START, "in").compile()?;
/// }
/// let one_more = StateGraph::<AgentState>::new().add_node("in", graph).add_edge(START, "in").compile();
/// assert!(one_more.unwrap_err().to_string().contains("32 levels deep"));
/// # Ok::<(), superstep::CompilationError>(())
/// ```
pub const MAX_LEVELS: usize = 32;

/// The level of a graph that is run where another one of this level is driven.
///
/// # Errors
/// If it would be too deep. `place` says where it would be run.
pub(crate) fn level_below(outer: usize, graph: &str, place: impl FnOnce() -> String) -> Result<usize, Error> {
    if outer < MAX_LEVELS { Ok(outer + 1) } else { Err(Error::too_deep(graph, &place(), MAX_LEVELS)) }
}

impl<S: State> CompiledStateGraph<S> {
    /// Whether a node of it may command the graph around it.
    fn steers(&self) -> bool {
        self.core.plan.nodes.iter().any(|node| node.run.steers)
    }

    /// The names of its nodes, and of those of the graphs inside that are known.
    fn all_nodes(&self) -> Arc<[Arc<str>]> {
        let inside = self.core.plan.nodes.iter().flat_map(|node| node.run.nodes_inside.iter());
        self.core.plan.names.keys().chain(inside).cloned().collect()
    }

    /// The graph as others see it; one that saves nothing has nothing to show.
    fn as_subgraph(self) -> Option<Arc<dyn Any + Send + Sync>> {
        match self.core.persistence {
            Persistence::Never => None,
            _ => Some(Arc::new(self.core)),
        }
    }

    /// The same graph with what it takes to be saved.
    pub(crate) fn with_codec(self, codec: &'static Codec<S>) -> Self {
        Typed::<S>::of(&*self.core.plan.ty).save_by(codec);
        self
    }

    /// The namespace of its next call in a task. One history for all calls is one for all scopes too.
    fn place_inside(&self, cx: &Context) -> String {
        let scope = cx.scope.as_deref().filter(|_| !matches!(self.core.persistence, Persistence::Own));
        let namespace = match scope {
            Some(scope) => scoped_namespace(&cx.task.namespace, scope.key()),
            None => self.core.history_namespace(&cx.task.namespace),
        };
        match lock(&cx.task.answers).count_subgraph(scope) {
            0 => namespace,
            calls => format!("{namespace}|{calls}"),
        }
    }

    fn saver_inside(&self, task: &TaskContext, namespace: &str) -> Option<Saver> {
        let run = &task.run;
        if matches!(self.core.persistence, Persistence::Never) {
            return None;
        }
        let (checkpointer, thread) = (run.checkpointer.clone()?, run.thread.clone()?);
        let (ids, run_id) = (run.ids().clone(), run.run_id().shared());
        if !self.core.plan.ty.can_persist() {
            return None;
        }
        Some(Saver::new(checkpointer, thread, namespace.to_owned(), run.durability, ids, Some(run_id)))
    }

    /// Runs the graph inside a task of another one.
    pub(crate) fn run_inside<'a>(
        &'a self,
        input: RunInput,
        cx: &'a Context,
    ) -> Pin<Box<dyn Future<Output = Result<Inside, Error>> + Send + 'a>> {
        boxed(|| self.run_in_task(input, cx))
    }

    async fn run_in_task(&self, input: RunInput, cx: &Context) -> Result<Inside, Error> {
        let (_inside, place) = (cx.task.enter(), lock(&cx.task.answers).begin());
        let mut run = self.begin_inside(cx)?;
        match boxed(|| run.run().drive_inside(input, cx.attempt())).await? {
            Ended::Done => Ok(Inside::Done(run)),
            Ended::Paused(interrupts) => {
                lock(&cx.task.answers).wait_inside(cx.scope.as_deref(), place, interrupts);
                Ok(Inside::Waits)
            }
            Ended::Parent(command) => {
                lock(&cx.task.answers).parent = Some(command);
                Ok(Inside::Waits)
            }
        }
    }

    /// A run of the graph inside a task.
    #[inline(never)]
    fn begin_inside(&self, cx: &Context) -> Result<Running, Error> {
        cx.task.touch();
        let task = &cx.task;
        let level = level_below(task.level.max(crate::wall::level()), &self.core.plan.name, || {
            format!(" in node `{}`", task.node)
        })?;
        let (namespace, kept) = (self.place_inside(cx), lock(&task.answers).take_kept(cx.scope.as_deref()));
        let saver = self.saver_inside(task, &namespace);
        let config = LoopConfig {
            namespace,
            checkpoint: None,
            ancestors: task.ancestors.clone(),
            nested: true,
            level,
            resuming: *lock(&task.resuming),
            replay: task.replay.clone(),
            null_resume: Some(task.null_resume.clone()),
            resume_map: with_kept(task.resume_map.as_ref(), kept),
            stop_before: None,
            stop_after: None,
            output: self.core.plan.output.clone(),
            around: Some(task.clone()),
            own_history: matches!(self.core.persistence, Persistence::Own),
        };
        Ok(Running::new(self.core.clone(), task.run.clone(), config, saver))
    }
}

/// The answers by id, with those that came before and were kept.
fn with_kept(
    given: Option<&Arc<BTreeMap<String, Value>>>,
    kept: BTreeMap<String, Value>,
) -> Option<Arc<BTreeMap<String, Value>>> {
    if kept.is_empty() {
        return given.cloned();
    }
    let given = given.iter().flat_map(|map| map.iter()).map(|(id, answer)| (id.clone(), answer.clone()));
    Some(Arc::new(given.chain(kept).collect()))
}

/// How a graph inside a task ended.
pub(crate) enum Inside {
    Done(Running),
    /// The task around it ends here: with a question, or with a command.
    Waits,
}

/// A graph over the same state is a node: it gets the state and gives back its output fields.
#[diagnostic::do_not_recommend]
impl<S: Persist> IntoNode<S, GraphMarker> for CompiledStateGraph<S> {
    fn into_node(self) -> BoxedNode<S> {
        let graph = self.with_codec(Codec::of());
        let (steers, levels, subgraph) = (graph.steers(), graph.core.plan.levels, graph.clone().as_subgraph());
        let nodes_inside = graph.all_nodes();
        let run = move |call: Call<'_>| -> NodeFuture {
            let (graph, input) = (graph.clone(), shared_input::<S>(&call));
            let cx = (call.context)();
            Box::pin(async move {
                match graph.run_inside(input?, &cx).await? {
                    Inside::Done(run) => Ok(shared_output::<S>(run.finish()?)),
                    Inside::Waits => Err(Box::new(Interrupted { why: Why::Asked }) as BoxError),
                }
            })
        };
        AnyNode { subgraph, levels, nodes_inside, steers, ..AnyNode::new("", run) }.into()
    }
}

/// The state that the parent's node sees, as an input.
fn shared_input<S: Persist>(call: &Call<'_>) -> Result<RunInput, BoxError> {
    match call.input {
        Given::State(state) => {
            let has_value = |f: &usize| call.present.is_none_or(|present| present.has(*f));
            let fields = (0..call.ty.fields().len()).filter(|f| call.reads.is_none_or(|list| list.contains(f)));
            let fields = fields.filter(has_value);
            let (state, schema) = (state.get::<S>(), call.typed::<S>().schema());
            let puts = fields.filter_map(|f| state.read(schema, f)).map(Put::merge).collect();
            Ok(RunInput::Writes(AnyUpdate::of::<S>(puts)))
        }
        Given::Sent(payload) => {
            let update = S::from_payload(call.typed::<S>().schema(), payload).map_err(|why| {
                let node = call.node;
                format!(
                    "the graph in node `{node}` cannot run on what it was sent: {why}; send some of its state's fields"
                )
            })?;
            Ok(RunInput::Writes(update.into_puts().map(AnyUpdate::of::<S>)?))
        }
    }
}

/// The child's output fields, as writes to the parent.
fn shared_output<S: State>(end: (Snapshot, Shown)) -> AnyOutcome {
    let (state, view) = match end {
        (_, Shown::Nothing) => return AnyOutcome::default(),
        (state, Shown::Last(view)) => (state, view),
        (_, Shown::Earlier(values)) => (values.state, values.view),
    };
    let puts = Typed::<S>::puts_of(&view.read(&state)).cloned().collect();
    AnyOutcome { update: AnyUpdate::of::<S>(puts), steer: None }
}

/// A graph over another state as a node: how its input is made, and what its output changes.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use superstep::{AgentState, AgentStateUpdate, EchoAgent, MappedGraph, Message, State, StateGraph, START};
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Outer { question: String, answer: String }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let inner = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let app = StateGraph::<Outer>::new()
///     .add_node("ask", MappedGraph::new(
///         inner,
///         |outer: &Outer| AgentState { messages: vec![Message::user(&outer.question)] },
///         |inner: &AgentState| Outer::update().answer(inner.messages.last().map(|m| m.text().into_owned()).unwrap_or_default()),
///     ))
///     .add_edge(START, "ask")
///     .compile()?;
/// assert_eq!(app.invoke(Outer::update().question("hi")).await?.state.answer, "hi");
/// # Ok(())
/// # }
/// ```
pub struct MappedGraph<S, C: State, I, O, In, Out> {
    graph: CompiledStateGraph<C>,
    input: I,
    output: O,
    types: PhantomData<fn(S) -> (In, Out)>,
}

crate::debug::debug_parts!([S, C: State, I, O, In, Out] MappedGraph<S, C, I, O, In, Out>, "MappedGraph", this => { graph: this.graph });

impl<S, C, I, O, In, Out> MappedGraph<S, C, I, O, In, Out>
where
    S: State,
    C: Persist,
    I: Fn(&S) -> In + Send + Sync + 'static,
    In: IntoUpdate<C>,
    O: Fn(&C) -> Out + Send + Sync + 'static,
    Out: IntoUpdate<S>,
{
    /// A node that runs `graph` on what `input` makes of the state, and returns what `output` makes of its result.
    pub fn new(graph: CompiledStateGraph<C>, input: I, output: O) -> Self {
        Self { graph: graph.with_codec(Codec::of()), input, output, types: PhantomData }
    }
}

/// Tells mapped graphs from functions.
#[doc(hidden)]
#[derive(Debug)]
pub struct MappedMarker<C, In, Out>(PhantomData<(C, In, Out)>);

#[diagnostic::do_not_recommend]
impl<S, C, I, O, In, Out> IntoNode<S, MappedMarker<C, In, Out>> for MappedGraph<S, C, I, O, In, Out>
where
    S: State,
    C: Persist,
    I: Fn(&S) -> In + Send + Sync + 'static,
    In: IntoUpdate<C>,
    O: Fn(&C) -> Out + Send + Sync + 'static,
    Out: IntoUpdate<S>,
{
    fn into_node(self) -> BoxedNode<S> {
        let (graph, input, output) = (self.graph, self.input, Arc::new(self.output));
        let (steers, levels, subgraph) = (graph.steers(), graph.core.plan.levels, graph.clone().as_subgraph());
        let nodes_inside = graph.all_nodes();
        let run = move |call: Call<'_>| -> NodeFuture {
            let puts = match call.input {
                Given::State(state) => input(state.get()).into_update().into_puts().map_err(Error::from),
                Given::Sent(_) => Err(Error::new(
                    ErrorKind::Invalid,
                    "a mapped graph runs on the state, not on what it was sent; send to a node that calls it with `cx.invoke`",
                )),
            };
            let before = GivenState::of_step(&call);
            let (graph, output, cx) = (graph.clone(), output.clone(), (call.context)());
            Box::pin(async move {
                match graph.run_inside(RunInput::Writes(AnyUpdate::of::<C>(puts?)), &cx).await? {
                    Inside::Done(run) => {
                        let (state, _) = run.finish()?;
                        before.outcome(output(state.get()).into_update())
                    }
                    Inside::Waits => Err(Box::new(Interrupted { why: Why::Asked }) as BoxError),
                }
            })
        };
        AnyNode { subgraph, levels, nodes_inside, steers, ..AnyNode::new("", run) }.into()
    }
}
