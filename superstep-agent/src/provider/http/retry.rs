//! When a request that failed is sent again.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::Fault;
use crate::model::ModelErrorKind;

/// A provider that wants a longer pause is not waited for: the program is told instead.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The attempts at one answer. They share one deadline.
pub(super) struct Attempts {
    deadline: Instant,
    timeout: Duration,
    left: u32,
    failed: u32,
}

impl Attempts {
    pub(super) fn new(timeout: Duration, retries: u32) -> Self {
        Self { deadline: Instant::now() + timeout, timeout, left: retries, failed: 0 }
    }

    /// The outcome of some work, if it comes in time.
    pub(super) async fn in_time<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        match tokio::time::timeout_at(self.deadline, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.too_late()),
        }
    }

    /// Returns after a pause if the request may be sent again.
    pub(super) async fn after(&mut self, fault: Fault) -> Result<(), Fault> {
        let pause = fault.pause.unwrap_or_else(|| backoff(self.failed));
        let in_time = Instant::now() + pause < self.deadline;
        if !fault.again || self.left == 0 || pause > LONGEST_PAUSE || !in_time {
            return Err(fault);
        }
        self.left -= 1;
        self.failed += 1;
        tracing::debug!(kind = ?fault.kind, status = fault.status, ?pause, "asking the model again after a pause");
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn too_late(&self) -> Fault {
        let words = format!("no whole answer within {:?}; give it more with `timeout`", self.timeout);
        Fault::new(ModelErrorKind::Timeout, words).for_good()
    }
}

/// Half a second, doubled each time up to eight, less up to a quarter so that many do not come back at once.
fn backoff(failed: u32) -> Duration {
    let longest = 500 << failed.min(4);
    let chance = RandomState::new().hash_one(failed) % 250;
    Duration::from_millis(longest - longest * chance / 1000)
}

/// The pause that a `Retry-After` header asks for: seconds, or a date.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(value.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::{Duration, SystemTime, backoff, retry_after};

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_pause_is_told_in_seconds_or_as_a_date() {
        let check = |value, now, seconds: Option<f64>| {
            assert_eq!(retry_after(value, at(now)), seconds.map(Duration::from_secs_f64), "{value}");
        };
        check("3", 0, Some(3.0));
        check(" 0.5 ", 0, Some(0.5));
        check("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_770, Some(7.0));
        check("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_207_990, Some(10.0));
        check("Sun, 06 Nov 1994 08:49:37 GMT", 800_000_000, Some(0.0));
        check("-1", 0, None);
        check("soon", 0, None);
        check("Sun, 06 Nov 1994", 0, None);
        check("Sun, 06 Nov 1969 08:49:37 GMT", 0, None);
    }

    #[test]
    fn pauses_grow_up_to_eight_seconds() {
        for (failed, longest) in [(0, 500), (1, 1000), (2, 2000), (4, 8000), (30, 8000)] {
            let (pause, longest) = (backoff(failed), Duration::from_millis(longest));
            assert!(pause <= longest && pause >= longest * 3 / 4, "{pause:?}");
        }
    }
}
