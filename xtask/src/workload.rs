//! The workloads of `bench/README.md`, what a process reports about one, and the targets.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// A case of the bench programs at one size.
pub(crate) struct Workload {
    pub(crate) case: &'static str,
    pub(crate) size: u32,
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
    pub(crate) target: Option<Target>,
}

/// What the time is divided by.
#[derive(Clone, Copy)]
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
    /// At least so many runs per second.
    RunsPerSecond(f64),
    /// The peak memory of a long run is the one after its first 10,000 steps, within 1 MB.
    FlatMemory,
}

const MOST_GROWTH_MB: f64 = 1.0;

pub(crate) const CASES: [&str; 11] = ["w1", "w2", "w3", "w4", "w4one", "w5", "w6mem", "w7", "w8", "w9", "mem"];

/// Every workload, in the order of the table.
pub(crate) fn all() -> Vec<Workload> {
    let mut workloads = Vec::new();
    let mut add = |case, title, unit, target, sizes: &[u32]| {
        workloads.extend(sizes.iter().map(|&size| Workload { case, size, title, unit, target }));
    };
    let micros = |most| Some(Target::Micros(most));
    let times_three_fields = Some(Target::TimesSize { size: 3, factor: 1.3 });
    add("w1", "W1 chain", Unit::Step, micros(0.3), &[10, 100, 1000]);
    add("w2", "W2 loop", Unit::Step, micros(0.3), &[1000]);
    add("w3", "W3 Send", Unit::Task, None, &[10, 100]);
    add("w3", "W3 Send", Unit::Task, micros(1.5), &[1000]);
    add("w4", "W4 fields, all change", Unit::Step, None, &[3, 100, 300]);
    add("w4one", "W4 fields, one changes", Unit::Step, None, &[3, 100]);
    add("w4one", "W4 fields, one changes", Unit::Step, times_three_fields, &[300]);
    add("w5", "W5 ReAct", Unit::Step, micros(1.5), &[50, 100, 200, 400]);
    add("w6mem", "W6 ReAct, memory saver", Unit::Step, micros(3.0), &[100, 400]);
    add("w7", "W7 threads", Unit::Run, Some(Target::RunsPerSecond(100_000.0)), &[1000]);
    add("w8", "W8 stream", Unit::Event, None, &[1000]);
    add("w9", "W9 Send to subgraph", Unit::Subgraph, None, &[100]);
    add("mem", "memory of a long loop", Unit::Step, Some(Target::FlatMemory), &[1_000_000]);
    workloads
}

impl Workload {
    pub(crate) fn key(&self) -> Key {
        (self.case, self.size)
    }
}

/// Case and size.
pub(crate) type Key = (&'static str, u32);

/// What superstep measured, by workload.
pub(crate) type Results = BTreeMap<Key, Measurement>;

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
    /// What the program says about the case, where it is not quite the same work.
    pub(crate) note: Option<String>,
}

impl Measurement {
    /// Reads a program's JSON line; none if it holds no time.
    pub(crate) fn read(line: &Value, unit: Unit) -> Option<Self> {
        let number = |field: &str| line[field].as_f64();
        let micros = match unit {
            Unit::Step | Unit::Event => number("us_per_step")?,
            Unit::Task => number("us_per_task")?,
            Unit::Subgraph => number("us_per_subgraph")?,
            Unit::Run => 1e6 / number("runs_per_s")?,
        };
        Some(Measurement {
            micros,
            peak_mb: number("peak_rss_mb")?,
            growth_mb: number("rss_end_mb").zip(number("rss_10k_mb")).map(|(end, start)| end - start),
            note: note(line),
        })
    }

    /// The median of each number; the note of the first.
    pub(crate) fn median(rounds: &[Self]) -> Option<Self> {
        let note = rounds.first()?.note.clone();
        let of = |number: fn(&Self) -> f64| median(rounds.iter().map(number).collect());
        let growth_mb = rounds.iter().filter_map(|round| round.growth_mb).reduce(f64::max);
        Some(Measurement { micros: of(|m| m.micros), peak_mb: of(|m| m.peak_mb), growth_mb, note })
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
        let measured = results.get(&key)?;
        match self {
            Target::Micros(most) => Some(measured.micros <= most),
            Target::RunsPerSecond(least) => Some(1e6 / measured.micros >= least),
            Target::FlatMemory => Some(measured.growth_mb? <= MOST_GROWTH_MB),
            Target::TimesSize { size, factor } => {
                let smaller = results.get(&(key.0, size))?;
                Some(measured.micros <= factor * smaller.micros)
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Micros(most) => write!(f, "≤ {most} µs"),
            Target::TimesSize { size, factor } => write!(f, "≤ {factor} × {size} fields"),
            Target::RunsPerSecond(least) => write!(f, "≥ {least} runs/s"),
            Target::FlatMemory => write!(f, "grows ≤ {MOST_GROWTH_MB} MB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CASES, Measurement, Results, Target, Unit, all};
    use serde_json::json;

    fn measured(micros: f64) -> Measurement {
        Measurement { micros, peak_mb: 1.0, growth_mb: None, note: None }
    }

    #[test]
    fn every_case_has_a_workload() {
        for case in CASES {
            assert!(all().iter().any(|workload| workload.case == case), "{case}");
        }
    }

    #[test]
    fn the_unit_says_which_number_counts() {
        let line = json!({"us_per_step": 8.0, "us_per_task": 2.0, "runs_per_s": 250_000.0,
            "peak_rss_mb": 3.0, "in_order": false});
        let task = Measurement::read(&line, Unit::Task).expect("a complete line");
        assert_eq!(task.note.as_deref(), Some("items out of order"));
        assert!((task.micros - 2.0).abs() < 1e-9);
        let run = Measurement::read(&line, Unit::Run).expect("a complete line");
        assert!((run.micros - 4.0).abs() < 1e-9);
        assert_eq!(Measurement::read(&line, Unit::Subgraph), None);
    }

    #[test]
    fn a_ratio_target_needs_the_smaller_size() {
        let target = Target::TimesSize { size: 3, factor: 1.3 };
        let mut results = Results::from([(("w4one", 300), measured(1.2))]);
        assert_eq!(target.is_met(("w4one", 300), &results), None);
        results.insert(("w4one", 3), measured(1.0));
        assert_eq!(target.is_met(("w4one", 300), &results), Some(true));
        results.insert(("w4one", 3), measured(0.9));
        assert_eq!(target.is_met(("w4one", 300), &results), Some(false));
    }
}
