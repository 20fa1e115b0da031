//! The engine: choose tasks, run them on one snapshot, apply what they wrote, commit.
//!
//! `tasks` and `apply` are pure: no clock, no randomness, no IO. `execute` is the only place
//! where user code runs. `run` is the loop, `save` the way to the checkpointer.

mod apply;
mod attempt;
mod begin;
mod bridge;
mod cached;
mod calls;
mod control;
mod emit;
mod execute;
mod inspect;
mod live;
mod paths;
mod revise;
mod run;
mod save;
mod saving;
mod seed;
mod tasks;
#[cfg(test)]
mod tests;
mod writes;

pub(crate) use attempt::AbortOnDrop;
pub(crate) use control::shape;
pub(crate) use inspect::{Looking, snapshot_of};
pub(crate) use revise::{Revision, revise};
pub(crate) use run::{DEFAULT_LIMIT, Ended, LoopConfig, RunInput, Running};
pub(crate) use save::{Reading, Saver};
pub(crate) use writes::is_reserved;
