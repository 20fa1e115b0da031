//! Items and namespaces as databases keep them.

use serde_json::Value;
use superstep::store::backend::{PageBuilder, Verdict};
use superstep::{Cursor, Item, Namespace, StoreError};

use crate::clock::time_of;

/// An item as it is in a table.
#[derive(Debug)]
pub struct Row {
    /// In the order of first puts.
    pub place: u64,
    /// The namespace.
    pub namespace: Vec<u8>,
    /// Its number in the database.
    pub key: String,
    /// As JSON.
    pub value: String,
    /// The number of its last put.
    pub version: u64,
    /// When it was made, in microseconds since 1970.
    pub created_at: i64,
    /// When it was last put, in microseconds since 1970.
    pub updated_at: i64,
    /// Whether it has a time to live, which a read may restart.
    pub expires: bool,
}

impl Row {
    /// The value.
    pub fn value(&self) -> Result<Value, StoreError> {
        serde_json::from_str(&self.value).map_err(StoreError::backend)
    }

    /// The item, with its value.
    pub fn into_item(self, value: Value) -> Result<Item, StoreError> {
        let namespace = namespace_of(&self.namespace)?;
        let mut item = Item::new(namespace, self.key, value, time_of(self.created_at));
        item.updated_at = time_of(self.updated_at);
        item.version = self.version;
        Ok(item)
    }
}

/// Offers an item to a page; whether the page wants more. Those that it takes are noted if they can expire.
pub fn offer(
    page: &mut PageBuilder<'_>,
    row: Row,
    cursor: Cursor,
    expiring: &mut Vec<u64>,
) -> Result<bool, StoreError> {
    let value = row.value()?;
    match page.judge(&value) {
        Verdict::Pass => {}
        Verdict::Take => {
            expiring.extend(row.expires.then_some(row.place));
            page.take(cursor, row.into_item(value)?);
        }
        Verdict::Stop => return Ok(false),
    }
    Ok(true)
}

/// The bytes of a namespace: each label, then a zero byte. They sort as namespaces do, and those of a namespace start
/// with those of the namespaces above it.
pub fn bytes_of(namespace: &Namespace) -> Vec<u8> {
    namespace.labels().iter().flat_map(|label| label.bytes().chain([0])).collect()
}

/// The namespace of such bytes.
pub fn namespace_of(bytes: &[u8]) -> Result<Namespace, StoreError> {
    let label = |label: &[u8]| std::str::from_utf8(label.strip_suffix(&[0]).unwrap_or(label)).map(str::to_owned);
    let labels: Result<Vec<String>, _> = bytes.split_inclusive(|byte| *byte == 0).map(label).collect();
    Ok(labels.map_err(StoreError::backend)?.into())
}

/// The bytes of a namespace and of all above it but the one above all.
pub fn scopes_of(namespace: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = namespace.iter().enumerate().filter(|(_, byte)| **byte == 0);
    ends.map(|(end, _)| &namespace[..=end])
}

/// Where the namespaces at `prefix` and below begin, and what is the first behind them, if anything is.
pub fn range_of(prefix: &Namespace) -> (Vec<u8>, Option<Vec<u8>>) {
    let start = bytes_of(prefix);
    let mut end = start.clone();
    // Bytes of a namespace end with a zero, and no label starts with one.
    let behind = end.last_mut().map(|last| *last = 1);
    (start, behind.map(|()| end))
}

/// A vector as bytes, the least significant first.
pub fn vector_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The vector of such bytes, into `vector`.
pub fn read_vector(bytes: &[u8], vector: &mut Vec<f32>) {
    let (numbers, _) = bytes.as_chunks::<4>();
    vector.clear();
    vector.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
}
