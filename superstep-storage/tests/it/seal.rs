//! Sealing: what is put on disk is what comes back, in its own place, or an error.

#[cfg(feature = "compression")]
mod compressed;
#[cfg(feature = "encryption")]
mod encrypted;
mod formats;
#[cfg(feature = "encryption")]
mod keys;

use proptest::prelude::*;
use superstep_storage::{Seal, SealError};

const CONTEXT: &[&[u8]] = &[b"thread-1", b"", b"1f0e5b1a"];

/// A seal of every kind, with its name.
fn kinds() -> Vec<(&'static str, Seal)> {
    vec![
        ("plain", Seal::new()),
        #[cfg(feature = "compression")]
        ("lz4", compressed::lz4()),
        #[cfg(feature = "encryption")]
        ("encrypted", encrypted::encrypting()),
        #[cfg(all(feature = "compression", feature = "encryption"))]
        ("lz4-encrypted", encrypted::encrypting().compress(superstep_storage::Compression::Lz4)),
    ]
}

/// Text that compression makes smaller.
fn text() -> Vec<u8> {
    (0..20).flat_map(|line| format!("line {line}: the kettle is on\n").into_bytes()).collect()
}

/// The bytes with each bit flipped in turn.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    })
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..600),
        (prop::collection::vec(any::<u8>(), 0..9), 0..200usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn contexts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..6)
}

fn parts(context: &[Vec<u8>]) -> Vec<&[u8]> {
    context.iter().map(Vec::as_slice).collect()
}

proptest! {
    #[test]
    fn what_was_sealed_is_what_is_opened(payload in payloads(), context in contexts()) {
        for (kind, by) in kinds() {
            let sealed = by.seal(&parts(&context), &payload);
            let opened = by.open(&parts(&context), &sealed);
            prop_assert_eq!(opened.as_deref(), Ok(payload.as_slice()), "{}", kind);
        }
    }

    #[test]
    fn a_value_opens_in_no_other_context(payload in payloads(), context in contexts(), other in contexts()) {
        prop_assume!(context != other);
        for (kind, by) in kinds() {
            let sealed = by.seal(&parts(&context), &payload);
            prop_assert_eq!(by.open(&parts(&other), &sealed), Err(SealError::WrongContext), "{}", kind);
        }
    }

    #[test]
    fn bytes_that_were_never_sealed_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (kind, by) in kinds() {
            prop_assert!(by.open(CONTEXT, &bytes).is_err(), "{}", kind);
        }
    }
}

#[test]
fn every_flipped_bit_of_a_value_is_seen() {
    for (kind, by) in kinds() {
        for payload in [text(), b"tea".to_vec(), Vec::new()] {
            for (bit, damaged) in flipped(&by.seal(CONTEXT, &payload)).enumerate() {
                assert!(by.open(CONTEXT, &damaged).is_err(), "{kind}, bit {bit} of {} bytes", damaged.len());
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_the_context_is_seen() {
    for (kind, by) in kinds() {
        let sealed = by.seal(CONTEXT, &text());
        for part in 0..CONTEXT.len() {
            for flipped in flipped(CONTEXT[part]) {
                let mut context = CONTEXT.to_vec();
                context[part] = &flipped;
                assert_eq!(by.open(&context, &sealed), Err(SealError::WrongContext), "{kind}, part {part}");
            }
        }
    }
}

#[test]
fn a_value_that_was_cut_or_made_longer_is_refused() {
    for (kind, by) in kinds() {
        let sealed = by.seal(CONTEXT, &text());
        for end in 0..sealed.len() {
            assert!(by.open(CONTEXT, &sealed[..end]).is_err(), "{kind}, cut at {end}");
        }
        let longer = [sealed.as_slice(), b"\0"].concat();
        assert!(by.open(CONTEXT, &longer).is_err(), "{kind}, made longer");
    }
}

#[test]
fn contexts_of_the_same_bytes_in_other_parts_are_different() {
    let contexts: [&[&[u8]]; 6] = [&[], &[b""], &[b"", b""], &[b"ab", b"c"], &[b"a", b"bc"], &[b"abc"]];
    for (kind, by) in kinds() {
        for (at, context) in contexts.iter().enumerate() {
            let sealed = by.seal(context, b"tea");
            let fitting: Vec<_> = (0..contexts.len()).filter(|&ix| by.open(contexts[ix], &sealed).is_ok()).collect();
            assert_eq!(fitting, [at], "{kind}");
        }
    }
}

#[test]
fn a_moved_value_and_a_damaged_one_are_told_apart() {
    for (kind, by) in kinds() {
        let mut sealed = by.seal(CONTEXT, &text());
        assert_eq!(by.open(&[b"thread-2"], &sealed), Err(SealError::WrongContext), "{kind}");
        *sealed.last_mut().expect("a sealed value is not empty") ^= 1;
        let refused = by.open(CONTEXT, &sealed).expect_err("it is damaged");
        assert!(matches!(refused, SealError::Damaged { .. }), "{kind}: {refused}");
    }
}

#[test]
fn a_plain_value_is_opened_where_it_is() -> Result<(), SealError> {
    let sealed = Seal::new().seal(CONTEXT, b"tea");
    let opened = Seal::new().open(CONTEXT, &sealed)?;
    assert!(matches!(opened, std::borrow::Cow::Borrowed(_)));
    assert_eq!(sealed.len(), 3 + 22, "the envelope has 22 bytes");
    Ok(())
}

#[test]
fn a_value_of_a_newer_format_says_so() {
    for (kind, by) in kinds() {
        let mut sealed = by.seal(CONTEXT, b"tea");
        sealed[0] = 2;
        let refused = by.open(CONTEXT, &sealed).expect_err("there is no format 2");
        let words = "the value has format 2, the newest known is 1; use a newer version of superstep";
        assert_eq!(refused.to_string(), words, "{kind}");
    }
}
