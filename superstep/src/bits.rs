//! Sets of small numbers: of fields, of members of a join.

use smallvec::SmallVec;

/// A set of small numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits(SmallVec<[u64; 2]>);

impl Bits {
    #[inline]
    pub(crate) fn has(&self, bit: usize) -> bool {
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    #[inline]
    pub(crate) fn set(&mut self, bit: usize) {
        match self.0.get_mut(bit / 64) {
            Some(word) => *word |= 1 << (bit % 64),
            None => self.grow(bit),
        }
    }

    #[cold]
    fn grow(&mut self, bit: usize) {
        self.0.resize(bit / 64 + 1, 0);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    #[inline]
    pub(crate) fn unset(&mut self, bit: usize) {
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word &= !(1 << (bit % 64));
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut bits = Self::default();
        numbers.into_iter().for_each(|number| bits.set(number));
        bits
    }
}
