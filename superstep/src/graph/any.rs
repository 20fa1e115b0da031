//! Graphs without the type of their state, for those who hold several.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::cache::Cache;
use crate::checkpoint::Checkpointer;
use crate::draw::Drawing;
use crate::graph::compile::CompiledStateGraph;
use crate::names::ROOT;
use crate::plan::{Diagnostic, GraphCore, InputMode, Persistence};
use crate::state::{Codec, Describer, Persist, State};
use crate::store::Store;
use crate::view::Fields;

/// A graph of any state: run on JSON, watched, drawn, and given to those who do not know its type.
///
/// Every compiled graph, entrypoint and agent gives one, and gets its type back by [`downcast`](AnyGraph::downcast). What
/// it is given and gives back is JSON; handles without a parameter, like [`Thread`](crate::Thread), are its own.
///
/// ```
/// use serde_json::json;
/// use superstep::{AgentState, AnyGraph, EchoAgent, MemorySaver, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let echo = StateGraph::<AgentState>::new().name("echo").add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let graphs = [AnyGraph::from(echo)].map(|graph| graph.with_checkpointer(MemorySaver::new()));
/// let out = graphs[0].invoke(json!({ "messages": ["hi"] })).thread("t").await?;
/// assert_eq!(out.state["messages"][1]["content"], "hi");
///
/// let refused = graphs[0].invoke(json!({ "mesages": [] })).thread("t").await.unwrap_err();
/// assert!(refused.to_string().contains("the state has no such field; it has `messages`"));
/// let typed = graphs[0].clone().downcast::<AgentState>().expect("that is its state");
/// assert_eq!(typed.thread("t").state().await?.state.messages.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AnyGraph {
    pub(crate) core: GraphCore,
}

/// What JSON a graph takes and gives, as JSON schemas; see [`AnyGraph::schema`].
///
/// ```
/// use superstep::{AgentState, AnyGraph, EchoAgent, StateGraph, START};
/// let echo = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let schema = AnyGraph::from(echo).schema();
/// assert!(schema.input["properties"].get("messages").is_some());
/// # Ok::<(), superstep::CompilationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct GraphSchema {
    /// What a run takes: the fields that an input may write, of which any may be left out.
    pub input: Value,
    /// What a run gives back.
    pub output: Value,
    /// What snapshots and the `values` stream show.
    pub state: Value,
    /// The context that a run may be given.
    pub context: Value,
}

impl AnyGraph {
    /// The graph's name.
    pub fn name(&self) -> &str {
        &self.core.plan.name
    }

    /// What is legal but probably not meant.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.core.plan.diagnostics
    }

    /// What JSON it takes and gives. A field whose type nobody can describe is `true`: types are described by schemars'
    /// `JsonSchema`, with superstep's feature `schema`.
    pub fn schema(&self) -> GraphSchema {
        let plan = &self.core.plan;
        let all: Vec<usize> = plan.shown.list().to_vec();
        let input = match &plan.input {
            InputMode::Entry => json!({ "title": format!("{} input", plan.name) }),
            InputMode::Start { fields } => self.object("input", fields.as_ref().unwrap_or(&all), true),
            InputMode::Fields(fields) => self.object("input", fields, true),
        };
        let of = |what: &str, fields: &Fields| match fields {
            Fields::One(field) => self.bare(what, *field, false),
            Fields::Many(_) => self.object(what, fields.list(), false),
        };
        let context = self.core.context.as_ref().map_or(Value::Bool(true), |context| context.schema.clone());
        GraphSchema { input, output: of("output", &plan.output), state: of("state", &plan.shown), context }
    }

    /// The schema of an object of fields; `takes`: of what writes them.
    fn object(&self, what: &str, fields: &[usize], takes: bool) -> Value {
        let ty = &self.core.plan.ty;
        if let [only] = fields
            && ty.fields()[*only].name() == ROOT
        {
            return self.bare(what, *only, takes);
        }
        let mut describer = Describer::default();
        let described =
            fields.iter().map(|f| (ty.fields()[*f].name().to_owned(), ty.describe(*f, takes, &mut describer)));
        let properties: Map<String, Value> = described.collect();
        self.titled(what, json!({ "type": "object", "properties": properties }), describer)
    }

    /// The schema of one field's value.
    fn bare(&self, what: &str, field: usize, takes: bool) -> Value {
        let mut describer = Describer::default();
        match self.core.plan.ty.describe(field, takes, &mut describer) {
            Value::Object(map) => self.titled(what, Value::Object(map), describer),
            any => any,
        }
    }

    fn titled(&self, what: &str, mut schema: Value, describer: Describer) -> Value {
        schema["title"] = format!("{} {what}", self.name()).into();
        let definitions = describer.definitions();
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions);
        }
        schema
    }

    /// The graph as nodes and edges; see [`CompiledStateGraph::draw`].
    pub fn draw(&self) -> Drawing {
        self.draw_expanded(0)
    }

    /// The same with subgraphs expanded so many levels deep; `usize::MAX` expands all.
    pub fn draw_expanded(&self, depth: usize) -> Drawing {
        self.core.draw(depth)
    }

    /// The same graph, saved in this checkpointer.
    #[must_use]
    pub fn with_checkpointer(mut self, checkpointer: impl Checkpointer) -> Self {
        self.core.persistence = Persistence::In(Arc::new(checkpointer));
        self
    }

    /// The same graph with this long-term memory.
    #[must_use]
    pub fn with_store(mut self, store: impl Store) -> Self {
        self.core.store = Some(Arc::new(store));
        self
    }

    /// The same graph with this cache.
    #[must_use]
    pub fn with_cache(mut self, cache: impl Cache) -> Self {
        self.core.cache = Some(Arc::new(cache));
        self
    }

    /// The graph with the type of its state.
    ///
    /// # Errors
    /// The graph itself, if its state is no `S`.
    pub fn downcast<S: State>(self) -> Result<CompiledStateGraph<S>, AnyGraph> {
        if self.core.is_over::<S>() { Ok(CompiledStateGraph::of(self.core)) } else { Err(self) }
    }
}

/// It can be saved from then on, whatever it was compiled with.
impl<S: Persist> From<CompiledStateGraph<S>> for AnyGraph {
    fn from(graph: CompiledStateGraph<S>) -> Self {
        Self { core: graph.with_codec(Codec::of()).core }
    }
}

impl<S: Persist> From<&CompiledStateGraph<S>> for AnyGraph {
    fn from(graph: &CompiledStateGraph<S>) -> Self {
        graph.clone().into()
    }
}

impl std::fmt::Debug for AnyGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.core.plan.nodes.iter().map(|n| &*n.name).collect();
        f.debug_struct("AnyGraph").field("name", &self.name()).field("nodes", &names).finish_non_exhaustive()
    }
}
