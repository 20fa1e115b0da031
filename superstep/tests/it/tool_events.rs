//! Calls of tools in the stream. The library knows no tools: whoever calls one says so.

use serde_json::{Value, json};
use superstep::{
    AgentState, BoxError, CompiledStateGraph, Context, EventData, Mode, NodeOptions, START, StateGraph, Streaming,
    Task, ToolEvent, current,
};

/// A node that calls the tool `search`, by its context and without one.
fn searching() -> CompiledStateGraph<AgentState> {
    let node = async |_: AgentState, cx: Context| {
        cx.emit_tool(ToolEvent::started("c1", "search", Some(json!({ "q": "tea" })))).await;
        look_up("c1").await;
        cx.emit_tool(ToolEvent::failed("c1", "no tea")).await;
    };
    StateGraph::new().add_node("clerk", node).add_edge(START, "clerk").compile().expect("the graph has no mistakes")
}

async fn look_up(call: &str) {
    current::emit_tool(ToolEvent::delta(call, json!({ "found": 3 }))).await;
    current::emit_tool(ToolEvent::finished(call, "three")).await;
}

/// What a stream shows of tools, with the names on the way to the graph.
async fn tools(run: Streaming<AgentState>) -> Vec<(String, Value)> {
    let mut events = run.start();
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.expect("the run has no error");
        if let EventData::Tool(tool) = &event.data {
            assert_eq!((event.mode, event.to_json()), (Mode::Tools, tool.to_json()));
            all.push((event.path().join("/"), tool.to_json()));
        }
    }
    all
}

/// The shapes are those that LangGraph 1.2.22 sends in its mode `tools`.
fn four(path: &str) -> Vec<(String, Value)> {
    let shown = [
        json!({ "event": "tool-started", "tool_call_id": "c1", "tool_name": "search", "input": { "q": "tea" } }),
        json!({ "event": "tool-output-delta", "tool_call_id": "c1", "delta": { "found": 3 } }),
        json!({ "event": "tool-finished", "tool_call_id": "c1", "output": "three" }),
        json!({ "event": "tool-error", "tool_call_id": "c1", "message": "no tea" }),
    ];
    shown.map(|event| (path.to_owned(), event)).to_vec()
}

#[tokio::test]
async fn calls_of_tools_are_shown_as_langgraph_shows_them() {
    assert_eq!(tools(searching().stream(()).mode(Mode::Tools)).await, four(""));
}

#[tokio::test]
async fn they_are_shown_only_if_the_mode_was_asked_for() {
    assert!(tools(searching().stream(()).modes([Mode::Messages, Mode::Custom])).await.is_empty());
    searching().invoke(()).await.unwrap();
    current::emit_tool(ToolEvent::finished("c1", "outside of any run nothing happens")).await;
}

#[tokio::test]
async fn who_calls_tools_can_ask_whether_anybody_watches() {
    let node = async |_: AgentState, cx: Context| {
        let words = format!("{} {} {}", cx.wants_tools(), current::wants_tools(), current::wants_messages());
        cx.emit(words).await;
    };
    let app = StateGraph::<AgentState>::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    for (mode, expected) in [(Mode::Tools, "true true false"), (Mode::Messages, "false false true")] {
        let mut events = app.stream(()).modes([Mode::Custom, mode]).start();
        let Some(Ok(event)) = events.next().await else { panic!("the node emits") };
        assert_eq!(event.to_json(), expected, "{mode:?}");
    }
}

/// As in LangGraph: those of a graph inside only with `subgraphs`, and then with its namespace.
#[tokio::test]
async fn tools_of_subgraphs_are_shown_with_their_namespace() {
    let app =
        StateGraph::<AgentState>::new().add_node("child", searching()).add_edge(START, "child").compile().unwrap();
    assert!(tools(app.stream(()).mode(Mode::Tools)).await.is_empty());
    assert_eq!(tools(app.stream(()).mode(Mode::Tools).subgraphs()).await, four("child"));
}

/// A function that a node calls runs in the node's graph: LangGraph shows its tools, its words and its own events without
/// `subgraphs`. Words and events were not shown here.
#[tokio::test]
async fn what_a_called_task_sends_is_its_nodes_graphs() {
    let inner = Task::new("inner", async |n: i64, cx: Context| {
        cx.emit(json!("event")).await;
        cx.emit_message(superstep::Message::assistant("word").with_id("m")).await;
        cx.emit_tool(ToolEvent::started("c1", "search", None)).await;
        Ok::<_, BoxError>(n)
    });
    let outer = Task::new("outer", move |n: i64, cx: Context| {
        let inner = inner.clone();
        async move { inner.call(&cx, n).await }
    });
    let node = move |_: AgentState, cx: Context| {
        let outer = outer.clone();
        async move { outer.call(&cx, 1).await.map(drop) }
    };
    let app = StateGraph::<AgentState>::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    let modes = [Mode::Tools, Mode::Messages, Mode::Custom];
    for (run, custom) in [(app.stream(()), vec!["n", "outer"]), (app.stream(()).subgraphs(), vec!["n", "outer"])] {
        let mut events = run.modes(modes).start();
        let mut shown = Vec::new();
        while let Some(event) = events.next().await {
            let event = event.unwrap();
            shown.push((event.mode, event.path().into_iter().map(str::to_owned).collect::<Vec<_>>()));
        }
        let custom = custom.into_iter().map(str::to_owned).collect();
        assert_eq!(shown, [(Mode::Custom, custom), (Mode::Messages, vec![]), (Mode::Tools, vec![])]);
    }
}

/// A node that is silent for too long is not: what it sends is a sign of life.
#[tokio::test(start_paused = true)]
async fn events_of_tools_are_signs_of_life() {
    let node = async |_: AgentState, cx: Context| {
        for _ in 0..3 {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            cx.emit_tool(ToolEvent::delta("c1", 1)).await;
        }
    };
    let idle = superstep::TimeoutPolicy::idle_only(std::time::Duration::from_millis(1500));
    let options = NodeOptions::new().timeout(idle);
    let app = StateGraph::<AgentState>::new().add_node_with("n", node, options).add_edge(START, "n").compile().unwrap();
    app.invoke(()).await.unwrap();
}

/// LangGraph keeps the calls of tools, and the words of models, out of the stream of a run with this tag.
#[tokio::test]
async fn the_tag_nostream_keeps_them_out_of_the_stream() {
    assert!(tools(searching().stream(()).mode(Mode::Tools).tag("nostream")).await.is_empty());
}
