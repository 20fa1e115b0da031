//! The cache in SQLite. `?1` is now wherever something may have expired.

use superstep_storage::database::Component;

pub(crate) const COMPONENT: Component = Component { name: "cache", scripts: &[CREATE] };

const CREATE: &str = "
    CREATE TABLE superstep_cache (
        namespace BLOB NOT NULL,
        key BLOB NOT NULL,
        value BLOB NOT NULL,
        expires_at INTEGER,
        PRIMARY KEY (namespace, key)
    );
    CREATE INDEX superstep_cache_expiry ON superstep_cache (expires_at) WHERE expires_at IS NOT NULL;
";

pub(crate) const GET: &str = "
    SELECT value FROM superstep_cache
    WHERE namespace = ?2 AND key = ?3 AND (expires_at IS NULL OR expires_at > ?1)
";
pub(crate) const SET: &str = "
    INSERT INTO superstep_cache (namespace, key, value, expires_at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
";
pub(crate) const FORGET_EXPIRED: &str = "DELETE FROM superstep_cache WHERE expires_at <= ?1";
pub(crate) const CLEAR: &str = "DELETE FROM superstep_cache WHERE namespace = ?1";
pub(crate) const CLEAR_ALL: &str = "DELETE FROM superstep_cache";
