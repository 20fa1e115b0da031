//! What turns texts into vectors.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::BoxError;

/// Turns texts into vectors, near each other if the texts mean the like.
///
/// superstep calls no model: implement this with the one you use.
///
/// ```
/// use async_trait::async_trait;
/// use superstep::{BoxError, Embedder, MemoryStore, SearchQuery, Store, StoreError, StoreIndex};
///
/// /// How often each vowel occurs.
/// struct Vowels;
///
/// #[async_trait]
/// impl Embedder for Vowels {
///     fn dimensions(&self) -> usize {
///         5
///     }
///
///     async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
///         let count = |text: &str, vowel| text.chars().filter(|c| *c == vowel).map(|_| 1.0).sum();
///         Ok(texts.iter().map(|text| "aeiou".chars().map(|vowel| count(text, vowel)).collect()).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new().with_index(StoreIndex::new().embedder(Vowels));
/// store.put(["words"], "1", "banana").await?;
/// store.put(["words"], "2", "hobo").await?;
///
/// let found = store.search(SearchQuery::new(["words"]).near("cocoon")).await?;
/// assert_eq!(found[0].key, "2");
/// assert_eq!(found[0].score, Some(1.0));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// How many numbers each vector has.
    fn dimensions(&self) -> usize;

    /// A vector for each text, in its place. A batch of a store is one call.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError>;
}

#[async_trait]
impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn dimensions(&self) -> usize {
        (**self).dimensions()
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, BoxError> {
        (**self).embed(texts).await
    }
}
