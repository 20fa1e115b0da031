//! `cargo xtask bench`: superstep beside the floor, held against its targets.

use crate::disk::Disk;
use crate::side::{self, Cell, Side};
use crate::table::{Table, number};
use crate::workload::{self, CASES, DISK, Measurement, Results, Workload};
use crate::{Result, USAGE};
use std::path::Path;

pub(crate) const SUPERSTEP: &str = "superstep";
pub(crate) const FLOOR: &str = "floor";

pub(crate) struct Options {
    pub(crate) rounds: usize,
    /// The other Rust libraries that are compared too.
    pub(crate) peers: Peers,
    /// The revision that it is held against.
    before: Option<String>,
    cases: Vec<String>,
}

/// Which other Rust libraries are asked for.
pub(crate) enum Peers {
    All,
    Only(Vec<String>),
}

impl Peers {
    fn add(&mut self, name: Option<&String>) {
        match self {
            Peers::All => *self = Peers::Only(name.into_iter().cloned().collect()),
            Peers::Only(names) => names.extend(name.cloned()),
        }
    }

    pub(crate) fn wants(&self, peer: &str) -> bool {
        match self {
            Peers::All => true,
            Peers::Only(names) => names.iter().any(|name| name == peer),
        }
    }
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Options { rounds: 3, peers: Peers::All, before: None, cases: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--rounds" => {
                    let value = arguments.next().ok_or("`--rounds` needs a value")?;
                    options.rounds = value.parse::<usize>()?.max(1);
                }
                "--before" => options.before = Some(arguments.next().ok_or("`--before` needs a revision")?.clone()),
                "--no-peers" => options.peers.add(None),
                "--peer" => options.peers.add(Some(arguments.next().ok_or("`--peer` needs a name")?)),
                "disk" => options.cases.extend(DISK.map(str::to_owned)),
                case if CASES.contains(&case) => options.cases.push(case.to_owned()),
                other => return Err(format!("no case `{other}`\n\n{USAGE}").into()),
            }
        }
        Ok(options)
    }

    /// The workloads asked for; all if none was named.
    pub(crate) fn workloads(&self) -> Vec<Workload> {
        let asked = |workload: &Workload| self.cases.iter().any(|case| case == workload.case);
        workload::all().into_iter().filter(|w| self.cases.is_empty() || asked(w)).collect()
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut sides = build_all(&[SUPERSTEP.as_ref(), FLOOR.as_ref()]);
    if let Some(revision) = &options.before {
        sides.push(side::build_before(revision)?);
    }
    let rows = Rows::measure(sides, options)?;
    rows.print_targets();
    if options.before.is_some() {
        let title = "Time in µs per unit; in brackets, how many times as long as superstep:";
        rows.print_ratios(title, |_, measurement| Some(measurement.micros));
        let title = "Peak memory in MB; in brackets, how many times that of superstep:";
        rows.print_ratios(title, |_, measurement| Some(measurement.peak_mb));
    }
    rows.print_kept();
    rows.print_remarks();
    rows.verdict()
}

/// Builds each folder of `bench`; what does not build is named and left out.
pub(crate) fn build_all(folders: &[&Path]) -> Vec<Side> {
    let mut sides = Vec::new();
    for folder in folders {
        eprintln!("building {}", folder.display());
        match side::build(folder) {
            Ok(side) => sides.push(side),
            Err(error) => eprintln!("{} is left out: {error}", folder.display()),
        }
    }
    sides
}

/// What every side did on every workload.
pub(crate) struct Rows {
    pub(crate) sides: Vec<Side>,
    pub(crate) rows: Vec<(Workload, Vec<Cell>)>,
}

impl Rows {
    pub(crate) fn measure(sides: Vec<Side>, options: &Options) -> Result<Self> {
        let workloads = options.workloads();
        let disk = Disk::prepare(&workloads)?;
        let rows = workloads.into_iter().map(|workload| {
            let cells = side::measure(&sides, &workload, &disk, options.rounds);
            (workload, cells)
        });
        Ok(Rows { rows: rows.collect(), sides })
    }

    /// What the side of that name measured in a row.
    pub(crate) fn of<'a>(&self, cells: &'a [Cell], name: &str) -> Option<&'a Measurement> {
        let position = self.sides.iter().position(|side| side.name == name)?;
        cells[position].measurement()
    }

    fn results(&self) -> Results {
        let of = |name| {
            let measured =
                move |(workload, cells): &(Workload, Vec<Cell>)| Some((workload.key(), self.of(cells, name)?.clone()));
            self.rows.iter().filter_map(measured).collect()
        };
        Results { own: of(SUPERSTEP), floor: of(FLOOR) }
    }

    pub(crate) fn print_targets(&self) {
        let mut table = Table::new([
            "workload",
            "size",
            "per",
            "superstep µs",
            "floor µs",
            "× floor",
            "peak MB",
            "floor MB",
            "target",
            "",
        ]);
        let results = self.results();
        for (workload, cells) in &self.rows {
            let (own, floor) = (self.of(cells, SUPERSTEP), self.of(cells, FLOOR));
            let ratio = own.zip(floor).map(|(own, floor)| own.micros / floor.micros);
            let targets = workload.targets.iter();
            table.add([
                workload.title.to_owned(),
                workload.size.to_string(),
                workload.unit.to_string(),
                cell(own.map(|m| m.micros)),
                cell(floor.map(|m| m.micros)),
                cell(ratio),
                cell(own.map(|m| m.peak_mb)),
                cell(floor.map(|m| m.peak_mb)),
                targets.clone().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                targets.map(|target| verdict(target.is_met(workload.key(), &results))).collect::<Vec<_>>().join(", "),
            ]);
        }
        println!("{table}");
    }

    /// Prints how much each side keeps, if any of them keeps something.
    pub(crate) fn print_kept(&self) {
        let title = "Bytes kept per turn; in brackets, how many times as many as superstep:";
        self.print_ratios(title, |_, measurement| measurement.bytes_per_turn);
    }

    /// Prints a number of all sides, on the workloads where any has it; nothing if there is no such workload.
    pub(crate) fn print_ratios(&self, title: &str, of: fn(&Workload, &Measurement) -> Option<f64>) {
        let names = self.sides.iter().map(|side| side.name.as_str());
        let mut table = Table::new(["workload", "size"].into_iter().chain(names));
        for (workload, cells) in &self.rows {
            let of = |measurement| of(workload, measurement);
            if !cells.iter().any(|cell| cell.measurement().and_then(of).is_some()) {
                continue;
            }
            let own = self.of(cells, SUPERSTEP).and_then(of);
            let text = cells.iter().map(|cell| match cell {
                Cell::Measured(measurement) => of(measurement).map_or("–".to_owned(), |value| with_ratio(value, own)),
                Cell::Cannot => "no such case".to_owned(),
                Cell::Failed(_) => "failed".to_owned(),
            });
            table.add([workload.title.to_owned(), workload.size.to_string()].into_iter().chain(text));
        }
        if !table.is_empty() {
            println!("{title}\n\n{table}");
        }
    }

    /// Prints what failed, and what programs say about their cases.
    pub(crate) fn print_remarks(&self) {
        for (workload, cells) in &self.rows {
            for (side, cell) in self.sides.iter().zip(cells) {
                let remark = match cell {
                    Cell::Failed(error) => Some(error),
                    Cell::Measured(measurement) => measurement.note.as_ref(),
                    Cell::Cannot => None,
                };
                if let Some(remark) = remark {
                    println!("{} {} {}: {remark}", side.name, workload.title, workload.size);
                }
            }
        }
    }

    /// Fails if a target was missed or could not be checked.
    pub(crate) fn verdict(&self) -> Result<()> {
        let results = self.results();
        let targets = self.rows.iter().flat_map(|(w, _)| w.targets.iter().map(|target| (w.key(), target)));
        let missed = targets.filter(|(key, target)| target.is_met(*key, &results) != Some(true));
        match missed.count() {
            0 => Ok(()),
            count => Err(format!("{count} targets are missed or not measured").into()),
        }
    }
}

fn verdict(is_met: Option<bool>) -> &'static str {
    match is_met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "not measured",
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), number)
}

fn with_ratio(value: f64, own: Option<f64>) -> String {
    match own {
        Some(own) => format!("{} ({}×)", number(value), number(value / own)),
        None => number(value),
    }
}
