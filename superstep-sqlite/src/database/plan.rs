//! How SQLite goes about a statement, for tests.

use rusqlite::types::Null;
use rusqlite::{Connection, params_from_iter};
use superstep_storage::DatabaseError;

use super::SqliteDatabase;
use crate::database::InDatabase;

/// The steps of a statement's plan, one after another.
pub(crate) async fn plan(statement: &'static str) -> String {
    let explain = move |connection: &Connection| {
        let explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}"));
        let mut explained = explained.in_database(connection)?;
        let values = vec![Null; explained.parameter_count()];
        let steps = explained.query_map(params_from_iter(values), |row| row.get(3)).in_database(connection)?;
        let steps: Result<Vec<String>, _> = steps.collect();
        Ok::<_, DatabaseError>(steps.in_database(connection)?.join("; "))
    };
    let database = SqliteDatabase::memory().expect("a database");
    database.read(explain).await.expect("the statement can be explained")
}
