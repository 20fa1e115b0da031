//! Reducers whose updates are of another type than the field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    BoxError, Checkpointer, Context, Durability, ErrorKind, Interrupted, JsonInput, JsonReducer, JsonState,
    MemorySaver, Mode, Persist, Reducer, ReducerFn, Resume, START, Send, State, StateGraph, Update,
};

use crate::support::savers::on_each_saver;
use crate::support::{Count, events, trace};

/// What happens to a list of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Change {
    Add(String),
    Done(String),
}

impl From<&str> for Change {
    fn from(task: &str) -> Self {
        Self::Add(task.to_owned())
    }
}

struct Apply;

impl Reducer<Vec<String>, Change> for Apply {
    const INCREMENTAL: bool = true;
    fn merge(&self, mut open: Vec<String>, change: Change) -> Vec<String> {
        match change {
            Change::Add(task) => open.push(task),
            Change::Done(task) => open.retain(|one| *one != task),
        }
        open
    }
}

fn count(counts: &mut BTreeMap<String, u32>, word: String) {
    *counts.entry(word).or_default() += 1;
}

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Plan {
    #[state(reducer = Apply, update = Change)]
    open: Vec<String>,
    #[state(reduce = count, update = String)]
    words: BTreeMap<String, u32>,
    #[state(reducer = ReducerFn(|longest: usize, text: String| longest.max(text.len())), update = String)]
    longest: usize,
    #[state(reduce = keep, update = Option<u8>)]
    known: u8,
}

fn keep(known: &mut u8, found: Option<u8>) {
    *known = found.unwrap_or(*known);
}

fn writes(update: PlanUpdate) -> impl Fn(Plan) -> std::future::Ready<PlanUpdate> + std::marker::Send + Sync + 'static {
    move |_| std::future::ready(update.clone())
}

/// `adds` and `counts`, then `ends`.
fn graph() -> StateGraph<Plan> {
    let mut graph = StateGraph::new();
    graph
        .add_node("adds", writes(Plan::update().open("cook").longest("long").known(3)))
        .add_node("counts", writes(Plan::update().words("tea").open(Change::Done("shop".into()))))
        .add_node("ends", writes(Plan::update().words("tea").open(Change::Done("cook".into())).longest("x")))
        .add_edge(START, "adds")
        .add_edge(START, "counts")
        .add_edge(["adds", "counts"], "ends");
    graph
}

fn tea(count: u32) -> BTreeMap<String, u32> {
    BTreeMap::from([("tea".to_owned(), count)])
}

#[tokio::test]
async fn updates_of_another_type_are_merged_in_task_order() {
    let out = graph().compile().unwrap().invoke(Plan::update().open("shop").words("tea")).await.unwrap().state;
    assert_eq!(out, Plan { open: vec![], words: tea(3), longest: 4, known: 3 });
    let merged = Plan::default().merge(Plan::update().open("shop").words("tea").clear_known()).unwrap();
    assert_eq!(merged, Plan { open: vec!["shop".into()], words: tea(1), ..Plan::default() });
}

#[tokio::test]
async fn a_field_is_read_and_overwritten_by_its_own_type() {
    let update = Update::new().set(Plan::OPEN, "shop").overwrite(Plan::WORDS, tea(7));
    assert_eq!(update.get(Plan::OPEN), Some(&Change::Add("shop".into())));
    assert_eq!(update.get(Plan::WORDS), None, "an overwrite is no update");
    let app = graph().compile().unwrap();
    let out = app.invoke(update).await.unwrap().state;
    assert_eq!((out.words, out.open.len()), (tea(9), 0));
    let twice = Plan::update().overwrite(Plan::WORDS, tea(1)).overwrite(Plan::WORDS, tea(2));
    assert_eq!(app.invoke(twice).await.unwrap_err().kind(), ErrorKind::InvalidUpdate);
}

#[tokio::test]
async fn a_whole_state_replaces_what_it_changed() {
    let whole = Plan { open: vec!["shop".into(), "cook".into()], words: tea(2), longest: 9, known: 1 };
    let given = whole.clone();
    let back = move |plan: Plan| std::future::ready(Plan { open: vec!["rest".into()], ..plan });
    let mut graph = StateGraph::<Plan>::new();
    graph.add_node("back", back).add_edge(START, "back");
    let out = graph.compile().unwrap().invoke(given.clone()).await.unwrap().state;
    assert_eq!(out, Plan { open: vec!["rest".into()], ..given.clone() });

    // Beside an update of the same field there is no telling how the two go together.
    graph.add_node("adds", writes(Plan::update().open("more"))).add_edge(START, "adds");
    let error = graph.compile().unwrap().invoke(given.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
    assert!(error.to_string().contains("`open`"), "{error}");

    // An update of another field lies beside it.
    let mut graph = StateGraph::<Plan>::new();
    graph.add_node("back", back).add_node("counts", writes(Plan::update().words("tea")));
    graph.add_edge(START, "back").add_edge(START, "counts");
    let out = graph.compile().unwrap().invoke(given.clone()).await.unwrap().state;
    assert_eq!(out, Plan { open: vec!["rest".into()], words: tea(3), ..given });
}

#[tokio::test]
async fn every_checkpoint_is_read_back_as_it_was() {
    async fn check(saver: impl Checkpointer + Clone) {
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let mut graph = graph();
            let app = graph.checkpointer(saver.clone()).compile().unwrap();
            let thread = app.thread(format!("{durability:?}"));
            thread.invoke(Plan::update().open("shop").words("tea")).durability(durability).await.unwrap();
            thread.update(Plan::update().open("again").overwrite(Plan::WORDS, tea(1))).as_node("ends").await.unwrap();
            let state = graph.compile().unwrap().thread(format!("{durability:?}")).state().await.unwrap().state;
            assert_eq!(*state, Plan { open: vec!["again".into()], words: tea(1), longest: 4, known: 3 });
        }
        let lines = trace(&graph().checkpointer(saver).compile().unwrap().thread("Sync")).await.unwrap();
        expect_test::expect![[r#"
            -1 input  {"known":0,"longest":0,"open":[],"words":{}} -> __start__
             0 loop   {"known":0,"longest":0,"open":["shop"],"words":{"tea":1}} -> adds, counts
             1 loop   {"known":3,"longest":4,"open":["cook"],"words":{"tea":2}} -> ends
             2 loop   {"known":3,"longest":4,"open":[],"words":{"tea":3}} -> 
             3 update {"known":3,"longest":4,"open":["again"],"words":{"tea":1}} -> "#]]
        .assert_eq(&lines);
    }
    on_each_saver!("other_updates", check);
}

/// What a finished task wrote is kept as what it wrote: it is merged when its sibling has finished too, in another process.
#[tokio::test]
async fn pending_writes_keep_the_type_of_the_update() {
    async fn check(saver: impl Checkpointer + Clone) {
        let runs = Count::default();
        let counted = runs.clone();
        let asks = async |_: Plan, cx: Context| -> Result<PlanUpdate, Interrupted> {
            let task: String = cx.interrupt("what else?")?;
            Ok(Plan::update().open(Change::Add(task)))
        };
        let mut graph = StateGraph::<Plan>::new();
        graph.add_node("asks", asks).add_edge(START, "asks").checkpointer(saver);
        graph.add_node("counts", move |_: Plan| {
            counted.up();
            Plan::update().words("tea").overwrite(Plan::KNOWN, 9).and(Plan::update().open(Change::Done("shop".into())))
        });
        graph.add_edge(START, "counts");
        let input = Plan::update().open("shop").words("tea");
        let paused = graph.compile().unwrap().invoke(input).thread("t").await.unwrap();
        assert!(paused.is_interrupted());
        let out = graph.compile().unwrap().invoke(Resume::value("cook")).thread("t").await.unwrap().state;
        assert_eq!(out, Plan { open: vec!["cook".into()], words: tea(2), longest: 0, known: 9 });
        assert_eq!(runs.get(), 1, "it does not run again");
    }
    on_each_saver!("other_pending", check);
}

#[tokio::test]
async fn events_show_updates_as_updates_and_values_as_values() {
    let stream = graph().compile().unwrap().stream(Plan::update().open("shop")).modes([Mode::Updates, Mode::Values]);
    let all = events(stream.start()).await;
    let of = |mode: &str| all.iter().filter(|e| e["mode"] == *mode).map(|e| e["data"].clone()).collect::<Vec<Value>>();
    assert_eq!(of("Updates")[0], json!({ "adds": { "open": { "Add": "cook" }, "longest": "long", "known": 3 } }));
    assert_eq!(of("Values")[0], json!({ "open": ["shop"], "words": {}, "longest": 0, "known": 0 }));
}

#[tokio::test]
async fn what_is_sent_to_a_graph_is_an_update() {
    let inner = graph().compile().unwrap();
    let mut outer = StateGraph::<Plan>::new();
    outer.add_node("plan", |_: Plan| Send::new("inner", json!({ "open": { "Add": "shop" }, "words": "tea" })));
    outer.add_node("inner", inner).add_edge(START, "plan");
    let out = outer.compile().unwrap().invoke(()).await.unwrap().state;
    assert_eq!((out.words, out.open.len()), (tea(3), 0), "a graph gives back values, which replace");
}

#[test]
fn a_value_and_an_update_are_told_apart_in_bytes() -> Result<(), BoxError> {
    let update = Update::<Plan>::new().set(Plan::WORDS, "tea").overwrite(Plan::WORDS, tea(2));
    for (put, shown) in update.puts().iter().zip([json!("tea"), json!({ "tea": 2 })]) {
        let mut bytes = Vec::new();
        Plan::encode_write(&(), &put.write, &mut bytes)?;
        let (mut again, write) = (Vec::new(), Plan::decode_write(&(), 1, &bytes)?);
        Plan::encode_write(&(), &write, &mut again)?;
        assert_eq!((Plan::write_to_json(&(), &write)?, again), (Some(shown), bytes));
    }
    Ok(())
}

#[test]
fn an_update_of_another_type_is_shown_as_it_is() {
    let update = Plan::update().open("shop").words("tea");
    assert_eq!(format!("{update:?}"), r#"PlanUpdate { open: Add("shop"), words: "tea", .. }"#);
    let update = Update::<Plan>::new().set(Plan::OPEN, "shop").overwrite(Plan::WORDS, tea(1));
    let text = format!("{update:?}");
    assert!(text.contains(r#"open(Add("shop"))"#) && text.contains(r#"words({"tea": 1})"#), "{text}");
}

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Heap<T, U>
where
    Vec<T>: Takes<U>,
{
    #[state(reduce = Takes::take, update = U)]
    items: Vec<T>,
    first: Option<T>,
    last: Option<U>,
}

trait Takes<U> {
    fn take(&mut self, item: U);
}

impl<T: From<U>, U> Takes<U> for Vec<T> {
    fn take(&mut self, item: U) {
        self.push(item.into());
    }
}

#[test]
fn a_generic_state_takes_other_updates_too() {
    let heap = Heap::<u64, u8>::default().merge(Heap::update().items(3).last(4)).unwrap();
    assert_eq!(heap, Heap { items: vec![3], first: None, last: Some(4) });
}

/// A reducer over JSON takes what it likes.
#[tokio::test]
async fn reducers_of_graphs_over_json_take_other_updates() {
    let count = JsonReducer::Custom(std::sync::Arc::new(|counts, word| {
        let word = word.as_str().ok_or("it takes a word")?;
        counts[word] = json!(counts[word].as_u64().unwrap_or(0) + 1);
        Ok(())
    }));
    let mut graph = StateGraph::dynamic(JsonState::schema().reducer("words", count, Some(json!({}))));
    graph.add_node("says", async |_: JsonInput| json!({ "words": "tea" })).add_edge(START, "says");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let run = |input| app.invoke(input).thread("t").into_future();
    assert_eq!(run(json!({ "words": "tea" })).await.unwrap().to_json(), json!({ "words": { "tea": 2 } }));
    assert_eq!(run(json!({ "words": "milk" })).await.unwrap().to_json(), json!({ "words": { "tea": 3, "milk": 1 } }));
    let error = run(json!({ "words": 1 })).await.unwrap_err();
    assert!(error.to_string().contains("it takes a word"), "{error}");
}

#[cfg(feature = "schema")]
#[test]
fn the_schema_of_an_input_is_that_of_the_updates() {
    use superstep::StateSchema;

    #[derive(State, Clone, Default, Serialize, Deserialize)]
    struct Described {
        #[state(reduce = count, update = String)]
        words: BTreeMap<String, u32>,
        #[state(sum, internal)]
        calls: u64,
    }
    assert_eq!(Described::json_schema()["properties"]["words"]["type"], "object");
    assert_eq!(Described::input_schema()["properties"]["words"]["type"], "string");
    assert_eq!(Described::json_schema()["required"], json!(["words"]), "internal fields are no part of it");
    assert!(Described::input_schema()["properties"].get("calls").is_none());
    assert_eq!(Described::update().calls(1).calls, Some(1));
}
