//! `cargo xtask bench`: superstep beside the floor, held against its targets.

use crate::side::{self, Cell, Side};
use crate::table::{Table, number};
use crate::workload::{self, CASES, Measurement, Results, Workload};
use crate::{Result, USAGE};
use std::path::Path;

pub(crate) const SUPERSTEP: &str = "superstep";
pub(crate) const FLOOR: &str = "floor";

pub(crate) struct Options {
    pub(crate) rounds: usize,
    cases: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Options { rounds: 3, cases: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--rounds" => {
                    let value = arguments.next().ok_or("`--rounds` needs a value")?;
                    options.rounds = value.parse::<usize>()?.max(1);
                }
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
    let sides = build_all(&[SUPERSTEP.as_ref(), FLOOR.as_ref()]);
    let rows = Rows::measure(sides, options);
    rows.print_targets();
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
    pub(crate) fn measure(sides: Vec<Side>, options: &Options) -> Self {
        let rows = options.workloads().into_iter().map(|workload| {
            let cells = side::measure(&sides, &workload, options.rounds);
            (workload, cells)
        });
        Rows { rows: rows.collect(), sides }
    }

    /// What the side of that name measured in a row.
    pub(crate) fn of<'a>(&self, cells: &'a [Cell], name: &str) -> Option<&'a Measurement> {
        let position = self.sides.iter().position(|side| side.name == name)?;
        cells[position].measurement()
    }

    fn results(&self) -> Results {
        let measured =
            |(workload, cells): &(Workload, Vec<Cell>)| Some((workload.key(), self.of(cells, SUPERSTEP)?.clone()));
        self.rows.iter().filter_map(measured).collect()
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
            let verdict = match workload.target.map(|target| target.is_met(workload.key(), &results)) {
                Some(Some(true)) => "met",
                Some(Some(false)) => "missed",
                Some(None) => "not measured",
                None => "",
            };
            table.add([
                workload.title.to_owned(),
                workload.size.to_string(),
                workload.unit.to_string(),
                cell(own.map(|m| m.micros)),
                cell(floor.map(|m| m.micros)),
                cell(ratio),
                cell(own.map(|m| m.peak_mb)),
                cell(floor.map(|m| m.peak_mb)),
                workload.target.map(|target| target.to_string()).unwrap_or_default(),
                verdict.to_owned(),
            ]);
        }
        println!("{table}");
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
        let targets = self.rows.iter().filter_map(|(w, _)| Some((w, w.target?)));
        let missed = targets.filter(|(w, target)| target.is_met(w.key(), &results) != Some(true));
        match missed.count() {
            0 => Ok(()),
            count => Err(format!("{count} targets are missed or not measured").into()),
        }
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), number)
}
