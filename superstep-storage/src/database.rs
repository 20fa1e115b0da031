//! What databases have in common: tables with versions, and what can go wrong.

mod error;

pub use self::error::DatabaseError;

/// Tables that belong together, with a version of their own.
///
/// The scripts create them from nothing, one after another: script `n` leads from version `n` to `n + 1`. A released
/// script is never changed. Those for PostgreSQL can be run twice (`IF NOT EXISTS`), so that an administrator can
/// bring tables up to date by running all of them.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// What the tables are for.
    pub name: &'static str,
    /// What brings them from each version to the next.
    pub scripts: &'static [&'static str],
}

impl Component {
    /// The version that this release reads and writes.
    pub fn version(&self) -> i64 {
        self.scripts.len() as i64
    }

    /// The scripts that lead from version `found` to this release's.
    pub fn scripts_after(&self, database: &str, found: i64) -> Result<&'static [&'static str], DatabaseError> {
        let known = self.version();
        let newer = || DatabaseError::NewerVersion {
            database: database.to_owned(),
            component: self.name.to_owned(),
            found,
            known,
        };
        usize::try_from(found).ok().and_then(|done| self.scripts.get(done..)).ok_or_else(newer)
    }
}
