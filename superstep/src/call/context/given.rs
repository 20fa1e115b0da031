//! What the caller of a run gives its nodes by type.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A value shared with nodes by its type.
pub(crate) struct GivenContext {
    value: Arc<dyn Any + Send + Sync>,
    pub(crate) type_name: &'static str,
    was_taken: AtomicBool,
}

impl GivenContext {
    pub(crate) fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self { value: Arc::new(value), type_name: std::any::type_name::<T>(), was_taken: AtomicBool::new(false) }
    }

    pub(crate) fn is<T: Any>(&self) -> bool {
        (*self.value).is::<T>()
    }

    /// The value, if it is a `T`.
    pub(crate) fn take<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let taken = self.value.clone().downcast().ok()?;
        self.was_taken.store(true, Ordering::Relaxed);
        Some(taken)
    }

    pub(crate) fn was_taken(&self) -> bool {
        self.was_taken.load(Ordering::Relaxed)
    }
}

/// The type of context that JSON is read as.
#[derive(Clone)]
pub(crate) struct ContextType {
    pub(crate) read: fn(&Value) -> Result<GivenContext, serde_json::Error>,
    pub(crate) schema: Value,
}

impl ContextType {
    pub(crate) fn of<T: DeserializeOwned + Any + Send + Sync>(schema: Value) -> Self {
        Self { read: |value| T::deserialize(value).map(GivenContext::new), schema }
    }
}
