//! Rows that go away, and what has to be written so that those that stay keep all their values.
//!
//! A plan is made of what was read, and a database carries it out in the transaction in which it was read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

use superstep::checkpoint::backend::Kept;
use superstep::{CheckpointError, CheckpointId, Prune};

use super::body::{NewOutline, PendingRow, RowCodec};
use super::outline::{Outline, OutlineField, Piece};
use super::read_rows::{Missing, ReadRows};

/// So many rows are removed in one transaction, so that others who write need not wait long.
pub const BATCH: usize = 1000;

/// A namespace of a thread.
#[derive(Debug)]
pub struct Space {
    /// Its number in the database.
    pub key: i64,
    /// Its name.
    pub name: String,
    /// The latest checkpoint of the namespace.
    pub head: CheckpointId,
}

/// A row without what is in it.
#[derive(Debug)]
pub struct RowSummary {
    /// Names the row.
    pub id: CheckpointId,
    /// The checkpoint whose fields it takes over where they did not change.
    pub base: Option<CheckpointId>,
    /// The root graph's checkpoint that it was made under.
    pub root: Option<CheckpointId>,
    /// When it was made, in microseconds since 1970.
    pub created_at: SystemTime,
    /// Whether it has an outline.
    pub has_outline: bool,
}

/// Which checkpoints of a thread a rule keeps.
#[derive(Debug)]
pub struct Pruning {
    /// Of the root graph.
    kept: HashSet<CheckpointId>,
}

impl Pruning {
    /// What the rule says of the rows of the root graph.
    pub fn new(prune: &Prune, root: &[RowSummary]) -> Self {
        Self { kept: prune.kept(&root.iter().map(|row| (row.id, row.created_at)).collect::<Vec<_>>()) }
    }

    /// At most a batch of the rows of a namespace that go.
    pub fn doomed(&self, space: &Space, all: &[RowSummary]) -> HashSet<CheckpointId> {
        let kept = Kept::new(&self.kept);
        let stays = |row: &RowSummary| match &*space.name {
            "" => self.kept.contains(&row.id),
            inner => kept.keeps(inner, row.id == space.head, row.root),
        };
        all.iter().filter(|row| !stays(row)).map(|row| row.id).take(BATCH).collect()
    }
}

/// Rows that go away from a namespace.
#[derive(Debug)]
pub struct Removing<'a> {
    /// Opens and seals its rows.
    pub codec: RowCodec<'a>,
    /// All rows of the namespace.
    pub all: &'a [RowSummary],
    /// Those that go.
    pub removed: &'a HashSet<CheckpointId>,
}

/// What is to be done, in this order.
#[derive(Debug)]
pub struct RemovalPlan {
    /// Outlines that rows get.
    pub outlines: Vec<NewOutline>,
    /// Rows of pending writes that hold all their values from now on.
    pub pending: Vec<PendingRow>,
    /// These rows go, with all that was written under them.
    pub removed: Vec<CheckpointId>,
    /// The latest row that stays; if there is none, the namespace goes.
    pub head: Option<CheckpointId>,
}

impl Removing<'_> {
    /// The rows that may need another outline: those that have one, and those that stand on a removed row. They are to be
    /// read with all that they stand on.
    pub fn staying(&self) -> Vec<CheckpointId> {
        let stands_on_removed = |row: &RowSummary| row.base.is_some_and(|base| self.removed.contains(&base));
        let staying = self.all.iter().filter(|row| !self.removed.contains(&row.id));
        staying.filter(|row| row.has_outline || stands_on_removed(row)).map(|row| row.id).collect()
    }

    /// Further rows to read: they hold what has to be moved together with what is removed.
    pub fn needed(&self, read_rows: &ReadRows) -> Result<HashSet<CheckpointId>, CheckpointError> {
        needed_without(read_rows, self.removed, &self.staying()).map_err(|missing| self.damaged(missing))
    }

    /// The rows that stay and that removed ones were based on: these may hold values of what was written under those. Such
    /// writes are to be read, with the rows that hold values of them.
    pub fn built_on(&self) -> BTreeSet<CheckpointId> {
        let gone = self.all.iter().filter(|row| self.removed.contains(&row.id));
        gone.filter_map(|row| row.base.filter(|base| !self.removed.contains(base))).collect()
    }

    /// What is to be done, from all that was read.
    pub fn plan(&self, read_rows: &ReadRows, pending: &[PendingRow]) -> Result<RemovalPlan, CheckpointError> {
        let outlines =
            outlines_without(read_rows, self.removed, self.staying()).map_err(|missing| self.damaged(missing))?;
        let outlines =
            outlines.iter().map(|(id, outline)| self.codec.outline(*id, outline)).collect::<Result<_, _>>()?;
        let has_values = |row: &&PendingRow| row.consumed.is_some_and(|by| self.removed.contains(&by));
        let pending = pending.iter().filter(has_values);
        let pending = pending.map(|row| self.codec.whole(row, read_rows)).collect::<Result<_, _>>()?;
        let removed = self.removed.iter().copied().collect();
        let head = self.all.iter().map(|row| row.id).filter(|id| !self.removed.contains(id)).max();
        Ok(RemovalPlan { outlines, pending, removed, head })
    }

    fn damaged(&self, missing: Missing) -> CheckpointError {
        let any = self.staying().first().map_or_else(|| "?".to_owned(), ToString::to_string);
        self.codec.damaged(any, missing)
    }
}

/// The rows that were not read, but hold what has to be moved together with what is removed.
pub(crate) fn needed_without(
    read_rows: &ReadRows,
    removed: &HashSet<CheckpointId>,
    staying: &[CheckpointId],
) -> Result<HashSet<CheckpointId>, Missing> {
    let mut needed = HashSet::new();
    for id in staying {
        for (_, pieces) in read_rows.layout(*id)?.fields {
            let moved = pieces.iter().rposition(|piece| goes(read_rows, removed, *piece)).map_or(0, |last| last + 1);
            needed.extend(pieces[..moved].iter().map(|piece| piece.owner()));
        }
    }
    needed.retain(|id| read_rows.lacks(*id));
    Ok(needed)
}

/// The outlines that rows need when others are removed, oldest row first: of those that stand on a removed row, and of
/// those whose outline refers to one. What only removed rows hold is moved into the first outline that needs it; later
/// ones refer to that.
///
/// `staying` are the rows with outlines, and those that stand on a removed row.
pub(crate) fn outlines_without(
    read_rows: &ReadRows,
    removed: &HashSet<CheckpointId>,
    mut staying: Vec<CheckpointId>,
) -> Result<Vec<(CheckpointId, Outline)>, Missing> {
    staying.sort_unstable();
    let mut moved = HashMap::new();
    let mut changed = Vec::new();
    for id in staying {
        let row = read_rows.row(id)?;
        let mut outline = match &row.outline {
            Some(outline) => outline.clone(),
            None => read_rows.layout(id)?.into_outline(),
        };
        let mut pieces = outline.fields.iter().flat_map(|field| &field.pieces);
        let refers = pieces.any(|piece| goes(read_rows, removed, *piece));
        if refers || row.outline.is_none() {
            for field in &mut outline.fields {
                move_removed(read_rows, removed, &mut moved, id, field)?;
            }
            changed.push((id, outline));
        }
    }
    Ok(changed)
}

/// Whether a piece goes away: with its row, or with the base that its row cuts from.
fn goes(read_rows: &ReadRows, removed: &HashSet<CheckpointId>, piece: Piece) -> bool {
    let cuts_from = |owner| {
        let row = read_rows.rows.get(&owner).filter(|row| row.needs_base)?;
        row.record.base()
    };
    let cut_from = if let Piece::Body(owner) = piece { cuts_from(owner) } else { None };
    removed.contains(&piece.owner()) || cut_from.is_some_and(|base| removed.contains(&base))
}

/// Which piece stands for the pieces of a field that were removed.
type Moved = HashMap<(String, Vec<Piece>), Piece>;

fn move_removed(
    read_rows: &ReadRows,
    removed: &HashSet<CheckpointId>,
    moved: &mut Moved,
    owner: CheckpointId,
    field: &mut OutlineField,
) -> Result<(), Missing> {
    let Some(last) = field.pieces.iter().rposition(|piece| goes(read_rows, removed, *piece)) else { return Ok(()) };
    let gone = (field.name.clone(), field.pieces[..=last].to_vec());
    match moved.get(&gone) {
        Some(piece) => drop(field.pieces.splice(..=last, [*piece])),
        None => {
            let value = read_rows.gather(&gone.0, &gone.1)?;
            let piece = field.hold(owner, 0..last + 1, value);
            moved.insert(gone, piece);
        }
    }
    Ok(())
}
