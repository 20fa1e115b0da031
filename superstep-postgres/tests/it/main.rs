//! The tests of servers, through the public API. What all databases must do is tested in `superstep/tests/it`.

mod database;
mod servers;

/// The server that tests share. Each uses a schema of its own.
fn address() -> String {
    std::env::var("SUPERSTEP_TEST_POSTGRES").expect("this test needs PostgreSQL: run it with `cargo xtask test`")
}
