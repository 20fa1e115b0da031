//! The suite for everyone's checkpointers.

use superstep::conformance::checkpointer;
use superstep_postgres::PostgresSaver;

use super::Place;
use crate::model::{INTERVALS, play, sequences};

async fn saver() -> PostgresSaver {
    Place::new().saver().await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite() {
    checkpointer::run(saver).await.assert();
}

#[tokio::test]
async fn threads_expire() {
    checkpointer::expiry(|ttl| async move { saver().await.ttl(ttl) }).await.assert();
}

/// One connection is enough for whatever is done: nothing waits for a second one.
#[tokio::test(flavor = "multi_thread")]
async fn it_answers_as_the_model_does() {
    for (interval, seed) in INTERVALS.into_iter().zip(6..) {
        let make = move || async move {
            let saver = PostgresSaver::new(&Place::new().builder().pool_size(1).connect().await.unwrap());
            interval.into_iter().fold(saver, |saver, (every, many)| saver.outlines(every, many))
        };
        play(make, sequences() / 4, seed * 1_000_000_000).await;
    }
}
