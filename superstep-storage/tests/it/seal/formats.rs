//! Values that were sealed with earlier versions. They are never made anew: what was written once is read for ever.

use superstep_storage::Seal;

const FORMAT_1: &[&[u8]] = &[b"thread-1", b"", b"1f0e5b1a-0000-6000-8000-000000000001", b"\xff\0"];

macro_rules! kept {
    ($name:literal) => {
        include_bytes!(concat!("format-1/", $name))
    };
}

#[track_caller]
fn opens(by: &Seal, sealed: &[u8]) {
    assert_eq!(by.open(FORMAT_1, sealed).as_deref(), Ok(kept!("payload").as_slice()));
}

#[cfg(feature = "encryption")]
fn with_key() -> Seal {
    let key: [u8; 32] = std::array::from_fn(|ix| ix as u8);
    Seal::new().encrypt(superstep_storage::Keys::new("2026-11", key.into()))
}

#[test]
fn plain_values_of_format_1_are_opened() {
    opens(&Seal::new(), kept!("plain"));
}

#[test]
fn plain_values_are_still_sealed_to_the_bytes_of_format_1() {
    assert_eq!(Seal::new().seal(FORMAT_1, kept!("payload")), kept!("plain"));
}

#[cfg(feature = "compression")]
#[test]
fn compressed_values_of_format_1_are_opened() {
    opens(&Seal::new(), kept!("lz4"));
}

#[cfg(feature = "encryption")]
#[test]
fn encrypted_values_of_format_1_are_opened() {
    opens(&with_key(), kept!("encrypted"));
}

#[cfg(all(feature = "compression", feature = "encryption"))]
#[test]
fn compressed_and_encrypted_values_of_format_1_are_opened() {
    opens(&with_key(), kept!("lz4-encrypted"));
}

#[cfg(not(feature = "compression"))]
#[test]
fn without_the_feature_a_compressed_value_names_it() {
    let refused = Seal::new().open(FORMAT_1, kept!("lz4")).expect_err("it cannot be decompressed");
    assert_eq!(refused.to_string(), "the value is compressed; enable feature `compression`");
}

#[cfg(not(feature = "encryption"))]
#[test]
fn without_the_feature_an_encrypted_value_names_it() {
    let refused = Seal::new().open(FORMAT_1, kept!("encrypted")).expect_err("it cannot be decrypted");
    assert_eq!(refused.to_string(), "the value is encrypted; enable feature `encryption`");
}
