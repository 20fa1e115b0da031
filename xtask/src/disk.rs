//! Where the cases that save to a database find one.

use crate::Result;
use crate::postgres::{Server, Sync, VARIABLE};
use crate::workload::Workload;
use std::path::Path;
use std::process::Command;

/// A file system in memory.
pub(crate) const MEMORY: &str = "/dev/shm";
/// Put behind an address, it makes the sessions of every client answer before the disk has it.
const NO_SYNC: &str = "?options=-c%20synchronous_commit%3Doff";

/// The databases of a run.
#[derive(Default)]
pub(crate) struct Disk {
    server: Option<Server>,
}

impl Disk {
    /// Starts a server that writes to the disk, if a workload wants one.
    pub(crate) fn prepare(workloads: &[Workload]) -> Result<Self> {
        let wants_server = workloads.iter().any(Workload::saves_to_postgres);
        Ok(Self { server: wants_server.then(|| Server::start(Sync::On)).transpose()? })
    }

    /// Tells a program where to save.
    pub(crate) fn tell(&self, command: &mut Command, workload: &Workload) -> Result<()> {
        if let (Some(server), true) = (&self.server, workload.saves_to_postgres()) {
            let settings = if workload.is_unsynced() { NO_SYNC } else { "" };
            command.env(VARIABLE, server.address() + settings);
        } else if workload.is_unsynced() {
            if !Path::new(MEMORY).is_dir() {
                return Err(format!("there is no `{MEMORY}`, where a sync costs nothing").into());
            }
            command.env("TMPDIR", MEMORY);
        }
        Ok(())
    }
}
