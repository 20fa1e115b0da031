//! Opening a connection: starting the program or dialling, and the introduction.

use std::process::Stdio;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::ServiceExt;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::TokioChildProcess;
use superstep::BoxError;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStderr, Command};

use super::http;
use super::listener::Listener;
use super::server::{McpServer, Program, Reach};

pub(super) type Service = RunningService<RoleClient, Listener>;

/// A connection that was opened.
pub(super) struct Opened {
    pub(super) service: Service,
    /// The process of a server that was started.
    pub(super) process: Option<u32>,
}

/// Why a connection was not opened.
pub(super) struct NotOpened {
    pub(super) error: BoxError,
    /// Whether it will be the same at the next try.
    pub(super) is_hopeless: bool,
}

/// What programs need to start; nothing of it is secret.
const PASSED_ON: &[&str] = &[
    "APPDATA",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LC_ALL",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PROCESSOR_ARCHITECTURE",
    "SHELL",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "USER",
    "USERNAME",
    "USERPROFILE",
];

/// Opens a connection in the time that the server has for it.
pub(super) async fn open(name: &Arc<str>, server: &McpServer, listener: Listener) -> Result<Opened, NotOpened> {
    match tokio::time::timeout(server.start_timeout, introduce(name, server, listener)).await {
        Ok(opened) => opened,
        Err(_) => Err(hopeful(format!("it did not introduce itself in {:?}", server.start_timeout))),
    }
}

async fn introduce(name: &Arc<str>, server: &McpServer, listener: Listener) -> Result<Opened, NotOpened> {
    match &server.reach {
        Reach::Stdio(program) => {
            let (child, stderr) = start(program).map_err(|e| cannot_start(program, &e))?;
            let process = child.id();
            if let Some(stderr) = stderr {
                tokio::spawn(log_lines(name.clone(), stderr));
            }
            opened(listener.serve(child).await, process)
        }
        Reach::Http(address) => {
            let dialled = http::transport(address, server.tries, server.pause).map_err(hopeless);
            let opened = match dialled {
                Ok(transport) => opened(listener.serve(transport).await, None),
                Err(failed) => Err(failed),
            };
            opened.map_err(|failed| NotOpened { error: http::without_secrets(failed.error, address), ..failed })
        }
        Reach::Pipe(connect) => {
            let pipe = connect().await.map_err(hopeful)?;
            opened(listener.serve(tokio::io::split(pipe)).await, None)
        }
    }
}

fn opened(service: Result<Service, ClientInitializeError>, process: Option<u32>) -> Result<Opened, NotOpened> {
    service.map(|service| Opened { service, process }).map_err(hopeful)
}

fn start(program: &Program) -> std::io::Result<(TokioChildProcess, Option<ChildStderr>)> {
    let mut command = Command::new(&program.path);
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.args(&program.args).env_clear().envs(passed_on).envs(&program.env).kill_on_drop(true);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    TokioChildProcess::builder(in_a_group(command)).stderr(Stdio::piped()).spawn()
}

/// Many servers are started by another program: all that belongs to a server is ended with it.
#[cfg(unix)]
fn in_a_group(command: Command) -> process_wrap::tokio::CommandWrap {
    let mut command = process_wrap::tokio::CommandWrap::from(command);
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    command
}

#[cfg(not(unix))]
fn in_a_group(command: Command) -> Command {
    command
}

fn cannot_start(program: &Program, error: &std::io::Error) -> NotOpened {
    hopeless(format!("cannot start `{}`: {error}", program.path.display()))
}

async fn log_lines(server: Arc<str>, stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::info!(server = &*server, "{line}");
    }
}

fn hopeful(error: impl Into<BoxError>) -> NotOpened {
    NotOpened { error: error.into(), is_hopeless: false }
}

fn hopeless(error: impl Into<BoxError>) -> NotOpened {
    NotOpened { error: error.into(), is_hopeless: true }
}
