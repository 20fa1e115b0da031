//! The cache in PostgreSQL. `$1` is now wherever something may have expired.
//!
//! An entry is found by a digest of its namespace and key, which may be longer than an index can hold.

use superstep_storage::database::Component;

pub(crate) const COMPONENT: Component = Component { name: "cache", scripts: &[CREATE] };

const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS {schema}.superstep_cache (
        digest BYTEA NOT NULL PRIMARY KEY,
        namespace BYTEA NOT NULL,
        key BYTEA NOT NULL,
        value BYTEA NOT NULL,
        expires_at BIGINT
    );
    CREATE INDEX IF NOT EXISTS superstep_cache_namespace ON {schema}.superstep_cache USING HASH (namespace);
    CREATE INDEX IF NOT EXISTS superstep_cache_expiry
        ON {schema}.superstep_cache (expires_at) WHERE expires_at IS NOT NULL;
";

pub(crate) const GET: &str = "
    SELECT wanted.ordinal, c.value
    FROM unnest($2::bytea[], $3::bytea[]) WITH ORDINALITY AS wanted (namespace, key, ordinal)
        JOIN {schema}.superstep_cache AS c ON c.digest = sha256(sha256(wanted.namespace) || wanted.key)
    WHERE c.expires_at IS NULL OR c.expires_at > $1
";
/// `$1` to `$4` are of one length, without two entries of one key.
pub(crate) const SET: &str = "
    INSERT INTO {schema}.superstep_cache (digest, namespace, key, value, expires_at)
    SELECT sha256(sha256(namespace) || key), namespace, key, value, expires_at
    FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[]) AS new (namespace, key, value, expires_at)
    ORDER BY 1
    ON CONFLICT (digest) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
";
pub(crate) const FORGET_EXPIRED: &str = "
    DELETE FROM {schema}.superstep_cache WHERE digest IN (
        SELECT digest FROM {schema}.superstep_cache WHERE expires_at <= $1 ORDER BY digest FOR UPDATE SKIP LOCKED
    )
";
pub(crate) const CLEAR: &str = "
    DELETE FROM {schema}.superstep_cache WHERE digest IN (
        SELECT digest FROM {schema}.superstep_cache WHERE namespace = ANY ($1) ORDER BY digest FOR UPDATE
    )
";
pub(crate) const CLEAR_ALL: &str = "
    DELETE FROM {schema}.superstep_cache WHERE digest IN (
        SELECT digest FROM {schema}.superstep_cache ORDER BY digest FOR UPDATE
    )
";
