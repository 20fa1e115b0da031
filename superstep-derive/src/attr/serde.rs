//! `#[serde(..)]` beside `#[state(..)]`: a state is saved and shown field by field, so what serde is told about
//! the struct would be ignored. Better to say so.

use syn::Attribute;

use super::entry::{Entry, entries};
use super::field::{FieldAttr, Rule};
use crate::errors::Errors;

/// Notes what a field tells serde and the state would not follow.
pub(crate) fn of_field(attrs: &[Attribute], read: &FieldAttr, errors: &mut Errors) {
    for entry in told(attrs) {
        if let Some(instead) = instead_on_field(&entry.name(), read) {
            refuse(&entry, instead, errors);
        }
    }
}

/// Notes what the struct tells serde and the state would not follow.
pub(crate) fn of_container(attrs: &[Attribute], all_renamed: bool, errors: &mut Errors) {
    for entry in told(attrs) {
        let instead = match entry.name().as_str() {
            "rename_all" if all_renamed => continue,
            "rename_all" => "write `#[state(rename = \"name\")]` on every field",
            "from" | "try_from" | "into" | "transparent" => "convert where you need the other form",
            _ => continue,
        };
        refuse(&entry, instead, errors);
    }
}

/// What to write instead; `None` if the attribute does no harm here.
fn instead_on_field(key: &str, read: &FieldAttr) -> Option<&'static str> {
    let untracked = read.kind.as_ref().is_some_and(|kind| matches!(kind.rule, Rule::Untracked));
    match key {
        "rename" if read.rename.is_none() => Some("write `#[state(rename = \"name\")]`, alone or beside it"),
        "skip" | "skip_serializing" | "skip_deserializing" if !untracked => {
            Some("write `#[state(untracked)]`, alone or beside it, to keep the field out of checkpoints")
        }
        "with" | "serialize_with" | "deserialize_with" | "getter" if !untracked => {
            Some("put the value into a type of its own that implements `Serialize` and `Deserialize` this way")
        }
        "flatten" => Some("a field is saved under its own name; drop it, or make its parts fields of the state"),
        "skip_serializing_if" => Some("a field that was never written is left out by itself; drop it"),
        "alias" => Some("a field has one name; drop it, or keep the old name with `#[state(rename = \"name\")]`"),
        _ => None,
    }
}

/// The entries of serde's attributes. A list that cannot be read is serde's to refuse.
fn told(attrs: &[Attribute]) -> Vec<Entry> {
    entries("serde", attrs, &mut Errors::default())
}

fn refuse(entry: &Entry, instead: &str, errors: &mut Errors) {
    errors.at(
        entry,
        format!("`#[serde({})]` has no effect in a state, which is saved field by field; {instead}", entry.key),
    );
}
