//! The graph of an agent.
//!
//! `START → hooks before the agent → hooks before the model → agent → hooks after the model → tools → …`, and at the
//! end the hooks before the model once more, the structured response, and the hooks after the agent. Hooks after
//! something run in reverse order.

use std::sync::Arc;

use superstep::{Conversation, NodeOptions, START, StateGraph};

use super::ReactAgent;
use super::hook::{HookNode, When};
use super::model_node::ModelNode;
use super::route::{AGENT, Routes, STRUCTURED, TOOLS, end};
use super::structured::StructuredNode;
use crate::middleware::Middleware;

type Layers<S> = Arc<[Arc<dyn Middleware<S>>]>;

pub(super) fn graph<S: Conversation>(agent: ReactAgent<S>) -> StateGraph<S> {
    let layers: Layers<S> = agent.middleware.into();
    let tools = agent.tools.tools(layers.iter().flat_map(|layer| layer.tools())).around(layers.iter().cloned());
    let way = Way::new(&layers, agent.structured.is_some(), tools.all_tools(), agent.name.as_deref());
    let model = ModelNode {
        name: agent.name.clone(),
        model: agent.model.clone(),
        prompt: agent.prompt,
        settings: agent.settings,
        tools: tools.all_tools().specs(),
        own_tools: tools.all_tools().own_names().into(),
        around: layers.clone(),
        round: way.round(agent.structured.is_some()),
    };
    let mut graph = StateGraph::new();
    graph.add_node(AGENT, model).add_edge(START, way.entry());
    match first_of(&way.after_model) {
        Some(hook) => graph.add_edge(AGENT, hook),
        None => part_after_model(&mut graph, AGENT, &way.routes),
    };
    if let Some(structured) = agent.structured {
        let (name, around) = (agent.name.clone(), layers.clone());
        let node = StructuredNode { name, model: agent.model, structured, around };
        graph.add_node(STRUCTURED, node).add_edge(STRUCTURED, way.routes.exit.clone());
    }
    if way.routes.has_tools {
        let routes = way.routes.clone();
        graph.add_node(TOOLS, tools);
        if routes.direct.is_empty() {
            graph.add_edge(TOOLS, routes.round.clone());
        } else {
            let targets = [routes.round.clone(), routes.answer.clone()];
            let path = move |state: &S| routes.after_tools(state.conversation());
            graph.add_conditional_edges_with_map(TOOLS, path, targets);
        }
    }
    way.add_hooks(&mut graph);
    if let Some(name) = agent.name {
        graph.name(name);
    }
    agent.changes.make(&mut graph);
    graph
}

type Hooks<S> = Vec<(String, Arc<dyn Middleware<S>>)>;

/// The hooks in the order in which they run, and how they hang together.
struct Way<S: Conversation> {
    before_agent: Hooks<S>,
    before_model: Hooks<S>,
    after_model: Hooks<S>,
    /// The hooks before the model once more, before its last call.
    before_response: Hooks<S>,
    after_agent: Hooks<S>,
    routes: Arc<Routes>,
}

impl<S: Conversation> Way<S> {
    fn new(layers: &Layers<S>, has_structured: bool, tools: &crate::tool::Tools, name: Option<&str>) -> Self {
        let hooks = |when: When| -> Hooks<S> {
            let having = layers.iter().filter(|layer| when.has(&***layer));
            having.map(|layer| (when.node(&**layer), layer.clone())).collect()
        };
        let reversed = |when: When| -> Hooks<S> { hooks(when).into_iter().rev().collect() };
        let (before_model, after_agent) = (hooks(When::BeforeModel), reversed(When::AfterAgent));
        let round = first_of(&before_model).unwrap_or_else(|| AGENT.to_owned());
        let exit = first_of(&after_agent).unwrap_or_else(end);
        let before_response = if has_structured { hooks(When::BeforeResponse) } else { Vec::new() };
        let response = has_structured.then(|| STRUCTURED.to_owned());
        let answer = first_of(&before_response).or(response).unwrap_or_else(|| exit.clone());
        let routes = Routes {
            agent: name.map(str::to_owned),
            round,
            answer,
            exit,
            direct: tools.direct(),
            leaving: tools.leaving(),
            has_tools: !tools.is_empty(),
        };
        Self {
            before_agent: hooks(When::BeforeAgent),
            before_model,
            after_model: reversed(When::AfterModel),
            before_response,
            after_agent,
            routes: Arc::new(routes),
        }
    }

    /// The steps from a model's calls to the end: hooks, tools, hooks, the model again, hooks. Without hooks it is as in
    /// LangGraph, where the calls are carried out in the last step, and nobody is left to read the results.
    fn round(&self, has_structured: bool) -> usize {
        let hooks = 2 * self.after_model.len() + self.before_model.len() + self.after_agent.len();
        if hooks == 0 { 2 } else { 3 + hooks + usize::from(has_structured) }
    }

    fn entry(&self) -> String {
        first_of(&self.before_agent).unwrap_or_else(|| self.routes.round.clone())
    }

    fn add_hooks(self, graph: &mut StateGraph<S>) {
        let routes = self.routes.clone();
        let before_agent = (When::BeforeAgent, self.before_agent, Some(routes.round.clone()));
        let before_model = (When::BeforeModel, self.before_model, Some(AGENT.to_owned()));
        let after_model = (When::AfterModel, self.after_model, None);
        let before_response = (When::BeforeResponse, self.before_response, Some(STRUCTURED.to_owned()));
        let after_agent = (When::AfterAgent, self.after_agent, Some(end()));
        let chains = [before_agent, before_model, after_model, before_response, after_agent];
        for (when, hooks, then) in chains {
            add_chain(graph, when, hooks, then.as_ref(), &routes);
        }
    }
}

/// Adds hooks that follow each other.
fn add_chain<S: Conversation>(
    graph: &mut StateGraph<S>,
    when: When,
    hooks: Hooks<S>,
    then: Option<&String>,
    routes: &Arc<Routes>,
) {
    let names: Vec<String> = hooks.iter().map(|(name, _)| name.clone()).collect();
    for (place, (name, middleware)) in hooks.into_iter().enumerate() {
        let next = names.get(place + 1).cloned().or_else(|| then.cloned());
        let mut jumps = routes.destinations();
        jumps.extend([routes.round.clone(), routes.exit.clone()]);
        jumps.sort();
        jumps.dedup();
        let node = HookNode { when, middleware, routes: routes.clone() };
        graph.add_node_with(name.clone(), node, NodeOptions::new().destinations(jumps));
        match next {
            // Not a plain edge: beside destinations that would look as if both were gone to.
            Some(next) => {
                let to = next.clone();
                graph.add_conditional_edges_with_map(name, move |_: &S| to.clone(), [next])
            }
            None => part_after_model(graph, &name, routes),
        };
    }
}

/// Where the way after the model parts: to the tools, back to the model, or to the answer. An update by hand as this node
/// leads there too.
fn part_after_model<'a, S: Conversation>(
    graph: &'a mut StateGraph<S>,
    node: &str,
    routes: &Arc<Routes>,
) -> &'a mut StateGraph<S> {
    let mut places = routes.destinations();
    places.push(routes.round.clone());
    let routes = routes.clone();
    let path = move |state: &S| routes.after_model(state.conversation());
    graph.add_conditional_edges_with_map(node, path, places)
}

fn first_of<S: Conversation>(hooks: &Hooks<S>) -> Option<String> {
    hooks.first().map(|(name, _)| name.clone())
}
