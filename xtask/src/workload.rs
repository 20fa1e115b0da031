//! The workloads of `bench/README.md`, what a process reports about one, and the targets.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A case of the bench programs at one size.
pub(crate) struct Workload {
    pub(crate) case: &'static str,
    pub(crate) size: u32,
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
    pub(crate) targets: Vec<Target>,
}

/// What the time is divided by.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Step,
    Task,
    Run,
    Event,
    Subgraph,
}

/// What superstep has to reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// At most so many microseconds per unit.
    Micros(f64),
    /// At most so many times the same case at a smaller size.
    TimesSize { size: u32, factor: f64 },
    /// At least so many times as many units per second as the same case at a smaller size.
    RateOfSize { size: u32, factor: f64 },
    /// At most so many times what is written by hand.
    TimesFloor(f64),
    /// At least so many runs per second.
    RunsPerSecond(f64),
    /// The peak memory of a long run is the one after its first 10,000 steps, within 1 MB.
    FlatMemory,
}

const MOST_GROWTH_MB: f64 = 1.0;

pub(crate) const CASES: [&str; 19] = [
    "w1",
    "w2",
    "w3",
    "w4",
    "w4one",
    "w5",
    "w6mem",
    "w6sql",
    "w6sql-async",
    "w6sql-nosync",
    "w6threads",
    "w6pg",
    "w6pg-async",
    "w6pg-nosync",
    "w7",
    "w8",
    "w9",
    "chats",
    "mem",
];

/// The cases that save to a database, asked for as `disk`.
pub(crate) const DISK: [&str; 7] =
    ["w6sql", "w6sql-async", "w6sql-nosync", "w6threads", "w6pg", "w6pg-async", "w6pg-nosync"];

/// Every workload, in the order of the table.
pub(crate) fn all() -> Vec<Workload> {
    let mut workloads = without_disk();
    let place = workloads.iter().position(|workload| workload.case == "w7").unwrap_or(workloads.len());
    workloads.splice(place..place, on_disk());
    workloads
}

fn without_disk() -> Vec<Workload> {
    let mut list = List::default();
    let micros = |most| vec![Target::Micros(most)];
    let times_three_fields = vec![Target::TimesSize { size: 3, factor: 1.3 }];
    list.add("w1", "W1 chain", Unit::Step, &micros(0.3), &[10, 100, 1000]);
    list.add("w2", "W2 loop", Unit::Step, &micros(0.3), &[1000]);
    list.add("w3", "W3 Send", Unit::Task, &[], &[10, 100]);
    list.add("w3", "W3 Send", Unit::Task, &micros(1.5), &[1000]);
    list.add("w4", "W4 fields, all change", Unit::Step, &[], &[3, 100, 300]);
    list.add("w4one", "W4 fields, one changes", Unit::Step, &[], &[3, 100]);
    list.add("w4one", "W4 fields, one changes", Unit::Step, &times_three_fields, &[300]);
    list.add("w5", "W5 ReAct", Unit::Step, &micros(1.5), &[50, 100, 200, 400]);
    list.add("w6mem", "W6 ReAct, memory saver", Unit::Step, &micros(3.0), &[100, 400]);
    list.add("w7", "W7 threads", Unit::Run, &[Target::RunsPerSecond(100_000.0)], &[1000]);
    list.add("w8", "W8 stream", Unit::Event, &[], &[1000]);
    list.add("w9", "W9 Send to subgraph", Unit::Subgraph, &[], &[100]);
    list.add("chats", "agent, SQLite, conversations", Unit::Run, &[], &[100, 1000]);
    list.add("mem", "memory of a long loop", Unit::Step, &[Target::FlatMemory], &[1_000_000]);
    list.workloads
}

fn on_disk() -> Vec<Workload> {
    let mut list = List::default();
    let near_floor = [Target::TimesFloor(1.3)];
    let flat = [Target::TimesSize { size: 100, factor: 1.3 }];
    let shared = [Target::RateOfSize { size: 1, factor: 5.0 }];
    list.add("w6sql", "W6 SQLite, sync", Unit::Step, &near_floor, &[100, 400]);
    list.add("w6sql-async", "W6 SQLite, async", Unit::Step, &[], &[100, 400]);
    list.add("w6sql-nosync", "W6 SQLite, sync, in memory", Unit::Step, &[], &[100]);
    list.add("w6sql-nosync", "W6 SQLite, sync, in memory", Unit::Step, &flat, &[400]);
    list.add("w6threads", "W6 SQLite, sync, threads", Unit::Step, &[], &[1]);
    list.add("w6threads", "W6 SQLite, sync, threads", Unit::Step, &shared, &[100]);
    list.add("w6pg", "W6 PostgreSQL, sync", Unit::Step, &[], &[100, 400]);
    list.add("w6pg-async", "W6 PostgreSQL, async", Unit::Step, &[], &[100, 400]);
    list.add("w6pg-nosync", "W6 PostgreSQL, sync, commit off", Unit::Step, &[], &[100]);
    list.add("w6pg-nosync", "W6 PostgreSQL, sync, commit off", Unit::Step, &flat, &[400]);
    list.workloads
}

#[derive(Default)]
struct List {
    workloads: Vec<Workload>,
}

impl List {
    fn add(&mut self, case: &'static str, title: &'static str, unit: Unit, targets: &[Target], sizes: &[u32]) {
        let workload = |&size| Workload { case, size, title, unit, targets: targets.to_vec() };
        self.workloads.extend(sizes.iter().map(workload));
    }
}

impl Workload {
    pub(crate) fn key(&self) -> Key {
        (self.case, self.size)
    }

    /// The case in the words of the programs, which do not know what a sync costs where they save.
    pub(crate) fn program_case(&self) -> &'static str {
        self.case.strip_suffix(NO_SYNC).unwrap_or(self.case)
    }

    /// Whether it saves where nothing waits for a disk.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.case.ends_with(NO_SYNC)
    }

    pub(crate) fn saves_to_postgres(&self) -> bool {
        self.case.starts_with("w6pg")
    }

    /// How long one process may take.
    pub(crate) fn time_limit(&self) -> Duration {
        // `chats.py` ends by itself after five minutes.
        Duration::from_mins(if self.case == "chats" { 6 } else { 2 })
    }
}

const NO_SYNC: &str = "-nosync";

/// Case and size.
pub(crate) type Key = (&'static str, u32);

/// What superstep and the floor measured, by workload.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) own: BTreeMap<Key, Measurement>,
    pub(crate) floor: BTreeMap<Key, Measurement>,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Unit::Step => "step",
            Unit::Task => "task",
            Unit::Run => "run",
            Unit::Event => "event",
            Unit::Subgraph => "subgraph",
        })
    }
}

/// One process's report, or the median of several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// Microseconds per unit.
    pub(crate) micros: f64,
    pub(crate) peak_mb: f64,
    /// How much the peak grew after 10,000 steps, where the case looks at that.
    pub(crate) growth_mb: Option<f64>,
    /// How much is kept of each turn, where something is kept.
    pub(crate) bytes_per_turn: Option<f64>,
    /// What the program says about the case, where it is not quite the same work.
    pub(crate) note: Option<String>,
}

impl Measurement {
    /// Reads a program's JSON line; none if it holds no time.
    pub(crate) fn read(line: &Value, workload: &Workload) -> Option<Self> {
        let number = |field: &str| line[field].as_f64();
        let turns = number("turns").unwrap_or(workload.size.into());
        let micros = match workload.unit {
            Unit::Step | Unit::Event => number("us_per_step")?,
            Unit::Task => number("us_per_task")?,
            Unit::Subgraph => number("us_per_subgraph")?,
            Unit::Run => 1e6 / number("runs_per_s")?,
        };
        Some(Measurement {
            micros,
            peak_mb: number("peak_rss_mb")?,
            growth_mb: number("rss_end_mb").zip(number("rss_10k_mb")).map(|(end, start)| end - start),
            bytes_per_turn: number("bytes_total").map(|bytes| bytes / turns),
            note: note(line),
        })
    }

    /// The median of each number; the note of the first.
    pub(crate) fn median(rounds: &[Self]) -> Option<Self> {
        let note = rounds.first()?.note.clone();
        let of = |number: fn(&Self) -> f64| median(rounds.iter().map(number).collect());
        let growth_mb = rounds.iter().filter_map(|round| round.growth_mb).reduce(f64::max);
        let bytes_per_turn = rounds.iter().filter_map(|round| round.bytes_per_turn).reduce(f64::max);
        Some(Measurement { micros: of(|m| m.micros), peak_mb: of(|m| m.peak_mb), growth_mb, bytes_per_turn, note })
    }
}

fn note(line: &Value) -> Option<String> {
    let mut notes = Vec::new();
    if let Some(total) = line["total"].as_u64().filter(|&total| line["args"] != total) {
        notes.push(format!("the join saw {total} items"));
    }
    if let Some(runs) = line["join_runs"].as_u64().filter(|&runs| runs != 1) {
        notes.push(format!("the join ran {runs} times"));
    }
    if line["in_order"] == false {
        notes.push("items out of order".to_owned());
    }
    notes.extend(line["note"].as_str().map(str::to_owned));
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

impl Target {
    /// Whether the results reach it; none if what it needs was not measured.
    pub(crate) fn is_met(self, key: Key, results: &Results) -> Option<bool> {
        let measured = results.own.get(&key)?;
        let at = |size: u32| Some(results.own.get(&(key.0, size))?.micros);
        match self {
            Target::Micros(most) => Some(measured.micros <= most),
            Target::RunsPerSecond(least) => Some(1e6 / measured.micros >= least),
            Target::FlatMemory => Some(measured.growth_mb? <= MOST_GROWTH_MB),
            Target::TimesSize { size, factor } => Some(measured.micros <= factor * at(size)?),
            Target::RateOfSize { size, factor } => Some(measured.micros <= at(size)? / factor),
            Target::TimesFloor(factor) => Some(measured.micros <= factor * results.floor.get(&key)?.micros),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Micros(most) => write!(f, "≤ {most} µs"),
            Target::TimesSize { size, factor } => write!(f, "≤ {factor} × size {size}"),
            Target::RateOfSize { size, factor } => write!(f, "≥ {factor} × the rate of size {size}"),
            Target::TimesFloor(factor) => write!(f, "≤ {factor} × floor"),
            Target::RunsPerSecond(least) => write!(f, "≥ {least} runs/s"),
            Target::FlatMemory => write!(f, "grows ≤ {MOST_GROWTH_MB} MB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CASES, DISK, Measurement, Results, Target, Unit, Workload, all};
    use serde_json::json;

    fn measured(micros: f64) -> Measurement {
        Measurement { micros, peak_mb: 1.0, growth_mb: None, bytes_per_turn: None, note: None }
    }

    #[test]
    fn every_case_has_a_workload() {
        for case in CASES {
            assert!(all().iter().any(|workload| workload.case == case), "{case}");
        }
        assert!(DISK.iter().all(|case| CASES.contains(case)));
    }

    fn sized(unit: Unit) -> Workload {
        Workload { case: "w1", size: 10, title: "", unit, targets: Vec::new() }
    }

    #[test]
    fn the_unit_says_which_number_counts() {
        let line = json!({"us_per_step": 8.0, "us_per_task": 2.0, "runs_per_s": 250_000.0,
            "peak_rss_mb": 3.0, "in_order": false});
        let task = Measurement::read(&line, &sized(Unit::Task)).expect("a complete line");
        assert_eq!(task.note.as_deref(), Some("items out of order"));
        assert!((task.micros - 2.0).abs() < 1e-9);
        let run = Measurement::read(&line, &sized(Unit::Run)).expect("a complete line");
        assert!((run.micros - 4.0).abs() < 1e-9);
        assert_eq!(Measurement::read(&line, &sized(Unit::Subgraph)), None);
    }

    #[test]
    fn bytes_are_per_turn_whether_or_not_the_size_is_in_turns() {
        let bytes = |line| Measurement::read(&line, &sized(Unit::Step)).expect("a complete line").bytes_per_turn;
        let line = json!({"us_per_step": 8.0, "peak_rss_mb": 3.0, "bytes_total": 200});
        assert_eq!(bytes(line), Some(20.0));
        let line = json!({"us_per_step": 8.0, "peak_rss_mb": 3.0, "bytes_total": 200, "turns": 100});
        assert_eq!(bytes(line), Some(2.0));
    }

    #[test]
    fn a_ratio_target_needs_the_smaller_size() {
        let target = Target::TimesSize { size: 3, factor: 1.3 };
        let mut results = Results::default();
        results.own.insert(("w4one", 300), measured(1.2));
        assert_eq!(target.is_met(("w4one", 300), &results), None);
        results.own.insert(("w4one", 3), measured(1.0));
        assert_eq!(target.is_met(("w4one", 300), &results), Some(true));
        results.own.insert(("w4one", 3), measured(0.9));
        assert_eq!(target.is_met(("w4one", 300), &results), Some(false));
    }

    #[test]
    fn a_rate_target_wants_less_time_per_unit() {
        let target = Target::RateOfSize { size: 1, factor: 5.0 };
        let mut results = Results::default();
        results.own.insert(("w6threads", 1), measured(1000.0));
        results.own.insert(("w6threads", 100), measured(190.0));
        assert_eq!(target.is_met(("w6threads", 100), &results), Some(true));
        results.own.insert(("w6threads", 100), measured(210.0));
        assert_eq!(target.is_met(("w6threads", 100), &results), Some(false));
    }

    #[test]
    fn a_floor_target_needs_the_floor() {
        let target = Target::TimesFloor(1.3);
        let mut results = Results::default();
        results.own.insert(("w6sql", 100), measured(1.2));
        assert_eq!(target.is_met(("w6sql", 100), &results), None);
        results.floor.insert(("w6sql", 100), measured(1.0));
        assert_eq!(target.is_met(("w6sql", 100), &results), Some(true));
        results.floor.insert(("w6sql", 100), measured(0.9));
        assert_eq!(target.is_met(("w6sql", 100), &results), Some(false));
    }

    #[test]
    fn programs_do_not_hear_about_syncing() {
        let of = |case| all().into_iter().find(|workload| workload.case == case).expect("a case of ours");
        assert_eq!((of("w6pg-nosync").program_case(), of("w6pg-nosync").is_unsynced()), ("w6pg", true));
        assert_eq!((of("w6sql-async").program_case(), of("w6sql-async").is_unsynced()), ("w6sql-async", false));
    }
}
