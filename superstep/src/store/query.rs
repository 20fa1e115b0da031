//! What to look for in a store.
//!
//! Setters cannot fail; the store checks a query before it runs it.

use super::{Filter, Namespace, StoreError};

/// Which items a search returns.
///
/// ```
/// use superstep::{Filter, SearchQuery};
///
/// let query = SearchQuery::new(["notes"]).filter(Filter::eq("done", false)).limit(20).offset(40);
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
    /// The most items to return; 10 unless set.
    pub limit: usize,
    /// How many items to pass over first.
    pub offset: usize,
    /// Whether the search restarts the time to live of what it returns; `None` leaves it to the store.
    pub refresh_ttl: Option<bool>,
}

impl SearchQuery {
    /// The first 10 items under `prefix`.
    pub fn new(prefix: impl Into<Namespace>) -> Self {
        Self { prefix: prefix.into(), filter: Filter::default(), limit: 10, offset: 0, refresh_ttl: None }
    }

    /// Only items whose value passes `filter`. Replaces an earlier filter; join two with [`Filter::and`].
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
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

    /// Whether the search restarts the time to live of what it returns, whatever the store is set up for.
    pub fn refresh_ttl(mut self, refresh: bool) -> Self {
        self.refresh_ttl = Some(refresh);
        self
    }

    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        self.prefix.validate()?;
        self.filter.validate()
    }
}

impl Default for SearchQuery {
    /// The first 10 items of the whole store.
    fn default() -> Self {
        Self::new(Namespace::default())
    }
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
    pub(super) fn pick<'a>(&self, sorted: impl Iterator<Item = &'a Namespace>) -> Vec<Namespace> {
        let depth = self.max_depth.unwrap_or(usize::MAX);
        let mut picked: Vec<_> = sorted
            .filter(|namespace| namespace.starts_like(&self.prefix) && namespace.ends_like(&self.suffix))
            .map(|namespace| namespace.truncated(depth))
            .collect();
        // Cutting keeps the ascending order, so equal ones are neighbours.
        picked.dedup();
        picked.into_iter().skip(self.offset).take(self.limit).collect()
    }
}

impl Default for NamespaceQuery {
    fn default() -> Self {
        Self::new()
    }
}
