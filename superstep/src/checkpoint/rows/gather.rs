//! The outline that a row gets now and then, with long tails gathered in it.

use super::Pitch;
use super::body::{Desk, NewOutline};
use super::outline::{Outline, to_gather};
use super::shelf::{Missing, Shelf};
use crate::checkpoint::{CheckpointError, FieldRecord, FieldValue};
use crate::id::CheckpointId;

impl Desk<'_> {
    /// The rows that have what the outline of a row would gather, and are lacking on the shelf. All that the row stands on is
    /// there.
    pub(crate) fn to_gather(
        &self,
        shelf: &Shelf,
        id: CheckpointId,
        pitch: Pitch,
    ) -> Result<Vec<CheckpointId>, CheckpointError> {
        shelf.to_gather(id, pitch).map_err(|missing| self.damaged(id, missing))
    }

    /// The outline of a row. What is to be gathered is on the shelf.
    pub(crate) fn new_outline(
        &self,
        shelf: &Shelf,
        id: CheckpointId,
        pitch: Pitch,
    ) -> Result<NewOutline, CheckpointError> {
        self.outline(id, &shelf.outline(id, pitch).map_err(|missing| self.damaged(id, missing))?)
    }
}

impl Shelf {
    /// The outline of a row, with long tails gathered in it. What is to be gathered must be on the shelf.
    pub(crate) fn outline(&self, id: CheckpointId, pitch: Pitch) -> Result<Outline, Missing> {
        let mut outline = self.layout(id)?.into_outline();
        for field in &mut outline.fields {
            let gathered = to_gather(&field.pieces, self.many(id, &field.name, pitch)?);
            let (all, many) = (field.pieces.len(), gathered.len());
            if many > 0 {
                let value = self.gather(&field.name, &field.pieces[all - many..])?;
                field.hold(id, all - many..all, value);
            }
        }
        Ok(outline)
    }

    /// The rows that have what the outline of a row would gather, and are lacking on the shelf.
    pub(crate) fn to_gather(&self, id: CheckpointId, pitch: Pitch) -> Result<Vec<CheckpointId>, Missing> {
        let mut lacking = Vec::new();
        for (name, pieces) in &self.layout(id)?.fields {
            let owners = to_gather(pieces, self.many(id, name, pitch)?).iter().map(|piece| piece.owner());
            lacking.extend(owners.filter(|owner| self.lacks(*owner)));
        }
        Ok(lacking)
    }

    /// How many pieces of a field are worth gathering: more of them if the latest ones are long.
    fn many(&self, id: CheckpointId, name: &str, pitch: Pitch) -> Result<usize, Missing> {
        const LONG: usize = 512;
        let (walked, _) = self.walk(id)?;
        let fields = walked.iter().flat_map(|row| &row.record.fields).filter(|field| *field.name == *name);
        let tail = |field: &FieldRecord| match &field.value {
            FieldValue::Tail(tail) => Some(tail.iter().map(|write| write.len()).sum()),
            _ => None,
        };
        let lengths: Vec<usize> = fields.filter_map(tail).collect();
        let is_long = lengths.iter().sum::<usize>() > LONG * lengths.len();
        Ok(if is_long { pitch.many_long } else { pitch.many })
    }
}
