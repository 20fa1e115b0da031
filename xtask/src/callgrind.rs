//! `cargo xtask callgrind`: instructions per step, which do not depend on how busy the machine is.

use crate::table::{Table, number};
use crate::{Result, command};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const CASES: [(&str, u32); 4] = [("w1", 100), ("w2", 1000), ("w5", 50), ("w6mem", 50)];
/// Two runs that differ only in their length: the difference leaves the start of the process out.
const ITERATIONS: [u32; 2] = [5, 25];

pub(crate) fn run() -> Result<()> {
    let bench = command::root().join("bench");
    let target = bench.join("target/callgrind");
    let program = command::build_program(
        command::cargo()
            .args(["build", "--release", "--config", "profile.release.debug=true"])
            .arg("--manifest-path")
            .arg(bench.join("superstep/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target),
    )?;
    let mut table = Table::new(["case", "size", "instructions per step"]);
    for (case, size) in CASES {
        let profile = target.join(format!("{case}-{size}.out"));
        let [few, many] = ITERATIONS.map(|n| count(&program, case, size, n, &profile));
        let ((few, _), (many, steps)) = (few?, many?);
        let steps = steps * f64::from(ITERATIONS[1] - ITERATIONS[0]);
        table.add([case.to_owned(), size.to_string(), number((many - few) / steps)]);
    }
    println!("{table}");
    println!("where they go: callgrind_annotate {}/CASE-SIZE.out", target.display());
    Ok(())
}

/// The instructions of a whole process, and the steps of one iteration.
fn count(program: &Path, case: &str, size: u32, iterations: u32, profile: &Path) -> Result<(f64, f64)> {
    let line = command::output(
        Command::new("valgrind")
            .args(["--tool=callgrind", "--quiet"])
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(program)
            .args([format!("count:{case}"), size.to_string(), iterations.to_string()])
            // One worker: valgrind runs one thread at a time, and a second one would only add hand-overs.
            .env("TOKIO_WORKER_THREADS", "1"),
    )?;
    let line: Value = serde_json::from_str(&line)?;
    let steps = line["supersteps"].as_f64().ok_or("the program printed no `supersteps`")?;
    Ok((total(&fs::read_to_string(profile)?).ok_or("the profile has no totals")?, steps))
}

/// The number in the line `totals: 123` of a profile.
fn total(profile: &str) -> Option<f64> {
    profile.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}
