//! A tour of superstep: an agent that draws itself, streams, asks, survives, and is rewound and forked.
//!
//! `cargo run --release` plays it. On a terminal it asks a question; elsewhere it answers by itself.

mod graph;
mod live;
mod screen;
mod script;
mod story;
mod world;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match story::play().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the tour stopped: {error}");
            ExitCode::FAILURE
        }
    }
}
