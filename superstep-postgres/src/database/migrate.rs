//! Creates tables and brings them up to date.

use std::collections::HashMap;

use superstep_storage::DatabaseError;
use superstep_storage::database::Component;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::{Client, Fault, PostgresDatabase};
use crate::database::InDatabase;
use crate::sql::database as sql;

type Versions = HashMap<String, i64>;

/// Brings all components to this release's version, in one transaction, or changes nothing.
pub(super) async fn migrate(
    database: &PostgresDatabase,
    components: &[Component],
    may_set_up: bool,
) -> Result<(), DatabaseError> {
    let mut client = database.client().await?.unhurried();
    // Mostly there is nothing to do, and then a role that may not create tables will do.
    let versions = versions(&client, database).await.in_database(database)?;
    let Some((component, found)) = first_behind(database, components, &versions)? else { return Ok(()) };
    if !may_set_up {
        return Err(DatabaseError::OlderVersion {
            database: database.0.name.clone(),
            component: component.name.to_owned(),
            found,
            known: component.version(),
        });
    }
    let transaction = database.begin(&mut client).await?;
    migrate_all(transaction.client(), database, components).await?;
    transaction.commit().await
}

/// The first component whose tables are missing or old, and their version.
fn first_behind<'a>(
    database: &PostgresDatabase,
    components: &'a [Component],
    versions: &Versions,
) -> Result<Option<(&'a Component, i64)>, DatabaseError> {
    let mut behind = None;
    for component in components {
        let found = version(versions, component);
        if !component.scripts_after(&database.0.name, found)?.is_empty() {
            behind = behind.or(Some((component, found)));
        }
    }
    Ok(behind)
}

/// Inside of a transaction. Asks for the versions again: another process may have been first.
async fn migrate_all(
    client: &Client,
    database: &PostgresDatabase,
    components: &[Component],
) -> Result<(), DatabaseError> {
    let schema = database.schema().fill(sql::SCHEMA);
    client.query_typed(sql::LOCK_SETUP, &[(&schema, Type::TEXT)]).await.in_database(database)?;
    let versions = versions(client, database).await.in_database(database)?;
    let run = async |sql: &str| {
        let done = client.batch_execute(&database.schema().fill(sql)).await;
        done.map_err(|error| cannot_set_up(database, error))
    };
    // Who may not create schemas may still use one that is there.
    if !has(client, sql::HAS_SCHEMA, &schema).await.in_database(database)? {
        run(sql::CREATE_SCHEMA).await?;
    }
    run(sql::CREATE_VERSIONS).await?;
    for component in components {
        for script in component.scripts_after(&database.0.name, version(&versions, component))? {
            run(script).await?;
        }
        let set_version = database.schema().fill(sql::SET_VERSION);
        let now = component.version();
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&component.name, Type::TEXT), (&now, Type::INT8)];
        client.query_typed(&set_version, &values).await.in_database(database)?;
    }
    Ok(())
}

async fn versions(client: &Client, database: &PostgresDatabase) -> Result<Versions, Fault> {
    let table = database.schema().fill(sql::VERSIONS_TABLE);
    if !has(client, sql::HAS_VERSIONS, &table).await? {
        return Ok(Versions::new());
    }
    let rows = client.query_typed(&database.schema().fill(sql::VERSIONS), &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

async fn has(client: &Client, question: &str, name: &String) -> Result<bool, Fault> {
    Ok(client.query_typed_one(question, &[(name, Type::TEXT)]).await?.try_get(0)?)
}

/// 0 for what is not there yet.
fn version(versions: &Versions, component: &Component) -> i64 {
    versions.get(component.name).copied().unwrap_or(0)
}

fn cannot_set_up(database: &PostgresDatabase, error: Fault) -> DatabaseError {
    let error = match error {
        Fault::Told(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => error,
        other => return Err::<(), _>(other).in_database(database).expect_err("it is an error"),
    };
    DatabaseError::Open {
        database: database.0.name.clone(),
        why: "its user may not create tables; let another run the statements of `PostgresDatabase::ddl` once"
            .to_owned(),
        source: Some(std::sync::Arc::new(error)),
    }
}
