//! The store in PostgreSQL.
//!
//! As in SQLite, but that all items of a batch are written by one statement. `facts` has a value as `jsonb` to look for
//! equal parts in, and is null for the values that `jsonb` cannot hold; `value` is the truth. Every batch that writes
//! changes the one row of `superstep_store_order` first, and so waits for the batches before it: versions and places are
//! in the order of commits.

use superstep_storage::database::Component;

pub(crate) const COMPONENT: Component = Component { name: "store", scripts: &[CREATE] };

const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS {schema}.superstep_store_order (
        only_one BOOLEAN NOT NULL PRIMARY KEY CHECK (only_one),
        last_version BIGINT NOT NULL
    );
    INSERT INTO {schema}.superstep_store_order (only_one, last_version) VALUES (TRUE, 0) ON CONFLICT DO NOTHING;

    CREATE TABLE IF NOT EXISTS {schema}.superstep_store_items (
        place BIGINT NOT NULL PRIMARY KEY,
        namespace BYTEA NOT NULL,
        key TEXT COLLATE \"C\" NOT NULL,
        value TEXT NOT NULL,
        facts JSONB,
        version BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        ttl BIGINT,
        expires_at BIGINT,
        UNIQUE (namespace, key)
    );
    CREATE INDEX IF NOT EXISTS superstep_store_items_facts
        ON {schema}.superstep_store_items USING GIN (facts jsonb_path_ops);
    CREATE INDEX IF NOT EXISTS superstep_store_items_without_facts
        ON {schema}.superstep_store_items (place) WHERE facts IS NULL;
    CREATE INDEX IF NOT EXISTS superstep_store_items_expiry
        ON {schema}.superstep_store_items (expires_at) WHERE expires_at IS NOT NULL;

    CREATE TABLE IF NOT EXISTS {schema}.superstep_store_scopes (
        scope BYTEA NOT NULL,
        place BIGINT NOT NULL REFERENCES {schema}.superstep_store_items ON DELETE CASCADE,
        PRIMARY KEY (scope, place)
    );
    CREATE INDEX IF NOT EXISTS superstep_store_scopes_place ON {schema}.superstep_store_scopes (place);

    CREATE TABLE IF NOT EXISTS {schema}.superstep_store_words (
        word TEXT COLLATE \"C\" NOT NULL,
        place BIGINT NOT NULL REFERENCES {schema}.superstep_store_items ON DELETE CASCADE,
        PRIMARY KEY (word, place)
    );
    CREATE INDEX IF NOT EXISTS superstep_store_words_place ON {schema}.superstep_store_words (place);

    CREATE TABLE IF NOT EXISTS {schema}.superstep_store_vectors (
        place BIGINT NOT NULL REFERENCES {schema}.superstep_store_items ON DELETE CASCADE,
        ordinal BIGINT NOT NULL,
        vector REAL[] NOT NULL,
        PRIMARY KEY (place, ordinal)
    );
";

// Reads. An item is alive if its time has not come: `$1` is now in all of them.

pub(crate) const GET: &str = "
    SELECT place, namespace, key, value, version, created_at, updated_at, ttl IS NOT NULL
    FROM {schema}.superstep_store_items
    WHERE namespace = $2 AND key = $3 AND (expires_at IS NULL OR expires_at > $1)
";
pub(crate) const GET_PLACES: &str = "
    SELECT place, namespace, key, value, version, created_at, updated_at, ttl IS NOT NULL
    FROM {schema}.superstep_store_items
    WHERE place = ANY ($2) AND (expires_at IS NULL OR expires_at > $1)
";
/// `$2` is where the page before ended, `$3` how many, `$4` facts that must be there or null.
pub(crate) const ALL_AFTER: &str = "
    SELECT place, namespace, key, value, version, created_at, updated_at, ttl IS NOT NULL
    FROM {schema}.superstep_store_items
    WHERE place > $2 AND (expires_at IS NULL OR expires_at > $1)
        AND ($4::text IS NULL OR facts IS NULL OR facts @> $4::text::jsonb)
    ORDER BY place LIMIT $3
";
pub(crate) const SCOPE_AFTER: &str = "
    SELECT i.place, i.namespace, i.key, i.value, i.version, i.created_at, i.updated_at, i.ttl IS NOT NULL
    FROM {schema}.superstep_store_scopes AS s JOIN {schema}.superstep_store_items AS i ON i.place = s.place
    WHERE s.scope = $5 AND s.place > $2 AND (i.expires_at IS NULL OR i.expires_at > $1)
        AND ($4::text IS NULL OR i.facts IS NULL OR i.facts @> $4::text::jsonb)
    ORDER BY s.place LIMIT $3
";
/// `$3` and `$4` are where the namespaces begin and end.
pub(crate) const COUNT_WORDS: &str = "
    SELECT w.place, count(*)
    FROM {schema}.superstep_store_words AS w JOIN {schema}.superstep_store_items AS i ON i.place = w.place
    WHERE w.word = ANY ($2) AND i.namespace >= $3 AND ($4::bytea IS NULL OR i.namespace < $4)
        AND (i.expires_at IS NULL OR i.expires_at > $1)
    GROUP BY w.place
";
/// `$4` and `$5` are the last vector that was read, `$6` is how many.
pub(crate) const VECTORS: &str = "
    SELECT v.place, v.ordinal, v.vector
    FROM {schema}.superstep_store_vectors AS v JOIN {schema}.superstep_store_items AS i ON i.place = v.place
    WHERE i.namespace >= $2 AND ($3::bytea IS NULL OR i.namespace < $3) AND (v.place, v.ordinal) > ($4, $5)
        AND (i.expires_at IS NULL OR i.expires_at > $1)
    ORDER BY v.place, v.ordinal LIMIT $6
";
/// `$4` is the last namespace that was read, `$5` is how many.
pub(crate) const NAMESPACES: &str = "
    SELECT DISTINCT namespace FROM {schema}.superstep_store_items
    WHERE namespace >= $2 AND ($3::bytea IS NULL OR namespace < $3) AND ($4::bytea IS NULL OR namespace > $4)
        AND (expires_at IS NULL OR expires_at > $1)
    ORDER BY namespace LIMIT $5
";

// Writes.

/// Waits for its turn and takes `$1` versions, those after the one that it gives.
pub(crate) const TAKE_VERSIONS: &str =
    "UPDATE {schema}.superstep_store_order SET last_version = last_version + $1 RETURNING last_version - $1";
pub(crate) const SWEEP: &str = "DELETE FROM {schema}.superstep_store_items WHERE expires_at <= $1 RETURNING place";
pub(crate) const FOUND: &str = "
    SELECT i.namespace, i.key, i.version
    FROM unnest($1::bytea[], $2::text[]) AS wanted (namespace, key)
        JOIN {schema}.superstep_store_items AS i ON i.namespace = wanted.namespace AND i.key = wanted.key
";
pub(crate) const DELETE: &str = "
    DELETE FROM {schema}.superstep_store_items AS i USING unnest($1::bytea[], $2::text[]) AS gone (namespace, key)
    WHERE i.namespace = gone.namespace AND i.key = gone.key
";
/// `$1` is now. An item that is there keeps its place and the time of its creation.
pub(crate) const PUT: &str = "
    INSERT INTO {schema}.superstep_store_items AS i
        (place, namespace, key, value, facts, version, created_at, updated_at, ttl, expires_at)
    SELECT place, namespace, key, value, facts::jsonb, version, $1, $1, ttl, $1 + ttl
    FROM unnest($2::bigint[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[])
        AS new (place, namespace, key, value, facts, version, ttl)
    ON CONFLICT (namespace, key) DO UPDATE SET
        value = excluded.value, facts = excluded.facts, version = excluded.version,
        updated_at = excluded.updated_at, ttl = excluded.ttl, expires_at = excluded.expires_at
    RETURNING i.version, i.place
";
pub(crate) const REFRESH: &str = "
    UPDATE {schema}.superstep_store_items SET expires_at = $1 + ttl
    WHERE place = ANY ($2) AND ttl IS NOT NULL AND expires_at > $1
";
pub(crate) const PUT_SCOPES: &str = "
    INSERT INTO {schema}.superstep_store_scopes (scope, place) SELECT * FROM unnest($1::bytea[], $2::bigint[])
    ON CONFLICT DO NOTHING
";
pub(crate) const DELETE_WORDS: &str = "DELETE FROM {schema}.superstep_store_words WHERE place = ANY ($1)";
pub(crate) const PUT_WORDS: &str =
    "INSERT INTO {schema}.superstep_store_words (word, place) SELECT * FROM unnest($1::text[], $2::bigint[])";
pub(crate) const DELETE_VECTORS: &str = "DELETE FROM {schema}.superstep_store_vectors WHERE place = ANY ($1)";
pub(crate) const PUT_VECTORS: &str = "
    INSERT INTO {schema}.superstep_store_vectors (place, ordinal, vector)
    SELECT place, ordinal, vector::real[]
    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS new (place, ordinal, vector)
";

// With pgvector. Its types and operators are named with the schema that it is in, which takes the place of `{vector}`.

pub(crate) const PGVECTOR_SCHEMA: &str = "
    SELECT n.nspname::text FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'
";

/// How pgvector names a metric: its operator, and the class of operators of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PgvectorMetric {
    pub(crate) operator: &'static str,
    pub(crate) class: &'static str,
}

/// The nearest vectors first, `$5` of them; `$4` is what they are to be near to. The cosine of a zero vector is no
/// number there, and 0 here.
pub(crate) fn nearest(dimensions: usize, metric: PgvectorMetric) -> String {
    let PgvectorMetric { operator, .. } = metric;
    let distance = format!("(v.vector::{{vector}}.vector OPERATOR({{vector}}.{operator}) $4::text::{{vector}}.vector)");
    format!(
        "
        SELECT place, vector, distance FROM (
            SELECT v.place, v.ordinal, v.vector, coalesce(nullif({distance}, 'NaN'), 1) AS distance
            FROM {{schema}}.superstep_store_vectors AS v JOIN {{schema}}.superstep_store_items AS i ON i.place = v.place
            WHERE i.namespace >= $2 AND ($3::bytea IS NULL OR i.namespace < $3)
                AND (i.expires_at IS NULL OR i.expires_at > $1)
                AND array_length(v.vector, 1) = {dimensions}
        ) AS near
        ORDER BY distance, place, ordinal LIMIT $5
        "
    )
}

/// As [`nearest`], in the words that the index of [`create_hnsw`] is for.
pub(crate) fn nearest_by_hnsw(dimensions: usize, metric: PgvectorMetric) -> String {
    let PgvectorMetric { operator, .. } = metric;
    let target = format!("$4::text::{{vector}}.vector({dimensions})");
    let distance = format!("(v.vector::{{vector}}.vector({dimensions})) OPERATOR({{vector}}.{operator}) {target}");
    format!(
        "
        SELECT v.place, v.vector, {distance} AS distance
        FROM {{schema}}.superstep_store_vectors AS v JOIN {{schema}}.superstep_store_items AS i ON i.place = v.place
        WHERE i.namespace >= $2 AND ($3::bytea IS NULL OR i.namespace < $3)
            AND (i.expires_at IS NULL OR i.expires_at > $1)
            AND array_length(v.vector, 1) = {dimensions}
        ORDER BY {distance} LIMIT $5
        "
    )
}

/// Goes on in the index until as many are found as are asked for; until the transaction ends.
pub(crate) const SCAN_ON: &str = "SELECT set_config('hnsw.iterative_scan', 'strict_order', TRUE)";

pub(crate) fn create_hnsw(dimensions: usize, metric: PgvectorMetric) -> String {
    let PgvectorMetric { class, .. } = metric;
    format!(
        "
        CREATE INDEX IF NOT EXISTS superstep_store_vectors_{class}_{dimensions} ON {{schema}}.superstep_store_vectors
        USING hnsw ((vector::{{vector}}.vector({dimensions})) {{vector}}.{class})
        WHERE array_length(vector, 1) = {dimensions}
        "
    )
}
