//! Search: which items are found, in which order, and how many.

use serde_json::json;
use superstep::{Filter, MemoryStore, SearchQuery, Store, StoreOp};

use super::{Done, find, refused, store_of};

#[tokio::test]
async fn a_search_goes_by_whole_labels_and_case() -> Done {
    let store = store_of(&["a/1", "ab/2", "a.b/3", "A/4", "b.a/5"]).await?;
    assert_eq!(find(&store, SearchQuery::new(["a"])).await?, "a/1 a.b/3");
    assert_eq!(find(&store, SearchQuery::new(["a", "b"])).await?, "a.b/3");
    assert_eq!(find(&store, SearchQuery::default()).await?, "a/1 ab/2 a.b/3 A/4 b.a/5");
    Ok(())
}

#[tokio::test]
async fn items_are_found_in_the_order_of_their_first_put() -> Done {
    let store = store_of(&["b/9", "a/5", "b/1", "a/5"]).await?;
    store.put(["b"], "9", 0).await?;
    assert_eq!(find(&store, SearchQuery::default()).await?, "b/9 a/5 b/1");
    store.delete(["b"], "9").await?;
    store.put(["b"], "9", 0).await?;
    assert_eq!(find(&store, SearchQuery::default()).await?, "a/5 b/1 b/9");
    Ok(())
}

#[tokio::test]
async fn a_search_returns_ten_items_unless_told() -> Done {
    let paths: Vec<_> = (0..12).map(|key| format!("n/{key}")).collect();
    let store = store_of(&paths.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    assert_eq!(store.search(SearchQuery::new(["n"])).await?.len(), 10);
    assert_eq!(store.search(SearchQuery::new(["n"]).limit(11)).await?.len(), 11);
    assert_eq!(find(&store, SearchQuery::new(["n"]).limit(2).offset(3)).await?, "n/3 n/4");
    assert_eq!(find(&store, SearchQuery::new(["n"]).offset(12)).await?, "");
    assert_eq!(find(&store, SearchQuery::new(["n"]).limit(0)).await?, "");
    Ok(())
}

#[tokio::test]
async fn limit_and_offset_count_what_passes_the_filter() -> Done {
    let store = MemoryStore::new();
    for number in 0..20 {
        store.put(["n"], number.to_string(), json!({ "even": number % 2 == 0 })).await?;
    }
    let even = SearchQuery::new(["n"]).filter(Filter::eq("even", true));
    assert_eq!(find(&store, even.limit(3).offset(1)).await?, "n/2 n/4 n/6");
    Ok(())
}

#[tokio::test]
async fn a_filter_that_compares_with_a_list_is_refused_by_the_search() {
    let message = refused(StoreOp::Search(SearchQuery::default().filter(Filter::lte("k", vec![1])))).await;
    assert_eq!(message, "operator `$lte` for key `k` needs a number or a string, not `[1]`");
}
