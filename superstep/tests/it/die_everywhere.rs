//! Durability, by dying at every call of the checkpointer.
//!
//! A whole run is counted call by call, then repeated with a fault at each call, and resumed over the
//! same storage. What must hold: the thread comes to the same end with the same history, and no task whose
//! writes were saved runs again.

use serde::{Deserialize, Serialize};
use superstep::{
    CompiledStateGraph, Context, Durability, END, Error, ErrorKind, GoOn, Interrupted, Output, Resume, START, Send,
    Sent, State, StateGraph,
};

use crate::faulty::{Fault, Faulty, Seen, check_audit, note};
use crate::support::trace;

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Board {
    #[state(append)]
    log: Vec<String>,
    #[state(sum)]
    total: i64,
    round: Option<u32>,
    approved: Option<bool>,
}

/// Two rounds of: plan, two nodes side by side, a join, three sends, a collector. Then a question
/// beside a node that does not wait, another one of the path that leads on from there, and an end.
fn graph(saver: Faulty) -> CompiledStateGraph<Board> {
    let audit = saver.hook.audit.clone();
    let says = move |name: &'static str| {
        let audit = audit.clone();
        move |_: Board, cx: Context| {
            let audit = audit.clone();
            async move {
                note(&audit, Seen::Ran(cx.task_id().to_string()));
                tokio::task::yield_now().await;
                Board::update().log([name.to_owned()])
            }
        }
    };
    let audit = saver.hook.audit.clone();
    let plan = move |board: Board, cx: Context| {
        note(&audit, Seen::Ran(cx.task_id().to_string()));
        async move { Board::update().round(board.round.unwrap_or(0) + 1).log([format!("plan after {}", board.total)]) }
    };
    let audit = saver.hook.audit.clone();
    let work = move |Sent(part): Sent<i64>, cx: Context| {
        note(&audit, Seen::Ran(cx.task_id().to_string()));
        async move { Board::update().total(part).log([format!("work {part}")]) }
    };
    let audit = saver.hook.audit.clone();
    let ask = move |_: Board, cx: Context| {
        note(&audit, Seen::Ran(cx.task_id().to_string()));
        async move {
            let approved: bool = cx.interrupt("go on?")?;
            Ok::<_, Interrupted>(Board::update().approved(approved).log(["asked"]))
        }
    };
    StateGraph::<Board>::new()
        .add_node("plan", plan)
        .add_node("left", says("left"))
        .add_node("right", says("right"))
        .add_node("join", says("join"))
        .add_node("work", work)
        .add_node("collect", says("collect"))
        .add_node("ask", ask)
        .add_node("beside", says("beside"))
        .add_node("last", says("last"))
        .add_edge(START, "plan")
        .add_edge("plan", "left")
        .add_edge("plan", "right")
        .add_edge(["left", "right"], "join")
        .add_conditional_edges("join", |_: &Board| (1..=3).map(|part| Send::new("work", part)).collect::<Vec<_>>())
        .add_edge("work", "collect")
        .add_conditional_edges("collect", |board: &Board| match board.round {
            Some(2) => vec!["ask", "beside"],
            _ => vec!["plan"],
        })
        .add_edge(["ask", "beside"], "last")
        .add_conditional_edges("ask", async |_: Board, cx: Context| -> Result<Vec<&str>, Interrupted> {
            cx.interrupt::<bool>("sure?")?;
            Ok(Vec::new())
        })
        .add_edge("last", END)
        .checkpointer(saver)
        .compile()
        .expect("the graph has no mistakes")
}

/// The thread as it is saved, without faults.
async fn saved_thread(saver: &Faulty) -> String {
    trace(&graph(saver.clone().mended()).thread("t")).await.expect("nothing goes wrong")
}

/// What a caller does who knows nothing but the thread: start it, answer it, or resume it.
async fn go_on(app: &CompiledStateGraph<Board>, durability: Durability) -> Result<Option<Output<Board>>, Error> {
    let seen = app.thread("t").state().await?;
    // A step whose tasks have all finished has nothing next, but it is not committed yet.
    let run = match (&seen.checkpoint, seen.tasks.is_empty(), seen.interrupts.is_empty()) {
        (None, ..) => app.invoke(Board::update().log(["start"])),
        (Some(_), true, _) => return Ok(None),
        (_, _, false) => app.invoke(Resume::value(true)),
        (_, _, true) => app.invoke(GoOn),
    };
    run.thread("t").durability(durability).await.map(Some)
}

async fn to_the_end(app: &CompiledStateGraph<Board>, durability: Durability) -> Result<String, Error> {
    for _ in 0..5 {
        if go_on(app, durability).await?.is_none() {
            return trace(&app.thread("t")).await;
        }
    }
    panic!("the thread comes to no end: {:?}", app.thread("t").state().await);
}

async fn dies_at_every_call(durability: Durability, fault: Fault, slow: bool) {
    let whole = Faulty::failing(None, slow);
    let expected = to_the_end(&graph(whole.clone()), durability).await.expect("nothing goes wrong");
    check_audit(&whole.hook.audit, "undisturbed");
    let calls = whole.calls();
    assert!(calls > 30, "the run is long enough to be worth it: {calls} calls");

    for call in 0..calls {
        let story = format!("{durability:?}, {fault:?} at call {call}");
        let saver = Faulty::failing(Some((call, fault)), slow);
        let broken = graph(saver.clone());
        tokio::select! {
            biased;
            () = saver.hook.died.notified() => {}
            result = to_the_end(&broken, durability) => {
                let error = result.expect_err(&story);
                assert_eq!(error.kind(), ErrorKind::Checkpoint, "{story}: {error}");
                assert!(error.to_string().contains("the disk failed"), "{story}: {error}");
            }
        }
        let mended = saver.mended();
        let found = to_the_end(&graph(mended.clone()), durability).await.expect(&story);
        assert!(found == expected, "{story}, the history is\n{found}\ninstead of\n{expected}");
        check_audit(&mended.hook.audit, &story);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_loses_nothing_when_steps_are_saved_at_once() {
    dies_at_every_call(Durability::Sync, Fault::Refused, false).await;
    dies_at_every_call(Durability::Sync, Fault::Refused, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_loses_nothing_when_steps_are_saved_in_the_background() {
    dies_at_every_call(Durability::Async, Fault::Refused, false).await;
    dies_at_every_call(Durability::Async, Fault::Refused, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_served_but_not_acknowledged_does_nothing_twice() {
    dies_at_every_call(Durability::Sync, Fault::Unacknowledged, false).await;
    dies_at_every_call(Durability::Sync, Fault::Unacknowledged, true).await;
    dies_at_every_call(Durability::Async, Fault::Unacknowledged, false).await;
    dies_at_every_call(Durability::Async, Fault::Unacknowledged, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_in_a_call_loses_nothing_that_was_saved() {
    dies_at_every_call(Durability::Sync, Fault::Death, false).await;
    dies_at_every_call(Durability::Sync, Fault::Death, true).await;
    dies_at_every_call(Durability::Async, Fault::Death, false).await;
    dies_at_every_call(Durability::Async, Fault::Death, true).await;
}

/// With durability `exit` a run is saved when it ends or pauses: a thread is as it was before a run, or as it is
/// after it, and never in between.
async fn is_before_or_after_a_run(fault: Fault, slow: bool) {
    let exit = Durability::Exit;
    let whole = Faulty::failing(None, slow);
    let app = graph(whole.clone());
    let mut wholes = vec![saved_thread(&whole).await];
    while go_on(&app, exit).await.expect("nothing goes wrong").is_some() {
        wholes.push(saved_thread(&whole).await);
    }
    assert_eq!(wholes.len(), 4, "before, paused twice and done: {wholes:#?}");
    // The second question is one of the same step: it leaves the same history.
    wholes.dedup();
    // Looking at the saved thread made calls of its own.
    let whole = Faulty::failing(None, slow);
    let expected = to_the_end(&graph(whole.clone()), exit).await.expect("nothing goes wrong");
    assert_eq!(Some(&expected), wholes.last());
    let mut found = vec![0; wholes.len()];
    for call in 0..whole.calls() {
        let story = format!("{fault:?} at call {call}");
        let saver = Faulty::failing(Some((call, fault)), slow);
        let broken = graph(saver.clone());
        tokio::select! {
            biased;
            () = saver.hook.died.notified() => {}
            result = to_the_end(&broken, exit) => {
                assert_eq!(result.expect_err(&story).kind(), ErrorKind::Checkpoint, "{story}");
            }
        }
        drop(broken);
        let left = saved_thread(&saver).await;
        let which = wholes.iter().position(|whole| *whole == left);
        found[which.unwrap_or_else(|| panic!("{story}: half a run is left\n{left}"))] += 1;
        let mended = saver.mended();
        let end = to_the_end(&graph(mended.clone()), exit).await.expect(&story);
        assert!(end == expected, "{story}, the history is\n{end}\ninstead of\n{expected}");
        check_audit(&mended.hook.audit, &story);
    }
    assert!(found.iter().all(|n| *n > 0), "faults came before, between and after the runs: {found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_is_saved_at_the_end_of_runs_is_never_left_between() {
    for fault in [Fault::Refused, Fault::Unacknowledged, Fault::Death] {
        is_before_or_after_a_run(fault, false).await;
        is_before_or_after_a_run(fault, true).await;
    }
}
