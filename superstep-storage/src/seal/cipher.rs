//! Encrypting bodies: AES-256-GCM with a fresh random nonce for each value.
//!
//! The context and the envelope's start, key id included, are associated data: the tag covers what is not encrypted.

use std::fmt;

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};

use super::SealError;
use super::context::Context;
use super::envelope::{self, Envelope, Flags, TOO_SHORT};
use super::key::Key;

const NONCE: usize = 12;
const TAG: usize = 16;

/// The keys of a [`Seal`](crate::Seal): one that encrypts, and any number of older ones that still decrypt.
///
/// Each key has an id, which stands in front of what it encrypted. Ids are not secret; a date is a good one. A key
/// is good for four billion values; take a new one before.
///
/// ```
/// use superstep_storage::{Key, Keys, Seal};
///
/// # let (new_key, old_key) = (Key::from([7; 32]), Key::from([8; 32]));
/// let keys = Keys::new("2026-11", new_key).also_reads("2025-01", old_key);
/// assert_eq!(format!("{keys:?}"), r#"Keys { writes: "2026-11", also_reads: ["2025-01"] }"#);
/// let seal = Seal::new().encrypt(keys);
/// # let _ = seal;
/// ```
#[derive(Clone)]
#[must_use = "keys do nothing until they are given to `Seal::encrypt`"]
pub struct Keys {
    writes: NamedCipher,
    also_reads: Vec<NamedCipher>,
}

#[derive(Clone)]
struct NamedCipher {
    id: String,
    // In a box, so that a list that grows leaves no copies of secrets behind.
    cipher: Box<Aes256Gcm>,
    mark: [u8; TAG],
}

impl NamedCipher {
    fn new(id: String, key: Key) -> Self {
        let cipher = key.into_cipher();
        Self { id, mark: mark(&cipher), cipher }
    }
}

impl Keys {
    /// The key that encrypts, and decrypts what it encrypted.
    pub fn new(id: impl Into<String>, key: Key) -> Self {
        Self { writes: NamedCipher::new(id.into(), key), also_reads: Vec::new() }
    }

    /// Adds a key that decrypts what it encrypted earlier. Of several keys with one id, each is tried.
    pub fn also_reads(mut self, id: impl Into<String>, key: Key) -> Self {
        self.also_reads.push(NamedCipher::new(id.into(), key));
        self
    }

    /// What tells the key that encrypts from all others, and says nothing more of it.
    pub(super) fn mark(&self) -> &[u8] {
        &self.writes.mark
    }

    /// Appends an encrypted body in its envelope.
    pub(super) fn encrypt(&self, context: Context<'_>, flags: Flags, body: &[u8], out: &mut Vec<u8>) {
        let NamedCipher { id, cipher, .. } = &self.writes;
        let from = out.len();
        let start = envelope::start(context.hash(), flags.and(Flags::ENCRYPTED));
        out.reserve(start.len() + size_of::<u32>() + id.len() + NONCE + body.len() + TAG);
        out.extend_from_slice(&start);
        out.extend_from_slice(&(id.len() as u32).to_le_bytes());
        out.extend_from_slice(id.as_bytes());
        let associated = context.bytes_with(&out[from..]);
        let nonce = fresh_nonce();
        out.extend_from_slice(&nonce);
        let body_from = out.len();
        out.extend_from_slice(body);
        let tag = cipher.encrypt_inout_detached(&nonce.into(), &associated, out[body_from..].as_mut().into());
        out.extend_from_slice(&tag.expect("a value is smaller than the 64 GiB that the cipher allows"));
    }

    fn with_id(&self, id: &[u8]) -> impl Iterator<Item = &NamedCipher> {
        std::iter::once(&self.writes).chain(&self.also_reads).filter(move |key| key.id.as_bytes() == id)
    }
}

impl Key {
    fn into_cipher(self) -> Box<Aes256Gcm> {
        Box::new(Aes256Gcm::new(self.bytes().into()))
    }
}

/// Shows the ids only.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let older: Vec<_> = self.also_reads.iter().map(|key| &key.id).collect();
        f.debug_struct("Keys").field("writes", &self.writes.id).field("also_reads", &older).finish()
    }
}

/// The body of an encrypted value.
pub(super) fn decrypt(
    keys: Option<&Keys>,
    context: Context<'_>,
    envelope: &Envelope<'_>,
) -> Result<Vec<u8>, SealError> {
    let letter = Letter::read(envelope).ok_or(TOO_SHORT)?;
    let mut named = keys.into_iter().flat_map(|keys| keys.with_id(letter.key_id)).peekable();
    if named.peek().is_none() {
        return Err(SealError::UnknownKey { id: shown(letter.key_id) });
    }
    let associated = context.bytes_with(letter.head);
    let opened = named.find_map(|key| letter.opened(&key.cipher, &associated));
    opened.ok_or_else(|| envelope.refusal(context.hash(), "its tag is wrong, or the key is another one of the same id"))
}

/// A sealed value that is encrypted.
struct Letter<'a> {
    /// All that is in front of the nonce.
    head: &'a [u8],
    key_id: &'a [u8],
    nonce: [u8; NONCE],
    body: &'a [u8],
    tag: [u8; TAG],
}

impl<'a> Letter<'a> {
    fn read(envelope: &Envelope<'a>) -> Option<Self> {
        let (length, after) = envelope.rest().split_first_chunk::<4>()?;
        let (key_id, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let head = &envelope.sealed[..envelope.sealed.len() - after.len()];
        let (&nonce, after) = after.split_first_chunk()?;
        let (body, &tag) = after.split_last_chunk()?;
        Some(Self { head, key_id, nonce, body, tag })
    }

    fn opened(&self, cipher: &Aes256Gcm, associated: &[u8]) -> Option<Vec<u8>> {
        let mut body = self.body.to_vec();
        let nonce = self.nonce.into();
        cipher.decrypt_inout_detached(&nonce, associated, body.as_mut_slice().into(), &self.tag.into()).ok()?;
        Some(body)
    }
}

/// The tag of an empty text. No value is encrypted with this nonce: those of values are random.
fn mark(cipher: &Aes256Gcm) -> [u8; TAG] {
    let tag = cipher.encrypt_inout_detached(&[0; NONCE].into(), b"superstep mark", (&mut [][..]).into());
    tag.expect("an empty text is short enough").into()
}

fn fresh_nonce() -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).expect("the operating system gives random bytes");
    nonce
}

/// A key id that may be anything, for an error.
fn shown(id: &[u8]) -> String {
    const MOST: usize = 64;
    let id: String = String::from_utf8_lossy(&id[..id.len().min(4 * MOST)]).escape_debug().collect();
    match id.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &id[..end]),
        None => id,
    }
}
