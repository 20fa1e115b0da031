//! What to look for in a store.
//!
//! Setters cannot fail; the store checks a query before it runs it.

use super::{Cursor, Filter, Item, Namespace, StoreError};

/// Which items a search returns.
///
/// Without words and nearness, items come in the order in which they were first put. With either, the best come first;
/// `docs/store.md` has the exact rules. Those of one score come in the order of first puts.
///
/// ```
/// use superstep::{Filter, SearchQuery};
///
/// let query = SearchQuery::new(["notes"]).filter(Filter::eq("done", false)).words("tea milk").limit(20);
/// assert_eq!(query.limit, 20);
/// assert_eq!(SearchQuery::default().limit, 10);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a query does nothing until a store runs it"]
#[non_exhaustive]
pub struct SearchQuery {
    /// Items under this namespace and those below it. Empty means all.
    pub prefix: Namespace,
    /// What the value must satisfy. Empty means anything.
    pub filter: Filter,
    /// Words to look for; see [`SearchQuery::words`].
    pub words: Option<String>,
    /// What to be near to; see [`SearchQuery::near`].
    pub near: Option<Near>,
    /// How much words count beside nearness, from 0 to 1; a half unless set.
    pub words_weight: f64,
    /// The most items to return; 10 unless set.
    pub limit: usize,
    /// How many items to pass over first.
    pub offset: usize,
    /// Where the page before ended.
    pub after: Option<Cursor>,
    /// Whether the search restarts the time to live of what it returns; `None` leaves it to the store.
    pub refresh_ttl: Option<bool>,
}

impl SearchQuery {
    /// The first 10 items under `prefix`.
    pub fn new(prefix: impl Into<Namespace>) -> Self {
        Self {
            prefix: prefix.into(),
            filter: Filter::default(),
            words: None,
            near: None,
            words_weight: 0.5,
            limit: 10,
            offset: 0,
            after: None,
            refresh_ttl: None,
        }
    }

    /// Only items whose value passes `filter`. Replaces an earlier filter; join two with [`Filter::and`].
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Items that hold at least one word of `text`, those with the most of its words first. The score is the share of
    /// its words that an item holds.
    ///
    /// ```
    /// use superstep::{MemoryStore, SearchQuery, Store, StoreError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StoreError> {
    /// let store = MemoryStore::new();
    /// store.put(["notes"], "1", "Bob likes milk").await?;
    /// store.put(["notes"], "2", "Ada likes tea").await?;
    ///
    /// let found = store.search(SearchQuery::new(["notes"]).words("who likes TEA?")).await?;
    /// assert_eq!(found.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), ["2", "1"]);
    /// assert_eq!(found[0].score, Some(0.666667));
    /// # Ok(())
    /// # }
    /// ```
    pub fn words(mut self, text: impl Into<String>) -> Self {
        self.words = Some(text.into());
        self
    }

    /// The items nearest to a text or a vector. The store needs an [`Embedder`](crate::Embedder) in its
    /// [`StoreIndex`](crate::StoreIndex).
    ///
    /// Together with [`words`](SearchQuery::words), items are found by either, and the score is the mean of both.
    pub fn near(mut self, target: impl Into<Near>) -> Self {
        self.near = Some(target.into());
        self
    }

    /// In a search by words and nearness, how much words count: the score is `weight` times the score by words and one
    /// less `weight` times that by nearness.
    pub fn words_weight(mut self, weight: f64) -> Self {
        self.words_weight = weight;
        self
    }

    /// At most `limit` items.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Passes over the first `offset` items that match.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Goes on where a page of the same query ended: [`SearchPage::next`].
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Whether the search restarts the time to live of what it returns, whatever the store is set up for.
    pub fn refresh_ttl(mut self, refresh: bool) -> Self {
        self.refresh_ttl = Some(refresh);
        self
    }

    /// Whether items are ordered by a score.
    pub fn is_ranked(&self) -> bool {
        self.words.is_some() || self.near.is_some()
    }

    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        self.prefix.validate()?;
        self.filter.validate()?;
        if !(0.0..=1.0).contains(&self.words_weight) {
            return Err(StoreError::WordsWeight { weight: self.words_weight });
        }
        match self.after {
            Some(cursor) if cursor.score.is_some() != self.is_ranked() => Err(StoreError::ForeignCursor { cursor }),
            _ => Ok(()),
        }
    }
}

impl Default for SearchQuery {
    /// The first 10 items of the whole store.
    fn default() -> Self {
        Self::new(Namespace::default())
    }
}

/// What a search is to be near to.
///
/// ```
/// use superstep::Near;
///
/// assert_eq!(Near::from("tea"), Near::Text("tea".into()));
/// assert_eq!(Near::from(vec![0.5, 1.0]), Near::Vector(vec![0.5, 1.0]));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Near {
    /// A text, which the store's embedder makes a vector of.
    Text(String),
    /// A vector of as many dimensions as the store's embedder makes.
    Vector(Vec<f32>),
}

impl From<&str> for Near {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Near {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<f32>> for Near {
    fn from(vector: Vec<f32>) -> Self {
        Self::Vector(vector)
    }
}

/// The items that a search found, and where to go on.
///
/// ```
/// use superstep::{MemoryStore, SearchQuery, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// store.put(["n"], "1", "tea").await?;
///
/// let page = store.search_page(SearchQuery::new(["n"])).await?;
/// assert_eq!(page.items.len(), 1);
/// assert!(page.next.is_none(), "there is nothing more");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchPage {
    /// The items, in the order of the search.
    pub items: Vec<Item>,
    /// Where the next page begins, if there is more.
    pub next: Option<Cursor>,
}

/// Which namespaces a listing returns.
///
/// In the prefix and the suffix, the label `*` stands for any one label.
///
/// ```
/// use superstep::{MemoryStore, Namespace, NamespaceQuery, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = MemoryStore::new();
/// store.put(["users", "ada", "notes"], "1", "tea").await?;
/// store.put(["users", "ada", "tasks"], "1", "brew").await?;
///
/// let query = NamespaceQuery::new().prefix(["users", "*"]).suffix(["notes"]);
/// assert_eq!(store.list_namespaces(query).await?, [Namespace::from(["users", "ada", "notes"])]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a query does nothing until a store runs it"]
#[non_exhaustive]
pub struct NamespaceQuery {
    /// The labels a namespace starts with. Empty means any.
    pub prefix: Namespace,
    /// The labels a namespace ends with. Empty means any.
    pub suffix: Namespace,
    /// Cut namespaces to this many labels, and name each result once.
    pub max_depth: Option<usize>,
    /// The most namespaces to return; 100 unless set.
    pub limit: usize,
    /// How many namespaces to pass over first.
    pub offset: usize,
}

impl NamespaceQuery {
    /// The first 100 namespaces.
    pub fn new() -> Self {
        Self { prefix: Namespace::default(), suffix: Namespace::default(), max_depth: None, limit: 100, offset: 0 }
    }

    /// Only namespaces that start with these labels.
    pub fn prefix(mut self, prefix: impl Into<Namespace>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Only namespaces that end with these labels.
    pub fn suffix(mut self, suffix: impl Into<Namespace>) -> Self {
        self.suffix = suffix.into();
        self
    }

    /// Cuts what matches to `depth` labels and names each result once. Prefix and suffix see the uncut namespace.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// At most `limit` namespaces.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Passes over the first `offset` namespaces.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        self.prefix.validate()?;
        self.suffix.validate()
    }

    /// Picks what this query asks for from namespaces in ascending order.
    pub(super) fn pick<'a>(&self, sorted: impl IntoIterator<Item = &'a Namespace>) -> Vec<Namespace> {
        let mut list = NamespaceList::new(self);
        for namespace in sorted {
            if !list.offer(namespace) {
                break;
            }
        }
        list.finish()
    }

    /// The labels that all namespaces of the answer begin with: those of the prefix before its first wildcard.
    ///
    /// ```
    /// use superstep::{Namespace, NamespaceQuery};
    ///
    /// let query = NamespaceQuery::new().prefix(["users", "*", "notes"]);
    /// assert_eq!(query.literal_prefix(), Namespace::from(["users"]));
    /// ```
    pub fn literal_prefix(&self) -> Namespace {
        self.prefix.literal()
    }
}

/// Takes namespaces in ascending order until it has what its query asks for.
///
/// ```
/// use superstep::store::backend::NamespaceList;
/// use superstep::{Namespace, NamespaceQuery};
///
/// let query = NamespaceQuery::new().max_depth(1);
/// let mut list = NamespaceList::new(&query);
/// for labels in [["notes", "ada"], ["notes", "bob"], ["users", "ada"]] {
///     assert!(list.offer(&labels.into()), "it wants more");
/// }
/// assert_eq!(list.finish(), [Namespace::from(["notes"]), Namespace::from(["users"])]);
/// ```
#[derive(Debug)]
pub struct NamespaceList<'a> {
    query: &'a NamespaceQuery,
    /// The last one that was counted, cut. Cutting keeps the order, so equal ones are neighbours.
    last: Option<Namespace>,
    passed: usize,
    picked: Vec<Namespace>,
}

impl<'a> NamespaceList<'a> {
    /// An empty list for this query.
    pub fn new(query: &'a NamespaceQuery) -> Self {
        Self { query, last: None, passed: 0, picked: Vec::new() }
    }

    /// Looks at the next namespace; whether it wants more.
    pub fn offer(&mut self, namespace: &Namespace) -> bool {
        if self.picked.len() >= self.query.limit {
            return false;
        }
        if !namespace.starts_like(&self.query.prefix) || !namespace.ends_like(&self.query.suffix) {
            return true;
        }
        let cut = namespace.truncated(self.query.max_depth.unwrap_or(usize::MAX));
        if self.last.as_ref() == Some(&cut) {
            return true;
        }
        self.last = Some(cut.clone());
        if self.passed < self.query.offset {
            self.passed += 1;
            return true;
        }
        self.picked.push(cut);
        true
    }

    /// The namespaces that were taken.
    pub fn finish(self) -> Vec<Namespace> {
        self.picked
    }
}

impl Default for NamespaceQuery {
    fn default() -> Self {
        Self::new()
    }
}
