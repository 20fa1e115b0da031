//! JSON schemas in the form that providers can hold a model to.

use serde_json::{Map, Value};

/// Formats that providers know; the others only speak of Rust types.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// The name of a form, or of the tool that takes it. Names of types may have brackets, which are refused.
pub(crate) fn name(name: &str) -> String {
    let name = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    name.take(64).collect()
}

/// A schema without what only validators need.
pub(crate) fn plain(schema: &Value) -> Value {
    let mut schema = schema.clone();
    walk(&mut schema, &mut |object| {
        object.remove("$schema");
        object.remove("default");
        if object.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
            object.remove("format");
        }
    });
    schema
}

/// A schema that allows nothing but what it names, and wants all of it: what fits it fits the given one too.
///
/// `None` if that cannot be said, as of maps with any keys.
#[cfg(any(feature = "openai", feature = "anthropic"))]
pub(crate) fn strict(schema: &Value) -> Option<Value> {
    let mut schema = plain(schema);
    let mut can_be = schema.get("type").and_then(Value::as_str) == Some("object");
    walk(&mut schema, &mut |object| can_be &= narrow(object));
    can_be.then_some(schema)
}

/// Narrows one schema; `false` if it cannot be.
#[cfg(any(feature = "openai", feature = "anthropic"))]
fn narrow(object: &mut Map<String, Value>) -> bool {
    for bound in ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "multipleOf"] {
        object.remove(bound);
    }
    if let Some(options) = object.remove("oneOf") {
        object.insert("anyOf".into(), options);
    }
    if object.len() > 1
        && let Some(shared) = object.remove("$ref")
    {
        // A reference stands alone, or is refused.
        object.insert("anyOf".into(), serde_json::json!([{ "$ref": shared }]));
    }
    if object.contains_key("allOf") || object.contains_key("prefixItems") || object.contains_key("patternProperties") {
        return false;
    }
    match (object.get("properties").and_then(Value::as_object), object.get("additionalProperties")) {
        (_, Some(Value::Object(_) | Value::Bool(true))) => false,
        (None, _) => object.get("type").and_then(Value::as_str) != Some("object"),
        (Some(properties), _) => {
            let all = properties.keys().cloned().map(Value::String).collect();
            object.insert("required".into(), Value::Array(all));
            object.insert("additionalProperties".into(), Value::Bool(false));
            true
        }
    }
}

/// Shows every schema in a schema, the outer ones first.
fn walk(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(object) = schema else { return };
    visit(object);
    for (name, value) in object {
        match (&**name, value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| walk(schema, visit));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| walk(schema, visit));
            }
            ("items" | "additionalProperties" | "not", schema) => walk(schema, visit),
            _ => {}
        }
    }
}

#[cfg(all(test, any(feature = "openai", feature = "anthropic")))]
mod tests {
    use serde_json::json;

    use super::{Value, strict};

    #[track_caller]
    fn check(schema: &Value, expected: Option<&Value>) {
        assert_eq!(strict(schema).as_ref(), expected);
    }

    #[test]
    fn a_strict_schema_wants_all_fields_and_no_others() {
        check(
            &json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A", "type": "object",
                "properties": {
                    "n": { "type": "integer", "format": "uint32", "minimum": 0, "default": 1 },
                    "when": { "type": ["string", "null"], "format": "date-time" },
                    "kind": { "oneOf": [{ "const": "a" }, { "$ref": "#/$defs/B" }] },
                },
                "required": ["n"],
                "$defs": { "B": { "type": "object", "properties": { "default": { "type": "array", "items": { "format": "double" } } } } },
            }),
            Some(&json!({
                "title": "A", "type": "object", "additionalProperties": false,
                "properties": {
                    "n": { "type": "integer" },
                    "when": { "type": ["string", "null"], "format": "date-time" },
                    "kind": { "anyOf": [{ "const": "a" }, { "$ref": "#/$defs/B" }] },
                },
                "required": ["kind", "n", "when"],
                "$defs": { "B": {
                    "type": "object", "additionalProperties": false, "required": ["default"],
                    "properties": { "default": { "type": "array", "items": {} } },
                } },
            })),
        );
    }

    #[test]
    fn a_reference_stands_alone() {
        let b = json!({ "B": { "type": "object", "additionalProperties": false, "required": [], "properties": {} } });
        let of = |field: &Value| {
            json!({
                "type": "object", "additionalProperties": false, "required": ["b"], "properties": { "b": field }, "$defs": b,
            })
        };
        let told = json!({ "description": "The second.", "anyOf": [{ "$ref": "#/$defs/B" }] });
        check(&of(&json!({ "$ref": "#/$defs/B", "description": "The second." })), Some(&of(&told)));
        check(&of(&json!({ "$ref": "#/$defs/B" })), Some(&of(&json!({ "$ref": "#/$defs/B" }))));
    }

    #[test]
    fn what_cannot_be_strict_is_not_made_strict() {
        check(&json!({ "type": "string" }), None);
        check(&json!({ "type": "object", "additionalProperties": { "type": "string" } }), None);
        check(&json!({ "type": "object", "properties": { "a": { "type": "object" } } }), None);
    }
}
