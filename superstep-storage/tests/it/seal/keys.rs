//! Keys: read from what people keep them in, and never shown.

use superstep_storage::{Key, KeyError, Keys, Seal};

use super::CONTEXT;

const HEX: &str = "abcdef1234567890abcdef1234567890abcdef1234567890abcdef12345678ff";
const BASE64: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeP8=";

fn key_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    for (ix, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&HEX[2 * ix..2 * ix + 2], 16).expect("it is hexadecimal");
    }
    bytes
}

fn sealing_with(key: Key) -> Seal {
    Seal::new().encrypt(Keys::new("k", key))
}

#[track_caller]
fn is_the_key(key: Key) {
    let sealed = sealing_with(Key::from(key_bytes())).seal(CONTEXT, b"tea");
    assert_eq!(sealing_with(key).open(CONTEXT, &sealed).as_deref(), Ok(b"tea".as_slice()));
}

/// The words for a text that is no key; they must not give the text away.
#[track_caller]
fn refuses(text: &str, words: &str) {
    let refused = text.parse::<Key>().expect_err("it is no key");
    assert_eq!(refused.to_string(), words);
    assert!(text.is_empty() || !format!("{refused:?} {refused}").contains(text));
}

#[test]
fn a_key_is_read_from_bytes_hexadecimal_and_base64() -> Result<(), KeyError> {
    is_the_key(Key::try_from(key_bytes().as_slice())?);
    is_the_key(HEX.parse()?);
    is_the_key(HEX.to_uppercase().parse()?);
    is_the_key(BASE64.parse()?);
    is_the_key(BASE64.trim_end_matches('=').parse()?);
    is_the_key(format!("  {BASE64}\r\n").parse()?);
    Ok(())
}

#[test]
fn both_alphabets_of_base64_are_read() -> Result<(), KeyError> {
    let standard: Key = "+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/8=".parse()?;
    let for_urls: Key = "-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_8".parse()?;
    let sealed = sealing_with(standard).seal(CONTEXT, b"tea");
    assert_eq!(sealing_with(for_urls).open(CONTEXT, &sealed).as_deref(), Ok(b"tea".as_slice()));
    Ok(())
}

#[test]
fn a_text_of_another_length_is_refused() {
    let words = |characters: usize| {
        format!(
            "the text of a key has 64 hexadecimal digits or 44 characters of base64, this one has {characters} characters"
        )
    };
    refuses("", &words(0));
    refuses("swordfish", &words(9));
    refuses(&HEX[..63], &words(63));
    refuses(&BASE64[..42], &words(42));
}

#[test]
fn a_wrong_character_is_told_by_its_position() {
    refuses(
        &HEX.replacen('1', "x", 1),
        "character 7 of the key's text cannot be there: the text is not hexadecimal, or was changed",
    );
    for (text, position) in [
        (BASE64.replacen('8', "é", 1), 2),
        (BASE64.replacen('R', " ", 1), 7),
        (BASE64.replace('=', "8"), 44),
        // Two bits too many: another text for the same key, so somebody changed it.
        (BASE64.replace("8=", "9="), 43),
    ] {
        let words =
            format!("character {position} of the key's text cannot be there: the text is not base64, or was changed");
        refuses(&text, &words);
    }
}

#[test]
fn bytes_of_another_length_are_refused() {
    for length in [0, 16, 31, 33] {
        let refused = Key::try_from(vec![0; length].as_slice()).expect_err("it is no key");
        let words = format!("a key has 32 bytes, this one has {length}; `openssl rand -base64 32` makes one");
        assert_eq!(refused.to_string(), words);
    }
}

#[test]
fn nothing_shows_a_key() {
    let key = Key::from(*b"0123456789abcdef0123456789abcdef");
    let keys = Keys::new("2026-11", key.clone()).also_reads("2025-01", key.clone());
    let shown = format!("{key:?} {keys:?} {:#?}", Seal::new().encrypt(keys.clone()));
    assert!(shown.contains("2026-11") && shown.contains("2025-01"));
    for piece in ["0123", "48, 49", "30, 31", "3031"] {
        assert!(!shown.contains(piece), "`{piece}` in {shown}");
    }
}
