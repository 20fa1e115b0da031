//! Saves of work that runs side by side.

use async_trait::async_trait;
use superstep::{
    BoxError, CheckpointError, Checkpointer, Context, END, Entrypoint, ErrorKind, START, StateGraph, Task,
};

use crate::support::hooked::{Call, Hook, Hooked, Serving};

/// Takes its time, so that saves overlap.
#[derive(Clone, Copy, Default)]
struct Slow;

#[async_trait]
impl Hook for Slow {
    async fn around(&self, call: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        let turns = match call {
            Call::Put(_) => 1,
            Call::PutWrites { task, .. } => task.as_u128() % 7,
            Call::Get | Call::List => 0,
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        serving.await
    }
}

/// Saves in the background once looked at what was running, and then put themselves in its place, under two
/// locks: two calls that did so at the same time pushed each other out, and a result was lost without an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn results_of_calls_side_by_side_are_all_saved() {
    for round in 0..40 {
        let saver = Hooked::new(Slow);
        let work = Task::new("work", async |n: i64| {
            tokio::task::yield_now().await;
            Ok::<_, BoxError>(n)
        });
        let flow = Entrypoint::new("flow", move |n: i64, cx: Context| {
            let work = work.clone();
            async move {
                let calls: Vec<_> = (0..n).map(|i| work.call(&cx, i)).collect();
                let mut sum = 0;
                for call in calls {
                    sum += call.await?;
                }
                let more: i64 = cx.interrupt("how many more?")?;
                Ok::<_, BoxError>(sum + more)
            }
        });
        let flow = flow.checkpointer(saver.clone()).compile();
        assert!(flow.invoke(64).thread("t").await.unwrap().is_interrupted());
        let saved = saver.inner.get("t", "", None).await.unwrap().expect("the run was saved");
        let finished = saved.writes().iter().filter(|task| task.is_finished()).count();
        assert_eq!(finished, 64, "round {round}");
    }
}

/// A spawned task whose conditional edge panicked was never heard of again, and the run waited for it for ever.
#[tokio::test]
async fn a_panic_in_an_async_conditional_edge_is_the_nodes_error() {
    let path = async |_: superstep::AgentState| -> &'static str {
        tokio::task::yield_now().await;
        panic!("lost the way")
    };
    let node = async |_: superstep::AgentState| ();
    let app = StateGraph::<superstep::AgentState>::new()
        .add_node("a", node)
        .add_node("b", node)
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge("b", END)
        .add_conditional_edges("a", path)
        .compile()
        .unwrap();
    let error = app.invoke(()).await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Panic, Some("a")));
}
