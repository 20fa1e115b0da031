//! How SQLite goes about it: what is read in order is neither sorted nor read whole.

use rusqlite::types::Null;
use rusqlite::{Connection, params_from_iter};

use crate::StoreError;
use crate::database::sql::sqlite_store as sql;
use crate::database::{InDatabase, SqliteDatabase};

/// The steps of a statement's plan.
async fn plan(statement: &'static str) -> String {
    let explain = move |connection: &Connection| {
        let explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}"));
        let mut explained = explained.in_database(connection)?;
        let values = vec![Null; explained.parameter_count()];
        let steps = explained.query_map(params_from_iter(values), |row| row.get(3)).in_database(connection)?;
        let steps: Result<Vec<String>, _> = steps.collect();
        Ok::<_, StoreError>(steps.in_database(connection)?.join("; "))
    };
    let database = SqliteDatabase::memory().expect("a database");
    database.read(explain).await.expect("the statement can be explained")
}

#[tokio::test]
async fn a_page_of_a_prefix_is_read_from_its_scope_in_order() {
    let wanted = "SEARCH s USING PRIMARY KEY (scope=? AND place>?); SEARCH i USING INTEGER PRIMARY KEY (rowid=?)";
    assert_eq!(plan(sql::SCOPE_AFTER).await, wanted);
    let wanted = "SEARCH superstep_store_items USING INTEGER PRIMARY KEY (rowid>?)";
    assert_eq!(plan(sql::ALL_AFTER).await, wanted);
}

#[tokio::test]
async fn items_words_and_namespaces_are_found_by_indices() {
    for (statement, index) in [
        (sql::GET, "(namespace=? AND key=?)"),
        (sql::COUNT_WORDS, "SEARCH w USING PRIMARY KEY (word=?)"),
        (sql::NAMESPACES, "(namespace>?)"),
        (sql::EXPIRED, "superstep_store_items_expiry (expires_at<?)"),
        (sql::DELETE_WORDS, "superstep_store_words_place (place=?)"),
    ] {
        let plan = plan(statement).await;
        assert!(plan.contains(index), "`{index}` is not in `{plan}`");
        assert!(!plan.contains("SCAN superstep"), "{plan}");
    }
    assert!(!plan(sql::NAMESPACES).await.contains("TEMP B-TREE"), "they come in order");
}
