//! Packing anew: without what nobody asks for any more.

use std::collections::HashMap;

use super::read::Piece;
use super::{FIRST, Packed, Place};

/// Where values lay, and where they lie now.
type Moved = HashMap<u32, u32>;

impl Packed {
    /// Whether much of it is of no use, if there are so many checkpoints: so much that packing anew costs little for each
    /// that was left behind.
    pub(in super::super) fn is_wasteful(&self, checkpoints: usize) -> bool {
        let worth_it = if self.is_full() { 16 } else { 2 };
        worth_it * self.left_behind > checkpoints
    }

    /// These checkpoints and what belongs to them, without the rest.
    pub(in super::super) fn only(&self, places: &mut [Place]) -> Packed {
        let (mut packed, mut moved) = (Packed::default(), Moved::new());
        packed.bytes.reserve_exact(FIRST.min(self.bytes.len()));
        for place in places {
            *place = packed.move_in(self, *place, &mut moved);
        }
        packed
    }

    fn move_in(&mut self, from: &Packed, place: Place, moved: &mut Moved) -> Place {
        self.make_room();
        let mut new = self.begin(&from.record(place));
        let values: Vec<_> =
            from.values(place).map(|(name, value)| (name, self.move_value(from, value, moved))).collect();
        new.fields = self.end();
        self.number(values.len() as u32);
        for (name, value) in values {
            let name = self.name_number(new.common, &name);
            self.numbers([name, value]);
        }
        from.written(place).iter().for_each(|task| self.append(&mut new, task));
        new
    }

    /// Brings a value in, and those that it builds on; each once.
    fn move_value(&mut self, from: &Packed, value: u32, moved: &mut Moved) -> u32 {
        let (mut pieces, mut next) = (Vec::new(), value);
        while next != 0 && !moved.contains_key(&next) {
            let piece = from.piece(next);
            let before = if let Piece::Tail { before, .. } = &piece { *before } else { 0 };
            pieces.push((next, piece));
            next = before;
        }
        let mut before = moved.get(&next).copied().unwrap_or_default();
        for (at, piece) in pieces.into_iter().rev() {
            let here = self.end();
            match &piece {
                Piece::Whole(whole) => self.whole(whole),
                Piece::Tail { writes, .. } => self.tail(writes, before),
            }
            moved.insert(at, here);
            before = here;
        }
        before
    }
}
