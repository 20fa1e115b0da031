//! A SQLite database: one connection that writes, on its own thread, and some that read.
//!
//! Writes are done in the order in which they were asked for. All that wait are committed together, and none is
//! answered before the commit: what a caller has been told is saved, is saved.

mod inline;
mod job;
mod migrate;
mod open;
mod place;
#[cfg(test)]
pub(crate) mod plan;
mod readers;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread;

use rusqlite::Connection;
use superstep_storage::DatabaseError;
use superstep_storage::database::Component;
use tokio::sync::oneshot;

use self::place::Place;
use self::readers::Readers;
use self::writer::Writer;
use crate::sql;

pub(crate) use self::job::Answer;
pub(crate) use self::writer::Synced;

/// Turns an error of the driver into ours.
pub(crate) trait InDatabase<T> {
    /// Says in which database it went wrong.
    fn in_database(self, connection: &Connection) -> Result<T, DatabaseError>;
}

/// The name of databases that are in no file.
const MEMORY: &str = ":memory:";

/// A SQLite database, in a file or in memory. Clones are the same database.
///
/// One file can hold checkpoints, a store and a cache, beside tables of your own, and several processes can open it at
/// the same time. Its tables are created, or brought up to date, when it is opened.
///
/// It works in any async runtime. When the last clone is dropped, what was begun is finished and the file is closed;
/// that blocks for a moment, [`close`](SqliteDatabase::close) does not.
///
/// ```
/// use superstep_sqlite::SqliteDatabase;
/// use superstep_storage::DatabaseError;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("superstep-doc-{}.db", std::process::id()));
///
/// let database = SqliteDatabase::open(&path)?;
/// database.close().await?;
///
/// let again = SqliteDatabase::open(&path)?;
/// # again.close().await?;
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteDatabase(Arc<Parts>);

struct Parts {
    name: Arc<str>,
    writer: Writer,
    /// None if there is one connection only, because the database is in its memory.
    readers: Option<Readers>,
}

impl SqliteDatabase {
    /// Opens the database in this file, and creates it if there is none. `:memory:` is [`memory`](Self::memory).
    ///
    /// # Errors
    ///
    /// If the folder does not exist, the file cannot be written to or is no SQLite database, or if it was written by a
    /// newer release of superstep.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Self::open_with(path.as_ref(), sql::ALL)
    }

    /// An empty database that is gone when it is closed.
    ///
    /// ```
    /// let database = superstep_sqlite::SqliteDatabase::memory()?;
    /// # Ok::<(), superstep_storage::DatabaseError>(())
    /// ```
    pub fn memory() -> Result<Self, DatabaseError> {
        Self::memory_with(sql::ALL)
    }

    /// Finishes what was begun and closes the database, for all its clones. The file is complete afterwards: it may be
    /// copied or opened again.
    ///
    /// ```
    /// use superstep_sqlite::SqliteDatabase;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), superstep_storage::DatabaseError> {
    /// let database = SqliteDatabase::memory()?;
    /// database.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(&self) -> Result<(), DatabaseError> {
        let (reply, closed) = oneshot::channel();
        let database = self.clone();
        thread::spawn(move || reply.send(database.0.close()));
        closed.await.unwrap_or(Ok(()))
    }

    /// Runs statements on the connection that writes, between its transactions: tests make its disk full with them.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub async fn on_writer(&self, statements: &'static str) -> Result<(), DatabaseError> {
        let (work, answer) =
            job::new(&self.0.name, move |connection| connection.execute_batch(statements).in_database(connection));
        self.0.writer.read(work);
        answer.await
    }

    /// The same for all clones, and for no other database of this process.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn open_with(path: &Path, components: &[Component]) -> Result<Self, DatabaseError> {
        if path == Path::new(MEMORY) {
            return Self::memory_with(components);
        }
        let path = open::absolute(path)?;
        let name: Arc<str> = path.display().to_string().into();
        let connection = open::writer(&path, &name)?;
        migrate::migrate(&connection, &name, components)?;
        let writer = Writer::start(connection, &name, Some(Place::of(&path, &name)?))?;
        let readers = Some(Readers::start(&path, &name)?);
        Ok(Self(Arc::new(Parts { name, writer, readers })))
    }

    fn memory_with(components: &[Component]) -> Result<Self, DatabaseError> {
        let name: Arc<str> = MEMORY.into();
        let connection = open::memory(&name)?;
        migrate::migrate(&connection, &name, components)?;
        let writer = Writer::start(connection, &name, None)?;
        Ok(Self(Arc::new(Parts { name, writer, readers: None })))
    }

    /// Runs `job` in a transaction; the answer comes when it is committed. The job is queued now, whether or not the
    /// answer is polled, and is done even if the answer is dropped.
    pub(crate) fn write<T, E, F>(&self, synced: Synced, job: F) -> Answer<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let (work, answer) = job::new(&self.0.name, job);
        self.0.writer.write(synced, work);
        answer
    }

    /// Runs `job` in a transaction on the thread of the caller, who waits for the answer before anything else; if others write
    /// too, it gives back what the job works with.
    pub(crate) fn write_inline<W, T, E: From<DatabaseError>>(
        &self,
        synced: Synced,
        with: W,
        job: impl FnOnce(&Connection, W) -> Result<T, E>,
    ) -> Result<Result<T, E>, W> {
        self.inline(with, |writer, with| writer.write_inline(synced, with, job))
    }

    /// Reads on the thread of the caller, with one statement that reads little; if others write, it gives back what the job
    /// works with.
    pub(crate) fn read_inline<W, T, E: From<DatabaseError>>(
        &self,
        with: W,
        job: impl FnOnce(&Connection, W) -> Result<T, E>,
    ) -> Result<Result<T, E>, W> {
        self.inline(with, |writer, with| writer.read_inline(with, job))
    }

    fn inline<R, W>(&self, with: W, job: impl FnOnce(&Writer, W) -> Result<R, W>) -> Result<R, W> {
        // Asked before a worker is blocked: that hands its other tasks to another thread, whatever comes of the job.
        if self.0.writer.is_busy() {
            return Err(with);
        }
        inline::run(with, |with| job(&self.0.writer, with))
    }

    /// Runs `job` on a snapshot that has all writes that were answered before this call. It must not write.
    pub(crate) fn read<T, E, F>(&self, job: F) -> Answer<T, E>
    where
        T: Send + 'static,
        E: From<DatabaseError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let (work, answer) = job::new(&self.0.name, job);
        match &self.0.readers {
            Some(readers) => readers.read(work),
            None => self.0.writer.read(work),
        }
        answer
    }
}

impl Parts {
    /// Readers first: the connection that is closed last empties the log, and a reader cannot.
    fn close(&self) -> Result<(), DatabaseError> {
        if let Some(readers) = &self.readers {
            readers.close();
        }
        self.writer.close()
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "a database could not be closed properly");
        }
    }
}

impl std::fmt::Debug for SqliteDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SqliteDatabase").field(&self.0.name).finish()
    }
}
