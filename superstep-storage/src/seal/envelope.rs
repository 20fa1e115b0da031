//! The bytes in front of a body, and the checksum of bodies that are not encrypted.

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::SealError;
use super::context::{Context, ContextHash};

const FORMAT: u8 = 1;
const CHECKSUM: usize = 16;

/// Format, flags and mark.
const START: usize = 6;

/// What was done to a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const COMPRESSED: Self = Self(1);
    #[cfg(feature = "encryption")]
    pub(super) const ENCRYPTED: Self = Self(2);
    const KNOWN: u8 = 3;

    pub(super) fn is_compressed(self) -> bool {
        self.0 & 1 != 0
    }

    pub(super) fn is_encrypted(self) -> bool {
        self.0 & 2 != 0
    }

    #[cfg(feature = "encryption")]
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A sealed value whose beginning was read. Nothing of it is to be trusted yet.
pub(super) struct Envelope<'a> {
    pub(super) flags: Flags,
    mark: [u8; 4],
    pub(super) sealed: &'a [u8],
}

impl<'a> Envelope<'a> {
    pub(super) fn read(sealed: &'a [u8]) -> Result<Self, SealError> {
        match sealed.first() {
            Some(&found) if found > FORMAT => return Err(SealError::NewerFormat { found, known: FORMAT }),
            Some(&FORMAT) => {}
            _ => return Err(SealError::damaged("it does not begin with a format")),
        }
        let [_, flags, mark @ ..] = *sealed.first_chunk::<START>().ok_or(TOO_SHORT)?;
        if flags & !Flags::KNOWN != 0 {
            return Err(SealError::damaged("it has flags that its format does not know"));
        }
        Ok(Self { flags: Flags(flags), mark, sealed })
    }

    /// What follows format, flags and mark.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.sealed[START..]
    }

    /// The body of a value that is not encrypted.
    pub(super) fn verified(&self, context: Context<'_>) -> Result<&'a [u8], SealError> {
        let (found, body) = self.rest().split_first_chunk().ok_or(TOO_SHORT)?;
        let context = context.hash();
        let right = checksum(context, &self.sealed[..START], body);
        if *found == right { Ok(body) } else { Err(self.refusal(context, "its checksum is wrong")) }
    }

    /// Why a value is refused whose checksum or tag is wrong.
    pub(super) fn refusal(&self, context: ContextHash, why: &'static str) -> SealError {
        if self.mark == context.mark() { SealError::damaged(why) } else { SealError::WrongContext }
    }
}

pub(super) const TOO_SHORT: SealError = SealError::damaged("it ends too early");

/// Appends a body that is not encrypted, in its envelope.
pub(super) fn write_plain(context: Context<'_>, flags: Flags, body: &[u8], out: &mut Vec<u8>) {
    let context = context.hash();
    let start = start(context, flags);
    out.reserve(START + CHECKSUM + body.len());
    out.extend_from_slice(&start);
    out.extend_from_slice(&checksum(context, &start, body));
    out.extend_from_slice(body);
}

/// Format, flags and mark.
pub(super) fn start(context: ContextHash, Flags(flags): Flags) -> [u8; START] {
    let [a, b, c, d] = context.mark();
    [FORMAT, flags, a, b, c, d]
}

/// The hash of the body's hash, with that of the context and the start as its seed: a body is read once, where it is.
fn checksum(context: ContextHash, start: &[u8], body: &[u8]) -> [u8; CHECKSUM] {
    xxh3_128_with_seed(&xxh3_128(body).to_le_bytes(), context.with(start)).to_le_bytes()
}
