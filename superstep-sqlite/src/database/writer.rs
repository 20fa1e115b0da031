//! The thread that writes, and group commit.
//!
//! All jobs that wait go into one transaction, each in a savepoint of its own; then there is one commit, and then the
//! answers. While a commit waits for the disk the next group gathers, so more writers make larger groups.
//!
//! Two threads that wake each other take as long as a commit. So a job that comes alone, and that its sender waits for,
//! is done on the sender's thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use superstep_storage::DatabaseError;

use super::job::{Job, caught};
use super::open::cannot_start;
use super::place::Place;
use crate::database::InDatabase;
use crate::sql::database as sql;

/// Whether a write must be on the disk before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Synced {
    /// It is there after a crash of this process, but a crash of the machine may take it back, and all later ones.
    No,
    /// It is there after a crash of the machine too.
    Yes,
}

pub(super) struct Writer {
    messages: Sender<Message>,
    thread: Mutex<Option<JoinHandle<Result<(), DatabaseError>>>>,
    shared: Arc<Shared>,
}

/// What the writer's thread shares with those who do their jobs themselves.
struct Shared {
    /// None when the database is closed.
    connection: Mutex<Option<WriteConnection>>,
    /// How many messages were sent and are not dealt with.
    waiting: AtomicUsize,
    /// Whether the last group was a single job.
    is_quiet: AtomicBool,
}

enum Message {
    Write(Synced, Box<dyn Job>),
    Read(Box<dyn Job>),
    Close,
}

impl Writer {
    /// `place` is none if the database is in memory.
    pub(super) fn start(
        connection: Connection,
        database: &Arc<str>,
        place: Option<Place>,
    ) -> Result<Self, DatabaseError> {
        let (messages, inbox) = mpsc::channel();
        let connection = WriteConnection { connection, database: Arc::clone(database), place, synced: Synced::Yes };
        let (connection, waiting, is_quiet) =
            (Mutex::new(Some(connection)), AtomicUsize::new(0), AtomicBool::new(true));
        let shared = Arc::new(Shared { connection, waiting, is_quiet });
        let thread = thread::Builder::new().name("superstep-sqlite".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.work(&inbox)
        });
        let thread = thread.map_err(|error| cannot_start(database, error))?;
        Ok(Self { messages, thread: Mutex::new(Some(thread)), shared })
    }

    /// Whether somebody else writes or waits.
    pub(super) fn is_busy(&self) -> bool {
        self.shared.free_connection().is_none()
    }

    /// Does it on this thread, if nobody else writes or waits; or gives back what it works with.
    pub(super) fn write_inline<W, T, E: From<DatabaseError>>(
        &self,
        synced: Synced,
        with: W,
        job: impl FnOnce(&Connection, W) -> Result<T, E>,
    ) -> Result<Result<T, E>, W> {
        match self.shared.free_connection().as_deref_mut() {
            Some(Some(connection)) => Ok(connection.write_alone(synced, |connection| job(connection, with))),
            _ => Err(with),
        }
    }

    /// Reads on this thread, if nobody else writes or waits; or gives back what the job works with.
    pub(super) fn read_inline<W, T, E: From<DatabaseError>>(
        &self,
        with: W,
        job: impl FnOnce(&Connection, W) -> Result<T, E>,
    ) -> Result<Result<T, E>, W> {
        match self.shared.free_connection().as_deref_mut() {
            Some(Some(connection)) => Ok(caught(&connection.database, || job(&connection.connection, with))),
            _ => Err(with),
        }
    }

    pub(super) fn write(&self, synced: Synced, job: Box<dyn Job>) {
        self.send(Message::Write(synced, job));
    }

    pub(super) fn read(&self, job: Box<dyn Job>) {
        self.send(Message::Read(job));
    }

    /// Does what was sent before, and ends the thread. Whoever calls it second waits for the first.
    pub(super) fn close(&self) -> Result<(), DatabaseError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = thread.take() else { return Ok(()) };
        self.send(Message::Close);
        if thread.thread().id() == thread::current().id() {
            // A job held the last clone of the database: its thread cannot wait for itself.
            return Ok(());
        }
        thread.join().expect("jobs that panic are caught")
    }

    fn send(&self, message: Message) {
        self.shared.waiting.fetch_add(1, Ordering::AcqRel);
        // If the thread has ended, the job is dropped here, and that is its answer.
        let _ = self.messages.send(message);
    }
}

impl Shared {
    /// The connection, if nobody else writes or waits.
    fn free_connection(&self) -> Option<MutexGuard<'_, Option<WriteConnection>>> {
        if self.waiting.load(Ordering::Acquire) > 0 || !self.is_quiet.load(Ordering::Acquire) {
            return None;
        }
        match self.connection.try_lock() {
            Ok(connection) => Some(connection),
            Err(TryLockError::Poisoned(connection)) => Some(connection.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn work(&self, inbox: &Receiver<Message>) -> Result<(), DatabaseError> {
        while let Ok(first) = inbox.recv() {
            let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(connection) = &mut *slot else { return Ok(()) };
            let (mut group, mut answers, mut received) = (Group::default(), Answers::default(), 0);
            for message in std::iter::once(first).chain(inbox.try_iter()) {
                received += 1;
                match message {
                    Message::Write(synced, job) => group.add(synced, job),
                    Message::Read(job) => {
                        connection.commit(&mut group, &mut answers);
                        connection.read(job, &mut answers);
                    }
                    Message::Close => {
                        connection.commit(&mut group, &mut answers);
                        answers.send();
                        return slot.take().map_or(Ok(()), WriteConnection::close);
                    }
                }
            }
            self.is_quiet.store(group.jobs.len() < 2, Ordering::Release);
            connection.commit(&mut group, &mut answers);
            drop(slot);
            self.waiting.fetch_sub(received, Ordering::AcqRel);
            // Who has an answer finds the connection free.
            answers.send();
        }
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        connection.map_or(Ok(()), WriteConnection::close)
    }
}

/// Jobs that were done, and how their transactions ended.
#[derive(Default)]
struct Answers(Vec<(Box<dyn Job>, Option<DatabaseError>)>);

impl Answers {
    fn send(self) {
        self.0.into_iter().for_each(|(job, error)| job.answer(error.as_ref().map_or(Ok(()), Err)));
    }
}

/// The connection that writes.
struct WriteConnection {
    connection: Connection,
    database: Arc<str>,
    place: Option<Place>,
    /// How commits are made at present.
    synced: Synced,
}

impl WriteConnection {
    /// A transaction of one job.
    fn write_alone<T, E: From<DatabaseError>>(
        &mut self,
        synced: Synced,
        job: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.begin(synced)?;
        let result = caught(&self.database, || job(&self.connection));
        let fate = self.end(result.is_ok());
        // If it failed, that says more than how its transaction ended.
        let value = result?;
        fate?;
        Ok(value)
    }

    fn commit(&mut self, group: &mut Group, answers: &mut Answers) {
        let Group { mut jobs, synced } = std::mem::take(group);
        while !jobs.is_empty() {
            match self.begin(synced) {
                Ok(()) => self.run_and_commit(&mut jobs, answers),
                Err(error) => answers.0.extend(jobs.drain(..).map(|job| (job, Some(error.clone())))),
            }
        }
    }

    /// One transaction of as many jobs as it survives.
    fn run_and_commit(&mut self, jobs: &mut VecDeque<Box<dyn Job>>, answers: &mut Answers) {
        let is_alone = jobs.len() == 1;
        let mut done = Vec::with_capacity(jobs.len());
        let mut any_succeeded = false;
        while let Some(mut job) = jobs.pop_front() {
            match if is_alone { Ok(job.run(&self.connection)) } else { self.run_in_savepoint(&mut *job) } {
                Ok(has_succeeded) => {
                    any_succeeded |= has_succeeded;
                    done.push(job);
                }
                Err(error) => {
                    // Nobody knows what a broken savepoint holds: all of it goes.
                    let _ = self.execute(sql::ROLLBACK);
                    answers.0.push((job, Some(error)));
                }
            }
            // Some failures, a full disk for one, make SQLite take back the whole transaction.
            if self.connection.is_autocommit() {
                break;
            }
        }
        let error = self.end(any_succeeded).err();
        answers.0.extend(done.into_iter().map(|job| (job, error.clone())));
    }

    fn run_in_savepoint(&self, job: &mut dyn Job) -> Result<bool, DatabaseError> {
        self.execute(sql::BEGIN_JOB)?;
        let has_succeeded = job.run(&self.connection);
        if self.connection.is_autocommit() {
            return Ok(has_succeeded);
        }
        if !has_succeeded {
            self.execute(sql::UNDO_JOB)?;
        }
        self.execute(sql::KEEP_JOB)?;
        Ok(has_succeeded)
    }

    fn begin(&mut self, synced: Synced) -> Result<(), DatabaseError> {
        if let Some(place) = &self.place {
            place.check(&self.database)?;
        }
        if synced != self.synced {
            let pragma = if synced == Synced::Yes { sql::SYNC_EACH_COMMIT } else { sql::SYNC_LATER };
            self.connection.execute_batch(pragma).in_database(&self.connection)?;
            self.synced = synced;
        }
        self.execute(sql::BEGIN_WRITE)
    }

    fn end(&self, any_succeeded: bool) -> Result<(), DatabaseError> {
        if self.connection.is_autocommit() {
            return Err(DatabaseError::RolledBack { database: self.database.to_string() });
        }
        if !any_succeeded {
            return self.execute(sql::ROLLBACK);
        }
        self.execute(sql::COMMIT).inspect_err(|_| {
            // It fails if the failed commit has rolled back already.
            let _ = self.execute(sql::ROLLBACK);
        })
    }

    /// Between transactions, so that it sees nothing that is not committed.
    fn read(&self, mut job: Box<dyn Job>, answers: &mut Answers) {
        job.run(&self.connection);
        answers.0.push((job, None));
    }

    fn close(self) -> Result<(), DatabaseError> {
        let emptied = self.connection.query_row(sql::EMPTY_LOG, [], |_| Ok(())).in_database(&self.connection);
        let closed =
            self.connection.close().map_err(|(connection, error)| Err::<(), _>(error).in_database(&connection));
        emptied.and(closed.or_else(|error| error))
    }

    fn execute(&self, sql: &str) -> Result<(), DatabaseError> {
        let run = || self.connection.prepare_cached(sql)?.execute([]).map(drop);
        run().in_database(&self.connection)
    }
}

/// Jobs for one transaction, in the order in which they came.
struct Group {
    jobs: VecDeque<Box<dyn Job>>,
    /// As the strictest of them wants it.
    synced: Synced,
}

impl Default for Group {
    fn default() -> Self {
        Self { jobs: VecDeque::new(), synced: Synced::No }
    }
}

impl Group {
    fn add(&mut self, synced: Synced, job: Box<dyn Job>) {
        self.synced = self.synced.max(synced);
        self.jobs.push_back(job);
    }
}
