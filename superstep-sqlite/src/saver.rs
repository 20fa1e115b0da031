//! Checkpoints in SQLite.
//!
//! A step is one row, which holds what its tasks wrote; rows of their own are for what is saved before the step ends. Each
//! write checks the thread's epoch and the head of the namespace in its own transaction, so a process that was left behind
//! changes nothing.

mod housekeeping;
mod read;
mod removal;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use rusqlite::Connection;
use superstep::checkpoint::backend::check_name;
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, Claim, Deletion, Epoch, Lease, ListQuery, Prune,
    SavedCheckpoint, Swept, TaskRecord,
};
use superstep_storage::rows::{KnownShapes, OutlineInterval, RowCodec, micros};
use superstep_storage::{DatabaseError, Seal};

use crate::database::{InDatabase, SqliteDatabase, Synced};
use crate::sql::checkpoints as sql;

/// Keeps checkpoints in a SQLite database; clones share it.
///
/// A save is answered when it is on the disk. Saves of many threads that come at the same time share one sync.
/// Several processes may use one file: whoever claims a thread last has it.
///
/// ```
/// use superstep::{AgentState, EchoAgent, Message, StateGraph, START};
/// use superstep_sqlite::SqliteSaver;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let file = std::env::temp_dir().join(format!("superstep-saver-{}.db", std::process::id()));
/// let echo = |saver: SqliteSaver| {
///     StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").checkpointer(saver).compile()
/// };
/// let app = echo(SqliteSaver::open(&file)?)?;
/// app.invoke(AgentState { messages: vec![Message::user("one")] }).thread("t").await?;
/// drop(app);
///
/// let app = echo(SqliteSaver::open(&file)?)?;
/// let out = app.invoke(AgentState { messages: vec![Message::user("two")] }).thread("t").await?;
/// assert_eq!(out.state.messages.len(), 4);
/// # drop(app);
/// # std::fs::remove_file(&file)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteSaver {
    database: SqliteDatabase,
    settings: Settings,
    shapes: KnownShapes,
}

impl SqliteSaver {
    /// Keeps them in this database.
    pub fn new(database: &SqliteDatabase) -> Self {
        Self { database: database.clone(), settings: Settings::default(), shapes: KnownShapes::default() }
    }

    /// Keeps them in this file, which is created if it is not there.
    ///
    /// # Errors
    /// As [`SqliteDatabase::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Ok(Self::new(&SqliteDatabase::open(path)?))
    }

    /// Keeps them in memory, in the form they would have in a file.
    ///
    /// # Errors
    /// If SQLite cannot be started.
    pub fn memory() -> Result<Self, DatabaseError> {
        Ok(Self::new(&SqliteDatabase::memory()?))
    }

    /// How values are sealed: compressed or encrypted.
    #[must_use]
    pub fn seal(self, seal: Seal) -> Self {
        // Shapes that were added before are sealed otherwise.
        Self { settings: Settings { seal, ..self.settings }, shapes: KnownShapes::default(), ..self }
    }

    /// Forgets threads that were neither claimed nor written to for so long. They are gone at once;
    /// [`sweep`](Checkpointer::sweep) frees their space.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { settings: Settings { ttl: Some(ttl), ..self.settings }, ..self }
    }

    /// Makes outlines after so many rows, of so many pieces: short sequences of calls reach them too.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub fn outlines(self, every: i64, many: usize) -> Self {
        let interval = OutlineInterval { every, many, many_long: many };
        Self { settings: Settings { interval, ..self.settings }, ..self }
    }

    /// How many rows of checkpoints and pending writes were read so far.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn rows_read(&self) -> u64 {
        self.settings.rows_read.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The database, for stores and caches in the same file, and to close it.
    pub fn database(&self) -> &SqliteDatabase {
        &self.database
    }

    /// A save is answered when it is on the disk.
    async fn save<W: Send + 'static>(
        &self,
        lease: Lease<'_>,
        mut with: W,
        job: fn(&Work<'_>, Lease<'_>, W) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        if lease.is_awaited {
            let inline = |connection: &Connection, with| job(&self.settings.on(connection), lease, with);
            with = match self.database.write_inline(Synced::Yes, with, inline) {
                Ok(result) => return result,
                Err(with) => with,
            };
        }
        let (thread, namespace, epoch) = (lease.thread.to_owned(), lease.namespace.to_owned(), lease.epoch);
        let settings = self.settings.clone();
        let job =
            move |connection: &Connection| job(&settings.on(connection), Lease::new(&thread, &namespace, epoch), with);
        self.database.write(Synced::Yes, job).await
    }

    /// The epoch of a new claim, and namespaces of an expired thread that belong to nobody now.
    async fn take_over(&self, thread: &str) -> Result<(Epoch, Vec<i64>), CheckpointError> {
        // A claim that a crash of the machine takes back has lost all who could be fenced by it.
        let inline = |connection: &Connection, ()| self.settings.on(connection).claim(thread);
        if let Ok(claimed) = self.database.write_inline(Synced::No, (), inline) {
            return claimed;
        }
        let (thread, with) = (thread.to_owned(), self.settings.clone());
        self.database.write(Synced::No, move |connection| with.on(connection).claim(&thread)).await
    }

    /// The head of a namespace, and a checkpoint, for whoever does nothing before.
    async fn look_up(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<(Option<CheckpointId>, Option<SavedCheckpoint>), CheckpointError> {
        let inline = |connection: &Connection, ()| self.settings.on(connection).get(thread, namespace, checkpoint);
        if let Ok(found) = self.database.read_inline((), inline) {
            return found;
        }
        let (thread, namespace) = (thread.to_owned(), namespace.to_owned());
        self.read(move |work| work.get(&thread, &namespace, checkpoint)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Work<'_>) -> Result<T, CheckpointError> + Send + 'static,
    ) -> Result<T, CheckpointError> {
        let with = self.settings.clone();
        self.database.read(move |connection| job(&with.on(connection))).await
    }

    /// Runs housekeeping in a transaction of its own.
    async fn change<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Work<'_>) -> Result<T, CheckpointError> + Send + 'static,
    ) -> Result<T, CheckpointError> {
        let with = self.settings.clone();
        self.database.write(Synced::Yes, move |connection| job(&with.on(connection))).await
    }

    /// Removes what namespaces hold that nobody has any more, beside others who write.
    async fn clear(&self, spaces: Vec<i64>) -> Result<usize, CheckpointError> {
        let mut cleared = 0;
        for space in spaces {
            cleared += self.until_none(move |work| work.clear_some(space)).await?;
        }
        Ok(cleared)
    }

    /// Runs housekeeping again and again, each time in a transaction of its own, until it finds nothing more to do. It
    /// says how much each has done, and so does this.
    async fn until_none(
        &self,
        some: impl Fn(&Work<'_>) -> Result<usize, CheckpointError> + Clone + Send + 'static,
    ) -> Result<usize, CheckpointError> {
        let mut done = 0;
        loop {
            match self.change(some.clone()).await? {
                0 => return Ok(done),
                some => done += some,
            }
        }
    }

    /// Removes what belongs to no thread, and says how many rows that were.
    async fn remove_orphans(&self) -> Result<usize, CheckpointError> {
        let mut removed = self.until_none(|work| work.remove_some(sql::ORPHANED_SPACES)).await?;
        let lost = self.read(|work| work.lost_spaces()).await?;
        removed += self.clear(lost).await?;
        removed += self.until_none(|work| work.remove_some(sql::ORPHANED_PENDING)).await?;
        Ok(removed + self.until_none(|work| work.remove_some(sql::ORPHANED_RUNS)).await?)
    }
}

/// What a job takes along.
#[derive(Debug, Clone, Default)]
struct Settings {
    seal: Seal,
    ttl: Option<Duration>,
    interval: OutlineInterval,
    rows_read: Arc<AtomicU64>,
}

impl Settings {
    fn on<'a>(&'a self, connection: &'a Connection) -> Work<'a> {
        let Settings { seal, interval, rows_read, .. } = self;
        Work { connection, seal, cutoff: self.cutoff(), interval: *interval, rows_read }
    }

    /// Threads that were used last at this moment or before have expired.
    fn cutoff(&self) -> Option<i64> {
        self.ttl.map(|ttl| micros(SystemTime::now().checked_sub(ttl).unwrap_or(SystemTime::UNIX_EPOCH)))
    }
}

/// What a job works with.
struct Work<'a> {
    connection: &'a Connection,
    seal: &'a Seal,
    cutoff: Option<i64>,
    interval: OutlineInterval,
    rows_read: &'a AtomicU64,
}

impl Work<'_> {
    fn codec<'b>(&'b self, thread: &'b str, namespace: &'b str) -> RowCodec<'b> {
        RowCodec { seal: self.seal, thread, namespace }
    }

    /// Says what a failed statement means for the database.
    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, CheckpointError> {
        Ok(result.in_database(self.connection)?)
    }
}

#[async_trait]
impl Checkpointer for SqliteSaver {
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError> {
        check_name(thread)?;
        let (epoch, expired) = self.take_over(thread).await?;
        // Whoever writes after the claim has fenced it: what is read here is what it may go on from, or it never will.
        let (head, found) = self.look_up(thread, namespace, checkpoint).await?;
        self.clear(expired).await?;
        Ok(Claim::new(epoch, head, found))
    }

    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        let codec = RowCodec { seal: &self.settings.seal, thread: lease.thread, namespace: lease.namespace };
        let row = Box::new(codec.row(&checkpoint, &self.shapes)?);
        drop(checkpoint);
        let shape = row.new_shape();
        self.save(lease, row, |work, lease, row| work.put(lease, &row)).await?;
        self.shapes.add(shape);
        Ok(())
    }

    async fn put_writes(
        &self,
        lease: Lease<'_>,
        checkpoint: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        let codec = RowCodec { seal: &self.settings.seal, thread: lease.thread, namespace: lease.namespace };
        let row = (codec.pending_row(checkpoint, &task)?, task.run().map(ToOwned::to_owned));
        self.save(lease, row, |work, lease, (row, run)| work.put_writes(lease, &row, run.as_deref())).await
    }

    fn keeps_order(&self) -> bool {
        true
    }

    async fn get(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Option<SavedCheckpoint>, CheckpointError> {
        let (thread, namespace) = (thread.to_owned(), namespace.to_owned());
        self.read(move |work| Ok(work.get(&thread, &namespace, checkpoint)?.1)).await
    }

    async fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        let (thread, namespace, query) = (thread.to_owned(), namespace.to_owned(), query.clone());
        self.read(move |work| work.list(&thread, &namespace, &query)).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        let thread = thread.to_owned();
        self.read(move |work| work.namespaces(&thread)).await
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        let after = after.map(ToOwned::to_owned);
        self.read(move |work| work.threads(after.as_deref(), limit)).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        let thread = thread.to_owned();
        let spaces = self.change(move |work| work.forget(&thread)).await?;
        self.clear(spaces).await.map(drop)
    }

    async fn delete_checkpoints(
        &self,
        thread: &str,
        namespace: &str,
        deletion: &Deletion,
    ) -> Result<usize, CheckpointError> {
        let (thread, namespace, deletion) = (thread.to_owned(), namespace.to_owned(), deletion.clone());
        self.change(move |work| work.delete(&thread, &namespace, &deletion)).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        check_name(to)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        let expired = self.change(move |work| work.copy(&from, &to)).await?;
        self.clear(expired).await.map(drop)
    }

    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        let (thread, prune) = (thread.to_owned(), *prune);
        self.until_none(move |work| work.prune_some(&thread, &prune)).await
    }

    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        let run = run.to_owned();
        let of_run = run.clone();
        let mut forgotten = 0;
        for (thread, space) in self.read(move |work| work.spaces_of_run(&of_run)).await? {
            let run = run.clone();
            forgotten += self.until_none(move |work| work.forget_some_of_run(&thread, space, &run)).await?;
        }
        Ok(forgotten)
    }

    async fn sweep(&self) -> Result<Swept, CheckpointError> {
        let mut expired = 0;
        for thread in self.read(|work| work.expired()).await? {
            // One that was used meanwhile stays; a claim that was never used was none.
            let spaces = self.change(move |work| work.forget_expired(&thread)).await?;
            expired += usize::from(!spaces.is_empty());
            self.clear(spaces).await?;
        }
        if self.settings.ttl.is_none() {
            self.until_none(|work| work.forget_idle()).await?;
        }
        Ok(Swept::new(expired, self.remove_orphans().await?))
    }
}
