//! The same batches give the same answers on every store: versions, orders, scores, cursors and refusals included.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use superstep::{
    BoxError, Embedder, Filter, Indexing, Item, MemoryStore, Metric, Namespace, NamespaceQuery, NewItem, PutIf,
    SearchQuery, Store, StoreError, StoreIndex, StoreOp, StoreReply, Ttl, TtlConfig,
};
use superstep_sqlite::{SqliteDatabase, SqliteStore};
use superstep_storage::Clock;
use tokio::runtime::Runtime;

/// One thing that is done to every store.
#[derive(Debug, Clone)]
enum Step {
    Batch(Vec<StoreOp>),
    /// All pages of a query.
    Pages(SearchQuery),
    Wait(Duration),
}

/// Counts letters: near is what is written with the same ones.
struct Letters;

#[async_trait]
impl Embedder for Letters {
    fn dimensions(&self) -> usize {
        3
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
        let count = |text: &str, letter: char| text.chars().filter(|c| *c == letter).map(|_| 0.1).sum();
        Ok(texts.iter().map(|text| ['a', 'e', 'l'].map(|letter| count(text, letter)).to_vec()).collect())
    }
}

fn index() -> StoreIndex {
    StoreIndex::new().embedder(Letters).metric(Metric::Cosine)
}

const TTL: TtlConfig = TtlConfig { default: Some(Duration::from_secs(20)), refresh_on_read: true };

// What is tried.

fn namespace() -> impl Strategy<Value = Namespace> {
    select(vec![
        Namespace::from(["a"]),
        ["a", "b"].into(),
        ["a", "b", "c"].into(),
        ["ab"].into(),
        ["a!"].into(),
        ["ü", "'"].into(),
    ])
}

fn key() -> impl Strategy<Value = String> {
    select(vec!["1", "2", "3", "", "%' --"]).prop_map(str::to_owned)
}

fn leaf() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(-2.5),
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992.0),
        json!("ale tea"),
        json!("TEA and \u{1f375}"),
        json!("\0'"),
        json!("1"),
    ])
}

fn value() -> impl Strategy<Value = Value> {
    let part = || prop_oneof![4 => leaf(), 1 => vec(leaf(), 0..3).prop_map(Value::from)];
    let object = (part(), part(), part()).prop_map(|(x, y, z)| json!({ "x": x, "y": { "z": y }, "1.5": z }));
    prop_oneof![1 => leaf(), 4 => object]
}

fn filter() -> impl Strategy<Value = Filter> {
    let path = || select(vec!["x", "y.z", r"1\.5", "y", "x.1"]);
    let condition = (path(), 0..8, leaf(), leaf()).prop_map(|(path, kind, value, other)| match kind {
        0 => Filter::matching(path, value),
        1 => Filter::eq(path, value),
        2 => Filter::ne(path, value),
        3 => Filter::gt(path, value),
        4 => Filter::gte(path, value),
        5 => Filter::lt(path, value),
        6 => Filter::lte(path, value),
        _ => Filter::one_of(path, [value, other]),
    });
    condition.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and(b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.or(b)),
            inner.prop_map(Filter::negated),
        ]
    })
}

fn query() -> impl Strategy<Value = SearchQuery> {
    let prefix = prop_oneof![Just(Namespace::default()), namespace()];
    let ranking = 0..5;
    (prefix, proptest::option::of(filter()), ranking, 0..4usize, 0..3usize, any::<bool>()).prop_map(
        |(prefix, filter, ranking, limit, offset, refresh)| {
            let query = SearchQuery::new(prefix).filter(filter.unwrap_or_default()).limit(limit + 1).offset(offset);
            let query = query.refresh_ttl(refresh);
            match ranking {
                0 => query.words("tea, ale or 1"),
                1 => query.near("lea"),
                2 => query.words("tea").near(vec![1.0, 0.5, 0.0]).words_weight(0.25),
                _ => query,
            }
        },
    )
}

fn put() -> impl Strategy<Value = StoreOp> {
    let condition =
        prop_oneof![8 => Just(PutIf::Always), 1 => Just(PutIf::Absent), 1 => (0..40u64).prop_map(PutIf::Version)];
    let ttl = select(vec![Ttl::Default, Ttl::Never, Ttl::After(Duration::from_secs(5))]);
    let indexing =
        prop_oneof![4 => Just(Indexing::Default), 1 => Just(Indexing::Never), 1 => Just(Indexing::paths(["x", "y.*"]))];
    (namespace(), key(), value(), condition, ttl, indexing).prop_map(
        |(namespace, key, value, condition, ttl, indexing)| {
            StoreOp::Put(NewItem::new(namespace, key, value).only_if(condition).ttl(ttl).indexing(indexing))
        },
    )
}

fn list() -> impl Strategy<Value = StoreOp> {
    let pattern = || select(vec![vec![], vec!["a"], vec!["*"], vec!["*", "b"], vec!["c"]]);
    (pattern(), pattern(), proptest::option::of(1..3usize), 0..2usize).prop_map(|(prefix, suffix, depth, offset)| {
        let mut query = NamespaceQuery::new().prefix(&prefix[..]).suffix(&suffix[..]).limit(3).offset(offset);
        query.max_depth = depth;
        StoreOp::ListNamespaces(query)
    })
}

/// Either gets or listings: as in `LangGraph`, memory lists a namespace that was only asked for an item too.
fn op(lists: bool) -> impl Strategy<Value = StoreOp> {
    let get = (namespace(), key()).prop_map(|(namespace, key)| StoreOp::get(namespace, key));
    prop_oneof![
        6 => put(),
        2 => (namespace(), key()).prop_map(|(namespace, key)| StoreOp::delete(namespace, key)),
        2 => query().prop_map(StoreOp::Search),
        1 => if lists { list().boxed() } else { get.boxed() },
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = |lists: bool| {
        prop_oneof![
            6 => vec(op(lists), 1..6).prop_map(Step::Batch),
            3 => query().prop_map(Step::Pages),
            1 => (1..12u64).prop_map(|seconds| Step::Wait(Duration::from_secs(seconds))),
        ]
    };
    any::<bool>().prop_flat_map(move |lists| vec(step(lists), 1..30))
}

// What came of it, as text.

fn show_item(text: &mut String, item: &Item) {
    let Item { namespace, key, value, version, score, .. } = item;
    write!(text, " {namespace}/{key}={value} v{version} {score:?};").expect("text can be written");
}

fn show(reply: &StoreReply) -> String {
    let mut text = String::new();
    match reply {
        StoreReply::Item(item) => item.iter().for_each(|item| show_item(&mut text, item)),
        StoreReply::Page(page) => {
            page.items.iter().for_each(|item| show_item(&mut text, item));
            write!(text, " next {:?}", page.next).expect("text can be written");
        }
        other => write!(text, "{other:?}").expect("text can be written"),
    }
    text
}

/// The answer of one store to one step.
async fn answer(store: &Arc<dyn Store>, step: &Step) -> String {
    let shown = |result: Result<Vec<StoreReply>, StoreError>| match result {
        Ok(replies) => replies.iter().map(show).collect::<Vec<_>>().join("\n"),
        Err(error) => format!("refused: {error}"),
    };
    match step {
        Step::Batch(ops) => shown(store.batch(ops.clone()).await),
        Step::Wait(_) => String::new(),
        Step::Pages(query) => {
            let mut query = query.clone();
            let mut pages = Vec::new();
            loop {
                let replies = store.batch(vec![StoreOp::Search(query.clone())]).await;
                let next = replies.as_ref().ok().and_then(|replies| match &replies[0] {
                    StoreReply::Page(page) => page.next,
                    _ => None,
                });
                pages.push(shown(replies));
                let Some(next) = next else { break };
                query = query.after(next);
            }
            pages.join("\n")
        }
    }
}

/// A store, the runtime that it runs in, and how its time passes.
struct Side {
    name: &'static str,
    runtime: Arc<Runtime>,
    store: Arc<dyn Store>,
    clock: Option<Clock>,
}

impl Side {
    fn memory() -> Self {
        // Its time is that of tokio, which goes by hand; that of a database's connections must not.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let store = MemoryStore::new().with_ttl(TTL).with_index(index());
        Self { name: "memory", runtime: Arc::new(runtime.expect("a runtime")), store: Arc::new(store), clock: None }
    }

    fn sqlite(runtime: &Arc<Runtime>) -> Self {
        let clock = Clock::manual();
        let store = SqliteStore::new(&SqliteDatabase::memory().expect("a database")).with_clock(clock.clone());
        let store = Arc::new(store.with_ttl(TTL).with_index(index()));
        Self { name: "SQLite", runtime: Arc::clone(runtime), store, clock: Some(clock) }
    }

    fn take(&self, step: &Step) -> String {
        if let Step::Wait(time) = step {
            match &self.clock {
                Some(clock) => clock.advance(*time),
                None => self.runtime.block_on(tokio::time::advance(*time)),
            }
        }
        self.runtime.block_on(answer(&self.store, step))
    }
}

fn check(cases: u32, others: impl Fn() -> Vec<Side>) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&steps(), |steps| {
        let (memory, others) = (Side::memory(), others());
        for step in &steps {
            let wanted = memory.take(step);
            for other in &others {
                prop_assert_eq!(other.take(step), &*wanted, "{} answers otherwise to {:?}", other.name, step);
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn runtime() -> Arc<Runtime> {
    Arc::new(tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

#[test]
fn sqlite_answers_as_memory_does() {
    let runtime = runtime();
    check(128, || vec![Side::sqlite(&runtime)]);
}

#[test]
fn postgres_answers_as_memory_does() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use superstep_postgres::{PostgresDatabase, PostgresStore};

    let runtime = runtime();
    let address = crate::support::postgres::address();
    let made = AtomicUsize::new(0);
    check(32, || {
        let schema = format!("differential_{}_{}", std::process::id(), made.fetch_add(1, Ordering::Relaxed));
        let connecting = PostgresDatabase::builder(&address).schema(schema).pool_size(1).connect();
        let database = runtime.block_on(connecting).expect("the server can be reached");
        let clock = Clock::manual();
        let store = PostgresStore::new(&database).with_clock(clock.clone()).with_ttl(TTL).with_index(index());
        let side =
            Side { name: "PostgreSQL", runtime: Arc::clone(&runtime), store: Arc::new(store), clock: Some(clock) };
        vec![side, Side::sqlite(&runtime)]
    });
}
