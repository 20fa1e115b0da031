//! Compression: only where it helps, and within limits when it is undone.

use superstep_storage::fuzzing::seal_as_compressed;
use superstep_storage::{Compression, Seal, SealError};

use super::{CONTEXT, kinds, text};

pub(super) fn lz4() -> Seal {
    Seal::new().compress(Compression::Lz4)
}

/// Bytes with nothing in them that repeats.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// A body that says it has `length` bytes when decompressed.
fn body(length: usize, block: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).expect("a length has four bytes");
    [&length.to_le_bytes(), block].concat()
}

/// What each kind of seal says to a compressed body.
#[track_caller]
fn refuses(body: &[u8], limit: usize, expected: &SealError) {
    for (kind, by) in kinds() {
        let by = by.decompress_limit(limit);
        let sealed = seal_as_compressed(&by, CONTEXT, body);
        assert_eq!(by.open(CONTEXT, &sealed).as_ref(), Err(expected), "{kind}");
    }
}

#[track_caller]
fn refuses_as_damaged(body: &[u8], words: &str) {
    for (kind, by) in kinds() {
        let refused = by.open(CONTEXT, &seal_as_compressed(&by, CONTEXT, body)).expect_err("it is hostile");
        assert_eq!(refused.to_string(), words, "{kind}");
    }
}

#[test]
fn compressed_values_are_smaller_and_opened_by_every_seal() {
    let sealed = lz4().seal(CONTEXT, &text());
    assert!(sealed.len() < text().len() / 2, "{} of {} bytes", sealed.len(), text().len());
    assert_eq!(Seal::new().open(CONTEXT, &sealed).as_deref(), Ok(text().as_slice()));
}

#[test]
fn values_that_would_not_become_smaller_are_left_as_they_are() {
    for payload in [noise(5_000), b"a".repeat(100)] {
        assert_eq!(lz4().seal(CONTEXT, &payload), Seal::new().seal(CONTEXT, &payload));
    }
}

#[test]
fn nothing_is_compressed_unless_asked_for() {
    assert_eq!(Seal::new().seal(CONTEXT, &text()).len(), 22 + text().len());
}

#[test]
fn a_value_above_the_limit_is_not_compressed_and_can_be_opened() {
    let zeros = vec![0; 10_001];
    let by = lz4().decompress_limit(10_000);
    let sealed = by.seal(CONTEXT, &zeros);
    assert!(sealed.len() > zeros.len());
    assert_eq!(by.open(CONTEXT, &sealed).as_deref(), Ok(zeros.as_slice()));

    let allowed = by.seal(CONTEXT, &zeros[1..]);
    assert!(allowed.len() < 1_000);
    assert_eq!(by.open(CONTEXT, &allowed).as_deref(), Ok(&zeros[1..]));
}

#[test]
fn a_value_that_is_larger_than_the_limit_is_refused() {
    let sealed = lz4().seal(CONTEXT, &[0; 10_000]);
    let refused = Seal::new().decompress_limit(9_999).open(CONTEXT, &sealed).expect_err("it is too large");
    assert_eq!(
        refused.to_string(),
        "the value has 10000 bytes when decompressed, at most 9999 are allowed; see `Seal::decompress_limit`",
    );
}

#[test]
fn the_limit_is_64_mib_unless_it_is_set() {
    let block = vec![0; 1 << 20];
    let sealed = seal_as_compressed(&Seal::new(), CONTEXT, &body((64 << 20) + 1, &block));
    let expected = SealError::TooLarge { bytes: (64 << 20) + 1, limit: 64 << 20 };
    assert_eq!(Seal::new().open(CONTEXT, &sealed), Err(expected));
}

#[test]
fn lengths_that_cannot_be_are_refused_before_memory_is_taken() {
    let impossible = "the value is damaged: its length is more than it can hold; restore it from a backup";
    refuses_as_damaged(&body(u32::MAX as usize, b"short"), impossible);
    refuses_as_damaged(&body(1, b""), impossible);
    refuses_as_damaged(&body(256, b"\0"), impossible);
    refuses(&body(255_000, &[0; 1_000]), 9_000, &SealError::TooLarge { bytes: 255_000, limit: 9_000 });
}

#[test]
fn bodies_that_are_no_blocks_are_refused() {
    let unreadable = "the value is damaged: it cannot be decompressed; restore it from a backup";
    for hostile in [
        b"".to_vec(),
        b"abc".to_vec(),
        body(0, b""),
        body(0, b"no block"),
        body(200, &[0xff; 64]),
        // A literal longer than what is there; a copy from before the beginning; a copy from nowhere.
        body(15, &[0xf0, 0x10]),
        body(8, &[0x14, b'a', 0x09, 0x00]),
        body(8, &[0x14, b'a', 0x00, 0x00]),
        // A block that is right, with a length that is not its own.
        body(2, &[0x10, b'a']),
        body(0, &[0x10, b'a']),
    ] {
        refuses_as_damaged(&hostile, unreadable);
    }
}

#[test]
fn zeros_are_compressed_as_far_as_they_can_be() {
    for length in [128, 1_000, 1 << 20] {
        let zeros = vec![0; length];
        let sealed = lz4().seal(CONTEXT, &zeros);
        assert!(sealed.len() < zeros.len(), "{length}");
        assert_eq!(lz4().open(CONTEXT, &sealed).as_deref(), Ok(zeros.as_slice()), "{length}");
    }
}
