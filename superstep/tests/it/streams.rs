//! What a stream shows, and that nothing of it is lost.

use std::time::SystemTime;

use serde_json::{Value, json};
use superstep::{
    AgentState, Context, EchoAgent, EventData, JsonInput, JsonState, MappedGraph, Message, Mode, START, State,
    StateGraph,
};

use crate::support::{Notes, a_b_c, events, saved, says};

/// The runtime lets a task receive only so many events before it must give way; what is left then is not lost.
#[tokio::test]
async fn every_event_arrives_however_much_the_runtime_lets_through_at_once() {
    let app = saved(&mut a_b_c());
    for used in 0..160 {
        tokio::task::yield_now().await;
        for _ in 0..used {
            tokio::task::consume_budget().await;
        }
        let stream = app
            .stream(Notes::update().total(1))
            .thread(format!("t{used}"))
            .modes([Mode::Updates, Mode::Values])
            .start();
        assert_eq!(events(stream).await.len(), 7, "after {used} other things");
    }
}

#[tokio::test]
async fn updates_are_shown_if_nothing_else_is_asked_for() {
    let all = events(saved(&mut a_b_c()).stream(Notes::update().total(1)).thread("t").start()).await;
    let updates: Vec<_> = all.iter().map(|e| e["data"].clone()).collect();
    assert_eq!(
        updates,
        [json!({ "a": { "log": ["a"] } }), json!({ "b": { "log": ["b"] } }), json!({ "c": { "log": ["c"] } })]
    );
}

#[tokio::test]
async fn nothing_is_shown_if_no_mode_is_asked_for() {
    let app = saved(&mut a_b_c());
    assert!(events(app.stream(Notes::update().total(1)).thread("t").modes([]).start()).await.is_empty());
    assert_eq!(app.thread("t").state().await.unwrap().state.log, ["a", "b", "c"], "it ran all the same");
}

#[tokio::test]
async fn each_mode_shows_its_own() {
    let count = |mode: Mode| async move {
        let all = events(saved(&mut a_b_c()).stream(Notes::update().total(1)).thread("t").mode(mode).start()).await;
        assert!(all.iter().all(|e| e["mode"] == format!("{mode:?}")), "{all:?}");
        all.len()
    };
    assert_eq!(count(Mode::Values).await, 4);
    assert_eq!(count(Mode::Updates).await, 3);
    assert_eq!(count(Mode::Tasks).await, 6);
    assert_eq!(count(Mode::Checkpoints).await, 5);
    assert_eq!(count(Mode::Debug).await, 11);
    assert_eq!(count(Mode::Custom).await, 0);
    assert_eq!(count(Mode::Messages).await, 0);
}

#[tokio::test]
async fn messages_are_shown_once_and_those_of_the_input_not_at_all() {
    let app = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile().unwrap();
    let mut stream = app.stream(AgentState { messages: vec![Message::user("hi")] }).mode(Mode::Messages).start();
    let mut said = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventData::Message(message) = event.unwrap().data {
            said.push((message.node, message.message.text().into_owned(), message.step));
        }
    }
    assert_eq!(said, [("echo".to_owned(), "hi".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_holds_the_run_up() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let sent = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let node = move |_: Notes, cx: Context| {
        let counter = counter.clone();
        async move {
            for n in 0..10 {
                cx.emit(n).await;
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let app = StateGraph::new().add_node("talks", node).add_edge(START, "talks").compile().unwrap();
    let mut stream = app.stream(Notes::update().total(1)).mode(Mode::Custom).buffer(3).start();
    assert_eq!(stream.next().await.unwrap().unwrap().to_json(), 0);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let ahead = sent.load(Ordering::SeqCst);
    assert!((1..=4).contains(&ahead), "it is {ahead} events ahead of its reader");
    let mut rest = 0;
    while let Some(event) = stream.next().await {
        event.unwrap();
        rest += 1;
    }
    assert_eq!(rest, 9);
}

#[tokio::test]
async fn an_error_is_the_last_thing_a_stream_gives() {
    let fails = |_: Notes| async { Err::<(), _>("no") };
    let app = StateGraph::new()
        .add_node("a", says("a"))
        .add_node("fails", fails)
        .add_sequence(["a", "fails"])
        .compile()
        .unwrap();
    let mut stream = app.stream(Notes::update().total(1)).start();
    assert!(stream.next().await.unwrap().is_ok());
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "node `fails` failed in step 2: no");
    assert!(stream.next().await.is_none());
    assert!(stream.output().is_none());
}

#[tokio::test]
async fn a_stream_that_ended_well_has_the_output() {
    let app = saved(&mut a_b_c());
    let mut stream = app.stream(Notes::update().total(1)).thread("t").start();
    while let Some(event) = stream.next().await {
        event.unwrap();
    }
    assert_eq!(stream.output().unwrap().state.log, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_typed_state_is_shown_as_json_without_a_checkpointer() {
    let app = StateGraph::<Notes>::new().add_node("a", says("a")).add_edge(START, "a").compile().unwrap();
    assert_eq!(app.invoke(Notes::update().total(2)).await.unwrap().to_json(), json!({ "log": ["a"], "total": 2 }));

    let modes = [Mode::Values, Mode::Updates, Mode::Tasks];
    let all = events(app.stream(Notes::update().total(2)).modes(modes).start()).await;
    let data: Vec<_> = all.iter().map(|e| e["data"].clone()).collect();
    assert_eq!(
        data,
        [
            json!({ "log": [], "total": 2 }),
            json!({ "name": "a", "input": { "log": [], "total": 2 }, "triggers": ["branch:to:a"] }),
            json!({ "a": { "log": ["a"] } }),
            json!({ "name": "a", "error": null, "result": { "log": ["a"] }, "interrupts": [] }),
            json!({ "log": ["a"], "total": 2 }),
        ]
    );
}

#[tokio::test]
async fn an_update_names_its_step_and_task() {
    let mut stream = a_b_c().compile().unwrap().stream(()).modes([Mode::Updates, Mode::Tasks]).start();
    let (mut updates, mut ends) = (Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        match event.unwrap().data {
            EventData::Updates(update) => updates.push((update.node, update.step, update.task)),
            EventData::TaskEnd(end) => ends.push((end.name, ends.len() as i64 + 1, end.id)),
            _ => {}
        }
    }
    assert_eq!((updates.len(), updates), (3, ends));
}

#[tokio::test]
async fn a_message_is_shown_with_its_name_and_content_in_parts() {
    let parts = json!([{ "type": "text", "text": "a cup" }, { "type": "image_url", "image_url": "cup.png" }]);
    let said = json!({ "type": "ai", "id": "1", "name": "Ada", "content": parts });
    let message = said.clone();
    let app = StateGraph::dynamic(JsonState::schema().messages("messages"))
        .add_node("say", move |_: JsonInput| std::future::ready(json!({ "messages": [message] })))
        .add_edge(START, "say")
        .compile()
        .unwrap();
    let mut stream = app.stream(json!({})).mode(Mode::Messages).start();
    let event = stream.next().await.unwrap().unwrap();
    let mut shown = event.to_json();
    assert_eq!(shown["metadata"].take()["langgraph_node"], "say");
    assert_eq!(shown, json!({ "message": said, "node": "say", "step": 1, "metadata": null }));
    let EventData::Message(event) = event.data else { panic!("it is a message") };
    assert_eq!((&*event.message.text(), event.whole), ("a cup", Some(said)));
}

#[tokio::test]
async fn events_of_a_graph_over_another_state_are_json_and_typed_when_asked() {
    let inner = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile().unwrap();
    let into = |_: &Notes| AgentState { messages: vec![Message::user("hi")] };
    let node = MappedGraph::new(inner, into, |_: &AgentState| Notes::update().log(["done"]));
    let app = saved(StateGraph::new().add_node("inner", node).add_edge(START, "inner"));
    let modes = [Mode::Values, Mode::Updates, Mode::Tasks, Mode::Checkpoints, Mode::Debug];
    let mut events = app.stream(Notes::update().topic("t")).thread("t").modes(modes).subgraphs().start();
    let (mut seen, mut typed) = (0, 0);
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        let json = event.to_json();
        assert!(!json.is_null(), "every event has a form in JSON");
        if !event.namespace.is_empty() {
            seen += 1;
            typed += usize::from(match &event.data {
                EventData::Values(_) | EventData::Checkpoint(_) => event.state::<AgentState>().is_some(),
                EventData::Updates(update) => update.update::<AgentState>().is_some(),
                _ => true,
            });
            if event.mode == Mode::Updates {
                assert_eq!(json["echo"]["messages"][0]["content"], "hi", "{json}");
            }
        }
    }
    assert!(seen > 8 && seen == typed, "{typed} of {seen}");
}

/// What a state holds beside what can be shown.
#[derive(State, Clone, Default, serde::Serialize, serde::Deserialize)]
struct Odd {
    #[state(untracked)]
    cache: Option<u8>,
    pairs: std::collections::BTreeMap<(u8, u8), u8>,
    topic: Option<String>,
}

#[tokio::test]
async fn json_leaves_out_what_is_never_encoded_and_says_what_cannot_be() {
    let node = async |_: Odd| Odd::update().cache(1).topic("tea").pairs([((1, 2), 3)]);
    let app = StateGraph::<Odd>::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    let shown = app.invoke(()).await.unwrap().to_json();
    assert_eq!((shown.get("cache"), &shown["topic"]), (None, &json!("tea")), "{shown}");
    assert!(shown["pairs"]["__error__"].is_string(), "{shown}");
}

/// Who reads a stream, or what is left of it, knows of each event which run it is of, which one it is and when it was.
#[tokio::test]
async fn events_say_of_which_run_they_are_and_have_numbers_without_gaps() {
    let inner = StateGraph::new().add_node("a", says("a")).add_edge(START, "a").compile().unwrap();
    let mut graph = StateGraph::new();
    graph.add_node("n", async |_: Notes, cx: Context| cx.emit("hi").await).add_node("sub", inner);
    let app = graph.add_sequence(["n", "sub"]).compile().unwrap();
    let modes = [Mode::Values, Mode::Updates, Mode::Custom, Mode::Tasks];
    let before = SystemTime::now();
    let mut events = app.stream(Notes::update().topic("t")).modes(modes).subgraphs().start();
    let run = events.run_id().clone();
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event.unwrap());
    }
    assert!(all.iter().enumerate().all(|(place, event)| event.sequence == place as u64 + 1 && event.run == run));
    assert!(all.is_sorted_by_key(|event| event.at) && all[0].at >= before);
    let told: Vec<_> =
        all.iter().filter(|event| event.mode == Mode::Custom).map(|event| (event.step, event.to_json())).collect();
    assert_eq!(told, [(1, json!("hi"))]);
    let written = serde_json::to_value(&all[0]).unwrap();
    assert_eq!(
        (&written["run"], &written["sequence"], &written["mode"], &written["namespace"], &written["data"]),
        (&json!(run), &json!(1), &json!("values"), &json!([]), &all[0].to_json())
    );
    assert!(written["at"].as_str().unwrap().starts_with("20"), "{written}");
    assert!(all.iter().any(|event| event.path() == ["sub"] && event.state::<Notes>().is_some()));
    let other = app.stream(Notes::update().topic("t")).start().run_id().clone();
    assert_ne!(run, other, "runs that nobody names are told apart");
    assert_eq!(app.stream(Notes::update().topic("t")).run_id("mine").start().run_id().as_str(), "mine");
}

/// A state says by itself how it is shown, without a checkpointer; one that cannot be shown is null and still there typed.
#[tokio::test]
async fn events_of_graphs_that_save_nothing_have_a_form_in_json_if_their_state_has() {
    #[derive(State, Clone, Default)]
    struct Open {
        handle: Handle,
    }
    #[derive(Clone, Default, Debug, PartialEq)]
    struct Handle(u8);

    let app = StateGraph::new().add_node("n", says("a")).add_edge(START, "n").compile().unwrap();
    let mut events = app.stream(Notes::update().topic("t")).mode(Mode::Values).start();
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event.to_json()["topic"], "t");

    let node = async |_: Open| Open::update().handle(Handle(7));
    let app = StateGraph::<Open>::new().add_node("n", node).add_edge(START, "n").compile().unwrap();
    let mut events = app.stream(Open::update()).mode(Mode::Values).start();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.unwrap());
    }
    let last = last.expect("the state was shown");
    assert_eq!((last.to_json(), last.state::<Open>().map(|open| &open.handle)), (Value::Null, Some(&Handle(7))));
    assert!(last.state::<Notes>().is_none());
}
