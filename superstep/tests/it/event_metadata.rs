//! What is known of a run and a task, beside what is streamed. The shapes were seen by running LangGraph 1.2.22.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use superstep::{
    AgentState, BoxError, CompiledStateGraph, Context, EventData, Goto, MemorySaver, Message, MessageChunk, Mode,
    NodeOptions, Persist, RunConfig, START, Send, Sent, StateGraph, Streaming, Task,
};

fn said(id: &str) -> Message {
    Message::assistant("hi").with_id(id)
}

/// The metadata beside each message, by the id of the message.
async fn beside<S: Persist>(run: Streaming<S>) -> BTreeMap<String, Value> {
    let mut events = run.mode(Mode::Messages).start();
    let mut all = BTreeMap::new();
    while let Some(event) = events.next().await {
        let event = event.expect("the run has no error");
        if let EventData::Message(said) = &event.data {
            assert_eq!(event.to_json()["metadata"], said.metadata.to_json());
            all.insert(said.message.id.clone().unwrap_or_default(), said.metadata.to_json());
        }
    }
    all
}

/// The namespace of a task ends with an id that nobody knows: it is taken out, and given by its names.
fn without_namespace(metadata: &Value) -> (Value, Vec<String>) {
    let mut metadata = metadata.clone();
    let namespace = metadata["langgraph_checkpoint_ns"].take();
    let object = metadata.as_object_mut().expect("it is an object");
    object.remove("langgraph_checkpoint_ns");
    // One that was not given is random.
    if object.get("run_id").is_some_and(|id| id != "r1") {
        object.remove("run_id");
    }
    let names = namespace.as_str().expect("it is text").split('|').map(|p| p.split(':').next().unwrap_or(p).to_owned());
    (metadata, names.collect())
}

fn one_node(options: NodeOptions<AgentState>) -> StateGraph<AgentState> {
    let node = async |_: AgentState, cx: Context| {
        cx.emit_chunk(MessageChunk::text("streamed", "to be")).await;
        cx.push_message(said("pushed")).await?;
        Ok::<_, BoxError>(vec![said("returned")])
    };
    let mut graph = StateGraph::new();
    graph.add_node_with("a", node, options).add_edge(START, "a");
    graph
}

/// Of the caller and of the graph, where what the graph says of its node wins; LangGraph comes to the same keys.
#[tokio::test]
async fn messages_have_the_metadata_of_run_and_node_beside_them() {
    let options = NodeOptions::new().metadata("who", "node").metadata("nodemeta", 1);
    let app = one_node(options).checkpointer(MemorySaver::new()).compile().unwrap();
    let run = app.stream(AgentState::default()).thread("t1").run_id("r1").tags(["x", "y"]);
    let all = beside(run.metadata("who", "ada").metadata("n", 3)).await;
    let expected = json!({
        "who": "node", "n": 3, "nodemeta": 1, "thread_id": "t1", "run_id": "r1", "tags": ["x", "y"],
        "langgraph_step": 1, "langgraph_node": "a", "langgraph_triggers": ["branch:to:a"],
        "langgraph_path": ["__pregel_pull", "a"],
    });
    assert_eq!(all.keys().collect::<Vec<_>>(), ["pushed", "returned", "streamed"]);
    for (id, metadata) in &all {
        assert_eq!(without_namespace(metadata), (expected.clone(), vec!["a".to_owned()]), "{id}");
    }
    assert_eq!(all["pushed"], all["returned"]);
    let before = &app.thread("t1").history().await.unwrap()[1];
    let task = format!("a:{}", before.tasks[0].id);
    assert_eq!(all["pushed"]["langgraph_checkpoint_ns"], json!(task), "the namespace names the task");
}

#[tokio::test]
async fn what_was_not_said_is_not_there() {
    let all = beside(one_node(NodeOptions::new()).compile().unwrap().stream(())).await;
    let keys: Vec<&String> = all["returned"].as_object().unwrap().keys().collect();
    let known = ["checkpoint_ns", "node", "path", "step", "triggers"].map(|key| format!("langgraph_{key}"));
    let run = "run_id".to_owned();
    assert_eq!(keys, known.iter().chain([&run]).collect::<Vec<_>>(), "a run always has an id");
}

/// Nodes in a graph inside have what was said about the node around it too.
#[tokio::test]
async fn metadata_goes_down_into_subgraphs() {
    let inner = one_node(NodeOptions::new().metadata("deep", 1)).compile().unwrap();
    let options = NodeOptions::new().metadata("sm", 2);
    let app = StateGraph::<AgentState>::new().add_node_with("sub", inner, options).add_edge(START, "sub").compile();
    let all = beside(app.unwrap().stream(()).subgraphs().metadata("who", "ada").tag("x")).await;
    let expected = json!({
        "who": "ada", "sm": 2, "deep": 1, "tags": ["x"], "langgraph_step": 1, "langgraph_node": "a",
        "langgraph_triggers": ["branch:to:a"], "langgraph_path": ["__pregel_pull", "a"],
    });
    for metadata in all.values() {
        assert_eq!(without_namespace(metadata), (expected.clone(), vec!["sub".to_owned(), "a".to_owned()]));
    }
}

#[tokio::test]
async fn the_path_tells_sends_from_nodes_and_calls() {
    let route = |_: &AgentState| -> Vec<Goto> { vec![Send::new("w", "s0").into(), Send::new("w", "s1").into()] };
    let push = async |id: Sent<String>, cx: Context| {
        cx.push_message(said(&id.0)).await?;
        Ok::<_, BoxError>(())
    };
    let inner = Task::new("inner", async |n: i64, cx: Context| {
        cx.emit_message(said("inner")).await;
        Ok::<_, BoxError>(n)
    });
    let outer = Task::new("outer", move |n: i64, cx: Context| {
        let inner = inner.clone();
        async move { inner.call(&cx, n).await }
    });
    let calls = move |_: AgentState, cx: Context| {
        let outer = outer.clone();
        async move { outer.call(&cx, 1).await.map(drop) }
    };
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node_with("n", calls, NodeOptions::new().metadata("nm", 1)).add_node("w", push);
    graph.add_edge(START, "n").add_conditional_edges("n", route);
    let all = beside(graph.compile().unwrap().stream(())).await;
    assert_eq!(all["s0"]["langgraph_path"], json!(["__pregel_push", 0, false]));
    assert_eq!(all["s1"]["langgraph_path"], json!(["__pregel_push", 1, false]));
    assert_eq!(all["s1"]["langgraph_triggers"], json!(["__pregel_push"]));
    let (called, names) = without_namespace(&all["inner"]);
    let expected = json!({
        "nm": 1, "langgraph_step": 1, "langgraph_node": "inner", "langgraph_triggers": ["__pregel_push"],
        "langgraph_path": ["__pregel_push", ["__pregel_push", ["__pregel_pull", "n"], 0, true], 0, true],
    });
    assert_eq!((called, names), (expected, vec!["n".to_owned(), "outer".to_owned(), "inner".to_owned()]));
}

#[tokio::test]
async fn messages_of_error_handlers_say_whom_they_are_for() {
    let handler = async |_: AgentState, cx: Context| {
        cx.emit_message(said("streamed")).await;
        vec![said("returned")]
    };
    let fails = async |_: AgentState| Err::<(), BoxError>("no".into());
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node_with("bad", fails, NodeOptions::new().error_handler(handler)).add_edge(START, "bad");
    let all = beside(graph.compile().unwrap().stream(())).await;
    assert_eq!(all["streamed"], all["returned"]);
    assert_eq!(all["streamed"]["langgraph_path"], json!(["__pregel_pull", "bad", "node_error_handler", false]));
}

/// The tasks of a run, each with its metadata.
async fn starts(run: Streaming<AgentState>) -> BTreeMap<String, Value> {
    let mut events = run.modes([Mode::Tasks, Mode::Debug]).start();
    let (mut all, mut again) = (BTreeMap::new(), BTreeMap::new());
    while let Some(event) = events.next().await {
        let event = event.expect("the run has no error");
        let json = event.to_json();
        match &event.data {
            EventData::TaskStart(task) => drop(all.insert(task.name.clone(), json["metadata"].clone())),
            EventData::Debug(debug) if debug.kind() == "task" => {
                again.insert(json["payload"]["name"].as_str().unwrap().to_owned(), json["payload"]["metadata"].clone());
            }
            _ => {}
        }
    }
    assert_eq!(all, again, "debug events show the same");
    all
}

/// LangGraph folds the tags into the metadata, and leaves out what it knows itself, like the thread.
#[tokio::test]
async fn tasks_events_have_the_metadata_and_tags_of_the_run() {
    let task = Task::new("t", async |n: i64| Ok::<_, BoxError>(n));
    let calls = move |_: AgentState, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, 1).await.map(drop) }
    };
    let inner = one_node(NodeOptions::new().metadata("deep", 1)).compile().unwrap();
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node_with("n", calls, NodeOptions::new().metadata("who", "node").metadata("nm", 1));
    graph.add_node_with("sub", inner, NodeOptions::new().metadata("sm", 2)).add_sequence(["n", "sub"]);
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let run = app.stream(AgentState::default()).thread("t1").subgraphs().metadata("who", "ada").tags(["x", "y"]);
    let tags = json!(["x", "y"]);
    assert_eq!(
        starts(run).await,
        BTreeMap::from([
            ("n".to_owned(), json!({ "who": "node", "nm": 1, "tags": tags })),
            ("t".to_owned(), json!({ "who": "node", "nm": 1, "tags": tags })),
            ("sub".to_owned(), json!({ "who": "ada", "sm": 2, "tags": tags })),
            ("a".to_owned(), json!({ "who": "ada", "sm": 2, "deep": 1, "tags": tags })),
        ])
    );
    let plain = one_node(NodeOptions::new()).compile().unwrap();
    assert_eq!(starts(plain.stream(())).await, BTreeMap::from([("a".to_owned(), Value::Null)]));
}

/// A node that says what it knows of run and node.
fn knowing() -> CompiledStateGraph<AgentState> {
    let node = async |_: AgentState, cx: Context, config: RunConfig| {
        assert_eq!((cx.metadata(), cx.tags()), (&config.metadata, &*config.tags));
        let known: Map<String, Value> = cx.metadata().clone().into_iter().collect();
        vec![Message::assistant(json!([known, cx.tags()]).to_string())]
    };
    let options = NodeOptions::new().metadata("team", "verse").metadata("who", "node");
    StateGraph::new().add_node_with("n", node, options).add_edge(START, "n").compile().unwrap()
}

async fn known(app: &CompiledStateGraph<AgentState>) -> Value {
    let out = app.invoke(()).metadata("who", "ada").metadata("n", 1).tag("x").tag("x").tags(["y"]).await.unwrap();
    serde_json::from_str(&out.state.messages[0].text()).unwrap()
}

#[tokio::test]
async fn a_node_reads_its_own_metadata_and_the_tags_of_the_run() {
    assert_eq!(known(&knowing()).await, json!([{ "who": "node", "n": 1, "team": "verse" }, ["x", "y"]]));
    let options = NodeOptions::new().metadata("team", "prose").metadata("outer", true);
    let around = StateGraph::new().add_node_with("sub", knowing(), options).add_edge(START, "sub").compile().unwrap();
    assert_eq!(
        known(&around).await,
        json!([{ "who": "node", "n": 1, "team": "verse", "outer": true }, ["x", "y"]]),
        "what is said nearer to the node wins"
    );
}

/// What the graph says about its nodes is not what the caller says about the run.
#[tokio::test]
async fn checkpoints_keep_the_metadata_of_the_run_alone() {
    let app = one_node(NodeOptions::new().metadata("nodemeta", 1)).checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(AgentState::default()).thread("t").metadata("who", "ada").tag("x").await.unwrap();
    let state = app.thread("t").state().await.unwrap();
    assert_eq!(state.metadata, BTreeMap::from([("who".to_owned(), json!("ada"))]));
}

/// LangGraph keeps the words of models out of the stream of a run with this tag, and shows what nodes push and return.
#[tokio::test]
async fn the_tag_nostream_leaves_what_nodes_push_and_return() {
    let app = one_node(NodeOptions::new()).compile().unwrap();
    let all = beside(app.stream(()).tag("nostream")).await;
    assert_eq!(all.keys().collect::<Vec<_>>(), ["pushed", "returned"]);
}
