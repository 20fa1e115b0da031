//! Connections and versions of tables, on the server that `SUPERSTEP_TEST_POSTGRES` names.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::{env, pin, process};

use superstep_storage::DatabaseError;
use superstep_storage::database::Component;
use tokio_postgres::types::Type;

use super::{Client, PostgresBuilder, PostgresDatabase};
use crate::database::InDatabase;
use crate::sql::database as sql;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS {schema}.notes (text TEXT NOT NULL)";
const NOTES: Component = Component { name: "notes", scripts: &[CREATE] };

#[tokio::test]
async fn tables_are_created_once_whoever_comes_first() {
    let schema = Fresh::new();
    let connect = || async { schema.builder().connect_with(&[NOTES]).await.map(drop) };
    let all = tokio::join!(connect(), connect(), connect(), connect(), connect(), connect());
    for connected in [all.0, all.1, all.2, all.3, all.4, all.5] {
        connected.unwrap();
    }
    let database = schema.builder().connect_with(&[NOTES]).await.unwrap();
    let client = database.client().await.unwrap();
    run(&client, &database, "INSERT INTO {schema}.notes VALUES ('kept')").await.unwrap();
    assert_eq!(number(&client, &database, "SELECT count(*) FROM {schema}.notes").await, 1);
}

#[tokio::test]
async fn tables_are_brought_up_to_date_and_newer_ones_are_refused() {
    let dated = Component {
        scripts: &[CREATE, "ALTER TABLE {schema}.notes ADD COLUMN IF NOT EXISTS day INT NOT NULL DEFAULT 7"],
        ..NOTES
    };
    let schema = Fresh::new();
    let old = schema.builder().connect_with(&[NOTES]).await.unwrap();
    run(&old.client().await.unwrap(), &old, "INSERT INTO {schema}.notes VALUES ('old')").await.unwrap();

    let new = schema.builder().connect_with(&[dated]).await.unwrap();
    let client = new.client().await.unwrap();
    assert_eq!(number(&client, &new, "SELECT day::BIGINT FROM {schema}.notes").await, 7);

    let refused = schema.builder().connect_with(&[NOTES]).await.unwrap_err();
    assert!(matches!(refused, DatabaseError::NewerVersion { found: 2, known: 1, .. }), "{refused}");
    assert!(refused.to_string().ends_with("; update superstep"), "{refused}");
}

#[tokio::test]
async fn an_update_that_fails_changes_nothing() {
    let schema = Fresh::new();
    let broken = Component { scripts: &[CREATE, "DROP TABLE {schema}.notes", "no SQL"], ..NOTES };
    drop(schema.builder().connect_with(&[NOTES]).await.unwrap());
    assert!(schema.builder().connect_with(&[broken]).await.is_err());
    let database = schema.builder().connect_with(&[NOTES]).await.unwrap();
    let client = database.client().await.unwrap();
    assert_eq!(number(&client, &database, "SELECT count(*) FROM {schema}.notes").await, 0);
}

#[tokio::test]
async fn without_setup_nothing_is_created_until_someone_runs_the_ddl() {
    let schema = Fresh::new();
    let connect = || schema.builder().setup(false).connect_with(&[NOTES]);
    let refused = connect().await.unwrap_err();
    assert!(matches!(refused, DatabaseError::OlderVersion { found: 0, known: 1, .. }), "{refused}");

    // Twice, because it also serves to bring tables up to date.
    for _ in 0..2 {
        schema.by_hand(&sql::ddl(&sql::Schema::new(&schema.name).unwrap(), &[NOTES])).await;
    }
    connect().await.unwrap();
}

#[tokio::test]
async fn a_role_that_may_not_create_tables_is_told_what_to_do_and_can_use_them() {
    let schema = Fresh::new();
    let role = &schema.name;
    schema.by_hand(&format!("CREATE ROLE {role} LOGIN")).await;
    let limited = || {
        let address = format!("{}?user={role}", address());
        PostgresDatabase::builder(address).schema(role.clone()).connect_with(&[NOTES])
    };
    let refused = limited().await.unwrap_err().to_string();
    assert!(refused.ends_with("let another run the statements of `PostgresDatabase::ddl` once"), "{refused}");

    schema.by_hand(&sql::ddl(&sql::Schema::new(role).unwrap(), &[NOTES])).await;
    let grant = format!("GRANT USAGE ON SCHEMA {role} TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA {role} TO {role}");
    schema.by_hand(&grant).await;
    limited().await.unwrap();
    schema.by_hand(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn a_lost_connection_is_told_and_replaced() {
    let schema = Fresh::new();
    let database = schema.builder().pool_size(1).connect_with(&[NOTES]).await.unwrap();
    for _ in 0..3 {
        let client = database.client().await.unwrap();
        let session = number(&client, &database, "SELECT pg_backend_pid()::BIGINT").await;
        schema.by_hand(&format!("SELECT pg_terminate_backend({session})")).await;
        let lost = run(&client, &database, "SELECT 1").await.unwrap_err();
        assert!(matches!(lost, DatabaseError::Connection { .. }), "{lost:?}");
        assert!(lost.is_transient());
        while !client.is_closed() {
            tokio::task::yield_now().await;
        }
        drop(client);
        let client = database.client().await.unwrap();
        assert_ne!(number(&client, &database, "SELECT pg_backend_pid()::BIGINT").await, session);
    }
}

#[tokio::test]
async fn a_pool_gives_as_many_connections_as_it_was_told() {
    let schema = Fresh::new();
    let database = schema.builder().pool_size(2).connect_with(&[NOTES]).await.unwrap();
    let first = database.client().await.unwrap();
    let _second = database.client().await.unwrap();
    let mut third = pin::pin!(database.client());
    assert!(third.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(first);
    drop(third.await.unwrap());
}

#[tokio::test]
async fn a_session_is_left_as_it_was() {
    let schema = Fresh::new();
    let database = schema.builder().pool_size(1).connect_with(&[NOTES]).await.unwrap();
    let client = database.client().await.unwrap();
    for left in ["pg_prepared_statements", "pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"] {
        assert_eq!(number(&client, &database, &format!("SELECT count(*) FROM {left}")).await, 0, "{left}");
    }
}

#[tokio::test]
async fn a_closed_database_says_so() {
    let schema = Fresh::new();
    let database = schema.builder().connect_with(&[NOTES]).await.unwrap();
    let clone = database.clone();
    database.close();
    assert!(matches!(clone.client().await, Err(DatabaseError::Closed { .. })));
    schema.builder().connect_with(&[NOTES]).await.unwrap();
}

#[tokio::test]
async fn a_failed_statement_tells_what_the_server_said() {
    let schema = Fresh::new();
    let database = schema.builder().connect_with(&[NOTES]).await.unwrap();
    let client = database.client().await.unwrap();
    let failed = run(&client, &database, "SELECT 1 FROM {schema}.nothing").await.unwrap_err();
    assert!(matches!(failed, DatabaseError::Statement { .. }), "{failed:?}");
    let said = std::error::Error::source(&failed).and_then(|source| source.source()).unwrap().to_string();
    assert!(said.contains("does not exist"), "{said}");
}

/// A process that was stopped in the middle held its locks for ever, and the server's default isolation was taken.
#[tokio::test]
async fn a_transaction_has_limits_whatever_the_defaults_are() {
    let schema = Fresh::new();
    let database = schema.builder().connect_with(&[NOTES]).await.unwrap();
    let mut client = database.client().await.unwrap();
    run(&client, &database, "SET default_transaction_isolation = 'serializable'").await.unwrap();
    let outside = settings(&client).await;
    assert_eq!(outside[0], "serializable");
    let transaction = database.begin(&mut client).await.unwrap();
    assert_eq!(settings(transaction.client()).await, ["read committed", "10s", "12s"]);
    transaction.commit().await.unwrap();
    let transaction = database.begin_fixed(&mut client).await.unwrap();
    assert_eq!(settings(transaction.client()).await, ["repeatable read", "10s", "12s"]);
    drop(transaction);
    let transaction = database.begin_reading(&mut client).await.unwrap();
    assert_eq!(settings(transaction.client()).await, ["repeatable read", "10s", "12s"]);
    drop(transaction);
    assert_eq!(settings(&client).await, outside);
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_taken_back() {
    let schema = Fresh::new();
    let database = schema.builder().connect_with(&[NOTES]).await.unwrap();
    let mut client = database.client().await.unwrap();
    for is_kept in [false, true] {
        let transaction = database.begin(&mut client).await.unwrap();
        let insert = database.schema().fill("INSERT INTO {schema}.notes VALUES ('perhaps')");
        transaction.client().query_typed(&insert, &[]).await.unwrap();
        if is_kept {
            transaction.commit().await.unwrap();
        } else {
            drop(transaction);
        }
        assert_eq!(number(&client, &database, "SELECT count(*) FROM {schema}.notes").await, i64::from(is_kept));
    }
}

async fn settings(client: &Client) -> [String; 3] {
    let names = ["transaction_isolation", "idle_in_transaction_session_timeout", "lock_timeout"];
    let row = client
        .query_typed_one(
            "SELECT current_setting($1), current_setting($2), current_setting($3)",
            &names.each_ref().map(|name| (name as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT)),
        )
        .await
        .unwrap();
    [row.get(0), row.get(1), row.get(2)]
}

async fn run(client: &Client, database: &PostgresDatabase, sql: &str) -> Result<(), DatabaseError> {
    let sql = database.schema().fill(sql);
    client.query_typed(&sql, &[]).await.map(drop).in_database(database)
}

async fn number(client: &Client, database: &PostgresDatabase, sql: &str) -> i64 {
    let sql = database.schema().fill(&format!("{sql} LIMIT $1"));
    client.query_typed_one(&sql, &[(&1_i64, Type::INT8)]).await.unwrap().get(0)
}

fn address() -> String {
    env::var("SUPERSTEP_TEST_POSTGRES").expect("this test needs PostgreSQL: run it with `cargo xtask test`")
}

/// A schema that nobody else uses.
struct Fresh {
    name: String,
}

impl Fresh {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { name: format!("unit_{}_{number}", process::id()) }
    }

    fn builder(&self) -> PostgresBuilder {
        PostgresDatabase::builder(address()).schema(self.name.clone())
    }

    /// As an administrator does it.
    async fn by_hand(&self, sql: &str) {
        let (client, connection) = tokio_postgres::connect(&address(), tokio_postgres::NoTls).await.unwrap();
        let (done, _) = tokio::join!(
            async move {
                let done = client.batch_execute(sql).await;
                drop(client);
                done
            },
            connection
        );
        done.unwrap();
    }
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn encryption_needs_its_feature() {
    let refused = PostgresDatabase::connect("postgres://agent@db/agents?sslmode=require").await.unwrap_err();
    assert!(refused.to_string().ends_with("which this build has not; turn on feature `tls`"), "{refused}");
}
