//! What the seeds write, as they write it.

mod langgraph;
mod reducers;
mod workflow;

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;
use superstep::{
    Agent, AgentState, AgentStateUpdate, BoxError, BuildError, CompiledStateGraph, Context, END, EchoAgent,
    MemorySaver, Message, MessageKind, Next, Node, NodeOptions, Runtime, START, Send, Sent, StateGraph, Update,
};

async fn nothing(_: AgentState) {}

/// A graph with the nodes that seed 001 chains.
fn react() -> StateGraph<AgentState> {
    let mut graph = StateGraph::new();
    graph.add_node("think", nothing).add_node("act", nothing).add_node("observe", nothing);
    graph
}

fn mermaid(graph: &StateGraph<AgentState>) -> String {
    graph.compile().unwrap().draw().to_mermaid()
}

#[test]
fn a_sequence_is_given_as_a_slice_a_list_or_an_iterator() {
    let mut by_slice = react();
    by_slice.add_sequence(&["think", "act", "observe"]);
    let mut by_array = react();
    by_array.add_sequence(["think", "act", "observe"]);
    let names: Vec<String> = ["think", "act", "observe"].map(String::from).to_vec();
    let (mut by_strings, mut by_list) = (react(), react());
    by_strings.add_sequence(&names);
    by_list.add_sequence(names);
    let mut by_edges = react();
    by_edges.add_edge(START, "think").add_edge("think", "act").add_edge("act", "observe").add_edge("observe", END);
    let expected = mermaid(&by_edges);
    for graph in [by_slice, by_array, by_strings, by_list] {
        assert_eq!(mermaid(&graph), expected);
    }
}

#[test]
#[expect(clippy::needless_borrows_for_generic_args, reason = "it is shown that borrowed sources are taken")]
fn edges_take_strings_borrowed_strings_and_slices_of_sources() {
    let (think, act) = ("think".to_owned(), Cow::Borrowed("act"));
    let mut graph = react();
    graph.add_edge(START, &think);
    graph.add_edge(&think, act.clone());
    graph.add_edge(act, "observe".to_owned());
    graph.add_edge("observe", END);
    let mut plain = react();
    assert_eq!(mermaid(&graph), mermaid(plain.add_sequence(&["think", "act", "observe"])));

    let sources = vec!["think".to_owned(), "act".to_owned()];
    let join = |join: &dyn Fn(&mut StateGraph<AgentState>)| {
        let mut graph = react();
        graph.add_edge(START, "think").add_edge(START, "act");
        join(&mut graph);
        mermaid(&graph)
    };
    let expected = join(&|graph| _ = graph.add_edge(["think", "act"], "observe"));
    assert_eq!(join(&|graph| _ = graph.add_edge(&sources, "observe")), expected);
    assert_eq!(join(&|graph| _ = graph.add_edge(sources.as_slice(), "observe")), expected);
    assert_eq!(join(&|graph| _ = graph.add_edge(&["think", "act"], "observe")), expected);
}

/// Seed 001 builds by statements, 004 compiles one graph with several checkpointers.
#[tokio::test]
async fn a_graph_is_built_by_statements_and_compiled_twice() {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("agent", EchoAgent::new());
    graph.add_edge(START, "agent");
    let plain = graph.compile().unwrap();
    let saved = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let state = || AgentState { messages: vec![Message::user("hi")] };
    assert_eq!(plain.invoke(state()).await.unwrap().state.messages.len(), 2);
    saved.invoke(state()).thread("t").await.unwrap();
    assert_eq!(saved.invoke(state()).thread("t").await.unwrap().state.messages.len(), 4);
    assert!(plain.thread("t").state().await.is_err(), "the first one knows nothing of the checkpointer");
}

/// An error type as seed 002 has it.
#[derive(Debug)]
struct AgentError;

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no reply")
    }
}

impl std::error::Error for AgentError {}

fn do_chat(state: &AgentState) -> Result<String, AgentError> {
    state.messages.last().map(|said| format!("you said: {}", said.text())).ok_or(AgentError)
}

/// Seed 002 §5.1, to the letter.
fn chatbot_node(state: &AgentState) -> Result<AgentStateUpdate, AgentError> {
    let reply = do_chat(state)?;
    Ok(AgentStateUpdate { messages: Some(vec![Message { id: None, kind: MessageKind::Assistant(reply) }]) })
}

fn app_of<M>(node: impl superstep::IntoNode<AgentState, M>) -> CompiledStateGraph<AgentState> {
    StateGraph::<AgentState>::new().add_node("node", node).add_edge(START, "node").compile().unwrap()
}

async fn said(app: &CompiledStateGraph<AgentState>) -> String {
    let state = AgentState { messages: vec![Message::user("hi")] };
    let out = app.invoke(state).context(3_u32).await.unwrap();
    out.state.messages.last().unwrap().text().into_owned()
}

#[tokio::test]
#[expect(clippy::needless_pass_by_value, reason = "nodes are given what they take by value")]
async fn plain_functions_are_nodes_by_value_or_by_reference() {
    fn says(text: impl Into<String>) -> AgentStateUpdate {
        AgentStateUpdate { messages: Some(vec![Message::assistant(text)]) }
    }
    fn by_value(state: AgentState) -> AgentStateUpdate {
        says(format!("{} by value", state.messages.len()))
    }
    fn shared(state: std::sync::Arc<AgentState>) -> AgentStateUpdate {
        says(format!("{} shared", state.messages.len()))
    }
    fn with_context(_: &AgentState, cx: Context, Runtime(number): Runtime<u32>) -> AgentStateUpdate {
        says(format!("step {} with {number}", cx.step()))
    }
    assert_eq!(said(&app_of(chatbot_node)).await, "you said: hi");
    assert_eq!(said(&app_of(by_value)).await, "1 by value");
    assert_eq!(said(&app_of(shared)).await, "1 shared");
    assert_eq!(said(&app_of(with_context)).await, "step 1 with 3");
    assert_eq!(said(&app_of(|state: &AgentState| says(state.messages[0].text()))).await, "hi");
    let (word, other) = ("captured".to_owned(), "captured too".to_owned());
    assert_eq!(said(&app_of(move |_: AgentState| says(word.clone()))).await, "captured");
    assert_eq!(said(&app_of(move |_: &AgentState| Ok::<_, BoxError>(says(other.clone())))).await, "captured too");
    assert_eq!(said(&app_of(|_: AgentState| ())).await, "hi");
    assert_eq!(said(&app_of(|_: &AgentState| Update::<AgentState>::new())).await, "hi");
    assert_eq!(said(&app_of(async |_: AgentState| says("async"))).await, "async");

    let failed = app_of(chatbot_node).invoke(AgentState::default()).await.unwrap_err();
    assert!(failed.downcast_ref::<AgentError>().is_some(), "{failed}");
}

#[tokio::test]
async fn plain_functions_take_what_they_are_sent_panic_as_errors_and_may_block() {
    fn panics(_: &AgentState) {
        panic!("by accident");
    }
    fn work(Sent(number): Sent<u32>) -> AgentStateUpdate {
        AgentStateUpdate { messages: Some(vec![Message::assistant(number.to_string())]) }
    }
    let app = StateGraph::<AgentState>::new()
        .add_node("work", work)
        .add_conditional_edges(START, |_: &AgentState| vec![Send::new("work", 1_u32), Send::new("work", 2_u32)])
        .compile()
        .unwrap();
    assert_eq!(app.invoke(()).await.unwrap().state.messages.len(), 2);

    let error = app_of(panics).invoke(()).await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (superstep::ErrorKind::Panic, Some("node")));

    let here = std::thread::current().id();
    let elsewhere = move |_: &AgentState| {
        assert_ne!(std::thread::current().id(), here, "what is marked blocking runs on another thread");
    };
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node_with("block", elsewhere, NodeOptions::new().blocking()).add_edge(START, "block");
    graph.compile().unwrap().invoke(()).await.unwrap();
}

/// An agent that counts, of seed 000.
struct Counts;

#[async_trait]
impl Agent for Counts {
    type State = AgentState;
    async fn run(&self, mut state: AgentState) -> Result<AgentState, BoxError> {
        state.messages.push(Message::assistant(state.messages.len().to_string()));
        Ok(state)
    }
}

struct Greets;

#[async_trait]
impl Node<AgentState> for Greets {
    fn id(&self) -> &'static str {
        "greets"
    }
    async fn run(&self, mut state: AgentState) -> Result<(AgentState, Next), BoxError> {
        state.messages.push(Message::assistant("hello"));
        Ok((state, Next::Continue))
    }
}

/// Seed 000 §3 keeps `Box<dyn Node<S>>`, agents among them.
#[tokio::test]
async fn agents_and_nodes_are_kept_as_boxed_nodes() {
    let nodes: Vec<(&str, Box<dyn Node<AgentState>>)> =
        vec![("echo", Box::new(EchoAgent::new())), ("count", Box::new(Counts)), ("greet", Box::new(Greets))];
    let mut graph = StateGraph::<AgentState>::new();
    let mut names = Vec::new();
    for (name, node) in nodes {
        graph.add_node(name, node);
        names.push(name);
    }
    let app = graph.add_sequence(names).compile().unwrap();
    let state = app.invoke(AgentState { messages: vec![Message::user("hi")] }).await.unwrap().state;
    let said: Vec<_> = state.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["hi", "hi", "2", "hello"]);
}

/// Seed 000 §5: boxed where it is added; and an agent, which is a node too, is not ambiguous in any form.
#[tokio::test]
async fn boxed_and_shared_agents_and_nodes_are_added_as_they_are() {
    let boxed: Box<dyn Agent<State = AgentState>> = Box::new(Counts);
    let mut graph = StateGraph::<AgentState>::new();
    graph
        .add_node("echo", Box::new(EchoAgent::new()))
        .add_node("counts", Box::new(Counts))
        .add_node("greets", Box::new(Greets))
        .add_node("boxed", boxed)
        .add_node("shared", std::sync::Arc::new(Counts))
        .add_node("plain", Counts)
        .add(Counts)
        .add(Greets2);
    graph.add_sequence(["echo", "counts", "greets", "boxed", "shared", "plain", "Counts", "greets2"]);
    let app = graph.compile().unwrap();
    let state = app.invoke(AgentState { messages: vec![Message::user("hi")] }).await.unwrap().state;
    assert_eq!(state.messages.len(), 9);
}

struct Greets2;

#[async_trait]
impl Node<AgentState> for Greets2 {
    fn id(&self) -> &'static str {
        "greets2"
    }
    async fn run(&self, state: AgentState) -> Result<(AgentState, Next), BoxError> {
        Greets.run(state).await
    }
}

/// Seed 000 §4 and §1: the graph of one agent is the agent.
#[tokio::test]
async fn a_graph_of_one_agent_equals_the_agent() {
    let state = AgentState { messages: vec![Message::user("hi").with_id("1")] };
    let out = app_of(Counts).invoke(state.clone()).await.unwrap().state;
    let alone = Agent::run(&Counts, state).await.unwrap();
    let texts = |state: &AgentState| state.messages.iter().map(|m| m.text().into_owned()).collect::<Vec<_>>();
    assert_eq!(texts(&out), texts(&alone));
}

/// Seed 000 §5: the graph holds no state; the caller does.
#[tokio::test]
async fn the_caller_may_keep_the_state_between_runs() {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("echo", Box::new(EchoAgent::new())).add_edge(START, "echo");
    let compiled = graph.compile().expect("valid graph");
    let mut state = AgentState { messages: vec![Message::user("hi")] };
    state = compiled.invoke(state).await.unwrap().state;
    state.messages.push(Message::user("again"));
    let state = compiled.invoke(state).await.unwrap().state;
    let said: Vec<_> = state.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["hi", "hi", "again", "again"]);
}

/// Seed 001 §2.3, §4 and §5.1.
#[test]
fn entry_and_finish_points_are_edges_and_mistakes_have_types() {
    let mut by_points = react();
    by_points.set_entry_point("think").add_edge("think", "act").add_edge("act", "observe").set_finish_point("observe");
    let mut by_sequence = react();
    by_sequence.add_sequence(&["think", "act", "observe"]).add_sequence(&[] as &[&str]);
    assert_eq!(mermaid(&by_points), mermaid(&by_sequence));

    let mistakes = |add: &dyn Fn(&mut StateGraph<AgentState>)| {
        let mut graph = react();
        add(&mut graph);
        graph.compile().unwrap_err().errors().to_vec()
    };
    assert!(matches!(&*mistakes(&|_| ()), [BuildError::NoEntryPoint]));
    let from_end = mistakes(&|graph| _ = graph.set_entry_point("think").add_edge(END, "act"));
    assert!(matches!(&*from_end, [BuildError::EdgeFromEnd { .. }]), "{from_end:?}");
    let to_start = mistakes(&|graph| _ = graph.set_entry_point("think").add_edge("act", START));
    assert!(matches!(&*to_start, [BuildError::EdgeToStart { .. }]), "{to_start:?}");
}
