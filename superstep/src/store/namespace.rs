//! Where an item lives: a path of labels.
//!
//! A namespace is built without checks and checked by the store, so that building one cannot fail.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{StoreError, limits};

/// The label of a pattern that stands for any label.
const WILDCARD: &str = "*";

/// Root labels that no put may use.
const RESERVED_ROOTS: [&str; 2] = ["langgraph", "superstep"];

/// A path of labels under which items are kept, such as `["users", "ada"]`.
///
/// Labels are not empty, hold no `.` and no NUL, and are at most 1024 bytes together; the store refuses others. Prefixes go by whole labels: `["a"]` is
/// a prefix of `["a", "b"]` and not of `["ab"]`.
///
/// ```
/// use superstep::Namespace;
///
/// let users = Namespace::from(["users"]);
/// let ada = users.child("ada");
/// assert!(ada.starts_with(&users));
/// assert_eq!(ada.to_string(), "users.ada");
/// assert_eq!(ada.labels(), ["users", "ada"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Namespace(Vec<String>);

impl Namespace {
    /// The labels, root first.
    pub fn labels(&self) -> &[String] {
        &self.0
    }

    /// Whether there are no labels: the namespace above all others.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The namespace one label below this one.
    pub fn child(&self, label: impl Into<String>) -> Self {
        let mut labels = self.0.clone();
        labels.push(label.into());
        Self(labels)
    }

    /// Whether `prefix` is this namespace or one above it.
    pub fn starts_with(&self, prefix: &Namespace) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// The first `depth` labels.
    pub(crate) fn truncated(&self, depth: usize) -> Self {
        Self(self.0.iter().take(depth).cloned().collect())
    }

    /// Whether the first labels match those of `pattern`, in which `*` stands for any label.
    /// The labels before the first wildcard.
    pub(super) fn literal(&self) -> Self {
        Self(self.0.iter().take_while(|label| *label != WILDCARD).cloned().collect())
    }

    pub(crate) fn starts_like(&self, pattern: &Namespace) -> bool {
        self.0.get(..pattern.0.len()).is_some_and(|labels| are_like(labels, &pattern.0))
    }

    /// Whether the last labels match those of `pattern`, in which `*` stands for any label.
    pub(crate) fn ends_like(&self, pattern: &Namespace) -> bool {
        let start = self.0.len().checked_sub(pattern.0.len());
        start.is_some_and(|start| are_like(&self.0[start..], &pattern.0))
    }

    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        for (position, label) in self.0.iter().enumerate() {
            if label.is_empty() {
                return Err(StoreError::EmptyLabel { namespace: self.to_string(), position });
            }
            if label.contains('.') {
                return Err(StoreError::DotInLabel { label: label.clone() });
            }
            if label.contains('\0') {
                return Err(StoreError::NulInLabel { label: label.clone() });
            }
        }
        limits::namespace(self)
    }

    pub(crate) fn validate_for_put(&self, key: &str) -> Result<(), StoreError> {
        self.validate()?;
        match self.0.first() {
            None => Err(StoreError::EmptyNamespace { key: key.to_owned() }),
            Some(root) if RESERVED_ROOTS.contains(&root.as_str()) => {
                Err(StoreError::ReservedNamespace { label: root.clone() })
            }
            Some(_) => Ok(()),
        }
    }
}

fn are_like(labels: &[String], pattern: &[String]) -> bool {
    labels.iter().zip(pattern).all(|(label, wanted)| wanted == WILDCARD || label == wanted)
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl<const N: usize> From<[&str; N]> for Namespace {
    fn from(labels: [&str; N]) -> Self {
        Self(labels.map(str::to_owned).into())
    }
}

impl<const N: usize> From<[String; N]> for Namespace {
    fn from(labels: [String; N]) -> Self {
        Self(labels.into())
    }
}

impl<L: AsRef<str>> From<&[L]> for Namespace {
    fn from(labels: &[L]) -> Self {
        Self(labels.iter().map(|label| label.as_ref().to_owned()).collect())
    }
}

impl From<Vec<String>> for Namespace {
    fn from(labels: Vec<String>) -> Self {
        Self(labels)
    }
}

impl From<&Namespace> for Namespace {
    fn from(namespace: &Namespace) -> Self {
        namespace.clone()
    }
}
