//! What whoever writes knows of the last rows of a namespace.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::outline::{Inline, Outline, OutlineField, Piece};
use super::shelf::{Row, Shelf};
use crate::checkpoint::seeded::Seeded;
use crate::checkpoint::{FieldRecord, FieldValue, Lease};
use crate::id::CheckpointId;
use crate::value::Blob;

/// The last rows of the namespaces that were written here, so that a save need not look them up. A help only: what is not
/// here is read.
///
/// A trail is worth something if the database says the same: the namespace has this head, and no rows were removed from
/// it since. Whoever uses one asks in the transaction of the save.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trails(Arc<Mutex<Known>>);

/// Trails by a hash of thread and namespace. One of another place with the same hash does no harm: each names its space,
/// whose thread must have the epoch of whoever uses it, and no two threads have the same.
#[derive(Debug, Default)]
struct Known {
    trails: HashMap<u64, Trail, Seeded>,
    /// How many bytes they hold together.
    bytes: usize,
}

/// The rows of a namespace from the latest down to the next outline.
#[derive(Debug)]
pub(crate) struct Trail {
    pub(crate) space: i64,
    /// How often rows had been removed.
    pub(crate) removals: i64,
    pub(crate) head: CheckpointId,
    /// How far the head is from an outline.
    pub(crate) depth: i64,
    /// None if some of them were not written here, or are not worth the memory. Older ones that the outline refers to are
    /// here too, as far as they were.
    rows: Option<Shelf>,
    bytes: usize,
}

impl Trails {
    /// So many bytes may be known; at more, all are forgotten. Enough for the threads that write at a time; allocators hold a
    /// multiple of it.
    const MOST: usize = 1 << 20;

    /// Takes out the trail that ends with the latest row that a writer knows of; it is put back when it is longer by a row.
    pub(crate) fn take(&self, lease: Lease<'_>, head: Option<CheckpointId>) -> Option<Trail> {
        let mut known = self.lock();
        let place = known.place(lease);
        let trail = known.trails.remove(&place)?;
        known.bytes -= trail.size();
        Some(trail).filter(|trail| head == Some(trail.head))
    }

    pub(crate) fn put(&self, lease: Lease<'_>, trail: Trail) {
        let mut known = self.lock();
        if known.bytes + trail.size() > Self::MOST {
            *known = Known::default();
        }
        known.bytes += trail.size();
        let place = known.place(lease);
        if let Some(other) = known.trails.insert(place, trail) {
            known.bytes -= other.size();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn place(&self, lease: Lease<'_>) -> u64 {
        self.trails.hasher().hash_one((lease.thread, lease.namespace))
    }
}

impl Trail {
    /// One with more bytes knows where its head is, and no more.
    const LONGEST: usize = 256 << 10;

    /// The trail of a row that does not go on from the head of another.
    pub(crate) fn start(space: i64, removals: i64, row: Box<Row>, depth: i64) -> Self {
        let rows = row.record.base.is_none().then(Shelf::default);
        Self { space, removals, head: row.record.id, depth: 0, rows, bytes: 0 }.go_on(row, depth)
    }

    /// The trail with the row after its head.
    pub(crate) fn go_on(mut self, row: Box<Row>, depth: i64) -> Self {
        (self.head, self.depth) = (row.record.id, depth);
        self.bytes += bytes(&row);
        match &mut self.rows {
            Some(shelf) if self.bytes <= Self::LONGEST => drop(shelf.rows.insert(row.record.id, row)),
            _ => self.forget(),
        }
        self
    }

    /// Takes the rows out, if they are known, to make an outline of them.
    pub(crate) fn take_rows(&mut self) -> Option<Shelf> {
        self.bytes = 0;
        self.rows.take()
    }

    /// Its head has this outline now: of the rows, those stay that the next one may gather.
    pub(crate) fn outlined(&mut self, mut shelf: Shelf, outline: Outline) {
        let (mut bodies, mut outlines) = (HashSet::from([self.head]), HashSet::new());
        for piece in outline.fields.iter().flat_map(|field| &field.pieces) {
            match piece {
                Piece::Body(owner) => bodies.insert(*owner),
                Piece::Outline(owner, _) => outlines.insert(*owner),
            };
        }
        // A row that stays without its outline would pass for one that has none.
        outlines.remove(&self.head);
        shelf.rows.retain(|id, row| bodies.contains(id) && !outlines.contains(id) && row.cuts.is_empty());
        shelf.rows.values_mut().for_each(|row| row.strip());
        if let Some(head) = shelf.rows.get_mut(&self.head) {
            head.outline = Some(outline);
        }
        self.depth = 0;
        self.bytes = shelf.rows.values().map(|row| bytes(row)).sum();
        self.rows = Some(shelf);
        if self.bytes > Self::LONGEST {
            self.forget();
        }
    }

    /// About how much memory it takes.
    fn size(&self) -> usize {
        size_of::<(u64, Trail)>() + self.bytes
    }

    fn forget(&mut self) {
        self.rows = None;
        self.bytes = 0;
    }
}

/// About how much memory a bare row takes.
fn bytes(row: &Row) -> usize {
    let blobs = |blobs: &[Blob]| blobs.iter().map(|blob| size_of::<Blob>() + blob.len()).sum::<usize>();
    let field = |field: &FieldRecord| {
        let value = match &field.value {
            FieldValue::Whole(value) => value.len(),
            FieldValue::Tail(tail) => blobs(tail),
            FieldValue::Absent => 0,
        };
        size_of::<FieldRecord>() + value
    };
    let held = |held: &Inline| held.whole.as_ref().map_or(0, |whole| whole.len()) + blobs(&held.tail);
    let outlined = row.outline.iter().flat_map(|outline| &outline.fields).map(|field| {
        let pieces = size_of::<Piece>() * field.pieces.len();
        size_of::<OutlineField>() + field.name.len() + pieces + field.held.iter().map(held).sum::<usize>()
    });
    let fields = row.record.fields.iter().map(field);
    size_of::<(CheckpointId, Row)>() + fields.sum::<usize>() + outlined.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::SystemTime;

    use super::*;
    use crate::checkpoint::{CheckpointRecord, Epoch, Few, SharedMap, Source};

    fn row(number: u128, len: usize) -> Box<Row> {
        let id = CheckpointId::from_u128(number);
        let base = (number > 1).then(|| CheckpointId::from_u128(number - 1));
        let mut fields = Few::new();
        fields.push(FieldRecord { name: "log".into(), value: FieldValue::Tail(vec![Blob::from(&vec![0; len][..])]) });
        Row::bare(&CheckpointRecord {
            format: 1,
            id,
            parent: base,
            base,
            head: base,
            run: Some("run".into()),
            source: Source::Loop,
            step: 0,
            created_at: SystemTime::UNIX_EPOCH,
            metadata: BTreeMap::from([("long".to_owned(), vec![0; 1000].into())]).into(),
            parents: SharedMap::default(),
            shape: Blob::default().into(),
            control: Blob::from(&[0; 1000][..]),
            fields,
            writes: Vec::new(),
        })
    }

    #[test]
    fn a_bare_row_holds_its_fields_and_no_more() {
        let record = row(1, 9).record;
        assert_eq!((record.metadata.len(), record.control.len(), record.run, record.fields.len()), (0, 0, None, 1));
    }

    fn lease(thread: &str) -> Lease<'_> {
        Lease::new(thread, "", Epoch::from_u64(1))
    }

    #[test]
    fn trails_hold_a_bounded_number_of_bytes() {
        let trails = Trails::default();
        for number in 0..200 {
            trails.put(lease(&number.to_string()), Trail::start(1, 0, row(1, 100 << 10), 1));
            let known = trails.lock();
            assert!(known.bytes <= Trails::MOST);
            assert_eq!(known.trails.values().map(Trail::size).sum::<usize>(), known.bytes);
        }
        let head = Some(CheckpointId::from_u128(1));
        assert!(trails.take(lease("0"), head).is_none(), "the first was forgotten");
        assert!(trails.take(lease("199"), head).is_some());
    }

    #[test]
    fn a_trail_is_taken_if_it_ends_where_the_writer_is() {
        let (trails, head) = (Trails::default(), CheckpointId::from_u128(1));
        for (wanted, is_there) in [(None, false), (Some(CheckpointId::from_u128(2)), false), (Some(head), true)] {
            trails.put(lease("t"), Trail::start(1, 0, row(1, 9), 1));
            trails.put(lease("t"), Trail::start(1, 0, row(1, 99), 1));
            assert_eq!(trails.take(lease("t"), wanted).is_some(), is_there);
            assert_eq!(trails.lock().bytes, 0);
        }
    }

    #[test]
    fn a_trail_of_many_bytes_knows_its_head_only() {
        let mut trail = Trail::start(1, 0, row(1, 200 << 10), 1);
        for number in 2..=3 {
            trail = trail.go_on(row(number, 200 << 10), number as i64);
        }
        assert!(trail.take_rows().is_none());
        assert_eq!((trail.head, trail.depth, trail.bytes), (CheckpointId::from_u128(3), 3, 0));
    }

    #[test]
    fn rows_are_known_from_the_first_or_from_an_outline_on() {
        assert!(Trail::start(1, 0, row(1, 9), 1).take_rows().is_some());
        let mut trail = Trail::start(1, 0, row(7, 9), 7);
        assert!(trail.take_rows().is_none(), "the rows below it were not written here");
        let mut shelf = Shelf::default();
        shelf.rows.insert(CheckpointId::from_u128(7), row(7, 9));
        trail.outlined(shelf, Outline::default());
        assert_eq!(trail.go_on(row(8, 9), 1).take_rows().map(|shelf| shelf.rows.len()), Some(2));
    }
}
