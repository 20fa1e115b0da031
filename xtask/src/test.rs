//! `cargo xtask test`: everything that must pass before a change is done.

use crate::command::Built;
use crate::postgres::{self, Server};
use crate::{Result, command, conformance, crash, mcp};

pub(crate) fn run(sync: postgres::Sync) -> Result<()> {
    let server = Server::start(sync)?;
    let mcp_servers = mcp::Servers::fetch()?;
    // Without a selection of targets, cargo runs the doc tests as well.
    let mut tests = command::cargo();
    mcp_servers.tell(&mut tests);
    command::run(tests.args(["test", "--workspace", "--all-features"]).env(postgres::VARIABLE, server.address()))?;
    for checkpointer in ["memory", "sqlite", "postgres"] {
        let arguments = ["--checkpointer".to_owned(), checkpointer.to_owned()];
        conformance::compare(&conformance::Options::parse(&arguments)?, Some(&server), Built::WithTests)?;
    }
    for backend in ["sqlite", "postgres"] {
        crash::trial(&["--backend".to_owned(), backend.to_owned()], Some(&server), Built::WithTests)?;
    }
    Ok(())
}
