//! How long items live.

use std::time::Duration;

/// How long a put item lives.
///
/// ```
/// use std::time::Duration;
///
/// use superstep::Ttl;
///
/// assert_eq!(Ttl::from(Duration::from_secs(60)), Ttl::After(Duration::from_secs(60)));
/// assert_eq!(Ttl::default(), Ttl::Default);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ttl {
    /// As long as the store is set up for.
    #[default]
    Default,
    /// Until it is deleted.
    Never,
    /// This long after the put, or after the last read that refreshes it.
    After(Duration),
}

impl From<Duration> for Ttl {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

/// How long the items of a store live.
///
/// ```
/// use std::time::Duration;
///
/// use superstep::{MemoryStore, TtlConfig};
///
/// let a_day = Duration::from_secs(24 * 60 * 60);
/// let store = MemoryStore::new().with_ttl(TtlConfig { default: Some(a_day), refresh_on_read: false });
/// # drop(store);
/// assert!(TtlConfig::default().refresh_on_read);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlConfig {
    /// How long an item lives whose put does not say; `None`, the default, for until it is deleted.
    pub default: Option<Duration>,
    /// Whether a read restarts an item's time, unless the read says otherwise; true by default.
    pub refresh_on_read: bool,
}

impl Default for TtlConfig {
    fn default() -> Self {
        Self { default: None, refresh_on_read: true }
    }
}

impl TtlConfig {
    pub(super) fn resolve(self, ttl: Ttl) -> Option<Duration> {
        match ttl {
            Ttl::Default => self.default,
            Ttl::Never => None,
            Ttl::After(duration) => Some(duration),
        }
    }

    pub(super) fn refreshes(self, asked: Option<bool>) -> bool {
        asked.unwrap_or(self.refresh_on_read)
    }
}
