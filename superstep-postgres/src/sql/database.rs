//! PostgreSQL: the name of the schema in texts, and the table of versions.
//!
//! Every table is named with its schema, `{schema}.table`: a connection behind a pooler has no search path of its own.

use superstep_storage::database::Component;

/// The name of a schema, quoted for use in a text.
#[derive(Debug, Clone)]
pub(crate) struct Schema(String);

impl Schema {
    /// Says what is wrong with a name that cannot be used.
    pub(crate) fn new(name: &str) -> Result<Self, &'static str> {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !name.starts_with(is_letter) || !name.chars().all(|c| is_letter(c) || c.is_ascii_digit()) {
            return Err("use ASCII letters, digits and `_`, and begin with a letter");
        }
        if name.len() > 63 {
            return Err("use at most 63 characters");
        }
        if name.to_ascii_lowercase().starts_with("pg_") {
            return Err("PostgreSQL keeps names that begin with `pg_` for itself");
        }
        Ok(Self(format!("\"{name}\"")))
    }

    /// The text with this schema in place of `{schema}`.
    pub(crate) fn fill(&self, sql: &str) -> String {
        sql.replace("{schema}", &self.0)
    }
}

// Transactions. Whatever a server's defaults are, these are as they are meant. One whose process stops in the middle is
// ended by the server; who waits for it waits a little longer than that.

macro_rules! limits {
    () => {
        "; SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '12s'"
    };
}

/// Each statement sees what was committed before it.
pub(crate) const BEGIN: &str = concat!("BEGIN ISOLATION LEVEL READ COMMITTED", limits!());
/// All statements see the same.
pub(crate) const BEGIN_FIXED: &str = concat!("BEGIN ISOLATION LEVEL REPEATABLE READ", limits!());
pub(crate) const BEGIN_READING: &str = concat!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", limits!());
pub(crate) const COMMIT: &str = "COMMIT";
pub(crate) const ROLLBACK: &str = "ROLLBACK";

pub(crate) const CREATE_SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS {schema}";
pub(crate) const HAS_SCHEMA: &str = "SELECT to_regnamespace($1) IS NOT NULL";
pub(crate) const SCHEMA: &str = "{schema}";

pub(crate) const CREATE_VERSIONS: &str = "
    CREATE TABLE IF NOT EXISTS {schema}.superstep_versions (
        component TEXT NOT NULL PRIMARY KEY,
        version BIGINT NOT NULL
    )
";
pub(crate) const HAS_VERSIONS: &str = "SELECT to_regclass($1) IS NOT NULL";
pub(crate) const VERSIONS_TABLE: &str = "{schema}.superstep_versions";
pub(crate) const VERSIONS: &str = "SELECT component, version FROM {schema}.superstep_versions";
pub(crate) const SET_VERSION: &str = "
    INSERT INTO {schema}.superstep_versions (component, version) VALUES ($1, $2)
    ON CONFLICT (component) DO UPDATE SET version = excluded.version
";

/// Held until the transaction ends: who sets the schema up does so alone.
pub(crate) const LOCK_SETUP: &str = "SELECT pg_advisory_xact_lock(hashtextextended('superstep ' || $1, 0))";

/// All that creates these components, or brings them up to date, as one script.
pub(crate) fn ddl(schema: &Schema, components: &[Component]) -> String {
    let mut statements = vec!["BEGIN".to_owned(), CREATE_SCHEMA.to_owned(), outdented(CREATE_VERSIONS)];
    for Component { name, scripts } in components {
        statements.extend(scripts.iter().map(|script| outdented(script)));
        let version = SET_VERSION.replace("$1", &format!("'{name}'")).replace("$2", &scripts.len().to_string());
        statements.push(outdented(&version));
    }
    statements.push("COMMIT;\n".to_owned());
    schema.fill(&statements.join(";\n\n"))
}

/// The text without the indentation that it has in a source file, and without a last semicolon.
fn outdented(sql: &str) -> String {
    let lines = || sql.lines().filter(|line| !line.trim().is_empty());
    let depth = lines().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let text = lines().map(|line| &line[depth..]).collect::<Vec<_>>().join("\n");
    text.trim_end().trim_end_matches(';').to_owned()
}
