//! Freezing a graph: every mistake is reported at once, then names become numbers.

use std::collections::{BTreeSet, HashSet};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::call::{AnyNode, AnyOutcome, CacheRule};
use crate::engine::is_reserved;
use crate::error::{BuildError, CompilationError, Hint};
use crate::graph::build::{GraphDraft, Settings};
use crate::graph::subgraph::MAX_LEVELS;
use crate::graph::{diagnose, hiding};
use crate::index::{ChannelIx, Indexed, Ix, NodeIx};
use crate::names::{DEFAULT_HANDLER, END, HANDLER_OF, ROOT, START};
use crate::node::NodeRules;
use crate::plan::{
    BranchPlan, ControlChannel, ControlKind, Diagnostic, GraphCore, InputMode, Labels, NameTable, NodePlan, Numbers,
    Plan, StopAt, Woken,
};
use crate::state::erased::{StateType, Typed};
use crate::state::{FieldKind, FieldSpec, State};
use crate::value::Blob;
use crate::view::Fields;

/// A frozen graph: immutable, cheap to clone, shared between threads.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, StateGraph, START};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile()?;
/// let same = app.clone();
/// let out = same.invoke(AgentState { messages: vec![Message::user("hi")] }).await?;
/// assert_eq!(out.state.messages.len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct CompiledStateGraph<S: State> {
    pub(crate) core: GraphCore,
    state: PhantomData<fn() -> S>,
}

impl GraphCore {
    /// Whether its states are of this type.
    pub(crate) fn is_over<S: State>(&self) -> bool {
        self.plan.ty.as_any().is::<Typed<S>>()
    }

    pub(crate) fn new(plan: Plan, settings: Settings, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            plan: Arc::new(Plan { diagnostics, ..plan }),
            persistence: settings.checkpointer,
            store: settings.store,
            cache: settings.cache,
            debug: settings.debug,
            context: settings.context,
        }
    }
}

impl<S: State> Clone for CompiledStateGraph<S> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone(), state: PhantomData }
    }
}

impl<S: State> std::fmt::Debug for CompiledStateGraph<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.core.plan.nodes.iter().map(|n| &*n.name).collect();
        f.debug_struct("CompiledStateGraph")
            .field("name", &self.core.plan.name)
            .field("nodes", &names)
            .finish_non_exhaustive()
    }
}

impl<S: State> CompiledStateGraph<S> {
    /// The graph's name.
    pub fn name(&self) -> &str {
        &self.core.plan.name
    }

    /// What is legal but probably not meant; see [`Diagnostic`].
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.core.plan.diagnostics
    }

    pub(crate) fn of(core: GraphCore) -> Self {
        Self { core, state: PhantomData }
    }
}

impl GraphDraft {
    /// Freezes the graph.
    pub(crate) fn compile(self) -> Result<GraphCore, CompilationError> {
        let mistakes = check(&self);
        if !mistakes.is_empty() {
            return Err(CompilationError::new(mistakes));
        }
        let diagnostics = diagnose::diagnose(&self);
        let (plan, settings) = freeze(self);
        Ok(GraphCore::new(plan, settings, diagnostics))
    }
}

// ---- mistakes ----

fn check(graph: &GraphDraft) -> Vec<BuildError> {
    let mut errors = Vec::new();
    for (name, why) in &graph.clashes {
        errors.push(BuildError::BadField { name: name.clone(), why: why.clone() });
    }
    errors.extend(reserved_fields(graph.fields()));
    check_names(graph, &mut errors);
    check_edges(graph, &mut errors);
    check_branches(graph, &mut errors);
    check_settings(graph, &mut errors);
    check_options(graph, &mut errors);
    let names: Vec<&str> = graph.nodes.iter().map(|(name, _, _)| name.as_str()).collect();
    errors.extend(graph.settings.evolution.mistakes(graph.ty.version(), &names));
    errors
}

fn check_names(graph: &GraphDraft, errors: &mut Vec<BuildError>) {
    let mut seen = HashSet::new();
    for (name, _, _) in &graph.nodes {
        let why = match name.as_str() {
            "" => Some("it is empty"),
            START | END => Some("it is reserved; use the constants `START` and `END` in edges"),
            n if n.contains(['|', ':']) => Some("`|` and `:` are reserved"),
            n if n == DEFAULT_HANDLER || n.starts_with(HANDLER_OF) => Some("it is reserved for error handlers"),
            _ => None,
        };
        if let Some(why) = why {
            errors.push(BuildError::BadName { name: name.clone(), why });
        }
        if !seen.insert(name) {
            errors.push(BuildError::DuplicateNode { name: name.clone() });
        }
    }
}

/// Fields whose names mean something else in checkpoints.
pub(super) fn reserved_fields(fields: &[FieldSpec]) -> impl Iterator<Item = BuildError> {
    let reserved = fields.iter().map(FieldSpec::name).filter(|name| is_reserved(name));
    reserved.map(|name| BuildError::BadField {
        name: name.to_owned(),
        why: "the name is reserved; give the field another one".to_owned(),
    })
}

struct Known<'a>(std::collections::BTreeMap<&'a str, usize>);

impl Known<'_> {
    fn source(&self, name: &str) -> Option<BuildError> {
        let unknown = name != START && !self.0.contains_key(name);
        unknown.then(|| BuildError::UnknownSource { name: name.to_owned(), hint: self.hint(name) })
    }

    fn target(&self, from: &str, name: &str) -> Option<BuildError> {
        if name == START {
            return Some(BuildError::EdgeToStart { from: from.to_owned() });
        }
        let unknown = name != END && !self.0.contains_key(name);
        let error =
            || BuildError::UnknownTarget { from: from.to_owned(), name: name.to_owned(), hint: self.hint(name) };
        unknown.then(error)
    }

    fn hint(&self, name: &str) -> Hint {
        Hint::near(name, self.0.keys().copied())
    }
}

fn check_edges(graph: &GraphDraft, errors: &mut Vec<BuildError>) {
    let known = Known(graph.names());
    for (from, to) in &graph.edges {
        if from == END {
            errors.push(BuildError::EdgeFromEnd { to: to.clone() });
        } else {
            errors.extend(known.source(from));
        }
        errors.extend(known.target(from, to));
    }
    for (sources, to) in &graph.joins {
        if sources.is_empty() {
            errors.push(BuildError::EmptyJoin { to: to.clone() });
        }
        for from in sources {
            errors.extend(if from == START {
                Some(BuildError::UnknownSource { name: from.clone(), hint: Hint::default() })
            } else {
                known.source(from)
            });
        }
        errors.extend(known.target(&sources.join(", "), to));
    }
    let leaves_start =
        graph.edges.iter().any(|(from, _)| from == START) || graph.branches.iter().any(|b| b.from == START);
    if !leaves_start {
        errors.push(BuildError::NoEntryPoint);
    }
}

fn check_branches(graph: &GraphDraft, errors: &mut Vec<BuildError>) {
    let known = Known(graph.names());
    let mut names = HashSet::new();
    for branch in &graph.branches {
        if branch.from == END {
            errors.push(BuildError::EdgeFromEnd { to: "a conditional target".to_owned() });
        } else {
            errors.extend(known.source(&branch.from));
        }
        for (_, target) in branch.map.iter().flatten() {
            errors.extend(known.target(&branch.from, target));
        }
        if let Some(then) = &branch.then {
            errors.extend(known.target(&branch.from, then));
        }
        if let Some(name) = &branch.path.name
            && !names.insert((&branch.from, name))
        {
            errors.push(BuildError::DuplicateBranch { node: branch.from.clone(), name: name.clone() });
        }
    }
    for (name, _, options) in &graph.nodes {
        for (target, _) in options.destinations.iter().flatten() {
            errors.extend(known.target(name, target));
        }
    }
}

fn check_settings(graph: &GraphDraft, errors: &mut Vec<BuildError>) {
    let known = Known(graph.names());
    let lists = [("interrupt_before", &graph.settings.stop_before), ("interrupt_after", &graph.settings.stop_after)];
    for (list, names) in lists {
        for name in names.iter().filter(|n| *n != "*" && !known.0.contains_key(n.as_str())) {
            errors.push(BuildError::UnknownInterruptNode { list, name: name.clone(), hint: known.hint(name) });
        }
    }
    let fields = graph.fields();
    check_fields(graph, "`private`", &graph.settings.hidden, errors);
    if graph.settings.step_timeout.is_some_and(|limit| limit.is_zero()) {
        let why = "a timeout must be greater than zero".to_owned();
        errors.push(BuildError::BadOption { place: "the graph".to_owned(), why });
    }
    let lists = [("input", &graph.settings.input), ("output", &graph.settings.output)];
    for (place, names) in lists.into_iter().filter_map(|(p, n)| Some((p, n.as_ref()?))) {
        check_fields(graph, &format!("`{place}`"), names, errors);
        for name in names {
            if fields.iter().any(|f| f.name() == name && f.kind.is_managed()) {
                let why = format!("managed values cannot be part of the {place}");
                errors.push(BuildError::BadField { name: name.clone(), why });
            }
            if fields.iter().any(|field| field.name() == name && field.is_internal()) {
                let why = format!("it is internal and so no part of the {place}; leave it out of the list");
                errors.push(BuildError::BadField { name: name.clone(), why });
            }
            if graph.settings.hidden.contains(name) {
                let why = format!("it is private and so no part of the {place}; leave it out of one of the lists");
                errors.push(BuildError::BadField { name: name.clone(), why });
            }
        }
    }
}

fn check_fields(graph: &GraphDraft, place: &str, names: &[String], errors: &mut Vec<BuildError>) {
    let fields = graph.fields();
    for name in names.iter().filter(|n| !fields.iter().any(|f| f.name() == *n)) {
        let hint = Hint::near(name, fields.iter().map(crate::state::FieldSpec::name));
        errors.push(BuildError::UnknownField { place: place.to_owned(), name: name.clone(), hint });
    }
}

fn check_options(graph: &GraphDraft, errors: &mut Vec<BuildError>) {
    let defaults = (&graph.defaults.timeout, &graph.defaults.retry);
    check_limits("node defaults", defaults.0.as_ref(), defaults.1.as_deref(), errors);
    check_cache("node defaults", graph.defaults.cache.as_ref(), errors);
    for (name, node, options) in &graph.nodes {
        if node.levels >= MAX_LEVELS {
            errors.push(BuildError::TooDeep { node: name.clone(), levels: node.levels, limit: MAX_LEVELS });
        }
        for why in &node.mistakes {
            errors.push(BuildError::BadOption { place: format!("node `{name}`"), why: why.clone() });
        }
        check_limits(&format!("node `{name}`"), options.timeout.as_ref(), options.retry.as_deref(), errors);
        check_cache(&format!("node `{name}`"), options.cache.as_ref(), errors);
        for fields in [&options.fields, &options.writes].into_iter().flatten() {
            check_fields(graph, &format!("node `{name}`"), fields, errors);
        }
        if options.blocking && (options.timeout.is_some() || graph.defaults.timeout.is_some()) {
            let why = "work on the blocking pool cannot be stopped, so it can have no timeout".to_owned();
            errors.push(BuildError::BadOption { place: format!("node `{name}`"), why });
        }
    }
}

/// Results that are kept for no time.
pub(super) fn check_cache(place: &str, policy: Option<&CacheRule>, errors: &mut Vec<BuildError>) {
    if let Some(why) = policy.and_then(|policy| crate::call::no_time_to_keep(policy.ttl)) {
        errors.push(BuildError::BadOption { place: place.to_owned(), why });
    }
}

pub(super) fn check_limits(
    place: &str,
    timeout: Option<&crate::TimeoutPolicy>,
    retry: Option<&[crate::RetryPolicy]>,
    errors: &mut Vec<BuildError>,
) {
    for why in crate::call::mistakes(timeout, retry.unwrap_or_default()) {
        errors.push(BuildError::BadOption { place: place.to_owned(), why });
    }
}

// ---- freezing ----

/// The node that writes a run's input.
fn start_node() -> AnyNode {
    AnyNode::new("", |_| Box::pin(async { Ok(AnyOutcome::default()) }))
}

fn freeze(graph: GraphDraft) -> (Plan, Settings) {
    let GraphDraft { ty, nodes, edges, joins, branches, defaults, settings, .. } = graph;
    let mut freezer =
        Freezer { nodes: Indexed::default(), names: NameTable::default(), control: Indexed::default(), defaults };
    freezer.control.push(ControlChannel { name: START.to_owned(), kind: ControlKind::Start });
    freezer.add(START, start_node(), NodeRules::default(), ty.fields());
    freezer.nodes[NodeIx::FIRST].hidden = true;
    freezer.nodes[NodeIx::FIRST].triggers.push(ChannelIx::FIRST);
    for (name, node, options) in nodes {
        freezer.add(&name, node, options, ty.fields());
    }
    freezer.add_default_handler(ty.fields());
    let mut edges = edges;
    let mut frozen_branches = Vec::new();
    for branch in branches {
        if let (Some(then), Some(map)) = (&branch.then, &branch.map) {
            let targets: BTreeSet<_> = map.iter().map(|(_, t)| t).filter(|t| *t != END).collect();
            edges.extend(targets.into_iter().map(|t| (t.clone(), then.clone())));
        }
        frozen_branches.push(branch);
    }
    freezer.connect(&edges, &joins);
    for branch in frozen_branches {
        let from = freezer.names[branch.from.as_str()];
        freezer.nodes[from].branches.push(BranchPlan { path: branch.path, map: branch.map });
    }
    freezer.hide(&settings.hidden, ty.fields());
    let plan = finish(freezer.nodes, freezer.names, freezer.control, &ty, &settings);
    (plan, settings)
}

struct Freezer {
    nodes: Indexed<NodeIx, NodePlan>,
    names: NameTable,
    control: Indexed<ChannelIx, ControlChannel>,
    defaults: NodeRules,
}

impl Freezer {
    fn add(&mut self, name: &str, run: AnyNode, options: NodeRules, state: &[FieldSpec]) {
        let handler = options.handler.clone();
        let fields = options.fields.clone();
        let ix = self.push(name, run, options, state);
        if let Some(handler) = handler {
            let options = NodeRules { fields, ..NodeRules::default() };
            let handler_ix = self.push(&format!("{HANDLER_OF}{name}"), handler, options, state);
            self.nodes[handler_ix].is_handler = true;
            self.nodes[ix].handler = Some(handler_ix);
        }
    }

    fn push(&mut self, name: &str, run: AnyNode, options: NodeRules, state: &[FieldSpec]) -> NodeIx {
        let mut node = node_plan(name, run, options, state);
        if name != START {
            let kind = if node.defer { ControlKind::BranchDeferred } else { ControlKind::Branch };
            node.triggers.push(self.control.push(ControlChannel { name: format!("branch:to:{name}"), kind }));
        }
        let ix = self.nodes.push(node);
        self.names.insert(name.into(), ix);
        ix
    }

    fn add_default_handler(&mut self, state: &[FieldSpec]) {
        let default = self.defaults.handler.clone();
        let handler = default.map(|run| {
            let ix = self.push(DEFAULT_HANDLER, run, NodeRules::default(), state);
            self.nodes[ix].is_handler = true;
            ix
        });
        let retry: Option<Arc<[_]>> = self.defaults.retry.as_deref().map(Into::into);
        for node in self.nodes.iter_mut().skip(1) {
            if node.retry.is_empty() {
                node.retry = retry.clone().unwrap_or_default();
            }
            node.timeout = node.timeout.or(self.defaults.timeout);
            if !node.is_handler {
                node.cache = node.cache.take().or_else(|| self.defaults.cache.clone());
                node.handler = node.handler.or(handler);
            }
        }
    }

    /// Hides from each node but the start what it is not to see.
    fn hide(&mut self, private: &[String], fields: &[FieldSpec]) {
        let place = |name: &String| fields.iter().position(|field| field.name() == name);
        let private: Vec<usize> = private.iter().filter_map(place).collect();
        self.nodes.iter_mut().for_each(|node| hiding::narrow(node, &private, fields));
        self.nodes.iter_mut().skip(1).for_each(|node| hiding::hide(node, fields));
    }

    fn connect(&mut self, edges: &[(String, String)], joins: &[(Vec<String>, String)]) {
        for (from, to) in edges {
            let from = self.names[from.as_str()];
            if to == END {
                self.nodes[from].ends = true;
                continue;
            }
            let wake = self.nodes[self.names[to.as_str()]].triggers[0];
            if !self.nodes[from].edges.contains(&wake) {
                self.nodes[from].edges.push(wake);
            }
        }
        let mut done = HashSet::new();
        for (sources, to) in joins.iter().filter(|(_, to)| to != END) {
            if done.insert((sources, to)) {
                self.join(sources, to);
            }
        }
    }

    fn join(&mut self, sources: &[String], to: &str) {
        let to_ix = self.names[to];
        let members: Vec<String> = sources.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        let channel = ChannelIx::new(self.control.len());
        for (member, name) in members.iter().enumerate() {
            let from = self.names[name.as_str()];
            self.nodes[from].joins.push((channel, member));
        }
        let name = format!("join:{}:{to}", sources.join("+"));
        let kind =
            if self.nodes[to_ix].defer { ControlKind::JoinDeferred { members } } else { ControlKind::Join { members } };
        self.nodes[to_ix].triggers.push(self.control.push(ControlChannel { name, kind }));
    }
}

pub(crate) fn node_plan(name: &str, run: AnyNode, options: NodeRules, fields: &[FieldSpec]) -> NodePlan {
    let place = |f: &String| fields.iter().position(|spec| spec.name() == f);
    NodePlan {
        name: name.into(),
        run,
        hidden: false,
        plain: false,
        quick_branches: false,
        paths_ask: false,
        consumes: false,
        wake: None,
        seen_at: 0,
        key: crate::id::name_key(name),
        triggers: Numbers::new(),
        trigger_names: Vec::new(),
        rank: 0,
        edges: Numbers::new(),
        ends: false,
        joins: Vec::new(),
        branches: Vec::new(),
        reads: options.fields.map(|fields| fields.iter().filter_map(place).collect()),
        retry: options.retry.unwrap_or_default().into(),
        timeout: options.timeout,
        cache: options.cache,
        handler: None,
        is_handler: false,
        defer: options.defer,
        blocking: options.blocking,
        metadata: options.metadata,
        destinations: options.destinations,
        returns: false,
    }
}

/// Works out everything that follows from nodes, channels and settings.
pub(crate) fn finish(
    mut nodes: Indexed<NodeIx, NodePlan>,
    names: NameTable,
    control: Indexed<ChannelIx, ControlChannel>,
    ty: &Arc<dyn StateType>,
    settings: &Settings,
) -> Plan {
    let fields = ty.fields();
    rank(&mut nodes);
    let (triggered, seen_len) = wire(&mut nodes, &control, fields);
    let labels = Labels { names: label_names(&nodes, &control, fields), shape: Blob::default() };
    let of_kind =
        |test: &dyn Fn(FieldKind) -> bool| (0..fields.len()).filter(|f| test(fields[*f].kind)).collect::<Vec<_>>();
    let places = |list: &Option<Vec<String>>| -> Option<Vec<usize>> {
        let place = |n: &String| fields.iter().position(|f| f.name() == n);
        list.as_ref().map(|names| names.iter().filter_map(place).collect())
    };
    let is_shown = |field: &usize| !fields[*field].is_internal();
    let visible: Vec<usize> = of_kind(&|k| !k.is_managed()).into_iter().filter(is_shown).collect();
    let hidden: Vec<usize> = places(&Some(settings.hidden.clone())).unwrap_or_default();
    let state_fields: Vec<usize> = visible.iter().copied().filter(|f| !hidden.contains(f)).collect();
    let shown = |list: Vec<usize>| match fields {
        [only] if only.name() == ROOT => Fields::One(0),
        _ => Fields::many(list),
    };
    let deferred =
        |c: &ControlChannel| matches!(c.kind, ControlKind::BranchDeferred | ControlKind::JoinDeferred { .. });
    let lasting =
        |c: ChannelIx| control.get(c).is_none_or(|c| !matches!(c.kind, ControlKind::Start | ControlKind::Branch));
    let mut plan = Plan {
        diagnostics: Vec::new(),
        lasting: triggered.places().filter(|c| lasting(*c) && !triggered[*c].is_empty()).collect(),
        name: settings.name.as_str().into(),
        kinds: fields.iter().map(|f| f.kind).collect(),
        labels,
        version: ty.version(),
        evolution: settings.evolution.clone(),
        seen_len,
        triggered,
        transient: of_kind(&FieldKind::is_transient),
        custom: of_kind(&|k| k == FieldKind::Custom),
        initial: of_kind(&FieldKind::starts_available).into_iter().collect(),
        deferred: control.enumerated().filter(|(_, c)| deferred(c)).map(|(ix, _)| ix).collect(),
        untracked: of_kind(&|k| k == FieldKind::Untracked),
        input: InputMode::Start { fields: Some(places(&settings.input).unwrap_or_else(|| state_fields.clone())) },
        output: places(&settings.output).map_or_else(|| shown(state_fields), Fields::many),
        shown: shown(visible),
        stop_before: stop_at(&settings.stop_before, &names),
        stop_after: stop_at(&settings.stop_after, &names),
        step_timeout: settings.step_timeout,
        ignores_unknown: settings.ignores_unknown,
        levels: 1 + nodes.iter().map(|node| node.run.levels).max().unwrap_or_default(),
        nodes,
        names,
        control,
        ty: ty.clone(),
    };
    plan.labels.shape = crate::engine::shape(&plan);
    plan
}

/// Gives each node its place in the order of names.
fn rank(nodes: &mut Indexed<NodeIx, NodePlan>) {
    let mut order: Vec<NodeIx> = nodes.places().collect();
    order.sort_by(|a, b| nodes[*a].name.cmp(&nodes[*b].name));
    for (rank, ix) in order.into_iter().enumerate() {
        nodes[ix].rank = rank;
    }
}

/// Tells nodes what their triggers are called and where they note what they have seen. Gives the nodes of each channel,
/// and how much there is to note.
fn wire(
    nodes: &mut Indexed<NodeIx, NodePlan>,
    control: &Indexed<ChannelIx, ControlChannel>,
    fields: &[FieldSpec],
) -> (Indexed<ChannelIx, Woken>, usize) {
    let channel_name = |c: ChannelIx| match control.get(c) {
        Some(channel) => channel.name.clone(),
        None => fields[c.get() - control.len()].name().to_owned(),
    };
    let mut triggered: Indexed<ChannelIx, Woken> = (0..control.len() + fields.len()).map(|_| Woken::new()).collect();
    let mut seen_len = 0;
    for (ix, node) in nodes.enumerated_mut() {
        node.trigger_names = node.triggers.iter().map(|t| channel_name(*t)).collect();
        node.trigger_names.sort();
        node.settle(seen_len, control);
        seen_len += node.triggers.len();
        node.triggers.iter().for_each(|t| triggered[*t].push(ix));
    }
    (triggered, seen_len)
}

/// The names that records use: channels, then the paths of the nodes.
fn label_names(
    nodes: &Indexed<NodeIx, NodePlan>,
    control: &Indexed<ChannelIx, ControlChannel>,
    fields: &[FieldSpec],
) -> Vec<Arc<str>> {
    let channels = control.iter().map(|c| c.name.clone()).chain(fields.iter().map(|f| f.name().to_owned()));
    let paths = nodes.iter().map(|n| format!("~__pregel_pull, {}", n.name));
    channels.chain(paths).map(Into::into).collect()
}

fn stop_at(list: &[String], names: &NameTable) -> StopAt {
    match list {
        [] => StopAt::Nowhere,
        list if list.iter().any(|n| n == "*") => StopAt::Everywhere,
        list => StopAt::Nodes(list.iter().filter_map(|n| names.get(n.as_str()).copied()).collect()),
    }
}
