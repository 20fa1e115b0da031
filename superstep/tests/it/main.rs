//! The tests of superstep, through its public API.

mod cache;
mod derive;
mod die_everywhere;
mod draw;
mod store;
mod support;
mod ui;
mod wide;
