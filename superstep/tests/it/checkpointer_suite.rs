//! The checkpointers of superstep pass the suite that is for everyone's.

use superstep::MemorySaver;
use superstep::conformance::checkpointer;

use crate::redb_saver::RedbSaver;

#[tokio::test]
async fn memory_saver_passes() {
    checkpointer::run(|| async { MemorySaver::new() }).await.assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_saver_passes_on_several_cores() {
    checkpointer::run(|| async { MemorySaver::new() }).await.assert();
}

#[tokio::test(start_paused = true)]
async fn memory_saver_lets_threads_expire() {
    checkpointer::expiry(|ttl| async move { MemorySaver::new().ttl(ttl) }).await.assert();
}

#[tokio::test]
async fn a_checkpointer_from_outside_passes() {
    checkpointer::run(|| async { RedbSaver::memory().unwrap() }).await.assert();
}
