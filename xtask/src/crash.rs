//! `cargo xtask crash`: workers are killed and overtaken, and nothing that they were told may be lost.

use std::process::Command;

use crate::command::Built;
use crate::postgres::{self, Server};
use crate::{Result, command};

/// Starts the trial with these options; with PostgreSQL, on a private server that syncs to the disk.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let wants_server = arguments.windows(2).any(|pair| pair[0] == "--backend" && pair[1] == "postgres");
    let server = if wants_server { Some(Server::start(postgres::Sync::On)?) } else { None };
    trial(arguments, server.as_ref(), Built::Release)
}

/// The same on a server that is running already.
pub(crate) fn trial(arguments: &[String], server: Option<&Server>, built: Built) -> Result<()> {
    let mut trial = Command::new(command::program("crash", built)?);
    if let Some(server) = server {
        trial.env(postgres::VARIABLE, server.address());
    }
    command::run(trial.args(arguments))
}
