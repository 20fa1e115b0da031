//! Encoded values: small ones in place, others shared.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The bytes of an encoded value. Clones share them; a few bytes are kept in place, without memory of their own. Bytes
/// that are made into a blob are copied once.
///
/// ```
/// use superstep::Blob;
/// let blob = Blob::from(b"as it was saved".as_slice());
/// assert_eq!(&*blob, b"as it was saved");
/// assert_eq!(blob, Blob::from(b"as it was saved".to_vec()));
/// ```
#[derive(Clone)]
pub struct Blob(Held);

/// Two bytes less than three words: records hold many blobs, and are kept by the thousand.
const SMALL: usize = 22;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Blob>() == 24);

#[derive(Clone)]
enum Held {
    Small { len: u8, bytes: [u8; SMALL] },
    Shared(Arc<[u8]>),
}

impl Blob {
    /// The bytes that lie in place, and how many of them count.
    pub(crate) fn small(&self) -> Option<(u8, &[u8; SMALL])> {
        match &self.0 {
            Held::Small { len, bytes } => Some((*len, bytes)),
            Held::Shared(_) => None,
        }
    }
}

impl Default for Blob {
    fn default() -> Self {
        Self(Held::Small { len: 0, bytes: [0; SMALL] })
    }
}

impl Deref for Blob {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Small { len, bytes } => &bytes[..usize::from(*len)],
            Held::Shared(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Blob {
    fn from(slice: &[u8]) -> Self {
        match slice.len() {
            len @ 0..=SMALL => {
                let mut bytes = [0; SMALL];
                bytes[..len].copy_from_slice(slice);
                Self(Held::Small { len: len as u8, bytes })
            }
            _ => Self(Held::Shared(slice.into())),
        }
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
        match blob.0 {
            Held::Small { .. } => Bytes::copy_from_slice(&blob),
            Held::Shared(bytes) => Bytes::from_owner(bytes),
        }
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

impl de::Visitor<'_> for BlobVisitor {
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
}

impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Blob {}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Bytes::copy_from_slice(self), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_shared_bytes_are_the_same_in_every_way_in_and_out() {
        for len in [0, SMALL, SMALL + 1, 1000] {
            let bytes = vec![7; len];
            let blob = Blob::from(&*bytes);
            assert_eq!(matches!(blob.0, Held::Small { .. }), len <= SMALL);
            assert_eq!(blob, Blob::from(bytes.clone()));
            assert_eq!(blob, Blob::from(Bytes::from(bytes.clone())));
            assert_eq!(Bytes::from(blob.clone()), bytes);
            assert_eq!(blob.clone().to_vec(), bytes);
        }
    }
}
