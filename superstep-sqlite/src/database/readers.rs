//! The threads that read, each with a connection of its own.
//!
//! Every read runs in a transaction, so that all its statements see one snapshot.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use superstep_storage::DatabaseError;

use super::job::Job;
use super::open::{self, cannot_start};
use crate::database::InDatabase;
use crate::sql::database as sql;

const MOST_READERS: usize = 4;

pub(super) struct Readers {
    messages: Sender<Message>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

enum Message {
    Read(Box<dyn Job>),
    /// For one of the threads.
    Close,
}

impl Readers {
    pub(super) fn start(path: &Path, database: &Arc<str>) -> Result<Self, DatabaseError> {
        let (messages, inbox) = mpsc::channel();
        let inbox = Arc::new(Mutex::new(inbox));
        let count = thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
        let start = |_| {
            let (inbox, reader) = (Arc::clone(&inbox), ReadThread::new(path, database));
            thread::Builder::new().name("superstep-sqlite-read".to_owned()).spawn(move || reader.work(&inbox))
        };
        let threads = (0..count).map(start).collect::<Result<_, _>>().map_err(|error| cannot_start(database, error))?;
        Ok(Self { messages, threads: Mutex::new(threads) })
    }

    pub(super) fn read(&self, job: Box<dyn Job>) {
        // If the threads have ended, the job is dropped here, and that is its answer.
        let _ = self.messages.send(Message::Read(job));
    }

    /// Does what was sent before, and ends the threads. Whoever calls it second waits for the first.
    pub(super) fn close(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().for_each(|_| {
            let _ = self.messages.send(Message::Close);
        });
        // A job may hold the last clone of the database: its thread cannot wait for itself.
        let others = threads.drain(..).filter(|thread| thread.thread().id() != thread::current().id());
        others.for_each(|thread| thread.join().expect("jobs that panic are caught"));
    }
}

/// What one thread owns.
struct ReadThread {
    path: PathBuf,
    database: Arc<str>,
    /// Opened for the first read.
    connection: Option<Connection>,
}

impl ReadThread {
    fn new(path: &Path, database: &Arc<str>) -> Self {
        Self { path: path.to_owned(), database: Arc::clone(database), connection: None }
    }

    fn work(mut self, inbox: &Mutex<Receiver<Message>>) {
        // The lock is held while waiting: the threads take turns.
        let next = || inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok(Message::Read(mut job)) = next() {
            let fate = self.read(&mut *job);
            job.answer(fate.as_ref().copied());
        }
    }

    fn read(&mut self, job: &mut dyn Job) -> Result<(), DatabaseError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            closed => closed.insert(open::reader(&self.path, &self.database)?),
        };
        let execute = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
        execute(sql::BEGIN_READ).in_database(connection)?;
        job.run(connection);
        execute(sql::ROLLBACK).in_database(connection)
    }
}
