//! Search by words, by nearness and by both: what is found, in which order, with which score.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use superstep::{
    BoxError, Embedder, Filter, Indexing, MemoryStore, Metric, NewItem, SearchQuery, Store, StoreError, StoreIndex,
    StoreOp,
};

use super::{Done, message, refused};

/// Reads a text such as `1,0.5` as the vector itself; any other text is the zero vector.
#[derive(Clone, Default)]
struct Literal {
    calls: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Embedder for Literal {
    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let read = |text: &String| {
            let numbers: Option<Vec<f32>> = text.split(',').map(|number| number.parse().ok()).collect();
            numbers.filter(|numbers| numbers.len() == 2).unwrap_or(vec![0.0, 0.0])
        };
        let vectors = texts.iter().map(read).collect();
        self.seen.lock().expect("no test panics with it").extend(texts);
        Ok(vectors)
    }
}

fn near_store(metric: Metric) -> MemoryStore {
    MemoryStore::new().with_index(StoreIndex::new().embedder(Literal::default()).metric(metric))
}

async fn put_all(store: &MemoryStore, items: &[(&str, Value)]) -> Done {
    for (key, value) in items {
        store.put(["n"], *key, value).await?;
    }
    Ok(())
}

/// The found keys with their scores.
async fn ranked(store: &MemoryStore, query: SearchQuery) -> Result<Vec<(String, f64)>, StoreError> {
    let items = store.search(query).await?;
    Ok(items.into_iter().map(|item| (item.key, item.score.expect("a ranked search has scores"))).collect())
}

fn is(found: &[(String, f64)], expected: &[(&str, f64)]) {
    let found: Vec<_> = found.iter().map(|(key, score)| (key.as_str(), *score)).collect();
    assert_eq!(found, expected);
}

/// The cosine of half a right angle, in millionths.
const DIAGONAL: f64 = 707_107.0 / 1e6;

// By words.

#[tokio::test]
async fn more_words_come_first_then_the_order_of_puts() -> Done {
    let store = MemoryStore::new();
    let items = [
        ("milk", json!("Milk, please")),
        ("both", json!({ "a": ["MILK"], "b": { "c": "and tea" } })),
        ("neither", json!("coffee")),
        ("tea", json!("tea tea tea")),
    ];
    put_all(&store, &items).await?;
    is(
        &ranked(&store, SearchQuery::new(["n"]).words("tea milk")).await?,
        &[("both", 1.0), ("milk", 0.5), ("tea", 0.5)],
    );
    Ok(())
}

#[tokio::test]
async fn words_are_whole_and_keys_are_none() -> Done {
    let store = MemoryStore::new();
    put_all(&store, &[("1", json!({ "drink": "teapot", "size": 12, "hot": true }))]).await?;
    for (words, count) in [("tea", 0), ("drink", 0), ("teapot", 1), ("12", 1), ("TRUE", 1), ("?!", 0), ("", 0)] {
        assert_eq!(store.search(SearchQuery::new(["n"]).words(words)).await?.len(), count, "{words}");
    }
    Ok(())
}

#[tokio::test]
async fn a_new_value_is_found_by_its_own_words_only() -> Done {
    let store = MemoryStore::new();
    put_all(&store, &[("1", json!("tea")), ("1", json!("milk"))]).await?;
    assert!(store.search(SearchQuery::new(["n"]).words("tea")).await?.is_empty());
    assert_eq!(store.search(SearchQuery::new(["n"]).words("milk")).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_filter_and_a_namespace_come_before_the_limit() -> Done {
    let store = MemoryStore::new();
    for number in 0..20 {
        store.put(["n", "x"], number.to_string(), json!({ "text": "tea", "n": number })).await?;
    }
    store.put(["m"], "other", json!({ "text": "tea", "n": 19 })).await?;
    let query = SearchQuery::new(["n"]).words("tea").filter(Filter::gte("n", 18)).limit(2);
    is(&ranked(&store, query).await?, &[("18", 1.0), ("19", 1.0)]);
    Ok(())
}

// By nearness.

#[tokio::test]
async fn each_metric_has_its_order() -> Done {
    let items = [("far", json!("9,9")), ("same way", json!("4,0")), ("close", json!("1,1")), ("zero", json!("0,0"))];
    let cases: [(Metric, &[(&str, f64)]); 3] = [
        (Metric::Cosine, &[("same way", 1.0), ("far", DIAGONAL), ("close", DIAGONAL), ("zero", 0.0)]),
        (Metric::Dot, &[("far", 9.0), ("same way", 4.0), ("close", 1.0), ("zero", 0.0)]),
        (Metric::L2, &[("close", 0.5), ("zero", 0.5), ("same way", 0.25), ("far", 0.076_678)]),
    ];
    for (metric, expected) in cases {
        let store = near_store(metric);
        put_all(&store, &items).await?;
        is(&ranked(&store, SearchQuery::new(["n"]).near("1,0")).await?, expected);
        is(&ranked(&store, SearchQuery::new(["n"]).near(vec![1.0, 0.0])).await?, expected);
    }
    Ok(())
}

#[tokio::test]
async fn the_nearest_of_several_vectors_counts() -> Done {
    let index = StoreIndex::new().paths(["best", "others.*"]).embedder(Literal::default());
    let store = MemoryStore::new().with_index(index);
    put_all(&store, &[("1", json!({ "others": ["0,1", "1,0"], "no": "1,0" })), ("2", json!({ "best": "1,1" }))])
        .await?;
    is(&ranked(&store, SearchQuery::new(["n"]).near("1,0")).await?, &[("1", 1.0), ("2", DIAGONAL)]);
    Ok(())
}

#[tokio::test]
async fn a_put_may_say_what_is_indexed() -> Done {
    let store = MemoryStore::new().with_index(StoreIndex::new().paths(["a"]).embedder(Literal::default()));
    let value = || json!({ "a": "1,0", "b": "0,1" });
    store.put_item(NewItem::new(["n"], "default", value())).await?;
    store.put_item(NewItem::new(["n"], "b", value()).indexing(Indexing::paths(["b"]))).await?;
    store.put_item(NewItem::new(["n"], "never", value()).indexing(Indexing::Never)).await?;
    is(&ranked(&store, SearchQuery::new(["n"]).near("1,0")).await?, &[("default", 1.0), ("b", 0.0)]);
    is(&ranked(&store, SearchQuery::new(["n"]).words("0 1")).await?, &[("default", 1.0), ("b", 1.0)]);
    assert_eq!(store.search(SearchQuery::new(["n"])).await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_batch_is_embedded_in_one_call() -> Done {
    let embedder = Literal::default();
    let store = MemoryStore::new().with_index(StoreIndex::new().embedder(embedder.clone()));
    let put = |key: &str, value: Value| StoreOp::put(["n"], key, value);
    let search = StoreOp::Search(SearchQuery::new(["n"]).near("0,1"));
    store.batch(vec![put("1", json!("1,0")), search, put("2", json!({ "a": 1 })), put("3", json!(null))]).await?;
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 1);
    assert_eq!(*embedder.seen.lock().expect("no test panics with it"), ["1,0", "0,1", r#"{"a":1}"#]);
    store.search(SearchQuery::new(["n"]).words("tea")).await?;
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 1);
    Ok(())
}

#[tokio::test]
async fn a_search_by_nearness_needs_an_embedder() {
    let message = refused(StoreOp::Search(SearchQuery::default().near("tea"))).await;
    let advice = "give it one with `with_index`, or search by words";
    assert_eq!(message, format!("the store has no embedder to search by nearness with; {advice}"));
}

/// Gives what it was made with.
struct Stuck(Result<Vec<Vec<f32>>, &'static str>);

#[async_trait]
impl Embedder for Stuck {
    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, _: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
        Ok(self.0.clone()?)
    }
}

#[tokio::test]
async fn what_a_broken_embedder_gives_is_refused_and_nothing_is_put() -> Done {
    let due = "came where 2 finite numbers were due";
    let cases = [
        (Err("no route to the model"), "the embedder failed: no route to the model".to_owned()),
        (Ok(vec![]), "the embedder failed: it gave 0 vectors for 1 texts; it must give one for each".to_owned()),
        (Ok(vec![vec![1.0]]), format!("a vector with 1 dimensions {due}; mend the embedder")),
        (Ok(vec![vec![1.0, f32::NAN]]), format!("a vector with 2 dimensions {due}; mend the embedder")),
    ];
    for (gives, expected) in cases {
        let store = MemoryStore::new().with_index(StoreIndex::new().embedder(Stuck(gives)));
        let error = store.put(["n"], "k", "tea").await.expect_err("the embedder is broken");
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        assert_eq!(format!("{error}{source}"), expected);
        assert!(store.get(["n"], "k").await?.is_none());
    }
    Ok(())
}

#[tokio::test]
async fn a_vector_of_other_dimensions_is_refused() {
    let store = near_store(Metric::Cosine);
    let refused = store.search(SearchQuery::default().near(vec![1.0])).await;
    let expected = "a vector with 1 dimensions came where 2 finite numbers were due; search with a vector of the \
                    store's own embedder";
    assert_eq!(message(refused), expected);
}

// By both.

#[tokio::test]
async fn words_and_nearness_are_weighed_against_each_other() -> Done {
    let index = StoreIndex::new().paths(["at", "text"]).embedder(Literal::default());
    let store = MemoryStore::new().with_index(index);
    let items = [
        ("near", json!({ "at": "1,0", "text": "coffee" })),
        ("worded", json!({ "at": "0,1", "text": "tea" })),
        ("both", json!({ "at": "1,1", "text": "tea" })),
    ];
    put_all(&store, &items).await?;
    let query = || SearchQuery::new(["n"]).words("tea").near("1,0");
    is(&ranked(&store, query()).await?, &[("both", 0.853_553), ("near", 0.5), ("worded", 0.5)]);
    is(&ranked(&store, query().words_weight(1.0)).await?, &[("worded", 1.0), ("both", 1.0), ("near", 0.0)]);
    is(&ranked(&store, query().words_weight(0.0)).await?, &[("near", 1.0), ("both", DIAGONAL), ("worded", 0.0)]);
    Ok(())
}

#[tokio::test]
async fn a_weight_is_from_nought_to_one() {
    for weight in [-0.1, 1.1, f64::NAN] {
        let message = refused(StoreOp::Search(SearchQuery::default().words_weight(weight))).await;
        assert_eq!(message, format!("the weight of words is `{weight}`; give one from 0 to 1"));
    }
}
