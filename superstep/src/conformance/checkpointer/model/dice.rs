//! Numbers that look random and come from a seed.

pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Adds an odd number and mixes the bits of the sum: the same seed gives the same numbers everywhere.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    pub(super) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Something, once in so many times.
    pub(super) fn maybe<T>(&mut self, chances: usize, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(chances).then(|| make(self))
    }
}
