//! Checkpoints in PostgreSQL.
//!
//! A step is one statement: it checks the thread's epoch and the head of the namespace while it holds their rows, so a
//! process that was left behind changes nothing, and nothing is asked before. What is rare has a transaction.

mod checked;
mod copy;
mod housekeeping;
mod known_runs;
mod write_queue;
mod outline;
mod read;
mod removal;
mod work;
mod write;

use std::error::Error as _;
use std::time::Duration;

use async_trait::async_trait;
use superstep::checkpoint::backend::check_name;
use superstep::{
    CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, Claim, Deletion, Lease, ListQuery, Prune,
    SavedCheckpoint, Swept, TaskRecord,
};
use superstep_storage::rows::{KnownShapes, OutlineInterval, RowCodec};
use superstep_storage::{DatabaseError, Seal};

use self::known_runs::KnownRuns;
use self::write_queue::{Save, WriteQueues};
use crate::database::PostgresDatabase;

/// Keeps checkpoints in a PostgreSQL database; clones share it.
///
/// A save is one round trip, and is answered when it is committed. Many processes may use one schema: whoever claims a
/// thread last has it. If the connection is lost in the middle, or nothing comes over it for
/// [too long](crate::PostgresBuilder::answer_timeout), the same is tried once more on another one.
///
/// ```no_run
/// use superstep::{AgentState, EchoAgent, Message, StateGraph, START};
/// use superstep_postgres::{PostgresDatabase, PostgresSaver};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let database = PostgresDatabase::connect("postgres://agent:secret@db.example.com/agents").await?;
/// let app = StateGraph::<AgentState>::new()
///     .add_node("echo", EchoAgent)
///     .add_edge(START, "echo")
///     .checkpointer(PostgresSaver::new(&database))
///     .compile()?;
/// let out = app.invoke(AgentState { messages: vec![Message::user("one")] }).thread("t").await?;
/// assert_eq!(out.state.messages.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PostgresSaver {
    database: PostgresDatabase,
    seal: Seal,
    /// In microseconds.
    ttl: Option<i64>,
    shapes: KnownShapes,
    runs: KnownRuns,
    queues: WriteQueues,
    interval: OutlineInterval,
}

/// A row takes more space here than elsewhere, so long values are kept twice only if a thread has very many.
const INTERVAL: OutlineInterval = OutlineInterval { every: 64, many: 64, many_long: 1024 };

/// Does it once more, on a new connection, if the connection was lost: what is done twice has the same outcome.
macro_rules! again_if_lost {
    ($saver:ident.$attempt:ident($($given:expr),*)) => {
        match $saver.$attempt($($given),*).await {
            Err(error) if is_lost(&error) => {
                $saver.database.renew();
                $saver.$attempt($($given),*).await
            }
            done => done,
        }
    };
}

impl PostgresSaver {
    /// Keeps them in this database.
    pub fn new(database: &PostgresDatabase) -> Self {
        Self {
            database: database.clone(),
            seal: Seal::new(),
            ttl: None,
            shapes: KnownShapes::default(),
            runs: KnownRuns::default(),
            queues: WriteQueues::default(),
            interval: INTERVAL,
        }
    }

    /// How values are sealed: compressed or encrypted.
    #[must_use]
    pub fn seal(self, seal: Seal) -> Self {
        // Shapes that were added before are sealed otherwise.
        Self { seal, shapes: KnownShapes::default(), ..self }
    }

    /// Forgets threads that were neither claimed nor written to for so long, by the clock of the database. They are gone
    /// at once; [`sweep`](Checkpointer::sweep) frees their space.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        /// The calendar of the database does not reach back much further.
        const LONGEST: Duration = Duration::from_hours(24 * 365 * 1000);
        Self { ttl: Some(ttl.min(LONGEST).as_micros() as i64), ..self }
    }

    /// Makes outlines after so many rows, of so many pieces: short sequences of calls reach them too.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub fn outlines(self, every: i64, many: usize) -> Self {
        Self { interval: OutlineInterval { every, many, many_long: many }, ..self }
    }

    /// The database, for stores and caches in the same schema, and to close it.
    pub fn database(&self) -> &PostgresDatabase {
        &self.database
    }

    fn codec<'a>(&'a self, thread: &'a str, namespace: &'a str) -> RowCodec<'a> {
        RowCodec { seal: &self.seal, thread, namespace }
    }
}

use again_if_lost;

/// Whether nobody knows what became of it, because the connection broke or nothing came over it.
fn is_lost(error: &CheckpointError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(DatabaseError::Connection { .. } | DatabaseError::Silent { .. }))
}

/// Nothing has a name that PostgreSQL cannot keep.
fn is_kept(names: &[&str]) -> bool {
    !names.iter().any(|name| name.contains('\0'))
}

fn check(what: &str, name: &str) -> Result<(), CheckpointError> {
    if is_kept(&[name]) {
        return Ok(());
    }
    let shown = name.escape_debug();
    Err(CheckpointError::refused(format!("{what} `{shown}` holds a NUL character; remove it")))
}

/// A thread whose name cannot be kept was never claimed.
fn check_lease(lease: Lease<'_>) -> Result<(), CheckpointError> {
    if !is_kept(&[lease.thread]) {
        lease.check(None)?;
    }
    check("namespace", lease.namespace)
}

#[async_trait]
impl Checkpointer for PostgresSaver {
    async fn claim(
        &self,
        thread: &str,
        namespace: &str,
        checkpoint: Option<CheckpointId>,
    ) -> Result<Claim, CheckpointError> {
        check_name(thread)?;
        check("namespace", namespace)?;
        again_if_lost!(self.claim_once(thread, namespace, checkpoint))
    }

    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Result<(), CheckpointError> {
        check_lease(lease)?;
        check("run", checkpoint.run().unwrap_or_default())?;
        let row = self.codec(lease.thread, lease.namespace).row(&checkpoint, &self.shapes)?;
        drop(checkpoint);
        let shape = row.new_shape();
        write_queue::save(self, lease, Save::Checkpoint(row)).await?;
        self.shapes.add(shape);
        Ok(())
    }

    async fn put_writes(
        &self,
        lease: Lease<'_>,
        checkpoint: CheckpointId,
        task: TaskRecord,
    ) -> Result<(), CheckpointError> {
        check_lease(lease)?;
        check("run", task.run().unwrap_or_default())?;
        let row = self.codec(lease.thread, lease.namespace).pending_row(checkpoint, &task)?;
        write_queue::save(self, lease, Save::Writes(row)).await?;
        self.note_run(lease, checkpoint, task.run()).await
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
        again_if_lost!(self.get_once(thread, namespace, checkpoint))
    }

    async fn list(
        &self,
        thread: &str,
        namespace: &str,
        query: &ListQuery,
    ) -> Result<Vec<SavedCheckpoint>, CheckpointError> {
        again_if_lost!(self.list_once(thread, namespace, query))
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, CheckpointError> {
        again_if_lost!(self.namespaces_once(thread))
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, CheckpointError> {
        again_if_lost!(self.threads_once(after, limit))
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), CheckpointError> {
        self.forget(thread).await
    }

    async fn delete_checkpoints(
        &self,
        thread: &str,
        namespace: &str,
        deletion: &Deletion,
    ) -> Result<usize, CheckpointError> {
        self.delete(thread, namespace, deletion).await
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), CheckpointError> {
        check_name(to)?;
        self.copy(from, to).await
    }

    async fn prune(&self, thread: &str, prune: &Prune) -> Result<usize, CheckpointError> {
        let mut pruned = 0;
        loop {
            match self.prune_some(thread, prune).await? {
                0 => return Ok(pruned),
                some => pruned += some,
            }
        }
    }

    async fn delete_run(&self, run: &str) -> Result<usize, CheckpointError> {
        self.forget_run(run).await
    }

    async fn sweep(&self) -> Result<Swept, CheckpointError> {
        let expired = self.forget_all_expired().await?;
        if self.ttl.is_none() {
            self.forget_idle().await?;
        }
        Ok(Swept::new(expired, self.remove_orphans().await?))
    }
}
