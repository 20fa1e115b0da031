//! `cargo xtask compare`: superstep beside the floor, `LangGraph` and every peer that builds, in one run.

use crate::Result;
use crate::bench::{self, FLOOR, Options, Rows, SUPERSTEP};
use crate::side::{self, Cell};
use crate::table::{Table, number};
use crate::workload::{Measurement, Workload};
use std::path::Path;

const LANGGRAPH: [&str; 2] = ["LangGraph sync", "LangGraph async"];

pub(crate) fn run(options: &Options) -> Result<()> {
    let peers = side::peers()?;
    let mut folders = vec![Path::new(SUPERSTEP), Path::new(FLOOR)];
    folders.extend(peers.iter().map(std::path::PathBuf::as_path));
    let mut sides = bench::build_all(&folders);
    match side::langgraph() {
        Ok(langgraph) => sides.extend(langgraph),
        Err(error) => eprintln!("LangGraph is left out: {error}"),
    }
    let rows = Rows::measure(sides, options);
    rows.print_targets();
    println!("Time in µs per unit; in brackets, how many times as long as superstep:\n");
    print_table(&rows, |measurement| measurement.micros);
    println!("Peak memory in MB; in brackets, how many times that of superstep:\n");
    print_table(&rows, |measurement| measurement.peak_mb);
    rows.print_remarks();
    let all_met = print_langgraph_targets(&rows);
    rows.verdict()?;
    if all_met { Ok(()) } else { Err("LangGraph is not outrun as far as it should be".into()) }
}

fn print_table(rows: &Rows, of: fn(&Measurement) -> f64) {
    let names = rows.sides.iter().map(|side| side.name.as_str());
    let mut table = Table::new(["workload", "size"].into_iter().chain(names));
    for (workload, cells) in &rows.rows {
        let own = rows.of(cells, SUPERSTEP).map(of);
        let text = cells.iter().map(|cell| match cell {
            Cell::Measured(measurement) => with_ratio(of(measurement), own),
            Cell::Cannot => "no such case".to_owned(),
            Cell::Failed(_) => "failed".to_owned(),
        });
        let row = [workload.title.to_owned(), workload.size.to_string()].into_iter().chain(text);
        table.add(row);
    }
    println!("{table}");
}

fn with_ratio(value: f64, own: Option<f64>) -> String {
    match own {
        Some(own) => format!("{} ({}×)", number(value), number(value / own)),
        None => number(value),
    }
}

/// How many times as fast as `LangGraph` a step has to be.
fn least_ratio(workload: &Workload) -> Option<f64> {
    match workload.case {
        "w1" | "w2" | "w5" => Some(500.0),
        "w6mem" => Some(300.0),
        _ => None,
    }
}

/// Prints the ratios to the faster mode of `LangGraph`; whether all are high enough.
fn print_langgraph_targets(rows: &Rows) -> bool {
    let mut all_met = true;
    for (workload, cells) in &rows.rows {
        let Some(least) = least_ratio(workload) else {
            continue;
        };
        let modes = LANGGRAPH.iter().filter_map(|mode| rows.of(cells, mode));
        let fastest = modes.map(|measurement| measurement.micros).reduce(f64::min);
        let own = rows.of(cells, SUPERSTEP).map(|measurement| measurement.micros);
        let ratio = own.zip(fastest).map(|(own, fastest)| fastest / own);
        all_met &= ratio.is_some_and(|ratio| ratio >= least);
        let verdict = match ratio {
            Some(ratio) if ratio >= least => format!("{}×, met", number(ratio)),
            Some(ratio) => format!("{}×, missed", number(ratio)),
            None => "not measured".to_owned(),
        };
        println!("{} {}, at least {least}× LangGraph: {verdict}", workload.title, workload.size);
    }
    all_met
}
