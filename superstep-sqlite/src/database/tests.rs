//! Jobs of a database, which are no part of the public API: groups, order, snapshots, versions of tables.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::{env, fs, process, thread};

use rusqlite::{Connection, StatementStatus};
use superstep_storage::DatabaseError;
use superstep_storage::database::Component;

use super::{Answer, SqliteDatabase, Synced};
use crate::database::InDatabase;

const CREATE: &str = "CREATE TABLE notes (text TEXT NOT NULL)";
const FIND: &str = "
    SELECT n.text FROM notes n LEFT JOIN notes o ON o.text = n.text AND o.text > ?1 WHERE n.text = ?1 LIMIT ?2
";
const NOTES: Component = Component { name: "notes", scripts: &[CREATE] };
/// With foreign keys on, a child without a parent is found by the commit, not before.
const CHILDREN: Component = Component {
    name: "children",
    scripts: &["CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
                CREATE TABLE parents (id INTEGER PRIMARY KEY)"],
};

#[tokio::test]
async fn a_job_that_fails_or_panics_is_taken_back_alone() {
    let file = File::new();
    let database = file.open();
    let gate = Gate::close(&database);
    let before = add(&database, "before");
    let failed = database.write(Synced::No, |connection| {
        insert(connection, "failed")?;
        connection.execute("no SQL", []).in_database(connection)
    });
    let panicked = database.write(Synced::No, |connection| -> Result<(), DatabaseError> {
        insert(connection, "panicked")?;
        panic!("on purpose")
    });
    let after = add(&database, "after");
    gate.open();

    before.await.unwrap();
    assert!(matches!(failed.await, Err(DatabaseError::Statement { .. })));
    let panicked = panicked.await.unwrap_err().to_string();
    assert!(panicked.ends_with("panicked: on purpose"), "{panicked}");
    after.await.unwrap();
    assert_eq!(notes(&database).await, ["before", "after"]);
}

#[tokio::test]
async fn a_job_that_fails_without_company_is_taken_back() {
    let database = SqliteDatabase::memory_with(&[NOTES]).unwrap();
    let failed = database.write(Synced::Yes, |connection| {
        insert(connection, "failed")?;
        connection.execute("no SQL", []).in_database(connection)
    });
    assert!(failed.await.is_err());
    assert!(notes(&database).await.is_empty());
}

/// The thread that does a job that is waited for.
async fn worker(database: &SqliteDatabase) -> thread::ThreadId {
    let id = |_: &Connection| Ok::<_, DatabaseError>(thread::current().id());
    match database.write_inline(Synced::Yes, (), |connection, ()| id(connection)) {
        Ok(id) => id.unwrap(),
        Err(()) => database.write(Synced::Yes, id).await.unwrap(),
    }
}

/// Two threads that wake each other took as long as a commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_job_that_comes_alone_and_is_waited_for_is_done_inline() {
    let file = File::new();
    let database = file.open();
    assert_eq!(worker(&database).await, thread::current().id(), "under `block_on`");
    let is_inline = async |database: SqliteDatabase| {
        let own = thread::current().id();
        worker(&database).await == own
    };
    let (first, second) = (database.clone(), database.clone());
    assert!(tokio::spawn(async move { is_inline(first).await }).await.unwrap(), "on a worker");
    let local = tokio::task::LocalSet::new();
    assert!(local.run_until(async { is_inline(second).await }).await, "in a set of local tasks");
}

#[tokio::test]
async fn a_runtime_of_one_thread_is_never_blocked() {
    let file = File::new();
    assert_ne!(worker(&file.open()).await, thread::current().id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_waited_for_does_not_pass_those_before_it() {
    let file = File::new();
    let database = file.open();
    let gate = Gate::close(&database);
    let before = add(&database, "before");
    let inline = database.write_inline(Synced::Yes, "awaited", insert);
    let awaited = add(&database, inline.expect_err("others wait"));
    gate.open();
    before.await.unwrap();
    awaited.await.unwrap();
    assert_eq!(notes(&database).await, ["before", "awaited"]);
    assert_ne!(worker(&database).await, thread::current().id(), "who came last had company, and may have again");
    assert_eq!(worker(&database).await, thread::current().id());
}

/// Every save on a busy server handed the tasks of its worker to another thread, and only then asked whether others wrote.
#[test]
fn a_job_that_cannot_be_done_inline_hands_no_worker_over() {
    let file = File::new();
    let database = file.open();
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).on_thread_start(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let runtime = runtime.build().unwrap();
    runtime.block_on(async {
        let gate = Gate::close(&database);
        let busy = database.clone();
        let tried = tokio::spawn(async move {
            let written = busy.write_inline(Synced::Yes, (), |_, ()| Ok::<_, DatabaseError>(()));
            let read = busy.read_inline((), |_, ()| Ok::<_, DatabaseError>(()));
            (written.is_err(), read.is_err())
        });
        assert_eq!(tried.await.unwrap(), (true, true), "others write");
        gate.open();
    });
    // It ends when all its threads have, also those that have just begun.
    drop(runtime);
    assert_eq!(started.load(Ordering::Relaxed), 1, "only the worker");
}

#[tokio::test]
async fn jobs_that_wait_share_one_commit() {
    let file = File::new();
    let database = file.open();
    let gate = Gate::close(&database);
    let answers: Vec<_> = (0..100).map(|number| add(&database, &number.to_string())).collect();
    let commits_before = file.commits();
    gate.open();
    for answer in answers {
        answer.await.unwrap();
    }
    assert_eq!(notes(&database).await.len(), 100);
    // One for the job that was waited for, one for all the others.
    assert_eq!(file.commits() - commits_before, 2);
}

#[tokio::test]
async fn jobs_run_in_the_order_of_their_calls_whoever_is_polled_first() {
    let file = File::new();
    for database in [file.open(), SqliteDatabase::memory_with(&[NOTES]).unwrap()] {
        let first = add(&database, "first");
        let second = add(&database, "second");
        let third = add(&database, "third");
        third.await.unwrap();
        first.await.unwrap();
        second.await.unwrap();
        assert_eq!(notes(&database).await, ["first", "second", "third"]);
    }
}

#[tokio::test]
async fn a_job_goes_on_when_nobody_waits_for_it() {
    let file = File::new();
    let database = file.open();
    drop(add(&database, "dropped"));
    add(&database, "awaited").await.unwrap();
    assert_eq!(notes(&database).await, ["dropped", "awaited"]);
}

#[tokio::test]
async fn a_read_sees_what_was_answered_before_it() {
    let file = File::new();
    for database in [file.open(), SqliteDatabase::memory_with(&[NOTES]).unwrap()] {
        for number in 1..=50 {
            add(&database, "note").await.unwrap();
            assert_eq!(notes(&database).await.len(), number);
        }
    }
}

#[tokio::test]
async fn a_read_that_fails_or_panics_harms_nobody() {
    let file = File::new();
    for database in [file.open(), SqliteDatabase::memory_with(&[NOTES]).unwrap()] {
        for _ in 0..8 {
            let failed: Result<(), _> = database.read(|c| c.execute_batch("no SQL").in_database(c)).await;
            assert!(matches!(failed, Err(DatabaseError::Statement { .. })));
            let panicked: Result<(), DatabaseError> = database.read(|_| panic!("on purpose")).await;
            assert!(matches!(panicked, Err(DatabaseError::Panicked { .. })));
        }
        add(&database, "note").await.unwrap();
        assert_eq!(notes(&database).await, ["note"]);
    }
}

#[tokio::test]
async fn all_statements_of_a_read_see_one_snapshot() {
    let file = File::new();
    let database = file.open();
    let (written, wait) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let read = database.read(move |connection| {
        let before = count(connection)?;
        begun.send(()).expect("the test waits");
        wait.recv().expect("the test sends");
        Ok::<_, DatabaseError>((before, count(connection)?))
    });
    has_begun.recv().unwrap();
    add(&database, "meanwhile").await.unwrap();
    written.send(()).unwrap();
    assert_eq!(read.await.unwrap(), (0, 0));
}

/// SQLite looked at the bound values when it planned, and so planned half of all statements again and again.
#[tokio::test]
async fn a_statement_is_planned_once_whatever_is_bound() {
    let file = File::new();
    for database in [file.open(), SqliteDatabase::memory_with(&[NOTES]).unwrap()] {
        let again = database.read(|connection| {
            let mut statement = connection.prepare_cached(FIND).in_database(connection)?;
            for text in ["one", "two", "three"] {
                statement.exists((text, 7)).in_database(connection)?;
            }
            Ok::<_, DatabaseError>(statement.get_status(StatementStatus::RePrepare))
        });
        assert_eq!(again.await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_group_is_synced_if_one_of_its_jobs_wants_it() {
    const NORMAL: i64 = 1;
    const FULL: i64 = 2;
    let file = File::new();
    let database = file.open();
    let ask = |synced| database.write(synced, |connection| pragma(connection, "PRAGMA synchronous"));
    assert_eq!(ask(Synced::No).await.unwrap(), NORMAL);
    assert_eq!(ask(Synced::Yes).await.unwrap(), FULL);

    let gate = Gate::close(&database);
    let (careless, careful) = (ask(Synced::No), ask(Synced::Yes));
    gate.open();
    assert_eq!((careless.await.unwrap(), careful.await.unwrap()), (FULL, FULL));

    let gate = Gate::close(&database);
    let (careless, as_careless) = (ask(Synced::No), ask(Synced::No));
    gate.open();
    assert_eq!((careless.await.unwrap(), as_careless.await.unwrap()), (NORMAL, NORMAL));
}

#[tokio::test]
async fn a_commit_that_fails_fails_all_its_jobs() {
    let database = SqliteDatabase::memory_with(&[NOTES, CHILDREN]).unwrap();
    let strict = database.read(|c| c.execute_batch("PRAGMA foreign_keys = ON").in_database(c));
    strict.await.unwrap();

    let gate = Gate::close(&database);
    let innocent = add(&database, "innocent");
    let orphan = database.write(Synced::No, |c| c.execute("INSERT INTO children VALUES (7)", []).in_database(c));
    gate.open();
    assert!(matches!(innocent.await, Err(DatabaseError::Statement { .. })));
    assert!(matches!(orphan.await, Err(DatabaseError::Statement { .. })));

    add(&database, "later").await.unwrap();
    assert_eq!(notes(&database).await, ["later"]);
}

#[tokio::test]
async fn a_full_disk_fails_the_group_and_spares_the_jobs_after_it() {
    let file = File::new();
    let database = file.open();
    let gate = Gate::close(&database);
    let before = add(&database, "before");
    let large = database.write(Synced::No, |connection| {
        let pages = pragma(connection, "PRAGMA page_count")?;
        pragma(connection, &format!("PRAGMA max_page_count = {}", pages + 1))?;
        insert(connection, &"large".repeat(100_000))
    });
    let after = database.write(Synced::No, |connection| {
        pragma(connection, "PRAGMA max_page_count = 100000")?;
        insert(connection, "after")
    });
    gate.open();
    assert!(matches!(before.await, Err(DatabaseError::RolledBack { .. })));
    assert!(matches!(large.await, Err(DatabaseError::Full { .. })));
    after.await.unwrap();
    assert_eq!(notes(&database).await, ["after"]);
}

/// Jobs on the thread of the caller are no part of a group.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_job_inline_that_fails_is_taken_back_and_spares_the_next() {
    let database = SqliteDatabase::memory_with(&[NOTES, CHILDREN]).unwrap();
    let inline = |job: fn(&Connection) -> Result<(), DatabaseError>| {
        let done = database.write_inline(Synced::Yes, (), |connection, ()| job(connection));
        done.expect("nobody else writes")
    };
    let failed = inline(|connection| {
        insert(connection, "failed")?;
        connection.execute("no SQL", []).in_database(connection).map(drop)
    });
    assert!(matches!(failed, Err(DatabaseError::Statement { .. })), "{failed:?}");
    let panicked = inline(|connection| {
        insert(connection, "panicked")?;
        panic!("on purpose")
    });
    assert!(panicked.unwrap_err().to_string().ends_with("panicked: on purpose"));
    let full = inline(|connection| {
        let pages = pragma(connection, "PRAGMA page_count")?;
        pragma(connection, &format!("PRAGMA max_page_count = {}", pages + 1))?;
        insert(connection, &"large".repeat(100_000))
    });
    assert!(matches!(full, Err(DatabaseError::Full { .. })), "{full:?}");
    inline(|connection| pragma(connection, "PRAGMA max_page_count = 100000").map(drop)).unwrap();
    let strict = database.read(|c| c.execute_batch("PRAGMA foreign_keys = ON").in_database(c));
    strict.await.unwrap();
    let orphan = inline(|connection| {
        insert(connection, "beside an orphan")?;
        connection.execute("INSERT INTO children VALUES (7)", []).in_database(connection).map(drop)
    });
    assert!(matches!(orphan, Err(DatabaseError::Statement { .. })), "found by the commit: {orphan:?}");
    inline(|connection| insert(connection, "later")).unwrap();
    assert_eq!(notes(&database).await, ["later"]);

    let read = database.read_inline((), |_, ()| -> Result<(), DatabaseError> { panic!("on purpose") });
    assert!(read.expect("nobody writes").unwrap_err().to_string().ends_with("panicked: on purpose"));
    assert_eq!(notes(&database).await, ["later"]);
}

#[tokio::test]
async fn what_was_queued_is_done_before_the_database_closes() {
    let file = File::new();
    let database = file.open();
    let answers: Vec<_> = (0..20).map(|_| add(&database, "note")).collect();
    database.close().await.unwrap();
    for answer in answers {
        answer.await.unwrap();
    }
    assert!(matches!(add(&database, "late").await, Err(DatabaseError::Closed { .. })));
    let late: Result<(), _> = database.read(|_| Ok(())).await;
    assert!(matches!(late, Err(DatabaseError::Closed { .. })));
    assert!(!file.log().exists(), "the log was emptied into the file");
    database.close().await.unwrap();
    assert_eq!(notes(&file.open()).await.len(), 20);
}

#[tokio::test]
async fn dropping_the_last_clone_closes_the_database() {
    let file = File::new();
    for number in 0..3 {
        let database = file.open();
        let clone = database.clone();
        add(&database, "note").await.unwrap();
        drop(database);
        assert_eq!(notes(&clone).await.len(), number + 1);
        drop(clone);
        assert!(!file.log().exists(), "the log was emptied into the file");
    }
}

#[tokio::test]
async fn a_job_may_hold_the_last_clone() {
    let file = File::new();
    for is_write in [true, false] {
        let database = file.open();
        let last = database.clone();
        let (go, wait) = mpsc::channel();
        let job = move |_: &Connection| {
            wait.recv().expect("the test sends");
            drop(last);
            Ok::<_, DatabaseError>(())
        };
        let answer = if is_write { database.write(Synced::No, job) } else { database.read(job) };
        drop(database);
        go.send(()).unwrap();
        answer.await.unwrap();
    }
}

#[test]
fn it_works_without_a_runtime() {
    let database = SqliteDatabase::memory_with(&[NOTES]).unwrap();
    block_on(add(&database, "note")).unwrap();
    block_on(database.close()).unwrap();
}

#[tokio::test]
async fn databases_on_one_file_do_not_clash() {
    const EACH: usize = 50;
    let file = File::new();
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                let database = file.open();
                (0..EACH).for_each(|_| block_on(add(&database, "note")).unwrap());
            });
        }
    });
    assert_eq!(notes(&file.open()).await.len(), 4 * EACH);
}

#[tokio::test]
async fn tables_are_brought_up_to_date_and_keep_their_rows() {
    let file = File::new();
    let database = file.open();
    add(&database, "old").await.unwrap();
    database.close().await.unwrap();

    let dated =
        Component { scripts: &[CREATE, "ALTER TABLE notes ADD COLUMN day TEXT NOT NULL DEFAULT 'monday'"], ..NOTES };
    let database = SqliteDatabase::open_with(&file.path, &[dated]).unwrap();
    let row: Result<(String, String), DatabaseError> =
        database.read(|c| c.query_row("SELECT text, day FROM notes", [], |row| row.try_into()).in_database(c)).await;
    assert_eq!(row.unwrap(), ("old".to_owned(), "monday".to_owned()));
    database.close().await.unwrap();

    let refused = SqliteDatabase::open_with(&file.path, &[NOTES]).unwrap_err();
    let path = file.path.display();
    assert_eq!(
        refused.to_string(),
        format!(
            "the tables of `notes` in database `{path}` have version 2, this release knows up to 1; update superstep"
        )
    );
}

#[tokio::test]
async fn an_update_that_fails_changes_nothing() {
    let file = File::new();
    file.open().close().await.unwrap();
    let broken = Component { scripts: &[CREATE, "DROP TABLE notes", "no SQL"], ..NOTES };
    assert!(SqliteDatabase::open_with(&file.path, &[broken]).is_err());
    assert!(notes(&file.open()).await.is_empty());
}

fn add(database: &SqliteDatabase, text: &str) -> Answer<(), DatabaseError> {
    let text = text.to_owned();
    database.write(Synced::No, move |connection| insert(connection, &text))
}

fn insert(connection: &Connection, text: &str) -> Result<(), DatabaseError> {
    connection.execute("INSERT INTO notes (text) VALUES (?1)", [text]).in_database(connection)?;
    Ok(())
}

fn count(connection: &Connection) -> Result<i64, DatabaseError> {
    pragma(connection, "SELECT count(*) FROM notes")
}

fn pragma(connection: &Connection, sql: &str) -> Result<i64, DatabaseError> {
    connection.query_row(sql, [], |row| row.get(0)).in_database(connection)
}

async fn notes(database: &SqliteDatabase) -> Vec<String> {
    let read = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
        connection.prepare_cached("SELECT text FROM notes ORDER BY rowid")?.query_map([], |row| row.get(0))?.collect()
    };
    database.read(move |connection| read(connection).in_database(connection)).await.unwrap()
}

/// Keeps the writer busy, so that the jobs that come meanwhile are one group.
struct Gate(Sender<()>);

impl Gate {
    fn close(database: &SqliteDatabase) -> Self {
        let (open, wait) = mpsc::channel();
        let (reached, has_reached) = mpsc::channel();
        drop(database.write(Synced::No, move |connection| {
            reached.send(()).expect("the test waits");
            wait.recv().expect("the test sends");
            insert(connection, "gate")?;
            connection.execute("DELETE FROM notes WHERE text = 'gate'", []).in_database(connection)
        }));
        has_reached.recv().unwrap();
        Self(open)
    }

    fn open(self) {
        self.0.send(()).unwrap();
    }
}

/// A database file in a folder of its own.
struct File {
    folder: PathBuf,
    path: PathBuf,
}

impl File {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("superstep-unit-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { path: folder.join("notes.db"), folder }
    }

    fn open(&self) -> SqliteDatabase {
        SqliteDatabase::open_with(&self.path, &[NOTES]).unwrap()
    }

    fn log(&self) -> PathBuf {
        self.folder.join("notes.db-wal")
    }

    /// The frames of the write-ahead log that end a transaction, by the file format of SQLite.
    fn commits(&self) -> usize {
        let log = fs::read(self.log()).unwrap();
        let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
        let frame = 24 + number(8) as usize;
        (32..log.len()).step_by(frame).filter(|&at| number(at + 4) != 0).count()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
