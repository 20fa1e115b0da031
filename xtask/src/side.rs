//! The sides of a comparison: superstep, the floor, a Rust peer, or `LangGraph` in Python.
//!
//! Every measurement is a process of its own, so that its peak memory is that of the case alone.

use crate::command;
use crate::disk::Disk;
use crate::workload::{Measurement, Workload};
use crate::{Error, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A process that took longer has repeated the work often enough by itself.
const ONE_ROUND_IS_ENOUGH: Duration = Duration::from_secs(10);
const LANGGRAPH: [&str; 5] = [
    "langgraph==1.2.20",
    "langgraph-checkpoint-sqlite==3.1.2",
    "langgraph-checkpoint-postgres==3.2.0",
    "psycopg[binary]",
    "uvloop",
];

pub(crate) struct Side {
    pub(crate) name: String,
    program: Program,
}

enum Program {
    Rust(PathBuf),
    LangGraph { python: PathBuf, mode: Mode },
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Sync,
    Async,
}

/// What came of one side on one workload.
pub(crate) enum Cell {
    Measured(Measurement),
    /// The side has no such case.
    Cannot,
    Failed(String),
}

impl Cell {
    pub(crate) fn measurement(&self) -> Option<&Measurement> {
        match self {
            Cell::Measured(measurement) => Some(measurement),
            Cell::Cannot | Cell::Failed(_) => None,
        }
    }
}

/// The folder of the bench programs, which are packages outside the workspace.
fn bench() -> PathBuf {
    command::root().join("bench")
}

/// Builds the package in a folder of `bench` with the release profile.
pub(crate) fn build(folder: &Path) -> Result<Side> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let program = command::build_program(
        command::cargo()
            .args(["build", "--release", "--manifest-path"])
            .arg(bench().join(folder).join("Cargo.toml"))
            .arg("--target-dir")
            .arg(bench().join("target")),
    )?;
    Ok(Side { name, program: Program::Rust(program) })
}

/// Builds superstep as it was at a revision, in a work tree of its own under `target`.
pub(crate) fn build_before(revision: &str) -> Result<Side> {
    let tree = command::root().join("target/before");
    if tree.exists() {
        command::run(Command::new("git").args(["-C"]).arg(&tree).args(["checkout", "--quiet", "--detach", revision]))?;
    } else {
        let add = ["worktree", "add", "--quiet", "--force", "--detach"];
        command::run(Command::new("git").arg("-C").arg(command::root()).args(add).arg(&tree).arg(revision))?;
    }
    let program = command::build_program(
        command::cargo()
            .args(["build", "--release", "--manifest-path"])
            .arg(tree.join("bench/superstep/Cargo.toml"))
            .arg("--target-dir")
            .arg(bench().join("target/before")),
    )?;
    Ok(Side { name: "before".to_owned(), program: Program::Rust(program) })
}

/// The folders of the Rust peers, by name.
pub(crate) fn peers() -> Result<Vec<PathBuf>> {
    let mut peers = Vec::new();
    for entry in fs::read_dir(bench().join("peers"))? {
        peers.push(Path::new("peers").join(entry?.file_name()));
    }
    peers.sort();
    Ok(peers)
}

/// `LangGraph` with plain functions and with coroutines, from a virtual environment under `target`.
pub(crate) fn langgraph() -> Result<[Side; 2]> {
    let python = python()?;
    let side =
        |name: &str, mode| Side { name: name.to_owned(), program: Program::LangGraph { python: python.clone(), mode } };
    Ok([side("LangGraph sync", Mode::Sync), side("LangGraph async", Mode::Async)])
}

/// A Python with LangGraph, in an environment of its own.
pub(crate) fn python() -> Result<PathBuf> {
    let environment = command::root().join("target/langgraph-venv");
    let python = environment.join("bin/python");
    let (installed, wanted) = (environment.join("installed"), LANGGRAPH.join(" "));
    if fs::read_to_string(&installed).ok().as_ref() != Some(&wanted) {
        command::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        command::run(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(LANGGRAPH))?;
        fs::write(&installed, wanted)?;
    }
    Ok(python)
}

/// Runs one workload on every side, taking turns, so that a slow minute of the machine hits all alike.
pub(crate) fn measure(sides: &[Side], workload: &Workload, disk: &Disk, rounds: usize) -> Vec<Cell> {
    let mut progress: Vec<Progress> = sides.iter().map(|_| Progress::default()).collect();
    for _ in 0..rounds {
        for (side, progress) in sides.iter().zip(&mut progress) {
            if !progress.is_complete {
                eprintln!("  {} {}: {}", workload.case, workload.size, side.name);
                progress.add(side.measure_once(workload, disk));
            }
        }
    }
    progress.into_iter().map(Progress::finish).collect()
}

/// The rounds of one side on one workload so far.
#[derive(Default)]
struct Progress {
    rounds: Vec<Measurement>,
    failure: Option<Error>,
    is_complete: bool,
}

impl Progress {
    fn add(&mut self, round: Result<Option<(Measurement, Duration)>>) {
        match round {
            Ok(Some((measurement, took))) => {
                self.rounds.push(measurement);
                self.is_complete = took > ONE_ROUND_IS_ENOUGH;
            }
            Ok(None) => self.is_complete = true,
            Err(error) => {
                self.failure = Some(error);
                self.is_complete = true;
            }
        }
    }

    fn finish(self) -> Cell {
        match (self.failure, Measurement::median(&self.rounds)) {
            (Some(error), _) => Cell::Failed(error.to_string()),
            (None, Some(measurement)) => Cell::Measured(measurement),
            (None, None) => Cell::Cannot,
        }
    }
}

impl Side {
    /// One process; none if the side has no such case.
    fn measure_once(&self, workload: &Workload, disk: &Disk) -> Result<Option<(Measurement, Duration)>> {
        let Some(mut command) = self.command(workload) else {
            return Ok(None);
        };
        disk.tell(&mut command, workload)?;
        let limit = workload.time_limit();
        let Some(ended) = command::run_for(&mut command, limit)? else {
            return Err(format!("over {} s", limit.as_secs()).into());
        };
        let complaint = command::complaint(&ended.stderr);
        if !ended.status.success() {
            return Err(format!("{}: {complaint}", ended.status).into());
        }
        if complaint.starts_with("no case") {
            return Ok(None);
        }
        Ok(Some((read_line(&ended.stdout, workload)?, ended.took)))
    }

    fn command(&self, workload: &Workload) -> Option<Command> {
        match &self.program {
            Program::Rust(program) => {
                let mut command = Command::new(program);
                command.args([workload.program_case(), &workload.size.to_string()]);
                Some(command)
            }
            Program::LangGraph { python, mode } => {
                let mut command = Command::new(python);
                let (script, arguments) = langgraph_arguments(workload, *mode)?;
                command.arg(bench().join("python").join(script)).args(arguments);
                command.env_remove("LANGSMITH_TRACING").env_remove("LANGCHAIN_TRACING_V2");
                Some(command)
            }
        }
    }
}

/// The measurement in the last JSON line of a program.
fn read_line(stdout: &[u8], workload: &Workload) -> Result<Measurement> {
    let stdout = String::from_utf8_lossy(stdout);
    let line = stdout.lines().rfind(|line| line.starts_with('{')).ok_or("no result")?;
    let line: Value = serde_json::from_str(line)?;
    if let Some(error) = line["err"].as_str() {
        return Err(error.into());
    }
    if let Some(wrong) = line["wrong"].as_str() {
        return Err(format!("wrong result: {wrong}").into());
    }
    Measurement::read(&line, workload).ok_or_else(|| "no result".into())
}

/// The case in the words of the Python programs; none where a mode or the programs have no such case.
fn langgraph_arguments(workload: &Workload, mode: Mode) -> Option<(&'static str, Vec<String>)> {
    let size = workload.size.to_string();
    let flavour = match mode {
        Mode::Sync => "sync",
        Mode::Async => "async",
    };
    let (script, words) = match (workload.program_case(), mode) {
        ("w6mem", _) => ("bench.py", vec!["w6", &size, flavour]),
        ("w6sql", _) => ("disk.py", vec!["sqlite", &size, "sync", flavour]),
        ("w6sql-async", _) => ("disk.py", vec!["sqlite", &size, "async", flavour]),
        ("w6pg", _) => ("disk.py", vec!["postgres", &size, "sync", flavour]),
        ("w6pg-async", _) => ("disk.py", vec!["postgres", &size, "async", flavour]),
        ("w7", Mode::Async) => ("bench.py", vec!["w7", &size]),
        ("chats", Mode::Async) => ("chats.py", vec![size.as_str()]),
        ("w8", Mode::Sync) => ("bench.py", vec!["w8", "updates"]),
        ("w6threads" | "w7" | "w8" | "chats" | "mem", _) => return None,
        (case, _) => ("bench.py", vec![case, &size, flavour]),
    };
    Some((script, words.into_iter().map(str::to_owned).collect()))
}
