//! From the graphs of a scenario to superstep's.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use superstep::{
    AnyValue, BoxError, CachePolicy, CompilationError, Context, ErrorKind, Goto, JsonFields, JsonInput, JsonReducer,
    JsonState, NamedPath, NodeDefaults, NodeError, NodeOptions, RetryPolicy, StateGraph, TimeoutPolicy, Topic,
};

use crate::expr::Env;
use crate::failure::Fail;
use crate::program::{self, Wishes};
use crate::scenario::{
    Branch, Cache, Defaults, Field, Graph, Names, Node, Program, Retry, RouteTable, Timeout, node_name,
};
use crate::world::{App, World};

/// The graph that the script is about.
pub(crate) fn root(world: &Arc<World>, graph: &Graph) -> Result<App, CompilationError> {
    let mut built = build(world, graph, &world.scenario.name)?;
    built.store(world.store.clone());
    match world.saver() {
        Some(saver) => built.checkpointer(saver).compile(),
        None => built.compile(),
    }
}

/// A graph inside another one.
pub(crate) fn subgraph(world: &Arc<World>, name: &str, graph: &Graph) -> Result<App, CompilationError> {
    let mut built = build(world, graph, name)?;
    match graph.checkpointer {
        Some(true) => built.persistent().compile(),
        Some(false) => built.stateless().compile(),
        None => built.compile(),
    }
}

fn build(world: &Arc<World>, graph: &Graph, name: &str) -> Result<StateGraph<JsonState>, CompilationError> {
    let (fields, private) = fields(graph);
    let known =
        |names: &[String]| -> Vec<String> { names.iter().filter(|n| graph.state.get(n).is_some()).cloned().collect() };
    let mut built = StateGraph::dynamic(fields.clone());
    built.name(name).cache(world.cache.clone()).private(private);
    if let Some(names) = &graph.input {
        built.input(known(names));
    }
    if let Some(names) = &graph.output {
        built.output(known(names));
    }
    built.set_node_defaults(defaults(world, &graph.defaults));
    for (name, node) in graph.nodes.iter() {
        add_node(&mut built, world, &fields, name, node)?;
    }
    add_edges(&mut built, graph);
    for (ix, branch) in graph.branches.iter().enumerate() {
        add_branch(&mut built, world, branch, ix);
    }
    let stops = |names: &Option<Names>| names.clone().map(Names::into_list).unwrap_or_default();
    built.interrupt_before(stops(&graph.interrupt_before)).interrupt_after(stops(&graph.interrupt_after));
    Ok(built)
}

// ---- fields ----

/// All fields, and the names of those that only some nodes see.
fn fields(graph: &Graph) -> (JsonFields, Vec<String>) {
    let mut all = graph.state.iter().fold(JsonState::schema(), |all, (name, field)| add_field(all, name, field));
    let mut private = Vec::new();
    for (_, node) in graph.nodes.iter() {
        let seen = |name: &str| node.input.iter().flatten().any(|n| n == name);
        for (name, field) in node.private.iter().filter(|(name, _)| seen(name)) {
            all = add_field(all, name, field);
            if graph.state.get(name).is_none() {
                private.push(name.to_owned());
            }
        }
    }
    (all, private)
}

fn add_field(fields: JsonFields, name: &str, field: &Field) -> JsonFields {
    let reducer = match field.reducer.as_deref() {
        None => return fields.last_value(name),
        Some("add") => JsonReducer::Add,
        Some("merge") => JsonReducer::Merge,
        Some("max") => JsonReducer::Max,
        Some("messages") => JsonReducer::Messages,
        Some("any") => return fields.field(name, AnyValue::default()),
        Some("ephemeral") => return fields.ephemeral(name),
        Some("topic") => return fields.topic(name),
        Some("topic_accumulate") => return fields.field(name, Topic::new().accumulate()),
        Some("untracked") => return fields.untracked(name),
        Some("delta") => return fields.delta(name),
        Some("is_last_step") => return fields.is_last_step(name),
        Some("remaining_steps") => return fields.remaining_steps(name),
        Some(other) => panic!("unknown reducer `{other}`"),
    };
    fields.reducer(name, reducer, initial(field.kind.as_deref()))
}

/// The value that a field with a reducer starts with.
fn initial(kind: Option<&str>) -> Option<Value> {
    match kind? {
        "int" => Some(json!(0)),
        "str" => Some(json!("")),
        "bool" => Some(json!(false)),
        "list" => Some(json!([])),
        "dict" => Some(json!({})),
        _ => None,
    }
}

// ---- nodes ----

fn add_node(
    graph: &mut StateGraph<JsonState>,
    world: &Arc<World>,
    fields: &JsonFields,
    name: &str,
    node: &Node,
) -> Result<(), CompilationError> {
    let body = node_body(world, &node.program, name);
    if let Some(name) = &node.duplicate_of {
        graph.add_node(name, body);
        return Ok(());
    }
    let options = options(world, fields, name, node);
    match &node.subgraph {
        Some(inner) => {
            let inner = world.subgraph(inner).unwrap_or_else(|| panic!("there is no graph `{inner}`"))?;
            graph.add_node_with(name, inner, options)
        }
        None => graph.add_node_with(name, body, options),
    };
    Ok(())
}

type Running<T> = std::pin::Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

fn node_body(
    world: &Arc<World>,
    program: &Program,
    place: &str,
) -> impl Fn(JsonInput, Context) -> Running<superstep::Outcome<JsonState>> + Send + Sync + use<> {
    let (world, program, place) = (world.clone(), program.clone(), Arc::<str>::from(place));
    move |input, cx| {
        let (env, program, place) = (Env::new(&world, input.0, Some(cx)), program.clone(), place.clone());
        Box::pin(async move { program::node(&program, env, &place).await })
    }
}

fn handler_body(
    world: &Arc<World>,
    program: &Program,
    place: &str,
) -> impl Fn(JsonInput, Context, NodeError) -> Running<superstep::Outcome<JsonState>> + Send + Sync + use<> {
    let (world, program, place) = (world.clone(), program.clone(), Arc::<str>::from(format!("handler:{place}")));
    move |input, cx, error| {
        let (mut env, program, place) = (Env::new(&world, input.0, Some(cx)), program.clone(), place.clone());
        env.local = Map::from_iter([("error".to_owned(), told(&error)), ("node".to_owned(), json!(error.node()))]);
        Box::pin(async move { program::node(&program, env, &place).await })
    }
}

/// The error as the traces show it: Python's is its message, and its `repr` once it was saved.
fn told(error: &NodeError) -> Value {
    match error.error() {
        None if error.kind() == ErrorKind::Node => json!(format!("ScenarioError('{}')", error.message())),
        _ => json!(error.message()),
    }
}

fn options(world: &Arc<World>, fields: &JsonFields, name: &str, node: &Node) -> NodeOptions<JsonState> {
    let mut options = NodeOptions::new();
    if node.defer {
        options = options.defer();
    }
    if let Some(names) = &node.input {
        options = options.fields(names.iter().filter(|n| fields.names().any(|f| f == *n)));
    }
    if let Some(policy) = &node.retry {
        options = options.retry(retry(policy));
    }
    if let Some(policy) = node.timeout.as_ref().and_then(timeout) {
        options = options.timeout(policy);
    }
    if let Some(policy) = &node.cache {
        options = options.cache(cache(policy));
    }
    if let Some(program) = &node.error_handler {
        options = options.error_handler(handler_body(world, program, name));
    }
    if let Some(names) = &node.destinations {
        options = options.destinations(names.iter().map(|n| node_name(n)));
    }
    options
}

fn defaults(world: &Arc<World>, given: &Defaults) -> NodeDefaults<JsonState> {
    let mut defaults = NodeDefaults::new();
    if let Some(policy) = &given.retry {
        defaults = defaults.retry(retry(policy));
    }
    if let Some(policy) = given.timeout.as_ref().and_then(timeout) {
        defaults = defaults.timeout(policy);
    }
    if let Some(program) = &given.error_handler {
        defaults = defaults.error_handler(handler_body(world, program, "default_handler"));
    }
    defaults
}

fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1000.0)
}

/// A policy for what `fail` raises, its other kind aside.
pub(crate) fn retry(policy: &Retry) -> RetryPolicy {
    RetryPolicy::new()
        .initial_interval(milliseconds(policy.initial_ms.unwrap_or(1.0)))
        .backoff_factor(policy.backoff.unwrap_or(1.0))
        .max_attempts(policy.max_attempts.unwrap_or(3))
        .jitter(false)
        .retry_on(|error| error.downcast_ref::<Fail>().is_some_and(|fail| !fail.other))
}

fn timeout(policy: &Timeout) -> Option<TimeoutPolicy> {
    let limits = match (policy.run_ms.map(milliseconds), policy.idle_ms.map(milliseconds)) {
        (Some(run), Some(idle)) => TimeoutPolicy::run(run).idle(idle),
        (Some(run), None) => TimeoutPolicy::run(run),
        (None, Some(idle)) => TimeoutPolicy::idle_only(idle),
        (None, None) => return None,
    };
    Some(if policy.refresh_on.as_deref() == Some("heartbeat") { limits.on_heartbeat_only() } else { limits })
}

fn cache(policy: &Cache) -> CachePolicy<JsonState> {
    let keyed = match policy.key.clone() {
        Some(key) => CachePolicy::by(move |input: &JsonInput| input.get(&key).cloned()),
        None => CachePolicy::new(),
    };
    match policy.ttl {
        Some(seconds) => keyed.ttl(Duration::from_secs_f64(seconds)),
        None => keyed,
    }
}

// ---- edges ----

fn add_edges(graph: &mut StateGraph<JsonState>, given: &Graph) {
    for (from, to) in &given.edges {
        match from {
            Names::One(from) => graph.add_edge(node_name(from), node_name(to)),
            Names::Many(sources) => {
                graph.add_edge(sources.iter().map(|n| node_name(n)).collect::<Vec<_>>(), node_name(to))
            }
        };
    }
}

fn add_branch(graph: &mut StateGraph<JsonState>, world: &Arc<World>, branch: &Branch, ix: usize) {
    let name = branch.name.clone().unwrap_or_else(|| format!("path{ix}"));
    let (from, path) = (node_name(&branch.from), path(world, &branch.program, &name));
    let path = NamedPath::new(name, path);
    match &branch.map {
        None => graph.add_conditional_edges(from, path),
        Some(RouteTable::Labels(labels)) => {
            graph.add_conditional_edges_with_map(from, path, labels.iter().map(|(label, to)| (label, node_name(to))))
        }
        Some(RouteTable::Nodes(nodes)) => {
            graph.add_conditional_edges_with_map(from, path, nodes.iter().map(|name| node_name(name)))
        }
    };
}

fn path(
    world: &Arc<World>,
    program: &Program,
    place: &str,
) -> impl Fn(JsonInput, Context) -> Running<Vec<Goto>> + Send + Sync + use<> {
    let (world, program, place) = (world.clone(), program.clone(), Arc::<str>::from(place));
    move |input, cx| {
        let (mut env, program, place) = (Env::new(&world, input.0, Some(cx)), program.clone(), place.clone());
        Box::pin(async move {
            let mut wishes = Wishes::default();
            program::run(&program, &mut env, &mut wishes, &place).await?;
            Ok(wishes.routes)
        })
    }
}
