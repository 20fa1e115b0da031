//! Values as JSON, for people and other programs to read.

use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::{decode, encode};
use crate::error::CodecError;

/// A value as `serde_json` writes it. An integer that a [`Value`] cannot hold, because it has more than 64 bits, is text.
pub(crate) fn json_of<T: Serialize + ?Sized>(value: &T) -> Result<Value, CodecError> {
    // `serde_json` has no limit of levels when it writes; saving has one.
    encode(value)?;
    if let Ok(json) = serde_json::to_value(value) {
        return Ok(json);
    }
    let refused = |error: serde_json::Error| CodecError::new(error.to_string());
    // The text of JSON, unlike a `Value`, has integers of any size.
    let text = serde_json::to_string(value).map_err(refused)?;
    serde_json::from_str(&quote_wide_integers(&text)).map_err(refused)
}

/// Compact JSON with quotes around the integers of more than 64 bits.
fn quote_wide_integers(json: &str) -> String {
    let mut quoted = String::with_capacity(json.len() + 16);
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => text_len(rest),
            '-' | '0'..='9' => rest.find([',', ']', '}']).unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        if is_wide_integer(token) {
            quoted.extend(["\"", token, "\""]);
        } else {
            quoted.push_str(token);
        }
        rest = after;
    }
    quoted
}

/// The length of the string that JSON begins with, quotes included.
fn text_len(json: &str) -> usize {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(json.len(), |end| end + 2)
}

fn is_wide_integer(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer && token.parse::<i64>().is_err() && token.parse::<u64>().is_err()
}

/// Saved bytes as JSON. Keys of maps that are numbers or truth values become text, binary data a list of numbers.
pub(crate) fn decode_json(bytes: &[u8]) -> Result<Value, CodecError> {
    decode::<Json>(bytes).map(|json| json.0)
}

/// Reads any saved value as JSON; a [`Value`] refuses keys that are no text, and binary data.
struct Json(Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Self)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that has a form in JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Json(value))) = entries.next_entry::<Json, _>()? {
            map.insert(key_text(key.0)?, value);
        }
        Ok(Value::Object(map))
    }
}

/// A key as `serde_json` writes it.
fn key_text<E: serde::de::Error>(key: Value) -> Result<String, E> {
    match key {
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => Ok(key.to_string()),
        _ => Err(E::custom("key must be a string")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{quote_wide_integers, text_len};

    #[test]
    fn only_integers_that_do_not_fit_are_quoted() {
        let fits = r#"{"a":[18446744073709551615,-9223372036854775808,1.5e300,-0.5],"99999999999999999999":"9\"99999999999999999999"}"#;
        assert_eq!(quote_wide_integers(fits), fits);
        let wide = r#"{"a":[18446744073709551616,1],"b":-9223372036854775809}"#;
        let shown: serde_json::Value = serde_json::from_str(&quote_wide_integers(wide)).unwrap();
        assert_eq!(shown, json!({ "a": ["18446744073709551616", 1], "b": "-9223372036854775809" }));
        assert_eq!(quote_wide_integers("340282366920938463463374607431768211455").len(), 41);
    }

    #[test]
    fn a_string_ends_at_its_own_quote() {
        assert_eq!(text_len(r#""a\\",1"#), 5);
        assert_eq!(text_len(r#""a\"b":1"#), 6);
    }
}
