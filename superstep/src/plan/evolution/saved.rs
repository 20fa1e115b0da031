//! Saved fields as plain data, for migrations.

use serde_json::Value;

use crate::value::{Blob, decode, encode};

/// What was saved, as plain data by the names of fields.
///
/// A field of appended values may be saved in pieces: a whole value and what was written since. Pieces are changed one
/// by one and read together.
///
/// ```
/// use superstep::SavedFields;
/// fn to_version_2(fields: &mut SavedFields) {
///     fields.rename("mail", "email");
///     fields.change("tags", |tags| tags.as_str().unwrap_or_default().split(' ').collect());
///     if let Some(name) = fields.remove("name") {
///         let mut parts = name.as_str().unwrap_or_default().splitn(2, ' ').map(str::to_owned);
///         fields.insert("first", parts.next().unwrap_or_default());
///         fields.insert("last", parts.next().unwrap_or_default());
///     }
///     fields.default("visits", 1);
/// }
/// ```
#[derive(Debug)]
pub struct SavedFields {
    fields: Vec<(String, Vec<Piece>)>,
    /// They are a state, not just what someone wrote to one.
    is_state: bool,
    failed: Option<String>,
}

/// A whole value, or one write.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) is_whole: bool,
    pub(crate) overwrite: bool,
    value: Held,
}

/// Data stays as it was saved until someone looks at it.
#[derive(Debug, Clone)]
enum Held {
    Saved(Blob),
    Plain(Value),
}

impl Piece {
    pub(crate) fn whole(bytes: Blob) -> Self {
        Self { is_whole: true, overwrite: false, value: Held::Saved(bytes) }
    }

    pub(crate) fn write(bytes: Blob, overwrite: bool) -> Self {
        Self { is_whole: false, overwrite, value: Held::Saved(bytes) }
    }

    fn plain(&self) -> Result<Value, String> {
        match &self.value {
            Held::Saved(bytes) => decode(bytes).map_err(|e| format!("it is no plain data: {e}")),
            Held::Plain(value) => Ok(value.clone()),
        }
    }

    /// As it would have been saved.
    pub(crate) fn bytes(&self) -> Result<Blob, String> {
        match &self.value {
            Held::Saved(bytes) => Ok(bytes.clone()),
            Held::Plain(value) => encode(value).map_err(|e| e.to_string()),
        }
    }
}

impl SavedFields {
    pub(crate) fn of_state() -> Self {
        Self { fields: Vec::new(), is_state: true, failed: None }
    }

    pub(crate) fn of_writes() -> Self {
        Self { is_state: false, ..Self::of_state() }
    }

    pub(crate) fn push(&mut self, name: &str, piece: Piece) {
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, pieces)) => pieces.push(piece),
            None => self.fields.push((name.to_owned(), vec![piece])),
        }
    }

    pub(crate) fn into_fields(self) -> Vec<(String, Vec<Piece>)> {
        self.fields
    }

    /// What could not be read, if anything.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|(known, _)| known == name)
    }

    /// The names of the fields that have a value, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// The value of a field; pieces are put together, lists, texts and objects one behind the other.
    pub fn get(&mut self, name: &str) -> Option<Value> {
        let place = self.place(name)?;
        let pieces: Result<Vec<Value>, String> = self.fields[place].1.iter().map(Piece::plain).collect();
        match pieces {
            Ok(pieces) => pieces.into_iter().reduce(joined),
            Err(why) => {
                self.failed.get_or_insert_with(|| format!("field `{name}`: {why}"));
                None
            }
        }
    }

    /// Gives a field another name. If there is a field of that name, it is replaced.
    pub fn rename(&mut self, old: &str, new: &str) {
        let Some(place) = self.place(old).filter(|_| old != new) else { return };
        let (_, pieces) = self.fields.remove(place);
        self.fields.retain(|(name, _)| name != new);
        self.fields.push((new.to_owned(), pieces));
    }

    /// Takes a field out, and gives what it was, as [`get`](SavedFields::get) does.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let value = self.get(name)?;
        self.fields.retain(|(known, _)| known != name);
        Some(value)
    }

    /// Sets a field.
    pub fn insert(&mut self, name: &str, value: impl Into<Value>) {
        let piece = Piece { is_whole: self.is_state, overwrite: false, value: Held::Plain(value.into()) };
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), vec![piece]));
    }

    /// Sets a field of a state that has no value for it; what someone wrote to a state is left alone.
    pub fn default(&mut self, name: &str, value: impl Into<Value>) {
        if self.is_state && self.place(name).is_none() {
            self.insert(name, value);
        }
    }

    /// Changes each piece of a field.
    pub fn change(&mut self, name: &str, mut change: impl FnMut(Value) -> Value) {
        let Some(place) = self.place(name) else { return };
        for piece in &mut self.fields[place].1 {
            match piece.plain() {
                Ok(value) => piece.value = Held::Plain(change(value)),
                Err(why) => drop(self.failed.get_or_insert_with(|| format!("field `{name}`: {why}"))),
            }
        }
    }
}

/// Two pieces of one value.
fn joined(before: Value, after: Value) -> Value {
    match (before, after) {
        (Value::Array(mut list), Value::Array(more)) => {
            list.extend(more);
            Value::Array(list)
        }
        (Value::String(text), Value::String(more)) => Value::String(text + &more),
        (Value::Object(mut map), Value::Object(more)) => {
            map.extend(more);
            Value::Object(map)
        }
        (_, after) => after,
    }
}
