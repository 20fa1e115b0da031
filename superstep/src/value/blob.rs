//! Encoded values, shared.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::SeqAccess;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The bytes of an encoded value. Clones share them; bytes that are made into a blob are copied once.
///
/// ```
/// use superstep::Blob;
/// let blob = Blob::from(b"as it was saved".as_slice());
/// assert_eq!(&*blob, b"as it was saved");
/// assert_eq!(blob, Blob::from(b"as it was saved".to_vec()));
/// ```
// Not over `Bytes`: records hold many, and that one is twice as large and takes a second piece of memory once it is shared.
// No bytes are none: all that is empty would count its owners in one place, and cores would fight over it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Blob(Option<Arc<[u8]>>);

impl Deref for Blob {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl From<Bytes> for Blob {
    fn from(bytes: Bytes) -> Self {
        Self::from(&*bytes)
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(&*bytes)
    }
}

impl From<Blob> for Bytes {
    fn from(blob: Blob) -> Self {
        blob.0.map(Bytes::from_owner).unwrap_or_default()
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BlobVisitor)
    }
}

struct BlobVisitor;

impl<'de> de::Visitor<'de> for BlobVisitor {
    type Value = Blob;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Blob, E> {
        Ok(bytes.into())
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Blob, E> {
        Ok(bytes.into())
    }

    /// As JSON has them.
    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Blob, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes.into())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Bytes::copy_from_slice(self), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_in_every_way_in_and_out() {
        for len in [0, 1, 1000] {
            let bytes = vec![7; len];
            let blob = Blob::from(&*bytes);
            assert_eq!(blob, Blob::from(bytes.clone()));
            assert_eq!(blob, Blob::from(Bytes::from(bytes.clone())));
            assert_eq!(Bytes::from(blob.clone()), bytes);
            assert_eq!(blob.to_vec(), bytes);
            let json = serde_json::to_string(&blob).unwrap();
            assert_eq!(serde_json::from_str::<Blob>(&json).unwrap(), blob);
        }
    }
}
