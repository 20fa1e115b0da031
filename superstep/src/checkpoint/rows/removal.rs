//! Rows that go away, and new outlines: with long tails gathered, and without those rows.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use super::Pitch;
use super::body::source_number;
use super::outline::{Outline, OutlineField, Piece, to_gather};
use super::shelf::{Missing, Shelf};
use crate::checkpoint::{FieldRecord, FieldValue, Source};
use crate::id::CheckpointId;

/// A row without what is in it.
pub(crate) struct Made {
    pub(crate) id: CheckpointId,
    pub(crate) base: Option<CheckpointId>,
    pub(crate) root: Option<CheckpointId>,
    pub(crate) created_at: SystemTime,
    pub(crate) source: i64,
    pub(crate) step: i64,
    pub(crate) has_outline: bool,
}

/// Why rows are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// They are old: what was written under rows that stay is kept.
    Prune,
    /// Their run never was: what its tasks wrote under rows that stay goes too.
    Run,
}

/// The rows that stay and that removed ones were based on, with the removed ones: these may hold writes of those.
pub(crate) fn consumed_under(made: &[Made], removed: &HashSet<CheckpointId>) -> Vec<(CheckpointId, CheckpointId)> {
    let gone = made.iter().filter(|made| removed.contains(&made.id));
    gone.filter_map(|made| Some((made.base.filter(|base| !removed.contains(base))?, made.id))).collect()
}

/// The rows that stay and that removed ones were the next step of: what is pending under them was written by the tasks
/// of that step.
pub(crate) fn left_by_steps(made: &[Made], removed: &HashSet<CheckpointId>) -> Vec<CheckpointId> {
    let steps: HashMap<CheckpointId, i64> = made.iter().map(|made| (made.id, made.step)).collect();
    let is_next = |made: &&Made| {
        let before = made.base.and_then(|base| steps.get(&base));
        removed.contains(&made.id)
            && made.source == source_number(Source::Loop)
            && before.is_some_and(|before| made.step == before + 1)
    };
    made.iter().filter(is_next).filter_map(|made| made.base).filter(|base| !removed.contains(base)).collect()
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

/// The rows that are lacking on the shelf, but hold what has to be moved together with what is removed.
pub(crate) fn needed_without(
    shelf: &Shelf,
    removed: &HashSet<CheckpointId>,
    staying: &[CheckpointId],
) -> Result<HashSet<CheckpointId>, Missing> {
    let mut needed = HashSet::new();
    for id in staying {
        for (_, pieces) in shelf.layout(*id)?.fields {
            let moved = pieces.iter().rposition(|piece| goes(shelf, removed, *piece)).map_or(0, |last| last + 1);
            needed.extend(pieces[..moved].iter().map(|piece| piece.owner()));
        }
    }
    needed.retain(|id| shelf.lacks(*id));
    Ok(needed)
}

/// The outlines that rows need when others are removed, oldest row first: of those that stand on a removed row, and of
/// those whose outline refers to one. What only removed rows hold is moved into the first outline that needs it; later
/// ones refer to that.
///
/// `staying` are the rows with outlines, and those that stand on a removed row.
pub(crate) fn outlines_without(
    shelf: &Shelf,
    removed: &HashSet<CheckpointId>,
    mut staying: Vec<CheckpointId>,
) -> Result<Vec<(CheckpointId, Outline)>, Missing> {
    staying.sort_unstable();
    let mut moved = HashMap::new();
    let mut changed = Vec::new();
    for id in staying {
        let row = shelf.row(id)?;
        let mut outline = match &row.outline {
            Some(outline) => outline.clone(),
            None => shelf.layout(id)?.into_outline(),
        };
        let mut pieces = outline.fields.iter().flat_map(|field| &field.pieces);
        let refers = pieces.any(|piece| goes(shelf, removed, *piece));
        if refers || row.outline.is_none() {
            for field in &mut outline.fields {
                move_removed(shelf, removed, &mut moved, id, field)?;
            }
            changed.push((id, outline));
        }
    }
    Ok(changed)
}

/// Whether a piece goes away: with its row, or with the base that its row cuts from.
fn goes(shelf: &Shelf, removed: &HashSet<CheckpointId>, piece: Piece) -> bool {
    let cuts_from = |owner| {
        let row = shelf.rows.get(&owner).filter(|row| row.needs_base)?;
        row.record.base
    };
    let cut_from = if let Piece::Body(owner) = piece { cuts_from(owner) } else { None };
    removed.contains(&piece.owner()) || cut_from.is_some_and(|base| removed.contains(&base))
}

/// Which piece stands for the pieces of a field that were removed.
type Moved = HashMap<(String, Vec<Piece>), Piece>;

fn move_removed(
    shelf: &Shelf,
    removed: &HashSet<CheckpointId>,
    moved: &mut Moved,
    owner: CheckpointId,
    field: &mut OutlineField,
) -> Result<(), Missing> {
    let Some(last) = field.pieces.iter().rposition(|piece| goes(shelf, removed, *piece)) else { return Ok(()) };
    let gone = (field.name.clone(), field.pieces[..=last].to_vec());
    match moved.get(&gone) {
        Some(piece) => drop(field.pieces.splice(..=last, [*piece])),
        None => {
            let value = shelf.gather(&gone.0, &gone.1)?;
            let piece = field.hold(owner, 0..last + 1, value);
            moved.insert(gone, piece);
        }
    }
    Ok(())
}
