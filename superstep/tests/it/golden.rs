//! Checkpoints in SQLite as an earlier release wrote them: what was written once is read for ever.
//!
//! `golden/format-1` has whole databases as SQL, without a seal and with compression and encryption. They hold whole
//! values, tails, outlines, an input that is cut and not copied, pending writes, a failure, a question, a fork and a
//! subgraph; `golden/tables-2` to `tables-4` have the same in tables of those versions, the last without cuts. They are
//! never made anew;
//! `SUPERSTEP_GOLDEN=1 cargo test -p superstep --all-features golden` writes the same content as this release does below
//! `target/tmp/golden`, to be kept beside them when the format or the tables get a new number.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use rusqlite::Connection;
use superstep::{
    BoxError, Checkpointer, Context, GoOn, Interrupted, ListQuery, Prune, Resume, START, StateGraph, TaskRecord,
};
use superstep_sqlite::SqliteSaver;
use superstep_storage::{Compression, Keys, Seal};

use crate::support::{Count, Notes, NotesUpdate, says, trace};

const PLAIN: &str = include_str!("golden/format-1/plain.sql");
const SEALED: &str = include_str!("golden/format-1/sealed.sql");
const PLAIN_2: &str = include_str!("golden/tables-2/plain.sql");
const SEALED_2: &str = include_str!("golden/tables-2/sealed.sql");
const PLAIN_3: &str = include_str!("golden/tables-3/plain.sql");
const SEALED_3: &str = include_str!("golden/tables-3/sealed.sql");
const PLAIN_4: &str = include_str!("golden/tables-4/plain.sql");
const SEALED_4: &str = include_str!("golden/tables-4/sealed.sql");

fn sealed() -> Seal {
    let key: [u8; 32] = std::array::from_fn(|place| place as u8);
    Seal::new().compress(Compression::Lz4).encrypt(Keys::new("2026-11", key.into()))
}

/// A child of two nodes, then one that asks, one that fails at first and one that does neither, side by side.
fn graph(saver: SqliteSaver, failures: usize) -> superstep::CompiledStateGraph<Notes> {
    let mut child = StateGraph::new();
    child.add_node("one", says("one")).add_node("two", says("two"));
    child.add_sequence(["one", "two"]).input(["topic"]).output(["log"]);
    let ask = |notes: Notes, cx: Context| async move {
        let answer = match notes.topic.as_deref() {
            Some("ask") => cx.interrupt::<String>("how many cups?")?,
            _ => "none".to_owned(),
        };
        Ok::<_, Interrupted>(Notes::update().log([format!("{answer} cups")]))
    };
    let failed = Count::default();
    let fail = move |notes: Notes| {
        let fails = notes.topic.as_deref() == Some("fail") && failed.up() < failures;
        async move { if fails { Err(BoxError::from("the kettle is empty")) } else { Ok(Notes::update().total(1)) } }
    };
    let mut graph = StateGraph::new();
    graph
        .add_node("child", child.compile().unwrap())
        .add_node("ask", ask)
        .add_node("fail", fail)
        .add_node("beside", says("beside, with enough words to be worth a reference"))
        .add_edge(START, "child");
    graph.add_edge("child", "ask").add_edge("child", "fail").add_edge("child", "beside");
    graph.checkpointer(saver).compile().unwrap()
}

fn input(topic: &str) -> NotesUpdate {
    Notes::update()
        .topic(topic)
        .log([format!("an input about {topic} that is long enough to be cut from its checkpoint")])
}

/// What the files hold.
async fn write(saver: SqliteSaver) {
    let app = graph(saver.outlines(2, 2), usize::MAX);
    for _ in 0..3 {
        app.invoke(input("tea")).thread("tea").await.unwrap();
    }
    let before = app.thread("tea").history().await.unwrap()[2].checkpoint.clone().unwrap();
    app.thread("tea").at(before.id).update(Notes::update().log(["by hand"]).total(40)).as_node("child").await.unwrap();
    app.invoke(input("ask")).thread("asked").await.unwrap();
    app.invoke(input("fail")).thread("failed").await.unwrap_err();
}

/// Finds in a database what [`write`] has put there, and resumes it.
async fn holds(script: &str, name: &str, seal: Seal) {
    let file = fresh(name);
    Connection::open(&file).unwrap().execute_batch(script).unwrap();
    let saver = SqliteSaver::open(&file).unwrap().seal(seal);
    assert_eq!(saver.threads(None, 10).await.unwrap(), ["asked", "failed", "tea"]);
    let app = graph(saver.clone(), 0);
    let all = async |thread: &str| trace(&app.thread(thread)).await.unwrap();
    let seen =
        format!("tea\n{}\n\nasked\n{}\n\nfailed\n{}\n", all("tea").await, all("asked").await, all("failed").await);
    threads().assert_eq(&seen);
    let asked = app.thread("asked").state().await.unwrap();
    assert_eq!(asked.interrupts[0].value, "how many cups?");
    let failed = saver.get("failed", "", None).await.unwrap().unwrap();
    let said = failed.writes().iter().find_map(TaskRecord::error).unwrap();
    assert_eq!(said.message, "the kettle is empty");
    assert_eq!(failed.writes().iter().filter(|task| task.is_finished()).count(), 2);
    for namespace in saver.namespaces("tea").await.unwrap() {
        assert!(!saver.list("tea", &namespace, &ListQuery::new()).await.unwrap().is_empty());
    }

    let cups = app.invoke(Resume::value("two")).thread("asked").await.unwrap().state;
    let mended = app.invoke(GoOn).thread("failed").await.unwrap().state;
    let forked = app.invoke(GoOn).thread("tea").await.unwrap().state;
    let ends = [cups, mended, forked].map(|notes| format!("{} {:?}\n", notes.total, notes.log)).concat();
    ended().assert_eq(&ends);
}

fn threads() -> Expect {
    expect![[r#"
        tea
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint"],"topic":"tea","total":0} -> child
         1 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two"],"topic":"tea","total":0} -> ask, fail, beside
         2 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference"],"topic":"tea","total":1} -> 
         3 input  {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference"],"topic":"tea","total":1} -> __start__
         4 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint"],"topic":"tea","total":1} -> child
         5 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two"],"topic":"tea","total":1} -> ask, fail, beside
         6 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference"],"topic":"tea","total":2} -> 
         7 input  {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference"],"topic":"tea","total":2} -> __start__
         8 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint"],"topic":"tea","total":2} -> child
         9 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two"],"topic":"tea","total":2} -> ask, fail, beside
        10 loop   {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference"],"topic":"tea","total":3} -> 
         9 update {"log":["an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","one","two","none cups","beside, with enough words to be worth a reference","an input about tea that is long enough to be cut from its checkpoint","by hand"],"topic":"tea","total":42} -> ask, fail, beside

        asked
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":["an input about ask that is long enough to be cut from its checkpoint"],"topic":"ask","total":0} -> child
         1 loop   {"log":["an input about ask that is long enough to be cut from its checkpoint","one","two"],"topic":"ask","total":0} -> ask, fail, beside

        failed
        -1 input  {"log":[],"total":0} -> __start__
         0 loop   {"log":["an input about fail that is long enough to be cut from its checkpoint"],"topic":"fail","total":0} -> child
         1 loop   {"log":["an input about fail that is long enough to be cut from its checkpoint","one","two"],"topic":"fail","total":0} -> ask, fail, beside
    "#]]
}

fn ended() -> Expect {
    expect![[r#"
        1 ["an input about ask that is long enough to be cut from its checkpoint", "one", "two", "two cups", "beside, with enough words to be worth a reference"]
        1 ["an input about fail that is long enough to be cut from its checkpoint", "one", "two", "none cups", "beside, with enough words to be worth a reference"]
        43 ["an input about tea that is long enough to be cut from its checkpoint", "one", "two", "none cups", "beside, with enough words to be worth a reference", "an input about tea that is long enough to be cut from its checkpoint", "one", "two", "none cups", "beside, with enough words to be worth a reference", "an input about tea that is long enough to be cut from its checkpoint", "by hand", "none cups", "beside, with enough words to be worth a reference"]
    "#]]
}

#[tokio::test]
async fn a_database_of_format_1_is_read() {
    holds(PLAIN, "plain", Seal::new()).await;
}

#[tokio::test]
async fn a_compressed_and_encrypted_database_of_format_1_is_read() {
    holds(SEALED, "sealed", sealed()).await;
}

/// Since version 2 a row may hold what a task wrote, since 4 what several did, and leaves out a parent that is the base.
#[tokio::test]
async fn tables_of_versions_2_to_4_are_read() {
    holds(PLAIN_2, "plain-2", Seal::new()).await;
    holds(SEALED_2, "sealed-2", sealed()).await;
    holds(PLAIN_3, "plain-3", Seal::new()).await;
    holds(SEALED_3, "sealed-3", sealed()).await;
    holds(PLAIN_4, "plain-4", Seal::new()).await;
    holds(SEALED_4, "sealed-4", sealed()).await;
}

/// Earlier releases cut an input from its checkpoint instead of copying it: what is cut goes with the checkpoint that it is
/// cut from, unless it is moved.
#[tokio::test]
async fn values_that_are_cut_from_old_rows_survive_copies_and_prunes() {
    for (script, name, seal) in [(PLAIN, "cut-plain", Seal::new()), (SEALED_3, "cut-sealed-3", sealed())] {
        let file = fresh(name);
        let connection = Connection::open(&file).unwrap();
        connection.execute_batch(script).unwrap();
        let cut = "SELECT count(*) FROM superstep_checkpoints WHERE needs_base";
        assert!(connection.query_row(cut, [], |row| row.get::<_, i64>(0)).unwrap() > 0);
        let saver = SqliteSaver::open(&file).unwrap().seal(seal);
        let app = graph(saver.clone(), 0);
        for thread in ["asked", "failed", "tea"] {
            let copy = format!("copy of {thread}");
            saver.copy_thread(thread, &copy).await.unwrap();
            let whole = trace(&app.thread(thread)).await.unwrap();
            assert_eq!(trace(&app.thread(&*copy)).await.unwrap(), whole);
            for kept in (1..=2).rev() {
                saver.prune(&copy, &Prune::keep_last(kept)).await.unwrap();
                let left = trace(&app.thread(&*copy)).await.unwrap();
                assert_eq!(left.lines().count(), kept);
                assert!(left.lines().all(|line| whole.contains(line)), "{left}\nof\n{whole}");
            }
        }
    }
}

/// In tables of version 1 an index said where the checkpoints of a run are, later ones have notes.
#[test]
fn tables_of_version_1_get_notes_of_their_runs() {
    let file = fresh("runs");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(PLAIN).unwrap();
    connection.execute_batch("UPDATE superstep_checkpoints SET run = 'r' || (step % 2) WHERE space = 1").unwrap();
    drop(SqliteSaver::open(&file).unwrap());
    let noted = connection.prepare("SELECT run || space FROM superstep_runs ORDER BY 1").unwrap();
    let noted = { noted }.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<Vec<String>>>().unwrap();
    assert_eq!(noted, ["r-11", "r01", "r11"]);
}

/// What this release writes is read alike; and it is there to be kept.
#[tokio::test]
async fn a_database_of_this_release_is_read() {
    for (name, seal) in [("plain", Seal::new()), ("sealed", sealed())] {
        let file = fresh(&format!("new-{name}"));
        let saver = SqliteSaver::open(&file).unwrap().seal(seal.clone());
        write(saver.clone()).await;
        saver.database().close().await.unwrap();
        let script = dump(&Connection::open(&file).unwrap());
        if std::env::var_os("SUPERSTEP_GOLDEN").is_some() {
            fs::write(file.with_file_name(format!("{name}.sql")), &script).unwrap();
        }
        holds(&script, &format!("again-{name}"), seal).await;
    }
}

fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.db"));
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", file.display()));
    }
    file
}

/// Statements that make the same database.
fn dump(from: &Connection) -> String {
    let texts = |sql: &str| -> Vec<String> {
        from.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut script = String::new();
    for made in texts("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY rowid")
    {
        writeln!(script, "{made};").unwrap();
    }
    for table in texts("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid") {
        let columns = texts(&format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')"));
        for row in texts(&format!("SELECT concat_ws(', ', {}) FROM {table}", columns.join(", "))) {
            writeln!(script, "INSERT INTO {table} VALUES ({row});").unwrap();
        }
    }
    script
}
