//! The tests of superstep, through its public API.

mod cache;
mod compile_errors;
mod derive;
mod determinism;
mod die_everywhere;
mod draw;
mod faulty;
mod graph_settings;
mod recovery;
mod retry;
mod run_options;
mod store;
mod streams;
mod subgraphs;
mod support;
mod timeouts;
mod typed_equals_dynamic;
mod ui;
mod wide;
