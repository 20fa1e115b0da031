//! Tests, checks and comparisons of superstep: `cargo xtask COMMAND`.

mod bench;
mod callgrind;
mod command;
mod compare;
mod conformance;
mod cost;
mod crash;
mod difference;
mod disk;
mod mcp;
mod postgres;
mod react;
mod side;
mod table;
mod test;
mod tree;
mod workload;

use std::process::ExitCode;

/// What went wrong, in words for the person who typed the command.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Error> = std::result::Result<T, E>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

commands:
  test [--fsync]           the workspace's tests and doc tests with a private PostgreSQL, then the
                           conformance scenarios; --fsync makes the server write to the disk
  postgres [--fsync] -- COMMAND...
                           a command with a private PostgreSQL in $SUPERSTEP_TEST_POSTGRES
  mcp -- COMMAND...        a command with real MCP servers in $SUPERSTEP_TEST_MCP_...
  conformance [OPTIONS] [DIR...]
                           compare the traces of every DIR/NAME.json with DIR/NAME.trace.json
                           (default: conformance/scenarios and conformance/random)
      --jobs N             scenarios at a time (default 4)
      --checkpointer memory|sqlite|postgres
                           where checkpoints are kept (default memory)
  crash [--backend sqlite|postgres] [--kills N] [--zombies N] [--seed N]
                           workers are killed and overtaken at random moments (default sqlite, 20, 5, 1)
  react [--record]         scripted conversations through LangGraph's ReAct agent and ours, compared
  bench [--rounds N] [--before REVISION] [CASE...]
                           superstep beside the floor, with the targets; and beside itself as it was
  compare [--rounds N] [--no-peers] [--peer NAME]... [CASE...]
                           superstep beside the floor, LangGraph and every peer that builds, or the named ones
  callgrind                instructions per step
  cost                     bytes and compile time of a program, and of each further type of state in it
  tree                     limits on what superstep depends on

CASE is one of w1 w2 w3 w4 w4one w5 w6mem w6sql w6sql-async w6sql-nosync w6threads w6pg w6pg-async w6pg-nosync w7 w8 w9
chats mem, or `disk` for all that save to a database; every process runs N times (default 3)";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    match run(&command, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, arguments: &[String]) -> Result<()> {
    match command {
        "test" => test::run(postgres::Sync::parse(arguments)?),
        "postgres" => postgres::run(arguments),
        "mcp" => mcp::run(arguments),
        "conformance" => conformance::run(&conformance::Options::parse(arguments)?),
        "crash" => crash::run(arguments),
        "react" => react::run(arguments),
        "bench" => bench::run(&bench::Options::parse(arguments)?),
        "compare" => compare::run(&bench::Options::parse(arguments)?),
        "cost" => no_arguments(command, arguments).and_then(|()| cost::run()),
        "callgrind" => no_arguments(command, arguments).and_then(|()| callgrind::run()),
        "tree" => no_arguments(command, arguments).and_then(|()| tree::run()),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        "" => Err(USAGE.into()),
        other => Err(format!("no command `{other}`\n\n{USAGE}").into()),
    }
}

fn no_arguments(command: &str, arguments: &[String]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(argument) => Err(format!("`{command}` takes no argument `{argument}`\n\n{USAGE}").into()),
    }
}
