//! Pages: cursors go through all items once, whatever is added and deleted meanwhile.

use serde_json::json;
use superstep::{Cursor, Filter, MemoryStore, SearchQuery, Store, StoreError, StoreOp};

use super::{Done, message, path_of, refused};

async fn numbers(count: u32) -> Result<MemoryStore, StoreError> {
    let store = MemoryStore::new();
    for number in 0..count {
        store.put(["n"], number.to_string(), json!({ "n": number, "text": format!("number {}", number % 3) })).await?;
    }
    Ok(store)
}

/// A page as `n/0 n/1`, and its cursor.
async fn page(store: &MemoryStore, query: &SearchQuery) -> Result<(String, Option<Cursor>), StoreError> {
    let page = store.search_page(query.clone()).await?;
    Ok((page.items.iter().map(path_of).collect::<Vec<_>>().join(" "), page.next))
}

#[tokio::test]
async fn cursors_go_through_all_items_once() -> Done {
    let store = numbers(7).await?;
    let mut query = SearchQuery::new(["n"]).limit(3);
    let mut pages = Vec::new();
    loop {
        let (items, next) = page(&store, &query).await?;
        pages.push(items);
        let Some(next) = next else { break };
        query = query.after(next);
    }
    assert_eq!(pages, ["n/0 n/1 n/2", "n/3 n/4 n/5", "n/6"]);
    Ok(())
}

#[tokio::test]
async fn the_last_page_has_no_cursor_even_if_it_is_full() -> Done {
    let store = numbers(4).await?;
    assert!(page(&store, &SearchQuery::new(["n"]).limit(4)).await?.1.is_none());
    let even = SearchQuery::new(["n"]).filter(Filter::one_of("n", [0, 1])).limit(2);
    assert!(page(&store, &even).await?.1.is_none());
    Ok(())
}

#[tokio::test]
async fn a_cursor_stays_right_while_items_come_and_go() -> Done {
    let store = numbers(6).await?;
    let query = SearchQuery::new(["n"]).limit(2);
    let (_, next) = page(&store, &query).await?;
    let query = query.after(next.expect("there are more"));
    store.delete(["n"], "0").await?;
    store.delete(["n"], "1").await?;
    store.delete(["n"], "3").await?;
    store.put(["n"], "2", json!("changed")).await?;
    store.put(["n"], "new", json!(1)).await?;
    assert_eq!(page(&store, &query).await?.0, "n/2 n/4");
    assert_eq!(page(&store, &query.limit(9)).await?.0, "n/2 n/4 n/5 n/new");
    Ok(())
}

#[tokio::test]
async fn a_cursor_of_a_ranked_search_stays_right_too() -> Done {
    let store = numbers(6).await?;
    let query = SearchQuery::new(["n"]).words("number 1").limit(3);
    let (first, next) = page(&store, &query).await?;
    assert_eq!(first, "n/1 n/4 n/0");
    let query = query.after(next.expect("there are more"));
    store.delete(["n"], "0").await?;
    store.put(["n"], "better", json!("number 1")).await?;
    store.put(["n"], "as good", json!("number 7")).await?;
    assert_eq!(page(&store, &query).await?.0, "n/2 n/3 n/5");
    assert_eq!(page(&store, &query.offset(2).limit(9)).await?.0, "n/5 n/as good");
    Ok(())
}

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
