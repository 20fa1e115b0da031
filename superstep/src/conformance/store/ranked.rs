//! Search by words and nearness.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{StoreMaker, StoreSetup, plain, refusal};
use crate::conformance::claims::same;
use crate::conformance::{Broken, Checked};
use crate::{BoxError, Embedder, Filter, Indexing, Metric, NewItem, SearchQuery, Store, StoreIndex, StoreOp};

/// Reads a text such as `1,0.5` as the vector itself; any other text is the zero vector.
struct Literal;

#[async_trait]
impl Embedder for Literal {
    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
        let read = |text: &String| {
            let numbers: Option<Vec<f32>> = text.split(',').map(|number| number.parse().ok()).collect();
            numbers.filter(|numbers| numbers.len() == 2).unwrap_or(vec![0.0, 0.0])
        };
        Ok(texts.iter().map(read).collect())
    }
}

async fn indexed(maker: &dyn StoreMaker, index: StoreIndex) -> Arc<dyn Store> {
    maker.make(StoreSetup { index: index.embedder(Literal), ..StoreSetup::default() }).await
}

async fn put_all(store: &Arc<dyn Store>, items: &[(&str, Value)]) -> Checked {
    for (key, value) in items {
        store.put(["n"], *key, value).await?;
    }
    Ok(())
}

/// The found keys with their scores in millionths.
async fn ranked(store: &Arc<dyn Store>, query: SearchQuery) -> Result<String, Broken> {
    let items = store.search(query).await?;
    let shown = items.iter().map(|item| format!("{} {:.6}", item.key, item.score.unwrap_or(f64::NAN)));
    Ok(shown.collect::<Vec<_>>().join(", "))
}

fn is(found: String, wanted: &str) -> Checked {
    same("order and scores", found, wanted.to_owned())
}

pub(super) async fn words_rank_by_their_number(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let items = [
        ("milk", json!("Milk, please")),
        ("both", json!({ "a": ["MILK"], "b": { "c": "and tea" } })),
        ("neither", json!({ "tea": "teapot" })),
        ("tea", json!("tea tea tea \u{c9}t\u{e9}")),
    ];
    put_all(&store, &items).await?;
    let query = |words: &str| SearchQuery::new(["n"]).words(words);
    is(ranked(&store, query("tea MILK")).await?, "both 1.000000, milk 0.500000, tea 0.500000")?;
    is(ranked(&store, query("tea tea soup \u{e9}t\u{e9}")).await?, "tea 0.666667, both 0.333333")?;
    for (words, wanted) in [("?!", ""), ("", ""), ("teapo", ""), ("b", ""), ("TeaPot", "neither 1.000000")] {
        is(ranked(&store, query(words)).await?, wanted)?;
    }
    is(ranked(&store, query("tea").filter(Filter::ne("b.c", "and tea"))).await?, "tea 1.000000")?;
    is(ranked(&store, query("tea").limit(1).offset(1)).await?, "tea 1.000000")?;
    is(ranked(&store, SearchQuery::new(["m"]).words("tea")).await?, "")
}

pub(super) async fn metrics_rank_by_nearness(maker: &dyn StoreMaker) -> Checked {
    let items = [("far", json!("9,9")), ("same way", json!("4,0")), ("close", json!("1,1")), ("zero", json!("0,0"))];
    let cases = [
        (Metric::Cosine, "same way 1.000000, far 0.707107, close 0.707107, zero 0.000000"),
        (Metric::Dot, "far 9.000000, same way 4.000000, close 1.000000, zero 0.000000"),
        (Metric::L2, "close 0.500000, zero 0.500000, same way 0.250000, far 0.076678"),
    ];
    for (metric, wanted) in cases {
        let store = indexed(maker, StoreIndex::new().metric(metric)).await;
        put_all(&store, &items).await?;
        is(ranked(&store, SearchQuery::new(["n"]).near("1,0")).await?, wanted)?;
        is(ranked(&store, SearchQuery::default().near(vec![1.0, 0.0])).await?, wanted)?;
    }
    Ok(())
}

pub(super) async fn words_and_nearness_together(maker: &dyn StoreMaker) -> Checked {
    let store = indexed(maker, StoreIndex::new().paths(["at", "text"])).await;
    let items = [
        ("near", json!({ "at": "1,0", "text": "coffee" })),
        ("worded", json!({ "at": "0,1", "text": "tea" })),
        ("both", json!({ "at": "1,1", "text": "tea" })),
        ("neither", json!({ "else": "tea" })),
    ];
    put_all(&store, &items).await?;
    let query = || SearchQuery::new(["n"]).words("tea").near("1,0");
    is(ranked(&store, query()).await?, "both 0.853553, near 0.500000, worded 0.500000")?;
    is(ranked(&store, query().words_weight(1.0)).await?, "worded 1.000000, both 1.000000, near 0.000000")?;
    is(ranked(&store, query().words_weight(0.0)).await?, "near 1.000000, both 0.707107, worded 0.000000")
}

pub(super) async fn puts_say_what_is_indexed(maker: &dyn StoreMaker) -> Checked {
    let store = indexed(maker, StoreIndex::new().paths(["a", "more.*"])).await;
    let value = || json!({ "a": "0,1", "b": "1,1", "more": ["0,1", "1,0"] });
    let put = |key: &str, indexing| StoreOp::Put(NewItem::new(["n"], key, value()).indexing(indexing));
    let ops = vec![
        put("default", Indexing::Default),
        put("b", Indexing::paths(["b"])),
        put("never", Indexing::Never),
        put("missing", Indexing::paths(["c"])),
    ];
    store.batch(ops).await?;
    is(ranked(&store, SearchQuery::new(["n"]).near("1,0")).await?, "default 1.000000, b 0.707107")?;
    is(ranked(&store, SearchQuery::new(["n"]).words("0")).await?, "default 1.000000")?;
    same("all items", store.search(SearchQuery::new(["n"])).await?.len(), 4)
}

pub(super) async fn an_overwritten_item_is_found_anew(maker: &dyn StoreMaker) -> Checked {
    let store = indexed(maker, StoreIndex::new()).await;
    put_all(&store, &[("1", json!("1,0")), ("2", json!("0,1")), ("1", json!("0,2"))]).await?;
    is(ranked(&store, SearchQuery::new(["n"]).near("0,1")).await?, "1 1.000000, 2 1.000000")?;
    is(ranked(&store, SearchQuery::new(["n"]).words("2")).await?, "1 1.000000")?;
    store.delete(["n"], "1").await?;
    is(ranked(&store, SearchQuery::new(["n"]).near("0,1").words("2")).await?, "2 0.500000")
}

/// Scores that differ by less than a millionth are ties.
pub(super) async fn ties_go_by_the_order_of_first_puts(maker: &dyn StoreMaker) -> Checked {
    let store = indexed(maker, StoreIndex::new().metric(Metric::Dot)).await;
    let items = [("b", "0.5,0"), ("a", "0.5000001,0"), ("d", "0.5,1"), ("c", "0.50001,0"), ("e", "-0.5,0")];
    put_all(&store, &items.map(|(key, at)| (key, json!(at)))).await?;
    let wanted = "c 0.500010, b 0.500000, a 0.500000, d 0.500000, e -0.500000";
    is(ranked(&store, SearchQuery::new(["n"]).near("1,0")).await?, wanted)
}

pub(super) async fn nearness_needs_an_embedder(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    refusal("nearness without an embedder", store.search(SearchQuery::new(["n"]).near("tea")).await)?;
    let store = indexed(maker, StoreIndex::new()).await;
    refusal("a vector of 3 dimensions", store.search(SearchQuery::new(["n"]).near(vec![1.0; 3])).await)?;
    refusal("an infinite vector", store.search(SearchQuery::new(["n"]).near(vec![f32::INFINITY, 0.0])).await)?;
    Ok(())
}
