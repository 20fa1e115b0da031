//! The bridge between a state's types and the bytes that are saved.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{CodecError, InvalidUpdate};
use crate::names::ROOT;
use crate::state::{FieldKind, Persist, Put, State};
use crate::value::{Blob, Payload, decode, decoding, encode, encode_with, encoding};

/// How a state is saved and shown, as plain functions: nobody who holds one needs the bounds of [`Persist`].
///
/// A derived state finds its own; one that is written by hand names it in [`State::codec`].
///
/// ```
/// use superstep::{AgentState, Codec, State};
/// assert!(AgentState::codec().is_some());
/// let _: &'static Codec<AgentState> = Codec::of();
/// ```
pub struct Codec<S: State> {
    pub(crate) encode_write: fn(&S::Schema, &S::Write, &mut Vec<u8>) -> Result<(), CodecError>,
    pub(crate) decode_write: fn(&S::Schema, usize, &[u8]) -> Result<S::Write, CodecError>,
    pub(crate) encode_field: fn(&S, &S::Schema, usize, &mut Vec<u8>) -> Result<(), CodecError>,
    pub(crate) decode_field: fn(&mut S, &S::Schema, usize, &[u8]) -> Result<(), CodecError>,
    pub(crate) to_json: fn(&S::Schema, &S::Write) -> Result<Option<serde_json::Value>, CodecError>,
    pub(crate) from_json: fn(&S::Schema, usize, &Value, bool) -> Result<S::Write, CodecError>,
    /// For states with writes that have no bytes, though the state has.
    pub(crate) unsaved: Option<Unsaved<S>>,
}

impl<S: State> std::fmt::Debug for Codec<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Codec<{}>", std::any::type_name::<S>())
    }
}

/// Writes that cannot be saved by themselves: a task that made one runs again if its step was not saved.
pub(crate) struct Unsaved<S: State> {
    pub(crate) is_unsaved: fn(&S::Write) -> bool,
    /// Writes to a state as the whole state that they make of it, which can be saved.
    pub(crate) as_whole: fn(&S, Vec<Put<S::Write>>) -> Result<Vec<Put<S::Write>>, InvalidUpdate>,
}

impl<S: Persist> Codec<S> {
    const OF: Codec<S> = Codec {
        encode_write: |schema, write, out| encoding(|| S::encode_write(schema, write, out)),
        decode_write: |schema, field, bytes| decoding(|| S::decode_write(schema, field, bytes)),
        encode_field: |state, schema, field, out| encoding(|| state.encode_field(schema, field, out)),
        decode_field: |state, schema, field, bytes| decoding(|| state.decode_field(schema, field, bytes)),
        to_json: |schema, write| encoding(|| S::write_to_json(schema, write)),
        from_json: |schema, field, value, overwrite| decoding(|| S::write_from_json(schema, field, value, overwrite)),
        unsaved: None,
    };

    /// That of a state.
    pub fn of() -> &'static Self {
        &Self::OF
    }
}

impl<S: State> Codec<S> {
    /// Whether a write has no bytes of its own.
    pub(crate) fn is_unsaved(&self, write: &S::Write) -> bool {
        self.unsaved.as_ref().is_some_and(|unsaved| (unsaved.is_unsaved)(write))
    }

    /// What a caller writes, as something that can be saved.
    pub(crate) fn savable(&self, state: &S, puts: Vec<Put<S::Write>>) -> Result<Vec<Put<S::Write>>, InvalidUpdate> {
        match &self.unsaved {
            Some(unsaved) if puts.iter().any(|put| (unsaved.is_unsaved)(&put.write)) => (unsaved.as_whole)(state, puts),
            _ => Ok(puts),
        }
    }

    pub(crate) fn write(&self, schema: &S::Schema, write: &S::Write) -> Result<Blob, CodecError> {
        encode_with(|out| (self.encode_write)(schema, write, out))
    }

    /// The state that something with some of its fields is: a state on its way to a node.
    pub(crate) fn sent(&self, schema: &S::Schema, payload: &Payload) -> Result<S, CodecError> {
        let (bytes, fields, mut state) = (payload.encoded()?, S::fields(schema), S::empty(schema));
        if matches!(fields, [only] if only.name() == ROOT) {
            (self.decode_field)(&mut state, schema, 0, &bytes)?;
            return Ok(state);
        }
        let sent: BTreeMap<String, Value> = decode(&bytes)?;
        if !fields.iter().any(|spec| sent.contains_key(spec.name())) {
            return Err(CodecError::new("it has no field of the state"));
        }
        for (field, spec) in fields.iter().enumerate().filter(|(_, spec)| spec.kind != FieldKind::Untracked) {
            if let Some(value) = sent.get(spec.name()) {
                let set = (self.decode_field)(&mut state, schema, field, &encode(value)?);
                set.map_err(|why| CodecError::new(format!("field `{}`: {why}", spec.name())))?;
            }
        }
        Ok(state)
    }

    pub(crate) fn field(&self, state: &S, schema: &S::Schema, field: usize) -> Result<Blob, CodecError> {
        encode_with(|out| (self.encode_field)(state, schema, field, out))
    }
}

/// How derived code finds out whether its state can be saved: by which of two methods the compiler finds first.
pub mod probe {
    use std::marker::PhantomData;

    use super::Codec;
    use crate::state::{Persist, State};

    /// Asks for the codec of `S`; call `(&Probe::<S>::NEW).codec()`.
    #[derive(Debug)]
    pub struct Probe<S>(PhantomData<S>);

    impl<S> Probe<S> {
        /// To ask with.
        pub const NEW: Self = Self(PhantomData);
    }

    /// Of a state that can be saved. It takes a reference to a probe, and so is found first.
    pub trait Saved<S: State> {
        /// How it is saved, if it can be.
        fn codec(&self) -> Option<&'static Codec<S>>;
    }

    impl<S: Persist> Saved<S> for Probe<S> {
        fn codec(&self) -> Option<&'static Codec<S>> {
            Some(Codec::of())
        }
    }

    /// Of any other: found behind one more reference.
    pub trait NotSaved<S: State> {
        /// How it is saved, if it can be.
        fn codec(&self) -> Option<&'static Codec<S>>;
    }

    impl<S: State> NotSaved<S> for &Probe<S> {
        fn codec(&self) -> Option<&'static Codec<S>> {
            None
        }
    }
}
