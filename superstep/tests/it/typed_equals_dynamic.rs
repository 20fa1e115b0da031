//! A typed state and a dynamic one with the same fields are the same to the engine.
//!
//! Graphs are made at random and run over both: results, histories and events must be equal.

use std::future::{Ready, ready};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use superstep::{
    CompiledStateGraph, END, IntoInput, JsonFields, JsonInput, JsonReducer, JsonState, MemorySaver, Mode, NodeOptions,
    Persist, START, Send, Sent, State, StateGraph, SubgraphState, Thread, Topic,
};
use tokio::task::unconstrained;

use crate::support::{events, history};

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Board {
    #[state(append)]
    log: Vec<i64>,
    #[state(sum)]
    total: i64,
    last: Option<i64>,
    #[state(reduce = keep_greater)]
    best: i64,
    #[state(topic)]
    news: Vec<i64>,
    #[state(topic(accumulate))]
    all_news: Vec<i64>,
    #[state(any)]
    hint: Option<i64>,
    #[state(ephemeral)]
    flash: Option<i64>,
}

fn keep_greater(best: &mut i64, new: i64) {
    *best = (*best).max(new);
}

fn same_fields() -> JsonFields {
    JsonState::schema()
        .append("log")
        .sum("total")
        .last_value("last")
        .reducer("best", JsonReducer::Max, Some(json!(0)))
        .topic("news")
        .field("all_news", Topic::new().accumulate())
        .any("hint")
        .ephemeral("flash")
}

/// One thing that a node does.
#[derive(Debug, Clone, Copy)]
enum Act {
    Log(i64),
    /// Logs what it reads.
    LogTotal,
    LogLast,
    LogNews,
    Add(i64),
    Set(i64),
    Best(i64),
    Tell(i64),
    Collect(i64),
    Hint(i64),
    Flash(i64),
}

/// Where a node's conditional edge leads.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// Back or on to a node, until so much was added.
    Until {
        total: i64,
        to: usize,
    },
    /// To one of two nodes further on, by what was added.
    Parity {
        even: usize,
        odd: usize,
    },
    /// So many sends to the worker.
    Fan(i64),
    Nowhere,
}

/// A node that is a graph over the same state: what its nodes do, one after another.
#[derive(Debug, Clone)]
struct Inside {
    steps: Vec<Vec<Act>>,
    keeps: Keeps,
    shares: Shares,
}

/// What a graph inside keeps from call to call.
#[derive(Debug, Clone, Copy)]
enum Keeps {
    Calls,
    One,
    Nothing,
}

/// Which fields a graph inside takes and gives back.
#[derive(Debug, Clone, Copy)]
enum Shares {
    /// All; the parent merges what the child was given once more.
    All,
    /// Some are only read, some only written.
    Some,
    Few,
}

#[derive(Debug, Clone)]
struct NodeSpec {
    acts: Vec<Act>,
    inside: Option<Inside>,
    /// Edges to nodes further on.
    edges: Vec<usize>,
    turn: Turn,
    defer: bool,
}

#[derive(Debug, Clone)]
struct Spec {
    nodes: Vec<NodeSpec>,
    /// Edges from the start.
    entries: Vec<usize>,
    /// Sources and target, by number.
    joins: Vec<(Vec<usize>, usize)>,
    /// The edge of the worker of sends.
    after_work: Option<usize>,
    inputs: Vec<i64>,
}

fn act() -> impl Strategy<Value = Act> {
    let n = -3..6i64;
    prop_oneof![
        n.clone().prop_map(Act::Log),
        Just(Act::LogTotal),
        Just(Act::LogLast),
        Just(Act::LogNews),
        n.clone().prop_map(Act::Add),
        n.clone().prop_map(Act::Set),
        n.clone().prop_map(Act::Best),
        n.clone().prop_map(Act::Tell),
        n.clone().prop_map(Act::Collect),
        n.clone().prop_map(Act::Hint),
        n.prop_map(Act::Flash),
    ]
}

const NODES: usize = 6;

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        3 => Just(Turn::Nowhere),
        2 => (1..12i64, 0..NODES).prop_map(|(total, to)| Turn::Until { total, to }),
        1 => (0..NODES, 0..NODES).prop_map(|(even, odd)| Turn::Parity { even, odd }),
        2 => (0..4i64).prop_map(Turn::Fan),
    ]
}

fn inside() -> impl Strategy<Value = Inside> {
    let keeps = prop_oneof![2 => Just(Keeps::Calls), 1 => Just(Keeps::One), 1 => Just(Keeps::Nothing)];
    let shares = prop_oneof![Just(Shares::All), Just(Shares::Some), Just(Shares::Few)];
    let parts = (vec(vec(act(), 0..3), 1..4), keeps, shares);
    parts.prop_map(|(steps, keeps, shares)| Inside { steps, keeps, shares })
}

fn node() -> impl Strategy<Value = NodeSpec> {
    let inside = prop::option::weighted(0.3, inside());
    let parts = (vec(act(), 0..4), inside, vec(0..NODES, 0..3), turn(), prop::bool::weighted(0.15));
    parts.prop_map(|(acts, inside, edges, turn, defer)| NodeSpec { acts, inside, edges, turn, defer })
}

fn spec() -> impl Strategy<Value = Spec> {
    let joins = vec((vec(0..NODES, 1..4), 0..NODES), 0..3);
    let parts = (vec(node(), NODES), vec(0..NODES, 1..4), joins, prop::option::of(0..NODES), vec(-2..3i64, 1..3));
    parts.prop_map(|(nodes, entries, joins, after_work, inputs)| Spec { nodes, entries, joins, after_work, inputs })
}

fn name(node: usize) -> String {
    // The order of names is not the order of numbers.
    format!("{}{node}", ["m", "c", "z", "a", "k", "b"][node % NODES])
}

/// What a node reads.
#[derive(Clone)]
struct Read {
    total: i64,
    last: Option<i64>,
    news: Vec<i64>,
}

/// What the acts of a node come to, field by field; each field at most once.
fn writes(acts: &[Act], read: &Read) -> Map<String, Value> {
    let mut all = Map::new();
    let mut items = |field: &str, item: i64| match all.entry(field).or_insert_with(|| json!([])) {
        Value::Array(list) => list.push(json!(item)),
        _ => unreachable!("fields of items hold lists"),
    };
    for act in acts {
        match act {
            Act::Log(n) => items("log", *n),
            Act::LogTotal => items("log", read.total),
            Act::LogLast => items("log", read.last.unwrap_or(-100)),
            Act::LogNews => items("log", read.news.iter().sum()),
            Act::Tell(n) => items("news", *n),
            Act::Collect(n) => items("all_news", *n),
            _ => {}
        }
    }
    for act in acts {
        match act {
            Act::Add(n) => all.insert("total".into(), json!(n)),
            Act::Set(n) => all.insert("last".into(), json!(n)),
            Act::Best(n) => all.insert("best".into(), json!(n)),
            Act::Hint(n) => all.insert("hint".into(), json!(n)),
            Act::Flash(n) => all.insert("flash".into(), json!(n)),
            _ => None,
        };
    }
    all
}

/// The same writes as an update of the typed state.
fn typed(writes: &Map<String, Value>) -> BoardUpdate {
    let mut update = Board::update();
    let list = |v: &Value| v.as_array().into_iter().flatten().filter_map(Value::as_i64).collect::<Vec<_>>();
    for (field, value) in writes {
        let one = || value.as_i64().expect("a number");
        update = match field.as_str() {
            "log" => update.log(list(value)),
            "news" => update.news(list(value)),
            "all_news" => update.all_news(list(value)),
            "total" => update.total(one()),
            "last" => update.last(one()),
            "best" => update.best(one()),
            "hint" => update.hint(one()),
            "flash" => update.flash(one()),
            other => unreachable!("no act writes {other}"),
        };
    }
    update
}

/// A worker logs and adds what it was sent.
fn work_writes(part: i64) -> Map<String, Value> {
    Map::from_iter([("log".to_owned(), json!([part])), ("total".to_owned(), json!(1))])
}

enum Lead {
    To(Vec<String>),
    Fan(i64),
}

fn lead(turn: Turn, from: usize, total: i64) -> Lead {
    let on = |to: usize| if to > from { name(to) } else { END.to_owned() };
    Lead::To(match turn {
        Turn::Until { total: limit, to } if total < limit => vec![name(to)],
        Turn::Parity { even, odd } => vec![on(if total % 2 == 0 { even } else { odd })],
        Turn::Fan(n) => return Lead::Fan(n),
        Turn::Until { .. } | Turn::Nowhere => vec![],
    })
}

/// Everything but the nodes' functions, which depend on the state.
fn wire<'a, S: State>(graph: &'a mut StateGraph<S>, spec: &Spec) -> &'a mut StateGraph<S> {
    for entry in &spec.entries {
        graph.add_edge(START, name(*entry));
    }
    for (from, node) in spec.nodes.iter().enumerate() {
        for to in node.edges.iter().filter(|to| **to > from) {
            graph.add_edge(name(from), name(*to));
        }
    }
    for (sources, to) in &spec.joins {
        let sources: Vec<String> = sources.iter().filter(|s| **s < *to).map(|s| name(*s)).collect();
        if !sources.is_empty() {
            graph.add_edge(sources, name(*to));
        }
    }
    match spec.after_work {
        // Only the last nodes follow the worker: it must not send work to itself for ever.
        Some(to) if to >= NODES / 2 => graph.add_edge("work", name(to)),
        _ => graph,
    }
}

impl Spec {
    /// Whether a node may run again and again. Lists that a child gives back whole would grow without end.
    fn has_loops(&self) -> bool {
        self.after_work.is_some() || self.nodes.iter().any(|n| matches!(n.turn, Turn::Until { .. }))
    }
}

/// Everything of a graph inside but its nodes' functions.
fn wire_inside<S: Persist>(graph: &mut StateGraph<S>, inside: &Inside, spec: &Spec) -> CompiledStateGraph<S> {
    graph.add_sequence((0..inside.steps.len()).map(|step| format!("step{step}")));
    match inside.keeps {
        Keeps::Calls => &mut *graph,
        Keeps::One => graph.persistent(),
        Keeps::Nothing => graph.stateless(),
    };
    match inside.shares {
        Shares::All if !spec.has_loops() => &mut *graph,
        Shares::Few => graph.input(["last"]).output(["log", "total"]),
        _ => graph
            .input(["total", "last", "best", "news", "hint", "flash"])
            .output(["log", "last", "best", "news", "all_news", "hint"]),
    };
    graph.compile().expect("a chain is a graph")
}

fn options<S: State>(node: &NodeSpec) -> NodeOptions<S> {
    if node.defer { NodeOptions::new().defer() } else { NodeOptions::new() }
}

fn fan(lead: Lead) -> Vec<superstep::Goto> {
    match lead {
        Lead::To(names) => names.into_iter().map(Into::into).collect(),
        Lead::Fan(n) => (0..n).map(|part| Send::new("work", part).into()).collect(),
    }
}

fn typed_node(acts: Vec<Act>) -> impl Fn(Board) -> Ready<BoardUpdate> + std::marker::Send + Sync + 'static {
    move |board| {
        let read = Read { total: board.total, last: board.last, news: board.news };
        ready(typed(&writes(&acts, &read)))
    }
}

fn typed_graph(spec: &Spec) -> CompiledStateGraph<Board> {
    let mut graph = StateGraph::<Board>::new();
    for (ix, node) in spec.nodes.iter().enumerate() {
        match &node.inside {
            // A node that may lead back adds one, so that every loop ends.
            None => graph.add_node_with(name(ix), typed_node(node.acts_that_end()), options(node)),
            Some(inside) => {
                let mut child = StateGraph::<Board>::new();
                for (step, acts) in inside.steps.iter().enumerate() {
                    child.add_node(format!("step{step}"), typed_node(acts.clone()));
                }
                graph.add_node_with(name(ix), wire_inside(&mut child, inside, spec), options(node))
            }
        };
        if !matches!(node.turn, Turn::Nowhere) {
            let turn = node.turn;
            graph.add_conditional_edges(name(ix), move |board: &Board| fan(lead(turn, ix, board.total)));
        }
    }
    let work = async |Sent(part): Sent<i64>| typed(&work_writes(part));
    wire(graph.add_node("work", work), spec).checkpointer(MemorySaver::new()).compile().expect("the spec is a graph")
}

fn dynamic_node(acts: Vec<Act>) -> impl Fn(JsonInput) -> Ready<Value> + std::marker::Send + Sync + 'static {
    move |input| {
        let news = input["news"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
        let read = Read { total: input["total"].as_i64().unwrap_or(0), last: input["last"].as_i64(), news };
        ready(Value::Object(writes(&acts, &read)))
    }
}

fn dynamic_graph(spec: &Spec) -> CompiledStateGraph<JsonState> {
    let fields = same_fields();
    let mut graph = StateGraph::dynamic(fields.clone());
    for (ix, node) in spec.nodes.iter().enumerate() {
        match &node.inside {
            None => graph.add_node_with(name(ix), dynamic_node(node.acts_that_end()), options(node)),
            Some(inside) => {
                let mut child = StateGraph::dynamic(fields.clone());
                for (step, acts) in inside.steps.iter().enumerate() {
                    child.add_node(format!("step{step}"), dynamic_node(acts.clone()));
                }
                graph.add_node_with(name(ix), wire_inside(&mut child, inside, spec), options(node))
            }
        };
        if !matches!(node.turn, Turn::Nowhere) {
            let (turn, fields) = (node.turn, fields.clone());
            graph.add_conditional_edges(name(ix), move |state: &JsonState| {
                let total = state.get(&fields, "total").and_then(Value::as_i64).unwrap_or(0);
                fan(lead(turn, ix, total))
            });
        }
    }
    let work = async |input: JsonInput| Value::Object(work_writes(input.as_i64().expect("a number was sent")));
    wire(graph.add_node("work", work), spec).checkpointer(MemorySaver::new()).compile().expect("the spec is a graph")
}

impl NodeSpec {
    fn acts_that_end(&self) -> Vec<Act> {
        let mut acts = self.acts.clone();
        if matches!(self.turn, Turn::Until { .. }) {
            acts.retain(|a| !matches!(a, Act::Add(_)));
            acts.push(Act::Add(1));
        } else {
            acts.retain(|a| !matches!(a, Act::Add(n) if *n < 0));
        }
        acts
    }
}

/// Everything that a caller can see of several runs on one thread.
async fn seen<S, M>(app: &CompiledStateGraph<S>, inputs: impl IntoIterator<Item = impl IntoInput<S, M>>) -> Value
where
    S: Persist,
{
    let mut all = Vec::new();
    for input in inputs {
        let modes = [Mode::Values, Mode::Updates, Mode::Tasks, Mode::Checkpoints];
        let stream = app.stream(input).thread("t").recursion_limit(30).modes(modes).subgraphs().start();
        all.push(json!(events(stream).await));
    }
    let state = match app.thread("t").state().await {
        Ok(state) => json!({ "values": state.values(), "next": state.next }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    let inside = histories_inside(&app.thread("t")).await;
    let history = history(&app.thread("t")).await.expect("the history can be read");
    json!({ "runs": all, "state": state, "history": history, "inside": inside })
}

/// The histories of all graphs inside that a thread ever ran.
async fn histories_inside<S: State>(thread: &Thread<S>) -> Vec<Value> {
    let mut all = Vec::new();
    for at in thread.history().await.expect("the history can be read") {
        for task in &at.tasks {
            if let Some(inside) = task.state.as_ref().and_then(SubgraphState::thread::<S>) {
                all.push(json!({ "node": task.name, "history": history(&inside).await.expect("so can this") }));
            }
        }
    }
    all
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Compares item by item, to name the first that differs.
fn same_items(typed: &Value, dynamic: &Value, what: &str) -> Result<(), TestCaseError> {
    for (at, (typed, dynamic)) in items(typed).iter().zip(items(dynamic)).enumerate() {
        prop_assert_eq!(typed, dynamic, "{}, at {}", what, at);
    }
    Ok(())
}

async fn compare(spec: &Spec) -> Result<(), TestCaseError> {
    let inputs =
        || spec.inputs.iter().map(|n| Map::from_iter([("total".to_owned(), json!(n)), ("log".to_owned(), json!([n]))]));
    // Tasks side by side show their events as they finish. So that both runs give way at the same points, neither
    // starts with what the other left of tokio's budget.
    let of_typed = unconstrained(seen(&typed_graph(spec), inputs().map(|w| typed(&w)))).await;
    let of_dynamic = unconstrained(seen(&dynamic_graph(spec), inputs().map(Value::Object))).await;
    prop_assert_eq!(&of_typed["state"], &of_dynamic["state"], "the state at the end");
    for part in ["history", "inside"] {
        same_items(&of_typed[part], &of_dynamic[part], part)?;
    }
    for (typed, dynamic) in items(&of_typed["runs"]).iter().zip(items(&of_dynamic["runs"])) {
        same_items(typed, dynamic, "events")?;
    }
    prop_assert_eq!(of_typed, of_dynamic);
    Ok(())
}

#[test]
fn a_typed_graph_and_its_dynamic_twin_do_the_same() {
    let config = ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let outcome = runner.run(&spec(), |spec| runtime.block_on(compare(&spec)));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
