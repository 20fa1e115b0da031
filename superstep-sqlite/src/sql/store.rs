//! The store in SQLite.
//!
//! A namespace is kept as its labels, each with a zero byte behind it, so that bytes sort as namespaces do. `scopes` has
//! an item once for each namespace that it is in or below: pages of any prefix are read in order, without the rest.

use superstep_storage::database::Component;

pub(crate) const COMPONENT: Component = Component { name: "store", scripts: &[CREATE] };

const CREATE: &str = "
    CREATE TABLE superstep_store_order (
        only INTEGER NOT NULL PRIMARY KEY CHECK (only = 0),
        last_version INTEGER NOT NULL
    );
    INSERT INTO superstep_store_order (only, last_version) VALUES (0, 0);

    CREATE TABLE superstep_store_items (
        place INTEGER NOT NULL PRIMARY KEY,
        namespace BLOB NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        ttl INTEGER,
        expires_at INTEGER,
        UNIQUE (namespace, key)
    );
    CREATE INDEX superstep_store_items_expiry ON superstep_store_items (expires_at) WHERE expires_at IS NOT NULL;

    CREATE TABLE superstep_store_scopes (
        scope BLOB NOT NULL,
        place INTEGER NOT NULL,
        PRIMARY KEY (scope, place)
    ) WITHOUT ROWID;

    CREATE TABLE superstep_store_words (
        word TEXT NOT NULL,
        place INTEGER NOT NULL,
        PRIMARY KEY (word, place)
    ) WITHOUT ROWID;
    CREATE INDEX superstep_store_words_place ON superstep_store_words (place);

    CREATE TABLE superstep_store_vectors (
        place INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (place, ordinal)
    );
";

// Reads. An item is alive if its time has not come: `?1` is now in all of them.

pub(crate) const GET: &str = "
    SELECT place, namespace, key, value, version, created_at, updated_at, ttl IS NOT NULL FROM superstep_store_items
    WHERE namespace = ?2 AND key = ?3 AND (expires_at IS NULL OR expires_at > ?1)
";
pub(crate) const GET_PLACE: &str = "
    SELECT place, namespace, key, value, version, created_at, updated_at, ttl IS NOT NULL FROM superstep_store_items
    WHERE place = ?2 AND (expires_at IS NULL OR expires_at > ?1)
";
pub(crate) const ALL_AFTER: &str = "
    SELECT place, namespace, key, value, version, created_at, updated_at, ttl IS NOT NULL FROM superstep_store_items
    WHERE place > ?2 AND (expires_at IS NULL OR expires_at > ?1)
    ORDER BY place
";
pub(crate) const SCOPE_AFTER: &str = "
    SELECT i.place, i.namespace, i.key, i.value, i.version, i.created_at, i.updated_at, i.ttl IS NOT NULL
    FROM superstep_store_scopes AS s CROSS JOIN superstep_store_items AS i ON i.place = s.place
    WHERE s.scope = ?3 AND s.place > ?2 AND (i.expires_at IS NULL OR i.expires_at > ?1)
    ORDER BY s.place
";
/// `?2` is a list of words as JSON; `?3` and `?4` are where the namespaces begin and end.
pub(crate) const COUNT_WORDS: &str = "
    SELECT w.place, COUNT(*)
    FROM superstep_store_words AS w JOIN superstep_store_items AS i ON i.place = w.place
    WHERE w.word IN (SELECT value FROM json_each(?2))
        AND i.namespace >= ?3 AND (?4 IS NULL OR i.namespace < ?4)
        AND (i.expires_at IS NULL OR i.expires_at > ?1)
    GROUP BY w.place
";
pub(crate) const VECTORS: &str = "
    SELECT v.place, v.vector
    FROM superstep_store_items AS i JOIN superstep_store_vectors AS v ON v.place = i.place
    WHERE i.namespace >= ?2 AND (?3 IS NULL OR i.namespace < ?3) AND (i.expires_at IS NULL OR i.expires_at > ?1)
";
pub(crate) const NAMESPACES: &str = "
    SELECT DISTINCT namespace FROM superstep_store_items
    WHERE namespace >= ?2 AND (?3 IS NULL OR namespace < ?3) AND (expires_at IS NULL OR expires_at > ?1)
    ORDER BY namespace
";

// Writes.

pub(crate) const FOUND: &str = "SELECT place, version FROM superstep_store_items WHERE namespace = ?1 AND key = ?2";
pub(crate) const EXPIRED: &str = "SELECT place, namespace FROM superstep_store_items WHERE expires_at <= ?1";
pub(crate) const LAST_VERSION: &str = "SELECT last_version FROM superstep_store_order";
pub(crate) const SET_LAST_VERSION: &str = "UPDATE superstep_store_order SET last_version = ?1";
pub(crate) const INSERT: &str = "
    INSERT INTO superstep_store_items
        (place, namespace, key, value, version, created_at, updated_at, ttl, expires_at)
    VALUES (?1, ?2, ?3, ?4, ?1, ?5, ?5, ?6, ?5 + ?6)
";
pub(crate) const UPDATE: &str = "
    UPDATE superstep_store_items
    SET value = ?2, version = ?3, updated_at = ?4, ttl = ?5, expires_at = ?4 + ?5
    WHERE place = ?1
";
pub(crate) const REFRESH: &str = "
    UPDATE superstep_store_items SET expires_at = ?1 + ttl
    WHERE place = ?2 AND ttl IS NOT NULL AND expires_at > ?1
";
pub(crate) const DELETE: &str = "DELETE FROM superstep_store_items WHERE place = ?1";
pub(crate) const INSERT_SCOPE: &str = "INSERT INTO superstep_store_scopes (scope, place) VALUES (?1, ?2)";
pub(crate) const DELETE_SCOPE: &str = "DELETE FROM superstep_store_scopes WHERE scope = ?1 AND place = ?2";
pub(crate) const INSERT_WORD: &str = "INSERT INTO superstep_store_words (word, place) VALUES (?1, ?2)";
pub(crate) const DELETE_WORDS: &str = "DELETE FROM superstep_store_words WHERE place = ?1";
pub(crate) const INSERT_VECTOR: &str =
    "INSERT INTO superstep_store_vectors (place, ordinal, vector) VALUES (?1, ?2, ?3)";
pub(crate) const DELETE_VECTORS: &str = "DELETE FROM superstep_store_vectors WHERE place = ?1";
