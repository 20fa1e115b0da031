//! What of an item can be searched for.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::path::step;
use super::words::words_inside;
use super::{Embedder, FieldPath, Indexing};

/// The key of a path that stands for every element of a list and every value of an object.
const EVERY: &str = "*";

/// What a store makes searchable of the values that are put: by words always, by nearness with an [`Embedder`].
///
/// ```
/// use superstep::{MemoryStore, Metric, SearchQuery, Store, StoreError, StoreIndex};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let index = StoreIndex::new().paths(["title", "comments.*.text"]).metric(Metric::Cosine);
/// let store = MemoryStore::new().with_index(index);
/// let note = serde_json::json!({ "title": "tea", "secret": "milk", "comments": [{ "text": "nice" }] });
/// store.put(["notes"], "1", note).await?;
///
/// assert_eq!(store.search(SearchQuery::new(["notes"]).words("nice tea")).await?.len(), 1);
/// assert_eq!(store.search(SearchQuery::new(["notes"]).words("milk")).await?.len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct StoreIndex {
    paths: Option<Vec<FieldPath>>,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) metric: Metric,
}

impl StoreIndex {
    /// The words of whole values, and no vectors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only these parts of a value. In a path, the key `*` stands for every element of a list and every value of an
    /// object; each is embedded by itself.
    pub fn paths(mut self, paths: impl IntoIterator<Item = impl Into<FieldPath>>) -> Self {
        self.paths = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// Makes vectors of what is put and of what is searched for.
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// How the nearness of two vectors is measured; [`Metric::Cosine`] unless set.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.metric = metric;
        self
    }

    /// The parts of `value` that can be searched for.
    pub(super) fn parts<'a>(&self, value: &'a Value, indexing: &Indexing) -> Vec<&'a Value> {
        let paths = match indexing {
            Indexing::Never => return Vec::new(),
            Indexing::Default => self.paths.as_deref(),
            Indexing::Paths(paths) => Some(paths.as_slice()),
        };
        match paths {
            None => vec![value],
            Some(paths) => paths.iter().flat_map(|path| parts_at(value, path.keys())).collect(),
        }
    }
}

impl fmt::Debug for StoreIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dimensions = self.embedder.as_ref().map(|embedder| embedder.dimensions());
        let mut shown = f.debug_struct("StoreIndex");
        shown.field("paths", &self.paths).field("dimensions", &dimensions).field("metric", &self.metric).finish()
    }
}

/// How the nearness of two vectors is measured.
///
/// ```
/// use superstep::Metric;
///
/// let (one, other) = ([1.0, 0.0], [2.0, 0.0]);
/// assert_eq!(Metric::Cosine.score(&one, &other), 1.0);
/// assert_eq!(Metric::Dot.score(&one, &other), 2.0);
/// assert_eq!(Metric::L2.score(&one, &other), 0.5);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The cosine of the angle between them: 1 for the same direction, 0 for a right angle or a vector of zeros.
    #[default]
    Cosine,
    /// Their dot product.
    Dot,
    /// One divided by one more than their distance: 1 for the same place, less the farther apart.
    L2,
}

impl Metric {
    /// How near two vectors are, greater is nearer. The sums are made in the order of the numbers, in 64 bits, so that
    /// every store comes to the same.
    pub fn score(self, left: &[f32], right: &[f32]) -> f64 {
        match self {
            Self::Dot => dot(left, right),
            Self::Cosine => {
                let lengths = (dot(left, left) * dot(right, right)).sqrt();
                if lengths > 0.0 { dot(left, right) / lengths } else { 0.0 }
            }
            Self::L2 => {
                let squares = left.iter().zip(right).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
                1.0 / (1.0 + squares.sum::<f64>().sqrt())
            }
        }
    }
}

fn dot(left: &[f32], right: &[f32]) -> f64 {
    left.iter().zip(right).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// The texts that are embedded: strings as they are, anything else as JSON.
pub(super) fn texts(parts: &[&Value]) -> Vec<String> {
    let text = |part: &&Value| match part {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    parts.iter().map(text).filter(|text| !text.is_empty()).collect()
}

pub(super) fn words(parts: &[&Value]) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    parts.iter().for_each(|part| words_inside(part, &mut words));
    words
}

fn parts_at<'a>(value: &'a Value, keys: &[String]) -> Vec<&'a Value> {
    let Some((key, rest)) = keys.split_first() else { return vec![value] };
    match value {
        Value::Array(elements) if key == EVERY => elements.iter().flat_map(|part| parts_at(part, rest)).collect(),
        Value::Object(object) if key == EVERY => object.values().flat_map(|part| parts_at(part, rest)).collect(),
        _ => step(value, key).map(|part| parts_at(part, rest)).unwrap_or_default(),
    }
}
