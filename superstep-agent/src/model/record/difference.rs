//! Where two requests differ.

use serde_json::Value;

/// The first place where two values differ, in words.
pub(super) fn difference(was: &Value, is: &Value) -> String {
    find(was, is, "").unwrap_or_else(|| "it does not differ".to_owned())
}

fn find(was: &Value, is: &Value, path: &str) -> Option<String> {
    match (was, is) {
        _ if was == is => None,
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                at(a.get(name), b.get(name), &path)
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            (0..a.len().max(b.len())).find_map(|place| at(a.get(place), b.get(place), &format!("{path}[{place}]")))
        }
        _ => Some(format!("`{path}` was {} and is {}", short(was), short(is))),
    }
}

fn at(was: Option<&Value>, is: Option<&Value>, path: &str) -> Option<String> {
    match (was, is) {
        (Some(was), Some(is)) => find(was, is, path),
        (Some(was), None) => Some(format!("`{path}` was {} and is missing", short(was))),
        (None, Some(is)) => Some(format!("`{path}` was missing and is {}", short(is))),
        (None, None) => None,
    }
}

fn short(value: &Value) -> String {
    const LONGEST: usize = 200;
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("{start}…")
}
