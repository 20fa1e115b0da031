//! Maps that many records have in common.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A map with texts as keys that clones share. It reads as a [`BTreeMap`]; an empty one takes no memory of its own.
///
/// ```
/// use std::collections::BTreeMap;
/// use superstep::SharedMap;
/// let map = SharedMap::from(BTreeMap::from([("user".to_owned(), 7)]));
/// assert_eq!(map.get("user"), Some(&7));
/// assert!(SharedMap::<i32>::default().is_empty());
/// ```
pub struct SharedMap<V: 'static>(Option<Arc<BTreeMap<String, V>>>);

impl<V> SharedMap<V> {
    const EMPTY: &'static BTreeMap<String, V> = &BTreeMap::new();

    /// Whether both are one map in memory, or both empty.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (own, others) => own.is_none() && others.is_none(),
        }
    }
}

impl<V: Clone> SharedMap<V> {
    /// The map, copied unless nobody else has it.
    ///
    /// ```
    /// use superstep::SharedMap;
    /// assert!(SharedMap::<i32>::default().into_map().is_empty());
    /// ```
    pub fn into_map(self) -> BTreeMap<String, V> {
        self.0.map(Arc::unwrap_or_clone).unwrap_or_default()
    }
}

impl<V> Deref for SharedMap<V> {
    type Target = BTreeMap<String, V>;
    fn deref(&self) -> &Self::Target {
        self.0.as_deref().unwrap_or(Self::EMPTY)
    }
}

impl<V> From<BTreeMap<String, V>> for SharedMap<V> {
    fn from(map: BTreeMap<String, V>) -> Self {
        Self((!map.is_empty()).then(|| Arc::new(map)))
    }
}

impl<V> Default for SharedMap<V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<V> Clone for SharedMap<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: PartialEq> PartialEq for SharedMap<V> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<V: Eq> Eq for SharedMap<V> {}

impl<V: fmt::Debug> fmt::Debug for SharedMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
