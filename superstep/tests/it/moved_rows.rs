//! Rows of a SQLite file that someone moved past superstep: what `docs/encryption.md` says is noticed, is; and what it says
//! is not, looks as if rows had been deleted.

use std::path::PathBuf;

use superstep::{
    AgentState, Checkpointer, CompiledStateGraph, Context, Durability, EchoAgent, ListQuery, Message, START, StateGraph,
};
use superstep_sqlite::SqliteSaver;
use superstep_storage::Seal;

use crate::support::{Notes, NotesUpdate};

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("superstep-moved-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn saver(&self) -> SqliteSaver {
        SqliteSaver::open(self.0.join("threads.db")).unwrap()
    }

    /// Changes the file past superstep; something changes.
    fn change(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.0.join("threads.db")).unwrap();
        assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
    }
}

fn echo(saver: SqliteSaver) -> CompiledStateGraph<AgentState> {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("echo", EchoAgent).add_edge(START, "echo");
    graph.checkpointer(saver).compile().unwrap()
}

/// Two threads with the same words in them, changed; and whether each of them is then an error, or empty.
async fn after(name: &str, seal: &Seal, sql: &[&str]) -> [Result<usize, String>; 2] {
    let place = Place::new(name);
    for thread in ["a", "b"] {
        let input = AgentState { messages: vec![Message::user("hello")] };
        echo(place.saver().seal(seal.clone())).invoke(input).thread(thread).await.unwrap();
    }
    sql.iter().for_each(|sql| place.change(sql));
    let app = echo(place.saver().seal(seal.clone()));
    let read = async |thread: &str| {
        let read = app.thread(thread).state().await.map(|at| at.state.messages.len());
        read.map_err(|error| error.to_string())
    };
    [read("a").await, read("b").await]
}

fn seals() -> Vec<Seal> {
    vec![Seal::new(), Seal::new().encrypt(superstep_storage::Keys::new("key", superstep_storage::Key::from([7; 32])))]
}

#[tokio::test]
async fn rows_in_the_place_of_others_are_not_read() {
    let moved = "it was moved, or what stands beside it was changed";
    let changes: [(&str, &[&str]); 4] = [
        (
            "the names of threads",
            &[
                "UPDATE superstep_threads SET name = 'c' WHERE name = 'a'",
                "UPDATE superstep_threads SET name = 'a' WHERE name = 'b'",
                "UPDATE superstep_threads SET name = 'b' WHERE name = 'c'",
            ],
        ),
        (
            "the threads of namespaces",
            &[
                "UPDATE superstep_spaces SET thread = -1 WHERE thread = 1",
                "UPDATE superstep_spaces SET thread = 1 WHERE thread = 2",
                "UPDATE superstep_spaces SET thread = 2 WHERE thread = -1",
            ],
        ),
        ("the namespaces of checkpoints", &["UPDATE superstep_checkpoints SET space = 3 - space"]),
        (
            "the heads",
            &["UPDATE superstep_spaces SET head = (SELECT min(id) FROM superstep_checkpoints c WHERE c.space = key)"],
        ),
    ];
    for seal in seals() {
        for (what, sql) in changes {
            for (thread, read) in ["a", "b"].into_iter().zip(after("places", &seal, sql).await) {
                let error = read.expect_err(what);
                assert!(error.contains(&format!("thread `{thread}`, checkpoint ")), "{what}: {error}");
                let is_told = error.contains(moved)
                    || error.contains("head: there is a newer checkpoint; the database was changed or is damaged")
                    || error.ends_with("it is not in the database; the database is damaged");
                assert!(is_told, "{what}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_thread_or_namespace_with_another_name_is_gone_and_is_not_read_under_that_name() {
    for seal in seals() {
        let renamed = "UPDATE superstep_threads SET name = 'c' WHERE name = 'a'";
        assert_eq!(after("thread", &seal, &[renamed]).await, [Ok(0), Ok(2)]);
        let inner = "UPDATE superstep_spaces SET name = 'inner' WHERE thread = 1";
        assert_eq!(after("space", &seal, &[inner]).await, [Ok(0), Ok(2)]);
    }
    let place = Place::new("renamed");
    let input = AgentState { messages: vec![Message::user("hello")] };
    echo(place.saver()).invoke(input).thread("a").await.unwrap();
    place.change("UPDATE superstep_threads SET name = 'c'");
    let error = echo(place.saver()).thread("c").state().await.unwrap_err().to_string();
    assert!(error.contains("it was moved, or what stands beside it was changed"), "{error}");
    place.change("UPDATE superstep_threads SET name = 'a'");
    place.change("UPDATE superstep_spaces SET name = 'inner'");
    let error = place.saver().get("a", "inner", None).await.unwrap_err().to_string();
    assert!(error.contains("it was moved, or what stands beside it was changed"), "{error}");
}

/// Two nodes: one is done, the other asks.
fn asking(saver: SqliteSaver) -> CompiledStateGraph<Notes> {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("done", async |_: Notes| Notes::update().log(["done"]));
    graph.add_node("asks", |_: Notes, cx: Context| {
        std::future::ready(cx.interrupt::<String>("?").map(|answer| Notes::update().log([answer])))
    });
    graph.add_edge(START, "done").add_edge(START, "asks");
    graph.checkpointer(saver).compile().unwrap()
}

#[tokio::test]
async fn what_a_task_wrote_is_not_read_under_another_checkpoint() {
    let place = Place::new("pending");
    let app = asking(place.saver());
    app.invoke(NotesUpdate::default()).thread("t").durability(Durability::Sync).await.unwrap();
    place.change(
        "UPDATE superstep_pending SET checkpoint = (SELECT min(id) FROM superstep_checkpoints) WHERE rowid = 1",
    );
    let app = asking(place.saver());
    let error = app.thread("t").history().await.unwrap_err().to_string();
    assert!(error.contains("pending writes: ") && error.contains("it was moved, or what stands beside it"), "{error}");
    // Where it stood, it is as if it had been deleted.
    let listed = place.saver().list("t", "", &ListQuery::new().limit(1)).await.unwrap();
    assert_eq!(listed[0].writes().len(), 1);
}
