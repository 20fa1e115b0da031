//! Random calls on the checkpointers of superstep, compared with the model of the suite.
//!
//! `SUPERSTEP_MODEL_SEQUENCES=100000 cargo test --features conformance model` plays more of them.

use superstep::conformance::checkpointer;
use superstep::{MemorySaver, SqliteSaver};

fn sequences() -> u64 {
    match std::env::var("SUPERSTEP_MODEL_SEQUENCES") {
        Ok(number) => number.parse().expect("`SUPERSTEP_MODEL_SEQUENCES` is a number"),
        Err(_) => 2_000,
    }
}

#[tokio::test]
async fn memory_saver_answers_as_the_model_does() {
    checkpointer::model(|| async { MemorySaver::new() }, sequences(), 1).await.assert();
}

#[tokio::test]
async fn sqlite_saver_answers_as_the_model_does() {
    checkpointer::model(|| async { SqliteSaver::memory().unwrap() }, sequences() / 10, 2).await.assert();
}

/// With an outline at every second to fifth row, all that is about them happens in short sequences too.
#[tokio::test]
async fn sqlite_saver_with_many_outlines_answers_as_the_model_does() {
    for (every, many) in [(2, 2), (3, 2), (5, 3)] {
        let make = || async move { SqliteSaver::memory().unwrap().outlines(every, many) };
        checkpointer::model(make, sequences() / 20, every.unsigned_abs()).await.assert();
    }
}
