//! W6 on disk by hand: one row and one commit per step, with as many bytes as superstep keeps of one.
use crate::SYS;
use crate::common::{SAVED_BYTES_PER_STEP, drop_db, fresh_db, measure, median, postgres_address, report};
use crate::react;
use rusqlite::Connection;
use serde_json::json;
use tokio_postgres::{Client, NoTls};

const ROW: [u8; SAVED_BYTES_PER_STEP] = [b'x'; SAVED_BYTES_PER_STEP];
/// As many as the turns of the same case of superstep make.
const STEPS_OF_A_THREAD: usize = 51;

/// Runs a case on a plain thread of its own, where calls may block.
pub fn on_a_thread<Case: Future<Output = ()>>(case: impl FnOnce() -> Case + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    std::thread::spawn(move || runtime.block_on(case())).join().unwrap();
}

pub async fn sqlite(turns: usize) {
    let (file, connection) = open(SYS);
    let times = measure(|| react(turns, |_, _| commit(&connection, 1))).await;
    drop(connection);
    drop_db(&file);
    let (file, connection) = open("one");
    react(turns, |_, _| commit(&connection, 1)).await;
    drop(connection);
    let bytes = std::fs::metadata(&file).unwrap().len();
    drop_db(&file);
    report(SYS, "W6-sqlite", turns, &times, 2 * turns + 1, json!({"bytes_total": bytes}));
}

/// The best that many threads can have together: the rows of all of them in each commit.
pub async fn threads(threads: usize) {
    let (file, connection) = open(SYS);
    let times = measure(|| {
        (0..STEPS_OF_A_THREAD).for_each(|_| commit(&connection, threads));
        std::future::ready(())
    })
    .await;
    drop(connection);
    drop_db(&file);
    let steps = threads * STEPS_OF_A_THREAD;
    let extra = json!({"steps_per_s": steps as f64 / median(&times)});
    report(SYS, "W6-threads", threads, &times, steps, extra);
}

/// A file with the settings of superstep's.
fn open(name: &str) -> (String, Connection) {
    let file = fresh_db(name);
    let connection = Connection::open(&file).unwrap();
    let set_up = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000;
        CREATE TABLE steps (body BLOB NOT NULL)";
    connection.execute_batch(set_up).unwrap();
    (file, connection)
}

fn commit(connection: &Connection, rows: usize) {
    let execute = |sql: &str| connection.prepare_cached(sql).unwrap().execute([]).unwrap();
    execute("BEGIN IMMEDIATE");
    for _ in 0..rows {
        connection.prepare_cached("INSERT INTO steps (body) VALUES (?1)").unwrap().execute([&ROW[..]]).unwrap();
    }
    execute("COMMIT");
}

pub async fn postgres(turns: usize) {
    let (client, connection) = tokio_postgres::connect(&postgres_address(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let times = {
        let insert = empty_table(&client).await;
        measure(|| insert_all(&client, &insert, 2 * turns + 1)).await
    };
    let insert = empty_table(&client).await;
    insert_all(&client, &insert, 2 * turns + 1).await;
    let size = client.query_one("SELECT pg_total_relation_size('bench_floor')", &[]).await.unwrap();
    let settings = "SELECT 'fsync=' || current_setting('fsync') || ', synchronous_commit=' || current_setting('synchronous_commit')";
    let settings: String = client.query_one(settings, &[]).await.unwrap().get(0);
    let extra = json!({"bytes_total": size.get::<_, i64>(0), "note": settings});
    report(SYS, "W6-postgres", turns, &times, 2 * turns + 1, extra);
}

async fn empty_table(client: &Client) -> tokio_postgres::Statement {
    let set_up = "DROP TABLE IF EXISTS bench_floor; CREATE TABLE bench_floor (body bytea NOT NULL)";
    client.batch_execute(set_up).await.unwrap();
    client.prepare("INSERT INTO bench_floor (body) VALUES ($1)").await.unwrap()
}

async fn insert_all(client: &Client, insert: &tokio_postgres::Statement, rows: usize) {
    for _ in 0..rows {
        client.execute(insert, &[&&ROW[..]]).await.unwrap();
    }
}
