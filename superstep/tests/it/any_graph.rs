//! Graphs whose types nobody knows: run on JSON, looked at, changed, and given their type back.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    AgentState, AnyGraph, Context, EchoAgent, Entrypoint, GoOn, JsonCommand, JsonGoto, MappedGraph, MemorySaver,
    Message, MessageGraph, Resume, RunOptions, Runtime, START, State, StateGraph, Superstep, Thread,
};

use crate::support::{Notes, a_b_c, says};

/// A graph that nobody has given a checkpointer.
fn any(graph: &StateGraph<Notes>) -> AnyGraph {
    AnyGraph::from(graph.compile().unwrap())
}

fn kept(graph: &StateGraph<Notes>) -> AnyGraph {
    any(graph).with_checkpointer(MemorySaver::new())
}

fn asking() -> StateGraph<Notes> {
    let ask = async |_: Notes, cx: Context| cx.interrupt::<String>("who?").map(|who| Notes::update().log([who]));
    let mut graph = StateGraph::new();
    graph.add_node("first", says("first")).add_node("ask", ask).add_sequence(["first", "ask"]);
    graph
}

#[tokio::test]
async fn json_goes_straight_into_typed_fields() {
    let app = any(&a_b_c());
    let out = app.invoke(json!({ "topic": "tea", "log": ["start"], "total": 2 })).await.unwrap();
    assert_eq!(out.state, json!({ "log": ["start", "a", "b", "c"], "topic": "tea", "total": 2 }));
    let again = any(&a_b_c()).invoke(json!({ "log": { "__overwrite__": ["only"] } })).await.unwrap();
    assert_eq!(again.state["log"][0], "only");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_by_name_in_the_words_of_serde() {
    let app = any(&a_b_c());
    for (input, words) in [
        (json!({ "totla": 1 }), "field `totla`: the state has no such field; it has `log`, `total`, `topic`"),
        (json!({ "total": "ab" }), "field `total`: invalid type: string \"ab\", expected i64"),
        (json!({ "log": [1] }), "field `log`: invalid type: integer `1`, expected a string"),
        (json!([1]), "expected an object with fields of the state, got [1]"),
    ] {
        let error = app.invoke(input).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let empty = app.invoke(Value::Null).await.unwrap_err();
    assert!(empty.to_string().contains("there is no input"), "{empty}");
}

#[tokio::test]
async fn conversations_take_messages_as_other_programs_write_them() {
    let echo = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile().unwrap();
    for said in [
        json!(["hi"]),
        json!({ "role": "user", "content": "hi" }),
        json!([["user", "hi"]]),
        json!([{ "type": "human", "content": "hi" }]),
        json!([{ "type": "user", "content": "hi" }]),
    ] {
        let out = AnyGraph::from(&echo).invoke(json!({ "messages": said })).await.unwrap();
        assert_eq!(out.state["messages"][0]["content"], "hi", "{said}");
        assert_eq!(out.state["messages"][1]["content"], "hi", "{said}");
    }
    let bare = MessageGraph::new()
        .add_node("hello", async |_: Vec<Message>| Message::assistant("hello"))
        .add_edge(START, "hello")
        .compile();
    let out = AnyGraph::from(bare.unwrap()).invoke(json!(["hi"])).await.unwrap();
    assert_eq!(out.state[1]["content"], "hello", "a state of one nameless field is its value");
}

#[tokio::test]
async fn a_question_is_asked_and_answered_in_json() {
    let app = kept(&asking());
    let thread = app.thread("t");
    let out = thread.invoke(json!({ "topic": "tea" })).await.unwrap();
    assert_eq!(out.interrupts[0].value, "who?");
    let id = out.interrupts[0].id.clone();
    let command: JsonCommand =
        serde_json::from_value(json!({ "resume": { id: "ada" }, "update": { "total": 3 } })).unwrap();
    let out = thread.invoke(command).await.unwrap();
    assert_eq!(out.state, json!({ "log": ["first", "ada"], "topic": "tea", "total": 3 }));

    let other = app.thread("u");
    other.invoke(json!({ "topic": "tea" })).await.unwrap();
    assert_eq!(other.invoke(Resume::value("bob")).await.unwrap().state["log"][1], "bob");
}

#[tokio::test]
async fn a_command_goes_to_nodes_and_sends() {
    let work = async |superstep::Sent(n): superstep::Sent<i64>| Notes::update().total(n);
    let mut graph = a_b_c();
    let app = kept(graph.add_node("work", work));
    let goto: JsonCommand =
        serde_json::from_value(json!({ "goto": ["c", { "node": "work", "input": 7 }], "update": { "topic": "x" } }))
            .unwrap();
    assert_eq!(goto.goto[0], JsonGoto::Node("c".to_owned()));
    let out = app.invoke(goto).thread("t").await.unwrap();
    // A command to a fresh thread begins the graph too.
    assert_eq!((&out.state["log"], &out.state["total"]), (&json!(["a", "c", "b", "c"]), &json!(7)));
    let one: JsonCommand = serde_json::from_value(json!({ "goto": "c" })).unwrap();
    assert_eq!(one.goto.len(), 1);
    assert!(serde_json::from_value::<JsonCommand>(json!({ "got": "c" })).is_err());
}

#[tokio::test]
async fn threads_are_looked_at_changed_forked_copied_and_forgotten_in_json() {
    let app = kept(&a_b_c());
    let thread: Thread = app.thread("t");
    thread.invoke(json!({ "topic": "tea" })).await.unwrap();
    let now = thread.state().await.unwrap();
    assert_eq!((&now.state["log"], now.next.len()), (&json!(["a", "b", "c"]), 0));
    assert_eq!(now.state_as::<Notes>().unwrap().log, ["a", "b", "c"]);
    let history = thread.history().await.unwrap();
    let before_b = history.iter().find(|snapshot| snapshot.next == ["b"]).unwrap().checkpoint.clone().unwrap();

    let fork = thread.at(before_b.id).fork(json!({ "topic": "rum" })).as_node("a").await.unwrap();
    assert_eq!(fork.invoke(GoOn).await.unwrap().state, json!({ "log": ["a", "b", "c"], "topic": "rum", "total": 0 }));

    thread.update(json!({ "total": 5 })).as_node("c").await.unwrap();
    assert_eq!(thread.state().await.unwrap().state["total"], 5);
    let refused = thread.update(json!({ "totla": 5 })).as_node("c").await.unwrap_err();
    assert!(refused.to_string().contains("field `totla`"), "{refused}");

    let updates = |values: Value, node: &str| Superstep::updates([(values, node.to_owned())]);
    let steps = [updates(json!({ "topic": "gin" }), "c"), updates(json!({ "log": ["by hand"] }), "a")];
    thread.bulk_update(steps).await.unwrap();
    assert_eq!(thread.state().await.unwrap().next, ["b"]);
    let begun = app.thread("v");
    begun.bulk_update([Superstep::input(json!({ "topic": "ale" }))]).await.unwrap();
    assert_eq!(begun.resume().await.unwrap().state["topic"], "ale");
    let copy = thread.copy_with([(json!({ "log": ["copied"] }), "a")]).await.unwrap();
    assert!(copy.state().await.unwrap().state["log"].to_string().contains("copied"));
    assert_eq!(thread.copy_to("u").await.unwrap().state().await.unwrap().state["topic"], "gin");
    thread.delete().await.unwrap();
    assert!(thread.state().await.unwrap().checkpoint.is_none());
    let written = serde_json::to_value(app.thread("u").state().await.unwrap()).unwrap();
    assert_eq!((&written["values"]["topic"], &written["next"]), (&json!("gin"), &json!(["b"])));
}

#[tokio::test]
async fn graphs_inside_have_threads_of_any_form_too() {
    let inner = asking().compile().unwrap();
    let map = MappedGraph::new(
        inner,
        |outer: &AgentState| Notes::update().topic(outer.messages[0].text()),
        |inner: &Notes| superstep::AgentStateUpdate { messages: Some(vec![Message::assistant(inner.log.join(" "))]) },
    );
    let outer = StateGraph::<AgentState>::new().add_node("inside", map).add_edge(START, "inside").compile().unwrap();
    let app = AnyGraph::from(outer).with_checkpointer(MemorySaver::new());
    let thread = app.thread("t");
    thread.invoke(json!({ "messages": ["tea"] })).await.unwrap();
    let seen = thread.state_with_subgraphs().await.unwrap();
    assert_eq!(seen.tasks[0].subgraph.as_ref().unwrap().state["topic"], "tea");
    let inside: Thread = thread.subgraph(seen.tasks[0].namespace.clone().unwrap()).unwrap();
    assert_eq!(inside.history().await.unwrap().len(), 3);
    inside.update(json!({ "log": ["by hand"] })).as_node("first").await.unwrap();
    assert_eq!(inside.state().await.unwrap().state["log"], json!(["first", "by hand"]));
    let out = thread.invoke(Resume::value("ada")).await.unwrap();
    assert_eq!(out.state["messages"][1]["content"], "first by hand ada");
}

#[tokio::test]
async fn a_graph_gets_its_type_back_and_no_other() {
    let app = kept(&a_b_c());
    let same = app.clone().downcast::<AgentState>().unwrap_err();
    let typed = same.downcast::<Notes>().expect("that is its state");
    assert_eq!(typed.invoke(Notes::update().topic("tea")).thread("t").await.unwrap().state.log, ["a", "b", "c"]);
    assert_eq!(app.thread("t").state().await.unwrap().state["topic"], "tea", "it is the same graph");
    assert!(format!("{app:?}").contains("AnyGraph"));
}

#[tokio::test]
async fn entrypoints_are_graphs_too() {
    let double = Entrypoint::new("double", async |n: i64| n * 2).compile();
    let app = AnyGraph::from(double).with_checkpointer(MemorySaver::new());
    assert_eq!(app.name(), "double");
    assert_eq!(app.invoke(json!(21)).thread("t").await.unwrap().state, 42);
    assert_eq!(app.thread("t").state().await.unwrap().state.as_ref(), &json!(42));
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Deps {
    model: String,
}

#[tokio::test]
async fn contexts_come_from_json_if_the_graph_says_of_which_type() {
    let node = async |_: Notes, deps: Runtime<Deps>| Notes::update().log([deps.model.clone()]);
    let mut graph = StateGraph::new();
    graph.add_node("n", node).add_edge(START, "n");
    let (input, options) = (json!({ "topic": "tea" }), |context| RunOptions::new().context(context));
    let untold = any(&graph).invoke(input.clone()).options(options(json!({ "model": "small" }))).await.unwrap_err();
    assert!(untold.to_string().contains("takes no context from JSON"), "{untold}");
    let app = any(graph.context_schema::<Deps>());
    let out = app.invoke(input.clone()).options(options(json!({ "model": "small" }))).await.unwrap();
    assert_eq!(out.state["log"], json!(["small"]));
    let refused = app.invoke(input).options(options(json!({}))).await.unwrap_err();
    assert!(refused.to_string().contains("the context: missing field `model`"), "{refused}");
}

/// A field that nobody can describe.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Plain(u8);

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Described {
    name: String,
    plain: Plain,
    #[state(untracked)]
    handle: Option<u8>,
}

#[tokio::test]
async fn schemas_show_what_goes_in_and_out() {
    let node = async |_: Described| Described::update().name("x");
    let mut graph = StateGraph::<Described>::new();
    graph.name("shop").add_node("n", node).add_edge(START, "n").input(["name"]).output(["plain"]);
    let app = AnyGraph::from(graph.compile().unwrap());
    let schema = app.schema();
    let names = |schema: &Value| schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((names(&schema.input), names(&schema.output)), (vec!["name".to_owned()], vec!["plain".to_owned()]));
    assert_eq!(schema.output["properties"]["plain"], true, "a type without a schema takes anything");
    assert_eq!(schema.input["title"], "shop input");
    let expected = if cfg!(feature = "schema") { json!({ "type": "string" }) } else { json!(true) };
    assert_eq!(schema.input["properties"]["name"], expected);
    assert_eq!(schema.context, true);
    let untracked = app.invoke(json!({ "handle": 1 })).await.unwrap_err();
    assert!(untracked.to_string().contains("field `handle`: it is never saved, and takes no JSON"), "{untracked}");
    assert_eq!(app.draw().nodes.len(), 3);
}
