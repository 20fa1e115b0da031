//! Work for a connection's thread, with the answer that someone waits for.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rusqlite::Connection;
use superstep_storage::DatabaseError;
use tokio::sync::oneshot;

/// A [`Work`] whose types are erased: it is run, then answered.
pub(super) trait Job: Send {
    /// Runs it; whether it succeeded.
    fn run(&mut self, connection: &Connection) -> bool;

    /// Gives the answer: its own failure, or else `fate`, which is how the transaction around it ended.
    fn answer(self: Box<Self>, fate: Result<(), &DatabaseError>);
}

/// A job, and what to wait for.
pub(super) fn new<T, E, F>(database: &Arc<str>, job: F) -> (Box<dyn Job>, Answer<T, E>)
where
    T: Send + 'static,
    E: From<DatabaseError> + Send + 'static,
    F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
{
    let (reply, result) = oneshot::channel();
    let work = Work { database: Arc::clone(database), job: Some(job), result: None, reply };
    (Box::new(work), Answer { database: Arc::clone(database), result })
}

/// The result of a job that is done, or will be.
#[must_use = "whether it was done is only known when it is awaited"]
pub(crate) struct Answer<T, E> {
    database: Arc<str>,
    result: oneshot::Receiver<Result<T, E>>,
}

impl<T, E: From<DatabaseError>> Future for Answer<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(cx).map(|result| {
            // A job that a closed database has dropped gives no result.
            result.unwrap_or_else(|_| Err(DatabaseError::Closed { database: self.database.to_string() }.into()))
        })
    }
}

struct Work<T, E, F> {
    database: Arc<str>,
    job: Option<F>,
    /// None until it has run.
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, F> Job for Work<T, E, F>
where
    T: Send,
    E: From<DatabaseError> + Send,
    F: FnOnce(&Connection) -> Result<T, E> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(job) = self.job.take() else { return false };
        self.result.insert(caught(&self.database, || job(connection))).is_ok()
    }

    fn answer(self: Box<Self>, fate: Result<(), &DatabaseError>) {
        let result = match (self.result, fate) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.clone().into()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => return,
        };
        // Nobody needs to wait for an answer.
        let _ = self.reply.send(result);
    }
}

/// Runs a job; a panic becomes an error. Whatever it left half done in the database is rolled back, and its own values are
/// gone.
pub(super) fn caught<T, E: From<DatabaseError>>(database: &str, job: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| {
        let message = message(&*panic);
        Err(DatabaseError::Panicked { database: database.to_owned(), message }.into())
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
