//! Ids: of checkpoints (ordered by time), of tasks and of interrupts (derived, so that a
//! resumed run finds the work it already did).

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU128;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::{Builder, Uuid};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

/// Names a checkpoint. Ids made later in one process are greater, and so are ids made after a thread was
/// loaded than those of the thread, even if the clock went back.
///
/// ```
/// use superstep::CheckpointId;
/// let id: CheckpointId = "1f0b2c3d-0000-6000-8000-000000000001".parse()?;
/// assert_eq!(id.to_string(), "1f0b2c3d-0000-6000-8000-000000000001");
/// # Ok::<(), superstep::InvalidId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(NonZeroU128);

/// Names a run. It is any text that its caller chose, or a random UUID.
///
/// ```
/// use superstep::RunId;
/// let chosen = RunId::from("try 1");
/// assert_eq!(chosen.as_str(), "try 1");
/// assert_ne!(RunId::random(), RunId::random());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

impl RunId {
    /// One that nobody has.
    pub fn random() -> Self {
        Self(random_uuid().into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl From<&str> for RunId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for RunId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl From<&RunId> for RunId {
    fn from(id: &RunId) -> Self {
        id.clone()
    }
}

impl AsRef<str> for RunId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Text that is not an id.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id: expected a UUID")]
pub struct InvalidId(String);

crate::error::shown_in_words!(InvalidId);

/// Makes the ids of the checkpoints of a run and of the graphs inside it. Each run has its own, so that runs on
/// several cores do not fight over one clock.
#[derive(Debug)]
pub(crate) struct IdSource {
    /// The tick of the newest id that was made or met.
    last: AtomicU64,
    /// 48 random bits: ids of other runs differ, even if they are made at the same time.
    node: u64,
}

impl IdSource {
    pub(crate) fn new() -> Self {
        let node = RandomState::new().build_hasher().finish() & 0xffff_ffff_ffff;
        Self { last: AtomicU64::new(0), node }
    }

    /// A new id, greater than all made or met before: a version 6 UUID.
    pub(crate) fn next(&self, step: i64) -> CheckpointId {
        let ticks = self.tick();
        let high = u128::from(ticks >> 28) & 0xffff_ffff;
        let mid = u128::from(ticks >> 12) & 0xffff;
        let low = u128::from(ticks) & 0x0fff;
        let sequence = (step as u128 & 0x3fff) | 0x8000;
        CheckpointId::from_u128(high << 96 | mid << 80 | (0x6000 | low) << 64 | sequence << 48 | u128::from(self.node))
    }

    /// 100-nanosecond ticks since 1582, never the same twice.
    fn tick(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = since.as_secs() * 10_000_000 + u64::from(since.subsec_nanos() / 100) + GREGORIAN;
        let last = self.last.fetch_max(now, Ordering::Relaxed);
        if now > last { now } else { self.last.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    /// Makes later ids greater than this one, which was made elsewhere or before the clock went back.
    pub(crate) fn met(&self, id: CheckpointId) {
        let is_version_6 = id.as_u128() >> 76 & 0xf == 6;
        // Ids beyond the year 3400 are no times: to count on from them would soon run out of numbers.
        if is_version_6 && id.ticks() >> 59 == 0 {
            self.last.fetch_max(id.ticks(), Ordering::Relaxed);
        }
    }
}

impl CheckpointId {
    /// The id from its number, as a checkpointer keeps it. No id has the number 0; it is taken for 1.
    pub fn from_u128(bits: u128) -> Self {
        Self(NonZeroU128::new(bits).unwrap_or(NonZeroU128::MIN))
    }

    /// The id as a number; numbers of later checkpoints are greater.
    pub fn as_u128(self) -> u128 {
        self.0.get()
    }

    fn ticks(self) -> u64 {
        let bits = self.as_u128();
        (bits >> 96 << 28 | (bits >> 80 & 0xffff) << 12 | bits >> 64 & 0x0fff) as u64
    }

    /// The time that a new id was made at.
    pub(crate) fn created_at(self) -> SystemTime {
        let since = self.ticks().saturating_sub(GREGORIAN);
        UNIX_EPOCH + Duration::new(since / 10_000_000, (since % 10_000_000) as u32 * 100)
    }
}

/// The ticks from the Gregorian calendar to the Unix epoch.
const GREGORIAN: u64 = 0x01b2_1dd2_1381_4000;

/// A random UUID, version 4. It names messages, which come many in a step, so its bits are a hash of secret keys and a
/// count, without a call of the system for each.
pub(crate) fn random_uuid() -> String {
    static SEED: OnceLock<[RandomState; 2]> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let seed = SEED.get_or_init(|| [RandomState::new(), RandomState::new()]);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = [0, 1].map(|i| u128::from(seed[i].hash_one(count)));
    Builder::from_random_bytes((high << 64 | low).to_be_bytes()).into_uuid().to_string()
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_u128(self.as_u128()), f)
    }
}

impl fmt::Debug for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_u128(self.as_u128()), f)
    }
}

impl serde::Serialize for CheckpointId {
    fn serialize<Z: serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for CheckpointId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for CheckpointId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let bits = Uuid::try_parse(text).ok().and_then(|uuid| NonZeroU128::new(uuid.as_u128()));
        bits.map(Self).ok_or_else(|| InvalidId(text.to_owned()))
    }
}

/// Names a task: the same work in the same checkpoint has the same id.
///
/// ```
/// # fn show(task: superstep::TaskId) { println!("{task}"); }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(crate) u128);

impl TaskId {
    /// The writer of what a caller brings along: commands and inputs.
    pub(crate) const NULL: TaskId = TaskId(0);

    /// The id of a task of `checkpoint`, from what tells it apart there.
    pub(crate) fn derive(checkpoint: Option<CheckpointId>, parts: &[&str]) -> Self {
        let mut hasher = Xxh3::new();
        hasher.update(&checkpoint.map_or(0, CheckpointId::as_u128).to_be_bytes());
        parts.iter().for_each(|p| hasher.update(p.as_bytes()));
        Self(hasher.digest128())
    }

    /// The same from numbers.
    pub(crate) fn of(checkpoint: CheckpointId, parts: [u64; 5]) -> Self {
        let mut bytes = [0; 56];
        bytes[..16].copy_from_slice(&checkpoint.as_u128().to_be_bytes());
        for (place, part) in bytes[16..].chunks_exact_mut(8).zip(parts) {
            place.copy_from_slice(&part.to_be_bytes());
        }
        Self(xxh3_128(&bytes))
    }

    /// The id from its number, as a checkpointer gave it.
    pub fn from_u128(bits: u128) -> Self {
        Self(bits)
    }

    /// The id as a number.
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_u128(self.0), f)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_u128(self.0), f)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uuid::try_parse(&text).map(|uuid| Self(uuid.as_u128())).map_err(|_| D::Error::custom(InvalidId(text)))
    }
}

/// A number that stands for a name in the ids of tasks.
pub(crate) fn name_key(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// The id of the question that a task asks after `answered` answers.
pub(crate) fn interrupt_id(task_namespace: &str, answered: usize) -> String {
    let hash = if answered == 0 {
        xxh3_128(task_namespace.as_bytes())
    } else {
        xxh3_128(format!("{task_namespace}|{answered}").as_bytes())
    };
    format!("{hash:032x}")
}
