//! Runs a recorded scenario on superstep and prints what happened, as JSON.
//!
//! `conformance [--checkpointer memory] SCENARIO.json`. The scenario language and the form of
//! the trace are those of the traces that were recorded with `LangGraph`: equal traces mean equal behaviour.

mod app;
mod build;
mod expr;
mod failure;
mod functional;
mod program;
mod scenario;
mod script;
mod trace;
mod world;

use std::process::ExitCode;

use scenario::Scenario;

// One thread: tasks that do not wait finish in the order in which they start.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let scenario = match arguments(std::env::args().skip(1)).and_then(|path| read(&path)) {
        Ok(scenario) => scenario,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    println!("{:#}", script::run(scenario).await);
    ExitCode::SUCCESS
}

/// The path of the scenario.
fn arguments(mut arguments: impl Iterator<Item = String>) -> Result<String, String> {
    const USAGE: &str = "usage: conformance [--checkpointer memory] SCENARIO.json";
    let mut path = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--checkpointer" => match arguments.next().as_deref() {
                Some("memory") => {}
                other => return Err(format!("checkpointer {other:?} is not known here; there is `memory`\n{USAGE}")),
            },
            flag if flag.starts_with("--") => return Err(format!("unknown option `{flag}`\n{USAGE}")),
            _ => path = Some(argument),
        }
    }
    path.ok_or_else(|| USAGE.to_owned())
}

fn read(path: &str) -> Result<Scenario, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))
}
