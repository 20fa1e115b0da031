//! The tests of superstep, through its public API.

mod bad_input;
mod cache;
mod call_limits;
mod channels;
#[cfg(feature = "conformance")]
mod checkpointer_suite;
mod compile_errors;
mod context;
mod deep_values;
mod derive;
mod determinism;
mod die_everywhere;
mod die_inside;
mod drain;
mod draw;
mod edges;
mod error_steps;
mod event_metadata;
mod faulty;
mod forms;
mod functions;
#[cfg(all(feature = "fuzzing", feature = "sqlite"))]
mod fuzz_corpus;
mod given_contexts;
#[cfg(all(feature = "sqlite", feature = "conformance", feature = "compression", feature = "encryption"))]
mod golden;
mod graph_settings;
mod hidden_fields;
mod housekeeping;
mod incremental_reducers;
mod input_by_hand;
mod json_shown;
mod lease;
mod live_streams;
mod messages;
mod migrate;
#[cfg(feature = "conformance")]
mod model;
#[cfg(feature = "sqlite")]
mod moved_rows;
mod nesting;
mod panics;
mod parallel_saves;
mod parent_commands;
mod paths;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_saver;
mod pregel_nodes;
mod pushed_messages;
mod questions;
mod recovery;
mod reducer_panics;
mod retry;
mod rich_messages;
mod run_options;
mod save_queue;
#[cfg(feature = "fuzzing")]
mod seal;
#[cfg(all(feature = "encryption", any(feature = "sqlite", feature = "postgres")))]
mod sealed;
mod seeds;
mod shared_threads;
mod shown_when_saved;
mod spans;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_saver;
mod store;
mod streams;
mod subgraph_threads;
mod subgraphs;
mod support;
mod task_snapshots;
mod threads;
mod tidy;
mod time_travel;
mod timeouts;
mod tool_events;
#[cfg(any(feature = "postgres", all(feature = "sqlite", feature = "conformance")))]
mod trouble;
mod typed_equals_dynamic;
mod ui;
mod unknown_targets;
mod watched_equals_unwatched;
mod whole_states;
mod wide;
