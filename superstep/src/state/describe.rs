//! JSON schemas of fields, for those who hold a graph without its state's type.

use serde_json::{Map, Value};

/// Describes types as JSON schemas, and keeps the definitions that they share.
///
/// Types are described if superstep is built with its feature `schema` and they implement schemars' `JsonSchema`; all others
/// are `true`, which any value fits.
#[derive(Debug, Default)]
pub struct Describer {
    #[cfg(feature = "schema")]
    generator: schemars::SchemaGenerator,
}

impl Describer {
    /// The schema of a type.
    #[cfg(feature = "schema")]
    pub fn of<T: schemars::JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }

    /// The definitions that schemas name.
    pub(crate) fn definitions(self) -> Map<String, Value> {
        #[cfg(feature = "schema")]
        return { self }.generator.take_definitions(true);
        #[cfg(not(feature = "schema"))]
        Map::new()
    }
}

/// How derived code finds out whether a type can be described: by which of two methods the compiler finds first.
pub mod probe {
    use std::marker::PhantomData;

    use serde_json::Value;

    use super::Describer;

    /// Asks for the schema of `T`; call `(&Probe::<T>::NEW).describe(..)`.
    #[derive(Debug)]
    pub struct Probe<T>(PhantomData<T>);

    impl<T> Probe<T> {
        /// To ask with.
        pub const NEW: Self = Self(PhantomData);
    }

    /// Of a type that can be described. It takes a reference to a probe, and so is found first.
    #[cfg(feature = "schema")]
    pub trait Described {
        /// The schema.
        fn describe(&self, describer: &mut Describer) -> Value;
    }

    #[cfg(feature = "schema")]
    impl<T: schemars::JsonSchema> Described for Probe<T> {
        fn describe(&self, describer: &mut Describer) -> Value {
            describer.of::<T>()
        }
    }

    /// Of any other: found behind one more reference.
    pub trait NotDescribed {
        /// Any value.
        fn describe(&self, describer: &mut Describer) -> Value;
    }

    impl<T> NotDescribed for &Probe<T> {
        fn describe(&self, _: &mut Describer) -> Value {
            Value::Bool(true)
        }
    }
}
