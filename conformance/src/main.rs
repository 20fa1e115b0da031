//! Runs a recorded scenario on superstep and prints what happened, as JSON.
//!
//! `conformance [--checkpointer memory|sqlite|postgres] SCENARIO.json`. The scenario language and the form of
//! the trace are those of the traces that were recorded with `LangGraph`: equal traces mean equal behaviour.

mod app;
mod build;
mod expr;
mod failure;
mod functional;
mod program;
mod saver;
mod scenario;
mod script;
mod trace;
mod world;

use std::process::ExitCode;

use scenario::Scenario;

// One thread: tasks that do not wait finish in the order in which they start. The script is a task like those of its graphs:
// what drives the thread itself would have its turn only now and then.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let given = Arguments::parse(std::env::args().skip(1));
    let (scenario, saver) = match given.and_then(|given| Ok((read(&given.path)?, given.saver))) {
        Ok(given) => given,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    match tokio::spawn(script::run(scenario, saver)).await.expect("the script does not panic") {
        Ok(trace) => println!("{trace:#}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

struct Arguments {
    path: String,
    saver: saver::Kind,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        const USAGE: &str = "usage: conformance [--checkpointer memory|sqlite|postgres] SCENARIO.json";
        let with_usage = |why: String| format!("{why}\n{USAGE}");
        let (mut path, mut saver) = (None, saver::Kind::default());
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--checkpointer" => {
                    let name = arguments.next().unwrap_or_default();
                    saver = name.parse().map_err(with_usage)?;
                }
                flag if flag.starts_with("--") => return Err(with_usage(format!("unknown option `{flag}`"))),
                _ => path = Some(argument),
            }
        }
        Ok(Self { path: path.ok_or(USAGE)?, saver })
    }
}

fn read(path: &str) -> Result<Scenario, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))
}
