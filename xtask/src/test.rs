//! `cargo xtask test`: everything that must pass before a change is done.

use crate::{Result, command, conformance};

pub(crate) fn run() -> Result<()> {
    // Without a selection of targets, cargo runs the doc tests as well.
    command::run(command::cargo().args(["test", "--workspace", "--all-features"]))?;
    conformance::run(&conformance::Options::default())
}
