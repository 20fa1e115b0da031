//! Cached results as databases keep them, each bound to its key.

use bytes::Bytes;

use crate::Seal;

/// Seals the result that a cache keeps under a key.
pub fn seal_cached(seal: &Seal, namespace: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    seal.seal(&[b"cache", namespace, key], value)
}

/// The result under a key. What cannot be opened is not there: it is computed again, and kept with the seal of now.
pub fn open_cached(seal: &Seal, namespace: &[u8], key: &[u8], sealed: &[u8]) -> Option<Bytes> {
    match seal.open(&[b"cache", namespace, key], sealed) {
        Ok(value) => Some(value.into_owned().into()),
        Err(error) => {
            tracing::debug!(%error, "a cached result cannot be opened");
            None
        }
    }
}

/// The bytes of a namespace of a cache: its labels as a JSON list, so that no two namespaces have the same.
pub fn namespace_bytes(namespace: &[String]) -> Vec<u8> {
    serde_json::json!(namespace).to_string().into_bytes()
}
