//! Where the pieces of a state's fields lie.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use superstep::{Blob, CheckpointId, FieldValue};

/// A part of a field's value. The value is its pieces in order; only the first may hold a whole value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    /// What the body of a row holds of the field.
    Body(CheckpointId),
    /// What the outline of a row holds of the field, in this place. What lies there never changes.
    Outline(CheckpointId, u32),
}

impl Piece {
    pub(crate) fn owner(self) -> CheckpointId {
        match self {
            Piece::Body(owner) | Piece::Outline(owner, _) => owner,
        }
    }
}

impl Serialize for Piece {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = match self {
            Piece::Body(_) => None,
            Piece::Outline(_, place) => Some(place),
        };
        (place, self.owner().as_u128()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (place, owner) = <(Option<u32>, u128)>::deserialize(deserializer)?;
        let owner = CheckpointId::from_u128(owner);
        Ok(place.map_or(Piece::Body(owner), |place| Piece::Outline(owner, place)))
    }
}

/// Values themselves: a whole one, and writes to merge into it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inline {
    pub(crate) whole: Option<Blob>,
    pub(crate) tail: Vec<Blob>,
}

/// The whole state at a row: every field that has a value.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outline {
    /// By name.
    pub(crate) fields: Vec<OutlineField>,
}

/// A field's pieces, and the values that this outline holds of it: pieces of this and of other outlines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OutlineField {
    pub(crate) name: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) held: Vec<Inline>,
}

impl OutlineField {
    /// Replaces some pieces by one that this outline holds.
    pub(crate) fn hold(&mut self, owner: CheckpointId, range: std::ops::Range<usize>, value: Inline) -> Piece {
        let piece = Piece::Outline(owner, self.held.len() as u32);
        self.held.push(value);
        self.pieces.splice(range, [piece]);
        piece
    }
}

impl Outline {
    /// Whether it has each field and each piece once: otherwise a small one could stand for a state of any size.
    pub(crate) fn is_sound(&self) -> bool {
        let (mut names, mut pieces) = (HashSet::new(), HashSet::new());
        let mut fields = self.fields.iter();
        fields.all(|field| {
            pieces.clear();
            names.insert(&field.name) && field.pieces.iter().all(|piece| pieces.insert(*piece))
        })
    }

    /// The other rows that it refers to.
    pub(crate) fn owners(&self, own: CheckpointId) -> Vec<CheckpointId> {
        let pieces = self.fields.iter().flat_map(|field| &field.pieces);
        let mut owners: Vec<CheckpointId> = pieces.map(|piece| piece.owner()).filter(|owner| *owner != own).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}

/// The fields that have a value at a row, in the order in which they got one, with their pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) fields: Vec<(String, Vec<Piece>)>,
}

impl Layout {
    pub(crate) fn of(outline: &Outline) -> Self {
        Self { fields: outline.fields.iter().map(|field| (field.name.clone(), field.pieces.clone())).collect() }
    }

    /// Takes in what the body of a row says of a field.
    pub(crate) fn apply(&mut self, name: &str, value: &FieldValue, owner: CheckpointId) {
        let place = self.fields.iter().position(|(known, _)| known == name);
        match (value, place) {
            (FieldValue::Absent, None) => {}
            (FieldValue::Absent, Some(place)) => drop(self.fields.remove(place)),
            // A body that names a field twice has one value of it.
            (FieldValue::Tail(_), Some(place)) if self.fields[place].1.last() == Some(&Piece::Body(owner)) => {}
            (FieldValue::Tail(_), Some(place)) => self.fields[place].1.push(Piece::Body(owner)),
            (FieldValue::Whole(_), Some(place)) => self.fields[place].1 = vec![Piece::Body(owner)],
            (_, None) => self.fields.push((name.to_owned(), vec![Piece::Body(owner)])),
        }
    }

    pub(crate) fn into_outline(self) -> Outline {
        let fields = self.fields.into_iter();
        Outline { fields: fields.map(|(name, pieces)| OutlineField { name, pieces, held: Vec::new() }).collect() }
    }
}

/// Which pieces are worth gathering into one: many rows' tails, or many outlines' parts of tails; they are the last ones.
/// The first piece may be a whole value and stays where it is.
pub(super) fn to_gather(pieces: &[Piece], many: usize) -> &[Piece] {
    let Some((_, rest)) = pieces.split_first() else { return &[] };
    let bodies = rest.iter().rev().take_while(|piece| matches!(piece, Piece::Body(_))).count();
    let outlines = rest.len() - bodies;
    match (bodies >= many, outlines >= many) {
        (false, _) => &[],
        (true, false) => &rest[outlines..],
        (true, true) => rest,
    }
}
