//! Random calls on the checkpointers of superstep, compared with the model of the suite.
//!
//! A backend plays as many sequences as `SUPERSTEP_MODEL_SEQUENCES` says, on as many databases at once as there are
//! processors; `CONTRIBUTING.md` has the command for a long run.

mod in_turns;

use std::thread::available_parallelism;

use superstep::conformance::checkpointer;
use superstep::{Checkpointer, MemorySaver};

use crate::redb_saver::RedbSaver;

/// After how many rows, and of how many pieces, a saver makes outlines. With an outline at every second to fifth row,
/// all that is about them happens in short sequences too; `None` is as everyone has it.
pub(crate) const INTERVALS: [Option<(i64, usize)>; 4] = [None, Some((2, 2)), Some((3, 2)), Some((5, 3))];

/// How many sequences a backend plays.
pub(crate) fn sequences() -> u64 {
    match std::env::var("SUPERSTEP_MODEL_SEQUENCES") {
        Ok(number) => number.parse().expect("`SUPERSTEP_MODEL_SEQUENCES` is a number"),
        Err(_) => 2_000,
    }
}

/// Plays the sequences from a seed on, divided among the processors.
pub(crate) async fn play<C, F>(make: impl Fn() -> F + Clone + Send + Sync + 'static, sequences: u64, seed: u64)
where
    C: Checkpointer,
    F: Future<Output = C> + Send + 'static,
{
    let parts = available_parallelism().map_or(1, |parts| parts.get() as u64).min(sequences);
    let first = |part| sequences * part / parts;
    let parts = (0..parts).map(|part| (first(part), first(part + 1) - first(part)));
    let playing: Vec<_> = parts
        .map(|(from, count)| {
            let make = make.clone();
            tokio::spawn(async move { checkpointer::model(make, count, seed + from).await })
        })
        .collect();
    for part in playing {
        part.await.unwrap().assert();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_saver_answers_as_the_model_does() {
    play(|| async { MemorySaver::new() }, sequences(), 1_000_000_000).await;
}

/// Fewer sequences: it is an example, and slow.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpointer_from_outside_answers_as_the_model_does() {
    play(|| async { RedbSaver::memory().unwrap() }, sequences() / 8, 9_000_000_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_saver_answers_as_the_model_does() {
    for (interval, seed) in INTERVALS.into_iter().zip(2..) {
        let make = move || async move {
            let saver = superstep_sqlite::SqliteSaver::memory().unwrap();
            interval.into_iter().fold(saver, |saver, (every, many)| saver.outlines(every, many))
        };
        play(make, sequences() / 4, seed * 1_000_000_000).await;
    }
}

/// What a saver remembers of the rows that it wrote must not be believed when others have written or removed some.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_savers_that_share_a_database_answer_as_the_model_does() {
    let make = || async {
        let database = superstep_sqlite::SqliteDatabase::memory().unwrap();
        let saver = |every| superstep_sqlite::SqliteSaver::new(&database).outlines(every, 2);
        in_turns::InTurns::new([3, 4, 2].map(saver).into())
    };
    play(make, sequences() / 4, 11_000_000_000).await;
}

/// A thread was deleted after its input had been saved, and then made again as a copy, with another row of the same id: a
/// step after that was cut from the previous input.
#[tokio::test]
async fn what_a_saver_remembers_of_a_thread_ends_with_the_claim() {
    let make = || async { superstep_sqlite::SqliteSaver::memory().unwrap().outlines(5, 3) };
    checkpointer::model(make, 150, 9_000_018_750).await.assert();
}
