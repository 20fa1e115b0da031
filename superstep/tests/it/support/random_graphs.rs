//! Graphs made at random, for tests that hold two ways of running one against each other.

use std::future::ready;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use superstep::{
    BoxError, Command, CompiledStateGraph, END, NodeOptions, Persist, START, Send, Sent, State, StateGraph, Thread,
};

use super::history;

#[derive(State, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Board {
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

/// One thing that a node does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
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
    /// Fails once so much was added.
    FailAt(i64),
}

/// Where a node's conditional edge leads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Turn {
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
pub(crate) struct Inside {
    pub(crate) steps: Vec<Vec<Act>>,
    pub(crate) keeps: Keeps,
    pub(crate) shares: Shares,
}

/// What a graph inside keeps from call to call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keeps {
    Calls,
    One,
    Nothing,
}

/// Which fields a graph inside takes and gives back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shares {
    /// All; the parent merges what the child was given once more.
    All,
    /// Some are only read, some only written.
    Some,
    Few,
}

#[derive(Debug, Clone)]
pub(crate) struct NodeSpec {
    pub(crate) acts: Vec<Act>,
    pub(crate) inside: Option<Inside>,
    /// Edges to nodes further on.
    pub(crate) edges: Vec<usize>,
    pub(crate) turn: Turn,
    /// A node further on that it names itself.
    pub(crate) goto: Option<usize>,
    pub(crate) defer: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) nodes: Vec<NodeSpec>,
    /// Edges from the start.
    pub(crate) entries: Vec<usize>,
    /// Sources and target, by number.
    pub(crate) joins: Vec<(Vec<usize>, usize)>,
    /// The edge of the worker of sends.
    pub(crate) after_work: Option<usize>,
    pub(crate) inputs: Vec<i64>,
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
        (2..9i64).prop_map(Act::FailAt),
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
    let goto = prop::option::weighted(0.2, 0..NODES);
    let parts = (vec(act(), 0..4), inside, vec(0..NODES, 0..3), turn(), goto, prop::bool::weighted(0.15));
    parts.prop_map(|(acts, inside, edges, turn, goto, defer)| NodeSpec { acts, inside, edges, turn, goto, defer })
}

pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    let joins = vec((vec(0..NODES, 1..4), 0..NODES), 0..3);
    let parts = (
        vec(node(), NODES),
        vec(0..NODES, 1..4),
        joins,
        prop::option::of(0..NODES),
        vec(-2..3i64, 1..3),
        any::<bool>(),
    );
    parts.prop_map(|(mut nodes, entries, joins, after_work, inputs, may_fail)| {
        nodes.iter_mut().for_each(|node| if may_fail { node.inside = None } else { node.never_fail() });
        Spec { nodes, entries, joins, after_work, inputs }
    })
}

pub(crate) fn name(node: usize) -> String {
    // The order of names is not the order of numbers.
    format!("{}{node}", ["m", "c", "z", "a", "k", "b"][node % NODES])
}

/// What a node reads.
#[derive(Clone)]
pub(crate) struct Read {
    pub(crate) total: i64,
    pub(crate) last: Option<i64>,
    pub(crate) news: Vec<i64>,
}

/// What the acts of a node come to, field by field; each field at most once.
pub(crate) fn writes(acts: &[Act], read: &Read) -> Result<Map<String, Value>, BoxError> {
    if let Some(limit) = acts.iter().find_map(|act| if let Act::FailAt(n) = act { Some(*n) } else { None })
        && read.total >= limit
    {
        return Err(format!("{} is more than it can bear", read.total).into());
    }
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
    Ok(all)
}

/// The same writes as an update of the typed state.
pub(crate) fn typed(writes: &Map<String, Value>) -> BoardUpdate {
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
pub(crate) fn work_writes(part: i64) -> Map<String, Value> {
    Map::from_iter([("log".to_owned(), json!([part])), ("total".to_owned(), json!(1))])
}

pub(crate) enum Lead {
    To(Vec<String>),
    Fan(i64),
}

pub(crate) fn lead(turn: Turn, from: usize, total: i64) -> Lead {
    let on = |to: usize| if to > from { name(to) } else { END.to_owned() };
    Lead::To(match turn {
        Turn::Until { total: limit, to } if total < limit => vec![name(to)],
        Turn::Parity { even, odd } => vec![on(if total % 2 == 0 { even } else { odd })],
        Turn::Fan(n) => return Lead::Fan(n),
        Turn::Until { .. } | Turn::Nowhere => vec![],
    })
}

/// Everything but the nodes' functions, which depend on the state.
pub(crate) fn wire<'a, S: State>(graph: &'a mut StateGraph<S>, spec: &Spec) -> &'a mut StateGraph<S> {
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
    /// Whether a graph inside has one history for all its calls.
    pub(crate) fn keeps_histories(&self) -> bool {
        self.nodes.iter().filter_map(|node| node.inside.as_ref()).any(|inside| matches!(inside.keeps, Keeps::One))
    }

    /// Whether a node may run again and again. Lists that a child gives back whole would grow without end.
    fn has_loops(&self) -> bool {
        self.after_work.is_some() || self.nodes.iter().any(|n| matches!(n.turn, Turn::Until { .. }))
    }
}

/// Everything of a graph inside but its nodes' functions.
pub(crate) fn wire_inside<S: Persist>(
    graph: &mut StateGraph<S>,
    inside: &Inside,
    spec: &Spec,
) -> CompiledStateGraph<S> {
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

pub(crate) fn options<S: State>(node: &NodeSpec) -> NodeOptions<S> {
    if node.defer { NodeOptions::new().defer() } else { NodeOptions::new() }
}

pub(crate) fn fan(lead: Lead) -> Vec<superstep::Goto> {
    match lead {
        Lead::To(names) => names.into_iter().map(Into::into).collect(),
        Lead::Fan(n) => (0..n).map(|part| Send::new("work", part).into()).collect(),
    }
}

fn typed_writes(acts: &[Act], board: Board) -> Result<BoardUpdate, BoxError> {
    let read = Read { total: board.total, last: board.last, news: board.news };
    Ok(typed(&writes(acts, &read)?))
}

/// The graph of the typed state, to be given a checkpointer and compiled.
pub(crate) fn typed_graph(spec: &Spec) -> StateGraph<Board> {
    let mut graph = StateGraph::<Board>::new();
    for (ix, node) in spec.nodes.iter().enumerate() {
        // A node that may lead back adds one, so that every loop ends.
        let acts = node.acts_that_end();
        let goto = node.goto.filter(|to| *to > ix).map(name);
        match (&node.inside, goto) {
            (None, None) => {
                graph.add_node_with(name(ix), move |board| ready(typed_writes(&acts, board)), options(node))
            }
            (None, Some(to)) => {
                let lead = move |board| {
                    ready(typed_writes(&acts, board).map(|update| Command::new().update(update).goto(to.clone())))
                };
                graph.add_node_with(name(ix), lead, options(node))
            }
            (Some(inside), _) => {
                let mut child = StateGraph::<Board>::new();
                for (step, acts) in inside.steps.iter().cloned().enumerate() {
                    child.add_node(format!("step{step}"), move |board| ready(typed_writes(&acts, board)));
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
    wire(graph.add_node("work", work), spec);
    graph
}

/// The inputs of the runs, one after another on one thread.
pub(crate) fn inputs(spec: &Spec) -> impl Iterator<Item = Map<String, Value>> {
    spec.inputs.iter().map(|n| Map::from_iter([("total".to_owned(), json!(n)), ("log".to_owned(), json!([n]))]))
}

impl NodeSpec {
    /// How far a graph inside has come when a node beside it fails is chance: a graph has the one or the other.
    fn never_fail(&mut self) {
        let inside = self.inside.iter_mut().flat_map(|inside| &mut inside.steps);
        inside.chain([&mut self.acts]).for_each(|acts| acts.retain(|act| !matches!(act, Act::FailAt(_))));
    }

    pub(crate) fn acts_that_end(&self) -> Vec<Act> {
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

/// The histories of all graphs inside that a thread ever ran.
pub(crate) async fn histories_inside<S: State>(thread: &Thread<S>) -> Vec<Value> {
    let mut all = Vec::new();
    for at in thread.history().await.expect("the history can be read") {
        for task in &at.tasks {
            if let Some(inside) = task.namespace.as_ref().and_then(|at| thread.subgraph::<S>(at).ok()) {
                all.push(json!({ "node": task.name, "history": history(&inside).await.expect("so can this") }));
            }
        }
    }
    all
}
