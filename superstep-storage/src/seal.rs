//! The envelope around values that are kept on disk: of checkpoints, of what tasks wrote, and cached results. Items of a
//! store have none, because databases search them.
//!
//! Format 1:
//!
//! ```text
//! format  flags  mark   | checksum                             | body          not encrypted
//! 1       1      4      | 16                                   |
//! format  flags  mark   | length of key id   key id   nonce    | body   tag    encrypted
//! 1       1      4      | 4                  ..       12       |        16
//! ```
//!
//! Numbers are little-endian. The body is the payload, or its length (4 bytes) and an LZ4 block. Checksum and tag cover
//! the context, all that is in front of them, and the body, so that no bit of a value and of what it belongs to can
//! change unseen. The mark is a short hash of the context: it tells a value that was moved from one that is damaged.

#[cfg(feature = "encryption")]
mod cipher;
#[cfg(feature = "compression")]
mod compression;
mod context;
mod envelope;
mod error;
#[cfg(feature = "encryption")]
mod key;

use std::borrow::Cow;
#[cfg(feature = "encryption")]
use std::sync::Arc;

#[cfg(feature = "encryption")]
pub use self::cipher::Keys;
#[cfg(feature = "compression")]
pub use self::compression::Compression;
pub(crate) use self::context::Context;
use self::envelope::Envelope;
pub(crate) use self::envelope::Flags;
pub use self::error::SealError;
#[cfg(feature = "encryption")]
pub use self::key::{Key, KeyError};

/// How values are sealed before they are kept on disk, and opened when they are read.
///
/// Every seal adds a checksum that covers the value and where it belongs: a value that was damaged, or copied to
/// another place, is refused. Compression and encryption are asked for. A clone is cheap and shares the keys.
///
/// ```
/// use superstep_storage::Seal;
///
/// let seal = Seal::new();
/// assert_eq!(format!("{seal:?}"), format!("{:?}", Seal::default()));
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a seal does nothing until something is kept with it"]
pub struct Seal {
    #[cfg(feature = "compression")]
    compression: Option<Compression>,
    #[cfg(feature = "compression")]
    decompress_limit: compression::Limit,
    #[cfg(feature = "encryption")]
    keys: Option<Arc<Keys>>,
    #[cfg(feature = "encryption")]
    allow_plain: bool,
}

impl Seal {
    /// A seal that adds a checksum, and nothing else.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses values that become smaller by it. Compressed values are opened with and without this.
    ///
    /// ```
    /// use superstep_storage::{Compression, Seal};
    ///
    /// let seal = Seal::new().compress(Compression::Lz4);
    /// # let _ = seal;
    /// ```
    #[cfg(feature = "compression")]
    pub fn compress(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// How many bytes a compressed value may have when it is opened; 64 MiB unless set.
    ///
    /// It keeps whoever can write to the disk from filling the memory with a few bytes. Larger values are sealed
    /// without compression, so that they can be opened.
    ///
    /// ```
    /// use superstep_storage::{Compression, Seal};
    ///
    /// let seal = Seal::new().compress(Compression::Lz4).decompress_limit(512 << 20);
    /// # let _ = seal;
    /// ```
    #[cfg(feature = "compression")]
    pub fn decompress_limit(mut self, bytes: usize) -> Self {
        self.decompress_limit = compression::Limit(bytes);
        self
    }

    /// Encrypts values with AES-256-GCM, after compressing them, and refuses values that are not encrypted.
    ///
    /// ```
    /// use superstep_storage::{Key, KeyError, Keys, Seal};
    ///
    /// # fn main() -> Result<(), KeyError> {
    /// let key: Key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=".parse()?;
    /// let seal = Seal::new().encrypt(Keys::new("2026-11", key));
    /// # let _ = seal;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "encryption")]
    pub fn encrypt(mut self, keys: Keys) -> Self {
        self.keys = Some(Arc::new(keys));
        self
    }

    /// Opens values that are not encrypted although this seal encrypts; for the time in which old values remain.
    ///
    /// Until you take it away, whoever can write to the disk can put values of their own in the place of encrypted ones.
    ///
    /// ```
    /// use superstep_storage::{Key, Keys, Seal};
    ///
    /// let seal = Seal::new().encrypt(Keys::new("2026-11", Key::from([7; 32]))).allow_plain();
    /// # let _ = seal;
    /// ```
    #[cfg(feature = "encryption")]
    pub fn allow_plain(mut self) -> Self {
        self.allow_plain = true;
        self
    }

    /// Seals a payload that belongs to `context`: what must be the same when it is opened.
    ///
    /// ```
    /// use superstep_storage::{Seal, SealError};
    ///
    /// # fn main() -> Result<(), SealError> {
    /// let seal = Seal::new();
    /// let sealed = seal.seal(&[b"thread", b"1"], b"tea");
    /// assert_eq!(*seal.open(&[b"thread", b"1"], &sealed)?, *b"tea");
    /// assert_eq!(seal.open(&[b"thread", b"2"], &sealed), Err(SealError::WrongContext));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If values are encrypted and the operating system has no random bytes to give.
    pub fn seal(&self, context: &[&[u8]], payload: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.seal_into(context, payload, &mut sealed);
        sealed
    }

    /// Appends what [`seal`](Self::seal) returns.
    pub(crate) fn seal_into(&self, context: &[&[u8]], payload: &[u8], out: &mut Vec<u8>) {
        let context = Context(context);
        match self.compressed(payload) {
            Some(body) => self.enclose(context, Flags::COMPRESSED, &body, out),
            None => self.enclose(context, Flags::NONE, payload, out),
        }
    }

    /// The payload of a sealed value, if it is whole and belongs to `context`.
    pub fn open<'a>(&self, context: &[&[u8]], sealed: &'a [u8]) -> Result<Cow<'a, [u8]>, SealError> {
        let envelope = Envelope::read(sealed)?;
        let context = Context(context);
        let body = if envelope.flags.is_encrypted() {
            Cow::Owned(self.decrypted(context, &envelope)?)
        } else {
            self.refuse_plain()?;
            Cow::Borrowed(envelope.verified(context)?)
        };
        if envelope.flags.is_compressed() { self.decompressed(&body).map(Cow::Owned) } else { Ok(body) }
    }
}

#[cfg(feature = "compression")]
impl Seal {
    fn compressed(&self, payload: &[u8]) -> Option<Vec<u8>> {
        self.compression?.compress(payload, self.decompress_limit)
    }

    fn decompressed(&self, body: &[u8]) -> Result<Vec<u8>, SealError> {
        compression::decompress(body, self.decompress_limit)
    }
}

#[cfg(not(feature = "compression"))]
#[expect(clippy::unused_self, reason = "without the feature there is nothing to ask for")]
impl Seal {
    fn compressed(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decompressed(&self, _: &[u8]) -> Result<Vec<u8>, SealError> {
        Err(SealError::NotCompiledIn { what: "compressed", feature: "compression" })
    }
}

#[cfg(feature = "encryption")]
impl Seal {
    /// Puts an envelope around a body as it is. The flags say what the body is; encryption adds its own.
    pub(crate) fn enclose(&self, context: Context<'_>, flags: Flags, body: &[u8], out: &mut Vec<u8>) {
        match &self.keys {
            Some(keys) => keys.encrypt(context, flags, body, out),
            None => envelope::write_plain(context, flags, body, out),
        }
    }

    /// What tells the key that encrypts from all others.
    pub(crate) fn key_mark(&self) -> Option<&[u8]> {
        self.keys.as_deref().map(Keys::mark)
    }

    fn decrypted(&self, context: Context<'_>, envelope: &Envelope<'_>) -> Result<Vec<u8>, SealError> {
        cipher::decrypt(self.keys.as_deref(), context, envelope)
    }

    fn refuse_plain(&self) -> Result<(), SealError> {
        if self.keys.is_some() && !self.allow_plain { Err(SealError::NotEncrypted) } else { Ok(()) }
    }
}

#[cfg(not(feature = "encryption"))]
#[expect(clippy::unused_self, reason = "without the feature there is nothing to ask for")]
impl Seal {
    /// Puts an envelope around a body as it is. The flags say what the body is.
    pub(crate) fn enclose(&self, context: Context<'_>, flags: Flags, body: &[u8], out: &mut Vec<u8>) {
        envelope::write_plain(context, flags, body, out);
    }

    pub(crate) fn key_mark(&self) -> Option<&[u8]> {
        None
    }

    fn decrypted(&self, _: Context<'_>, _: &Envelope<'_>) -> Result<Vec<u8>, SealError> {
        Err(SealError::NotCompiledIn { what: "encrypted", feature: "encryption" })
    }

    fn refuse_plain(&self) -> Result<(), SealError> {
        Ok(())
    }
}
