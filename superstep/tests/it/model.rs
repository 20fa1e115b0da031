//! Random calls on the checkpointers of superstep, compared with the model of the suite.
//!
//! `SUPERSTEP_MODEL_SEQUENCES=100000 cargo test --features conformance model` plays more of them.

use superstep::MemorySaver;
use superstep::conformance::checkpointer;

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
