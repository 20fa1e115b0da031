//! Messages that a node shows and writes in one call. What LangGraph does was seen by running it (1.2.22).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    AgentState, BoxError, Command, CompiledStateGraph, Context, Durability, END, Entrypoint, Event, EventData,
    EventStream, GoOn, JsonFields, JsonInput, JsonReducer, JsonState, MemoryCache, MemorySaver, Message, Mode,
    NodeOptions, Persist, Resume, RetryPolicy, START, Send, State, StateGraph, Task, Update,
};

use crate::support::{Count, Notes, events};

const SHOWN: [Mode; 3] = [Mode::Messages, Mode::Updates, Mode::Values];

fn said(id: &str) -> Message {
    Message::assistant(format!("says {id}")).with_id(id)
}

/// The ids of messages in the order in which they stand.
fn ids(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.id.clone().unwrap_or_default()).collect()
}

/// The one node `n`, which pushes `p` and returns `r`.
fn pushing() -> StateGraph<AgentState> {
    let mut graph = StateGraph::new();
    let node = async |_: AgentState, cx: Context| {
        cx.push_message(said("p")).await?;
        Ok::<_, BoxError>(vec![said("r")])
    };
    graph.add_node("n", node).add_edge(START, "n");
    graph
}

fn one_node<F, M>(node: F) -> CompiledStateGraph<AgentState>
where
    F: superstep::IntoNode<AgentState, M>,
{
    StateGraph::new().add_node("n", node).add_edge(START, "n").compile().expect("the graph has no mistakes")
}

/// What a stream shows, in short: the mode, the names on the way to the graph, and ids of messages.
async fn told<S: Persist>(mut stream: EventStream<S>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(event) = stream.next().await {
        all.push(in_short(&event.expect("the run has no error")));
    }
    all
}

fn in_short(event: &Event) -> String {
    let path = event.path().join("/");
    let data = match &event.data {
        EventData::Message(said) => json!([said.node, said.message.id]),
        _ => only_ids(event.to_json()),
    };
    format!("{path}{:?} {data}", event.mode).replace('"', "")
}

/// A message is shown by its id.
fn only_ids(value: Value) -> Value {
    match value {
        Value::Object(map) if map.contains_key("type") => map["id"].clone(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, only_ids(value))).collect(),
        Value::Array(list) => list.into_iter().map(only_ids).collect(),
        other => other,
    }
}

/// LangGraph shows the pushed one first, and the update as `[{messages: p}, {messages: [r]}]`.
#[tokio::test]
async fn a_pushed_message_is_shown_at_once_and_written_before_what_the_node_returns() {
    let app = pushing().compile().unwrap();
    let shown = told(app.stream(AgentState::default()).modes(SHOWN).start()).await;
    assert_eq!(
        shown,
        [
            "Values {messages:[]}",
            "Messages [n,p]",
            "Messages [n,r]",
            "Updates {n:[{messages:[p]},{messages:[r]}]}",
            "Values {messages:[p,r]}",
        ]
    );
}

/// Steps that nobody watches are run in another way.
#[tokio::test]
async fn it_is_written_whether_anybody_watches_saves_or_neither() {
    let app = pushing().compile().unwrap();
    assert_eq!(ids(&app.invoke(()).await.unwrap().state.messages), ["p", "r"]);
    let saved = pushing().checkpointer(MemorySaver::new()).compile().unwrap();
    assert_eq!(ids(&saved.invoke(()).thread("t").await.unwrap().state.messages), ["p", "r"]);
    let thread = saved.thread("t");
    assert_eq!(ids(&thread.state().await.unwrap().state.messages), ["p", "r"]);
    let before = &thread.history().await.unwrap()[1];
    assert_eq!(only_ids(before.tasks[0].result().unwrap()), json!({ "messages": { "$writes": [["p"], ["r"]] } }));
}

#[tokio::test]
async fn a_node_that_returns_nothing_still_writes_what_it_pushed() {
    let app = one_node(async |_: AgentState, cx: Context| {
        cx.push_message(said("p1")).await?;
        cx.push_message(said("p2")).await?;
        Ok::<_, BoxError>(())
    });
    assert_eq!(ids(&app.invoke(()).await.unwrap().state.messages), ["p1", "p2"]);
    let shown = told(app.stream(()).modes([Mode::Messages, Mode::Updates]).start()).await;
    assert_eq!(shown, ["Messages [n,p1]", "Messages [n,p2]", "Updates {n:[{messages:[p1]},{messages:[p2]}]}"]);
}

#[tokio::test]
async fn a_message_that_was_pushed_is_not_shown_again_when_it_is_returned() {
    let app = one_node(async |_: AgentState, cx: Context| {
        let pushed = cx.push_message(said("p")).await?;
        Ok::<_, BoxError>(vec![pushed])
    });
    let mut stream = app.stream(()).mode(Mode::Messages).start();
    let mut shown = 0;
    while let Some(event) = stream.next().await {
        shown += usize::from(event.unwrap().mode == Mode::Messages);
    }
    assert_eq!(shown, 1);
    assert_eq!(ids(&stream.output().unwrap().state.messages), ["p"]);
}

/// As every message with a known id, it takes the place of the earlier one.
#[tokio::test]
async fn what_the_node_returns_under_the_id_of_a_pushed_message_replaces_it() {
    let app = one_node(async |_: AgentState, cx: Context| {
        cx.push_message(said("p")).await?;
        Ok::<_, BoxError>(vec![Message::assistant("other").with_id("p")])
    });
    assert_eq!(app.invoke(()).await.unwrap().state.messages, [Message::assistant("other").with_id("p")]);
}

/// LangGraph raises an error here.
#[tokio::test]
async fn a_message_without_an_id_gets_one_which_is_the_same_in_stream_state_and_answer() {
    let app = one_node(async |_: AgentState, cx: Context| {
        let pushed = cx.push_message(Message::assistant("hi")).await?;
        Ok::<_, BoxError>(vec![Message::assistant(pushed.id.unwrap_or_default()).with_id("copy")])
    });
    let mut stream = app.stream(()).mode(Mode::Messages).start();
    let Some(Ok(event)) = stream.next().await else { panic!("something is pushed") };
    let EventData::Message(shown) = event.data else { panic!("it is a message") };
    while stream.next().await.is_some() {}
    let messages = &stream.output().unwrap().state.messages;
    assert!(messages[0].id.is_some());
    assert_eq!(messages[0].id, shown.message.id);
    assert_eq!(messages[1].text(), messages[0].id.as_deref().unwrap());
}

#[tokio::test]
async fn removals_can_be_pushed() {
    let app = one_node(async |_: AgentState, cx: Context| {
        cx.push_message(Message::remove("m")).await?;
        Ok::<_, BoxError>(())
    });
    assert!(app.invoke(AgentState { messages: vec![said("m")] }).await.unwrap().state.messages.is_empty());
}

#[tokio::test]
async fn messages_pushed_beside_a_command_are_written_before_its_update() {
    let app = one_node(async |_: AgentState, cx: Context| {
        cx.push_message(said("p")).await?;
        Ok::<_, BoxError>(Command::new().update(Update::<AgentState>::from_writes([vec![said("c")]])).goto(END))
    });
    assert_eq!(ids(&app.invoke(()).await.unwrap().state.messages), ["p", "c"]);
}

/// A node may give back the whole state that it was given, with the pushed message or without it.
#[tokio::test]
async fn a_node_that_gives_back_the_whole_state_keeps_what_it_pushed() {
    let app = one_node(async |mut state: AgentState, cx: Context| {
        cx.push_message(said("p")).await?;
        state.messages.push(said("r"));
        Ok::<_, BoxError>(state)
    });
    let out = app.invoke(AgentState { messages: vec![said("m")] }).await.unwrap();
    assert_eq!(ids(&out.state.messages), ["m", "p", "r"]);
}

#[tokio::test]
async fn a_nodes_conditional_edges_see_what_it_pushed() {
    let seen = |state: &AgentState| {
        assert_eq!(ids(&state.messages), ["p", "r"]);
        END
    };
    let app = pushing().add_conditional_edges("n", seen).compile().unwrap();
    app.invoke(()).await.unwrap();
    let waits = move |state: AgentState| async move { seen(&state) };
    pushing().add_conditional_edges("n", waits).compile().unwrap().invoke(()).await.unwrap();
}

/// LangGraph too shows both, and writes the second.
#[tokio::test(start_paused = true)]
async fn what_a_failed_attempt_pushed_is_not_written() {
    let (runs, again) = (Count::default(), NodeOptions::new().retry(RetryPolicy::new()));
    let node = {
        let runs = runs.clone();
        move |_: AgentState, cx: Context| {
            let run = runs.up();
            async move {
                cx.push_message(said(&format!("p{run}"))).await?;
                if run == 0 { Err::<(), BoxError>("not yet".into()) } else { Ok(()) }
            }
        }
    };
    let app = StateGraph::<AgentState>::new().add_node_with("n", node, again).add_edge(START, "n").compile().unwrap();
    let shown = told(app.stream(()).modes([Mode::Messages, Mode::Updates]).start()).await;
    assert_eq!(shown, ["Messages [n,p0]", "Messages [n,p1]", "Updates {n:{messages:[p1]}}"]);
}

/// LangGraph keeps what a node pushed before it failed, and takes the node for finished: it never runs again. Here it
/// has pushed nothing, and runs again.
#[tokio::test]
async fn a_node_that_failed_has_pushed_nothing_and_runs_again() {
    let runs = Count::default();
    let node = {
        let runs = runs.clone();
        move |_: AgentState, cx: Context| {
            let run = runs.up();
            async move {
                cx.push_message(said(&format!("p{run}"))).await?;
                if run == 0 { Err::<(), BoxError>("not yet".into()) } else { Ok(()) }
            }
        }
    };
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("n", node).add_edge(START, "n").checkpointer(MemorySaver::new());
    let app = graph.compile().unwrap();
    app.invoke(AgentState::default()).thread("t").await.unwrap_err();
    let state = app.thread("t").state().await.unwrap();
    assert!(state.state.messages.is_empty());
    assert_eq!(state.next, ["n"]);
    assert_eq!(ids(&app.invoke(GoOn).thread("t").await.unwrap().state.messages), ["p1"]);
}

/// As in LangGraph: shown each time, written once.
#[tokio::test]
async fn a_node_that_asks_pushes_anew_when_it_is_answered() {
    let mut graph = StateGraph::<AgentState>::new();
    let node = async |_: AgentState, cx: Context| {
        cx.push_message(said("p")).await?;
        let answer: String = cx.interrupt("q")?;
        cx.push_message(said(&answer)).await?;
        Ok::<_, BoxError>(())
    };
    graph.add_node("n", node).add_edge(START, "n").checkpointer(MemorySaver::new());
    let app = graph.compile().unwrap();
    let out = app.invoke(AgentState::default()).thread("t").await.unwrap();
    assert_eq!((out.interrupts.len(), out.state.messages.len()), (1, 0));
    let shown = told(app.stream(Resume::value("a")).thread("t").mode(Mode::Messages).start()).await;
    assert_eq!(shown, ["Messages [n,p]", "Messages [n,a]"]);
    assert_eq!(ids(&app.thread("t").state().await.unwrap().state.messages), ["p", "a"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_pushed_that_ran_out_of_time_is_not_written() {
    let slow = async |_: AgentState, cx: Context| {
        cx.push_message(said("slow")).await?;
        if cx.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok::<_, BoxError>(())
    };
    let options = NodeOptions::new().timeout(Duration::from_secs(1)).retry(RetryPolicy::new());
    let app = StateGraph::<AgentState>::new().add_node_with("n", slow, options).add_edge(START, "n").compile().unwrap();
    assert_eq!(ids(&app.invoke(()).await.unwrap().state.messages), ["slow"]);
}

/// A task that pushes the message with this number.
fn tells() -> Task<i64, i64> {
    Task::new("tell", async |n: i64, cx: Context| {
        cx.push_message(said(&format!("t{n}"))).await?;
        Ok::<_, BoxError>(n)
    })
}

/// What LangGraph comes to: nodes by name, sends, then the calls in the order of who called.
#[tokio::test]
async fn messages_of_called_tasks_are_merged_after_those_of_nodes_in_the_order_of_the_calls() {
    let calling = |numbers: &'static [i64], id: &'static str| {
        move |_: AgentState, cx: Context| async move {
            for n in numbers {
                tells().call(&cx, *n).await?;
            }
            Ok::<_, BoxError>(vec![said(id)])
        }
    };
    let sent = async |_: superstep::Sent<i64>, cx: Context| {
        tells().call(&cx, 4).await?;
        Ok::<_, BoxError>(vec![said("w")])
    };
    let route = |_: &AgentState| -> Vec<superstep::Goto> { vec!["n1".into(), "n2".into(), Send::new("w", 0).into()] };
    let mut graph = StateGraph::<AgentState>::new();
    graph
        .add_node("s", async |_: AgentState| {})
        .add_node("n2", calling(&[3], "n2"))
        .add_node("n1", calling(&[2, 1], "n1"))
        .add_node("w", sent)
        .add_edge(START, "s")
        .add_conditional_edges("s", route);
    let app = graph.compile().unwrap();
    let out = app.invoke(()).await.unwrap();
    assert_eq!(ids(&out.state.messages), ["n1", "n2", "w", "t2", "t1", "t3", "t4"]);
}

/// LangGraph shows the message at once, the call's result with it, and the node's update without it.
#[tokio::test]
async fn what_a_called_task_pushes_is_its_own_write() {
    let app = one_node(async |_: AgentState, cx: Context| {
        tells().call(&cx, 1).await?;
        Ok::<_, BoxError>(vec![said("r")])
    });
    let modes = [Mode::Messages, Mode::Updates, Mode::Tasks, Mode::Values];
    let all = events(app.stream(AgentState::default()).modes(modes).start()).await;
    let ends: Vec<_> = all.iter().filter(|e| e["mode"] == "Tasks" && e["data"].get("result").is_some()).collect();
    assert_eq!(ends[0]["data"]["name"], "tell");
    assert_eq!(ends[0]["data"]["result"]["__return__"], 1);
    assert_eq!(ends[0]["data"]["result"]["messages"][0]["content"], "says t1");
    assert_eq!(ends[1]["data"]["result"]["messages"].as_array().map(Vec::len), Some(1));
    let shown = told(app.stream(()).modes([Mode::Messages, Mode::Updates, Mode::Values]).start()).await;
    assert_eq!(
        shown,
        [
            "Messages [tell,t1]",
            "Updates {tell:1}",
            "Messages [n,r]",
            "Updates {n:{messages:[r]}}",
            "Values {messages:[r,t1]}"
        ]
    );
}

/// Its result is known, and so is what it wrote: LangGraph comes to the same.
#[tokio::test]
async fn what_a_finished_task_pushed_is_written_when_its_caller_is_answered() {
    for durability in [Durability::Async, Durability::Exit, Durability::Sync] {
        let runs = Count::default();
        let app = asking_after_a_task(&runs);
        let out = app.invoke(AgentState::default()).thread("t").durability(durability).await.unwrap();
        assert_eq!((out.interrupts.len(), ids(&out.state.messages)), (1, vec!["t".to_owned()]));
        assert!(app.thread("t").state().await.unwrap().state.messages.is_empty(), "the step is not over");
        let out = app.invoke(Resume::value("a")).thread("t").durability(durability).await.unwrap();
        assert_eq!((ids(&out.state.messages), runs.get()), (vec!["a".to_owned(), "t".to_owned()], 1));
        assert_eq!(ids(&app.thread("t").state().await.unwrap().state.messages), ["a", "t"]);
    }
}

fn asking_after_a_task(runs: &Count) -> CompiledStateGraph<AgentState> {
    let counted = runs.clone();
    let tell = Task::new("tell", move |n: i64, cx: Context| {
        counted.up();
        async move {
            cx.push_message(said("t")).await?;
            Ok::<_, BoxError>(n)
        }
    });
    let node = move |_: AgentState, cx: Context| {
        let tell = tell.clone();
        async move {
            tell.call(&cx, 1).await?;
            let answer: String = cx.interrupt("q")?;
            Ok::<_, BoxError>(vec![said(&answer)])
        }
    };
    let mut graph = StateGraph::new();
    graph.add_node("n", node).add_edge(START, "n").checkpointer(MemorySaver::new());
    graph.compile().expect("the graph has no mistakes")
}

/// A call that is known is the same call: what it pushed counts once.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_tried_again_writes_what_its_tasks_pushed_once() {
    let collecting = JsonReducer::Custom(std::sync::Arc::new(|list: &mut Value, one| {
        list.as_array_mut().expect("it is a list").push(one);
        Ok(())
    }));
    let fields = JsonFields::default().reducer("log", collecting, Some(json!([])));
    let tell = Task::new("tell", async |n: i64, cx: Context| {
        cx.push_message_to("log", said("t")).await?;
        Ok::<_, BoxError>(n)
    });
    let node = move |_: JsonInput, cx: Context| {
        let tell = tell.clone();
        async move {
            tell.call(&cx, 1).await?;
            if cx.attempt() == 1 { Err::<(), BoxError>("not yet".into()) } else { Ok(()) }
        }
    };
    let mut graph = StateGraph::dynamic(fields);
    graph.add_node_with("n", node, NodeOptions::new().retry(RetryPolicy::new())).add_edge(START, "n");
    let out = graph.compile().unwrap().invoke(json!({})).await.unwrap();
    assert_eq!(out.to_json()["log"].as_array().map(Vec::len), Some(1));
}

/// As in LangGraph: what was pushed is part of the cached result, and not shown again.
#[tokio::test]
async fn cached_results_have_the_pushed_messages_in_them() {
    let task = tells().cached(None);
    let calls = move |_: AgentState, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, 1).await.map(drop) }
    };
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("n", calls).add_edge(START, "n").cache(MemoryCache::new()).checkpointer(MemorySaver::new());
    let app = graph.compile().unwrap();
    for (thread, shown) in [("one", 1), ("two", 0)] {
        let all = told(app.stream(AgentState::default()).thread(thread).mode(Mode::Messages).start()).await;
        assert_eq!(all.len(), shown, "{all:?}");
        assert_eq!(ids(&app.thread(thread).state().await.unwrap().state.messages), ["t1"]);
    }
    let node = async |_: AgentState, cx: Context| cx.push_message(said("p")).await.map(drop);
    let mut graph = StateGraph::<AgentState>::new();
    let kept = NodeOptions::new().cache(superstep::CachePolicy::new());
    graph.add_node_with("n", node, kept).add_edge(START, "n").cache(MemoryCache::new());
    let app = graph.compile().unwrap();
    for _ in 0..2 {
        assert_eq!(ids(&app.invoke(AgentState::default()).await.unwrap().state.messages), ["p"]);
    }
}

fn parent() -> CompiledStateGraph<AgentState> {
    let inner = pushing().compile().unwrap();
    StateGraph::new().add_node("child", inner).add_edge(START, "child").compile().unwrap()
}

/// What is pushed in a graph inside is that graph's. Without `subgraphs` LangGraph shows it when the node around the graph
/// gives it back.
#[tokio::test]
async fn a_subgraph_pushes_into_its_own_state() {
    let shown = told(parent().stream(AgentState::default()).modes(SHOWN).start()).await;
    assert_eq!(
        shown,
        [
            "Values {messages:[]}",
            "Messages [child,p]",
            "Messages [child,r]",
            "Updates {child:{messages:[p,r]}}",
            "Values {messages:[p,r]}",
        ]
    );
    let shown = told(parent().stream(()).modes([Mode::Messages, Mode::Updates]).subgraphs().start()).await;
    assert_eq!(
        shown,
        [
            "childMessages [n,p]",
            "childMessages [n,r]",
            "childUpdates {n:[{messages:[p]},{messages:[r]}]}",
            "Updates {child:{messages:[p,r]}}",
        ]
    );
}

/// Words that were said in a graph inside counted as shown although nobody saw them, and so were never shown at all.
#[tokio::test]
async fn what_is_said_unseen_in_a_subgraph_is_shown_when_its_node_gives_it_back() {
    let says = async |_: AgentState, cx: Context| {
        cx.emit_message(said("m")).await;
        vec![said("m")]
    };
    let app = StateGraph::<AgentState>::new().add_node("child", one_node(says)).add_edge(START, "child").compile();
    let shown = told(app.unwrap().stream(()).mode(Mode::Messages).start()).await;
    assert_eq!(shown, ["Messages [child,m]"]);
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Two {
    #[state(messages)]
    asked: Vec<Message>,
    #[state(messages)]
    messages: Vec<Message>,
    topic: Option<String>,
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Unnamed {
    #[state(messages)]
    one: Vec<Message>,
    #[state(messages)]
    other: Vec<Message>,
}

fn pushing_to<S: Persist>(field: Option<&'static str>) -> impl Fn(S, Context) -> Pushing + Clone {
    move |_: S, cx: Context| {
        Box::pin(async move {
            match field {
                Some(field) => cx.push_message_to(field, said("p")).await?,
                None => cx.push_message(said("p")).await?,
            };
            Ok(())
        })
    }
}

type Pushing = std::pin::Pin<Box<dyn Future<Output = Result<(), BoxError>> + std::marker::Send>>;

async fn pushed<S: Persist + State<Schema = ()>>(field: Option<&'static str>) -> Result<S, String> {
    let mut graph = StateGraph::<S>::new();
    graph.add_node("n", pushing_to::<S>(field)).add_edge(START, "n");
    let ended = graph.compile().expect("the graph has no mistakes").invoke(()).await;
    ended.map(|out| out.state).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_field_can_be_named_and_is_otherwise_the_one_called_messages() {
    let named = pushed::<Two>(Some("asked")).await.unwrap();
    assert_eq!((ids(&named.asked), named.messages.len()), (vec!["p".to_owned()], 0));
    let unnamed = pushed::<Two>(None).await.unwrap();
    assert_eq!((unnamed.asked.len(), ids(&unnamed.messages)), (0, vec!["p".to_owned()]));
    let bare = pushed::<Vec<Message>>(None).await.unwrap();
    assert_eq!(ids(&bare), ["p"]);
}

/// LangGraph logs a warning, and the message is lost.
#[tokio::test]
async fn a_state_without_such_messages_is_an_error_that_says_so() {
    let wrong = |error: Result<(), String>| error.unwrap_err();
    let error = wrong(pushed::<Notes>(None).await.map(drop));
    assert!(error.contains("the state has no messages to push to") && error.contains("emit_message"), "{error}");
    let error = wrong(pushed::<Unnamed>(None).await.map(drop));
    assert!(error.contains("several fields of messages") && error.contains("push_message_to"), "{error}");
    let error = wrong(pushed::<Two>(Some("topic")).await.map(drop));
    assert!(error.contains("field `topic` holds no messages"), "{error}");
    let error = wrong(pushed::<Two>(Some("topics")).await.map(drop));
    assert!(error.contains("the state has no field `topics`"), "{error}");
    let flow = Entrypoint::new("flow", async |n: i64, cx: Context| {
        cx.push_message(said("p")).await?;
        Ok::<_, BoxError>(n)
    });
    let error = flow.compile().invoke(1).await.unwrap_err();
    assert!(error.to_string().contains("the state has no messages to push to"), "{error}");
}

/// In the form that dynamic states have, whole, in stream and state; the update is LangGraph's to the letter.
#[tokio::test]
async fn dynamic_states_hold_a_pushed_message_in_their_own_form() {
    let fields = JsonFields::default().messages("messages").last_value("free");
    let node = async |_: JsonInput, cx: Context| {
        let call = superstep::ToolCall::new("c1", "search", json!({ "q": "tea" }));
        cx.push_message(Message::calls("one moment", [call]).with_id("p").with_name("ada")).await?;
        cx.push_message_to("free", said("f")).await?;
        Ok::<_, BoxError>(json!({ "messages": [{ "type": "ai", "content": "done", "id": "r" }] }))
    };
    let app: CompiledStateGraph<JsonState> =
        StateGraph::dynamic(fields).add_node("n", node).add_edge(START, "n").compile().unwrap();
    let whole = json!({
        "type": "ai", "content": "one moment", "id": "p", "name": "ada",
        "tool_calls": [{ "type": "tool_call", "id": "c1", "name": "search", "args": { "q": "tea" } }],
    });
    let free = json!({ "type": "ai", "content": "says f", "id": "f" });
    let returned = json!({ "type": "ai", "content": "done", "id": "r" });
    let mut stream = app.stream(json!({})).modes([Mode::Messages, Mode::Updates]).start();
    let mut shown = Vec::new();
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        shown.push(match &event.data {
            EventData::Message(said) => said.to_json(),
            _ => event.to_json(),
        });
    }
    let update = json!({ "n": [{ "messages": whole }, { "free": free }, { "messages": [returned] }] });
    assert_eq!(shown, [whole.clone(), free.clone(), returned.clone(), update]);
    assert_eq!(stream.output().unwrap().to_json(), json!({ "messages": [whole, returned], "free": free }));
}

/// The pushes of an unsaved attempt are gone with it; `exit` saves them with the end.
#[tokio::test]
async fn every_durability_saves_what_was_pushed() {
    for durability in [Durability::Async, Durability::Exit, Durability::Sync] {
        let app = pushing().checkpointer(MemorySaver::new()).compile().unwrap();
        app.invoke(AgentState { messages: vec![said("m")] }).thread("t").durability(durability).await.unwrap();
        let out =
            app.invoke(AgentState { messages: vec![said("n")] }).thread("t").durability(durability).await.unwrap();
        assert_eq!(ids(&out.state.messages), ["m", "p", "r", "n"], "{durability:?}");
        assert_eq!(ids(&app.thread("t").state().await.unwrap().state.messages), ["m", "p", "r", "n"]);
    }
}
