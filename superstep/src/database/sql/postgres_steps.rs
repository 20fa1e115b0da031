//! PostgreSQL: what saves a step.
//!
//! To plan these statements takes several times as long as to run them, and a session behind a pooler may not keep
//! prepared ones. So they are functions, whose plans a server keeps by itself. A plan that is kept must suit tables of
//! any size, even if it was made when they were empty.

use super::postgres_checkpoints::{digest, space, thread};

/// A function with the rows of one statement.
macro_rules! function {
    ($signature:literal, $($statement:tt)+) => {
        concat!(
            "CREATE OR REPLACE FUNCTION {schema}.",
            $signature,
            " LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $function$
    BEGIN RETURN QUERY
    ",
            $($statement)+,
            ";
    END $function$;
    "
        )
    };
}

macro_rules! put {
    () => {
        function!(
            "superstep_put (
        TEXT, BIGINT, TEXT, BYTEA, BYTEA, BYTEA, BYTEA, BYTEA, BIGINT, BIGINT, BIGINT, TEXT, BYTEA, BOOLEAN, BYTEA, BYTEA,
        BYTEA[], BYTEA[], BYTEA[]
    ) RETURNS TABLE (saved_space BIGINT, saved_depth BIGINT)",
            "WITH lease AS MATERIALIZED (
        SELECT t.key FROM {schema}.superstep_threads t WHERE ",
            thread!("$1"),
            " AND t.epoch = $2 FOR SHARE
    ),
    space AS MATERIALIZED (
        SELECT s.key FROM {schema}.superstep_spaces s WHERE s.thread = (SELECT key FROM lease) AND ",
            space!("$3"),
            "
    ),
    base AS MATERIALIZED (
        SELECT c.depth FROM {schema}.superstep_checkpoints c
        WHERE c.space = (SELECT key FROM space) AND c.id = $7 FOR KEY SHARE
    ),
    ready AS MATERIALIZED (
        SELECT coalesce((SELECT depth FROM base), 0) + 1 AS depth
        WHERE EXISTS (SELECT FROM lease) AND ($7 IS NULL OR EXISTS (SELECT FROM base)) AND NOT EXISTS (
            SELECT FROM {schema}.superstep_pending p
            WHERE p.space = (SELECT key FROM space) AND p.checkpoint = $7 AND p.task = ANY ($17)
        )
    ),
    moved AS (
        UPDATE {schema}.superstep_spaces SET head = $5, used_at = now()
        WHERE key = (SELECT key FROM space) AND head = $4 AND head < $5 AND EXISTS (SELECT FROM ready)
        RETURNING key
    ),
    made AS (
        INSERT INTO {schema}.superstep_spaces (thread, digest, name, head, used_at)
        SELECT (SELECT key FROM lease), ",
            digest!("$3"),
            ", $3, $5, now() FROM ready
        WHERE $4 IS NULL AND NOT EXISTS (SELECT FROM space)
        ON CONFLICT DO NOTHING RETURNING key
    ),
    place AS (SELECT key FROM moved UNION ALL SELECT key FROM made),
    shaped AS (
        INSERT INTO {schema}.superstep_shapes (digest, body) SELECT $13, $16 FROM place WHERE $16 IS NOT NULL
        ON CONFLICT (digest) DO UPDATE SET body = excluded.body
    ),
    waiting AS (
        INSERT INTO {schema}.superstep_pending (space, checkpoint, task, consumed, body)
        SELECT place.key, $7, w.task, w.consumed, w.body
        FROM place CROSS JOIN unnest($17, $18, $19) AS w (task, consumed, body)
    )
    INSERT INTO {schema}.superstep_checkpoints
        (space, id, parent, base, root, source, step, created_at, run, depth, shape, needs_base, body)
    SELECT place.key, $5, $6, $7, $8, $9, $10, $11, $12, ready.depth, $13, $14, $15 FROM place CROSS JOIN ready
    RETURNING space, depth::BIGINT"
        )
    };
}

macro_rules! put_writes {
    () => {
        // The namespace is held first, as in `superstep_put`: two that wait for each other would wait for ever.
        function!(
            "superstep_put_writes (TEXT, BIGINT, TEXT, BYTEA, BYTEA, BYTEA, BYTEA) RETURNS SETOF BIGINT",
            "WITH lease AS MATERIALIZED (
        SELECT t.key FROM {schema}.superstep_threads t WHERE ",
            thread!("$1"),
            " AND t.epoch = $2 FOR SHARE
    ),
    space AS MATERIALIZED (
        SELECT s.key FROM {schema}.superstep_spaces s WHERE s.thread = (SELECT key FROM lease) AND ",
            space!("$3"),
            "
    ),
    checkpoint AS MATERIALIZED (
        SELECT FROM {schema}.superstep_checkpoints c
        WHERE c.space = (SELECT key FROM space) AND c.id = $4 FOR KEY SHARE
    ),
    touched AS (
        UPDATE {schema}.superstep_spaces SET used_at = now()
        WHERE key = (SELECT key FROM space) AND EXISTS (SELECT FROM checkpoint) RETURNING key
    )
    INSERT INTO {schema}.superstep_pending (space, checkpoint, task, consumed, body)
    SELECT key, $4, $5, $6, $7 FROM touched ON CONFLICT DO NOTHING RETURNING space"
        )
    };
}

/// The functions, each of which may be made again.
pub(super) const FUNCTIONS: &str = concat!(put!(), put_writes!());

/// Saves a checkpoint with what tasks wrote, or writes nothing and gives no row.
pub(crate) const PUT: &str = "
    SELECT * FROM {schema}.superstep_put(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19
    )
";

/// Saves what a task wrote, or gives no row: nothing but the time of use is written then.
pub(crate) const PUT_WRITES: &str = "SELECT * FROM {schema}.superstep_put_writes($1, $2, $3, $4, $5, $6, $7)";
