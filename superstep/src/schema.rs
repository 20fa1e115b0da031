//! JSON schemas of states, for programs that show or check them.

use serde_json::{Value, json};

/// How to describe a type to a generator.
#[doc(hidden)]
pub type Describe = fn(&mut schemars::SchemaGenerator) -> schemars::Schema;

/// A state that can be described: `#[derive(State)]` implements it if every field but the
/// untracked ones implements `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON schema",
    note = "derive `State` on it and make every field `JsonSchema`, or mark the field `#[state(untracked)]`"
)]
pub trait StateSchema: crate::State {
    /// The name of the state.
    #[doc(hidden)]
    const NAME: &'static str;
    /// The name of the update.
    #[doc(hidden)]
    const UPDATE_NAME: &'static str;

    /// The fields and how to describe each.
    #[doc(hidden)]
    fn properties() -> Vec<(&'static str, Describe)>;

    /// The fields and how to describe what is written to each.
    #[doc(hidden)]
    fn update_properties() -> Vec<(&'static str, Describe)>;

    /// The schema of the whole state: every field is there, but those that are internal.
    fn json_schema() -> Value {
        object(Self::NAME, &Self::properties(), true)
    }

    /// The schema of an update, which is also what a run takes: every field may be left out.
    fn input_schema() -> Value {
        object(Self::UPDATE_NAME, &Self::update_properties(), false)
    }
}

fn object(title: &str, properties: &[(&'static str, Describe)], required: bool) -> Value {
    let mut generator = schemars::SchemaGenerator::default();
    let described: serde_json::Map<String, Value> =
        properties.iter().map(|(name, describe)| ((*name).to_owned(), describe(&mut generator).to_value())).collect();
    let mut schema = json!({ "title": title, "type": "object", "properties": described });
    if required {
        schema["required"] = properties.iter().map(|(name, _)| *name).collect();
    }
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

/// A type with a schema. Implemented for everything that schemars can describe.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON schema",
    label = "not `JsonSchema`",
    note = "derive schemars' `JsonSchema`, or mark the field `#[state(untracked)]` to keep it out of the schema"
)]
#[doc(hidden)]
pub trait Described<'checked> {
    fn describe(generator: &mut schemars::SchemaGenerator) -> schemars::Schema;
}

#[diagnostic::do_not_recommend]
impl<T: schemars::JsonSchema> Described<'_> for T {
    fn describe(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<T>()
    }
}
