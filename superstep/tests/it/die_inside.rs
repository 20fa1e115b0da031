//! Durability of what runs inside a task: subgraphs with questions, and functions that are called.

use superstep::{
    BoxError, CompiledStateGraph, Context, Durability, Entrypoint, Error, ErrorKind, GoOn, Interrupted, Resume, START,
    State, StateGraph, Task, Thread,
};

use crate::faulty::{Fault, Faulty, Seen, check_audit, note};
use crate::support::{Notes, says};

/// A parent with a subgraph of two nodes and a question, beside another node.
fn nested(saver: Faulty) -> CompiledStateGraph<Notes> {
    let counted = |name: &'static str| {
        let audit = saver.hook.audit.clone();
        move |_: Notes, cx: Context| {
            note(&audit, Seen::Ran(cx.task_id().to_string()));
            async move { Notes::update().log([name]) }
        }
    };
    let ask = |_: Notes, cx: Context| async move {
        let answer: String = cx.interrupt("what?")?;
        Ok::<_, Interrupted>(Notes::update().log([answer]))
    };
    let child = StateGraph::<Notes>::new()
        .add_node("one", counted("one"))
        .add_node("two", counted("two"))
        .add_node("ask", ask)
        .add_sequence(["one", "two", "ask"])
        .input(["total"])
        .output(["log"])
        .compile()
        .expect("no mistakes");
    StateGraph::new()
        .add_node("child", child)
        .add_node("beside", counted("beside"))
        .add_node("last", says("last"))
        .add_edge(START, "child")
        .add_edge(START, "beside")
        .add_edge(["child", "beside"], "last")
        .checkpointer(saver)
        .compile()
        .expect("no mistakes")
}

/// Resumes a thread as its state says, to its end; gives the values.
async fn to_the_end<S: State, F, Fut>(thread: impl Fn() -> Thread<S>, step: F) -> Result<String, Error>
where
    F: Fn(What) -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    for _ in 0..5 {
        let seen = thread().state().await?;
        match (&seen.checkpoint, seen.tasks.is_empty(), seen.interrupts.is_empty()) {
            (None, ..) => step(What::Start).await?,
            (Some(_), true, _) => return Ok(seen.values().to_string()),
            (_, _, false) => step(What::Answer).await?,
            (_, _, true) => step(What::GoOn).await?,
        }
    }
    panic!("the thread comes to no end: {:?}", thread().state().await);
}

#[derive(Clone, Copy)]
enum What {
    Start,
    Answer,
    GoOn,
}

async fn run_nested(saver: Faulty, durability: Durability) -> Result<String, Error> {
    let app = nested(saver);
    let step = |what| {
        let run = match what {
            What::Start => app.invoke(Notes::update().total(1)),
            What::Answer => app.invoke(Resume::value("this")),
            What::GoOn => app.invoke(GoOn),
        };
        async move { run.thread("t").durability(durability).await.map(drop) }
    };
    to_the_end(|| app.thread("t"), step).await
}

async fn run_functions(saver: Faulty, durability: Durability) -> Result<String, Error> {
    let audit = saver.hook.audit.clone();
    let double: Task<i64, i64> = Task::new("double", move |n: i64, cx: Context| {
        note(&audit, Seen::Ran(cx.task_id().to_string()));
        async move { Ok::<_, BoxError>(n * 2) }
    });
    let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
        let double = double.clone();
        async move {
            let (a, b) = (double.call(&cx, n), double.call(&cx, n + 1));
            let sum = a.await? + b.await?;
            let extra: i64 = cx.interrupt("how much more?")?;
            double.call(&cx, sum + extra).await
        }
    })
    .checkpointer(saver)
    .compile();
    let step = |what| {
        let run = match what {
            What::Start => flow.invoke(1),
            What::Answer => flow.resume(Resume::value(100)),
            What::GoOn => flow.resume(GoOn),
        };
        async move { run.thread("t").durability(durability).await.map(drop) }
    };
    to_the_end(|| flow.thread("t"), step).await
}

async fn dies_at_every_call<Fut>(run: impl Fn(Faulty, Durability) -> Fut, expected: &str)
where
    Fut: Future<Output = Result<String, Error>>,
{
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        for fault in [Fault::Refused, Fault::Unacknowledged, Fault::Death] {
            let whole = Faulty::failing(None, false);
            assert_eq!(run(whole.clone(), durability).await.expect("nothing goes wrong"), expected);
            for call in 0..whole.calls() {
                let story = format!("{durability:?}, {fault:?} at call {call}");
                let saver = Faulty::failing(Some((call, fault)), false);
                tokio::select! {
                    biased;
                    () = saver.hook.died.notified() => {}
                    result = run(saver.clone(), durability) => {
                        let error = result.expect_err(&story);
                        assert_eq!(error.kind(), ErrorKind::Checkpoint, "{story}: {error}");
                    }
                }
                let mended = saver.mended();
                assert_eq!(run(mended.clone(), durability).await.expect(&story), expected, "{story}");
                check_audit(&mended.hook.audit, &story);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_subgraph_goes_on_where_it_was_after_dying_at_any_call() {
    dies_at_every_call(run_nested, r#"{"log":["beside","one","two","this","last"],"total":1}"#).await;
}

#[tokio::test(start_paused = true)]
async fn a_called_function_whose_result_was_saved_never_runs_again() {
    dies_at_every_call(run_functions, "212").await;
}
