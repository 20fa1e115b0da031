//! Suites that any store or cache must pass: run them on your own.
//!
//! A suite is a list of clauses. Each is a promise that superstep and its users rely on, and each is checked by itself on
//! a fresh store or cache. The [`Report`] names the clauses that failed, and how.

pub mod cache;
mod report;
pub mod store;

pub use self::report::{Failure, Report};
