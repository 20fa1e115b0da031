//! Statements on a connection. None is prepared for later, so that a pooler may stand between.

use futures_util::future::join_all;
use superstep::{CheckpointError, CheckpointId};
use superstep_storage::rows::{RowCodec, id_bytes};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::PostgresSaver;
use crate::database::{Client, InDatabase, Transaction};
use crate::sql::checkpoints as sql;

/// What a job works with: a connection, which may be in a transaction.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) client: &'a Client,
    pub(super) saver: &'a PostgresSaver,
}

/// A value that is bound, and the type that it has there.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Values in the order of their numbers, each with its type.
macro_rules! params {
    ($($value:expr => $kind:ident),* $(,)?) => {
        &[$((&$value as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::$kind)),*]
    };
}
pub(super) use params;

impl<'a> Work<'a> {
    pub(super) fn codec(&self, thread: &'a str, namespace: &'a str) -> RowCodec<'a> {
        self.saver.codec(thread, namespace)
    }

    /// The rows that a statement gives.
    pub(super) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, CheckpointError> {
        self.saver.done(self.client.query_typed(&self.saver.text(sql), params).await)
    }

    /// The row that a statement gives, if it gives one.
    pub(super) async fn row(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, CheckpointError> {
        self.saver.done(self.client.query_typed_opt(&self.saver.text(sql), params).await)
    }

    /// How many rows a statement changed.
    pub(super) async fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<usize, CheckpointError> {
        Ok(self.saver.done(self.client.execute_typed(&self.saver.text(sql), params).await)? as usize)
    }

    /// The rows of several statements. They are sent in one go and run one after another.
    pub(super) async fn rows_of_all(
        &self,
        statements: &[(&str, &[Param<'_>])],
    ) -> Result<Vec<Vec<Row>>, CheckpointError> {
        let texts: Vec<String> = statements.iter().map(|(sql, _)| self.saver.text(sql)).collect();
        let sent = texts.iter().zip(statements).map(|(sql, (_, params))| self.client.query_typed(sql, params));
        self.saver.done(all(sent).await)
    }

    /// The rows of several statements that are a transaction of their own.
    pub(super) async fn transact(&self, statements: &[(&str, &[Param<'_>])]) -> Result<Vec<Vec<Row>>, CheckpointError> {
        let begin: [(&str, &[Param<'_>]); 2] = [(sql::BEGIN, &[]), (sql::LIMIT, &[])];
        let all = [&begin[..], statements, &[(sql::COMMIT, &[])]].concat();
        let mut rows = self.rows_of_all(&all).await?;
        rows.pop();
        Ok(rows.split_off(begin.len()))
    }
}

impl PostgresSaver {
    pub(super) async fn client(&self) -> Result<Client, CheckpointError> {
        Ok(self.database.client().await?)
    }

    pub(super) fn work<'a>(&'a self, client: &'a Client) -> Work<'a> {
        Work { client, saver: self }
    }

    /// Begins a transaction whose statements each see what was committed before them.
    pub(super) async fn begin<'a>(&'a self, client: &'a mut Client) -> Result<Transaction<'a>, CheckpointError> {
        Ok(self.database.begin(client).await?)
    }

    pub(super) fn text(&self, sql: &str) -> String {
        self.database.schema().fill(sql)
    }

    /// Says what a failure means for the database.
    pub(super) fn done<T, E>(&self, result: Result<T, E>) -> Result<T, CheckpointError>
    where
        Result<T, E>: InDatabase<T>,
    {
        Ok(result.in_database(&self.database)?)
    }

    pub(super) fn column<'a, T: FromSql<'a>>(&self, row: &'a Row, place: usize) -> Result<T, CheckpointError> {
        self.done(row.try_get(place))
    }

    /// One column of all rows.
    pub(super) fn columns<T: for<'a> FromSql<'a>>(
        &self,
        rows: &[Row],
        place: usize,
    ) -> Result<Vec<T>, CheckpointError> {
        rows.iter().map(|row| self.column(row, place)).collect()
    }
}

/// An id as it is bound.
pub(super) fn bytes(id: CheckpointId) -> Vec<u8> {
    id_bytes(id).to_vec()
}

/// Polls all in order until all are done. What they send first is sent in one go.
pub(super) async fn all<T, E>(futures: impl Iterator<Item = impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    join_all(futures).await.into_iter().collect()
}
