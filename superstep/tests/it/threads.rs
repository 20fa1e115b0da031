//! Threads: looked at, rewound, forked, copied and changed by hand.

use expect_test::expect;
use serde_json::json;
use superstep::{
    CheckpointId, CheckpointRecord, END, ErrorKind, GoOn, ListQuery, MemorySaver, START, Source, StateGraph,
    StateSnapshot, Superstep, Thread,
};

use crate::support::hooked::{Hook, Hooked};
use crate::support::{Notes, NotesUpdate, a_b_c, events, saved, says, trace};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

async fn finished() -> Thread<Notes> {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").metadata("who", "ada").await.unwrap();
    app.thread("t")
}

async fn at(thread: &Thread<Notes>, next: &str) -> StateSnapshot<Notes> {
    thread.history().await.unwrap().into_iter().find(|s| s.next == [next]).expect("there is such a checkpoint")
}

fn steps(found: &[StateSnapshot<Notes>]) -> Vec<i64> {
    found.iter().filter_map(|s| s.step).collect()
}

#[tokio::test]
async fn a_threads_name_may_be_borrowed_from_a_string_wherever_it_is_asked_for() {
    let (app, name) = (saved(&mut a_b_c()), String::from("t"));
    app.invoke(input()).thread(&name).await.unwrap();
    assert_eq!(app.get_state(&name).await.unwrap().step, app.thread(&name).state().await.unwrap().step);
    assert_eq!(app.copy_thread(&name, &format!("{name}2")).await.unwrap().name(), "t2");
}

#[test]
fn a_thread_says_which_it_is() {
    let words = "Thread { name: \"t\", namespace: \"\", checkpoint: None, .. }";
    assert_eq!(format!("{:?}", saved(&mut a_b_c()).thread("t")), words);
}

#[tokio::test]
async fn an_unknown_thread_is_empty() {
    let thread = saved(&mut a_b_c()).thread("nobody");
    let state = thread.state().await.unwrap();
    assert!(state.checkpoint.is_none() && state.next.is_empty() && state.tasks.is_empty());
    assert_eq!((state.values(), thread.history().await.unwrap().len(), thread.name()), (json!({}), 0, "nobody"));
}

#[tokio::test]
async fn a_history_is_listed_newest_first_and_as_asked_for() {
    let thread = finished().await;
    let list = |query| {
        let thread = thread.clone();
        async move { steps(&thread.history_with(query).await.unwrap()) }
    };
    let before_b = at(&thread, "b").await.checkpoint.unwrap().id;
    assert_eq!(list(ListQuery::new()).await, [3, 2, 1, 0, -1]);
    assert_eq!(list(ListQuery::new().limit(2)).await, [3, 2]);
    assert_eq!(list(ListQuery::new().limit(0)).await, Vec::<i64>::new());
    assert_eq!(list(ListQuery::new().before(before_b)).await, [0, -1]);
    assert_eq!(list(ListQuery::new().source(Source::Input)).await, [-1]);
    assert_eq!(list(ListQuery::new().step(2)).await, [2]);
    assert_eq!(list(ListQuery::new().metadata("who", "ada")).await, [3, 2, 1, 0, -1]);
    assert_eq!(list(ListQuery::new().metadata("who", "bob")).await, Vec::<i64>::new());
    assert_eq!(list(ListQuery::new().before(before_b).limit(1)).await, [0]);
    assert_eq!(steps(&thread.at(before_b).history().await.unwrap()), [1]);
}

#[tokio::test]
async fn checkpoints_name_their_parents() {
    let history = finished().await.history().await.unwrap();
    for pair in history.windows(2) {
        assert_eq!(pair[0].parent, pair[1].checkpoint);
    }
    assert!(history.last().unwrap().parent.is_none());
}

#[tokio::test]
async fn a_thread_at_a_checkpoint_shows_it_as_it_was() {
    let thread = finished().await;
    let before_b = at(&thread, "b").await;
    let state = thread.at(before_b.checkpoint.unwrap().id).state().await.unwrap();
    assert_eq!((state.next.clone(), state.state.log.clone()), (vec!["b".to_owned()], vec!["a".to_owned()]));
    assert_eq!(state.tasks[0].result(), Some(json!({ "log": ["b"] })));
}

#[tokio::test]
async fn an_update_counts_as_if_the_node_had_made_it() {
    let thread = finished().await;
    thread.update(Notes::update().log(["by hand"])).as_node("a").await.unwrap();
    let state = thread.state().await.unwrap();
    assert_eq!((state.next.clone(), state.source, state.step), (vec!["b".to_owned()], Some(Source::Update), Some(4)));
    assert_eq!(thread.resume().await.unwrap().state.log, ["a", "b", "c", "by hand", "b", "c"]);
}

#[tokio::test]
async fn an_update_without_a_node_is_from_the_node_that_ran_last() {
    let thread = finished().await;
    thread.update(Notes::update().log(["by hand"])).await.unwrap();
    assert!(thread.state().await.unwrap().next.is_empty(), "after `c` there is nothing");
    let before_b = at(&thread, "b").await.checkpoint.unwrap().id;
    thread.at(before_b).update(Notes::update().log(["by hand"])).await.unwrap();
    assert_eq!(thread.state().await.unwrap().next, ["b"], "after `a` there is `b`");
}

#[tokio::test]
async fn an_update_that_could_be_from_several_nodes_is_refused() {
    let mut graph = StateGraph::new();
    graph.add_node("x", says("x")).add_node("y", says("y"));
    let app = saved(graph.add_edge(START, "x").add_edge(START, "y"));
    app.invoke(input()).thread("t").await.unwrap();
    let error = app.thread("t").update(input()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidUpdate, "it is not clear which node the update is from; say so with `as_node`")
    );
}

#[tokio::test]
async fn an_update_of_a_new_thread_is_from_the_start() {
    let app = saved(&mut a_b_c());
    app.update_state("t", Notes::update().log(["first"]), None).await.unwrap();
    let state = app.get_state("t").await.unwrap();
    assert_eq!((state.next.clone(), state.source, state.step), (vec!["a".to_owned()], Some(Source::Update), Some(0)));
    assert_eq!(app.thread("t").resume().await.unwrap().state.log, ["first", "a", "b", "c"]);
}

#[tokio::test]
async fn a_fork_goes_on_from_an_older_checkpoint_and_leaves_the_old_ones() {
    let thread = finished().await;
    let before_b = at(&thread, "b").await.checkpoint.unwrap().id;
    let fork = thread.at(before_b).fork(Notes::update().log(["fork"])).await.unwrap();
    assert_eq!(fork.resume().await.unwrap().state.log, ["a", "fork", "b", "c"]);
    expect![[r#"
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":[],"topic":"t","total":0} -> a
         1 loop   {"log":["a"],"topic":"t","total":0} -> b
         2 loop   {"log":["a","b"],"topic":"t","total":0} -> c
         3 loop   {"log":["a","b","c"],"topic":"t","total":0} -> 
         2 update {"log":["a","fork"],"topic":"t","total":0} -> b
         3 loop   {"log":["a","fork","b"],"topic":"t","total":0} -> c
         4 loop   {"log":["a","fork","b","c"],"topic":"t","total":0} -> "#]]
    .assert_eq(&trace(&thread).await.unwrap());
}

#[tokio::test]
async fn a_copy_stands_beside_its_checkpoint() {
    let thread = finished().await;
    let before_b = at(&thread, "b").await;
    let copy = thread.at(before_b.checkpoint.clone().unwrap().id).copy().await.unwrap();
    let state = copy.state().await.unwrap();
    assert_eq!(
        (state.source, state.parent.clone(), state.next.clone()),
        (Some(Source::Fork), before_b.parent.clone(), vec!["b".to_owned()])
    );
    assert_eq!(thread.resume().await.unwrap().state.log, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_copy_may_be_updated_at_once() {
    let thread = finished().await;
    let before_b = at(&thread, "b").await.checkpoint.unwrap().id;
    let copy = thread.at(before_b).copy_with([(Notes::update().log(["other b"]), "b")]).await.unwrap();
    assert_eq!(copy.state().await.unwrap().next, ["c"]);
    assert_eq!(thread.resume().await.unwrap().state.log, ["a", "other b", "c"]);
}

#[tokio::test]
async fn nothing_cannot_be_copied() {
    let error = saved(&mut a_b_c()).thread("nobody").copy().await.err().unwrap();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidUpdate, "there is no checkpoint to copy")
    );
}

#[tokio::test]
async fn an_input_may_be_put_in_without_running_it() {
    let thread = saved(&mut a_b_c()).thread("t");
    thread.update_as_input(input()).await.unwrap();
    let state = thread.state().await.unwrap();
    assert_eq!(
        (state.source, state.step, state.next.clone()),
        (Some(Source::Input), Some(-1), vec!["__start__".to_owned()])
    );
    let out = thread.resume().await.unwrap();
    assert_eq!((out.state.topic.as_deref(), out.state.log.len()), (Some("t"), 3));
}

#[tokio::test]
async fn what_is_left_to_do_may_be_dropped() {
    let app = saved(a_b_c().interrupt_before(["b"]));
    app.invoke(input()).thread("t").await.unwrap();
    app.thread("t").clear_tasks().await.unwrap();
    let state = app.thread("t").state().await.unwrap();
    assert_eq!(
        (state.next.len(), state.state.log.clone(), state.source),
        (0, vec!["a".to_owned()], Some(Source::Update))
    );
}

#[tokio::test]
async fn several_updates_are_steps_and_those_of_one_list_are_one() {
    let thread = saved(&mut a_b_c()).thread("t");
    let line = |line: &str| Notes::update().log([line]);
    let steps =
        [Superstep::updates([(line("one"), "a")]), Superstep::updates([(line("two"), "b"), (line("three"), "c")])];
    thread.bulk_update(steps).await.unwrap();
    expect![[r#"
        0 update {"log":["one"],"total":0} -> b
        1 update {"log":["one","two","three"],"total":0} -> c"#]]
    .assert_eq(&trace(&thread).await.unwrap().lines().map(str::trim_start).collect::<Vec<_>>().join("\n"));
}

#[tokio::test]
async fn steps_by_hand_may_be_inputs_ends_and_copies() {
    let thread = saved(&mut a_b_c()).thread("t");
    let steps = [
        Superstep::input(input()),
        Superstep::clear_tasks(),
        Superstep::updates([(Notes::update().log(["by hand"]), "a")]),
        Superstep::update(Notes::update().total(1)),
        Superstep::copy_with([(Notes::update().log(["in a copy"]), "b")]),
    ];
    let last = thread.bulk_update(steps).await.unwrap();
    assert_eq!(thread.state().await.unwrap().checkpoint.unwrap().id, last.id);
    expect![[r#"
        -1 input  {"log":[],"total":0} -> __start__
         0 update {"log":[],"total":0} -> 
         1 update {"log":["by hand"],"total":0} -> b
         2 update {"log":["by hand"],"total":1} -> a
         3 fork   {"log":["by hand"],"total":1} -> a
         4 update {"log":["by hand","in a copy"],"total":1} -> c"#]]
    .assert_eq(&trace(&thread).await.unwrap());
}

#[tokio::test]
async fn the_end_makes_no_updates_by_hand() {
    let thread = saved(&mut a_b_c()).thread("t");
    let refused = "`END` makes no updates; use `clear_tasks` to drop what is left to do";
    let error = thread.bulk_update([Superstep::updates([(input(), END)])]).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidUpdate, refused));
    assert_eq!(thread.fork(input()).as_node(END).await.err().unwrap().to_string(), refused);
}

#[tokio::test]
async fn a_fork_may_say_as_which_node() {
    let thread = finished().await;
    let before_b = at(&thread, "b").await.checkpoint.unwrap().id;
    let fork = thread.at(before_b).fork(Notes::update().log(["fork"])).as_node("b").await.unwrap();
    assert_eq!(fork.resume().await.unwrap().state.log, ["a", "fork", "c"]);
}

#[tokio::test]
async fn a_thread_runs_and_streams_from_where_it_is() {
    let app = saved(&mut a_b_c());
    let thread = app.thread("t");
    thread.invoke(input()).await.unwrap();
    let before_c = thread.at(at(&thread, "c").await.checkpoint.unwrap().id);
    let again = events(before_c.stream(GoOn).start()).await;
    assert_eq!(again.iter().map(|e| e["data"].clone()).collect::<Vec<_>>(), [json!({ "c": { "log": ["c"] } })]);
    assert_eq!(events(thread.stream(input()).start()).await.len(), 3, "a new turn of the same thread");
    assert_eq!(thread.state().await.unwrap().state.log, ["a", "b", "c", "a", "b", "c"]);
    assert_eq!(before_c.invoke(input()).await.unwrap().state.log, ["a", "b", "a", "b", "c"]);
}

#[tokio::test]
async fn empty_bulk_updates_are_refused() {
    let thread = saved(&mut a_b_c()).thread("t");
    for steps in [vec![], vec![Superstep::updates::<NotesUpdate, &str, _>([])]] {
        let error = thread.bulk_update(steps).await.unwrap_err();
        assert_eq!(error.to_string(), "a bulk update needs at least one step, and every step at least one update");
    }
    assert!(thread.history().await.unwrap().is_empty());
}

fn by(node: &str, line: &str) -> (NotesUpdate, String) {
    (Notes::update().log([line]), node.to_owned())
}

#[tokio::test]
async fn a_bulk_update_that_fails_keeps_the_steps_before_and_nothing_of_the_one_that_failed() {
    let thread = finished().await;
    let before = trace(&thread).await.unwrap();
    let error = thread
        .bulk_update([
            Superstep::updates([by("a", "one")]),
            Superstep::updates([by("b", "two"), by("nobody", "three")]),
            Superstep::updates([by("c", "four")]),
        ])
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidUpdate, "there is no node `nobody` to update as")
    );
    let after = trace(&thread).await.unwrap();
    assert_eq!(
        after.strip_prefix(&before),
        Some("\n 4 update {\"log\":[\"a\",\"b\",\"c\",\"one\"],\"topic\":\"t\",\"total\":0} -> b")
    );
    assert_eq!(thread.resume().await.unwrap().state.log, ["a", "b", "c", "one", "b", "c"], "`b` runs by itself");
}

#[tokio::test]
async fn an_update_that_fails_leaves_no_result_for_a_node_that_waits() {
    let unclear = vec![by("x", "by hand"), by("nobody", "by hand")];
    let conflict = |topic: &str, node: &str| (Notes::update().topic(topic), node.to_owned());
    let twice = vec![conflict("one", "x"), conflict("two", "y")];
    for (updates, words) in [(unclear, "there is no node `nobody`"), (twice, "can receive only one value per step")] {
        let mut graph = StateGraph::new();
        graph.add_node("x", says("x")).add_node("y", says("y")).add_edge(START, "x").add_edge(START, "y");
        let app = saved(graph.interrupt_before(["*"]));
        app.invoke(input()).thread("t").await.unwrap();
        let error = app.thread("t").bulk_update([Superstep::updates(updates)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUpdate, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        let seen = app.thread("t").state().await.unwrap();
        assert_eq!((seen.next.join(" "), seen.state.log.len()), ("x y".to_owned(), 0));
        assert!(seen.tasks.iter().all(|t| t.result().is_none()), "{seen:?}");
        let out = app.thread("t").resume().await.unwrap();
        assert_eq!((out.state.topic.as_deref(), out.state.log.join(" ").as_str()), (Some("t"), "x y"));
    }
}

#[tokio::test]
async fn a_bulk_update_that_cannot_be_saved_says_so_and_keeps_what_was() {
    use crate::faulty::{Fault, Faulty};
    let run = |fault| async move {
        let saver = Faulty::failing(fault, false);
        let app = a_b_c().checkpointer(saver.clone()).compile().unwrap();
        let steps = [Superstep::updates([by("a", "one")]), Superstep::updates([by("b", "two")])];
        let result = app.thread("t").bulk_update(steps).await;
        let saver = saver.mended();
        let lines = trace(&a_b_c().checkpointer(saver.clone()).compile().unwrap().thread("t")).await.unwrap();
        (result.map(drop), lines.lines().count(), saver.calls())
    };
    let (result, steps, calls) = run(None).await;
    assert!(result.is_ok() && steps == 2);
    let mut left = Vec::new();
    for call in 0..calls - 1 {
        let (result, steps, _) = run(Some((call, Fault::Refused))).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Checkpoint, "{error}");
        assert!(error.to_string().contains(&format!("the disk failed at call {call}")), "{error}");
        left.push(steps);
    }
    assert!(left.is_sorted() && left.contains(&0) && left.contains(&1), "whole steps, in order: {left:?}");
}

#[tokio::test]
async fn a_deleted_thread_is_gone_and_others_are_not() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("x").await.unwrap();
    app.invoke(input()).thread("y").await.unwrap();
    app.thread("x").delete().await.unwrap();
    assert!(app.thread("x").history().await.unwrap().is_empty());
    assert_eq!(app.thread("y").history().await.unwrap().len(), 5);
}

#[tokio::test]
async fn going_on_with_a_finished_thread_gives_its_state() {
    let thread = finished().await;
    assert_eq!(thread.resume().await.unwrap().to_json(), json!({ "log": ["a", "b", "c"], "topic": "t", "total": 0 }));
    assert_eq!(thread.history().await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_graph_offers_what_its_threads_do() {
    let app = saved(&mut a_b_c());
    let updates = [Superstep::updates([by("a", "one")]), Superstep::updates([by("b", "two")])];
    app.bulk_update_state("t", updates).await.unwrap();
    assert_eq!(steps(&app.get_state_history("t").await.unwrap()), [1, 0]);
    assert_eq!(app.get_state("t").await.unwrap().next, ["c"]);
    assert_eq!(trace(&app.thread("t")).await.unwrap().lines().count(), 2);
}

#[tokio::test]
async fn a_history_is_listed_by_several_conditions_at_once() {
    let thread = finished().await;
    thread.update(Notes::update().log(["by hand"])).as_node("c").await.unwrap();
    let list = |query| async { steps(&thread.history_with(query).await.unwrap()) };
    assert_eq!(list(ListQuery::new().source(Source::Loop).step(2)).await, [2]);
    assert_eq!(list(ListQuery::new().source(Source::Update)).await, [4]);
    assert_eq!(list(ListQuery::new().source(Source::Update).metadata("who", "ada")).await, Vec::<i64>::new());
    assert_eq!(list(ListQuery::new().source(Source::Loop).limit(1)).await, [3]);
}

#[tokio::test]
async fn after_the_node_that_ran_last_is_gone_an_update_must_say_which_node_it_is_from() {
    let saver = MemorySaver::new();
    let graph = |last: &'static str| {
        let mut graph = StateGraph::new();
        graph.add_node("a", says("a")).add_node(last, says(last)).add_sequence(["a", last]);
        graph.checkpointer(saver.clone()).compile().unwrap()
    };
    graph("old").invoke(input()).thread("t").await.unwrap();
    let thread = graph("new").thread("t");
    let error = thread.update(Notes::update().topic("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
    assert!(error.to_string().contains("it is not clear which node the update is from"), "{error}");
    thread.update(Notes::update().topic("x")).as_node("new").await.unwrap();
    let error = thread.update(Notes::update().topic("y")).await.unwrap_err();
    assert!(error.to_string().contains("say so with `as_node`"), "an update by hand is no run of a node: {error}");
    thread.update(Notes::update().topic("x")).as_node("a").await.unwrap();
    assert_eq!(thread.state().await.unwrap().next, ["new"]);
}

/// Saves checkpoints as if the clock were centuries ahead.
#[derive(Clone)]
struct ClockAhead;

fn ahead(id: CheckpointId) -> CheckpointId {
    format!("2{}", &id.to_string()[1..]).parse().expect("a digit more or less is an id too")
}

impl Hook for ClockAhead {
    fn write(&self, record: CheckpointRecord) -> CheckpointRecord {
        let [parent, base, head] = [record.parent(), record.base(), record.head()].map(|id| id.map(ahead));
        let id = ahead(record.id());
        record.with_id(id).with_parent(parent).with_base(base).with_head(head)
    }
}

#[tokio::test]
async fn a_thread_goes_on_although_the_clock_went_back() {
    let saver = Hooked::new(ClockAhead);
    a_b_c().checkpointer(saver.clone()).compile().unwrap().invoke(input()).thread("t").await.unwrap();
    let app = a_b_c().checkpointer(saver.inner).compile().unwrap();
    let before = app.thread("t").state().await.unwrap().checkpoint.unwrap().id;
    assert!(before.to_string().starts_with('2'), "it is from the time ahead");
    app.invoke(input()).thread("t").await.unwrap();
    let state = app.thread("t").state().await.unwrap();
    assert!(state.checkpoint.unwrap().id > before);
    assert_eq!(state.state.log, ["a", "b", "c", "a", "b", "c"]);
}
