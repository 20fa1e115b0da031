//! Where a page of a search ended.
//!
//! A cursor holds the place of an item in the order of the search, not a count, so what is added or deleted before it
//! moves nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::StoreError;

/// A place in the results of a search; the next page begins after it.
///
/// It can be carried as text, and used with the query it came from only.
///
/// ```
/// use superstep::{Cursor, MemoryStore, SearchQuery, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// for number in 0..5 {
///     store.put(["numbers"], number.to_string(), number).await?;
/// }
/// let query = SearchQuery::new(["numbers"]).limit(3);
/// let first = store.search_page(query.clone()).await?;
/// let cursor: Cursor = first.next.expect("there are more").to_string().parse()?;
///
/// store.delete(["numbers"], "0").await?;
/// let second = store.search_page(query.after(cursor)).await?;
/// assert_eq!(second.items.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), ["3", "4"]);
/// assert!(second.next.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    pub(crate) place: u64,
    /// The score in millionths, in a search that ranks.
    pub(crate) score: Option<i64>,
}

impl Cursor {
    /// The cursor after an item, by its place in the order of first puts and, in a search that ranks, its score in
    /// millionths; for those who write a [`Store`](crate::Store).
    pub fn new(place: u64, score: Option<i64>) -> Self {
        Self { place, score }
    }

    /// The place in the order of first puts.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// The score in millionths, in a search that ranks.
    pub fn score(&self) -> Option<i64> {
        self.score
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.score {
            None => write!(f, "{}", self.place),
            Some(score) => write!(f, "{}@{score}", self.place),
        }
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let bad = || StoreError::BadCursor { cursor: text.to_owned() };
        let (place, score) = match text.split_once('@') {
            None => (text, None),
            Some((place, score)) => (place, Some(score.parse().map_err(|_| bad())?)),
        };
        Ok(Self { place: place.parse().map_err(|_| bad())?, score })
    }
}

impl TryFrom<String> for Cursor {
    type Error = StoreError;

    fn try_from(text: String) -> Result<Self, StoreError> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}
