//! `cargo xtask conformance`: runs recorded scenarios and compares their traces.

use crate::command::{self, Built};
use crate::postgres::{self, Server};
use crate::{Result, USAGE, difference, disk};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const TIME_LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Options {
    directories: Vec<PathBuf>,
    jobs: usize,
    checkpointer: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        let recorded = command::root().join("conformance");
        let directories = vec![recorded.join("scenarios"), recorded.join("random")];
        Options { directories, jobs: 4, checkpointer: None }
    }
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Options::default();
        let mut directories = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--jobs" => options.jobs = value()?.parse::<usize>()?.max(1),
                "--checkpointer" => options.checkpointer = Some(value()?.clone()),
                flag if flag.starts_with('-') => {
                    return Err(format!("no option `{flag}`\n\n{USAGE}").into());
                }
                directory => directories.push(PathBuf::from(directory)),
            }
        }
        if !directories.is_empty() {
            options.directories = directories;
        }
        Ok(options)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let server = match options.checkpointer.as_deref() {
        Some("postgres") => Some(Server::start(postgres::Sync::Off)?),
        _ => None,
    };
    compare(options, server.as_ref(), Built::Release)
}

/// Compares all traces; checkpoints on PostgreSQL are kept on this server.
pub(crate) fn compare(options: &Options, server: Option<&Server>, built: Built) -> Result<()> {
    let runner = command::program("conformance", built)?;
    let address = server.map(Server::address);
    let mut failures = 0;
    for directory in &options.directories {
        let results = run_all(&recorded(directory)?, &runner, options, address.as_deref())?;
        println!("{}", directory.display());
        failures += print_results(&results);
    }
    match failures {
        0 => Ok(()),
        _ => Err(format!("{failures} scenarios differ").into()),
    }
}

/// The scenarios of a directory that have a trace, by name.
fn recorded(directory: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error| format!("cannot read `{}`: {error}", directory.display());
    let mut scenarios = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry?.path();
        let is_scenario = path.extension().is_some_and(|extension| extension == "json");
        if is_scenario && trace_of(&path).exists() {
            scenarios.push(path);
        }
    }
    scenarios.sort();
    if scenarios.is_empty() {
        Err(format!("no recorded scenarios in `{}`", directory.display()).into())
    } else {
        Ok(scenarios)
    }
}

fn trace_of(scenario: &Path) -> PathBuf {
    scenario.with_extension("trace.json")
}

/// The verdict on one scenario; `failure` is text for a reader, none if the trace is as recorded.
struct Verdict {
    name: String,
    area: String,
    failure: Option<String>,
}

fn run_all(scenarios: &[PathBuf], runner: &Path, options: &Options, server: Option<&str>) -> Result<Vec<Verdict>> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(path) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = run_one(path, runner, options, server);
                    verdicts.lock().expect("no worker panics").insert(path, verdict);
                }
            });
        }
    });
    verdicts.into_inner().expect("no worker panics").into_values().collect()
}

fn run_one(path: &Path, runner: &Path, options: &Options, server: Option<&str>) -> Result<Verdict> {
    let scenario = read_json(path)?;
    let mut command = Command::new(runner);
    if let Some(checkpointer) = &options.checkpointer {
        command.args(["--checkpointer", checkpointer]);
    }
    if let Some(address) = server {
        command.env(postgres::VARIABLE, address);
    }
    // Questions come in the order in which tasks end, a tenth of a second apart: a busy disk would turn it round.
    if Path::new(disk::MEMORY).is_dir() {
        command.env("TMPDIR", disk::MEMORY);
    }
    let failure = match command::run_for(command.arg(path), TIME_LIMIT)? {
        None => Some(format!("no answer in {} s", TIME_LIMIT.as_secs())),
        Some(ended) if !ended.status.success() => {
            Some(format!("{}: {}", ended.status, command::complaint(&ended.stderr)))
        }
        Some(ended) => match serde_json::from_slice(&ended.stdout) {
            Ok(got) => explain(&scenario, &read_json(&trace_of(path))?, &got),
            Err(error) => Some(format!("not JSON: {error}")),
        },
    };
    Ok(Verdict {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        area: scenario["area"].as_str().unwrap_or("?").to_owned(),
        failure,
    })
}

/// The first difference of two traces in words, with the call of the script that it belongs to.
fn explain(scenario: &Value, want: &Value, got: &Value) -> Option<String> {
    let difference = difference::first(want, got)?;
    let mut text = format!("{}\n  want {}\n  got  {}", difference.path, short(difference.want), short(difference.got));
    if let Some(call) = step_of(&difference.path).and_then(|step| scenario["script"].get(step)) {
        text.push_str("\n  call ");
        text.push_str(&short(Some(call)));
    }
    Some(text)
}

/// The number in `$.steps[3].result` or any other path with `steps[`.
fn step_of(path: &str) -> Option<usize> {
    let (_, rest) = path.split_once("steps[")?;
    rest.split_once(']')?.0.parse().ok()
}

fn short(value: Option<&Value>) -> String {
    let text = value.map_or("(absent)".to_owned(), Value::to_string);
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let unreadable = |error: &dyn std::fmt::Display| format!("`{}`: {error}", path.display());
    let text = fs::read(path).map_err(|error| unreadable(&error))?;
    Ok(serde_json::from_slice(&text).map_err(|error| unreadable(&error))?)
}

/// Prints the failures and the counts per area; gives the number of failures.
fn print_results(verdicts: &[Verdict]) -> usize {
    let mut areas: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for verdict in verdicts {
        let (passed, all) = areas.entry(&verdict.area).or_default();
        *all += 1;
        match &verdict.failure {
            None => *passed += 1,
            Some(failure) => println!("FAIL {}/{}: {failure}", verdict.area, verdict.name),
        }
    }
    for (area, (passed, all)) in &areas {
        println!("{area:14} {passed}/{all}");
    }
    let passed: usize = areas.values().map(|(passed, _)| passed).sum();
    println!("{:14} {passed}/{}\n", "all", verdicts.len());
    verdicts.len() - passed
}

#[cfg(test)]
mod tests {
    use super::{explain, trace_of};
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_difference_names_the_call_of_its_step() {
        let scenario = json!({"script": [{"op": "invoke"}, {"op": "state"}]});
        let want = json!({"steps": [{"result": 1}, {"result": 2}]});
        let got = json!({"steps": [{"result": 1}, {"result": 3}]});
        let text = explain(&scenario, &want, &got).expect("they differ");
        assert_eq!(text, "$.steps[1].result\n  want 2\n  got  3\n  call {\"op\":\"state\"}");
    }

    #[test]
    fn a_trace_is_no_scenario_of_its_own() {
        assert_eq!(trace_of(Path::new("d/a.json")), Path::new("d/a.trace.json"));
        assert_eq!(trace_of(Path::new("d/a.trace.json")), Path::new("d/a.trace.trace.json"));
    }
}
