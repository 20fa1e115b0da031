//! What can go wrong in a store.
//!
//! Every message names the thing at fault and, where the caller can mend it, how.

use std::error::Error;

/// Why a store refused or failed an operation.
///
/// ```
/// use superstep::{MemoryStore, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let refused = MemoryStore::new().put(["users.ada"], "drink", "tea").await.expect_err("a label has no dots");
/// assert_eq!(refused.to_string(), "namespace label `users.ada` holds a `.`; split it into two labels");
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A label of a namespace is the empty string.
    #[error("label {position} of namespace `{namespace}` is empty; give every label a name")]
    EmptyLabel {
        /// The whole namespace, labels joined by dots.
        namespace: String,
        /// Which label it is, counted from 0.
        position: usize,
    },

    /// A label of a namespace holds a dot, which separates labels.
    #[error("namespace label `{label}` holds a `.`; split it into two labels")]
    DotInLabel {
        /// The label.
        label: String,
    },

    /// A label of a namespace holds a NUL character, which some databases cannot keep.
    #[error("namespace label `{}` holds a NUL character; remove it", label.escape_debug())]
    NulInLabel {
        /// The label.
        label: String,
    },

    /// A put without a namespace.
    #[error("put of key `{key}` has an empty namespace; give it at least one label, as in `[\"memories\"]`")]
    EmptyNamespace {
        /// The key that was put.
        key: String,
    },

    /// A put under a root label that is kept for the library.
    #[error("root label `{label}` is reserved; start the namespace with a label of your own")]
    ReservedNamespace {
        /// The reserved label.
        label: String,
    },

    /// A filter is not a JSON object.
    #[error("filter `{filter}` is not an object; write `{{\"key\": value}}` or `{{\"key\": {{\"$gt\": value}}}}`")]
    FilterNotAnObject {
        /// The filter as JSON.
        filter: String,
    },

    /// A filter uses an operator that does not exist.
    #[error("unknown operator `{operator}` for key `{key}`; use `$eq`, `$ne`, `$gt`, `$gte`, `$lt` or `$lte`")]
    UnknownOperator {
        /// The key it is applied to.
        key: String,
        /// The operator.
        operator: String,
    },

    /// A filter uses an operator inside the value of a key.
    #[error("operator `{operator}` is nested inside the value of key `{key}`; operators apply to top-level keys only")]
    NestedOperator {
        /// The top-level key.
        key: String,
        /// The operator.
        operator: String,
    },

    /// An ordering operator compares with something that has no order.
    #[error("operator `{operator}` for key `{key}` needs a number or a string, not `{operand}`")]
    Unordered {
        /// The key it is applied to.
        key: String,
        /// The operator.
        operator: &'static str,
        /// The operand as JSON.
        operand: String,
    },

    /// The value of a put could not be turned into JSON.
    #[error("the value for key `{key}` cannot be written as JSON")]
    Encode {
        /// The key that was put.
        key: String,
        /// What the value said.
        source: serde_json::Error,
    },

    /// A stored value is not of the type that was asked for.
    #[error("the value of key `{key}` is not a `{wanted}`; read it as JSON with `get`")]
    Decode {
        /// The key that was read.
        key: String,
        /// The type that was asked for.
        wanted: &'static str,
        /// Where they differ.
        source: serde_json::Error,
    },

    /// A store answered an op with a reply of another kind; a fault in its [`Store::batch`](crate::Store::batch).
    #[error("the store answered with `{got}` where `{wanted}` was due; its `batch` must answer each op in its place")]
    UnexpectedReply {
        /// The kind of reply that was due.
        wanted: &'static str,
        /// The kind that came.
        got: &'static str,
    },

    /// A store gave too few or too many replies; a fault in its [`Store::batch`](crate::Store::batch).
    #[error("the store gave `{got}` replies where `{wanted}` were due; its `batch` must answer each op in its place")]
    ReplyCount {
        /// How many replies were due.
        wanted: usize,
        /// How many came.
        got: usize,
    },

    /// The database behind a store failed; see [`StoreError::backend`].
    #[error("the store's backend failed")]
    Backend(#[source] Box<dyn Error + Send + Sync>),
}

impl StoreError {
    /// Wraps the error of the database behind a store.
    ///
    /// ```
    /// use std::error::Error;
    ///
    /// use superstep::StoreError;
    ///
    /// let error = StoreError::backend("connection refused");
    /// assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("connection refused"));
    /// ```
    pub fn backend(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Backend(source.into())
    }
}
