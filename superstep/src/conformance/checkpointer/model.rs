//! Random calls, compared with a model that keeps everything whole.
//!
//! The checkpointer and the model are told the same; every answer is compared, and after each sequence everything that
//! can be read. A sequence that fails is played again with fewer calls, until none can be left out.

mod dice;
mod naive;
mod op;
mod play;

use std::fmt::Write;
use std::sync::Arc;

use super::super::{Broken, Checked, Clause, Report};
use crate::checkpoint::Checkpointer;
use dice::Dice;
use op::Op;

/// Plays random sequences of calls on a checkpointer and on a model of one, and compares all answers.
///
/// `make` gives an empty checkpointer. The sequences are played on one, and each ends by deleting its threads. The same
/// seed gives the same sequences. A failure says with which seed it can be played alone, and shows the shortest
/// sequence found that fails on an empty checkpointer.
///
/// ```
/// use superstep::MemorySaver;
/// use superstep::conformance::checkpointer;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// checkpointer::model(|| async { MemorySaver::new() }, 10, 42).await.assert();
/// # }
/// ```
pub async fn model<C, F>(make: impl Fn() -> F, sequences: u64, seed: u64) -> Report
where
    C: Checkpointer,
    F: Future<Output = C>,
{
    let clause = |failure| {
        let name = format!("{sequences} random sequences of calls from seed {seed} are answered as by the model");
        Report { clauses: vec![Clause { name, failure }] }
    };
    let saver: Arc<dyn Checkpointer> = Arc::new(make().await);
    for number in 0..sequences {
        let own_seed = seed.wrapping_add(number);
        let ops = sequence(own_seed);
        if let Err(Broken(why)) = play(saver.clone(), &ops).await {
            return clause(Some(explained(&make, own_seed, ops, why).await));
        }
    }
    clause(None)
}

/// The calls that a seed stands for.
fn sequence(seed: u64) -> Vec<Op> {
    let mut dice = Dice::new(seed);
    let calls = 10 + dice.below(40);
    (0..calls).map(|_| Op::random(&mut dice)).collect()
}

/// Plays a sequence; a panic is a failure too.
async fn play(saver: Arc<dyn Checkpointer>, ops: &[Op]) -> Checked {
    let playing = tokio::spawn(play::play(saver, ops.to_vec()));
    playing.await.unwrap_or_else(|panicked| Err(Broken(panicked.to_string())))
}

/// Why a sequence fails, with as few calls as can be.
async fn explained<C, F>(make: &impl Fn() -> F, seed: u64, mut ops: Vec<Op>, mut why: String) -> String
where
    C: Checkpointer,
    F: Future<Output = C>,
{
    const MOST_PLAYS: usize = 400;
    let mut plays = 0;
    let mut size = ops.len();
    while size > 0 {
        let mut start = 0;
        while start < ops.len() && plays < MOST_PLAYS {
            let end = ops.len().min(start + size);
            let fewer = [&ops[..start], &ops[end..]].concat();
            plays += 1;
            match play(Arc::new(make().await), &fewer).await {
                Err(Broken(still)) => (ops, why) = (fewer, still),
                Ok(()) => start = end,
            }
        }
        size /= 2;
    }
    let mut text = format!("{why}\nplay it alone with seed {seed}; {} calls that fail:", ops.len());
    ops.iter().for_each(|op| write!(text, "\n  {op:?}").expect("a text can always grow"));
    text
}
