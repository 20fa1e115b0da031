//! The suite for everyone's checkpointers.

use superstep::PostgresSaver;
use superstep::conformance::checkpointer;

use super::Place;

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

/// So many sequences of calls are played; `SUPERSTEP_MODEL_SEQUENCES` asks for more.
fn sequences() -> u64 {
    match std::env::var("SUPERSTEP_MODEL_SEQUENCES") {
        Ok(number) => number.parse().expect("`SUPERSTEP_MODEL_SEQUENCES` is a number"),
        Err(_) => 60,
    }
}

/// One connection is enough for whatever is done: nothing waits for a second one.
#[tokio::test]
async fn it_answers_as_the_model_does() {
    let make = || async { PostgresSaver::new(&Place::new().builder().pool_size(1).connect().await.unwrap()) };
    checkpointer::model(make, sequences() / 10, 3).await.assert();
}

#[tokio::test]
async fn with_many_outlines_it_answers_as_the_model_does() {
    for (every, many) in [(2, 2), (3, 2), (5, 3)] {
        let make = || async move { saver().await.outlines(every, many) };
        checkpointer::model(make, sequences() / 20, 10 + every.unsigned_abs()).await.assert();
    }
}
