//! The tests of superstep, through its public API.

mod cache;
mod draw;
mod store;
