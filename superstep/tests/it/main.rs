//! The tests of superstep, through its public API.

mod bad_input;
mod cache;
mod compile_errors;
mod derive;
mod determinism;
mod die_everywhere;
mod die_inside;
mod draw;
mod faulty;
mod forms;
mod functions;
mod graph_settings;
mod parallel_saves;
mod questions;
mod recovery;
mod retry;
mod run_options;
mod store;
mod streams;
mod subgraphs;
mod support;
mod threads;
mod timeouts;
mod typed_equals_dynamic;
mod ui;
mod wide;
