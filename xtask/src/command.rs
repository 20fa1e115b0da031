//! Running other programs: cargo, and processes with a time limit.

use crate::Result;
use serde_json::Value;
use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // Set by `cargo run`: a program in a shared target folder may have been built from another checkout.
    let xtask = env::var_os("CARGO_MANIFEST_DIR");
    let xtask = xtask.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().expect("xtask is a folder of the repository").to_owned()
}

/// The cargo that started xtask, in the root of the repository.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Shows the command, runs it, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", describe(command));
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", describe(command)).into()) }
}

/// The standard output of a command that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| cannot_start(command, &error))?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", describe(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// How a program of the workspace is built.
#[derive(Clone, Copy)]
pub(crate) enum Built {
    /// To be quick.
    Release,
    /// As the tests build it, so that nothing is built twice.
    WithTests,
}

/// Builds a program of the workspace and gives its path.
pub(crate) fn program(name: &str, built: Built) -> Result<PathBuf> {
    let options: &[&str] = match built {
        Built::Release => &["--release", "--package", name],
        Built::WithTests => &["--workspace", "--all-features"],
    };
    build_program(cargo().arg("build").args(options).args(["--bin", name]))
}

/// Builds with cargo and gives the path of the one program built.
pub(crate) fn build_program(cargo_build: &mut Command) -> Result<PathBuf> {
    let messages = output(cargo_build.arg("--message-format=json-render-diagnostics"))?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
        .ok_or_else(|| format!("`{}` built no program", describe(cargo_build)).into())
}

/// A process that ended by itself.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) took: Duration,
}

/// Runs a process to its end; none if it had to be killed at the limit.
pub(crate) fn run_for(command: &mut Command, limit: Duration) -> Result<Option<Ended>> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(command, &error))?;
    let stdout = read_in_background(child.stdout.take().expect("standard output is piped"));
    let stderr = read_in_background(child.stderr.take().expect("standard error is piped"));
    // A process that closes its output is at its end: waiting for that needs no polling.
    let Ok(stdout) = stdout.recv_timeout(limit) else {
        child.kill()?;
        child.wait()?;
        return Ok(None);
    };
    let status = child.wait()?;
    let stderr = stderr.recv().unwrap_or_default();
    let took = start.elapsed();
    Ok(Some(Ended { status, stdout, stderr, took }))
}

fn read_in_background(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a broken pipe is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// The line of a failed process that says most: the message of a panic, or else the last line.
pub(crate) fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let after_panic = lines().skip_while(|line| !line.contains("panicked at")).nth(1);
    let line = after_panic.or_else(|| lines().next_back()).unwrap_or_default();
    line.trim().chars().take(300).collect()
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start `{}`: {error}", command.get_program().display())
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
