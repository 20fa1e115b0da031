//! The order of items in a search by words and nearness.
//!
//! A score depends on its item alone, not on the others that were found: so a cursor stays right while items come and
//! go. It is rounded to millionths before anything is ordered by it, and ties go by the order of first puts.

use std::collections::BTreeMap;

use super::{Cursor, Metric};

/// Scores are kept in millionths.
const UNIT: f64 = 1e6;

/// What a search ranks by.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ranking {
    /// The distinct words to look for.
    pub words: Option<Vec<String>>,
    /// What to be near to.
    pub vector: Option<Vec<f32>>,
    /// How nearness is measured.
    pub metric: Metric,
    /// The share of the words in the score, from 0 to 1, if there is a vector too.
    pub words_weight: f64,
}

/// An item in the order of a search: its score in millionths, and its place in the order of first puts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ranked {
    /// In millionths.
    pub score: i64,
    /// In the order of first puts.
    pub place: u64,
}

impl Ranked {
    /// Less is better.
    fn order(&self) -> (std::cmp::Reverse<i64>, u64) {
        (std::cmp::Reverse(self.score), self.place)
    }

    /// The cursor after the item.
    pub fn cursor(&self) -> Cursor {
        Cursor { place: self.place, score: Some(self.score) }
    }
}

/// A score as items are ordered by it.
pub fn millionths(score: f64) -> i64 {
    (score * UNIT).round() as i64
}

/// A score as it is shown.
#[expect(clippy::cast_precision_loss, reason = "scores in millionths are far below what a float holds exactly")]
pub(crate) fn shown(millionths: i64) -> f64 {
    millionths as f64 / UNIT
}

/// What is known about the items that a search may return, until they are put in order.
#[derive(Debug)]
pub struct Scores<'a> {
    ranking: &'a Ranking,
    by_place: BTreeMap<u64, (usize, Option<f64>)>,
}

impl<'a> Scores<'a> {
    /// Nothing yet.
    pub fn new(ranking: &'a Ranking) -> Self {
        Self { ranking, by_place: BTreeMap::new() }
    }

    /// The item holds this many of the words.
    pub fn add_words(&mut self, place: u64, found: usize) {
        if found > 0 {
            self.by_place.entry(place).or_default().0 = found;
        }
    }

    /// The item has this vector, and perhaps others: the nearest counts.
    pub fn add_vector(&mut self, place: u64, vector: &[f32]) {
        let Some(target) = self.ranking.vector.as_ref().filter(|target| target.len() == vector.len()) else { return };
        let score = self.ranking.metric.score(target, vector);
        let best = &mut self.by_place.entry(place).or_default().1;
        *best = Some(best.map_or(score, |best| best.max(score)));
    }

    /// The items in order, those before `after` and at it left out.
    pub fn in_order(self, after: Option<Cursor>) -> Vec<Ranked> {
        let rank = |(place, (found, nearness)): (u64, (usize, Option<f64>))| Ranked {
            score: self.ranking.score(found, nearness),
            place,
        };
        let mut ranked: Vec<Ranked> = self.by_place.into_iter().map(rank).collect();
        if let Some(Cursor { place, score: Some(score) }) = after {
            let last = Ranked { score, place };
            ranked.retain(|item| item.order() > last.order());
        }
        ranked.sort_unstable_by_key(Ranked::order);
        ranked
    }
}

impl Ranking {
    fn score(&self, found: usize, nearness: Option<f64>) -> i64 {
        let nearness = nearness.unwrap_or(0.0);
        let score = match (&self.words, &self.vector) {
            (Some(words), Some(_)) => self.words_weight * share(found, words) + (1.0 - self.words_weight) * nearness,
            (Some(words), None) => share(found, words),
            (None, _) => nearness,
        };
        millionths(score)
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody searches for that many words")]
fn share(found: usize, words: &[String]) -> f64 {
    // A query without words finds nothing, so nothing is divided by zero.
    found as f64 / words.len().max(1) as f64
}
