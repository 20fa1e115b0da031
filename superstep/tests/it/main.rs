//! The tests of superstep, through its public API.

mod cache;
mod derive;
mod determinism;
mod die_everywhere;
mod draw;
mod faulty;
mod retry;
mod store;
mod support;
mod timeouts;
mod typed_equals_dynamic;
mod ui;
mod wide;
