//! Why a sealed value was not opened.

/// Why a value that was kept on disk cannot be read.
///
/// ```
/// use superstep_storage::SealError;
///
/// let refused = SealError::UnknownKey { id: "2025-01".into() };
/// assert_eq!(
///     refused.to_string(),
///     "the value is encrypted with key `2025-01`, which is not given; give it to `Keys`, and the keys to `Seal::encrypt`",
/// );
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The bytes are not those that were sealed.
    #[error("the value is damaged: {why}; restore it from a backup")]
    #[non_exhaustive]
    Damaged {
        /// How it shows.
        why: &'static str,
    },

    /// The value was sealed for another place, such as another row, or what it belongs to has changed.
    #[error("the value belongs to another place: it was moved, or what stands beside it was changed")]
    WrongContext,

    /// The value is encrypted with a key that was not given.
    #[error(
        "the value is encrypted with key `{id}`, which is not given; give it to `Keys`, and the keys to `Seal::encrypt`"
    )]
    UnknownKey {
        /// The id of the key.
        id: String,
    },

    /// The value is not encrypted, and the seal encrypts.
    #[error("the value is not encrypted; to read values from before encryption, use `Seal::allow_plain`")]
    NotEncrypted,

    /// The value was sealed by a newer version of superstep.
    #[error("the value has format {found}, the newest known is {known}; use a newer version of superstep")]
    NewerFormat {
        /// The format of the value.
        found: u8,
        /// The newest format that can be read.
        known: u8,
    },

    /// The value needs a feature that superstep was built without.
    #[error("the value is {what}; enable feature `{feature}`")]
    NotCompiledIn {
        /// What was done to the value.
        what: &'static str,
        /// The feature that undoes it.
        feature: &'static str,
    },

    /// The value is larger than is allowed when it is decompressed.
    #[error("the value has {bytes} bytes when decompressed, at most {limit} are allowed; see `Seal::decompress_limit`")]
    TooLarge {
        /// Its size, as it says.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
}

impl std::fmt::Debug for SealError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        superstep::explain(self, f)
    }
}

impl SealError {
    pub(super) const fn damaged(why: &'static str) -> Self {
        Self::Damaged { why }
    }
}
