//! `cargo xtask compare`: superstep beside the floor, `LangGraph` and every peer that builds, in one run.

use crate::Result;
use crate::bench::{self, FLOOR, Options, Peers, Rows, SUPERSTEP};
use crate::side;
use crate::table::number;
use crate::workload::{DISK, Unit, Workload};
use std::path::{Path, PathBuf};

const LANGGRAPH: [&str; 2] = ["LangGraph sync", "LangGraph async"];

pub(crate) fn run(options: &Options) -> Result<()> {
    let peers = asked_peers(&options.peers)?;
    let mut folders = vec![Path::new(SUPERSTEP), Path::new(FLOOR)];
    folders.extend(peers.iter().map(PathBuf::as_path));
    let mut sides = bench::build_all(&folders);
    match side::langgraph() {
        Ok(langgraph) => sides.extend(langgraph),
        Err(error) => eprintln!("LangGraph is left out: {error}"),
    }
    let rows = Rows::measure(sides, options)?;
    rows.print_targets();
    let title = "Time in µs per unit; in brackets, how many times as long as superstep:";
    rows.print_ratios(title, |_, measurement| Some(measurement.micros));
    let title = "Runs per second; in brackets, how many times those of superstep:";
    rows.print_ratios(title, |workload, measurement| (workload.unit == Unit::Run).then(|| 1e6 / measurement.micros));
    let title = "Peak memory in MB; in brackets, how many times that of superstep:";
    rows.print_ratios(title, |_, measurement| Some(measurement.peak_mb));
    rows.print_kept();
    rows.print_remarks();
    let all_met = print_langgraph_targets(&rows);
    let is_ahead = print_peers_ahead(&rows);
    rows.verdict()?;
    if !is_ahead {
        return Err("a peer is ahead".into());
    }
    if all_met { Ok(()) } else { Err("LangGraph is not outrun as far as it should be".into()) }
}

/// The folders of the peers that are asked for.
fn asked_peers(asked: &Peers) -> Result<Vec<PathBuf>> {
    let mut peers = side::peers()?;
    let name = |peer: &PathBuf| peer.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Peers::Only(names) = asked
        && let Some(unknown) = names.iter().find(|asked| !peers.iter().any(|peer| name(peer) == **asked))
    {
        let known = peers.iter().map(name).collect::<Vec<_>>().join(", ");
        return Err(format!("there is no peer `{unknown}`; there are {known}").into());
    }
    peers.retain(|peer| asked.wants(&name(peer)));
    Ok(peers)
}

/// Names the peers that are faster at a workload; whether there is none that does all of it. What a program says of its
/// case is what it leaves out.
fn print_peers_ahead(rows: &Rows) -> bool {
    let ours = |name: &str| [SUPERSTEP, FLOOR].contains(&name) || LANGGRAPH.contains(&name);
    let mut is_ahead = true;
    for (workload, cells) in &rows.rows {
        let Some(own) = rows.of(cells, SUPERSTEP) else { continue };
        for peer in rows.sides.iter().filter(|side| !ours(&side.name)) {
            if let Some(peers) = rows.of(cells, &peer.name).filter(|peers| peers.micros < own.micros) {
                let (micros, own) = (number(peers.micros), number(own.micros));
                let but = peers.note.as_ref().map(|note| format!("; but: {note}")).unwrap_or_default();
                println!(
                    "{} {}: {} is ahead, {micros} against {own} µs{but}",
                    workload.title, workload.size, peer.name
                );
                is_ahead &= peers.note.is_some();
            }
        }
    }
    is_ahead
}

/// How many times as fast as `LangGraph` a step has to be.
fn least_ratio(workload: &Workload, rows: &Rows) -> Option<f64> {
    match workload.case {
        "w1" | "w2" | "w5" => Some(500.0),
        "w6mem" => Some(300.0),
        "w6threads" => None,
        "chats" => Some(30.0),
        case if DISK.contains(&case) => match workload.size {
            // What they save grows with the conversation, what we save does not.
            400 => lead(rows, (case, 100)).map(|lead| lead.own.max(30.0)).or(Some(30.0)),
            _ => Some(30.0),
        },
        _ => None,
    }
}

/// How many times as long as others the faster mode of `LangGraph` takes.
struct Lead {
    own: f64,
    floor: Option<f64>,
}

fn lead(rows: &Rows, key: (&str, u32)) -> Option<Lead> {
    let (_, cells) = rows.rows.iter().find(|(workload, _)| workload.key() == key)?;
    let micros = |name: &str| Some(rows.of(cells, name)?.micros);
    let fastest = LANGGRAPH.iter().filter_map(|mode| micros(mode)).reduce(f64::min)?;
    Some(Lead { own: fastest / micros(SUPERSTEP)?, floor: micros(FLOOR).map(|floor| fastest / floor) })
}

/// Prints the ratios to the faster mode of `LangGraph`; whether all are high enough, where they can be.
fn print_langgraph_targets(rows: &Rows) -> bool {
    let mut all_met = true;
    for (workload, _) in &rows.rows {
        let Some(least) = least_ratio(workload, rows) else {
            continue;
        };
        let lead = lead(rows, workload.key());
        let (is_met, verdict) = judge(lead.as_ref(), least);
        all_met &= is_met;
        println!("{} {}, at least {}× LangGraph: {verdict}", workload.title, workload.size, number(least));
    }
    all_met
}

/// A lead that bare inserts do not have either is beyond this disk, not beyond us.
fn judge(lead: Option<&Lead>, least: f64) -> (bool, String) {
    match lead {
        Some(Lead { own, .. }) if *own >= least => (true, format!("{}×, met", number(*own))),
        Some(Lead { own, floor: Some(floor) }) if *floor < least => {
            let (own, floor) = (number(*own), number(*floor));
            (true, format!("{own}×, missed: out of reach on this disk, where the floor itself has {floor}×"))
        }
        Some(Lead { own, .. }) => (false, format!("{}×, missed", number(*own))),
        None => (false, "not measured".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Lead, judge};

    #[test]
    fn only_what_the_floor_reaches_counts_as_failure() {
        let fails = |own, floor| !judge(Some(&Lead { own, floor }), 30.0).0;
        assert!(!fails(31.0, Some(100.0)));
        assert!(fails(29.0, Some(100.0)));
        assert!(fails(29.0, None));
        assert!(!fails(6.0, Some(7.0)));
        assert!(!judge(None, 30.0).0);
    }
}
