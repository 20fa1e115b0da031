//! Cursors: as text, and where they do not belong. What pages hold is a matter of the suite.

use serde_json::json;
use superstep::{Cursor, SearchQuery, StoreOp};

use super::{Done, message, refused};

#[tokio::test]
async fn a_cursor_is_carried_as_text() -> Done {
    for cursor in [Cursor::new(7, None), Cursor::new(8, Some(-250_000))] {
        assert_eq!(cursor.to_string().parse::<Cursor>()?, cursor);
        let json = serde_json::to_value(cursor).expect("a cursor is a string");
        assert_eq!(json, json!(cursor.to_string()));
        assert_eq!(serde_json::from_value::<Cursor>(json).expect("it is a cursor"), cursor);
    }
    for text in ["", "x", "1@", "-1", "1@2@3"] {
        let expected = format!("`{text}` is no cursor; take the one that the page before came with");
        assert_eq!(message(text.parse::<Cursor>()), expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_cursor_of_another_search_is_refused() {
    let advice = "is not of this query; use it with the words and nearness that it came from";
    let plain = SearchQuery::new(["n"]).after(Cursor::new(1, Some(5)));
    assert_eq!(refused(StoreOp::Search(plain)).await, format!("cursor `1@5` {advice}"));
    let ranked = SearchQuery::new(["n"]).words("x").after(Cursor::new(1, None));
    assert_eq!(refused(StoreOp::Search(ranked)).await, format!("cursor `1` {advice}"));
}
