//! Keeping threads in order: listed, copied, pruned and forgotten, beside threads that wait.

use std::time::{Duration, SystemTime};

use superstep::{
    CompiledStateGraph, Context, ErrorKind, Interrupted, MemorySaver, Prune, Resume, StateGraph, StateSnapshot, Thread,
};

use crate::support::{Notes, a_b_c, saved, says, trace};

fn input() -> crate::support::NotesUpdate {
    Notes::update().topic("t")
}

async fn ask(_: Notes, cx: Context) -> Result<crate::support::NotesUpdate, Interrupted> {
    let answer: String = cx.interrupt("sure?")?;
    Ok(Notes::update().log([answer]))
}

/// A child that asks; in `own` it has a history of its own.
fn with_children() -> CompiledStateGraph<Notes> {
    let mut inner = StateGraph::<Notes>::new();
    inner.add_node("x", says("x")).add_node("ask", ask).add_sequence(["x", "ask"]);
    let (child, own) = (inner.compile().unwrap(), inner.persistent().compile().unwrap());
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("a", says("a")).add_node("child", child).add_node("own", own);
    saved(graph.add_sequence(["a", "child", "own"]))
}

async fn length(thread: &Thread<Notes>) -> usize {
    thread.history().await.unwrap().len()
}

#[tokio::test]
async fn pruning_says_how_many_are_gone_and_leaves_the_state() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let thread = app.thread("t");
    let before = thread.state().await.unwrap().state;
    assert_eq!(thread.prune(Prune::keep_last(2)).await.unwrap(), 3);
    let history = thread.history().await.unwrap();
    let shown: Vec<_> = history.iter().map(|at| (at.step, at.state.log.join(" "), at.next.join(" "))).collect();
    assert_eq!(shown, [(Some(3), "a b c".into(), String::new()), (Some(2), "a b".into(), "c".into())]);
    assert_eq!(thread.state().await.unwrap().state, before);
    assert_eq!(thread.prune(Prune::before(SystemTime::now() + Duration::from_hours(1))).await.unwrap(), 1);
    assert_eq!(app.invoke(input()).thread("t").await.unwrap().state.log, ["a", "b", "c", "a", "b", "c"]);
}

/// All that a history shows.
async fn shown(app: &CompiledStateGraph<Notes>) -> Vec<String> {
    let history = app.thread("t").history().await.unwrap();
    let tasks = |at: &StateSnapshot<Notes>| -> Vec<_> {
        at.tasks.iter().map(|task| (task.id, task.name.clone(), task.result())).collect()
    };
    history.iter().map(|at| format!("{:?} {:?} {:?}", at.checkpoint, at.state, tasks(at))).collect()
}

#[tokio::test]
async fn pruning_leaves_what_is_kept_as_it_was_also_if_the_graph_has_changed_since() {
    let saver = MemorySaver::new();
    let app = |graph: &mut StateGraph<Notes>| graph.checkpointer(saver.clone()).compile().unwrap();
    let long = "more bytes than lie among others";
    app(&mut a_b_c()).invoke(input().log([long])).thread("t").await.unwrap();
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("new", says("new")).add_node("a", says("a"));
    let changed = app(graph.add_sequence(["new", "a"]));
    changed.invoke(input()).thread("t").await.unwrap();
    let before = shown(&changed).await;
    assert_eq!(before.len(), 9);
    changed.thread("t").prune(Prune::keep_last(6)).await.unwrap();
    assert_eq!(shown(&changed).await, before[..6]);
    let log = changed.invoke(input()).thread("t").await.unwrap().state.log;
    assert_eq!(log, [long, "a", "b", "c", "new", "a", "new", "a"]);
}

#[tokio::test]
async fn several_threads_are_pruned_at_once() {
    let app = saved(&mut a_b_c());
    for name in ["one", "two", "three"] {
        app.invoke(input()).thread(name).await.unwrap();
    }
    assert_eq!(app.prune(["one", "two", "unknown"], Prune::keep_last(1)).await.unwrap(), 8);
    assert_eq!((length(&app.thread("one")).await, length(&app.thread("three")).await), (1, 5));
}

#[tokio::test]
async fn a_paused_thread_resumes_after_pruning() {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("a", says("a")).add_node("ask", ask).add_sequence(["a", "ask"]);
    let app = saved(&mut graph);
    app.invoke(input()).thread("t").await.unwrap();
    app.thread("t").prune(Prune::keep_last(1)).await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().interrupts.len(), 1);
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["a", "yes"]);
}

#[tokio::test]
async fn paused_subgraphs_resume_after_pruning() {
    let app = with_children();
    for round in 0..2 {
        app.invoke(input()).thread("t").await.unwrap();
        for answer in ["yes", "no"] {
            app.thread("t").prune(Prune::keep_last(1)).await.unwrap();
            let state = app.thread("t").state_with_subgraphs().await.unwrap();
            assert!(state.tasks[0].namespace.is_some(), "the child waits, in round {round}");
            app.invoke(Resume::value(answer)).thread("t").await.unwrap();
        }
    }
    let pruned = app.thread("t").state().await.unwrap();
    let whole = with_children();
    for _ in 0..2 {
        whole.invoke(input()).thread("t").await.unwrap();
        for answer in ["yes", "no"] {
            whole.invoke(Resume::value(answer)).thread("t").await.unwrap();
        }
    }
    assert_eq!(pruned.state, whole.thread("t").state().await.unwrap().state);
    assert!(pruned.next.is_empty());
}

#[tokio::test]
async fn a_fork_goes_on_after_pruning_what_it_came_from() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let thread = app.thread("t");
    let before_b = thread.history().await.unwrap().into_iter().find(|at| at.next == ["b"]).unwrap();
    let fork =
        thread.at(before_b.checkpoint.unwrap().id).fork(Notes::update().log(["fork"])).as_node("a").await.unwrap();
    assert_eq!(thread.prune(Prune::keep_last(1)).await.unwrap(), 5);
    assert_eq!(fork.resume().await.unwrap().state.log, ["a", "fork", "b", "c"]);
}

#[tokio::test]
async fn a_pruned_checkpoint_cannot_be_gone_back_to() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let thread = app.thread("t");
    let first = thread.history().await.unwrap().pop().unwrap().checkpoint.unwrap().id;
    thread.prune(Prune::keep_last(1)).await.unwrap();
    let error = thread.at(first).resume().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Invalid, format!("thread `t` has no checkpoint {first}"))
    );
}

#[tokio::test]
async fn a_copy_has_the_history_and_goes_on_by_itself() {
    let app = with_children();
    app.invoke(input()).thread("t").await.unwrap();
    let copy = app.thread("t").copy_to("copy").await.unwrap();
    assert_eq!(trace(&copy).await.unwrap(), trace(&app.thread("t")).await.unwrap());
    for thread in ["t", "copy"] {
        let out = app.invoke(Resume::value(thread)).thread(thread).await.unwrap();
        assert!(out.state.log.contains(&thread.to_owned()));
    }
    app.copy_thread("t", "another").await.unwrap();
    app.delete_thread("t").await.unwrap();
    assert_eq!(app.threads(None, 10).await.unwrap(), ["another", "copy"]);
    assert!(app.thread("copy").state().await.unwrap().state.log.contains(&"copy".to_owned()));
}

#[tokio::test]
async fn a_copy_of_a_checkpoint_stands_at_the_same_place() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let first = app.thread("t").history().await.unwrap().pop().unwrap().checkpoint.unwrap().id;
    let copy = app.thread("t").at(first).copy_to("copy").await.unwrap();
    assert_eq!((copy.name(), copy.state().await.unwrap().step), ("copy", Some(-1)));
}

#[tokio::test]
async fn a_copy_that_cannot_be_made_says_why() {
    let app = saved(&mut a_b_c());
    for name in ["t", "u"] {
        app.invoke(input()).thread(name).await.unwrap();
    }
    let words = async |from: &str, to: &str| {
        let error = app.copy_thread(from, to).await.err().unwrap();
        assert!(!error.is_retryable(), "{error}");
        error.to_string()
    };
    assert!(words("t", "u").await.contains("there is a thread `u` already; delete it first"));
    assert!(words("nobody", "v").await.contains("there is no thread `nobody` to copy"));
    assert!(words("t", "").await.contains("needs a name"));
    assert!(words("t", "a\0b").await.contains("NUL"));
}

#[tokio::test]
async fn runs_are_forgotten_by_their_ids() {
    let app = saved(&mut a_b_c());
    for (thread, run) in [("t", "one"), ("t", "two"), ("u", "one"), ("u", "three")] {
        app.invoke(input()).thread(thread).run_id(run).await.unwrap();
    }
    assert_eq!(app.delete_for_runs(["one", "three", "never"]).await.unwrap(), 15);
    assert_eq!(app.threads(None, 10).await.unwrap(), ["t"]);
    assert_eq!(app.thread("t").state().await.unwrap().state.log.len(), 6, "the second run saw what the first one did");
}

#[tokio::test]
async fn without_a_checkpointer_there_are_no_threads() {
    let app = a_b_c().compile().unwrap();
    let errors = [
        app.threads(None, 1).await.err(),
        app.prune(["t"], Prune::keep_last(1)).await.err(),
        app.delete_thread("t").await.err(),
        app.copy_thread("t", "u").await.err(),
        app.delete_for_runs(["one"]).await.err(),
    ];
    for error in errors {
        assert_eq!(error.unwrap().to_string(), "the graph has no checkpointer; give it one with `.checkpointer(..)`");
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_expires_unless_it_is_used() {
    let ttl = Duration::from_mins(1);
    let app = a_b_c().checkpointer(MemorySaver::new().ttl(ttl)).compile().unwrap();
    for name in ["used", "left"] {
        app.invoke(input()).thread(name).await.unwrap();
    }
    tokio::time::advance(ttl / 2).await;
    app.thread("used").update(Notes::update().log(["again"])).as_node("c").await.unwrap();
    tokio::time::advance(ttl / 2).await;
    assert_eq!(app.threads(None, 10).await.unwrap(), ["used"]);
    assert!(app.thread("left").state().await.unwrap().checkpoint.is_none());
    let again = app.invoke(input()).thread("left").await.unwrap();
    assert_eq!(again.state.log, ["a", "b", "c"], "it began anew");
}

#[tokio::test]
async fn finished_subgraphs_are_pruned_with_the_graph_around_them() {
    let app = with_children();
    app.invoke(input()).thread("t").await.unwrap();
    app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    let before = length(&app.thread("t")).await;
    let forgotten = app.thread("t").prune(Prune::keep_last(1)).await.unwrap();
    assert!(forgotten > before - 1, "checkpoints of the finished child are forgotten too");
    assert_eq!(app.thread("t").prune(Prune::keep_last(1)).await.unwrap(), 0);
}
