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
    Indexing, Namespace, NamespaceQuery, Near, NewItem, PutIf, SearchQuery, StoreError, StoreIndex, StoreOp, TtlConfig,
};

/// How a store is set up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setup {
    pub(crate) ttl: TtlConfig,
    pub(crate) index: StoreIndex,
}

/// An op with nothing left to be decided.
#[derive(Debug)]
pub(crate) enum Ready {
    Get { namespace: Namespace, key: String, refresh: bool },
    Put(Box<ReadyPut>),
    Delete { namespace: Namespace, key: String },
    Search(Box<ReadySearch>),
    ListNamespaces(NamespaceQuery),
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Ready {
    pub(crate) fn is_write(&self) -> bool {
        matches!(self, Self::Put(_) | Self::Delete { .. })
    }
}

#[derive(Debug)]
pub(crate) struct ReadyPut {
    pub(crate) namespace: Namespace,
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) ttl: Option<Duration>,
    pub(crate) only_if: PutIf,
    pub(crate) words: BTreeSet<String>,
    pub(crate) vectors: Vec<Vec<f32>>,
}

#[derive(Debug)]
pub(crate) struct ReadySearch {
    pub(crate) query: SearchQuery,
    pub(crate) ranking: Option<Ranking>,
    pub(crate) refresh: bool,
}

impl Setup {
    /// Checks every op, then makes all vectors of the batch in one call.
    pub(crate) async fn ready(&self, ops: Vec<StoreOp>) -> Result<Vec<Ready>, StoreError> {
        ops.iter().try_for_each(StoreOp::validate)?;
        let texts: Vec<Vec<String>> = ops.iter().map(|op| self.texts_of(op)).collect::<Result<_, _>>()?;
        let counts: Vec<usize> = texts.iter().map(Vec::len).collect();
        let mut vectors = self.embed(texts.concat()).await?.into_iter();
        let ready = ops.into_iter().zip(counts);
        ready.map(|(op, count)| self.ready_op(op, vectors.by_ref().take(count).collect())).collect()
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
        let wanted = self.index.embedder.as_ref().map_or(0, |embedder| embedder.dimensions());
        if vector.len() != wanted || !vector.iter().all(|number| number.is_finite()) {
            return Err(StoreError::Vector { wanted, got: vector.len(), advice });
        }
        Ok(())
    }

    fn ready_op(&self, op: StoreOp, vectors: Vec<Vec<f32>>) -> Result<Ready, StoreError> {
        Ok(match op {
            StoreOp::Get { namespace, key, refresh_ttl } => {
                Ready::Get { namespace, key, refresh: self.ttl.refreshes(refresh_ttl) }
            }
            StoreOp::Put(item) => Ready::Put(Box::new(self.ready_put(item, vectors))),
            StoreOp::Delete { namespace, key } => Ready::Delete { namespace, key },
            StoreOp::Search(query) => {
                let refresh = self.ttl.refreshes(query.refresh_ttl);
                let ranking = self.ranking(&query, vectors.into_iter().next())?;
                Ready::Search(Box::new(ReadySearch { query, ranking, refresh }))
            }
            StoreOp::ListNamespaces(query) => Ready::ListNamespaces(query),
        })
    }

    fn ready_put(&self, item: NewItem, vectors: Vec<Vec<f32>>) -> ReadyPut {
        let words = match item.indexing {
            Indexing::Never => BTreeSet::new(),
            _ => words(&self.index.parts(&item.value, &item.indexing)),
        };
        let NewItem { namespace, key, value, ttl, only_if, .. } = item;
        ReadyPut { namespace, key, value, ttl: self.ttl.resolve(ttl), only_if, words, vectors }
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
