//! W6 on disk: the ReAct loop with checkpoints in SQLite.
use crate::common::{SAVED_BYTES_PER_STEP, drop_db, fresh_db, median, report};
use crate::graphs::{react_saved, run_react_saved};
use crate::{Bench, SYSTEM};
use serde_json::{Value, json};
use superstep::Durability;
use superstep_sqlite::SqliteSaver;

/// The turns of each of many threads: enough that the first and the last saves do not matter.
const TURNS_OF_A_THREAD: usize = 25;

pub async fn sqlite(bench: &Bench, durability: Durability) {
    let (turns, file) = (bench.n, fresh_db(SYSTEM));
    let app = react_saved(turns, SqliteSaver::open(&file).unwrap());
    let times = bench.measure("W6-sqlite", 2 * turns + 1, || run_react_saved(&app, turns, durability)).await;
    drop(app);
    drop_db(&file);
    if let Some(times) = times {
        report(SYSTEM, "W6-sqlite", turns, &times, 2 * turns + 1, kept_in_sqlite(turns, durability).await);
    }
}

/// What one run leaves in a file of its own.
async fn kept_in_sqlite(turns: usize, durability: Durability) -> Value {
    let file = fresh_db("one");
    let saver = SqliteSaver::open(&file).unwrap();
    run_react_saved(&react_saved(turns, saver.clone()), turns, durability).await;
    saver.database().close().await.unwrap();
    let connection = rusqlite::Connection::open(&file).unwrap();
    let rows = "SELECT sum(payload) FROM dbstat WHERE name IN ('superstep_checkpoints', 'superstep_pending')";
    let in_rows: i64 = connection.query_row(rows, [], |row| row.get(0)).unwrap();
    drop(connection);
    let bytes = std::fs::metadata(&file).unwrap().len();
    drop_db(&file);
    kept(bytes, in_rows, turns)
}

fn kept(bytes: u64, in_rows: i64, turns: usize) -> Value {
    let per_step = in_rows as f64 / (2 * turns + 1) as f64;
    let mut line = json!({"bytes_total": bytes, "row_bytes_per_step": per_step});
    if (per_step / SAVED_BYTES_PER_STEP as f64 - 1.0).abs() > 0.05 {
        line["note"] = format!("rows hold {per_step:.0} bytes per step, the floor's {SAVED_BYTES_PER_STEP}").into();
    }
    line
}

/// Many threads at a time on one file.
pub async fn threads(bench: &Bench) {
    let file = fresh_db(SYSTEM);
    let app = react_saved(TURNS_OF_A_THREAD, SqliteSaver::open(&file).unwrap());
    let run = || async {
        let run = |_| {
            let app = app.clone();
            tokio::spawn(async move { run_react_saved(&app, TURNS_OF_A_THREAD, Durability::Sync).await })
        };
        for run in (0..bench.n).map(run).collect::<Vec<_>>() {
            run.await.unwrap();
        }
    };
    let steps = bench.n * (2 * TURNS_OF_A_THREAD + 1);
    if let Some(times) = bench.measure("W6-threads", steps, run).await {
        let extra = json!({"steps_per_s": steps as f64 / median(&times)});
        report(SYSTEM, "W6-threads", bench.n, &times, steps, extra);
    }
    drop(app);
    drop_db(&file);
}
