//! A connection that is not waited for longer than was said.
//!
//! A server that is stopped, or behind a network that lost the connection without telling, says nothing for ever. A
//! statement that is not answered in time fails; what became of it is not known, as if the connection had been lost. The
//! connection does not go back to the pool, where the answer might still come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

/// What goes through all of the tables may take so long.
const UNHURRIED: Duration = Duration::from_hours(1);

/// A connection from the pool, which it goes back to when dropped. One that was lost, or did not answer, does not.
pub(crate) struct Client {
    /// None only while it is dropped.
    pooled: Option<deadpool_postgres::Client>,
    limit: Duration,
    is_silent: AtomicBool,
}

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The driver or the server says so.
    Told(Error),
    /// There was no answer for so long.
    Silent(Duration),
}

impl Fault {
    pub(crate) fn code(&self) -> Option<&SqlState> {
        match self {
            Fault::Told(error) => error.code(),
            Fault::Silent(_) => None,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

type Values<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

impl Client {
    pub(super) fn new(pooled: deadpool_postgres::Client, limit: Duration) -> Self {
        Self { pooled: Some(pooled), limit, is_silent: AtomicBool::new(false) }
    }

    /// For statements that go through all of the tables.
    pub(crate) fn unhurried(mut self) -> Self {
        self.limit = self.limit.max(UNHURRIED);
        self
    }

    pub(crate) async fn query_typed(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Fault> {
        self.answer(self.driver().query_typed(sql, values)).await
    }

    pub(crate) async fn query_typed_opt(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, Fault> {
        self.answer(self.driver().query_typed_opt(sql, values)).await
    }

    pub(crate) async fn query_typed_one(&self, sql: &str, values: Values<'_>) -> Result<Row, Fault> {
        self.answer(self.driver().query_typed_one(sql, values)).await
    }

    pub(crate) async fn execute_typed(&self, sql: &str, values: Values<'_>) -> Result<u64, Fault> {
        self.answer(self.driver().execute_typed(sql, values)).await
    }

    pub(crate) async fn batch_execute(&self, sql: &str) -> Result<(), Fault> {
        self.answer(self.driver().batch_execute(sql)).await
    }

    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        self.driver().is_closed()
    }

    fn driver(&self) -> &tokio_postgres::Client {
        self.pooled.as_ref().expect("it is there until it is dropped")
    }

    async fn answer<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Fault> {
        let Ok(answer) = tokio::time::timeout(self.limit, asked).await else {
            self.is_silent.store(true, Ordering::Relaxed);
            return Err(Fault::Silent(self.limit));
        };
        answer.map_err(Fault::Told)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.is_silent.load(Ordering::Relaxed) {
            self.pooled.take().map(deadpool_postgres::Client::take);
        }
    }
}
