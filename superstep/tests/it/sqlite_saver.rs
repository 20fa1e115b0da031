//! Checkpoints in SQLite.

use std::time::Duration;

use superstep::{
    AgentState, AgentStateUpdate, BoxError, CheckpointErrorKind, CheckpointId, CheckpointRecord, Checkpointer,
    CompiledStateGraph, Durability, END, Lease, ListQuery, MemorySaver, Message, Prune, START, State, StateGraph,
};
use superstep_sqlite::SqliteSaver;

async fn model(state: AgentState) -> AgentStateUpdate {
    let answer = random(state.messages.len() as u64, 1000);
    AgentStateUpdate { messages: Some(vec![Message::assistant(answer)]) }
}

fn chat(saver: SqliteSaver) -> CompiledStateGraph<AgentState> {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("model", model).add_edge(START, "model");
    graph.checkpointer(saver).compile().unwrap()
}

/// Text that does not compress.
fn random(seed: u64, len: usize) -> String {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            char::from(b'a' + (x % 26) as u8)
        })
        .collect()
}

/// A message is in the step that wrote it, in an outline, and if it is an input in that too. Each turn has the id of its run.
#[tokio::test]
async fn a_long_chat_takes_at_most_4_3_times_the_bytes_of_its_messages() {
    let folder = folder("chat");
    let file = folder.join("chat.db");
    let app = chat(SqliteSaver::open(&file).unwrap());
    for turn in 0..500 {
        let input = AgentState { messages: vec![Message::user(random(turn + 1_000_000, 1000))] };
        app.invoke(input).thread("t").await.unwrap();
    }
    let state = app.thread("t").state().await.unwrap().state;
    assert_eq!(state.messages.len(), 1000);
    let messages: usize = state.messages.iter().map(|m| m.text().len()).sum();
    drop(app);
    let bytes = std::fs::metadata(&file).unwrap().len();
    assert!(10 * bytes <= 43 * messages as u64, "{bytes} bytes for {messages} bytes of messages");
    std::fs::remove_dir_all(folder).unwrap();
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("superstep-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite() {
    superstep::conformance::checkpointer::run(|| async { SqliteSaver::memory().unwrap() }).await.assert();
    let ttl = |ttl| async move { SqliteSaver::memory().unwrap().ttl(ttl) };
    superstep::conformance::checkpointer::expiry(ttl).await.assert();
}

/// A sweep looked which threads had expired, then deleted them all: one that was used in between was lost. Here one is
/// used as soon as another is forgotten.
#[tokio::test]
async fn a_sweep_leaves_a_thread_that_is_used_meanwhile() {
    let folder = folder("sweep");
    let file = folder.join("sweep.db");
    let saver = SqliteSaver::open(&file).unwrap();
    let app = chat(saver.clone());
    for thread in ["first", "second", "third"] {
        app.invoke(AgentState { messages: vec![Message::user("hello")] }).thread(thread).await.unwrap();
    }
    let other = rusqlite::Connection::open(&file).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER meanwhile AFTER DELETE ON superstep_threads WHEN old.name = 'first' BEGIN
                UPDATE superstep_spaces SET used_at = used_at + 1000000000000000
                WHERE thread = (SELECT key FROM superstep_threads WHERE name = 'second');
            END",
        )
        .unwrap();
    let swept = saver.clone().ttl(Duration::ZERO).sweep().await.unwrap();
    assert_eq!((swept.expired, swept.orphans), (2, 0));
    assert_eq!(saver.threads(None, 9).await.unwrap(), ["second"]);
    assert_eq!(app.thread("second").state().await.unwrap().state.messages.len(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

/// By these notes a run is found to be deleted: one for each namespace, however many checkpoints it has there.
#[tokio::test]
async fn a_run_is_noted_as_long_as_it_has_checkpoints() {
    let folder = folder("runs");
    let file = folder.join("runs.db");
    let saver = SqliteSaver::open(&file).unwrap();
    let app = chat(saver.clone());
    let say = async |thread: &str, run: &str| {
        app.invoke(AgentState { messages: vec![Message::user("hello")] }).thread(thread).run_id(run).await.unwrap();
    };
    for (thread, run) in [("t", "first"), ("t", "second"), ("t", "third"), ("other", "fourth")] {
        say(thread, run).await;
    }
    let other = rusqlite::Connection::open(&file).unwrap();
    let noted = || {
        let mut statement = other.prepare("SELECT run FROM superstep_runs ORDER BY run").unwrap();
        let runs = statement.query_map([], |row| row.get(0)).unwrap();
        runs.collect::<rusqlite::Result<Vec<String>>>().unwrap()
    };
    assert_eq!(noted(), ["first", "fourth", "second", "third"]);
    saver.delete_run("second").await.unwrap();
    assert_eq!(noted(), ["first", "fourth", "third"]);
    saver.prune("t", &Prune::keep_last(1)).await.unwrap();
    assert_eq!(noted(), ["fourth", "third"]);
    saver.copy_thread("t", "copy").await.unwrap();
    assert_eq!(noted(), ["fourth", "third", "third"]);
    saver.delete_thread("other").await.unwrap();
    assert_eq!(noted(), ["third", "third"]);
    assert_eq!(saver.delete_run("third").await.unwrap(), 2);
    assert!(noted().is_empty());
    std::fs::remove_dir_all(folder).unwrap();
}

/// What can be read of a thread: as text, or why not.
async fn seen(saver: &SqliteSaver) -> Result<String, String> {
    let all = saver.list("t", "", &ListQuery::new()).await.map_err(|error| error.to_string())?;
    let latest = saver.get("t", "", None).await.map_err(|error| error.to_string())?;
    // What was written under it lies in the next row.
    let middle =
        saver.get("t", "", all.get(2).map(|saved| saved.record().id())).await.map_err(|error| error.to_string())?;
    Ok(format!("{latest:?} {middle:?} {all:?}"))
}

/// By which column a row is found, and those that are sealed with a body, or lead to one; what is not here says where a
/// row belongs.
const COLUMNS: [(&str, &str, &[&str]); 4] = [
    (
        "superstep_checkpoints",
        "rowid",
        &[
            "id",
            "parent",
            "base",
            "root",
            "shape",
            "body",
            "outline",
            "owners",
            "source",
            "step",
            "created_at",
            "depth",
            "took",
        ],
    ),
    ("superstep_pending", "checkpoint", &["task", "consumed", "body"]),
    ("superstep_shapes", "rowid", &["digest", "body"]),
    ("superstep_spaces", "rowid", &["head"]),
];

#[tokio::test]
async fn a_flipped_bit_is_never_read_as_something_else() {
    let folder = folder("flip");
    let file = folder.join("flip.db");
    let saver = SqliteSaver::open(&file).unwrap().outlines(2, 2);
    let app = chat(saver.clone());
    for text in ["one", "two"] {
        app.invoke(AgentState { messages: vec![Message::user(text)] }).thread("t").run_id("r").await.unwrap();
    }
    let whole = seen(&saver).await.unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("PRAGMA synchronous = OFF").unwrap();
    let (mut flips, mut refused) = (0, 0);
    for (table, key, columns) in COLUMNS {
        for column in columns {
            let select = format!("SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL");
            let update = format!("UPDATE {table} SET {column} = ?2 WHERE {key} = ?1");
            let rows: Vec<(rusqlite::types::Value, rusqlite::types::Value)> = {
                let mut statement = other.prepare(&select).unwrap();
                statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
            };
            for (row, value) in rows {
                for flipped in each_flip(&value) {
                    assert_eq!(other.execute(&update, (&row, flipped)).unwrap(), 1);
                    flips += 1;
                    match seen(&saver).await {
                        Ok(seen) => assert!(seen == whole, "{table}.{column}, row {row:?}"),
                        Err(_) => refused += 1,
                    }
                }
                other.execute(&update, (&row, &value)).unwrap();
            }
        }
    }
    assert_eq!(seen(&saver).await.unwrap(), whole);
    assert!(refused > flips / 2, "{refused} of {flips} flips were refused, the others change nothing that is read");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A value with one bit changed: of long ones, every bit of the first bytes and one of each later byte.
fn each_flip(value: &rusqlite::types::Value) -> Vec<rusqlite::types::Value> {
    use rusqlite::types::Value;
    match value {
        Value::Integer(number) => (0..63).map(|bit| Value::Integer(number ^ (1 << bit))).collect(),
        Value::Blob(bytes) => {
            let bits = (0..bytes.len() * 8).filter(|bit| *bit < 40 * 8 || bit % 8 == bit / 8 % 8);
            let flip = |bit: usize| {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                Value::Blob(flipped)
            };
            bits.map(flip).collect()
        }
        other => panic!("a column holds {other:?}"),
    }
}

/// A checkpoint as a run makes it.
async fn pattern() -> CheckpointRecord {
    let saver = MemorySaver::new();
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("model", model).add_edge(START, "model");
    let app = graph.checkpointer(saver.clone()).compile().unwrap();
    app.invoke(AgentState { messages: vec![Message::user("hello")] }).thread("t").await.unwrap();
    saver.get("t", "", None).await.unwrap().unwrap().record().clone()
}

/// Who makes an outline goes down row by row; it must not look for one that is not there for ever.
#[tokio::test]
async fn a_save_that_has_to_read_rows_that_are_gone_or_damaged_fails() {
    let pattern = pattern().await;
    let ids: Vec<_> = (0..5).map(|number| CheckpointId::from_u128((1 << 64) + number)).collect();
    for damage in [
        "DELETE FROM superstep_checkpoints WHERE id = ?1",
        "UPDATE superstep_checkpoints SET base = id WHERE id = ?1",
        "UPDATE superstep_checkpoints SET id = 'text' WHERE id = ?1",
    ] {
        let folder = folder("gap");
        let file = folder.join("gap.db");
        let saver = SqliteSaver::open(&file).unwrap().outlines(5, 2);
        let epoch = saver.claim("t", "", None).await.unwrap().epoch;
        let put = async |at: usize| {
            let before = at.checked_sub(1).map(|before| ids[before]);
            let record = pattern.clone().with_id(ids[at]).with_head(before).with_parent(before).with_base(before);
            saver.put(Lease::new("t", "", epoch), record).await
        };
        for at in 0..4 {
            put(at).await.unwrap();
        }
        let other = rusqlite::Connection::open(&file).unwrap();
        assert_eq!(other.execute(damage, [ids[1].as_u128().to_be_bytes()]).unwrap(), 1);
        let error = put(4).await.unwrap_err();
        assert_eq!((error.kind(), error.thread()), (CheckpointErrorKind::Codec, Some("t")), "{damage}: {error}");
        assert!(!error.is_retryable());
        assert_eq!(
            other.query_row("SELECT count(*) FROM superstep_checkpoints", [], |row| row.get(0)),
            Ok(if damage.starts_with("DELETE") { 3 } else { 4 }),
            "nothing was written"
        );
        drop(saver);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Whoever can write to the file can make two rows that stand on each other; reading them never came to an end.
#[tokio::test]
async fn rows_that_stand_on_each_other_are_refused() {
    let folder = folder("circle");
    let file = folder.join("circle.db");
    let saver = SqliteSaver::open(&file).unwrap();
    let pattern = pattern().await;
    let [before, first, second] = [0, 1, 2].map(|number| CheckpointId::from_u128((1 << 64) + number));
    let epoch = saver.claim("t", "", None).await.unwrap().epoch;
    let put = async |id, head, base| {
        let record = pattern.clone().with_id(id).with_head(head).with_parent(base).with_base(base);
        saver.put(Lease::new("t", "", epoch), record).await.unwrap();
    };
    put(first, None, None).await;
    put(second, Some(first), Some(first)).await;
    let other = rusqlite::Connection::open(&file).unwrap();
    let set_head = |id: CheckpointId| {
        other.execute("UPDATE superstep_spaces SET head = ?1", [id.as_u128().to_be_bytes()]).unwrap();
    };
    other.execute("DELETE FROM superstep_checkpoints WHERE id = ?1", [first.as_u128().to_be_bytes()]).unwrap();
    set_head(before);
    put(first, Some(before), Some(second)).await;
    set_head(second);
    let error = saver.get("t", "", None).await.unwrap_err().to_string();
    assert!(error.ends_with("base: it is not older than the checkpoint; the database is damaged"), "{error}");
    assert!(saver.prune("t", &Prune::keep_last(1)).await.is_err());
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_file_that_another_program_keeps_locked_is_busy_and_not_waited_for_for_ever() {
    let folder = std::env::temp_dir().join(format!("superstep-locked-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let app = chat(SqliteSaver::open(folder.join("threads.db")).unwrap());
    let run = || app.invoke(AgentState { messages: vec![Message::user("hello")] }).thread("t");
    let other = rusqlite::Connection::open(folder.join("threads.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = run().await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("was kept busy by others for too long; try again"));
    other.execute_batch("ROLLBACK").unwrap();
    run().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

/// A body could be so deep that reading it used up the stack; so it may not be, and what is written can be read.
#[tokio::test]
async fn metadata_is_as_deep_as_can_be_read() {
    let app = chat(SqliteSaver::memory().unwrap());
    let nested = |levels: usize| (0..levels).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let run = |levels| {
        let input = AgentState { messages: vec![Message::user("hello")] };
        app.invoke(input).thread("t").metadata("deep", nested(levels))
    };
    run(120).await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().metadata["deep"], nested(120));
    let error = run(121).await.unwrap_err().to_string();
    assert!(
        error.ends_with("metadata `deep` cannot be saved: it is nested more than 120 levels deep; make it flatter")
    );
}

#[tokio::test]
async fn a_thread_of_ten_thousand_steps_is_read_from_a_bounded_number_of_rows() {
    let saver = SqliteSaver::memory().unwrap();
    let app = counting(&saver, 10_000);
    app.invoke(Counter::default()).thread("t").recursion_limit(20_000).await.unwrap();
    let before = saver.rows_read();
    assert_eq!(app.thread("t").state().await.unwrap().state.log.len(), 10_000);
    let rows = saver.rows_read() - before;
    assert!(rows <= 400, "{rows} rows were read");
}

fn counting(saver: &SqliteSaver, steps: u64) -> CompiledStateGraph<Counter> {
    let count = async |state: Counter| CounterUpdate { steps: Some(state.steps + 1), log: Some(vec![state.steps]) };
    let next = move |state: &Counter| if state.steps.is_multiple_of(steps) { END } else { "count" };
    let mut graph = StateGraph::<Counter>::new();
    graph.add_node("count", count).add_edge(START, "count");
    graph.add_conditional_edges("count", next).checkpointer(saver.clone()).compile().unwrap()
}

/// An outline that a saver made of rows that it remembered could refer to rows that another process had pruned meanwhile.
#[tokio::test]
async fn outlines_refer_to_no_rows_that_others_removed() {
    const STEPS: u64 = 12;
    let folder = folder("removed");
    let file = folder.join("removed.db");
    for pruned_at in 1..STEPS {
        let [saver, others] = [0, 1].map(|_| SqliteSaver::open(&file).unwrap().outlines(4, 2));
        let pruner = others.clone();
        let count = move |state: Counter| {
            let others = pruner.clone();
            async move {
                if state.steps == pruned_at {
                    others.prune("t", &Prune::keep_last(1)).await?;
                }
                Ok::<_, BoxError>(CounterUpdate { steps: Some(state.steps + 1), log: Some(vec![state.steps]) })
            }
        };
        let mut graph = StateGraph::<Counter>::new();
        graph.add_node("count", count).add_edge(START, "count");
        graph.add_conditional_edges("count", |state: &Counter| if state.steps < STEPS { "count" } else { END });
        let app = graph.checkpointer(saver).compile().unwrap();
        app.invoke(Counter::default()).thread("t").durability(Durability::Sync).await.unwrap();
        let whole = app.thread("t").state().await.unwrap().state;
        assert_eq!(whole.log, (0..STEPS).collect::<Vec<_>>(), "pruned at {pruned_at}");
        let rows = others.list("t", "", &ListQuery::new()).await.unwrap();
        assert_eq!(rows.len() as u64, STEPS - pruned_at + 1);
        others.prune("t", &Prune::keep_last(1)).await.unwrap();
        assert_eq!(app.thread("t").state().await.unwrap().state.log, whole.log, "pruned at {pruned_at}");
        others.delete_thread("t").await.unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Only what a lone task wrote lay in the row of the checkpoint that consumed it; more had rows of their own.
#[tokio::test]
async fn what_a_step_brings_along_lies_in_its_row_until_more_is_known_of_it() {
    let folder = folder("held");
    let file = folder.join("held.db");
    let saver = SqliteSaver::open(&file).unwrap();
    let mut graph = StateGraph::<Counter>::new();
    for name in ["one", "two", "three"] {
        graph.add_node(name, async |_: Counter| CounterUpdate { steps: None, log: Some(vec![1 << 60; 9]) });
        graph.add_edge(START, name);
    }
    graph.checkpointer(saver.clone()).compile().unwrap().invoke(Counter::default()).thread("from").await.unwrap();
    let from = saver.list("from", "", &ListQuery::new()).await.unwrap();
    let (writes, step) = (from[1].writes(), &from[0]);
    assert_eq!(writes.len(), 3);

    let epoch = saver.claim("t", "", None).await.unwrap().epoch;
    let lease = || Lease::new("t", "", epoch);
    let base = from[1].record().id();
    saver.put(lease(), from[1].record().clone().with_parent(None).with_base(None)).await.unwrap();
    saver.put(lease(), step.record().clone().with_head(Some(base)).with_writes(writes.to_vec())).await.unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    let rows = "SELECT count(*) FROM superstep_pending p JOIN superstep_spaces s ON s.key = p.space
        JOIN superstep_threads t ON t.key = s.thread WHERE t.name LIKE ?1";
    let rows = |thread| other.query_row(rows, [thread], |row| row.get::<_, i64>(0)).unwrap();
    let seen = async |thread: &str| format!("{:?}", saver.get(thread, "", Some(base)).await.unwrap().unwrap().writes());
    assert_eq!((rows("t"), seen("t").await), (0, format!("{writes:?}")));
    saver.copy_thread("t", "copy").await.unwrap();
    assert_eq!((rows("copy"), seen("copy").await), (0, format!("{writes:?}")));

    let more = writes[1].clone().with_resume(Some("yes".into()));
    saver.put_writes(lease(), base, more.clone()).await.unwrap();
    let all = [&writes[0], &more, &writes[2]];
    assert_eq!((rows("t"), seen("t").await), (3, format!("{all:?}")));
    std::fs::remove_dir_all(folder).unwrap();
}

/// More rows than one transaction removes, or one page of a copy has.
#[tokio::test]
async fn long_threads_are_copied_and_forgotten_piece_by_piece() {
    const STEPS: u64 = 1200;
    let saver = SqliteSaver::memory().unwrap();
    let app = counting(&saver, STEPS);
    app.invoke(Counter::default()).thread("t").run_id("long").recursion_limit(20_000).await.unwrap();
    saver.copy_thread("t", "copy").await.unwrap();
    let all = async |thread: &str| saver.list(thread, "", &ListQuery::new()).await.unwrap();
    let (whole, copy) = (all("t").await, all("copy").await);
    assert_eq!(whole.len() as u64, STEPS + 2);
    assert_eq!(format!("{whole:?}"), format!("{copy:?}"));
    saver.delete_thread("t").await.unwrap();
    assert_eq!(saver.delete_run("long").await.unwrap(), copy.len());
    assert_eq!(saver.threads(None, 9).await.unwrap(), [""; 0]);
    assert_eq!(saver.sweep().await.unwrap(), superstep::Swept::default());
}

/// Every name that was ever claimed stayed in the table of threads.
#[tokio::test]
async fn a_claim_that_came_to_nothing_is_swept_after_a_day() {
    let folder = folder("idle");
    let file = folder.join("idle.db");
    let saver = SqliteSaver::open(&file).unwrap();
    chat(saver.clone()).invoke(AgentState { messages: vec![Message::user("hello")] }).thread("used").await.unwrap();
    for thread in ["old", "new"] {
        saver.claim(thread, "", None).await.unwrap();
    }
    let other = rusqlite::Connection::open(&file).unwrap();
    let long_ago = "UPDATE superstep_threads SET claimed_at = claimed_at - 86400000001 WHERE name <> 'new'";
    other.execute(long_ago, []).unwrap();
    assert_eq!(saver.sweep().await.unwrap(), superstep::Swept::default());
    let left = "SELECT group_concat(name, ' ') FROM (SELECT name FROM superstep_threads ORDER BY name)";
    assert_eq!(other.query_row(left, [], |row| row.get::<_, String>(0)).unwrap(), "new used");
    std::fs::remove_dir_all(folder).unwrap();
}

#[derive(State, Clone, Default, serde::Serialize, serde::Deserialize)]
struct Counter {
    steps: u64,
    #[state(append)]
    log: Vec<u64>,
}
