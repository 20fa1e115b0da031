//! Creates tables and brings them up to date.

use rusqlite::{Connection, OptionalExtension};
use superstep_storage::DatabaseError;
use superstep_storage::database::Component;

use crate::database::InDatabase;
use crate::sql::database as sql;

/// Brings all components to this release's version, in one transaction, or changes nothing.
pub(super) fn migrate(connection: &Connection, database: &str, components: &[Component]) -> Result<(), DatabaseError> {
    // Mostly there is nothing to do, and then there is no need to wait for others who write.
    if is_current(connection, database, components)? {
        return Ok(());
    }
    connection.execute_batch(sql::BEGIN_WRITE).in_database(connection)?;
    let migrated = migrate_each(connection, database, components)
        .and_then(|()| connection.execute_batch(sql::COMMIT).in_database(connection));
    migrated.inspect_err(|_| {
        // It fails if the failure has rolled back already.
        let _ = connection.execute_batch(sql::ROLLBACK);
    })
}

fn is_current(connection: &Connection, database: &str, components: &[Component]) -> Result<bool, DatabaseError> {
    if !connection.query_row(sql::HAS_VERSIONS, [], |row| row.get(0)).in_database(connection)? {
        return Ok(false);
    }
    for component in components {
        let found = version(connection, component).in_database(connection)?;
        if !component.scripts_after(database, found)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Asks for the versions again: another process may have been first.
fn migrate_each(connection: &Connection, database: &str, components: &[Component]) -> Result<(), DatabaseError> {
    connection.execute_batch(sql::VERSIONS).in_database(connection)?;
    for component in components {
        let found = version(connection, component).in_database(connection)?;
        for script in component.scripts_after(database, found)? {
            connection.execute_batch(script).in_database(connection)?;
        }
        let now = (component.name, component.version());
        connection.execute(sql::SET_VERSION, now).in_database(connection)?;
    }
    Ok(())
}

/// 0 for what is not there yet.
fn version(connection: &Connection, component: &Component) -> rusqlite::Result<i64> {
    let found = connection.query_row(sql::VERSION, [component.name], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(0))
}
