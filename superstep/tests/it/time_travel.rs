//! Going back to a checkpoint of a graph with subgraphs: what runs again, and what everyone sees.

use serde_json::json;
use superstep::{
    CheckpointId, CheckpointRef, CompiledStateGraph, Context, ErrorKind, GoOn, Interrupted, MemorySaver, Resume, START,
    Source, StateGraph, Thread,
};

use crate::support::{Count, Notes, NotesUpdate, a_b_c, saved, trace};

/// How often each node ran.
#[derive(Clone, Default)]
struct Runs {
    before: Count,
    one: Count,
    two: Count,
    after: Count,
}

impl Runs {
    fn get(&self) -> [usize; 4] {
        [&self.before, &self.one, &self.two, &self.after].map(Count::get)
    }
}

fn counts(
    name: &'static str,
    runs: &Count,
) -> impl Fn(Notes) -> std::future::Ready<NotesUpdate> + Send + Sync + 'static + use<> {
    let runs = runs.clone();
    move |_| {
        runs.up();
        std::future::ready(Notes::update().log([name]).total(1))
    }
}

type Kind = fn(&mut StateGraph<Notes>) -> &mut StateGraph<Notes>;

/// `before`, then a child of `one` and `two`, then `after`; the child gives back its log.
fn graph(kind: Kind, runs: &Runs) -> CompiledStateGraph<Notes> {
    let mut child = StateGraph::new();
    child
        .add_node("one", counts("one", &runs.one))
        .add_node("two", counts("two", &runs.two))
        .add_sequence(["one", "two"])
        .input(["topic"])
        .output(["log"]);
    StateGraph::new()
        .add_node("before", counts("before", &runs.before))
        .add_node("child", kind(&mut child).compile().unwrap())
        .add_node("after", counts("after", &runs.after))
        .add_sequence(["before", "child", "after"])
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap()
}

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

async fn at<S: superstep::State>(thread: &Thread<S>, next: &str) -> CheckpointRef {
    let history = thread.history().await.unwrap();
    history.into_iter().find(|s| s.next == [next]).expect("there is such a checkpoint").checkpoint.unwrap()
}

async fn child_thread(app: &CompiledStateGraph<Notes>) -> Thread<Notes> {
    let parent = at(&app.thread("t"), "child").await;
    let thread = app.thread("t").at(parent.id);
    let seen = thread.state().await.unwrap();
    thread.subgraph(seen.tasks[0].namespace.as_ref().expect("it has a history")).expect("of this state")
}

const PLAIN: Kind = |graph| graph;
const PERSISTENT: Kind = StateGraph::persistent;
const STATELESS: Kind = StateGraph::stateless;

/// A graph that ran twice on thread `t`, and how often its nodes ran.
async fn ran_twice(kind: Kind) -> (CompiledStateGraph<Notes>, Runs) {
    let runs = Runs::default();
    let app = graph(kind, &runs);
    app.invoke(input()).thread("t").await.unwrap();
    app.invoke(input()).thread("t").await.unwrap();
    (app, runs)
}

const FIRST: &str = "before one two after";

#[tokio::test]
async fn what_comes_after_a_checkpoint_runs_again_and_nothing_else() {
    for (kind, name) in [(PLAIN, "plain"), (PERSISTENT, "persistent"), (STATELESS, "stateless")] {
        for (next, expected) in [("before", [3, 3, 3, 3]), ("child", [2, 3, 3, 3]), ("after", [2, 2, 2, 3])] {
            let (app, runs) = ran_twice(kind).await;
            let was = app.thread("t").state().await.unwrap().values();
            let out = app.invoke(GoOn).at(&at(&app.thread("t"), next).await).await.unwrap();
            assert_eq!(runs.get(), expected, "{name}, from `{next}`: before, one, two, after");
            assert_eq!(out.to_json(), was, "{name}, from `{next}`: it comes to the same end");
        }
    }
}

#[tokio::test]
async fn a_persistent_subgraph_goes_back_with_its_parent_and_the_others_start_anew() {
    for (kind, second) in [(PLAIN, "one two"), (STATELESS, "one two"), (PERSISTENT, "one two one two")] {
        let (app, _) = ran_twice(kind).await;
        let log = |out: superstep::Output<Notes>| out.state.log.join(" ");
        let history = app.thread("t").history().await.unwrap();
        let before_child = |run: usize| {
            let mut found = history.iter().rev().filter(|s| s.next == ["child"]);
            found.nth(run).expect("each run has one").checkpoint.clone().unwrap()
        };
        // In the first run the child had no history yet; in the second it had that of the first.
        assert_eq!(log(app.invoke(GoOn).at(&before_child(0)).await.unwrap()), FIRST);
        let again = app.invoke(GoOn).at(&before_child(1)).await.unwrap();
        assert_eq!(log(again), format!("{FIRST} before {second} after"));
    }
}

#[tokio::test]
async fn a_replay_is_a_branch_beside_the_old_history() {
    for kind in [PLAIN, PERSISTENT, STATELESS] {
        let (app, _) = ran_twice(kind).await;
        let old = trace(&app.thread("t")).await.unwrap();
        let from = at(&app.thread("t"), "child").await;
        app.invoke(GoOn).at(&from).await.unwrap();
        let new = trace(&app.thread("t")).await.unwrap();
        let branch = new.strip_prefix(&old).expect("the old history is as it was").trim_start_matches('\n');
        let lines: Vec<(&str, &str)> = branch
            .lines()
            .map(|line| (line[..9].trim(), line.rsplit_once("-> ").expect("each line says what is next").1))
            .collect();
        assert_eq!(lines, [("7 fork", "child"), ("8 loop", "after"), ("9 loop", "")]);
        let fork = app.thread("t").history().await.unwrap().into_iter().find(|s| s.source == Some(Source::Fork));
        assert_eq!(fork.unwrap().parent.unwrap().id, from.id);
    }
}

#[tokio::test]
async fn a_replay_asks_a_question_inside_again() {
    for (kind, first_runs) in [(PLAIN, 2), (PERSISTENT, 2), (STATELESS, 3)] {
        let runs = Count::default();
        let ask = |_: Notes, cx: Context| async move {
            let answer: String = cx.interrupt("what?")?;
            Ok::<_, Interrupted>(Notes::update().log([answer]))
        };
        let mut child = StateGraph::new();
        child
            .add_node("one", counts("one", &runs))
            .add_node("ask", ask)
            .add_sequence(["one", "ask"])
            .input(["topic"])
            .output(["log"]);
        let app =
            saved(StateGraph::new().add_node("child", kind(&mut child).compile().unwrap()).add_edge(START, "child"));
        app.invoke(input()).thread("t").await.unwrap();
        let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
        assert_eq!(out.state.log, ["one", "yes"]);
        let out = app.invoke(GoOn).at(&at(&app.thread("t"), "child").await).await.unwrap();
        assert_eq!((out.interrupts.len(), runs.get()), (1, first_runs), "it asks again");
        let out = app.invoke(Resume::value("no")).thread("t").await.unwrap();
        assert_eq!(out.state.log, ["one", "no"]);
    }
}

#[tokio::test]
async fn a_run_may_start_at_a_checkpoint_by_its_place() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let before_b = at(&app.thread("t"), "b").await;
    let other = app.thread("t").at(before_b.id).update(Notes::update().log(["by hand"])).as_node("a").await.unwrap();
    app.invoke(GoOn).thread("t").await.unwrap();
    // The place says which thread it is, too.
    assert_eq!(app.invoke(GoOn).at(&before_b).await.unwrap().state.log, ["a", "b", "c"]);
    assert_eq!(app.invoke(GoOn).at(&other).await.unwrap().state.log, ["a", "by hand", "b", "c"]);
    let updates: Vec<_> = crate::support::events(app.stream(GoOn).at(&before_b).start())
        .await
        .into_iter()
        .map(|e| e["data"].clone())
        .collect();
    assert_eq!(updates, [json!({ "b": { "log": ["b"] } }), json!({ "c": { "log": ["c"] } })]);
}

#[tokio::test]
async fn new_input_may_start_at_an_old_checkpoint() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let out = app.invoke(Notes::update().topic("new")).at(&at(&app.thread("t"), "b").await).await.unwrap();
    assert_eq!((out.state.topic.as_deref(), out.state.log.join(" ").as_str()), (Some("new"), "a a b c"));
}

#[tokio::test]
async fn a_run_may_start_at_a_checkpoint_inside_a_persistent_subgraph() {
    let (app, runs) = ran_twice(PERSISTENT).await;
    let inside = at(&child_thread(&app).await, "two").await;
    assert_eq!(inside.namespace, "child");
    let out = app.invoke(GoOn).at(&inside).await.unwrap();
    assert_eq!(runs.get(), [2, 2, 3, 3], "before, one, two, after");
    assert_eq!(out.state.log.join(" "), format!("{FIRST} before one two one two after"));
    expect_test::expect![[r#"
        6 fork   {"log":["one","two","one"],"topic":"t","total":3} -> two
        7 loop   {"log":["one","two","one","two"],"topic":"t","total":4} -> "#]]
    .assert_eq(
        &trace(&child_thread(&app).await)
            .await
            .unwrap()
            .lines()
            .skip(8)
            .map(str::trim_start)
            .collect::<Vec<_>>()
            .join("\n"),
    );
}

fn unknown() -> CheckpointId {
    "1f0b2c3d-0000-6000-8000-000000000001".parse().expect("it is an id")
}

#[tokio::test]
async fn an_unknown_checkpoint_is_an_error_that_names_thread_and_id_and_changes_nothing() {
    for kind in [PLAIN, PERSISTENT] {
        let (app, runs) = ran_twice(kind).await;
        let before = trace(&app.thread("t")).await.unwrap();
        let mut at_root = at(&app.thread("t"), "child").await;
        at_root.id = unknown();
        let mut inside = at(&child_thread(&app).await, "two").await;
        inside.id = unknown();
        let mut below_unknown = at(&child_thread(&app).await, "two").await;
        below_unknown.parents.insert(String::new(), unknown());
        for place in [at_root, inside, below_unknown] {
            let error = app.invoke(GoOn).at(&place).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string()),
                (ErrorKind::Invalid, format!("thread `t` has no checkpoint {}", unknown()))
            );
        }
        assert_eq!((runs.get(), trace(&app.thread("t")).await.unwrap()), ([2, 2, 2, 2], before));
    }
}
