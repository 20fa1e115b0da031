//! PostgreSQL databases: what is said when an address or a setting does not work, and what an administrator sees.

use std::error::Error;

use expect_test::{Expect, expect};
use superstep_postgres::{DatabaseError, PostgresBuilder, PostgresDatabase};

use crate::address;

#[tokio::test]
async fn the_schema_is_set_up_once_and_then_found() {
    let connect = || PostgresDatabase::builder(address()).schema("it_found");
    connect().connect().await.unwrap();
    connect().setup(false).connect().await.unwrap();
}

/// A schema may hold tables of one's own beside them.
#[test]
fn the_names_of_all_tables_and_indexes_say_whose_they_are() {
    let ddl = PostgresDatabase::ddl("agents").unwrap();
    let made = |what: &str| {
        let names = ddl.split(what).skip(1).map(|rest| rest.trim_start_matches("\"agents\"."));
        names.map(|name| name.split([' ', '\n', '(']).next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (tables, indexes) = (made("CREATE TABLE IF NOT EXISTS "), made("CREATE INDEX IF NOT EXISTS "));
    assert!(tables.contains(&"superstep_threads".to_owned()) && tables.contains(&"superstep_cache".to_owned()));
    for name in tables.into_iter().chain(indexes) {
        assert!(name.starts_with("superstep_"), "{name}");
    }
}

#[tokio::test]
async fn a_schema_needs_a_plain_name() {
    let named = |name: &str| PostgresDatabase::builder("postgres://agent@db/agents").schema(name);
    check(
        named("robert\"; --"),
        expect![[r#"cannot open database `postgres://db/agents`: schema `robert"; --` cannot be used: use ASCII letters, digits and `_`, and begin with a letter"#]],
    )
    .await;
    check(named(""), expect!["cannot open database `postgres://db/agents`: schema `` cannot be used: use ASCII letters, digits and `_`, and begin with a letter"]).await;
    check(named("PG_agents"), expect!["cannot open database `postgres://db/agents`: schema `PG_agents` cannot be used: PostgreSQL keeps names that begin with `pg_` for itself"]).await;
    let long = named(&"a".repeat(64)).connect().await.unwrap_err().to_string();
    assert!(long.ends_with("use at most 63 characters"), "{long}");
    assert!(PostgresDatabase::ddl("a-b").is_err());
}

#[tokio::test]
async fn a_pool_needs_a_connection() {
    check(
        PostgresDatabase::builder("postgres://agent@db/agents").pool_size(0),
        expect!["cannot open database `postgres://db/agents`: a pool of no connections has none to give; use `pool_size(1)` or more"],
    )
    .await;
}

#[tokio::test]
async fn an_address_that_cannot_be_read_is_refused_without_showing_it() {
    let error = check(
        PostgresDatabase::builder("postgres://agent:secret@db/agents?colour=blue"),
        expect!["cannot open database `postgres`: the address cannot be read; it looks like `postgres://user:password@host/database`"],
    )
    .await;
    assert!(!format!("{error:?}").contains("secret"));
}

#[tokio::test]
async fn nobody_at_the_address_may_be_tried_again() {
    let error = check(
        PostgresDatabase::builder("postgres://agent:secret@127.0.0.1:1/agents"),
        expect!["the connection to database `postgres://127.0.0.1:1/agents` was lost or could not be made; try again"],
    )
    .await;
    assert!(error.is_transient());
    assert!(error.source().is_some());
    assert!(!format!("{error:?}").contains("secret"));
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named() {
    let error = PostgresDatabase::connect(format!("{}_missing", address())).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Open { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.ends_with("the server has no database of this name; create it first"), "{text}");
    assert!(text.contains("/postgres_missing`"), "{text}");
}

#[test]
fn the_ddl_is_for_reading() {
    let ddl = PostgresDatabase::ddl("agents").unwrap();
    let start = ddl.split("\n\n").take(3).collect::<Vec<_>>().join("\n\n");
    expect![[r#"
        BEGIN;

        CREATE SCHEMA IF NOT EXISTS "agents";

        CREATE TABLE IF NOT EXISTS "agents".superstep_versions (
            component TEXT NOT NULL PRIMARY KEY,
            version BIGINT NOT NULL
        );"#]]
    .assert_eq(&start);
    assert!(ddl.ends_with("COMMIT;\n"), "{ddl}");
    assert!(!ddl.contains("{schema}"), "{ddl}");
}

async fn check(builder: PostgresBuilder, expect: Expect) -> DatabaseError {
    let error = builder.connect().await.unwrap_err();
    expect.assert_eq(&error.to_string());
    error
}
