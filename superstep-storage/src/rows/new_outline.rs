//! The outline that a row gets now and then, with long tails gathered in it.

use superstep::{CheckpointError, CheckpointId, FieldRecord, FieldValue};

use super::OutlineInterval;
use super::body::{NewOutline, RowCodec};
use super::outline::{Outline, to_gather};
use super::read_rows::{Missing, ReadRows};

impl RowCodec<'_> {
    /// The rows that have what the outline of a row would gather, as far as they were not read. All that the row stands on
    /// was.
    pub fn to_gather(
        &self,
        read_rows: &ReadRows,
        id: CheckpointId,
        interval: OutlineInterval,
    ) -> Result<Vec<CheckpointId>, CheckpointError> {
        read_rows.to_gather(id, interval).map_err(|missing| self.damaged(id, missing))
    }

    /// The outline of a row. What is to be gathered was read.
    pub fn new_outline(
        &self,
        read_rows: &ReadRows,
        id: CheckpointId,
        interval: OutlineInterval,
    ) -> Result<NewOutline, CheckpointError> {
        self.outline(id, &read_rows.outline(id, interval).map_err(|missing| self.damaged(id, missing))?)
    }
}

impl ReadRows {
    /// The outline of a row, with long tails gathered in it. What is to be gathered must have been read.
    pub(crate) fn outline(&self, id: CheckpointId, interval: OutlineInterval) -> Result<Outline, Missing> {
        let mut outline = self.layout(id)?.into_outline();
        for field in &mut outline.fields {
            let gathered = to_gather(&field.pieces, self.many(id, &field.name, interval)?);
            let (all, many) = (field.pieces.len(), gathered.len());
            if many > 0 {
                let value = self.gather(&field.name, &field.pieces[all - many..])?;
                field.hold(id, all - many..all, value);
            }
        }
        Ok(outline)
    }

    /// The rows that have what the outline of a row would gather, as far as they were not read.
    pub(crate) fn to_gather(&self, id: CheckpointId, interval: OutlineInterval) -> Result<Vec<CheckpointId>, Missing> {
        let mut lacking = Vec::new();
        for (name, pieces) in &self.layout(id)?.fields {
            let owners = to_gather(pieces, self.many(id, name, interval)?).iter().map(|piece| piece.owner());
            lacking.extend(owners.filter(|owner| self.lacks(*owner)));
        }
        Ok(lacking)
    }

    /// How many pieces of a field are worth gathering: more of them if the latest ones are long.
    fn many(&self, id: CheckpointId, name: &str, interval: OutlineInterval) -> Result<usize, Missing> {
        const LONG: usize = 512;
        let (walked, _) = self.walk(id)?;
        let fields = walked.iter().flat_map(|row| row.record.fields()).filter(|field| field.name() == name);
        let tail = |field: &FieldRecord| match field.value() {
            FieldValue::Tail(tail) => Some(tail.iter().map(|write| write.len()).sum()),
            _ => None,
        };
        let lengths: Vec<usize> = fields.filter_map(tail).collect();
        let is_long = lengths.iter().sum::<usize>() > LONG * lengths.len();
        Ok(if is_long { interval.many_long } else { interval.many })
    }
}
