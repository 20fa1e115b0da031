//! Kills a worker again and again, and looks at what it left behind.
//!
//! A worker runs many threads of a graph with parallel tasks on one database. It is killed, or stopped and overtaken, at
//! random moments, and started again. What it was told and what it did stands in a log outside of the database, to which
//! every process only appends; at the end the log and the database are compared:
//! every acknowledged checkpoint can be read, no task whose result was acknowledged has run again, no write was taken of
//! a worker that had lost its thread, the checkpoints of a thread are one chain with rising epochs, and the final states
//! are those of runs that nobody disturbed. Every worker watches its runs, too: what the stream of a run with durability
//! `sync` has shown, and what those with `async` and `exit` had shown when they ended, is in the history and was not run
//! again, be it of a node or of a functional task. A trial whose kills hit no task, or which refused no write, or showed
//! nothing, has failed too.

mod audit;
mod backend;
mod check;
mod harness;
mod log;
mod told;
mod worker;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

/// What went wrong, in words.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Error> = std::result::Result<T, E>;

const USAGE: &str = "\
usage: crash [--backend sqlite|postgres] [--kills N] [--zombies N] [--seed N]

The address of a PostgreSQL server is read from SUPERSTEP_TEST_POSTGRES.";

/// What is asked for.
struct Options {
    backend: String,
    kills: u32,
    zombies: u32,
    seed: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("worker") => worker_from(&arguments[1..]),
        _ => options(&arguments).and_then(|options| harness::run(&options)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if worker::is_busy(&error) { ExitCode::from(worker::BUSY) } else { ExitCode::FAILURE }
        }
    }
}

fn worker_from(arguments: &[String]) -> Result<()> {
    let [backend, place, log, batch] = arguments else { return Err("a worker needs four arguments".into()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(worker::run(backend, place, &PathBuf::from(log), batch))
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options { backend: "sqlite".to_owned(), kills: 20, zombies: 5, seed: 1 };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{name}` needs a value\n{USAGE}"))?;
        match name.as_str() {
            "--backend" => options.backend.clone_from(value),
            "--kills" => options.kills = value.parse()?,
            "--zombies" => options.zombies = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            other => return Err(format!("no option `{other}`\n{USAGE}").into()),
        }
    }
    Ok(options)
}
