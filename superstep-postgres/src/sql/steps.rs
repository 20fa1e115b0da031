//! PostgreSQL: what saves steps.
//!
//! To plan these statements takes several times as long as to run them, and a session behind a pooler may not keep
//! prepared ones. So they are in a function, whose plans a server keeps by itself. A plan that is kept must suit tables
//! of any size, even if it was made when they were empty.

use super::checkpoints::{digest, space, thread};

/// The function of early releases, which gives nothing if it writes nothing. Theirs may run beside this one.
pub(super) const EARLY_FUNCTION: &str = concat!(
    "
    CREATE OR REPLACE FUNCTION {schema}.superstep_save (
        thread_name TEXT, leased BIGINT, space_name TEXT, old_head BYTEA, new_head BYTEA, built_on BYTEA,
        ids BYTEA[], parents BYTEA[], bases BYTEA[], roots BYTEA[], sources BIGINT[], steps BIGINT[], moments BIGINT[],
        runs TEXT[], shapes BYTEA[], shape_bodies BYTEA[], cuts BOOLEAN[], bodies BYTEA[],
        places BYTEA[], tasks BYTEA[], consumers BYTEA[], task_bodies BYTEA[]
    ) RETURNS BIGINT[]
    LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $function$
    DECLARE
        held BIGINT;
        place BIGINT;
        below BIGINT := 0;
        is_known BOOLEAN;
    BEGIN
        SELECT t.key INTO held FROM {schema}.superstep_threads t WHERE ",
    thread!("thread_name"),
    " AND t.epoch = leased FOR SHARE;
        IF NOT FOUND THEN RETURN NULL; END IF;
        SELECT s.key INTO place FROM {schema}.superstep_spaces s WHERE s.thread = held AND ",
    space!("space_name"),
    ";
        IF NOT FOUND THEN
            IF new_head IS NULL OR old_head IS NOT NULL OR built_on IS NOT NULL THEN RETURN NULL; END IF;
            INSERT INTO {schema}.superstep_spaces (thread, digest, name, head, used_at)
            VALUES (held, ",
    digest!("space_name"),
    ", space_name, new_head, now()) ON CONFLICT DO NOTHING RETURNING key INTO place;
            IF NOT FOUND THEN RETURN NULL; END IF;
        ELSE
            IF built_on IS NOT NULL THEN
                SELECT c.depth, EXISTS (
                    SELECT FROM {schema}.superstep_pending p
                    WHERE p.space = place AND p.checkpoint = built_on AND p.task = ANY (tasks)
                ) INTO below, is_known
                FROM {schema}.superstep_checkpoints c WHERE c.space = place AND c.id = built_on FOR KEY SHARE;
                IF NOT FOUND OR is_known THEN RETURN NULL; END IF;
            END IF;
            UPDATE {schema}.superstep_spaces SET head = coalesce(new_head, head), used_at = now()
            WHERE key = place AND (new_head IS NULL OR head = old_head AND head < new_head);
            IF NOT FOUND THEN RETURN NULL; END IF;
        END IF;
        IF cardinality(shape_bodies) > 0 THEN
            INSERT INTO {schema}.superstep_shapes (digest, body)
            SELECT DISTINCT ON (u.shape) u.shape, u.body
            FROM unnest(shapes, shape_bodies) AS u (shape, body) WHERE u.body IS NOT NULL
            ON CONFLICT (digest) DO NOTHING;
        END IF;
        IF cardinality(tasks) > 0 THEN
            INSERT INTO {schema}.superstep_pending (space, checkpoint, task, consumed, body)
            SELECT place, w.* FROM unnest(places, tasks, consumers, task_bodies) AS w;
        END IF;
        IF cardinality(ids) > 0 THEN
            INSERT INTO {schema}.superstep_checkpoints
                (space, id, parent, base, root, source, step, created_at, run, shape, needs_base, body, depth)
            SELECT place, u.id, u.parent, u.base, u.root, u.source, u.step, u.created_at, u.run, u.shape, u.needs_base,
                u.body, below + u.number
            FROM unnest(ids, parents, bases, roots, sources, steps, moments, runs, shapes, cuts, bodies)
                WITH ORDINALITY AS u
                (id, parent, base, root, source, step, created_at, run, shape, needs_base, body, number);
        END IF;
        RETURN ARRAY[place, below + cardinality(ids)];
    END $function$;
    "
);

/// The function, which may be made again. It gives the namespace and the depth of the last checkpoint, or nothing of both if
/// it has written nothing; and what it found: the epoch of the thread, the latest checkpoint before, whether the one that is
/// built on is there.
///
/// All is looked at before anything is written, so that what is refused leaves no error in the server's log. Rows come
/// one upon another: the first one is built on `built_on`, each other one on the one before it.
pub(super) const FUNCTION: &str = concat!(
    "
    CREATE OR REPLACE FUNCTION {schema}.superstep_put (
        thread_name TEXT, leased BIGINT, space_name TEXT, old_head BYTEA, new_head BYTEA, built_on BYTEA,
        ids BYTEA[], parents BYTEA[], bases BYTEA[], roots BYTEA[], sources BIGINT[], steps BIGINT[], moments BIGINT[],
        runs TEXT[], shapes BYTEA[], shape_bodies BYTEA[], cuts BOOLEAN[], bodies BYTEA[],
        places BYTEA[], tasks BYTEA[], consumers BYTEA[], task_bodies BYTEA[],
        OUT placed BIGINT, OUT last_depth BIGINT, OUT found_epoch BIGINT, OUT found_head BYTEA, OUT has_base BOOLEAN
    )
    LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $function$
    DECLARE
        held BIGINT;
        place BIGINT;
        below BIGINT := 0;
        is_known BOOLEAN;
    BEGIN
        has_base := built_on IS NULL;
        SELECT t.key, t.epoch INTO held, found_epoch FROM {schema}.superstep_threads t WHERE ",
    thread!("thread_name"),
    " FOR SHARE;
        IF NOT FOUND OR found_epoch <> leased THEN RETURN; END IF;
        SELECT s.key, s.head INTO place, found_head FROM {schema}.superstep_spaces s WHERE s.thread = held AND ",
    space!("space_name"),
    ";
        IF NOT FOUND THEN
            IF new_head IS NULL OR old_head IS NOT NULL OR built_on IS NOT NULL THEN RETURN; END IF;
            INSERT INTO {schema}.superstep_spaces (thread, digest, name, head, used_at)
            VALUES (held, ",
    digest!("space_name"),
    ", space_name, new_head, now()) ON CONFLICT DO NOTHING RETURNING key INTO place;
            IF NOT FOUND THEN RETURN; END IF;
        ELSE
            IF built_on IS NOT NULL THEN
                SELECT c.depth, EXISTS (
                    SELECT FROM {schema}.superstep_pending p
                    WHERE p.space = place AND p.checkpoint = built_on AND p.task = ANY (tasks)
                ) INTO below, is_known
                FROM {schema}.superstep_checkpoints c WHERE c.space = place AND c.id = built_on FOR KEY SHARE;
                has_base := FOUND;
                IF NOT has_base OR is_known THEN RETURN; END IF;
            END IF;
            UPDATE {schema}.superstep_spaces SET head = coalesce(new_head, head), used_at = now()
            WHERE key = place AND (new_head IS NULL OR head = old_head AND head < new_head);
            IF NOT FOUND THEN
                SELECT s.head INTO found_head FROM {schema}.superstep_spaces s WHERE s.key = place;
                RETURN;
            END IF;
        END IF;
        IF cardinality(shape_bodies) > 0 THEN
            INSERT INTO {schema}.superstep_shapes (digest, body)
            SELECT DISTINCT ON (u.shape) u.shape, u.body
            FROM unnest(shapes, shape_bodies) AS u (shape, body) WHERE u.body IS NOT NULL
            ON CONFLICT (digest) DO NOTHING;
        END IF;
        IF cardinality(tasks) > 0 THEN
            INSERT INTO {schema}.superstep_pending (space, checkpoint, task, consumed, body)
            SELECT place, w.* FROM unnest(places, tasks, consumers, task_bodies) AS w;
        END IF;
        IF cardinality(ids) > 0 THEN
            INSERT INTO {schema}.superstep_checkpoints
                (space, id, parent, base, root, source, step, created_at, run, shape, needs_base, body, depth)
            SELECT place, u.id, u.parent, u.base, u.root, u.source, u.step, u.created_at, u.run, u.shape, u.needs_base,
                u.body, below + u.number
            FROM unnest(ids, parents, bases, roots, sources, steps, moments, runs, shapes, cuts, bodies)
                WITH ORDINALITY AS u
                (id, parent, base, root, source, step, created_at, run, shape, needs_base, body, number);
        END IF;
        placed := place;
        last_depth := below + cardinality(ids);
    END $function$;
    "
);

/// Saves checkpoints and what tasks wrote.
pub(crate) const SAVE: &str = "
    SELECT * FROM {schema}.superstep_put(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22
    )
";
