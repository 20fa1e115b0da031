//! Rows that were read, and the checkpoints that they make up.

use std::collections::HashMap;

use superstep::checkpoint::backend::merge_tasks;
use superstep::{
    Blob, CheckpointId, CheckpointRecord, FieldRecord, FieldValue, SavedCheckpoint, SavedField, TaskRecord, WriteRecord,
};

use super::outline::{Inline, Layout, Outline, Piece};

/// A checkpoint's row, opened.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) record: CheckpointRecord,
    /// Whether its shape was read with it.
    pub(crate) has_shape: bool,
    /// Values that are still to be cut from the base.
    pub(crate) cuts: Vec<Cut>,
    /// Whether it had any.
    pub(crate) needs_base: bool,
    pub(crate) outline: Option<Outline>,
}

/// A write in the tail of a field that lies in the base's control part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) field: usize,
    pub(crate) write: usize,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// What a task wrote; some values may lie in the tails of the checkpoint that consumed them.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) checkpoint: CheckpointId,
    pub(crate) consumed: Option<CheckpointId>,
    /// Which writes of the first record, and where in the tail of their field.
    pub(crate) in_tail: Vec<(usize, usize)>,
    /// The records that runs made of the task, in the order of the runs.
    pub(crate) runs: Vec<TaskRecord>,
}

/// Something that a row refers to is not there.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) String);

/// Boxed: they are moved about, and large.
pub(crate) type Rows = HashMap<CheckpointId, Box<Row>>;

/// Rows of one namespace.
#[derive(Debug, Default)]
pub struct ReadRows {
    /// By id.
    pub(crate) rows: Rows,
    /// What tasks wrote.
    pub(crate) pending: Vec<Pending>,
}

impl ReadRows {
    /// Whether a row is not here, or not whole, because the one that it cuts from is not.
    pub fn lacks(&self, id: CheckpointId) -> bool {
        self.rows.get(&id).is_none_or(|row| !row.cuts.is_empty())
    }

    /// Whether a row is here.
    pub fn has(&self, id: CheckpointId) -> bool {
        self.rows.contains_key(&id)
    }

    /// Takes in rows that are lacking here.
    pub fn add(&mut self, others: ReadRows) {
        for (id, row) in others.rows {
            if self.lacks(id) {
                self.rows.insert(id, row);
            }
        }
    }

    /// Brings in what rows cut from their bases, as far as those are here.
    pub(crate) fn settle(&mut self) {
        let uncut = self.rows.iter().filter(|(_, row)| !row.cuts.is_empty()).map(|(id, _)| *id);
        for id in uncut.collect::<Vec<_>>() {
            let base = self.rows[&id].record.base().and_then(|base| self.rows.get(&base));
            let Some(control) = base.map(|base| base.record.control().clone()) else { continue };
            let Some(row) = self.rows.get_mut(&id) else { continue };
            let mut values: Vec<_> = row.record.fields().iter().map(|field| field.value().clone()).collect();
            row.cuts.retain(|cut| !bring(&mut values, *cut, &control));
            let fields = row.record.fields().iter().zip(values);
            let fields = fields.map(|(field, value)| FieldRecord::new(field.name(), value)).collect();
            row.record = row.record.clone().with_fields(fields);
        }
    }

    /// Where the fields lie at a row: down to the next outline, and up again.
    pub(crate) fn layout(&self, id: CheckpointId) -> Result<Layout, Missing> {
        let (walked, outline) = self.walk(id)?;
        let mut layout = outline.map(Layout::of).unwrap_or_default();
        for row in walked.into_iter().rev() {
            let id = row.record.id();
            row.record.fields().iter().for_each(|field| layout.apply(field.name(), field.value(), id));
        }
        Ok(layout)
    }

    /// The rows from this one down to the next outline.
    pub(crate) fn walk(&self, id: CheckpointId) -> Result<(Vec<&Row>, Option<&Outline>), Missing> {
        let mut walked = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            let row = self.row(id)?;
            if let Some(outline) = &row.outline {
                return Ok((walked, Some(outline)));
            }
            walked.push(row);
            // What a row stands on is older, or it had not been opened: a walk comes to an end.
            next = row.record.base();
        }
        Ok((walked, None))
    }

    /// The checkpoint with all its fields, and the pending writes that were read with it.
    pub(crate) fn saved(&self, id: CheckpointId) -> Result<SavedCheckpoint, Missing> {
        let layout = self.layout(id)?;
        let mut fields = Vec::with_capacity(layout.fields.len());
        for (name, pieces) in &layout.fields {
            let Inline { whole, tail } = self.gather(name, pieces)?;
            fields.push(SavedField::new(name.as_str(), whole, tail));
        }
        let own = self.pending.iter().filter(|pending| pending.checkpoint == id);
        let mut records = Vec::new();
        for pending in own {
            records.extend(self.runs(pending)?);
        }
        let writes = merge_tasks(records);
        let row = self.row(id)?;
        if !row.has_shape {
            return Err(Missing("the names of its graph".to_owned()));
        }
        Ok(SavedCheckpoint::new(row.record.clone().with_fields(Vec::new()), fields, writes))
    }

    /// The values of a field's pieces.
    pub(crate) fn gather(&self, name: &str, pieces: &[Piece]) -> Result<Inline, Missing> {
        let mut all = Inline::default();
        for piece in pieces {
            match self.piece(name, *piece).ok_or_else(|| no_piece(name, *piece))? {
                Held::Value(FieldValue::Whole(value)) => all.whole = Some(value.clone()),
                Held::Value(FieldValue::Tail(tail)) => all.tail.extend(tail.iter().cloned()),
                Held::Value(FieldValue::Absent) => return Err(no_piece(name, *piece)),
                Held::Inline(inline) => {
                    all.whole = inline.whole.clone().or(all.whole);
                    all.tail.extend(inline.tail.iter().cloned());
                }
            }
        }
        Ok(all)
    }

    /// What a task wrote, run by run, with the values that lie elsewhere.
    pub(crate) fn runs(&self, pending: &Pending) -> Result<Vec<TaskRecord>, Missing> {
        let mut runs = pending.runs.clone();
        let Some(first) = runs.first_mut().filter(|_| !pending.in_tail.is_empty()) else { return Ok(runs) };
        let mut writes = first.writes().to_vec();
        for (write, place) in &pending.in_tail {
            let known = &writes[*write];
            let value = self.tail_value(pending, known.channel(), *place)?.clone();
            writes[*write] = WriteRecord::new(known.channel(), value).with_overwrite(known.is_overwrite());
        }
        *first = first.clone().with_writes(writes);
        Ok(runs)
    }

    fn tail_value(&self, pending: &Pending, channel: &str, place: usize) -> Result<&Blob, Missing> {
        let missing = || Missing(format!("a write to `{channel}` that checkpoint {:?} holds", pending.consumed));
        let row = self.row(pending.consumed.ok_or_else(missing)?)?;
        let at = row.record.fields().iter().position(|field| field.name() == channel).ok_or_else(missing)?;
        match row.record.fields()[at].value() {
            FieldValue::Tail(_) if row.cuts.iter().any(|cut| cut.field == at) => Err(missing()),
            FieldValue::Tail(tail) => tail.get(place).ok_or_else(missing),
            _ => Err(missing()),
        }
    }

    fn piece(&self, name: &str, piece: Piece) -> Option<Held<'_>> {
        let row = self.rows.get(&piece.owner())?;
        match piece {
            Piece::Body(_) => {
                let at = row.record.fields().iter().position(|field| field.name() == name)?;
                let is_whole = !row.cuts.iter().any(|cut| cut.field == at);
                is_whole.then(|| Held::Value(row.record.fields()[at].value()))
            }
            Piece::Outline(_, place) => {
                let mut fields = row.outline.iter().flat_map(|outline| &outline.fields);
                fields.find(|field| field.name == name)?.held.get(place as usize).map(Held::Inline)
            }
        }
    }

    /// The row, opened or as it is sealed.
    pub(crate) fn row(&self, id: CheckpointId) -> Result<&Row, Missing> {
        self.rows.get(&id).map(|row| &**row).ok_or_else(|| Missing(format!("checkpoint {id}")))
    }
}

/// Puts a cut in its place; whether it could be.
fn bring(fields: &mut [FieldValue], cut: Cut, control: &[u8]) -> bool {
    let bytes = cut.at.checked_add(cut.len).and_then(|end| control.get(cut.at..end));
    match (fields.get_mut(cut.field), bytes) {
        (Some(FieldValue::Tail(tail)), Some(bytes)) => match tail.get_mut(cut.write) {
            Some(place) => {
                *place = bytes.into();
                true
            }
            None => false,
        },
        _ => false,
    }
}

enum Held<'a> {
    Value(&'a FieldValue),
    Inline(&'a Inline),
}

fn no_piece(name: &str, piece: Piece) -> Missing {
    Missing(format!("what checkpoint {} holds of field `{name}`", piece.owner()))
}
