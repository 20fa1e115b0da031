//! What every store can keep: the limits of the database that has the tightest ones, the same everywhere.

use serde_json::Value;

use super::{Namespace, StoreError};
use crate::value::{DEEPEST, is_deeper};

/// `PostgreSQL` indexes rows of at most 2704 bytes; a namespace and a key are indexed together.
const LONGEST: usize = 1024;

pub(super) fn key(key: &str) -> Result<(), StoreError> {
    if key.contains('\0') {
        return Err(StoreError::NulInKey { key: key.to_owned() });
    }
    length("key", key.len(), key)
}

pub(super) fn namespace(namespace: &Namespace) -> Result<(), StoreError> {
    let bytes = namespace.labels().iter().map(|label| label.len() + 1).sum();
    length("namespace", bytes, &namespace.to_string())
}

pub(super) fn value(key: &str, value: &Value) -> Result<(), StoreError> {
    if is_deeper(value, DEEPEST) {
        return Err(StoreError::TooDeep { key: key.to_owned(), limit: DEEPEST });
    }
    Ok(())
}

fn length(what: &'static str, bytes: usize, text: &str) -> Result<(), StoreError> {
    if bytes > LONGEST {
        return Err(StoreError::TooLong { what, start: text.chars().take(20).collect(), limit: LONGEST });
    }
    Ok(())
}
