//! How SQLite goes about it: what a save looks up, and what an outline reads, is found by indices.

use crate::database::plan::plan;
use crate::sql::checkpoints as sql;

#[tokio::test]
async fn a_save_looks_everything_up_by_indices() {
    let plan = plan(sql::LEASED).await;
    for step in [
        "SEARCH t USING INDEX sqlite_autoindex_superstep_threads_1 (name=?)",
        "SEARCH s USING INDEX sqlite_autoindex_superstep_spaces_1 (thread=? AND name=?) LEFT-JOIN",
        "SEARCH c USING COVERING INDEX superstep_checkpoints_by_id (space=? AND id=?)",
        "SEARCH p USING COVERING INDEX superstep_pending_by_task (space=? AND checkpoint=?)",
    ] {
        assert!(plan.split("; ").any(|known| known == step), "{step}: {plan}");
    }
    assert!(!plan.split("; ").any(|step| step.starts_with("SCAN")), "{plan}");
}

/// There is no limit on the rows: who asks stops when it has enough, and nothing is sorted before.
#[tokio::test]
async fn rows_are_read_downwards_in_the_order_of_their_index() {
    assert_eq!(plan(sql::ROWS_DOWN).await, "SEARCH c USING INDEX superstep_checkpoints_by_id (space=? AND id<?)");
}
