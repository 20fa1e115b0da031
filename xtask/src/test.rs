//! `cargo xtask test`: everything that must pass before a change is done.

use crate::postgres::{self, Server};
use crate::{Result, command, conformance};

pub(crate) fn run(sync: postgres::Sync) -> Result<()> {
    let server = Server::start(sync)?;
    // Without a selection of targets, cargo runs the doc tests as well.
    let mut tests = command::cargo();
    command::run(tests.args(["test", "--workspace", "--all-features"]).env(postgres::VARIABLE, server.address()))?;
    drop(server);
    conformance::run(&conformance::Options::default())
}
