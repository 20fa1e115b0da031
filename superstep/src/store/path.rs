//! Where in a JSON value something is.

use std::fmt;

use serde_json::Value;

/// The way from a value to a part of it: the keys to follow, outermost first.
///
/// As text, keys are separated by dots, and a backslash takes the next character as it is: `user.name` is the key
/// `name` of the object under `user`, and `v1\.0` is the one key `v1.0`. A list of keys needs no escapes. In a list, a
/// number names the element, counted from 0.
///
/// ```
/// use serde_json::json;
/// use superstep::FieldPath;
///
/// let value = json!({ "user": { "names": ["Ada", "Lovelace"] }, "v1.0": true });
/// assert_eq!(FieldPath::from("user.names.1").find(&value), Some(&json!("Lovelace")));
/// assert_eq!(FieldPath::from(["v1.0"]).find(&value), Some(&json!(true)));
/// assert_eq!(FieldPath::from(["v1.0"]), FieldPath::from(r"v1\.0"));
/// assert_eq!(FieldPath::from("user.age").find(&value), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// The keys, outermost first.
    pub fn keys(&self) -> &[String] {
        &self.0
    }

    /// What is there in `value`, if anything.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |part, key| step(part, key))
    }
}

/// The part of `value` under one key.
pub(super) fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(object) => object.get(key),
        Value::Array(elements) => elements.get(position(key)?),
        _ => None,
    }
}

/// The number that a key is. An element has one name: `01` and `+1` are none.
fn position(key: &str) -> Option<usize> {
    let is_plain = key == "0" || (!key.starts_with('0') && key.bytes().all(|byte| byte.is_ascii_digit()));
    is_plain.then(|| key.parse().ok()).flatten()
}

fn parse(text: &str) -> Vec<String> {
    let mut keys = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '.' => keys.push(String::new()),
            // A backslash at the very end stands for itself.
            '\\' => last(&mut keys).push(characters.next().unwrap_or('\\')),
            other => last(&mut keys).push(other),
        }
    }
    keys
}

fn last(keys: &mut [String]) -> &mut String {
    keys.last_mut().expect("a path has at least one key")
}

/// As text that gives the same path again.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (ix, key) in self.0.iter().enumerate() {
            if ix > 0 {
                f.write_str(".")?;
            }
            f.write_str(&key.replace('\\', r"\\").replace('.', r"\."))?;
        }
        Ok(())
    }
}

impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        Self(parse(text))
    }
}

impl From<String> for FieldPath {
    fn from(text: String) -> Self {
        Self(parse(&text))
    }
}

impl<const N: usize> From<[&str; N]> for FieldPath {
    fn from(keys: [&str; N]) -> Self {
        Self(keys.map(str::to_owned).into())
    }
}

impl From<Vec<String>> for FieldPath {
    fn from(keys: Vec<String>) -> Self {
        Self(keys)
    }
}
