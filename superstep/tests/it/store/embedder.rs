//! What an embedder is asked and may give, and which searches are refused. What is found is a matter of the suite.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use superstep::{BoxError, Embedder, MemoryStore, SearchQuery, Store, StoreIndex, StoreOp};

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
    let store = MemoryStore::new().with_index(StoreIndex::new().embedder(Literal::default()));
    let refused = store.search(SearchQuery::default().near(vec![1.0])).await;
    let expected = "a vector with 1 dimensions came where 2 finite numbers were due; search with a vector of the \
                    store's own embedder";
    assert_eq!(message(refused), expected);
}

#[tokio::test]
async fn a_weight_is_from_nought_to_one() {
    for weight in [-0.1, 1.1, f64::NAN] {
        let message = refused(StoreOp::Search(SearchQuery::default().words_weight(weight))).await;
        assert_eq!(message, format!("the weight of words is `{weight}`; give one from 0 to 1"));
    }
}
