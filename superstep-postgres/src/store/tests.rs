//! What pgvector finds is what a scan finds, on the server that `SUPERSTEP_TEST_POSTGRES` names.

use async_trait::async_trait;
use serde_json::json;
use superstep::{BoxError, Embedder, Filter, Metric, SearchPage, SearchQuery, Store, StoreIndex, StoreOp};

use super::PostgresStore;
use crate::{PostgresDatabase, VectorSearch};

const DIMENSIONS: usize = 4;

/// Makes a vector of a number: many are alike, some are the same, some are zero.
struct Scattered;

#[async_trait]
impl Embedder for Scattered {
    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
        let vector = |text: &String| {
            let number: u16 = text.parse()?;
            let coordinate = |ix: u16| f32::from((number * (7 + ix) + ix * ix) % 11) / 10.0 - 0.3;
            let coordinates = (0..DIMENSIONS as u16).map(coordinate);
            Ok(if number.is_multiple_of(37) { vec![0.0; DIMENSIONS] } else { coordinates.collect() })
        };
        texts.iter().map(vector).collect()
    }
}

/// A store with 500 vectors in a schema of its own; nothing if the server has no pgvector to offer.
async fn filled(schema: &str, metric: Metric) -> Option<PostgresStore> {
    let address = std::env::var("SUPERSTEP_TEST_POSTGRES");
    let address = address.expect("this test needs PostgreSQL: run it with `cargo xtask test`");
    let name = format!("{schema}_{}", std::process::id());
    let database = PostgresDatabase::builder(address).schema(name).connect().await.expect("the server can be reached");
    let client = database.client().await.expect("a connection");
    let offered = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'";
    if client.query_typed(offered, &[]).await.expect("an answer").is_empty() {
        eprintln!("the server has no pgvector: nothing to test");
        return None;
    }
    let create = "SELECT pg_advisory_xact_lock(7); CREATE EXTENSION IF NOT EXISTS vector SCHEMA public";
    client.batch_execute(create).await.expect("the extension can be created");
    let store = PostgresStore::new(&database);
    let index = StoreIndex::new().paths(["n"]).embedder(Scattered).metric(metric);
    let store = store.with_index(index);
    let put = |n: u32| {
        StoreOp::put(["n", if n.is_multiple_of(2) { "even" } else { "odd" }], n.to_string(), json!({ "n": n }))
    };
    store.batch((0..500).map(put).collect()).await.expect("the items can be put");
    Some(store)
}

async fn pages(store: &PostgresStore, mut query: SearchQuery) -> Vec<SearchPage> {
    let mut pages = Vec::new();
    loop {
        let page = store.search_page(query.clone()).await.expect("a page");
        let next = page.next;
        pages.push(page);
        let Some(next) = next else { return pages };
        query = query.after(next);
    }
}

#[tokio::test]
async fn pgvector_finds_what_a_scan_finds() {
    let Some(scan) = filled("pgvector", Metric::Cosine).await else { return };
    let pgvector = scan.clone().with_vector_search(VectorSearch::Pgvector).await.expect("pgvector is there");
    let near = |number: u32| SearchQuery::new(["n"]).near(number.to_string());
    let few = Filter::one_of("n", [3, 74, 499, 250, 12]);
    let queries = [
        near(1),
        near(1).limit(40),
        near(37).limit(7),
        near(2).offset(90).limit(30),
        near(5).filter(few).limit(2),
        SearchQuery::new(["n", "odd"]).near("9").limit(100),
        SearchQuery::new(["none"]).near("9"),
        near(8).words("8 9").limit(50),
    ];
    for query in queries {
        assert_eq!(pages(&pgvector, query.clone()).await, pages(&scan, query.clone()).await, "{query:?}");
    }
}

#[tokio::test]
async fn an_index_finds_the_nearest_with_every_metric() {
    for (metric, schema) in [(Metric::Cosine, "hnsw_cosine"), (Metric::Dot, "hnsw_dot"), (Metric::L2, "hnsw_l2")] {
        let Some(scan) = filled(schema, metric).await else { return };
        let indexed = scan.clone().with_vector_search(VectorSearch::Hnsw).await.expect("pgvector is there");
        let query = SearchQuery::new(["n"]).near("41").limit(5);
        let (found, wanted) = (indexed.search(query.clone()).await, scan.search(query).await);
        let scores = |items: Result<Vec<superstep::Item>, _>| -> Vec<Option<f64>> {
            items.expect("items are found").iter().map(|item| item.score).collect()
        };
        // The index is small enough to give all that there is.
        assert_eq!(scores(found), scores(wanted), "{metric:?}");
    }
}

#[tokio::test]
async fn an_index_needs_to_know_what_it_is_for() {
    let Some(store) = filled("hnsw_none", Metric::Cosine).await else { return };
    let bare = store.with_index(StoreIndex::new()).with_vector_search(VectorSearch::Hnsw).await;
    let refused = bare.expect_err("there is no embedder").to_string();
    assert!(refused.starts_with("the store has no embedder"), "{refused}");
}
