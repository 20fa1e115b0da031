//! Threads that an earlier version of the program saved: other fields, and other nodes (`migrate/nodes.rs`).

mod nodes;

use serde_json::{Value, json};
use superstep::{
    BoxError, Checkpointer, Command, CompiledStateGraph, Context, Durability, Error, GoOn, Interrupted, JsonInput,
    JsonState, ListQuery, MemorySaver, NodeError, NodeOptions, Persist, Resume, START, SavedFields, State, StateGraph,
};

mod v1 {
    use serde::{Deserialize, Serialize};

    #[derive(superstep::State, Clone, Default, Debug, Serialize, Deserialize)]
    pub(super) struct Order {
        #[state(sum)]
        pub(super) euros: i64,
        #[state(append)]
        pub(super) log: Vec<String>,
        pub(super) name: Option<String>,
        pub(super) note: Option<String>,
    }
}

mod v2 {
    use serde::{Deserialize, Serialize};

    #[derive(superstep::State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
    #[state(version = 2)]
    pub(super) struct Order {
        #[state(sum)]
        pub(super) cents: i64,
        #[state(append)]
        pub(super) log: Vec<Line>,
        pub(super) first: Option<String>,
        pub(super) last: Option<String>,
        pub(super) visits: Option<u32>,
    }

    #[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
    pub(super) struct Line {
        pub(super) text: String,
    }

    pub(super) fn line(text: &str) -> Line {
        Line { text: text.to_owned() }
    }
}

fn to_cents(fields: &mut SavedFields) {
    fields.rename("euros", "cents");
    fields.change("cents", |euros| (euros.as_i64().unwrap_or(0) * 100).into());
    fields.change("log", |lines| {
        let lines = lines.as_array().cloned().unwrap_or_default();
        lines.into_iter().map(|text| json!({ "text": text })).collect()
    });
    if let Some(name) = fields.remove("name") {
        let mut parts = name.as_str().unwrap_or_default().splitn(2, ' ').map(str::to_owned);
        fields.insert("first", parts.next());
        fields.insert("last", parts.next());
    }
    fields.remove("note");
    fields.default("visits", 1);
}

/// `pay` and `ask` side by side, then `ship`.
fn old(saver: &MemorySaver) -> CompiledStateGraph<v1::Order> {
    let ask = async |_: v1::Order, cx: Context| {
        let answer: String = cx.interrupt("ship it?")?;
        Ok::<_, Interrupted>(v1::Order::update().log([answer]))
    };
    StateGraph::<v1::Order>::new()
        .add_node("pay", async |_: v1::Order| v1::Order::update().euros(5).log(["paid"]).name("Ada Lovelace"))
        .add_node("ask", ask)
        .add_node("ship", async |_: v1::Order| v1::Order::update().log(["shipped"]))
        .add_edge(START, "pay")
        .add_edge(START, "ask")
        .add_edge(["pay", "ask"], "ship")
        .checkpointer(saver.clone())
        .compile()
        .unwrap()
}

fn new_graph() -> StateGraph<v2::Order> {
    let ask = async |_: v2::Order, cx: Context| {
        let answer: String = cx.interrupt("ship it?")?;
        Ok::<_, Interrupted>(v2::Order::update().cents(1).log([v2::line(&answer)]))
    };
    let mut graph = StateGraph::<v2::Order>::new();
    graph
        .add_node("pay", async |_: v2::Order| v2::Order::update().cents(7).log([v2::line("paid")]))
        .add_node("ask", ask)
        .add_node("ship", async |_: v2::Order| v2::Order::update().log([v2::line("shipped")]))
        .add_edge(START, "pay")
        .add_edge(START, "ask")
        .add_edge(["pay", "ask"], "ship");
    graph
}

fn new(saver: &MemorySaver) -> CompiledStateGraph<v2::Order> {
    new_graph().migrate(1, to_cents).checkpointer(saver.clone()).compile().unwrap()
}

fn input() -> v1::OrderUpdate {
    v1::Order::update().euros(2).log(["ordered"]).note("gift").name("Grace Hopper")
}

/// A thread of the old program that waits for an answer; `pay` has finished.
async fn waiting() -> MemorySaver {
    let saver = MemorySaver::new();
    old(&saver).invoke(input()).thread("t").await.unwrap();
    saver
}

async fn field_names(saver: &MemorySaver) -> Vec<String> {
    let latest = saver.get("t", "", None).await.unwrap().unwrap();
    let mut names: Vec<String> = latest.fields().iter().map(|field| field.name().to_owned()).collect();
    names.sort();
    names
}

fn lines(order: &v2::Order) -> Vec<&str> {
    order.log.iter().map(|line| line.text.as_str()).collect()
}

#[tokio::test]
async fn fields_are_renamed_changed_split_removed_and_added() {
    let saver = waiting().await;
    old(&saver).invoke(Resume::value("yes")).thread("t").await.unwrap();
    let state = new(&saver).thread("t").state().await.unwrap();
    assert_eq!((state.state.cents, state.state.visits, state.next.len()), (700, Some(1), 0));
    assert_eq!(lines(&state.state), ["ordered", "yes", "paid", "shipped"]);
    assert_eq!((state.state.first.as_deref(), state.state.last.as_deref()), (Some("Ada"), Some("Lovelace")));
}

#[tokio::test]
async fn every_checkpoint_of_the_history_is_migrated() {
    let saver = waiting().await;
    old(&saver).invoke(Resume::value("yes")).thread("t").await.unwrap();
    let history = new(&saver).thread("t").history().await.unwrap();
    let cents: Vec<i64> = history.iter().map(|at| at.state.cents).collect();
    assert_eq!(cents, [700, 700, 200, 0]);
}

#[tokio::test]
async fn reading_writes_nothing_and_going_on_writes_the_new_fields_only() {
    let saver = waiting().await;
    let before = saver.list("t", "", &ListQuery::new()).await.unwrap().len();
    let app = new(&saver);
    app.thread("t").state().await.unwrap();
    app.thread("t").history().await.unwrap();
    assert_eq!(saver.list("t", "", &ListQuery::new()).await.unwrap().len(), before);
    assert_eq!(field_names(&saver).await, ["euros", "log", "name", "note"]);
    app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(field_names(&saver).await, ["cents", "first", "last", "log", "visits"]);
}

#[tokio::test]
async fn what_a_finished_task_wrote_is_migrated_and_it_does_not_run_again() {
    let saver = waiting().await;
    let app = new(&saver);
    let now = app.thread("t").state().await.unwrap();
    assert_eq!((now.state.cents, now.next.join(" ")), (700, "ask".to_owned()));
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.state.cents, 701, "200 of the input, 500 of `pay` as it was, 1 of the new `ask`");
    assert_eq!(lines(&out.state), ["ordered", "yes", "paid", "shipped"]);
    assert_eq!(new(&saver).thread("t").state().await.unwrap().state.cents, 701, "it is read again as it was saved");
}

/// The new program saves what its tasks wrote under the old program's checkpoint. It must not be migrated once more.
#[tokio::test]
async fn what_the_new_program_wrote_after_an_old_checkpoint_stays_as_it_is() {
    let saver = MemorySaver::new();
    let ask = async |_: v1::Order, cx: Context| {
        let answer: String = cx.interrupt("ship it?")?;
        Ok::<_, Interrupted>(v1::Order::update().log([answer]))
    };
    let mut graph = StateGraph::<v1::Order>::new();
    graph.add_node("ask", ask).add_node("pay", async |_: v1::Order| Err::<v1::OrderUpdate, _>("no money"));
    let app = graph.add_edge(START, "pay").add_edge(START, "ask").checkpointer(saver.clone()).compile().unwrap();
    app.invoke(input()).thread("t").await.unwrap_err();
    let app = new(&saver);
    app.invoke(GoOn).thread("t").await.unwrap();
    let paused = app.thread("t").state().await.unwrap();
    assert_eq!((paused.state.cents, paused.next.join(" ")), (207, "ask".to_owned()), "`pay` paid 7 cents");
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.state.cents, 208);
    let history = app.thread("t").history().await.unwrap();
    let tasks: Vec<Value> = history.iter().map(|at| at.to_json()["tasks"].take()).collect();
    let tasks = tasks.iter().flat_map(|tasks| tasks.as_array().unwrap());
    let paid = tasks.into_iter().find(|task| task["name"] == "pay").unwrap();
    assert_eq!(paid["result"]["cents"], 7, "{paid}");
}

/// Asks two questions; beside it, something breaks and is handled.
macro_rules! asks_twice {
    ($state:ty, $line:expr) => {{
        let ask = async |_: $state, cx: Context| {
            let one: String = cx.interrupt("one?")?;
            let two: String = cx.interrupt("two?")?;
            Ok::<_, Interrupted>(<$state>::update().log([$line(&one), $line(&two)]))
        };
        let handle = async |_: $state, error: NodeError| <$state>::update().log([$line(error.message())]);
        let mut graph = StateGraph::<$state>::new();
        graph
            .add_node("ask", ask)
            .add_node("beside", async |_: $state| <$state>::update().log([$line("beside")]))
            .add_node_with(
                "breaks",
                async |_: $state| Err::<(), _>(BoxError::from("broken")),
                NodeOptions::new().error_handler(handle),
            )
            .add_edge(START, "ask")
            .add_edge(START, "beside")
            .add_edge(START, "breaks");
        graph
    }};
}

/// An error handler runs again when its step is resumed: of what it wrote first and then, under two versions of the
/// state, a record was saved that nobody could read. With durability `exit` it was so with any task that had finished.
#[tokio::test]
async fn a_step_that_two_versions_of_the_program_worked_on_can_be_read() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let saver = MemorySaver::new();
        let old = asks_twice!(v1::Order, str::to_owned).checkpointer(saver.clone()).compile().unwrap();
        old.invoke(input()).thread("t").await.unwrap();
        let new = asks_twice!(v2::Order, v2::line).migrate(1, to_cents).checkpointer(saver).compile().unwrap();
        new.invoke(Resume::value("a")).thread("t").durability(durability).await.unwrap();
        let paused = new.thread("t").state().await.unwrap();
        assert_eq!((lines(&paused.state), paused.interrupts.len()), (vec!["ordered", "beside"], 1));
        let out = new.invoke(Resume::value("b")).thread("t").durability(durability).await.unwrap();
        assert_eq!(lines(&out.state), ["ordered", "a", "b", "beside", "broken"]);
    }
}

#[tokio::test]
async fn a_commands_writes_after_an_old_checkpoint_stay_as_they_are() {
    let saver = waiting().await;
    let app = new(&saver);
    let command = Command::new().update(v2::Order::update().cents(3));
    app.invoke(command).thread("t").await.unwrap();
    for _ in 0..2 {
        let paused = new(&saver).thread("t").state().await.unwrap();
        assert_eq!((paused.state.cents, paused.interrupts.len()), (703, 1));
    }
    app.invoke(Command::new().update(v2::Order::update().cents(4))).thread("t").await.unwrap();
    assert_eq!(app.invoke(Resume::value("yes")).thread("t").await.unwrap().state.cents, 708);
}

#[tokio::test]
async fn an_input_that_waits_is_migrated() {
    let saver = MemorySaver::new();
    old(&saver).thread("t").update_as_input(input()).await.unwrap();
    let out = new(&saver).invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.state.cents, out.state.first.as_deref()), (207, Some("Grace")), "`pay` paid 7");
}

#[tokio::test]
async fn an_old_checkpoint_is_forked_as_a_new_one() {
    let saver = waiting().await;
    old(&saver).invoke(Resume::value("yes")).thread("t").await.unwrap();
    let app = new(&saver);
    let first = app.thread("t").history().await.unwrap().into_iter().find(|at| at.state.cents == 200).unwrap();
    let at = first.checkpoint.unwrap().id;
    let fork = app.thread("t").at(at).fork(v2::Order::update().cents(1)).as_node("ship").await.unwrap();
    assert_eq!(fork.state().await.unwrap().state.cents, 201);
    assert_eq!(field_names(&saver).await, ["cents", "first", "last", "log", "visits"]);
    app.thread("t").at(at).copy().await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().state.cents, 200);
}

#[tokio::test]
async fn new_input_on_an_old_thread_goes_on_from_the_migrated_state() {
    let saver = waiting().await;
    let out = new(&saver).invoke(v2::Order::update().cents(50)).thread("t").await.unwrap();
    assert_eq!(
        (out.state.cents, out.interrupts.len()),
        (257, 1),
        "what was left to do was dropped, and `pay` ran anew"
    );
}

fn counted(version: u32) -> StateGraph<JsonState> {
    let mut graph = StateGraph::dynamic(JsonState::schema().append("log").version(version));
    graph.add_node("note", async |_: JsonInput| json!({ "log": ["note"] })).add_edge(START, "note");
    graph
}

fn notes(mark: &'static str) -> impl Fn(&mut SavedFields) + Clone {
    move |fields| {
        fields
            .change("log", |log| log_of(&json!({ "log": log })).iter().map(|entry| format!("{entry}{mark}")).collect());
    }
}

fn log_of(values: &Value) -> Vec<&str> {
    values["log"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn migrations_are_applied_in_order_from_the_saved_version_on() {
    let saver = MemorySaver::new();
    let app = |version| {
        let mut graph = counted(version);
        if version > 2 {
            graph.migrate(2, notes("³"));
        }
        if version > 1 {
            graph.migrate(1, notes("²"));
        }
        graph.checkpointer(saver.clone()).compile().unwrap()
    };
    for version in [1, 2, 3] {
        app(version).invoke(json!({})).thread("t").await.unwrap();
    }
    let latest = app(3).thread("t").state().await.unwrap();
    assert_eq!(log_of(&latest.values()), ["note²³", "note³", "note"]);
    app(1).invoke(json!({})).thread("u").await.unwrap();
    assert_eq!(log_of(&app(3).thread("u").state().await.unwrap().values()), ["note²³"]);
}

/// The error with which a thread of version `saved` cannot be read.
async fn refused(saved: u32, graph: &mut StateGraph<JsonState>) -> String {
    let saver = MemorySaver::new();
    let mut old = counted(saved);
    for version in 1..saved {
        old.migrate(version, |_: &mut SavedFields| ());
    }
    old.checkpointer(saver.clone()).compile().unwrap().invoke(json!({})).thread("t").await.unwrap();
    let app = graph.checkpointer(saver).compile().unwrap();
    let errors: [Error; 3] = [
        app.thread("t").state().await.err().unwrap(),
        app.invoke(json!({})).thread("t").await.err().unwrap(),
        app.thread("t").update(json!({ "log": ["x"] })).await.err().unwrap(),
    ];
    let [words, ..] = errors.map(|error| error.to_string());
    let (start, end) = words.split_once("checkpoint ").unwrap();
    format!("{start}checkpoint .. {}", end.split_once(' ').unwrap().1)
}

#[tokio::test]
async fn a_newer_version_is_refused() {
    let words = refused(3, counted(2).migrate(1, |_: &mut SavedFields| ())).await;
    assert!(words.contains("thread `t`, "), "{words}");
    assert!(words.ends_with("holds version 3 of the state, this graph has version 2; update the program"), "{words}");
    let words = refused(2, &mut counted(1)).await;
    assert!(words.ends_with("holds version 2 of the state, this graph has version 1; update the program"), "{words}");
}

#[tokio::test]
async fn a_missing_migration_names_the_versions_and_the_fields() {
    let words = refused(1, counted(3).migrate(1, |_: &mut SavedFields| ())).await;
    let expected = "holds version 1 of the state (fields `log`), this graph has version 3; add the migration that is \
                    missing: `.migrate(2, ..)`";
    assert!(words.ends_with(expected), "{words}");
}

#[tokio::test]
async fn a_migration_that_fails_says_which_and_why() {
    let words = refused(1, counted(2).migrate(1, |_: &mut SavedFields| Err("the rates are not known"))).await;
    assert!(words.ends_with("the migration from version 1: the rates are not known"), "{words}");
    let saver = waiting().await;
    let mut graph = new_graph();
    graph.migrate(1, |fields: &mut SavedFields| fields.rename("euros", "cents"));
    let app = graph.checkpointer(saver).compile().unwrap();
    let words = app.invoke(GoOn).thread("t").await.unwrap_err().to_string();
    assert!(words.contains("state of version 1, read as version 2: field `log`: "), "{words}");
}

#[tokio::test]
async fn data_that_is_not_plain_is_left_alone_and_refused_when_it_is_looked_at() {
    use serde::{Deserialize, Serialize};

    #[derive(superstep::State, Clone, Default, Serialize, Deserialize)]
    struct Prices {
        by_number: std::collections::BTreeMap<u32, i64>,
    }
    #[derive(superstep::State, Clone, Default, Serialize, Deserialize)]
    #[state(version = 2)]
    struct Rates {
        rates: std::collections::BTreeMap<u32, i64>,
    }
    let saver = MemorySaver::new();
    let price = async |_: Prices| Prices::update().by_number([(7, 1)]);
    let mut graph = StateGraph::<Prices>::new();
    graph.add_node("price", price).add_edge(START, "price");
    graph.checkpointer(saver.clone()).compile().unwrap().invoke(Prices::update()).thread("t").await.unwrap();
    let app = |migration: fn(&mut SavedFields)| {
        let mut graph = StateGraph::<Rates>::new();
        graph.add_node("price", async |_: Rates| ()).add_edge(START, "price");
        graph.migrate(1, migration).checkpointer(saver.clone()).compile().unwrap()
    };
    let renamed = app(|fields| fields.rename("by_number", "rates")).thread("t").state().await.unwrap();
    assert_eq!(renamed.state.rates[&7], 1);
    let looked = app(|fields| drop(fields.get("by_number"))).thread("t").state().await.err().unwrap().to_string();
    assert!(looked.contains("the migration from version 1: field `by_number`: it is no plain data"), "{looked}");
}

#[tokio::test]
async fn a_state_without_migrations_costs_and_changes_nothing() {
    let saver = MemorySaver::new();
    let app = counted(1).checkpointer(saver.clone()).compile().unwrap();
    app.invoke(json!({})).thread("t").await.unwrap();
    let versioned = counted(2).migrate(1, |_: &mut SavedFields| ()).checkpointer(saver.clone()).compile().unwrap();
    versioned.invoke(json!({})).thread("u").await.unwrap();
    let shape = async |thread: &str| saver.get(thread, "", None).await.unwrap().unwrap().record().shape().clone();
    let (plain, versioned) = (shape("t").await, shape("u").await);
    assert_eq!(versioned.len(), plain.len() + 1, "the version is kept once, with the names of the graph");
}

#[tokio::test]
async fn a_subgraph_migrates_its_own_state() {
    let saver = MemorySaver::new();
    let child = |version: u32| {
        let ask = async |_: JsonInput, cx: Context| {
            let answer: String = cx.interrupt("sure?")?;
            Ok::<_, Interrupted>(json!({ "log": [answer] }))
        };
        let mut graph = StateGraph::dynamic(JsonState::schema().append("log").version(version));
        graph.add_node("x", async |_: JsonInput| json!({ "log": ["x"] })).add_node("ask", ask);
        graph.add_sequence(["x", "ask"]);
        graph
    };
    let parent = |child: &StateGraph<JsonState>| {
        let mut graph = StateGraph::dynamic(JsonState::schema().last_value("log"));
        graph.add_node("child", child.compile().unwrap()).add_edge(START, "child");
        graph.checkpointer(saver.clone()).compile().unwrap()
    };
    parent(&child(1)).invoke(json!({})).thread("t").await.unwrap();
    let app = parent(child(2).migrate(1, notes("²")));
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(log_of(&out.to_json()), ["x²", "yes"]);
}

#[test]
fn a_state_says_its_version() {
    assert_eq!((v1::Order::version(&()), v2::Order::version(&())), (1, 2));
    assert_eq!(JsonState::version(&JsonState::schema()), 1);
    assert_eq!(JsonState::version(&JsonState::schema().version(4)), 4);
}

#[test]
fn wrong_migrations_are_mistakes() {
    let nothing = |_: &mut SavedFields| ();
    let mut graph = counted(2);
    graph.migrate(0, nothing).migrate(2, nothing).migrate(1, nothing).migrate(1, nothing);
    let words = graph.compile().unwrap_err().to_string();
    for line in [
        "`migrate(0, ..)`: versions begin at 1",
        "`migrate(2, ..)`: the state has version 2, so nothing leads on from version 2",
        "`migrate(1, ..)`: there are two migrations from this version",
    ] {
        assert!(words.contains(line), "{words}");
    }
    assert!(counted(0).compile().unwrap_err().to_string().contains("the state: versions begin at 1"));
}

mod listed {
    use serde::{Deserialize, Serialize};

    #[derive(superstep::State, Clone, Default, Debug, Serialize, Deserialize)]
    pub(super) struct Appended {
        #[state(append)]
        pub(super) log: Vec<String>,
    }

    #[derive(superstep::State, Clone, Default, Debug, Serialize, Deserialize)]
    pub(super) struct Plain {
        pub(super) log: Vec<String>,
    }

    #[derive(superstep::State, Clone, Default, Debug, Serialize, Deserialize)]
    #[state(version = 2)]
    pub(super) struct Later {
        pub(super) log: Vec<String>,
    }

    #[derive(superstep::State, Clone, Default, Debug, Serialize, Deserialize)]
    pub(super) struct Numbered {
        pub(super) log: u64,
    }
}

/// A graph of one node that does nothing.
fn idle<S: State<Schema = ()> + Persist>(saver: &MemorySaver) -> StateGraph<S> {
    let mut graph = StateGraph::new();
    graph.add_node("idle", async |_: S| ()).add_edge(START, "idle").checkpointer(saver.clone());
    graph
}

async fn appended(saver: &MemorySaver) {
    let app = idle::<listed::Appended>(saver).compile().unwrap();
    for text in ["one", "two", "three"] {
        app.invoke(listed::Appended::update().log([text.to_owned()])).thread("t").await.unwrap();
    }
}

/// Only the last piece of the list was left, and nobody was told.
#[tokio::test]
async fn a_list_whose_reducer_is_gone_is_refused_until_it_is_put_together() {
    let saver = MemorySaver::new();
    appended(&saver).await;
    let plain = idle::<listed::Plain>(&saver).compile().unwrap();
    let refused = plain.thread("t").state().await.unwrap_err().to_string();
    assert!(refused.contains("field `log`: it was saved piece by piece for a reducer"), "{refused}");
    let join = |fields: &mut SavedFields| {
        if let Some(all) = fields.remove("log") {
            fields.insert("log", all);
        }
    };
    let later = idle::<listed::Later>(&saver).migrate(1, join).compile().unwrap();
    assert_eq!(later.thread("t").state().await.unwrap().state.log, ["one", "two", "three"]);
    later.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(later.thread("t").state().await.unwrap().state.log, ["one", "two", "three"]);
}

#[tokio::test]
async fn a_field_may_get_a_reducer() {
    let saver = MemorySaver::new();
    let plain = idle::<listed::Plain>(&saver).compile().unwrap();
    plain.invoke(listed::Plain::update().log(vec!["one".to_owned(), "two".to_owned()])).thread("t").await.unwrap();
    let app = idle::<listed::Appended>(&saver).compile().unwrap();
    app.invoke(listed::Appended::update().log(["three".to_owned()])).thread("t").await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().state.log, ["one", "two", "three"]);
}

#[tokio::test]
async fn a_field_of_another_type_says_what_was_saved_and_what_to_do() {
    let saver = MemorySaver::new();
    let plain = idle::<listed::Plain>(&saver).compile().unwrap();
    plain.invoke(listed::Plain::update().log(vec!["one".to_owned()])).thread("t").await.unwrap();
    let numbered = idle::<listed::Numbered>(&saver).compile().unwrap();
    let refused = numbered.thread("t").state().await.unwrap_err().to_string();
    assert!(refused.contains("it was saved as a list. If its type has changed"), "{refused}");
}
