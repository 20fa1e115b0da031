//! Keys that nobody sees.

use std::fmt;

/// A key: it can be sent, and is shown nowhere.
///
/// ```
/// use superstep_agent::Secret;
/// let key = Secret::from("sk-very-secret");
/// assert_eq!(format!("{key:?}"), "Secret(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<&str> for Secret {
    fn from(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl From<String> for Secret {
    fn from(key: String) -> Self {
        Self(key)
    }
}
