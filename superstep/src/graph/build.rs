//! Building a graph: setters that cannot fail, mistakes kept for `compile`.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cache::Cache;
use crate::call::{AnyNode, ContextType, Path};
use crate::checkpoint::Checkpointer;
use crate::error::CompilationError;
use crate::graph::compile::CompiledStateGraph;
use crate::graph::path::{IntoPath, PathTarget};
use crate::json::{JsonFields, JsonState};
use crate::message::Message;
use crate::names::{DEFAULT_NAME, END, START};
use crate::node::{BoxedNode, IntoNode, Node, NodeDefaults, NodeMarker, NodeOptions, NodeRules};
use crate::plan::{Evolution, Persistence};
use crate::state::erased::{StateType, Typed};
use crate::state::{Codec, FieldSpec, Persist, State};
use crate::store::Store;
use crate::workflow::{Workflow, WorkflowState};

/// A graph being built: a state, nodes and edges.
///
/// ```
/// use superstep::{AgentState, AgentStateUpdate, Message, StateGraph, END, START};
///
/// async fn greet(_: AgentState) -> AgentStateUpdate {
///     AgentStateUpdate { messages: Some(vec![Message::assistant("hello")]) }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new()
///     .add_node("greet", greet)
///     .add_edge(START, "greet")
///     .add_edge("greet", END)
///     .compile()?;
/// let out = app.invoke(AgentState { messages: vec![Message::user("hi")] }).await?;
/// assert_eq!(out.state.messages[1].text(), "hello");
/// # Ok(())
/// # }
/// ```
#[must_use = "a graph does nothing until it is compiled"]
pub struct StateGraph<S: State> {
    pub(crate) draft: GraphDraft,
    schema: Arc<S::Schema>,
    /// How the state is saved, if that is known.
    codec: Option<&'static Codec<S>>,
}

crate::debug::debug_parts!([S: State] StateGraph<S>, "StateGraph", this => { name: this.draft.settings.name, nodes: this.draft.names(), edges: this.draft.edges });

/// A graph that is being built, without the type of its state.
#[derive(Clone)]
pub(crate) struct GraphDraft {
    pub(crate) ty: Arc<dyn StateType>,
    /// Names that were given twice, and why that is wrong.
    pub(crate) clashes: Vec<(String, String)>,
    pub(crate) nodes: Vec<(String, AnyNode, NodeRules)>,
    pub(crate) edges: Vec<(String, String)>,
    pub(crate) joins: Vec<(Vec<String>, String)>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) defaults: NodeRules,
    pub(crate) settings: Settings,
}

/// The graph over a list of messages: nodes take the conversation and return what to add to it.
///
/// Its state is the list itself; with anything beside the messages, use a [`StateGraph`] over
/// [`AgentState`](crate::AgentState) or a state of your own.
///
/// ```
/// use superstep::{Message, MessageGraph, START};
///
/// async fn greet(messages: Vec<Message>) -> Message {
///     Message::assistant(format!("hello to {} message", messages.len()))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = MessageGraph::new().add_node("greet", greet).add_edge(START, "greet").compile()?;
/// let out = app.invoke(Message::user("hi")).await?;
/// assert_eq!(out.state[1].text(), "hello to 1 message");
/// # Ok(())
/// # }
/// ```
pub type MessageGraph = StateGraph<Vec<Message>>;

#[derive(Clone)]
pub(crate) struct Branch {
    pub(crate) from: String,
    pub(crate) path: Path,
    pub(crate) map: Option<Vec<(String, String)>>,
    pub(crate) then: Option<String>,
}

/// What a graph is compiled with.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) checkpointer: Persistence,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) cache: Option<Arc<dyn Cache>>,
    pub(crate) stop_before: Vec<String>,
    pub(crate) stop_after: Vec<String>,
    pub(crate) input: Option<Vec<String>>,
    pub(crate) output: Option<Vec<String>>,
    pub(crate) hidden: Vec<String>,
    pub(crate) step_timeout: Option<std::time::Duration>,
    pub(crate) debug: bool,
    pub(crate) context: Option<ContextType>,
    pub(crate) ignores_unknown: bool,
    pub(crate) evolution: Evolution,
}

impl Settings {
    pub(crate) fn named(name: String) -> Self {
        Self {
            name,
            checkpointer: Persistence::Inherit,
            store: None,
            cache: None,
            stop_before: Vec::new(),
            stop_after: Vec::new(),
            input: None,
            output: None,
            hidden: Vec::new(),
            step_timeout: None,
            debug: false,
            context: None,
            ignores_unknown: false,
            evolution: Evolution::default(),
        }
    }
}

impl<S: State> Clone for StateGraph<S> {
    fn clone(&self) -> Self {
        Self { draft: self.draft.clone(), schema: self.schema.clone(), codec: self.codec }
    }
}

impl<S: State<Schema = ()>> StateGraph<S> {
    /// An empty graph over a typed state.
    pub fn new() -> Self {
        Self::with_schema((), Vec::new())
    }

    /// Adds a node under its own name.
    pub fn add(&mut self, node: impl Node<S>) -> &mut Self {
        let name = node.id().to_owned();
        let boxed = IntoNode::<S, NodeMarker>::into_node(node);
        self.push_node(name, boxed, NodeOptions::new())
    }
}

impl<S: State<Schema = ()>> Default for StateGraph<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl StateGraph<JsonState> {
    /// An empty graph over a state whose fields are given here.
    pub fn dynamic(fields: JsonFields) -> Self {
        let clashes = fields.clashes.clone();
        let mut graph = Self::with_schema(fields, clashes);
        graph.codec = Some(Codec::of());
        graph.draft.settings.ignores_unknown = true;
        graph
    }
}

impl<W> StateGraph<Workflow<W>>
where
    W: WorkflowState + Default + 'static,
    W::Mutation: Clone + 'static,
{
    /// Saves every step in this checkpointer, with the projection of the state and without its mutations, which then need no
    /// serde.
    ///
    /// What tasks did is saved when their step ends, not when they end: after a crash in the middle of a step all its tasks
    /// run again, those that had finished too, and the history has no results of tasks. With mutations that serde can
    /// write, use [`checkpointer`](Self::checkpointer).
    ///
    /// ```
    /// use superstep::{MemorySaver, StateGraph, StateMutation, Workflow, WorkflowState, START};
    ///
    /// #[derive(Clone, Default)]
    /// struct Count(u32);
    /// #[derive(Debug, Clone)]
    /// struct Add(u32); // no serde
    /// impl StateMutation<Count> for Add { fn apply(self, count: &mut Count) { count.0 += self.0; } }
    /// impl WorkflowState for Count {
    ///     type Checkpoint = u32;
    ///     type Mutation = Add;
    ///     fn snapshot(&self) -> u32 { self.0 }
    ///     fn restore(count: u32) -> Self { Count(count) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = StateGraph::<Workflow<Count>>::new()
    ///     .add_node("add", async |_: Workflow<Count>| Workflow::<Count>::mutate([Add(1)]))
    ///     .add_edge(START, "add")
    ///     .projection_checkpointer(MemorySaver::new())
    ///     .compile()?;
    /// app.invoke(()).thread("t").await?;
    /// assert_eq!(app.invoke(()).thread("t").await?.state.0.0, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn projection_checkpointer(&mut self, checkpointer: impl Checkpointer) -> &mut Self {
        self.draft.settings.checkpointer = Persistence::In(Arc::new(checkpointer));
        self.codec = Some(Workflow::projection());
        self
    }
}

impl<S: State> StateGraph<S> {
    fn with_schema(schema: S::Schema, clashes: Vec<(String, String)>) -> Self {
        let schema = Arc::new(schema);
        let draft = GraphDraft::new(Arc::new(Typed::<S>::new(schema.clone(), None)), clashes);
        Self { draft, schema, codec: None }
    }

    fn push_node(&mut self, name: String, node: BoxedNode<S>, options: NodeOptions<S>) -> &mut Self {
        self.draft.nodes.push((name, node.node, options.rules));
        self
    }

    /// Adds a node: an async function, a compiled graph, a [`Node`] or an [`Agent`](crate::Agent).
    ///
    /// A closure that captures clones what it captured into the future that it returns, since tasks outlive the call:
    ///
    /// ```
    /// use superstep::{AgentState, AgentStateUpdate, Message, StateGraph, START};
    /// let model = String::from("small");
    /// let mut graph = StateGraph::<AgentState>::new();
    /// graph.add_edge(START, "ask").add_node("ask", move |_: AgentState| {
    ///     let model = model.clone();
    ///     async move { AgentStateUpdate { messages: Some(vec![Message::assistant(model)]) } }
    /// });
    /// # graph.compile().unwrap();
    /// ```
    pub fn add_node<M>(&mut self, name: impl Into<String>, node: impl IntoNode<S, M>) -> &mut Self {
        self.add_node_with(name, node, NodeOptions::new())
    }

    /// Adds a node with options.
    pub fn add_node_with<M>(
        &mut self,
        name: impl Into<String>,
        node: impl IntoNode<S, M>,
        options: NodeOptions<S>,
    ) -> &mut Self {
        self.push_node(name.into(), node.into_node(), options)
    }

    /// Adds an edge; several sources make a join, which runs its target once all of them have run.
    ///
    /// ```
    /// # use superstep::{AgentState, StateGraph, START};
    /// # async fn n(_: AgentState) {}
    /// let app = StateGraph::<AgentState>::new()
    ///     .add_node("a", n).add_node("b", n).add_node("both", n)
    ///     .add_edge(START, "a")
    ///     .add_edge(START, "b")
    ///     .add_edge(["a", "b"], "both")
    ///     .compile()?;
    /// # Ok::<(), superstep::CompilationError>(())
    /// ```
    pub fn add_edge<J: JoinSources>(&mut self, from: J, to: impl Into<String>) -> &mut Self {
        self.draft.add_edge(from.sources(), to.into());
        self
    }

    /// Adds an edge whose target is decided by a function of the state, with this node's writes in it.
    ///
    /// It may lead to one node, several, none, or [`Send`](crate::Send)s. [`NamedPath`](crate::NamedPath) gives it a name.
    /// An async function may take a [`Context`](crate::Context) and whatever else nodes take: it runs as a part of its node,
    /// and may ask; see [`IntoPath`](crate::IntoPath).
    ///
    /// ```
    /// use superstep::{AgentState, Context, Interrupted, MemorySaver, Resume, StateGraph, END, START};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn draft(_: AgentState) {}
    /// # async fn send(_: AgentState) {}
    /// async fn approved(_: AgentState, cx: Context) -> Result<&'static str, Interrupted> {
    ///     Ok(if cx.interrupt("send it?")? { "send" } else { END })
    /// }
    /// let app = StateGraph::<AgentState>::new()
    ///     .add_node("draft", draft)
    ///     .add_node("send", send)
    ///     .add_edge(START, "draft")
    ///     .add_conditional_edges("draft", approved)
    ///     .checkpointer(MemorySaver::new())
    ///     .compile()?;
    /// assert!(app.invoke(()).thread("t").await?.is_interrupted());
    /// assert!(!app.invoke(Resume::value(true)).thread("t").await?.is_interrupted());
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_conditional_edges<M>(&mut self, from: impl Into<String>, path: impl IntoPath<S, M>) -> &mut Self {
        self.push_branch(from.into(), path.into_path(), None, None)
    }

    /// The same, with a map from what the function returns to nodes, or the list of the nodes that it may return.
    ///
    /// The targets are checked by [`compile`](Self::compile) and drawn. A path that returns anything else is an error of its
    /// node; a [`Send`](crate::Send) may go anywhere.
    ///
    /// ```
    /// use superstep::{AgentState, StateGraph, END, START};
    /// # async fn n(_: AgentState) {}
    /// let many = |state: &AgentState| state.messages.len() > 3;
    /// let app = StateGraph::<AgentState>::new()
    ///     .add_node("ask", n)
    ///     .add_node("check", n)
    ///     .add_edge(START, "ask")
    ///     .add_conditional_edges_with_map("ask", move |s: &AgentState| if many(s) { "check" } else { "ask" }, ["ask", "check"])
    ///     .add_conditional_edges_with_map("check", move |s: &AgentState| many(s).to_string(), [("true", END), ("false", "ask")])
    ///     .compile()?;
    /// # Ok::<(), superstep::CompilationError>(())
    /// ```
    pub fn add_conditional_edges_with_map<M>(
        &mut self,
        from: impl Into<String>,
        path: impl IntoPath<S, M>,
        map: impl IntoIterator<Item: PathTarget>,
    ) -> &mut Self {
        self.push_branch(from.into(), path.into_path(), Some(entries(map)), None)
    }

    /// A conditional edge with a map or list of targets, after which everything meets in `then`.
    pub fn add_conditional_edges_then<M>(
        &mut self,
        from: impl Into<String>,
        path: impl IntoPath<S, M>,
        map: impl IntoIterator<Item: PathTarget>,
        then: impl Into<String>,
    ) -> &mut Self {
        self.push_branch(from.into(), path.into_path(), Some(entries(map)), Some(then.into()))
    }

    fn push_branch(
        &mut self,
        from: String,
        path: Path,
        map: Option<Vec<(String, String)>>,
        then: Option<String>,
    ) -> &mut Self {
        self.draft.add_branch(from, path, map, then);
        self
    }

    /// Chains nodes that were added before, from [`START`] to [`END`]; an empty list adds nothing. A slice of names will do too.
    pub fn add_sequence(&mut self, nodes: impl IntoIterator<Item: AsRef<str>>) -> &mut Self {
        let mut from = START.to_owned();
        for node in nodes {
            let node = node.as_ref();
            self.add_edge(from, node);
            from = node.to_owned();
        }
        if from == START { self } else { self.add_edge(from, END) }
    }

    /// The same as an edge from [`START`].
    pub fn set_entry_point(&mut self, node: impl Into<String>) -> &mut Self {
        self.add_edge(START, node)
    }

    /// The same as an edge to [`END`].
    pub fn set_finish_point(&mut self, node: impl Into<String>) -> &mut Self {
        self.add_edge(node.into(), END)
    }

    /// The same as a conditional edge from [`START`]. It may ask too, before any node runs.
    pub fn set_conditional_entry_point<M>(&mut self, path: impl IntoPath<S, M>) -> &mut Self {
        self.add_conditional_edges(START, path)
    }

    /// The same with a map or a list of targets, as in [`add_conditional_edges_with_map`](Self::add_conditional_edges_with_map).
    pub fn set_conditional_entry_point_with_map<M>(
        &mut self,
        path: impl IntoPath<S, M>,
        map: impl IntoIterator<Item: PathTarget>,
    ) -> &mut Self {
        self.add_conditional_edges_with_map(START, path, map)
    }

    /// Options for nodes that have none of their own.
    pub fn set_node_defaults(&mut self, defaults: NodeDefaults<S>) -> &mut Self {
        self.draft.defaults = defaults.rules;
        self
    }

    /// Names the graph: in drawings and logs, in the keys of caches, and in its checkpoints, where the name tells it from
    /// other graphs that use the same thread.
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        self.draft.settings.name = name.into();
        self
    }

    /// Saves every step in this checkpointer: the run can be resumed, rewound and forked.
    ///
    /// Inside a parent graph, the parent's checkpointer is used instead; if the outermost graph has none, nothing is saved.
    pub fn checkpointer(&mut self, checkpointer: impl Checkpointer) -> &mut Self
    where
        S: Persist,
    {
        self.draft.settings.checkpointer = Persistence::In(Arc::new(checkpointer));
        self.codec = Some(Codec::of());
        self
    }

    /// As a subgraph, keeps one history for all calls of one thread, in the checkpointer of the outermost graph. If that has
    /// none, nothing is saved, as in LangGraph.
    pub fn persistent(&mut self) -> &mut Self
    where
        S: Persist,
    {
        self.draft.settings.checkpointer = Persistence::Own;
        self.codec.get_or_insert_with(Codec::of);
        self
    }

    /// As a subgraph, saves nothing: a question asked inside cannot be resumed there.
    pub fn stateless(&mut self) -> &mut Self {
        self.draft.settings.checkpointer = Persistence::Never;
        self
    }

    /// Long-term memory for the nodes. Inside a parent graph that has a store, the parent's is used instead.
    pub fn store(&mut self, store: impl Store) -> &mut Self {
        self.draft.settings.store = Some(Arc::new(store));
        self
    }

    /// Where results of nodes with a [`CachePolicy`](crate::CachePolicy) are kept.
    ///
    /// Results belong to the graph's [`name`](Self::name), the node's name, the function's type and the input. Graphs
    /// that share a cache and make their nodes of one function need names of their own.
    pub fn cache(&mut self, cache: impl Cache) -> &mut Self
    where
        S: Persist,
    {
        self.draft.settings.cache = Some(Arc::new(cache));
        self.codec.get_or_insert_with(Codec::of);
        self
    }

    /// Stops before these nodes; `"*"` stands for all.
    pub fn interrupt_before(&mut self, nodes: impl IntoIterator<Item: Into<String>>) -> &mut Self {
        self.draft.settings.stop_before.extend(owned(nodes));
        self
    }

    /// Stops after these nodes; `"*"` stands for all.
    pub fn interrupt_after(&mut self, nodes: impl IntoIterator<Item: Into<String>>) -> &mut Self {
        self.draft.settings.stop_after.extend(owned(nodes));
        self
    }

    /// The fields that an input may write; writes to others are dropped.
    pub fn input(&mut self, fields: impl IntoIterator<Item: Into<String>>) -> &mut Self {
        self.draft.settings.input = Some(owned(fields).collect());
        self
    }

    /// The fields that a result shows, and that a parent graph gets.
    pub fn output(&mut self, fields: impl IntoIterator<Item: Into<String>>) -> &mut Self {
        self.draft.settings.output = Some(owned(fields).collect());
        self
    }

    /// Fields that only nodes see which ask for them with [`NodeOptions::fields`]; no input or output has them. For all other
    /// nodes they are empty, whatever they hold.
    pub fn private(&mut self, fields: impl IntoIterator<Item: Into<String>>) -> &mut Self {
        self.draft.settings.hidden.extend(owned(fields));
        self
    }

    /// Limits how long one step may take.
    pub fn step_timeout(&mut self, limit: std::time::Duration) -> &mut Self {
        self.draft.settings.step_timeout = Some(limit);
        self
    }

    /// Whether a path, `goto` or [`Send`](crate::Send) to a node that the graph does not have is ignored, with a warning in
    /// the log. In a typed graph it is an error of the node that it came from; dynamic graphs ignore it, as LangGraph does.
    ///
    /// ```
    /// use superstep::{AgentState, StateGraph, START};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut graph = StateGraph::<AgentState>::new();
    /// graph.add_node("plan", async |_: AgentState| {}).add_edge(START, "plan");
    /// graph.add_conditional_edges("plan", |_: &AgentState| "plna");
    /// let error = graph.compile()?.invoke(AgentState::default()).await.unwrap_err();
    /// assert!(error.to_string().contains("did you mean `plan`?"));
    /// graph.ignore_unknown_targets(true).compile()?.invoke(AgentState::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ignore_unknown_targets(&mut self, ignore: bool) -> &mut Self {
        self.draft.settings.ignores_unknown = ignore;
        self
    }

    /// Says of which type the context is that runs are given as JSON, for those who run the graph without knowing its types.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::{AgentState, AnyGraph, RunOptions, Runtime, StateGraph, START};
    /// #[derive(serde::Deserialize)]
    /// struct Deps { model: String }
    /// async fn node(_: AgentState, deps: Runtime<Deps>) { assert_eq!(deps.model, "small"); }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut graph = StateGraph::<AgentState>::new();
    /// graph.add_node("a", node).add_edge(START, "a").context_schema::<Deps>();
    /// let app = AnyGraph::from(graph.compile()?);
    /// app.invoke(json!({})).options(RunOptions::new().context(json!({ "model": "small" }))).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn context_schema<T: DeserializeOwned + Any + Send + Sync>(&mut self) -> &mut Self {
        self.draft.settings.context = Some(ContextType::of::<T>(Value::Bool(true)));
        self
    }

    /// The same with what the context looks like, for [`AnyGraph::schema`](crate::AnyGraph::schema).
    #[cfg(feature = "schema")]
    pub fn described_context<T>(&mut self) -> &mut Self
    where
        T: DeserializeOwned + schemars::JsonSchema + Any + Send + Sync,
    {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        self.draft.settings.context = Some(ContextType::of::<T>(schema));
        self
    }

    /// Logs every step and task at `info` level through `tracing`.
    pub fn debug(&mut self, debug: bool) -> &mut Self {
        self.draft.settings.debug = debug;
        self
    }
}

impl<S: State> StateGraph<S> {
    /// Freezes the graph.
    ///
    /// # Errors
    /// Everything that is wrong with it, each mistake naming the place and the way out.
    pub fn compile(&self) -> Result<CompiledStateGraph<S>, CompilationError> {
        let ty = Typed::<S>::new(self.schema.clone(), self.codec);
        let draft = GraphDraft { ty: Arc::new(ty), ..self.draft.clone() };
        draft.compile().map(CompiledStateGraph::of)
    }
}

impl GraphDraft {
    fn new(ty: Arc<dyn StateType>, clashes: Vec<(String, String)>) -> Self {
        Self {
            ty,
            clashes,
            nodes: Vec::new(),
            edges: Vec::new(),
            joins: Vec::new(),
            branches: Vec::new(),
            defaults: NodeRules::default(),
            settings: Settings::named(DEFAULT_NAME.to_owned()),
        }
    }

    pub(crate) fn fields(&self) -> &[FieldSpec] {
        self.ty.fields()
    }

    /// An edge from one node; or from several, which then wait for each other.
    fn add_edge(&mut self, from: Result<String, Vec<String>>, to: String) {
        match from {
            Ok(from) => {
                if !self.edges.iter().any(|(f, t)| *f == from && *t == to) {
                    self.edges.push((from, to));
                }
            }
            Err(sources) => self.joins.push((sources, to)),
        }
    }

    fn add_branch(&mut self, from: String, path: Path, map: Option<Vec<(String, String)>>, then: Option<String>) {
        let targets = |t: &[&str]| t.iter().map(|t| ((*t).to_owned(), (*t).to_owned())).collect();
        let map = map.or_else(|| path.targets.map(targets));
        self.branches.push(Branch { from, path, map, then });
    }

    /// Names of nodes, for hints.
    pub(crate) fn names(&self) -> BTreeMap<&str, usize> {
        self.nodes.iter().enumerate().map(|(ix, (name, _, _))| (name.as_str(), ix)).collect()
    }
}

fn entries(map: impl IntoIterator<Item: PathTarget>) -> Vec<(String, String)> {
    map.into_iter().map(PathTarget::entry).collect()
}

fn owned(names: impl IntoIterator<Item: Into<String>>) -> impl Iterator<Item = String> {
    names.into_iter().map(Into::into)
}

/// The source of an edge: one node, or several that all must have run.
///
/// ```
/// use superstep::JoinSources;
/// assert_eq!("a".sources(), Ok("a".to_owned()));
/// assert_eq!(["a", "b"].sources(), Err(vec!["a".to_owned(), "b".to_owned()]));
/// ```
pub trait JoinSources {
    /// One source, or the sources of a join.
    ///
    /// # Errors
    /// The sources, if it is a join.
    fn sources(self) -> Result<String, Vec<String>>;
}

impl JoinSources for &str {
    fn sources(self) -> Result<String, Vec<String>> {
        Ok(self.to_owned())
    }
}

impl JoinSources for &String {
    fn sources(self) -> Result<String, Vec<String>> {
        Ok(self.clone())
    }
}

impl JoinSources for String {
    fn sources(self) -> Result<String, Vec<String>> {
        Ok(self)
    }
}

impl JoinSources for Cow<'_, str> {
    fn sources(self) -> Result<String, Vec<String>> {
        Ok(self.into_owned())
    }
}

impl<N: AsRef<str>> JoinSources for &[N] {
    fn sources(self) -> Result<String, Vec<String>> {
        Err(self.iter().map(|name| name.as_ref().to_owned()).collect())
    }
}

impl<N: AsRef<str>, const K: usize> JoinSources for &[N; K] {
    fn sources(self) -> Result<String, Vec<String>> {
        self.as_slice().sources()
    }
}

impl<N: Into<String>, const K: usize> JoinSources for [N; K] {
    fn sources(self) -> Result<String, Vec<String>> {
        Err(owned(self).collect())
    }
}

impl<N: AsRef<str>> JoinSources for &Vec<N> {
    fn sources(self) -> Result<String, Vec<String>> {
        self.as_slice().sources()
    }
}

impl<N: Into<String>> JoinSources for Vec<N> {
    fn sources(self) -> Result<String, Vec<String>> {
        Err(owned(self).collect())
    }
}

impl<N: Into<String>> JoinSources for BTreeSet<N> {
    fn sources(self) -> Result<String, Vec<String>> {
        Err(owned(self).collect())
    }
}
