//! The calls of a random sequence. They name checkpoints and leases by number, so that a sequence without some of its
//! calls can be played as well.

use super::dice::Dice;
use crate::checkpoint::Source;

pub(super) const THREADS: [&str; 3] = ["one", "two", "three"];
pub(super) const SPACES: [&str; 4] = ["", "child", "child:1", "child:1|deep:2"];
pub(super) const RUNS: [&str; 2] = ["red", "blue"];
pub(super) const FIELDS: [&str; 3] = ["a", "b", "log"];

#[derive(Debug, Clone)]
pub(super) enum Op {
    Claim {
        thread: &'static str,
        space: &'static str,
        at: At,
    },
    Put {
        by: Lease,
        space: &'static str,
        put: Put,
    },
    /// The last checkpoint of the thread that was saved, again.
    PutAgain {
        by: Lease,
    },
    Write {
        by: Lease,
        space: &'static str,
        at: At,
        run: Option<&'static str>,
        task: Task,
    },
    Get {
        thread: &'static str,
        space: &'static str,
        at: At,
    },
    List {
        thread: &'static str,
        space: &'static str,
        query: Query,
    },
    Namespaces {
        thread: &'static str,
    },
    Threads {
        after: Option<&'static str>,
        limit: usize,
    },
    KeepLast {
        thread: &'static str,
        count: usize,
    },
    ForgetBefore {
        thread: &'static str,
        tick: u64,
    },
    Copy {
        from: &'static str,
        to: &'static str,
    },
    DeleteThread {
        thread: &'static str,
    },
    DeleteRun {
        run: &'static str,
    },
    Sweep,
}

/// A checkpoint: the latest, one that is there, or one that is not.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    Latest,
    Known(usize),
    Unknown,
}

/// The latest claim of a thread, or one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) thread: &'static str,
    pub(super) stale: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Put {
    pub(super) source: Source,
    pub(super) base: Option<At>,
    /// What the author takes for the latest.
    pub(super) head: At,
    /// Its id is smaller than that of the latest.
    pub(super) early: bool,
    pub(super) run: Option<&'static str>,
    pub(super) step: i64,
    pub(super) metadata: Option<usize>,
    /// The checkpoint of the root that it ran under.
    pub(super) under: Option<At>,
    pub(super) fields: Vec<(&'static str, Value)>,
    pub(super) tasks: Vec<Task>,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Whole(u8),
    Tail(Vec<u8>),
    Absent,
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) number: u128,
    pub(super) writes: Vec<u8>,
    pub(super) error: Option<u8>,
    pub(super) question: Option<u8>,
    pub(super) answer: Option<u8>,
    pub(super) handled: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Query {
    pub(super) before: Option<At>,
    pub(super) only: Option<At>,
    pub(super) limit: Option<usize>,
    pub(super) source: Option<Source>,
    pub(super) step: Option<i64>,
    pub(super) run: Option<&'static str>,
    pub(super) metadata: Option<usize>,
}

impl Op {
    pub(super) fn random(dice: &mut Dice) -> Self {
        let (thread, space) = (dice.pick(&THREADS), dice.pick(&SPACES));
        match dice.below(100) {
            0..12 => Op::Claim { thread, space, at: At::random(dice) },
            12..55 => Op::Put { by: Lease::random(dice), space, put: Put::random(dice) },
            55..58 => Op::PutAgain { by: Lease::random(dice) },
            58..72 => {
                let (by, at) = (Lease::random(dice), At::random(dice));
                let run = dice.maybe(2, |dice| dice.pick(&RUNS));
                Op::Write { by, space, at, run, task: Task::random(dice) }
            }
            72..77 => Op::Get { thread, space, at: At::random(dice) },
            77..83 => Op::List { thread, space, query: Query::random(dice) },
            83 => Op::Namespaces { thread },
            84 => Op::Threads { after: dice.maybe(2, |dice| dice.pick(&THREADS)), limit: dice.below(4) },
            85..88 => Op::KeepLast { thread, count: dice.below(4) },
            88..91 => Op::ForgetBefore { thread, tick: dice.below(40) as u64 },
            91..95 => Op::Copy { from: thread, to: dice.pick(&THREADS) },
            95..97 => Op::DeleteThread { thread },
            97..99 => Op::DeleteRun { run: dice.pick(&RUNS) },
            _ => Op::Sweep,
        }
    }
}

impl At {
    fn random(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0..4 => At::Latest,
            4..9 => At::Known(dice.below(8)),
            _ => At::Unknown,
        }
    }
}

impl Lease {
    fn random(dice: &mut Dice) -> Self {
        Self { thread: dice.pick(&THREADS), stale: dice.maybe(12, |dice| dice.below(4)) }
    }
}

impl Put {
    fn random(dice: &mut Dice) -> Self {
        let source = dice.pick(&[Source::Loop, Source::Loop, Source::Input, Source::Update, Source::Fork]);
        // Forks and updates go on from any checkpoint, steps mostly from the latest.
        let far = matches!(source, Source::Fork | Source::Update) || dice.one_in(8);
        let base = if far {
            dice.maybe(6, |_| ()).map_or_else(|| Some(At::random(dice)), |()| None)
        } else {
            Some(At::Latest)
        };
        Self {
            source,
            base,
            head: if dice.one_in(12) { At::random(dice) } else { At::Latest },
            early: dice.one_in(30),
            run: dice.maybe(3, |dice| dice.pick(&RUNS)),
            step: dice.below(4) as i64 - 1,
            metadata: dice.maybe(2, |dice| dice.below(3)),
            under: dice.maybe(2, At::random),
            fields: (0..dice.below(4)).map(|_| (dice.pick(&FIELDS), Value::random(dice))).collect(),
            tasks: (0..dice.below(3)).map(|_| Task::random(dice)).collect(),
        }
        .settled()
    }

    /// A record holds each field and each task once.
    fn settled(mut self) -> Self {
        self.fields.sort_by_key(|(name, _)| *name);
        self.fields.dedup_by_key(|(name, _)| *name);
        self.tasks.sort_by_key(|task| task.number);
        self.tasks.dedup_by_key(|task| task.number);
        self
    }
}

impl Value {
    fn random(dice: &mut Dice) -> Self {
        match dice.below(6) {
            0..2 => Value::Whole(dice.below(100) as u8),
            2..5 => Value::Tail((0..=dice.below(2)).map(|_| dice.below(100) as u8).collect()),
            _ => Value::Absent,
        }
    }
}

impl Task {
    fn random(dice: &mut Dice) -> Self {
        let small = |dice: &mut Dice| dice.below(100) as u8;
        Self {
            number: dice.below(4) as u128,
            writes: (0..dice.below(4)).map(|_| small(dice)).collect(),
            error: dice.maybe(4, small),
            question: dice.maybe(4, small),
            answer: dice.maybe(4, small),
            handled: dice.one_in(8),
        }
    }
}

impl Query {
    fn random(dice: &mut Dice) -> Self {
        Self {
            before: dice.maybe(4, At::random),
            only: dice.maybe(8, At::random),
            limit: dice.maybe(3, |dice| dice.below(4)),
            source: dice.maybe(4, |dice| dice.pick(&[Source::Loop, Source::Input, Source::Update, Source::Fork])),
            step: dice.maybe(4, |dice| dice.below(4) as i64 - 1),
            run: dice.maybe(6, |dice| dice.pick(&RUNS)),
            metadata: dice.maybe(4, |dice| dice.below(3)),
        }
    }
}
