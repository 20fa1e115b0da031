//! Encryption: what is on disk says nothing, and what is not encrypted is refused.

use superstep_storage::{Key, Keys, Seal, SealError};

use super::{CONTEXT, kinds, text};

pub(super) fn key(byte: u8) -> Key {
    Key::from([byte; 32])
}

pub(super) fn encrypting() -> Seal {
    Seal::new().encrypt(Keys::new("2026-11", key(7)))
}

fn contains(bytes: &[u8], piece: &[u8]) -> bool {
    bytes.windows(piece.len()).any(|window| window == piece)
}

/// The words with which `by` refuses what was sealed.
fn refusal(by: &Seal, sealed: &[u8]) -> String {
    by.open(CONTEXT, sealed).expect_err("it is refused").to_string()
}

#[test]
fn an_encrypted_value_shows_its_key_id_and_nothing_of_the_payload() {
    let sealed = encrypting().seal(CONTEXT, &text());
    assert!(contains(&sealed, b"2026-11"));
    assert!(!contains(&sealed, b"kettle"));
    assert!(contains(&Seal::new().seal(CONTEXT, &text()), b"kettle"), "so the test can see it");
}

#[test]
fn a_payload_is_never_encrypted_to_the_same_bytes_twice() {
    let sealed: std::collections::HashSet<_> = (0..100).map(|_| encrypting().seal(CONTEXT, b"tea")).collect();
    assert_eq!(sealed.len(), 100);
}

#[cfg(feature = "compression")]
#[test]
fn values_are_compressed_before_they_are_encrypted() {
    let by = encrypting().compress(superstep_storage::Compression::Lz4);
    assert!(by.seal(CONTEXT, &text()).len() < text().len() / 2);
}

#[test]
fn a_seal_that_encrypts_refuses_plain_values() {
    for (kind, plain) in kinds().into_iter().filter(|(kind, _)| !kind.ends_with("encrypted")) {
        assert_eq!(
            refusal(&encrypting(), &plain.seal(CONTEXT, &text())),
            "the value is not encrypted; to read values from before encryption, use `Seal::allow_plain`",
            "{kind}",
        );
    }
}

#[test]
fn plain_values_are_read_where_that_is_allowed_and_still_checked() {
    let by = encrypting().allow_plain();
    let mut sealed = Seal::new().seal(CONTEXT, b"tea");
    assert_eq!(by.open(CONTEXT, &sealed).as_deref(), Ok(b"tea".as_slice()));
    assert_eq!(by.open(&[b"elsewhere"], &sealed), Err(SealError::WrongContext));
    sealed[24] ^= 1;
    assert!(by.open(CONTEXT, &sealed).is_err());
}

#[test]
fn what_is_sealed_while_plain_values_are_allowed_is_encrypted() {
    let sealed = encrypting().allow_plain().seal(CONTEXT, b"tea");
    assert_eq!(encrypting().open(CONTEXT, &sealed).as_deref(), Ok(b"tea".as_slice()));
}

#[test]
fn an_older_key_goes_on_reading_and_the_new_one_writes() {
    let old = Seal::new().encrypt(Keys::new("2025-01", key(1)));
    let rotated = Seal::new().encrypt(Keys::new("2026-11", key(2)).also_reads("2025-01", key(1)));
    let new = Seal::new().encrypt(Keys::new("2026-11", key(2)));

    assert_eq!(rotated.open(CONTEXT, &old.seal(CONTEXT, b"tea")).as_deref(), Ok(b"tea".as_slice()));
    assert_eq!(new.open(CONTEXT, &rotated.seal(CONTEXT, b"tea")).as_deref(), Ok(b"tea".as_slice()));
}

#[test]
fn a_key_that_is_not_given_is_named() {
    let sealed = Seal::new().encrypt(Keys::new("2025-01", key(7))).seal(CONTEXT, b"tea");
    let words = "the value is encrypted with key `2025-01`, which is not given; give it to `Keys`, and the keys to `Seal::encrypt`";
    assert_eq!(refusal(&encrypting(), &sealed), words);
    assert_eq!(refusal(&Seal::new(), &sealed), words);
}

#[test]
fn another_key_of_the_same_id_does_not_open_a_value() {
    let sealed = Seal::new().encrypt(Keys::new("2026-11", key(8))).seal(CONTEXT, b"tea");
    assert_eq!(
        refusal(&encrypting(), &sealed),
        "the value is damaged: its tag is wrong, or the key is another one of the same id; restore it from a backup",
    );
}

#[test]
fn of_several_keys_with_one_id_each_is_tried() {
    let by = Seal::new().encrypt(Keys::new("main", key(1)).also_reads("main", key(2)).also_reads("main", key(3)));
    for byte in 1..=3 {
        let sealed = Seal::new().encrypt(Keys::new("main", key(byte))).seal(CONTEXT, b"tea");
        assert_eq!(by.open(CONTEXT, &sealed).as_deref(), Ok(b"tea".as_slice()), "key {byte}");
    }
}

#[test]
fn a_key_id_may_be_anything() {
    for id in ["", "clé", "\0", &"long ".repeat(100_000)] {
        let by = Seal::new().encrypt(Keys::new(id, key(7)));
        assert_eq!(by.open(CONTEXT, &by.seal(CONTEXT, b"tea")).as_deref(), Ok(b"tea".as_slice()));
    }
}

#[test]
fn an_error_shows_a_strange_key_id_in_a_few_characters() {
    for (id, shown) in
        [("a\nb\u{1b}[31m".to_owned(), r"a\nb\u{1b}[31m".to_owned()), ("é".repeat(9_999), "é".repeat(64) + "…")]
    {
        let sealed = Seal::new().encrypt(Keys::new(id, key(7))).seal(CONTEXT, b"tea");
        assert_eq!(encrypting().open(CONTEXT, &sealed), Err(SealError::UnknownKey { id: shown }));
    }
}

#[test]
fn a_key_id_that_is_longer_than_the_value_is_refused() {
    let mut sealed = encrypting().seal(CONTEXT, b"tea");
    sealed[6..10].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(refusal(&encrypting(), &sealed), "the value is damaged: it ends too early; restore it from a backup");
}

#[test]
fn a_value_of_one_key_cannot_be_passed_off_as_one_of_another() {
    let by = Seal::new().encrypt(Keys::new("key-1", key(7)).also_reads("key-2", key(7)));
    let mut sealed = by.seal(CONTEXT, b"tea");
    let at = sealed.windows(5).position(|window| window == b"key-1").expect("the key is named");
    sealed[at + 4] = b'2';
    assert!(by.open(CONTEXT, &sealed).is_err(), "the id is under the tag, even if the key is the same");
}
