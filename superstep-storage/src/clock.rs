//! The time that items in databases expire by.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What time it is for a store or a cache in a database.
///
/// Processes that share a database should agree on the time, to about what times to live may be wrong by.
///
/// ```
/// use std::time::Duration;
///
/// use superstep_storage::Clock;
///
/// let clock = Clock::manual();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), before + Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Clock(
    /// Microseconds since 1970, if it goes by hand.
    Option<Arc<AtomicI64>>,
);

impl Clock {
    /// The time of this machine.
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock for tests that starts now and goes only when it is told to. Clones go together.
    pub fn manual() -> Self {
        Self(Some(Arc::new(AtomicI64::new(microseconds(SystemTime::now())))))
    }

    /// Moves a clock that goes by hand; that of the machine goes by itself.
    pub fn advance(&self, duration: Duration) {
        if let Some(time) = &self.0 {
            time.fetch_add(duration.as_micros() as i64, Ordering::SeqCst);
        }
    }

    /// The time, in whole microseconds.
    pub fn now(&self) -> SystemTime {
        time_of(self.microseconds())
    }

    /// Microseconds since 1970.
    pub fn microseconds(&self) -> i64 {
        match &self.0 {
            Some(time) => time.load(Ordering::SeqCst),
            None => microseconds(SystemTime::now()),
        }
    }
}

/// The time of a number that a database holds.
pub fn time_of(microseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(microseconds.max(0) as u64)
}

/// A time to live in microseconds; `None` if it is for good, or ends after the end of time.
pub fn lifetime(ttl: Option<Duration>, now: i64) -> Option<i64> {
    let ttl = i64::try_from(ttl?.as_micros()).ok()?;
    now.checked_add(ttl).map(|_| ttl)
}

fn microseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
