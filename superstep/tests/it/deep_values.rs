//! Values that are nested deeper than can be read back are not saved, and threads that hold some can be mended.

use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use superstep::{
    Blob, BoxError, CachePolicy, CheckpointRecord, Checkpointer, Command, CompiledStateGraph, Context, Durability,
    Entrypoint, Error, ErrorKind, FieldRecord, FieldValue, Final, JsonState, MemoryCache, MemorySaver, MemoryStore,
    NodeOptions, Previous, Resume, START, SavedCheckpoint, SavedField, Send, Sent, State, StateGraph, Store,
    StoreError, Task, TaskRecord, WriteRecord,
};

use crate::support::hooked::{Hook, Hooked};
use crate::support::savers::on_each_saver;

/// A struct within a struct, to any depth.
#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Link {
    name: String,
    next: Option<Box<Link>>,
}

impl Link {
    fn chain(length: usize) -> Self {
        let name = || "a link of a chain".to_owned();
        (1..length).fold(Link { name: name(), next: None }, |next, _| Link { name: name(), next: Some(Box::new(next)) })
    }
}

fn lists(levels: usize) -> Value {
    (0..levels).fold(json!("in the middle"), |inner, _| json!([inner]))
}

/// Is deeper than any stack when it is encoded, and takes no place.
#[derive(Clone, Copy)]
struct Endless;

impl Serialize for Endless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(1))?;
        list.serialize_element(self)?;
        list.end()
    }
}

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Notes {
    chain: Option<Link>,
    doc: Value,
    #[state(append)]
    log: Vec<String>,
}

/// The words of an error, which is about saving, and of this node.
fn refusal(error: &Error, node: Option<&str>) -> String {
    assert_eq!((error.kind(), error.node()), (ErrorKind::Checkpoint, node), "{error}");
    assert!(!error.is_retryable());
    error.to_string()
}

/// The graph saved what it could not read: the thread could not even be looked at any more.
async fn no_field_is_saved_too_deep(saver: impl Checkpointer + Clone) {
    for (durability, beside) in
        [Durability::Sync, Durability::Async, Durability::Exit].into_iter().flat_map(|d| [(d, false), (d, true)])
    {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("grow", async |state: Notes| {
            let length = if state.log.len() == 1 { 515 } else { 120 };
            Notes::update().chain(Link::chain(length))
        });
        graph.add_edge(START, "grow");
        if beside {
            graph.add_node("other", async |_: Notes| Notes::update().doc("beside")).add_edge(START, "other");
        }
        let app = graph.checkpointer(saver.clone()).compile().unwrap();
        let thread = format!("{durability:?} {beside}");
        let run = || app.invoke(Notes::update().log(["one"])).thread(thread.clone()).durability(durability);
        let error = run().await.unwrap_err();
        let words = refusal(&error, (durability != Durability::Exit).then_some("grow"));
        for part in ["field `chain`", "nested more than 120 levels deep", &format!("thread `{thread}`")] {
            assert!(words.contains(part), "{words}");
        }
        app.thread(thread.clone()).history().await.unwrap();
        app.thread(thread.clone()).state().await.unwrap();
        let out = app.invoke(Notes::update().log(["one", "two"])).thread(thread.clone()).durability(durability);
        let out = out.await.unwrap();
        assert_eq!(out.state.chain, Some(Link::chain(120)));
        assert_eq!(app.thread(thread.clone()).state().await.unwrap().state.chain, Some(Link::chain(120)));
    }
}

#[tokio::test]
async fn a_field_that_could_not_be_read_back_is_not_saved() {
    if std::env::var("SUPERSTEP_TEST_POSTGRES").is_err() {
        return no_field_is_saved_too_deep(MemorySaver::new()).await;
    }
    on_each_saver!("deep_fields", no_field_is_saved_too_deep);
}

/// A graph whose first node gives what it is told to.
fn gives(
    outcome: impl Fn(Context) -> Result<Command<JsonState>, BoxError> + Clone + std::marker::Send + Sync + 'static,
) -> CompiledStateGraph<JsonState> {
    let mut graph = StateGraph::dynamic(JsonState::schema().last_value("x").messages("messages").append("log"));
    graph.add_node("make", move |_: JsonState, cx: Context| std::future::ready(outcome(cx)));
    graph.add_node("take", async |_: Sent<Value>| json!({})).add_edge(START, "make");
    graph.checkpointer(MemorySaver::new()).compile().unwrap()
}

async fn refused(
    outcome: impl Fn(Context) -> Result<Command<JsonState>, BoxError> + Clone + std::marker::Send + Sync + 'static,
) -> String {
    let app = gives(outcome);
    let error = app.invoke(json!({ "x": 1 })).thread("t").await.unwrap_err();
    assert_eq!(app.thread("t").state().await.unwrap().values()["x"], json!(1));
    let words = refusal(&error, Some("make"));
    assert!(words.starts_with("what node `make` gave cannot be saved in step 1: thread `t`, "), "{words}");
    assert!(words.ends_with("it is nested more than 120 levels deep; make it flatter"), "{words}");
    words
}

#[tokio::test]
async fn what_a_node_gives_is_refused_by_what_it_is() {
    let update =
        |field: &'static str, value: Value| move |_: Context| Ok(Command::new().update(json!({ field: value })));
    assert!(refused(update("x", lists(121))).await.contains("field `x`"));
    assert!(refused(update("log", json!([lists(120)]))).await.contains("field `log`"));
    let message = json!([{ "role": "user", "content": "hi", "id": "1", "additional_kwargs": lists(120) }]);
    assert!(refused(update("messages", message)).await.contains("field `messages`"));
    let sends = |_: Context| Ok(Command::new().goto(Send::new("take", lists(121))));
    assert!(refused(sends).await.contains("a send to `take`"));
    let asks = |cx: Context| Ok(Command::new().update(json!({ "x": cx.interrupt::<Value>(lists(121))? })));
    assert!(refused(asks).await.contains("a question"));
}

#[tokio::test]
async fn what_is_as_deep_as_may_be_is_saved_and_read() {
    let app = gives(|cx| {
        let x: Value = cx.interrupt(lists(120))?;
        Ok(Command::new().update(json!({ "x": x })).goto(Send::new("take", lists(120))))
    });
    let asked = app.invoke(json!({ "x": 1 })).thread("t").metadata("deep", lists(120)).await.unwrap();
    assert_eq!(asked.interrupts[0].value, lists(120));
    app.invoke(Resume::value(lists(120))).thread("t").await.unwrap();
    let history = app.thread("t").history().await.unwrap();
    assert_eq!(history[0].values()["x"], lists(120));
    assert_eq!(history.last().unwrap().metadata["deep"], lists(120));
}

/// To encode it, as to read it, took a piece of the stack for each level.
#[tokio::test]
async fn what_is_deeper_than_the_stack_is_refused_before_the_stack_is_used_up() {
    assert!(refused(|_| Ok(Command::new().goto(Send::new("take", Endless)))).await.contains("a send to `take`"));
}

#[tokio::test]
async fn what_a_caller_brings_is_refused_before_the_run() {
    let app = gives(|cx| Ok(Command::new().update(json!({ "x": cx.interrupt::<Value>("?")? }))));
    let error = app.invoke(json!({ "x": 1 })).thread("t").metadata("deep", lists(121)).await.unwrap_err();
    let words = "metadata `deep` cannot be saved: it is nested more than 120 levels deep; make it flatter";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, words));
    assert!(app.thread("t").state().await.unwrap().checkpoint.is_none());

    let error = app.invoke(json!({ "x": lists(121) })).thread("t").await.unwrap_err();
    let words = refusal(&error, None);
    assert!(words.contains("thread `t`, ") && words.contains("field `x`: it is nested more than 120"), "{words}");

    let asked = app.invoke(json!({ "x": 1 })).thread("t").await.unwrap();
    let by_id = Resume::by_id([(asked.interrupts[0].id.clone(), lists(121))]);
    for answer in [Resume::value(lists(121)), by_id] {
        let error = app.invoke(answer).thread("t").await.unwrap_err();
        let words = "the answer cannot be saved: it is nested more than 120 levels deep; make it flatter";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, words));
    }
    let error =
        app.invoke(Command::<JsonState>::new().update(json!({ "x": lists(121) }))).thread("t").await.unwrap_err();
    assert!(refusal(&error, None).contains("field `x`"), "{error}");
    // The question is still open.
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.to_json()["x"], json!("yes"));

    let error = app.thread("t").update(json!({ "x": lists(121) })).as_node("make").await.unwrap_err();
    assert!(refusal(&error, None).contains("thread `t`, checkpoint being made, field `x`"), "{error}");
}

#[tokio::test]
async fn functions_do_not_save_too_deep_results_either() {
    let deep = Task::new("deep", |levels: usize| async move { Ok::<_, BoxError>(lists(levels)) });
    let flow = |deep: Task<usize, Value>| {
        Entrypoint::new("flow", move |levels: usize, cx: Context| {
            let deep = deep.clone();
            async move { deep.call(&cx, levels).await }
        })
    };
    let app = flow(deep.clone()).checkpointer(MemorySaver::new()).compile();
    let error = app.invoke(121).thread("t").await.unwrap_err().to_string();
    assert!(
        error.contains("what task `deep` gave cannot be saved")
            && error.contains("a returned value: it is nested more than 120"),
        "{error}"
    );
    assert_eq!(app.invoke(100).thread("t").await.unwrap().value, Some(lists(100)));

    let cached = flow(deep.cached(None)).cache(MemoryCache::new()).compile();
    let error = cached.invoke(121).await.unwrap_err().to_string();
    let words = "the result of task `deep` cannot be kept in the cache: it is nested more than 120 levels deep";
    assert!(error.contains(words), "{error}");

    let keeps =
        Entrypoint::new("keeps", async |levels: usize, _: Previous<Value>| Final { value: 1, save: lists(levels) });
    let app = keeps.checkpointer(MemorySaver::new()).compile();
    let error = app.invoke(121).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("field `__previous__`: it is nested more than 120"), "{error}");
    app.invoke(120).thread("t").await.unwrap();
    app.invoke(1).thread("t").await.unwrap();
}

#[tokio::test]
async fn caches_and_stores_have_the_same_limit() {
    let app = |levels: usize| {
        let mut graph = StateGraph::<Notes>::new();
        let node = move |_: Notes| async move { Notes::update().doc(lists(levels)) };
        graph.add_node_with("make", node, NodeOptions::new().cache(CachePolicy::new())).add_edge(START, "make");
        graph.cache(MemoryCache::new()).compile().unwrap()
    };
    app(120).invoke(Notes::default()).await.unwrap();
    let error = app(121).invoke(Notes::default()).await.unwrap_err();
    let words = "the result of node `make` cannot be kept in the cache: field `doc`: it is nested more than 120 levels deep; make it flatter";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Store, words));

    // Payloads that cannot be shown looked all the same, and so would their keys.
    let mut graph = StateGraph::<Notes>::new();
    let work = async |Sent(chain): Sent<Link>| Notes::update().log([chain.name]);
    graph.add_node_with("work", work, NodeOptions::new().cache(CachePolicy::new()));
    graph.add_conditional_edges(START, |_: &Notes| Send::new("work", Link::chain(121)));
    let error = graph.cache(MemoryCache::new()).compile().unwrap().invoke(Notes::default()).await.unwrap_err();
    let words = "the cache key of node `work` cannot be made: it is nested more than 120 levels deep; make it flatter";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, words));

    let store = MemoryStore::new();
    store.put(["a"], "k", lists(120)).await.unwrap();
    let error = store.put(["a"], "k", lists(121)).await.unwrap_err();
    assert!(matches!(error, StoreError::TooDeep { limit: 120, .. }), "{error}");
}

/// Saves what an earlier program saved: a value of so many levels for each text that says so.
#[derive(Clone)]
struct Earlier;

fn deep_bytes(levels: usize) -> Blob {
    let mut bytes = vec![0x91; levels];
    bytes.push(0xc0);
    Blob::from(bytes)
}

/// The value that a text stands for.
fn deepened(value: &Blob) -> Blob {
    match value.strip_prefix(b"\xa9deep ") {
        Some(levels) => deep_bytes(std::str::from_utf8(levels).unwrap().parse().unwrap()),
        None => value.clone(),
    }
}

impl Hook for Earlier {
    fn read(&self, saved: SavedCheckpoint) -> SavedCheckpoint {
        let (record, fields, writes) = saved.into_parts();
        let deep = |write: &WriteRecord| {
            WriteRecord::new(write.channel(), deepened(write.value())).with_overwrite(write.is_overwrite())
        };
        let task = |task: TaskRecord| {
            let writes = task.writes().iter().map(deep).collect();
            task.with_writes(writes)
        };
        SavedCheckpoint::new(record, fields, writes.into_iter().map(task).collect())
    }

    fn write(&self, checkpoint: CheckpointRecord) -> CheckpointRecord {
        let deep = |field: &FieldRecord| match field.value() {
            FieldValue::Whole(whole) => FieldRecord::new(field.name(), FieldValue::Whole(deepened(whole))),
            _ => field.clone(),
        };
        let fields = checkpoint.fields().iter().map(deep).collect();
        checkpoint.with_fields(fields)
    }
}

fn documents() -> CompiledStateGraph<Notes> {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("note", async |state: Notes| {
        let doc = if state.doc.is_null() { json!("deep 2000") } else { json!("flat") };
        Notes::update().log(["note"]).doc(doc)
    });
    graph.add_node("last", async |_: Notes| Notes::update().log(["last"]));
    graph.add_edge(START, "note").add_edge("note", "last");
    graph.checkpointer(Hooked::new(Earlier)).compile().unwrap()
}

#[tokio::test]
async fn a_thread_that_holds_too_deep_a_value_is_looked_past_rewound_and_deleted() {
    let app = documents();
    let thread = app.thread("t");
    app.invoke(Notes::update().log(["one"])).thread("t").await.unwrap();
    let error = thread.state().await.unwrap_err().to_string();
    assert!(error.contains("field `doc`: it is nested more than 1023 levels deep and cannot be read"), "{error}");
    assert!(thread.resume().await.is_err());

    let history = thread.history().await.unwrap();
    let shown: Vec<_> = history.iter().map(|at| (at.step.unwrap(), at.unreadable.len(), at.state.log.len())).collect();
    assert_eq!(shown, [(2, 1, 3), (1, 1, 2), (0, 0, 1), (-1, 0, 0)]);
    assert!(history[0].unreadable[0].to_string().contains("field `doc`"));
    assert_eq!(history[0].values(), json!({ "log": ["one", "note", "last"] }));

    let before = history[2].checkpoint.clone().unwrap().id;
    let fork = thread.at(before).fork(Notes::update().doc("small")).as_node("__start__").await.unwrap();
    assert_eq!(fork.resume().await.unwrap().state.doc, json!("flat"));
    assert_eq!(thread.state().await.unwrap().state.doc, json!("flat"));

    app.delete_thread("t").await.unwrap();
    assert!(thread.history().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_update_puts_another_value_in_the_place_of_one_that_is_too_deep() {
    let app = documents();
    let thread = app.thread("t");
    app.invoke(Notes::update().log(["one"])).thread("t").await.unwrap();
    // Whoever writes something else does not lose the value by it.
    let error = thread.update(Notes::update().log(["two"])).as_node("last").await.unwrap_err().to_string();
    assert!(error.contains("field `doc`: it is nested more than 1023 levels"), "{error}");
    thread.update(Notes::update().log(["two"]).doc("small")).as_node("last").await.unwrap();
    let state = thread.state().await.unwrap().state;
    assert_eq!(
        (state.doc.clone(), state.log.clone()),
        (json!("small"), ["one", "note", "last", "two"].map(str::to_owned).to_vec())
    );
    let out = app.invoke(Notes::update().log(["three"])).thread("t").await.unwrap();
    assert_eq!((out.state.doc.clone(), out.state.log.len()), (json!("flat"), 7));
}

#[tokio::test]
async fn what_a_task_wrote_too_deep_is_dropped_by_an_update() {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("deep", async |_: Notes| Notes::update().doc("deep 2000"));
    graph.add_node("asks", |_: Notes, cx: Context| {
        std::future::ready(cx.interrupt::<String>("?").map(|answer| Notes::update().log([answer])))
    });
    graph.add_edge(START, "deep").add_edge(START, "asks");
    let app = graph.checkpointer(Hooked::new(Earlier)).compile().unwrap();
    let thread = app.thread("t");
    app.invoke(Notes::update().log(["one"])).thread("t").await.unwrap();
    let error = thread.state().await.unwrap_err().to_string();
    assert!(error.contains("pending writes: write to `doc`: it is nested more than 1023 levels deep"), "{error}");
    thread.update(Notes::update().log(["two"])).as_node("asks").await.unwrap();
    assert_eq!(thread.state().await.unwrap().state.log, ["one", "two"]);
}

/// What earlier programs could read is still read, on whatever stack: tests have two megabytes.
#[tokio::test]
async fn values_that_an_earlier_program_could_read_are_still_read() {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("note", async |_: Notes| Notes::update().doc("deep 1000")).add_edge(START, "note");
    let app = graph.checkpointer(Hooked::new(Earlier)).compile().unwrap();
    app.invoke(Notes::default()).thread("t").await.unwrap();
    let mut doc = &app.thread("t").state().await.unwrap().state.doc;
    let mut levels = 0;
    while let Some(inner) = doc.get(0) {
        (doc, levels) = (inner, levels + 1);
    }
    assert_eq!(levels, 1000);
}

/// What is not saved may be as deep as it likes: JSON is shown as it is.
#[tokio::test]
async fn a_dynamic_state_that_is_not_saved_is_shown_however_deep_it_is() {
    let mut graph = StateGraph::dynamic(JsonState::schema().last_value("x"));
    graph.add_node("make", async |_: JsonState| json!({ "x": lists(300) })).add_edge(START, "make");
    let out = graph.compile().unwrap().invoke(json!({ "x": 1 })).await.unwrap();
    assert_eq!(out.to_json()["x"], lists(300));
}

/// Adds a byte behind what is read.
#[derive(Clone)]
struct Behind(&'static str);

impl Hook for Behind {
    fn read(&self, saved: SavedCheckpoint) -> SavedCheckpoint {
        let longer = |bytes: &Blob| Blob::from([&bytes[..], b"\x01"].concat());
        let (record, mut fields, writes) = saved.into_parts();
        for field in fields.iter_mut().filter(|field| field.name() == self.0) {
            let tail = field.tail().iter().map(longer).collect();
            *field = SavedField::new(field.name(), field.whole().map(longer), tail);
        }
        SavedCheckpoint::new(record, fields, writes)
    }
}

/// Such bytes were ignored.
#[tokio::test]
async fn bytes_behind_the_value_of_a_field_are_an_error() {
    for field in ["chain", "log"] {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node("note", async |_: Notes| Notes::update().log(["note"]).chain(Link::chain(1)));
        graph.add_edge(START, "note");
        let app = graph.checkpointer(Hooked::new(Behind(field))).compile().unwrap();
        app.invoke(Notes::default()).thread("t").await.unwrap();
        let error = app.thread("t").state().await.unwrap_err().to_string();
        assert!(error.contains(&format!("field `{field}`: there are bytes behind its value")), "{error}");
    }
}

type Doing<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), Error>> + std::marker::Send + 'a>>;

/// A graph whose only node comes to this.
fn doing<M>(node: impl superstep::IntoNode<Notes, M>) -> CompiledStateGraph<Notes> {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("n", node).add_node("other", async |_: Notes| {}).add_edge(START, "n").add_edge(START, "other");
    graph.checkpointer(MemorySaver::new()).compile().unwrap()
}

/// An error while a checkpoint was made once showed an empty name: in a log of many threads nobody knew whose it was.
#[tokio::test]
async fn whatever_cannot_be_saved_the_error_names_the_thread() {
    let grows = doing(async |_: Notes| Notes::update().doc(lists(130)));
    let asks = doing(async |_: Notes, cx: Context| cx.interrupt::<bool>(lists(130)).map(drop));
    let sends = doing(async |_: Notes| Send::new("n", lists(130)));
    let inner = doing(async |_: Notes| Notes::update().doc(lists(130)));
    let holds = doing(inner);
    let still = doing(async |_: Notes| {});
    let task: Task<i64, Value> = Task::new("deep", async |_: i64| Ok::<_, BoxError>(lists(130)));
    let calls = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let task = task.clone();
        async move { task.call(&cx, n).await.map(drop) }
    });
    let calls = calls.checkpointer(MemorySaver::new()).compile();
    let keeps = Entrypoint::new("flow", async |_: i64| Final { value: 1, save: lists(130) });
    let keeps = keeps.checkpointer(MemorySaver::new()).compile();
    let deep = || Notes::update().doc(lists(130));
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let start = || Notes::update().log(["one"]);
        let run = |app: &CompiledStateGraph<Notes>| -> Doing<'static> {
            let run = app.invoke(start()).thread("t").durability(durability);
            Box::pin(async move { run.await.map(drop) })
        };
        run(&still).await.unwrap();
        let (input, command) = (still.invoke(deep()), still.invoke(Command::<Notes>::new().update(deep())));
        let all: Vec<(&str, Doing<'_>)> = vec![
            ("update", run(&grows)),
            ("question", run(&asks)),
            ("send", run(&sends)),
            ("inside", run(&holds)),
            ("input", Box::pin(async { input.thread("t").durability(durability).await.map(drop) })),
            ("command", Box::pin(async { command.thread("t").durability(durability).await.map(drop) })),
            ("result", Box::pin(async { calls.invoke(1).thread("t").durability(durability).await.map(drop) })),
            ("saved", Box::pin(async { keeps.invoke(1).thread("t").durability(durability).await.map(drop) })),
            ("by hand", Box::pin(async { still.update_state("t", deep(), Some("n")).await.map(drop) })),
            ("as input", Box::pin(async { still.thread("t").update_as_input(deep()).await.map(drop) })),
        ];
        // With `Exit` a send that was delivered is never saved, nor is the result of a call in a step that ended.
        let is_saved = |what: &str| durability != Durability::Exit || !["send", "result"].contains(&what);
        for (what, doing) in all.into_iter().filter(|(what, _)| is_saved(what)) {
            let error = doing.await.expect_err(what);
            let cause = error.downcast_ref::<superstep::CheckpointError>();
            let told = cause.map(|cause| (cause.kind(), cause.thread()));
            let expected = (superstep::CheckpointErrorKind::Codec, Some("t"));
            assert_eq!(told, Some(expected), "{what}, {durability:?}: {error}");
        }
    }
}
