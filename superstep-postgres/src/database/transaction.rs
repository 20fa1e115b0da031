//! Transactions of several round trips.
//!
//! Their process may stop between two of them. So the server ends a transaction that nobody continues, and who waits
//! for a lock waits only for a while: nobody is kept from a thread for ever.

use std::pin::pin;
use std::task::{Context, Waker};

use superstep_storage::DatabaseError;

use super::{Client, PostgresDatabase};
use crate::database::InDatabase;
use crate::sql::database as sql;

/// A transaction, which is taken back if it is dropped before it is committed.
pub(crate) struct Transaction<'a> {
    client: &'a Client,
    database: &'a PostgresDatabase,
    is_open: bool,
}

impl PostgresDatabase {
    /// Begins a transaction whose statements each see what was committed before them.
    pub(crate) async fn begin<'a>(&'a self, client: &'a mut Client) -> Result<Transaction<'a>, DatabaseError> {
        self.begin_by(client, sql::BEGIN).await
    }

    /// Begins a transaction whose statements all see the same.
    pub(crate) async fn begin_fixed<'a>(&'a self, client: &'a mut Client) -> Result<Transaction<'a>, DatabaseError> {
        self.begin_by(client, sql::BEGIN_FIXED).await
    }

    /// The same, for statements that only read.
    pub(crate) async fn begin_reading<'a>(&'a self, client: &'a mut Client) -> Result<Transaction<'a>, DatabaseError> {
        self.begin_by(client, sql::BEGIN_READING).await
    }

    async fn begin_by<'a>(&'a self, client: &'a mut Client, sql: &str) -> Result<Transaction<'a>, DatabaseError> {
        // It is there before the first statement is sent, so that whoever gives up waiting leaves nothing open.
        let transaction = Transaction { client, database: self, is_open: true };
        transaction.client.batch_execute(sql).await.in_database(self)?;
        Ok(transaction)
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn client(&self) -> &'a Client {
        self.client
    }

    pub(crate) async fn commit(mut self) -> Result<(), DatabaseError> {
        self.is_open = false;
        self.client.batch_execute(sql::COMMIT).await.in_database(self.database)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // The first poll sends it. Nobody needs the answer: what comes next on this connection is done after it.
            let rollback = pin!(self.client.batch_execute(sql::ROLLBACK));
            let _ = rollback.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}
