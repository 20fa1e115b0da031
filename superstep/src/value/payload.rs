//! Values on their way to a node.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Blob, decode_in_place, decode_json, encode, encoding};
use crate::error::CodecError;
use crate::wall::drop_each;

/// A value on its way to a node: as it was sent, or as a checkpoint kept it.
///
/// ```
/// use superstep::Send;
/// let send = Send::new("work", 7u32);
/// assert_eq!(send.payload().get::<u32>()?, 7);
/// assert_eq!(send.payload().to_json()?, serde_json::json!(7));
/// # Ok::<(), superstep::CodecError>(())
/// ```
#[derive(Clone)]
pub struct Payload(Carried);

#[derive(Clone)]
enum Carried {
    Value(Held),
    Saved(Box<Blob>),
}

/// A value that was sent; there until it is dropped.
#[derive(Clone)]
struct Held(Option<Arc<dyn PayloadValue>>);

impl Drop for Held {
    fn drop(&mut self) {
        // Lists of sends may be dropped because one of them panicked. A second panic would end the process.
        if std::thread::panicking() {
            drop_each(self.0.take());
        }
    }
}

trait PayloadValue: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn encoded(&self) -> Result<Blob, CodecError>;
}

impl<T: Serialize + Send + Sync + 'static> PayloadValue for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn encoded(&self) -> Result<Blob, CodecError> {
        encode(self)
    }
}

impl Payload {
    pub(crate) fn new<T: Serialize + Send + Sync + 'static>(value: T) -> Self {
        Self(Carried::Value(Held(Some(Arc::new(value)))))
    }

    pub(crate) fn saved(bytes: Blob) -> Self {
        Self(Carried::Saved(Box::new(bytes)))
    }

    pub(crate) fn peek<T: 'static>(&self) -> Option<&T> {
        match &self.0 {
            Carried::Value(held) => (**held.0.as_ref()?).as_any().downcast_ref(),
            Carried::Saved(_) => None,
        }
    }

    /// Whether a checkpoint kept it: then its type is not known.
    pub(crate) fn is_saved(&self) -> bool {
        matches!(self.0, Carried::Saved(_))
    }

    /// The payload as a `T`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn get<T: Clone + DeserializeOwned + 'static>(&self) -> Result<T, CodecError> {
        match self.peek::<T>() {
            Some(value) => Ok(value.clone()),
            None => decode_in_place(&self.encoded()?),
        }
    }

    /// The payload as JSON.
    ///
    /// # Errors
    /// If it does not fit in JSON.
    pub fn to_json(&self) -> Result<Value, CodecError> {
        match self.peek::<Value>() {
            Some(value) => Ok(value.clone()),
            None => decode_json(&self.encoded()?),
        }
    }

    pub(crate) fn encoded(&self) -> Result<Blob, CodecError> {
        match &self.0 {
            Carried::Value(Held(Some(value))) => encoding(|| value.encoded()),
            Carried::Value(Held(None)) => Ok(Blob::default()),
            Carried::Saved(bytes) => Ok(Blob::clone(bytes)),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_json() {
            Ok(value) => write!(f, "Payload({value})"),
            Err(_) => f.write_str("Payload(..)"),
        }
    }
}
