//! A database in trouble under a running graph: its disk is full, it became read-only, its folder is gone.
//!
//! The run ends with an error that says what happened, and nothing is half written. When the trouble is over, the thread
//! goes on from its last checkpoint and ends as an undisturbed one does; no task whose writes were saved runs again.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use superstep::{
    Checkpointer, CompiledStateGraph, Context, Durability, Error, GoOn, ListQuery, MemorySaver, START, StateGraph,
};

use crate::support::Notes;

/// Begins the trouble, or ends it.
pub(crate) type Switch = Arc<dyn Fn(bool) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The ids of the tasks that ran, in order.
type Ran = Arc<Mutex<Vec<String>>>;

/// First, then two side by side, then the one in which the trouble begins, then a last one. Each writes more than fits
/// into the pages that a database has.
fn graph(saver: impl Checkpointer, ran: &Ran, switch: Option<Switch>) -> CompiledStateGraph<Notes> {
    let switch = Arc::new((AtomicBool::new(false), switch));
    let node = |name: &'static str| {
        let (ran, switch) = (ran.clone(), switch.clone());
        move |_: Notes, cx: Context| {
            let (ran, switch) = (ran.clone(), switch.clone());
            async move {
                ran.lock().unwrap().push(cx.task_id().to_string());
                if let (has_begun, Some(switch)) = &*switch
                    && name == "breaks"
                    && !has_begun.swap(true, Ordering::Relaxed)
                {
                    switch(true).await;
                }
                Notes::update().log([format!("{name} {}", "x".repeat(20_000))])
            }
        }
    };
    let mut graph = StateGraph::<Notes>::new();
    graph
        .add_node("first", node("first"))
        .add_node("left", node("left"))
        .add_node("right", node("right"))
        .add_node("breaks", node("breaks"))
        .add_node("last", node("last"))
        .add_edge(START, "first")
        .add_edge("first", "left")
        .add_edge("first", "right")
        .add_edge(["left", "right"], "breaks")
        .add_edge("breaks", "last");
    graph.checkpointer(saver).compile().unwrap()
}

/// The history of a thread: what its states say, newest first.
async fn history(app: &CompiledStateGraph<Notes>) -> Vec<String> {
    let name = |entry: &String| entry.split(' ').next().unwrap_or_default().to_owned();
    let all = app.thread("t").history().await.unwrap();
    all.iter().map(|seen| seen.state.log.iter().map(name).collect::<Vec<_>>().join(" ")).collect()
}

async fn run(app: &CompiledStateGraph<Notes>, durability: Durability) -> Result<(), Error> {
    app.invoke(Notes::update().log(["in"])).thread("t").durability(durability).await.map(drop)
}

/// Plays the trouble, and looks at what is left through a connection of its own.
pub(crate) async fn check<C: Checkpointer>(
    saver: impl Checkpointer,
    fresh: impl AsyncFn() -> C,
    switch: Switch,
    words: &str,
    durability: Durability,
) {
    let undisturbed = graph(MemorySaver::new(), &Ran::default(), None);
    run(&undisturbed, durability).await.unwrap();
    let undisturbed = history(&undisturbed).await;

    let ran = Ran::default();
    let app = graph(saver, &ran, Some(switch.clone()));
    let error = run(&app, durability).await.unwrap_err();
    assert!(error.to_string().contains(words), "{durability:?}: {error}");
    switch(false).await;

    let saver = fresh().await;
    let saved = saver.list("t", "", &ListQuery::new()).await.unwrap();
    let done: HashSet<String> =
        saved.iter().flat_map(|saved| saved.writes()).map(|task| task.task().to_string()).collect();
    let left = history(&graph(saver, &ran, None)).await;
    assert!(undisturbed.ends_with(&left), "{durability:?}: {left:?}");
    match durability {
        Durability::Exit => assert!(left.is_empty(), "{left:?}"),
        Durability::Sync => assert!(left.len() >= 2 && done.len() >= 3, "{left:?}, {done:?}"),
        // Several saves may have been under way.
        Durability::Async => {}
    }

    let before = ran.lock().unwrap().len();
    match left.len() {
        0 => run(&app, durability).await.unwrap(),
        _ => app.invoke(GoOn).thread("t").durability(durability).await.map(drop).unwrap(),
    }
    let again: Vec<String> = ran.lock().unwrap().split_off(before);
    assert!(again.iter().all(|task| !done.contains(task)), "{durability:?}: {again:?} of {done:?}");
    assert_eq!(history(&app).await, undisturbed, "{durability:?}");
    assert_eq!(history(&graph(fresh().await, &ran, None)).await, undisturbed, "{durability:?}");
}

mod sqlite {
    use std::fs;
    use std::path::{Path, PathBuf};

    use superstep::Durability;
    use superstep_sqlite::SqliteSaver;

    use super::*;

    const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trouble").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    async fn plays(name: &str, durability: Durability, switch: impl Fn(&SqliteSaver) -> Switch, words: &str) {
        let file = folder(&format!("{name}-{durability:?}")).join("agents.db");
        let saver = SqliteSaver::open(&file).unwrap();
        let fresh = async || {
            let sound: String = rusqlite::Connection::open(&file)
                .and_then(|other| other.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
                .unwrap();
            assert_eq!(sound, "ok");
            SqliteSaver::open(&file).unwrap()
        };
        check(saver.clone(), fresh, switch(&saver), words, durability).await;
    }

    /// Statements on the connection that writes, for the trouble and for its end.
    fn by_statements(begin: &'static str, end: &'static str) -> impl Fn(&SqliteSaver) -> Switch {
        move |saver: &SqliteSaver| {
            let database = saver.database().clone();
            Arc::new(move |begins| {
                let database = database.clone();
                Box::pin(async move { database.on_writer(if begins { begin } else { end }).await.unwrap() })
            })
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_disk_ends_the_run_and_nothing_else() {
        let switch = by_statements("PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000");
        for durability in ALL {
            plays("full", durability, &switch, "has no space left; free some on its disk").await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_database_that_became_read_only_ends_the_run_and_nothing_else() {
        let switch = by_statements("PRAGMA query_only = ON", "PRAGMA query_only = OFF");
        for durability in ALL {
            plays("read-only", durability, &switch, "cannot be written to; check the permissions").await;
        }
    }

    /// SQLite goes on with a file that has no name any more: the run ended well, and all of it was nowhere.
    #[cfg(unix)]
    #[tokio::test(flavor = "multi_thread")]
    async fn a_folder_that_vanished_ends_the_run_and_nothing_else() {
        for durability in ALL {
            let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trouble").join(format!("gone-{durability:?}"));
            let elsewhere = here.with_extension("elsewhere");
            let _ = fs::remove_dir_all(&elsewhere);
            let switch: Switch = Arc::new(move |begins| {
                let (from, to) = if begins { (&here, &elsewhere) } else { (&elsewhere, &here) };
                fs::rename(from, to).unwrap();
                Box::pin(async {})
            });
            plays("gone", durability, |_| switch.clone(), "was moved or removed while it was open").await;
        }
    }
}
