//! Lists that are mostly short.

use std::fmt;
use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

/// A list in a record. It reads as a slice; up to `N` entries lie in place, without memory of their own.
///
/// ```
/// use superstep::Few;
/// let mut list = Few::<_, 2>::from(vec!["a", "b"]);
/// list.push("c");
/// assert_eq!(*list, ["a", "b", "c"]);
/// let mut back: Few<_, 2> = list.into_iter().rev().collect();
/// assert_eq!(back.first(), Some(&"c"));
/// back.clear();
/// assert!(back.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Few<T, const N: usize>(SmallVec<[T; N]>);

impl<T, const N: usize> Few<T, N> {
    /// An empty list.
    pub fn new() -> Self {
        Self(SmallVec::new())
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: T) {
        self.0.push(entry);
    }

    /// Takes all entries out.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T, const N: usize> From<Vec<T>> for Few<T, N> {
    fn from(list: Vec<T>) -> Self {
        Self(list.into())
    }
}

impl<T, const N: usize> FromIterator<T> for Few<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<T, const N: usize> Extend<T> for Few<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl<T, const N: usize> IntoIterator for Few<T, N> {
    type Item = T;
    type IntoIter = FewIntoIter<T, N>;
    fn into_iter(self) -> Self::IntoIter {
        FewIntoIter(self.0.into_iter())
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a Few<T, N> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a mut Few<T, N> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Few<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Fills a list anew: entries that are there are changed, and not made again.
pub(crate) struct Refill<'a, T, const N: usize> {
    list: &'a mut Few<T, N>,
    filled: usize,
}

impl<'a, T, const N: usize> Refill<'a, T, N> {
    /// Goes on after so many entries.
    pub(crate) fn after(list: &'a mut Few<T, N>, filled: usize) -> Self {
        Self { list, filled }
    }

    /// The next entry, if there is one to change.
    pub(crate) fn slot(&mut self) -> Option<&mut T> {
        let slot = self.list.0.get_mut(self.filled)?;
        self.filled += 1;
        Some(slot)
    }

    /// Puts the next entry in.
    pub(crate) fn put(&mut self, entry: T) {
        match self.slot() {
            Some(slot) => *slot = entry,
            None => {
                self.list.push(entry);
                self.filled += 1;
            }
        }
    }

    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Leaves out the entries that were not filled.
    pub(crate) fn end(self) {
        self.list.0.truncate(self.filled);
    }
}

/// The entries of a [`Few`], one after another.
///
/// ```
/// use superstep::{Few, FewIntoIter};
/// let entries: FewIntoIter<i32, 1> = Few::from(vec![1, 2]).into_iter();
/// assert_eq!(entries.sum::<i32>(), 3);
/// ```
#[derive(Debug, Clone)]
pub struct FewIntoIter<T, const N: usize>(smallvec::IntoIter<[T; N]>);

impl<T, const N: usize> Iterator for FewIntoIter<T, N> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        self.0.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T, const N: usize> DoubleEndedIterator for FewIntoIter<T, N> {
    fn next_back(&mut self) -> Option<T> {
        self.0.next_back()
    }
}

impl<T, const N: usize> ExactSizeIterator for FewIntoIter<T, N> {}
