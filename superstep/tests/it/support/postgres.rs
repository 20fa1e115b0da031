//! The PostgreSQL server that tests share. Each uses a schema of its own.

pub(crate) fn address() -> String {
    std::env::var("SUPERSTEP_TEST_POSTGRES").expect("this test needs PostgreSQL: run it with `cargo xtask test`")
}
