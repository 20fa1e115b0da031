//! A batch made ready: checked, defaults filled in, words found and vectors made.
//!
//! What can fail or wait before a store is touched does so here, the same for every store.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::index::{texts, words};
use super::rank::Ranking;
use super::words::words_of;
use super::{
    Indexing, Metric, Namespace, NamespaceQuery, Near, NewItem, PutIf, SearchQuery, StoreError, StoreIndex, StoreOp,
    TtlConfig,
};

/// How a store is set up.
///
/// ```
/// use superstep::MemoryStore;
/// use superstep::store::backend::StoreSetup;
///
/// let setup = StoreSetup::default();
/// let store = MemoryStore::new().with_ttl(setup.ttl).with_index(setup.index);
/// # drop(store);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoreSetup {
    /// How long items live.
    pub ttl: TtlConfig,
    /// What can be searched for.
    pub index: StoreIndex,
}

/// An op with nothing left to be decided.
#[derive(Debug)]
pub enum PreparedOp {
    /// To be answered with the item under a key.
    Get {
        /// Where it is.
        namespace: Namespace,
        /// Its name there.
        key: String,
        /// Whether its time to live starts anew.
        refresh: bool,
    },
    /// An item is put.
    Put(Box<PreparedPut>),
    /// What is under a key goes.
    Delete {
        /// Where it is.
        namespace: Namespace,
        /// Its name there.
        key: String,
    },
    /// To be answered with a page of items.
    Search(Box<PreparedSearch>),
    /// To be answered with namespaces, which a [`NamespaceList`](super::backend::NamespaceList) gathers.
    ListNamespaces(NamespaceQuery),
}

impl PreparedOp {
    /// Whether it changes the store. Writes come after all reads of the batch.
    pub fn is_write(&self) -> bool {
        matches!(self, Self::Put(_) | Self::Delete { .. })
    }
}

/// An item that is put, with all that can be searched for.
#[derive(Debug)]
#[non_exhaustive]
pub struct PreparedPut {
    /// Where it is put.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What is put.
    pub value: Value,
    /// How long it lives; for good, if there is none.
    pub ttl: Option<Duration>,
    /// What must hold before the batch; see [`PutIf::check`].
    pub only_if: PutIf,
    /// The distinct words that find it.
    pub words: BTreeSet<String>,
    /// The vectors that find it.
    pub vectors: Vec<Vec<f32>>,
}

/// A search.
#[derive(Debug)]
#[non_exhaustive]
pub struct PreparedSearch {
    /// What is searched for; its filter, limit and offset are for a [`PageBuilder`](super::backend::PageBuilder).
    pub query: SearchQuery,
    /// What items are ordered by; if there is none, by their first puts.
    pub ranking: Option<Ranking>,
    /// Whether the time to live of what is found starts anew.
    pub refresh: bool,
}

impl StoreSetup {
    /// Checks every op, fills defaults in, and makes all vectors of the batch in one call of the embedder.
    ///
    /// # Errors
    ///
    /// If an op is refused, or the embedder fails.
    pub async fn prepare(&self, ops: Vec<StoreOp>) -> Result<Vec<PreparedOp>, StoreError> {
        ops.iter().try_for_each(StoreOp::validate)?;
        let texts: Vec<Vec<String>> = ops.iter().map(|op| self.texts_of(op)).collect::<Result<_, _>>()?;
        let counts: Vec<usize> = texts.iter().map(Vec::len).collect();
        let mut vectors = self.embed(texts.concat()).await?.into_iter();
        let with_counts = ops.into_iter().zip(counts);
        with_counts.map(|(op, count)| self.prepare_op(op, vectors.by_ref().take(count).collect())).collect()
    }

    /// How many numbers the vectors have; none if there are no vectors.
    pub fn dimensions(&self) -> Option<usize> {
        self.index.embedder.as_ref().map(|embedder| embedder.dimensions())
    }

    /// How the nearness of two vectors is measured.
    pub fn metric(&self) -> Metric {
        self.index.metric
    }

    /// What has to be embedded for an op.
    fn texts_of(&self, op: &StoreOp) -> Result<Vec<String>, StoreError> {
        let embedder = self.index.embedder.as_ref();
        match op {
            StoreOp::Put(item) if embedder.is_some() => Ok(texts(&self.index.parts(&item.value, &item.indexing))),
            StoreOp::Search(query) => match &query.near {
                Some(_) if embedder.is_none() => Err(StoreError::NoEmbedder),
                Some(Near::Text(text)) => Ok(vec![text.clone()]),
                Some(Near::Vector(_)) | None => Ok(Vec::new()),
            },
            _ => Ok(Vec::new()),
        }
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, StoreError> {
        let Some(embedder) = self.index.embedder.as_ref().filter(|_| !texts.is_empty()) else { return Ok(Vec::new()) };
        let wanted = texts.len();
        let vectors = embedder.embed(texts).await.map_err(StoreError::Embedder)?;
        if vectors.len() != wanted {
            let words = format!("it gave {} vectors for {wanted} texts; it must give one for each", vectors.len());
            return Err(StoreError::Embedder(words.into()));
        }
        vectors.iter().try_for_each(|vector| self.check(vector, "mend the embedder"))?;
        Ok(vectors)
    }

    fn check(&self, vector: &[f32], advice: &'static str) -> Result<(), StoreError> {
        let wanted = self.dimensions().unwrap_or(0);
        if vector.len() != wanted || !vector.iter().all(|number| number.is_finite()) {
            return Err(StoreError::Vector { wanted, got: vector.len(), advice });
        }
        Ok(())
    }

    fn prepare_op(&self, op: StoreOp, vectors: Vec<Vec<f32>>) -> Result<PreparedOp, StoreError> {
        Ok(match op {
            StoreOp::Get { namespace, key, refresh_ttl } => {
                PreparedOp::Get { namespace, key, refresh: self.ttl.refreshes(refresh_ttl) }
            }
            StoreOp::Put(item) => PreparedOp::Put(Box::new(self.prepare_put(item, vectors))),
            StoreOp::Delete { namespace, key } => PreparedOp::Delete { namespace, key },
            StoreOp::Search(query) => {
                let refresh = self.ttl.refreshes(query.refresh_ttl);
                let ranking = self.ranking(&query, vectors.into_iter().next())?;
                PreparedOp::Search(Box::new(PreparedSearch { query, ranking, refresh }))
            }
            StoreOp::ListNamespaces(query) => PreparedOp::ListNamespaces(query),
        })
    }

    fn prepare_put(&self, item: NewItem, vectors: Vec<Vec<f32>>) -> PreparedPut {
        let words = match item.indexing {
            Indexing::Never => BTreeSet::new(),
            _ => words(&self.index.parts(&item.value, &item.indexing)),
        };
        let NewItem { namespace, key, value, ttl, only_if, .. } = item;
        PreparedPut { namespace, key, value, ttl: self.ttl.resolve(ttl), only_if, words, vectors }
    }

    fn ranking(&self, query: &SearchQuery, embedded: Option<Vec<f32>>) -> Result<Option<Ranking>, StoreError> {
        if !query.is_ranked() {
            return Ok(None);
        }
        let vector = match &query.near {
            Some(Near::Vector(vector)) => {
                self.check(vector, "search with a vector of the store's own embedder")?;
                Some(vector.clone())
            }
            _ => embedded,
        };
        let words = query.words.as_deref().map(|text| words_of(text).into_iter().collect());
        Ok(Some(Ranking { words, vector, metric: self.index.metric, words_weight: query.words_weight }))
    }
}
