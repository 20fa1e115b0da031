//! `cargo xtask react`: the same scripted conversations through LangGraph's `create_react_agent` and ours.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::{Result, command, difference, side};

const FOLDER: &str = "superstep-agent/tests/react";

/// Plays every conversation on both sides, now, and tells where they differ. With `record`, what LangGraph did is kept.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let record = match arguments {
        [] => false,
        [word] if word == "--record" => true,
        _ => return Err("usage: cargo xtask react [--record]".into()),
    };
    let python = side::python()?;
    let player =
        command::build_program(command::cargo().args(["build", "-p", "superstep-agent", "--example", "react_trace"]))?;
    let folder = command::root().join(FOLDER);
    let mut names: Vec<String> = fs::read_dir(&folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| file.split_once('.').filter(|(_, rest)| *rest == "json").map(|(name, _)| name.to_owned()))
        .collect();
    names.sort();
    let mut different = 0;
    for name in &names {
        let scenario = folder.join(format!("{name}.json"));
        let theirs = command::output(Command::new(&python).arg(folder.join("oracle.py")).arg(&scenario))?;
        if record {
            fs::write(folder.join(format!("{name}.trace.json")), &theirs)?;
        }
        let ours = command::output(Command::new(&player).arg(&scenario))?;
        different += usize::from(differs(name, &theirs, &ours)?);
    }
    println!("{} of {} conversations went alike", names.len() - different, names.len());
    if different == 0 { Ok(()) } else { Err(format!("{different} conversations differ").into()) }
}

fn differs(name: &str, theirs: &str, ours: &str) -> Result<bool> {
    let (theirs, ours): (Value, Value) = (serde_json::from_str(theirs)?, serde_json::from_str(ours)?);
    let Some(difference) = difference::first(&theirs, &ours) else { return Ok(false) };
    println!("{name}: {difference:?}");
    Ok(true)
}
