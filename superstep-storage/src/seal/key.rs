//! A secret key: given as bytes or text, never shown, wiped when it is dropped.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroize;

const BYTES: usize = 32;

/// A secret of 32 bytes that values are encrypted with.
///
/// It is given as bytes, or as text in hexadecimal or base64, is not shown by `Debug`, and is wiped from memory when
/// it is dropped. `openssl rand -base64 32` makes one.
///
/// ```
/// use superstep_storage::{Key, KeyError};
///
/// # fn main() -> Result<(), KeyError> {
/// let key: Key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=\n".parse()?;
/// assert_eq!(format!("{key:?}"), "Key(..)");
///
/// let refused = "0123".parse::<Key>().expect_err("that is too short");
/// assert_eq!(
///     refused.to_string(),
///     "the text of a key has 64 hexadecimal digits or 44 characters of base64, this one has 4 characters",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Key(Box<[u8; BYTES]>);

/// Why bytes or a text are no [`Key`]. It never repeats them.
///
/// ```
/// use superstep_storage::{Key, KeyError};
///
/// let refused = Key::try_from([1, 2, 3].as_slice()).expect_err("that is too short");
/// assert_eq!(refused, KeyError::WrongLength { bytes: 3 });
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There are more or fewer than 32 bytes.
    #[error("a key has 32 bytes, this one has {bytes}; `openssl rand -base64 32` makes one")]
    WrongLength {
        /// How many there are.
        bytes: usize,
    },

    /// The text is neither as long as hexadecimal nor as base64 of 32 bytes.
    #[error(
        "the text of a key has 64 hexadecimal digits or 44 characters of base64, this one has {characters} characters"
    )]
    WrongTextLength {
        /// How many there are, without the white space around them.
        characters: usize,
    },

    /// The text has a character that cannot be there.
    #[error("character {position} of the key's text cannot be there: the text is not {encoding}, or was changed")]
    WrongCharacter {
        /// Its position, counted from 1, without the white space in front.
        position: usize,
        /// `hexadecimal` or `base64`, by the length of the text.
        encoding: &'static str,
    },
}

impl fmt::Debug for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        superstep::explain(self, f)
    }
}

impl Key {
    pub(super) fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    fn empty() -> Self {
        Self(Box::new([0; BYTES]))
    }
}

impl From<[u8; BYTES]> for Key {
    fn from(mut bytes: [u8; BYTES]) -> Self {
        let key = Self(Box::new(bytes));
        bytes.zeroize();
        key
    }
}

impl TryFrom<&[u8]> for Key {
    type Error = KeyError;

    fn try_from(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() != BYTES {
            return Err(KeyError::WrongLength { bytes: bytes.len() });
        }
        let mut key = Self::empty();
        key.0.copy_from_slice(bytes);
        Ok(key)
    }
}

/// Reads 64 hexadecimal digits, or base64 (either alphabet, with or without padding). White space around is ignored.
impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        match text.chars().count() {
            64 => from_hex(text),
            43 => from_base64(text),
            44 => from_base64(text.strip_suffix('=').ok_or(wrong_character(43, "base64"))?),
            characters => Err(KeyError::WrongTextLength { characters }),
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

fn from_hex(text: &str) -> Result<Key, KeyError> {
    let mut key = Key::empty();
    for (ix, character) in text.chars().enumerate() {
        let digit = character.to_digit(16).ok_or(wrong_character(ix, "hexadecimal"))?;
        key.0[ix / 2] = key.0[ix / 2] << 4 | digit as u8;
    }
    Ok(key)
}

/// Reads 43 characters: 32 bytes and two bits, which must be zero.
fn from_base64(text: &str) -> Result<Key, KeyError> {
    let mut key = Key::empty();
    let (mut bits, mut held, mut filled) = (0_u32, 0, 0);
    for (ix, character) in text.chars().enumerate() {
        bits = (bits << 6 | sextet(character).ok_or(wrong_character(ix, "base64"))?) & 0xfff;
        held += 6;
        if held >= 8 {
            held -= 8;
            key.0[filled] = (bits >> held) as u8;
            filled += 1;
        }
    }
    if bits.is_multiple_of(4) { Ok(key) } else { Err(wrong_character(42, "base64")) }
}

fn sextet(character: char) -> Option<u32> {
    let code = u32::from(character);
    match character {
        'A'..='Z' => Some(code - u32::from('A')),
        'a'..='z' => Some(code - u32::from('a') + 26),
        '0'..='9' => Some(code - u32::from('0') + 52),
        '+' | '-' => Some(62),
        '/' | '_' => Some(63),
        _ => None,
    }
}

fn wrong_character(ix: usize, encoding: &'static str) -> KeyError {
    KeyError::WrongCharacter { position: ix + 1, encoding }
}
