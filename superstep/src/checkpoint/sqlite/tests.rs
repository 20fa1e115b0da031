//! How SQLite goes about it: what a save looks up, and what an outline reads, is found by indices.

use rusqlite::types::Null;
use rusqlite::{Connection, params_from_iter};

use crate::CheckpointError;
use crate::database::sql::sqlite_checkpoints as sql;
use crate::database::{InDatabase, SqliteDatabase};

/// The steps of a statement's plan.
async fn plan(statement: &'static str) -> Vec<String> {
    let explain = move |connection: &Connection| {
        let explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}"));
        let mut explained = explained.in_database(connection)?;
        let values = vec![Null; explained.parameter_count()];
        let steps = explained.query_map(params_from_iter(values), |row| row.get(3)).in_database(connection)?;
        let steps: Result<Vec<String>, _> = steps.collect();
        Ok::<_, CheckpointError>(steps.in_database(connection)?)
    };
    let database = SqliteDatabase::memory().expect("a database");
    database.read(explain).await.expect("the statement can be explained")
}

#[tokio::test]
async fn a_save_looks_everything_up_by_indices() {
    let plan = plan(sql::LEASED).await;
    for step in [
        "SEARCH t USING INDEX sqlite_autoindex_superstep_threads_1 (name=?)",
        "SEARCH s USING INDEX sqlite_autoindex_superstep_spaces_1 (thread=? AND name=?) LEFT-JOIN",
        "SEARCH c USING COVERING INDEX superstep_checkpoints_by_id (space=? AND id=?)",
        "SEARCH p USING COVERING INDEX superstep_pending_by_task (space=? AND checkpoint=? AND task=?)",
    ] {
        assert!(plan.iter().any(|known| known == step), "{step}: {plan:?}");
    }
    assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:?}");
}

/// There is no limit on the rows: who asks stops when it has enough, and nothing is sorted before.
#[tokio::test]
async fn rows_are_read_downwards_in_the_order_of_their_index() {
    assert_eq!(plan(sql::ROWS_DOWN).await, ["SEARCH c USING INDEX superstep_checkpoints_by_id (space=? AND id<?)"]);
}
