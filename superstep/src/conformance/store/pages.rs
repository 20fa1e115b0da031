//! Search without words and nearness: order, prefixes, pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::{StoreMaker, find, names, plain, put_all};
use crate::conformance::claims::{holds, same};
use crate::conformance::{Broken, Checked};
use crate::{Cursor, Filter, SearchQuery, Store, StoreOp};

async fn numbers(maker: &dyn StoreMaker, count: u32) -> Result<Arc<dyn Store>, Broken> {
    let store = plain(maker).await;
    let put = |number: u32| {
        let value = json!({ "n": number, "text": format!("number {}", number % 3) });
        StoreOp::put(["n"], number.to_string(), value)
    };
    store.batch((0..count).map(put).collect()).await?;
    Ok(store)
}

async fn page(store: &Arc<dyn Store>, query: &SearchQuery) -> Result<(String, Option<Cursor>), Broken> {
    let page = store.search_page(query.clone()).await?;
    Ok((names(&page.items), page.next))
}

fn more(next: Option<Cursor>) -> Result<Cursor, Broken> {
    next.ok_or_else(|| Broken("there is more, and the page has no cursor".into()))
}

pub(super) async fn items_come_in_the_order_of_first_puts(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["b/9", "a/5", "b/1", "a/5", "b/9"]).await?;
    same("order", find(&store, SearchQuery::default()).await?, "b/9 a/5 b/1".to_owned())?;
    store.delete(["b"], "9").await?;
    put_all(&store, &["b/9"]).await?;
    same("order", find(&store, SearchQuery::default()).await?, "a/5 b/1 b/9".to_owned())?;
    let both = vec![StoreOp::delete(["a"], "5"), StoreOp::put(["a"], "5", json!(1))];
    store.batch(both).await?;
    same("order", find(&store, SearchQuery::default()).await?, "b/1 b/9 a/5".to_owned())
}

pub(super) async fn a_prefix_goes_by_whole_labels(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    put_all(&store, &["a/1", "ab/2", "a.b/3", "A/4", "b.a/5", "a.b.c/6", "a!/7", "a\u{1}/8"]).await?;
    same("below `a`", find(&store, SearchQuery::new(["a"])).await?, "a/1 a.b/3 a.b.c/6".to_owned())?;
    same("below `a.b`", find(&store, SearchQuery::new(["a", "b"])).await?, "a.b/3 a.b.c/6".to_owned())?;
    same("below `c`", find(&store, SearchQuery::new(["c"])).await?, String::new())?;
    same("all", store.search(SearchQuery::default()).await?.len(), 8)
}

pub(super) async fn limits_and_offsets(maker: &dyn StoreMaker) -> Checked {
    let store = numbers(maker, 12).await?;
    same("ten unless told", store.search(SearchQuery::new(["n"])).await?.len(), 10)?;
    same("a page", find(&store, SearchQuery::new(["n"]).limit(2).offset(3)).await?, "n/3 n/4".to_owned())?;
    same("past the end", find(&store, SearchQuery::new(["n"]).offset(12)).await?, String::new())?;
    same("none", page(&store, &SearchQuery::new(["n"]).limit(0)).await?, (String::new(), None))?;
    let huge = SearchQuery::new(["n"]).limit(usize::MAX).offset(11);
    same("a huge limit", find(&store, huge).await?, "n/11".to_owned())?;
    same("a huge offset", find(&store, SearchQuery::new(["n"]).offset(usize::MAX)).await?, String::new())
}

pub(super) async fn cursors_go_through_all_items_once(maker: &dyn StoreMaker) -> Checked {
    let store = numbers(maker, 7).await?;
    let mut query = SearchQuery::new(["n"]).limit(3);
    let mut pages = Vec::new();
    loop {
        let (items, next) = page(&store, &query).await?;
        pages.push(items);
        holds("pages come to an end", pages.len() < 10)?;
        let Some(next) = next else { break };
        query = query.after(next);
    }
    same("pages", pages.join("; "), "n/0 n/1 n/2; n/3 n/4 n/5; n/6".to_owned())?;
    let full = SearchQuery::new(["n"]).filter(Filter::one_of("n", [0, 1])).limit(2);
    same("a full last page", page(&store, &full).await?, ("n/0 n/1".to_owned(), None))
}

pub(super) async fn cursors_stay_right_while_items_come_and_go(maker: &dyn StoreMaker) -> Checked {
    let store = numbers(maker, 6).await?;
    let query = SearchQuery::new(["n"]).limit(2);
    let query = query.clone().after(more(page(&store, &query).await?.1)?);
    let changes = ["0", "1", "3"].map(|key| StoreOp::delete(["n"], key));
    store.batch(changes.into()).await?;
    store.put(["n"], "2", "changed").await?;
    store.put(["n"], "new", 1).await?;
    same("next page", page(&store, &query).await?.0, "n/2 n/4".to_owned())?;
    same("the rest", page(&store, &query.limit(9)).await?.0, "n/2 n/4 n/5 n/new".to_owned())
}

pub(super) async fn cursors_stay_right_in_ranked_searches(maker: &dyn StoreMaker) -> Checked {
    let store = numbers(maker, 6).await?;
    let query = SearchQuery::new(["n"]).words("number 1").limit(3);
    let (first, next) = page(&store, &query).await?;
    same("first page", first, "n/1 n/4 n/0".to_owned())?;
    let query = query.after(more(next)?);
    store.delete(["n"], "0").await?;
    store.put(["n"], "better", "number 1").await?;
    store.put(["n"], "as good", "number 7").await?;
    same("next page", page(&store, &query).await?.0, "n/2 n/3 n/5".to_owned())?;
    same("the rest", page(&store, &query.offset(2).limit(9)).await?.0, "n/5 n/as good".to_owned())
}

/// Whoever follows the cursor while others put must in the end have seen every item.
pub(super) async fn cursors_miss_nothing_that_is_put_meanwhile(maker: &dyn StoreMaker) -> Checked {
    const WRITERS: u32 = 4;
    const EACH: u32 = 15;
    let store = numbers(maker, 1).await?;
    let write = |writer: u32| {
        let store = store.clone();
        async move {
            for number in 0..EACH {
                store.put(["n", "w"], format!("{writer}-{number}"), number).await?;
            }
            Ok::<_, Broken>(())
        }
    };
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write(writer))).collect();
    let mut seen = BTreeSet::new();
    let mut query = SearchQuery::new(["n"]).limit(7);
    let mut pages = 0;
    while pages <= WRITERS * EACH {
        let all_done = writers.iter().all(|writer| writer.is_finished());
        let page = store.search_page(query.clone()).await?;
        seen.extend(page.items.into_iter().map(|item| item.key));
        match page.next {
            Some(next) => {
                query = query.after(next);
                pages += 1;
            }
            None if all_done => break,
            // The last page is read again until it is full.
            None => tokio::task::yield_now().await,
        }
    }
    for writer in writers {
        writer.await.map_err(|error| Broken(error.to_string()))??;
    }
    same("items seen", seen.len(), (1 + WRITERS * EACH) as usize)
}
