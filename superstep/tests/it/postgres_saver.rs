//! Checkpoints in PostgreSQL, on the server that `SUPERSTEP_TEST_POSTGRES` names. Each test has a schema of its own.

use std::env;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use superstep::{PostgresBuilder, PostgresDatabase, PostgresSaver};

fn address() -> String {
    env::var("SUPERSTEP_TEST_POSTGRES").expect("this test needs PostgreSQL: run it with `cargo xtask test`")
}

/// A schema that nobody else uses.
fn fresh() -> PostgresBuilder {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    PostgresDatabase::builder(address()).schema(format!("saver_{}_{number}", process::id()))
}

async fn saver() -> PostgresSaver {
    PostgresSaver::new(&fresh().connect().await.unwrap())
}

#[cfg(feature = "conformance")]
#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite() {
    superstep::conformance::checkpointer::run(saver).await.assert();
    superstep::conformance::checkpointer::expiry(|ttl| async move { saver().await.ttl(ttl) }).await.assert();
}
