//! How SQLite goes about it: what is read in order is neither sorted nor read whole.

use crate::database::plan::plan;
use crate::sql::store as sql;

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
