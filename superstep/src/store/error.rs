//! What can go wrong in a store.
//!
//! Every message names the thing at fault and, where the caller can mend it, how.

use std::error::Error;

use super::Cursor;
use crate::error::{BoxError, shown_in_words};

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
#[derive(thiserror::Error)]
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

    /// A key holds a NUL character, which some databases cannot keep.
    #[error("key `{}` holds a NUL character; remove it", key.escape_debug())]
    NulInKey {
        /// The key.
        key: String,
    },

    /// A key or a namespace is longer than databases can index.
    #[error("{what} `{start}..` is longer than {limit} bytes; shorten it, and keep long names in the value")]
    TooLong {
        /// What it is: `key` or `namespace`.
        what: &'static str,
        /// How it starts.
        start: String,
        /// The most bytes it may have.
        limit: usize,
    },

    /// A value is nested too deeply to be read back.
    #[error("the value for key `{key}` is nested more than {limit} levels deep; flatten it")]
    TooDeep {
        /// The key that was put.
        key: String,
        /// The most levels it may have.
        limit: usize,
    },

    /// A put whose [`PutIf`](crate::PutIf) did not hold. Nothing of its batch was applied.
    #[error(
        "put of key `{key}` in namespace `{namespace}` was refused: it was to {} and {}; read it again",
        match wanted { Some(version) => format!("have version {version}"), None => "be absent".to_owned() },
        match found { Some(version) => format!("has version {version}"), None => "is absent".to_owned() },
    )]
    Conflict {
        /// The namespace, labels joined by dots.
        namespace: String,
        /// The key that was put.
        key: String,
        /// The version that was to be there; `None` for no item.
        wanted: Option<u64>,
        /// The version that was there; `None` for no item.
        found: Option<u64>,
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
    #[error("unknown operator `{operator}` for key `{key}`; use `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` or `$in`")]
    UnknownOperator {
        /// The key it is applied to.
        key: String,
        /// The operator.
        operator: String,
    },

    /// A filter joins filters in a way that does not exist.
    #[error(
        "unknown operator `{operator}`; join filters with `$and`, `$or` or `$not`, or write `\\{operator}` for a key"
    )]
    UnknownJoin {
        /// The operator.
        operator: String,
    },

    /// A filter joins something that is no list of filters.
    #[error("operator `{operator}` needs a list of filters, not `{operand}`")]
    JoinNeedsFilters {
        /// The operator.
        operator: &'static str,
        /// The operand as JSON.
        operand: String,
    },

    /// A filter uses an operator inside the value of a key.
    #[error(
        "operator `{operator}` is nested inside the value of key `{key}`; name the part by its path, as in `{key}.part`"
    )]
    NestedOperator {
        /// The key.
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

    /// The operator `$in` compares with something that is no list.
    #[error("operator `$in` for key `{key}` needs a list of values, not `{operand}`")]
    InNeedsList {
        /// The key it is applied to.
        key: String,
        /// The operand as JSON.
        operand: String,
    },

    /// A text is no cursor.
    #[error("`{cursor}` is no cursor; take the one that the page before came with")]
    BadCursor {
        /// The text.
        cursor: String,
    },

    /// A cursor of another kind of search.
    #[error("cursor `{cursor}` is not of this query; use it with the words and nearness that it came from")]
    ForeignCursor {
        /// The cursor.
        cursor: Cursor,
    },

    /// The weight of words is not between 0 and 1.
    #[error("the weight of words is `{weight}`; give one from 0 to 1")]
    WordsWeight {
        /// The weight.
        weight: f64,
    },

    /// A search by nearness in a store that makes no vectors.
    #[error("the store has no embedder to search by nearness with; give it one with `with_index`, or search by words")]
    NoEmbedder,

    /// The embedder failed, or what it gave cannot be used.
    #[error("the embedder failed")]
    Embedder(#[source] BoxError),

    /// A vector is not what the index is made of.
    #[error("a vector with {got} dimensions came where {wanted} finite numbers were due; {advice}")]
    Vector {
        /// How many numbers it should have.
        wanted: usize,
        /// How many it has.
        got: usize,
        /// What to mend.
        advice: &'static str,
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

shown_in_words!(StoreError);

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
