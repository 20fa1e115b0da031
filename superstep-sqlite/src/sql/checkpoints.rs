//! SQLite: checkpoints.

use superstep_storage::database::Component;

/// The tables, version by version.
pub(crate) const COMPONENT: Component = Component { name: "checkpoints", scripts: SCRIPTS };

const SCRIPTS: &[&str] = &[
    "
    CREATE TABLE superstep_epochs (last INTEGER NOT NULL);
    INSERT INTO superstep_epochs (last) VALUES (0);
    CREATE TABLE superstep_threads (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        epoch INTEGER NOT NULL,
        claimed_at INTEGER NOT NULL
    );
    CREATE TABLE superstep_spaces (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        thread INTEGER NOT NULL,
        name TEXT NOT NULL,
        head BLOB NOT NULL,
        used_at INTEGER NOT NULL,
        UNIQUE (thread, name)
    );
    CREATE TABLE superstep_checkpoints (
        space INTEGER NOT NULL,
        id BLOB NOT NULL,
        parent BLOB,
        base BLOB,
        root BLOB,
        source INTEGER NOT NULL,
        step INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        run TEXT,
        depth INTEGER NOT NULL,
        shape BLOB NOT NULL,
        needs_base INTEGER NOT NULL,
        body BLOB NOT NULL,
        owners BLOB,
        outline BLOB
    );
    CREATE INDEX superstep_checkpoints_by_id ON superstep_checkpoints (space, id, base, depth);
    CREATE INDEX superstep_checkpoints_by_run ON superstep_checkpoints (run) WHERE run IS NOT NULL;
    CREATE TABLE superstep_pending (
        space INTEGER NOT NULL,
        checkpoint BLOB NOT NULL,
        task BLOB NOT NULL,
        consumed BLOB,
        body BLOB NOT NULL
    );
    CREATE UNIQUE INDEX superstep_pending_by_task ON superstep_pending (space, checkpoint, task);
    CREATE TABLE superstep_shapes (digest BLOB NOT NULL PRIMARY KEY, body BLOB NOT NULL);
",
    PAGES,
    // How often rows were removed from a namespace: whoever wrote them knows by it whether they are still there.
    "ALTER TABLE superstep_spaces ADD COLUMN removals INTEGER NOT NULL DEFAULT 0;",
    // Nobody counts any more. Whoever still does must not find the column: it would miss what others remove.
    "ALTER TABLE superstep_spaces DROP COLUMN removals;",
    WRITERS,
];

/// A commit appends each page that it touched to the log: a run is noted once for a namespace, not with each of its
/// checkpoints, and what the only task of a step wrote lies in the row of the checkpoint that took it in.
const PAGES: &str = "
    CREATE TABLE superstep_runs (
        run TEXT NOT NULL,
        space INTEGER NOT NULL,
        PRIMARY KEY (run, space)
    ) WITHOUT ROWID;
    INSERT INTO superstep_runs
        SELECT DISTINCT run, space FROM superstep_checkpoints WHERE run IS NOT NULL ORDER BY run, space;
    DROP INDEX superstep_checkpoints_by_run;
    ALTER TABLE superstep_checkpoints ADD COLUMN took BLOB;
";

/// The runs that wrote under checkpoints, which may be those of others.
const WRITERS: &str = "
    CREATE TABLE superstep_writers (
        run TEXT NOT NULL,
        space INTEGER NOT NULL,
        PRIMARY KEY (run, space)
    ) WITHOUT ROWID;
    CREATE INDEX superstep_writers_by_space ON superstep_writers (space);
";

// Claims.

pub(crate) const NEXT_EPOCH: &str = "UPDATE superstep_epochs SET last = last + 1 RETURNING last";
pub(crate) const CLAIM: &str = "
    INSERT INTO superstep_threads (name, epoch, claimed_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, claimed_at = excluded.claimed_at
";

// Writing.

/// The thread of a lease, and the namespace if it is there; the depth of row `?3`, and whether it has pending writes.
pub(crate) const LEASED: &str = "
    SELECT t.key, t.epoch, s.key, s.head,
        (SELECT c.depth FROM superstep_checkpoints c WHERE c.space = s.key AND c.id = ?3),
        EXISTS (SELECT 1 FROM superstep_pending p WHERE p.space = s.key AND p.checkpoint = ?3)
    FROM superstep_threads t LEFT JOIN superstep_spaces s ON s.thread = t.key AND s.name = ?2
    WHERE t.name = ?1
";
pub(crate) const ADD_SPACE: &str =
    "INSERT INTO superstep_spaces (thread, name, head, used_at) VALUES (?1, ?2, ?3, ?4) RETURNING key";
pub(crate) const MOVE_HEAD: &str = "UPDATE superstep_spaces SET head = ?2, used_at = ?3 WHERE key = ?1";
pub(crate) const TOUCH: &str = "UPDATE superstep_spaces SET used_at = ?2 WHERE key = ?1";
/// One that is there stays: others can open it.
pub(crate) const ADD_SHAPE: &str =
    "INSERT INTO superstep_shapes (digest, body) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING";
pub(crate) const ADD_CHECKPOINT: &str = "
    INSERT INTO superstep_checkpoints
        (space, id, parent, base, root, source, step, created_at, run, depth, shape, needs_base, body, took)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
";
pub(crate) const ADD_RUN: &str = "INSERT INTO superstep_runs (run, space) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
pub(crate) const ADD_WRITER: &str = "INSERT INTO superstep_writers (run, space) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
pub(crate) const SET_OUTLINE: &str =
    "UPDATE superstep_checkpoints SET depth = 0, owners = ?3, outline = ?4 WHERE space = ?1 AND id = ?2";
pub(crate) const FIND_PENDING: &str =
    "SELECT consumed, body FROM superstep_pending WHERE space = ?1 AND checkpoint = ?2 AND task = ?3";
/// Nothing, if something is known of the task.
pub(crate) const ADD_PENDING: &str = "
    INSERT INTO superstep_pending (space, checkpoint, task, consumed, body) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (space, checkpoint, task) DO NOTHING
";
pub(crate) const SET_PENDING: &str = "
    INSERT INTO superstep_pending (space, checkpoint, task, consumed, body) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (space, checkpoint, task) DO UPDATE SET consumed = excluded.consumed, body = excluded.body
";

macro_rules! next {
    () => {
        "(SELECT min(n.id) FROM superstep_checkpoints n WHERE n.space = ?1 AND n.id > ?2)"
    };
}

/// The writes that the next row holds, if it is based on row `?2`.
pub(crate) const INLINED: &str = concat!(
    "SELECT c.id, c.took FROM superstep_checkpoints c WHERE c.space = ?1 AND c.id = ",
    next!(),
    " AND c.base = ?2 AND c.took IS NOT NULL"
);
pub(crate) const FORGET_INLINED: &str = concat!(
    "UPDATE superstep_checkpoints SET took = NULL WHERE space = ?1 AND id = ",
    next!(),
    " AND base = ?2 AND took IS NOT NULL"
);

// Reading. A cross join is read from left to right: from the few rows that are wanted to the many that there are.
// Rows of several kinds come together: 0 are checkpoints, 1 pending writes, 2 shapes, 3 the head and the newest, 4 what was
// asked for, 5 the writes that the next row after that holds. The next row comes along even if it holds none: a damaged one
// between the two is seen when it is opened.

macro_rules! namespace {
    () => {
        "WITH RECURSIVE namespace (space, head) AS MATERIALIZED (
        SELECT s.key, s.head FROM superstep_threads t JOIN superstep_spaces s ON s.thread = t.key
        WHERE t.name = ?1 AND s.name = ?2 AND (?3 IS NULL OR t.claimed_at > ?3 OR
            (SELECT max(x.used_at) FROM superstep_spaces x WHERE x.thread = t.key) > ?3)
    ),"
    };
}

macro_rules! columns {
    () => {
        "c.id, c.parent, c.base, c.root, c.source, c.step, c.created_at, c.run, c.shape, c.body, c.outline, c.needs_base"
    };
}

macro_rules! rows {
    () => {
        concat!(
            "
    chain (id, base, depth) AS (
        SELECT c.id, c.base, c.depth
        FROM listed CROSS JOIN superstep_checkpoints c ON c.space = (SELECT space FROM namespace) AND c.id = listed.id
        UNION
        SELECT c.id, c.base, c.depth
        FROM chain CROSS JOIN superstep_checkpoints c ON c.space = (SELECT space FROM namespace) AND c.id = chain.base
        WHERE chain.depth > 0
    ),
    cut (owners, at) AS (
        SELECT c.owners, 1
        FROM chain CROSS JOIN superstep_checkpoints c ON c.space = (SELECT space FROM namespace) AND c.id = chain.id
        WHERE chain.depth = 0 AND length(c.owners) > 0
        UNION ALL
        SELECT owners, at + 16 FROM cut WHERE at + 16 < length(owners)
    ),
    next (id) AS (
        SELECT (
            SELECT min(c.id) FROM superstep_checkpoints c
            WHERE c.space = (SELECT space FROM namespace) AND c.id > listed.id
        ) FROM listed
    ),
    inlined (id, took) AS MATERIALIZED (
        SELECT c.id, c.took
        FROM next CROSS JOIN superstep_checkpoints c ON c.space = (SELECT space FROM namespace) AND c.id = next.id
        WHERE c.took IS NOT NULL
    ),
    wanted (id) AS (
        SELECT id FROM chain
        UNION
        SELECT id FROM next WHERE id IS NOT NULL
        UNION
        SELECT substr(owners, at, 16) FROM cut
        UNION
        SELECT p.consumed
        FROM listed CROSS JOIN superstep_pending p ON p.space = (SELECT space FROM namespace) AND p.checkpoint = listed.id
        WHERE p.consumed IS NOT NULL
    ),
    needed (id) AS (
        SELECT id FROM wanted
        UNION
        SELECT c.base
        FROM wanted CROSS JOIN superstep_checkpoints c ON c.space = (SELECT space FROM namespace) AND c.id = wanted.id
        WHERE c.needs_base
    )
    SELECT 0, ",
            columns!(),
            "
    FROM needed CROSS JOIN superstep_checkpoints c ON c.space = (SELECT space FROM namespace) AND c.id = needed.id
    UNION ALL
    SELECT 1, p.checkpoint, p.task, p.consumed, NULL, NULL, NULL, NULL, NULL, NULL, p.body, NULL, NULL
    FROM listed CROSS JOIN superstep_pending p ON p.space = (SELECT space FROM namespace) AND p.checkpoint = listed.id
    UNION ALL
    SELECT 2, s.digest, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, s.body, NULL, NULL
    FROM superstep_shapes s WHERE s.digest IN (
        SELECT c.shape
        FROM listed CROSS JOIN superstep_checkpoints c ON c.space = (SELECT space FROM namespace) AND c.id = listed.id
    )
    UNION ALL
    SELECT 5, id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, took, NULL, NULL FROM inlined
    UNION ALL
    SELECT 4, id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM listed
    UNION ALL
    SELECT 3, head, (SELECT max(c.id) FROM superstep_checkpoints c WHERE c.space = namespace.space),
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM namespace"
        )
    };
}

/// A checkpoint: the one with id `?4`, or the latest.
pub(crate) const GET: &str = concat!(
    namespace!(),
    "
    listed (id) AS MATERIALIZED (SELECT coalesce(?4, head) FROM namespace),",
    rows!()
);

/// The checkpoints of a query, with all that is needed to put them together.
pub(crate) const LIST: &str = concat!(
    namespace!(),
    "
    listed (id) AS MATERIALIZED (
        SELECT id FROM superstep_checkpoints
        WHERE space = (SELECT space FROM namespace) AND id < coalesce(?4, x'ffffffffffffffffffffffffffffffffff')
            AND (?5 IS NULL OR id = ?5) AND (?6 IS NULL OR source = ?6) AND (?7 IS NULL OR step = ?7)
            AND (?9 IS NULL OR run = ?9)
        ORDER BY id DESC LIMIT ?8
    ),",
    rows!()
);

/// The rows of a namespace from one down to older ones, and how far they are from an outline.
pub(crate) const ROWS_DOWN: &str = concat!(
    "SELECT 0, ",
    columns!(),
    ", c.depth FROM superstep_checkpoints c WHERE c.space = ?1 AND c.id <= ?2 ORDER BY c.id DESC"
);

pub(crate) const NAMESPACES: &str = "
    SELECT s.name FROM superstep_threads t JOIN superstep_spaces s ON s.thread = t.key
    WHERE t.name = ?1 AND (?2 IS NULL OR t.claimed_at > ?2 OR
        (SELECT max(x.used_at) FROM superstep_spaces x WHERE x.thread = t.key) > ?2)
    ORDER BY s.name
";
pub(crate) const THREADS: &str = "
    SELECT t.name FROM superstep_threads t
    WHERE (?1 IS NULL OR t.name > ?1) AND EXISTS (
        SELECT 1 FROM superstep_spaces s
        WHERE s.thread = t.key AND (?2 IS NULL OR t.claimed_at > ?2 OR s.used_at > ?2)
    )
    ORDER BY t.name LIMIT ?3
";

// Housekeeping.

pub(crate) const SPACES: &str = "
    SELECT s.key, s.name, s.head FROM superstep_threads t JOIN superstep_spaces s ON s.thread = t.key
    WHERE t.name = ?1 ORDER BY s.name
";
pub(crate) const SHAPE: &str = "SELECT body FROM superstep_shapes WHERE digest = ?1";
pub(crate) const THREAD: &str = "SELECT key FROM superstep_threads WHERE name = ?1";
/// Whether there are checkpoints of a thread, and it has not expired.
pub(crate) const IS_ALIVE: &str = "
    SELECT EXISTS (
        SELECT 1 FROM superstep_threads t JOIN superstep_spaces s ON s.thread = t.key
        WHERE t.name = ?1 AND (?2 IS NULL OR t.claimed_at > ?2 OR s.used_at > ?2)
    )
";
pub(crate) const REMOVE_THREAD: &str = "DELETE FROM superstep_threads WHERE name = ?1 RETURNING key";
/// The same if it was claimed and used last at `?2` or before.
pub(crate) const REMOVE_EXPIRED: &str = "
    DELETE FROM superstep_threads AS t
    WHERE t.name = ?1 AND t.claimed_at <= ?2
        AND NOT EXISTS (SELECT 1 FROM superstep_spaces s WHERE s.thread = t.key AND s.used_at > ?2)
    RETURNING key
";
/// The same if nothing is left of it.
pub(crate) const REMOVE_EMPTY: &str = "
    DELETE FROM superstep_threads AS t
    WHERE t.name = ?1 AND NOT EXISTS (SELECT 1 FROM superstep_spaces s WHERE s.thread = t.key)
";
/// So many threads that were claimed at `?1` or before, and never written to or emptied since.
pub(crate) const REMOVE_IDLE: &str = "
    DELETE FROM superstep_threads WHERE key IN (
        SELECT t.key FROM superstep_threads t
        WHERE t.claimed_at <= ?1 AND NOT EXISTS (SELECT 1 FROM superstep_spaces s WHERE s.thread = t.key) LIMIT ?2
    )
";
pub(crate) const REMOVE_SPACES: &str = "DELETE FROM superstep_spaces WHERE thread = ?1 RETURNING key";
pub(crate) const REMOVE_SPACE: &str = "DELETE FROM superstep_spaces WHERE key = ?1";
pub(crate) const SOME_CHECKPOINTS: &str = "
    DELETE FROM superstep_checkpoints WHERE rowid IN (
        SELECT rowid FROM superstep_checkpoints WHERE space = ?1 LIMIT ?2
    ) RETURNING run
";
pub(crate) const SOME_PENDING: &str = "
    DELETE FROM superstep_pending WHERE rowid IN (SELECT rowid FROM superstep_pending WHERE space = ?1 LIMIT ?2)
";
/// All rows of a namespace without what is in them.
pub(crate) const SUMMARIES: &str = "
    SELECT id, base, root, created_at, depth FROM superstep_checkpoints WHERE space = ?1 ORDER BY id
";
/// The namespaces that a run wrote to, with their threads.
pub(crate) const SPACES_OF_RUN: &str = "
    SELECT t.name, s.key FROM superstep_spaces s JOIN superstep_threads t ON t.key = s.thread
    WHERE s.key IN (
        SELECT r.space FROM superstep_runs r WHERE r.run = ?1
        UNION
        SELECT w.space FROM superstep_writers w WHERE w.run = ?1
    ) ORDER BY s.key
";
pub(crate) const OF_RUN: &str =
    "SELECT id FROM superstep_checkpoints WHERE space = ?1 AND run = ?2 ORDER BY id LIMIT ?3";
pub(crate) const RUNS: &str = "SELECT DISTINCT run FROM superstep_checkpoints WHERE space = ?1 AND run IS NOT NULL";
pub(crate) const COPY_RUNS: &str =
    "INSERT INTO superstep_runs (run, space) SELECT run, ?2 FROM superstep_runs WHERE space = ?1";
pub(crate) const COPY_WRITERS: &str =
    "INSERT INTO superstep_writers (run, space) SELECT run, ?2 FROM superstep_writers WHERE space = ?1";
pub(crate) const REMOVE_WRITER: &str = "DELETE FROM superstep_writers WHERE run = ?1 AND space = ?2";
pub(crate) const REMOVE_WRITERS: &str = "DELETE FROM superstep_writers WHERE space = ?1";
pub(crate) const REMOVE_RUN: &str = "DELETE FROM superstep_runs WHERE run = ?1 AND space = ?2";
/// What was written under `?2`.
pub(crate) const WRITTEN: &str =
    "SELECT checkpoint, task, consumed, body FROM superstep_pending WHERE space = ?1 AND checkpoint = ?2";
pub(crate) const REMOVE_WRITTEN: &str =
    "DELETE FROM superstep_pending WHERE space = ?1 AND checkpoint = ?2 AND task = ?3";
/// A page of what tasks wrote in a namespace.
pub(crate) const PENDING_PAGE: &str = "
    SELECT checkpoint, task, consumed, body FROM superstep_pending
    WHERE space = ?1 AND (checkpoint, task) > (?2, ?3) ORDER BY checkpoint, task LIMIT ?4
";
pub(crate) const REMOVE_CHECKPOINT: &str =
    "DELETE FROM superstep_checkpoints WHERE space = ?1 AND id = ?2 RETURNING run";
pub(crate) const REMOVE_PENDING: &str = "DELETE FROM superstep_pending WHERE space = ?1 AND checkpoint = ?2";
/// After rows were removed.
pub(crate) const SET_HEAD: &str = "UPDATE superstep_spaces SET head = ?2 WHERE key = ?1";
/// A page of the rows of a namespace, with all that is in them.
pub(crate) const PAGE: &str = concat!(
    "SELECT 0, ",
    columns!(),
    ", c.depth, c.took FROM superstep_checkpoints c WHERE c.space = ?1 AND c.id > ?2 ORDER BY c.id LIMIT ?3"
);
pub(crate) const EXPIRED: &str = "
    SELECT t.name FROM superstep_threads t
    WHERE t.claimed_at <= ?1
        AND NOT EXISTS (SELECT 1 FROM superstep_spaces s WHERE s.thread = t.key AND s.used_at > ?1)
    ORDER BY t.key
";
pub(crate) const ORPHANED_SPACES: &str = "
    DELETE FROM superstep_spaces WHERE key IN (
        SELECT key FROM superstep_spaces WHERE thread NOT IN (SELECT key FROM superstep_threads) LIMIT ?1
    )
";
/// The namespaces that are gone, but whose rows are not. None of them comes again: keys are given out once.
pub(crate) const LOST_SPACES: &str = "
    SELECT space FROM superstep_checkpoints WHERE space NOT IN (SELECT key FROM superstep_spaces)
    UNION
    SELECT space FROM superstep_pending WHERE space NOT IN (SELECT key FROM superstep_spaces)
";
pub(crate) const ORPHANED_PENDING: &str = "
    DELETE FROM superstep_pending WHERE rowid IN (
        SELECT p.rowid FROM superstep_pending p WHERE NOT EXISTS (
            SELECT 1 FROM superstep_checkpoints c WHERE c.space = p.space AND c.id = p.checkpoint
        ) LIMIT ?1
    )
";
pub(crate) const ORPHANED_RUNS: &str = "
    DELETE FROM superstep_runs WHERE (run, space) IN (
        SELECT run, space FROM superstep_runs WHERE space NOT IN (SELECT key FROM superstep_spaces) LIMIT ?1
    )
";
