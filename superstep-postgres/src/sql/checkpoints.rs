//! PostgreSQL: checkpoints.
//!
//! Who writes to a thread holds its row: `FOR SHARE` to add to it, `FOR NO KEY UPDATE` to take away from it, so that
//! both wait for each other and for claims. A statement that has waited continues with the snapshot that it began with;
//! only rows that it locks or changes are looked at again. So a statement that adds locks every row that it relies on,
//! and one that takes away comes after another one that took the lock.

use superstep_storage::database::Component;

macro_rules! digest {
    ($name:literal) => {
        concat!("sha256(convert_to(", $name, ", 'UTF8'))")
    };
}

/// The thread with a name.
macro_rules! thread {
    ($name:literal) => {
        concat!("t.digest = ", digest!($name), " AND t.name = ", $name)
    };
}

/// The namespace with a name.
macro_rules! space {
    ($name:literal) => {
        concat!("s.digest = ", digest!($name), " AND s.name = ", $name)
    };
}

pub(super) use {digest, space, thread};

/// The moment so many microseconds ago.
macro_rules! ago {
    ($ttl:literal) => {
        concat!("(now() - ", $ttl, "::BIGINT * interval '1 microsecond')")
    };
}

/// Whether thread `t` was claimed or a namespace of it used within so many microseconds, if they matter.
macro_rules! alive {
    ($space:literal, $ttl:literal) => {
        concat!("(", $ttl, "::BIGINT IS NULL OR greatest(t.claimed_at, ", $space, ".used_at) > ", ago!($ttl), ")")
    };
}

/// Whether thread `t` was neither claimed nor used for so many microseconds.
macro_rules! expired {
    ($ttl:literal) => {
        concat!(
            "t.claimed_at <= ",
            ago!($ttl),
            " AND NOT EXISTS (SELECT FROM {schema}.superstep_spaces s WHERE s.thread = t.key AND s.used_at > ",
            ago!($ttl),
            ")"
        )
    };
}

/// Whether thread `t` holds nothing, and was claimed long ago.
macro_rules! idle {
    () => {
        "t.claimed_at <= now() - interval '1 day'
        AND NOT EXISTS (SELECT FROM {schema}.superstep_spaces s WHERE s.thread = t.key)"
    };
}

/// Columns of the checkpoint with an id, looked up in the index whatever the planner thinks of the table.
macro_rules! checkpoint {
    ($columns:expr, $space:literal, $id:literal) => {
        concat!(
            "CROSS JOIN LATERAL (SELECT ",
            $columns,
            " FROM {schema}.superstep_checkpoints c WHERE c.space = ",
            $space,
            " AND c.id = ",
            $id,
            " LIMIT 1) c"
        )
    };
}

/// The tables, version by version. Names may be longer than an index takes, so their digests are indexed; the names
/// of threads are also in order.
pub(crate) const COMPONENT: Component = Component { name: "checkpoints", scripts: SCRIPTS };

const SCRIPTS: &[&str] = &[
    "
    CREATE TABLE IF NOT EXISTS {schema}.superstep_threads (
        key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        epoch BIGINT GENERATED ALWAYS AS IDENTITY,
        claimed_at TIMESTAMPTZ NOT NULL,
        digest BYTEA NOT NULL UNIQUE,
        name TEXT COLLATE \"C\" NOT NULL
    );
    CREATE INDEX IF NOT EXISTS superstep_threads_by_name ON {schema}.superstep_threads (left(name, 200));
    CREATE TABLE IF NOT EXISTS {schema}.superstep_spaces (
        key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        thread BIGINT NOT NULL,
        used_at TIMESTAMPTZ NOT NULL,
        digest BYTEA NOT NULL,
        name TEXT COLLATE \"C\" NOT NULL,
        head BYTEA NOT NULL,
        UNIQUE (thread, digest)
    );
    CREATE TABLE IF NOT EXISTS {schema}.superstep_checkpoints (
        space BIGINT NOT NULL,
        step BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        depth INT NOT NULL,
        source SMALLINT NOT NULL,
        needs_base BOOLEAN NOT NULL,
        id BYTEA NOT NULL,
        parent BYTEA,
        base BYTEA,
        root BYTEA,
        shape BYTEA NOT NULL,
        run TEXT COLLATE \"C\",
        body BYTEA NOT NULL,
        owners BYTEA[],
        outline BYTEA,
        PRIMARY KEY (space, id)
    );
    CREATE INDEX IF NOT EXISTS superstep_checkpoints_by_run
        ON {schema}.superstep_checkpoints (hashtextextended(run, 0)) WHERE run IS NOT NULL;
    CREATE TABLE IF NOT EXISTS {schema}.superstep_pending (
        space BIGINT NOT NULL,
        checkpoint BYTEA NOT NULL,
        task BYTEA NOT NULL,
        consumed BYTEA,
        body BYTEA NOT NULL,
        PRIMARY KEY (space, checkpoint, task)
    );
    CREATE TABLE IF NOT EXISTS {schema}.superstep_shapes (
        digest BYTEA NOT NULL PRIMARY KEY,
        body BYTEA NOT NULL
    );
",
    super::steps::EARLY_FUNCTION,
    super::steps::FUNCTION,
    RUNS,
];

/// Runs that wrote under checkpoints, which may be those of others, by the digests of their ids.
const RUNS: &str = "
    CREATE TABLE IF NOT EXISTS {schema}.superstep_runs (
        space BIGINT NOT NULL,
        digest BYTEA NOT NULL,
        PRIMARY KEY (digest, space)
    );
    CREATE INDEX IF NOT EXISTS superstep_runs_by_space ON {schema}.superstep_runs (space);
";

// Transactions that are sent in one go. Whatever a server's default is, each statement sees what was committed before.

pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
pub(crate) const LIMIT: &str = "SET LOCAL lock_timeout = '12s'";
pub(crate) const COMMIT: &str = "COMMIT";

// Claims.

/// The epoch is taken when the row is held, so that later claims have greater ones.
pub(crate) const CLAIM: &str = concat!(
    "INSERT INTO {schema}.superstep_threads (digest, name, claimed_at) VALUES (",
    digest!("$1"),
    ", $1, now()) ON CONFLICT (digest) DO UPDATE SET epoch = DEFAULT, claimed_at = now() RETURNING key, epoch"
);

/// Keeps everyone else from a thread until the transaction ends.
pub(crate) const SHUT: &str =
    concat!("SELECT t.key FROM {schema}.superstep_threads t WHERE ", thread!("$1"), " FOR UPDATE");

// Writing. What a step needs is in `postgres_steps`.

/// A thread that nobody else may change until the transaction ends.
pub(crate) const HOLD: &str =
    concat!("SELECT t.key, t.epoch FROM {schema}.superstep_threads t WHERE ", thread!("$1"), " FOR NO KEY UPDATE");
/// The thread of a namespace that nobody may take rows from until the transaction ends.
pub(crate) const SHARE: &str = "
    SELECT FROM {schema}.superstep_threads t
    WHERE t.key = (SELECT thread FROM {schema}.superstep_spaces WHERE key = $1) FOR SHARE
";
pub(crate) const ADD_SPACE: &str = concat!(
    "INSERT INTO {schema}.superstep_spaces (thread, digest, name, head, used_at) VALUES ($1, ",
    digest!("$2"),
    ", $2, $3, now()) RETURNING key"
);
/// One that is there stays: others can open it.
pub(crate) const ADD_SHAPE: &str =
    "INSERT INTO {schema}.superstep_shapes (digest, body) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING";
pub(crate) const ADD_CHECKPOINT: &str = "
    INSERT INTO {schema}.superstep_checkpoints (
        space, id, parent, base, root, source, step, created_at, run, depth, shape, needs_base, body
    ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
";
pub(crate) const SET_OUTLINE: &str = "
    UPDATE {schema}.superstep_checkpoints SET depth = 0, owners = $3, outline = $4 WHERE space = $1 AND id = $2
";
pub(crate) const FIND_PENDING: &str = "
    SELECT checkpoint, task, consumed, body FROM {schema}.superstep_pending
    WHERE space = $1 AND checkpoint = $2 AND task = $3
";
pub(crate) const SET_PENDING: &str = "
    INSERT INTO {schema}.superstep_pending (space, checkpoint, task, consumed, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (space, checkpoint, task) DO UPDATE SET consumed = excluded.consumed, body = excluded.body
";

// Reading. Rows of several kinds come together: 0 are checkpoints, 1 pending writes, 2 shapes, 3 the head and
// the newest, 4 what was asked for.
//
// Ids go through arrays from one part to the next, because the planner takes every array for a short one. Otherwise it
// expects so many rows of a chain that it compiles the statement first, which takes longer than to run it.

macro_rules! few {
    ($ids:expr) => {
        concat!("unnest(ARRAY(", $ids, "))")
    };
}

macro_rules! columns {
    () => {
        "c.id, c.parent, c.base, c.root, c.source::BIGINT AS source, c.step, c.created_at, c.run, c.shape, c.body,
        c.outline, c.needs_base"
    };
}

macro_rules! namespace {
    () => {
        concat!(
            "WITH RECURSIVE namespace (space, head) AS MATERIALIZED (
        SELECT s.key, s.head FROM {schema}.superstep_threads t JOIN {schema}.superstep_spaces s ON s.thread = t.key
        WHERE ",
            thread!("$1"),
            " AND ",
            space!("$2"),
            " AND EXISTS (SELECT FROM {schema}.superstep_spaces x WHERE x.thread = t.key AND ",
            alive!("x", "$3"),
            ")
    ),"
        )
    };
}

macro_rules! rows {
    () => {
        concat!(
            "
    chain (id, base, depth) AS (
        SELECT c.id, c.base, c.depth FROM ",
            few!("SELECT id FROM listed"),
            " AS listed (id) ",
            checkpoint!("c.id, c.base, c.depth", "(SELECT space FROM namespace)", "listed.id"),
            "
        UNION
        SELECT c.id, c.base, c.depth FROM chain ",
            checkpoint!("c.id, c.base, c.depth", "(SELECT space FROM namespace)", "chain.base"),
            " WHERE chain.depth > 0
    ),
    asked (checkpoint, task, consumed, body) AS MATERIALIZED (
        SELECT p.checkpoint, p.task, p.consumed, p.body FROM {schema}.superstep_pending p
        WHERE p.space = (SELECT space FROM namespace) AND p.checkpoint = ANY (ARRAY(SELECT id FROM listed))
    ),
    wanted (id) AS MATERIALIZED (SELECT ",
            few!(concat!(
                "
        SELECT id FROM chain
        UNION
        SELECT unnest(c.owners) FROM chain ",
                checkpoint!("c.owners", "(SELECT space FROM namespace)", "chain.id"),
                " WHERE chain.depth = 0
        UNION
        SELECT consumed FROM asked WHERE consumed IS NOT NULL
    "
            )),
            "),
    needed (id) AS (SELECT ",
            few!(concat!(
                "
        SELECT id FROM wanted
        UNION
        SELECT c.base FROM wanted ",
                checkpoint!("c.base, c.needs_base", "(SELECT space FROM namespace)", "wanted.id"),
                " WHERE c.needs_base
    "
            )),
            ")
    SELECT 0::BIGINT, c.* FROM needed ",
            checkpoint!(columns!(), "(SELECT space FROM namespace)", "needed.id"),
            "
    UNION ALL
    SELECT 1, checkpoint, task, consumed, NULL, NULL, NULL, NULL, NULL, NULL, body, NULL, NULL FROM asked
    UNION ALL
    SELECT 2, s.digest, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, s.body, NULL, NULL
    FROM {schema}.superstep_shapes s WHERE s.digest = ANY (ARRAY(SELECT DISTINCT c.shape FROM ",
            few!("SELECT id FROM listed"),
            " AS listed (id) ",
            checkpoint!("c.shape", "(SELECT space FROM namespace)", "listed.id"),
            "))
    UNION ALL
    SELECT 4, id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM listed
    UNION ALL
    SELECT 3, head, (
        SELECT c.id FROM {schema}.superstep_checkpoints c WHERE c.space = namespace.space ORDER BY c.id DESC LIMIT 1
    ), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM namespace"
        )
    };
}

/// A checkpoint: the one with id `$4`, or the latest.
pub(crate) const GET: &str = concat!(
    namespace!(),
    "
    listed (id) AS MATERIALIZED (SELECT coalesce($4, head) FROM namespace),",
    rows!()
);

/// The checkpoints of a query, with all that is needed to put them together.
pub(crate) const LIST: &str = concat!(
    namespace!(),
    "
    listed (id) AS MATERIALIZED (
        SELECT id FROM {schema}.superstep_checkpoints
        WHERE space = (SELECT space FROM namespace) AND ($4 IS NULL OR id < $4) AND ($5 IS NULL OR id = $5)
            AND ($6 IS NULL OR source = $6) AND ($7 IS NULL OR step = $7)
            AND ($9 IS NULL OR run = $9)
        ORDER BY id DESC LIMIT $8
    ),",
    rows!()
);

/// Rows of namespace `$1` and what they stand on, down from the rows `$2`.
pub(crate) const CHAINS: &str = concat!(
    "WITH RECURSIVE chain (id, base, depth) AS (
        SELECT c.id, c.base, c.depth FROM ",
    few!("SELECT unnest($2)"),
    " AS listed (id) ",
    checkpoint!("c.id, c.base, c.depth", "$1", "listed.id"),
    "
        UNION
        SELECT c.id, c.base, c.depth FROM chain ",
    checkpoint!("c.id, c.base, c.depth", "$1", "chain.base"),
    " WHERE chain.depth > 0
    ),
    needed (id) AS (SELECT ",
    few!(concat!(
        "
        SELECT id FROM chain
        UNION
        SELECT c.base FROM chain ",
        checkpoint!("c.base, c.needs_base", "$1", "chain.id"),
        " WHERE c.needs_base
    "
    )),
    ")
    SELECT 0::BIGINT, c.* FROM needed ",
    checkpoint!(columns!(), "$1", "needed.id"),
);
/// Rows, and those that they cut from.
pub(crate) const ROWS: &str = concat!(
    "WITH needed (id) AS (SELECT ",
    few!(concat!(
        "
        SELECT unnest($2)
        UNION
        SELECT c.base FROM unnest($2) AS listed (id) ",
        checkpoint!("c.base, c.needs_base", "$1", "listed.id"),
        " WHERE c.needs_base
    "
    )),
    ")
    SELECT 0::BIGINT, c.* FROM needed ",
    checkpoint!(columns!(), "$1", "needed.id"),
);

pub(crate) const NAMESPACES: &str = concat!(
    "SELECT s.name FROM {schema}.superstep_threads t JOIN {schema}.superstep_spaces s ON s.thread = t.key
    WHERE ",
    thread!("$1"),
    " AND EXISTS (SELECT FROM {schema}.superstep_spaces x WHERE x.thread = t.key AND ",
    alive!("x", "$2"),
    ") ORDER BY s.name"
);
pub(crate) const THREADS: &str = concat!(
    "SELECT t.name FROM {schema}.superstep_threads t
    WHERE ($1 IS NULL OR left(t.name, 200) >= left($1, 200) AND t.name > $1) AND EXISTS (
        SELECT FROM {schema}.superstep_spaces s WHERE s.thread = t.key AND ",
    alive!("s", "$2"),
    "
    )
    ORDER BY left(t.name, 200), t.name LIMIT $3"
);

// Housekeeping.

/// All rows of a namespace without what is in them.
pub(crate) const SUMMARIES: &str = "
    SELECT id, base, root, created_at, depth = 0
    FROM {schema}.superstep_checkpoints WHERE space = $1 ORDER BY id
";
pub(crate) const SPACES: &str = concat!(
    "SELECT s.key, s.name, s.head
    FROM {schema}.superstep_threads t JOIN {schema}.superstep_spaces s ON s.thread = t.key
    WHERE ",
    thread!("$1"),
    " ORDER BY s.name"
);
pub(crate) const IS_ALIVE: &str = concat!(
    "SELECT EXISTS (
        SELECT FROM {schema}.superstep_threads t JOIN {schema}.superstep_spaces s ON s.thread = t.key
        WHERE ",
    thread!("$1"),
    " AND ",
    alive!("s", "$2"),
    ")"
);

/// Forgets a thread; what its namespaces hold belongs to nobody from then on.
pub(crate) const FORGET: &str = concat!(
    "WITH gone AS (
        DELETE FROM {schema}.superstep_threads t WHERE ",
    thread!("$1"),
    " RETURNING t.key
    )
    DELETE FROM {schema}.superstep_spaces WHERE thread = (SELECT key FROM gone) RETURNING key"
);
/// Forgets a thread that was not used for so many microseconds, and gives the keys of its namespaces.
pub(crate) const FORGET_EXPIRED: &str = concat!(
    "WITH gone AS (
        DELETE FROM {schema}.superstep_threads t WHERE ",
    thread!("$1"),
    " AND ",
    expired!("$2"),
    " RETURNING t.key
    )
    DELETE FROM {schema}.superstep_spaces WHERE thread = (SELECT key FROM gone) RETURNING key"
);
pub(crate) const EXPIRED: &str =
    concat!("SELECT t.name FROM {schema}.superstep_threads t WHERE ", expired!("$1"), " ORDER BY t.key");
/// Forgets a thread that was claimed long ago, and never written to or emptied since.
pub(crate) const FORGET_IDLE: &str =
    concat!("DELETE FROM {schema}.superstep_threads t WHERE ", thread!("$1"), " AND ", idle!());
pub(crate) const IDLE: &str =
    concat!("SELECT t.name FROM {schema}.superstep_threads t WHERE ", idle!(), " ORDER BY t.key");
/// Forgets a thread if nothing is left of it.
pub(crate) const FORGET_EMPTY: &str = concat!(
    "DELETE FROM {schema}.superstep_threads t WHERE ",
    thread!("$1"),
    " AND NOT EXISTS (SELECT FROM {schema}.superstep_spaces s WHERE s.thread = t.key)"
);
pub(crate) const SOME_CHECKPOINTS: &str = "
    DELETE FROM {schema}.superstep_checkpoints WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {schema}.superstep_checkpoints WHERE space = $1 LIMIT $2
    ))
";
pub(crate) const SOME_PENDING: &str = "
    DELETE FROM {schema}.superstep_pending WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {schema}.superstep_pending WHERE space = $1 LIMIT $2
    ))
";
/// The namespaces that a run wrote to.
pub(crate) const SPACES_OF_RUN: &str = "
    SELECT t.name, s.key FROM {schema}.superstep_spaces s
    JOIN {schema}.superstep_threads t ON t.key = s.thread
    WHERE s.key IN (
        SELECT c.space FROM {schema}.superstep_checkpoints c
        WHERE hashtextextended(c.run, 0) = hashtextextended($1 COLLATE \"C\", 0) AND c.run = $1
        UNION
        SELECT r.space FROM {schema}.superstep_runs r WHERE r.digest = sha256(convert_to($1, 'UTF8'))
    )
";
/// Notes that a run wrote to a namespace, if it is there.
pub(crate) const ADD_RUN: &str = concat!(
    "INSERT INTO {schema}.superstep_runs (digest, space) SELECT sha256(convert_to($3, 'UTF8')), s.key
    FROM {schema}.superstep_threads t JOIN {schema}.superstep_spaces s ON s.thread = t.key
    WHERE ",
    thread!("$1"),
    " AND ",
    space!("$2"),
    " ON CONFLICT DO NOTHING"
);
pub(crate) const REMOVE_RUNS: &str = "DELETE FROM {schema}.superstep_runs WHERE space = $1";
pub(crate) const COPY_RUNS: &str = "
    INSERT INTO {schema}.superstep_runs (digest, space)
    SELECT digest, $2 FROM {schema}.superstep_runs WHERE space = $1 ON CONFLICT DO NOTHING
";
pub(crate) const OF_RUN: &str = "
    SELECT id FROM {schema}.superstep_checkpoints
    WHERE space = $1 AND hashtextextended(run, 0) = hashtextextended($2 COLLATE \"C\", 0) AND run = $2
    ORDER BY id LIMIT $3
";
/// What was written under some rows.
pub(crate) const WRITTEN: &str = "
    SELECT checkpoint, task, consumed, body FROM {schema}.superstep_pending WHERE space = $1 AND checkpoint = ANY ($2)
";
pub(crate) const REMOVE_WRITTEN: &str =
    "DELETE FROM {schema}.superstep_pending WHERE space = $1 AND checkpoint = $2 AND task = $3";
pub(crate) const REMOVE_CHECKPOINTS: &str =
    "DELETE FROM {schema}.superstep_checkpoints WHERE space = $1 AND id = ANY ($2)";
pub(crate) const REMOVE_PENDING: &str =
    "DELETE FROM {schema}.superstep_pending WHERE space = $1 AND checkpoint = ANY ($2)";
pub(crate) const SET_HEAD: &str = "UPDATE {schema}.superstep_spaces SET head = $2 WHERE key = $1";
pub(crate) const REMOVE_SPACE: &str = "DELETE FROM {schema}.superstep_spaces WHERE key = $1";

/// The shapes of a thread.
pub(crate) const SHAPES: &str = concat!(
    "SELECT h.digest, h.body FROM {schema}.superstep_shapes h WHERE h.digest IN (
        SELECT c.shape
        FROM {schema}.superstep_threads t JOIN {schema}.superstep_spaces s ON s.thread = t.key
            JOIN {schema}.superstep_checkpoints c ON c.space = s.key
        WHERE ",
    thread!("$1"),
    ")"
);
/// A page of the rows of a namespace, with all that is in them.
pub(crate) const PAGE: &str = concat!(
    "SELECT 0::BIGINT, ",
    columns!(),
    ", c.depth::BIGINT FROM {schema}.superstep_checkpoints c
    WHERE c.space = $1 AND ($2 IS NULL OR c.id > $2) ORDER BY c.id LIMIT $3"
);
pub(crate) const PENDING_PAGE: &str = "
    SELECT checkpoint, task, consumed, body FROM {schema}.superstep_pending
    WHERE space = $1 AND ($2 IS NULL OR (checkpoint, task) > ($2, $3)) ORDER BY checkpoint, task LIMIT $4
";

pub(crate) const ORPHANED_SPACES: &str = "
    DELETE FROM {schema}.superstep_spaces s
    WHERE NOT EXISTS (SELECT FROM {schema}.superstep_threads t WHERE t.key = s.thread)
";
/// The namespaces that are gone, but whose rows are not.
pub(crate) const LOST_SPACES: &str = "
    SELECT c.space FROM {schema}.superstep_checkpoints c
    WHERE NOT EXISTS (SELECT FROM {schema}.superstep_spaces s WHERE s.key = c.space)
    UNION
    SELECT p.space FROM {schema}.superstep_pending p
    WHERE NOT EXISTS (SELECT FROM {schema}.superstep_spaces s WHERE s.key = p.space)
";
pub(crate) const ORPHANED_PENDING: &str = "
    DELETE FROM {schema}.superstep_pending WHERE ctid = ANY (ARRAY(
        SELECT p.ctid FROM {schema}.superstep_pending p WHERE NOT EXISTS (
            SELECT FROM {schema}.superstep_checkpoints c WHERE c.space = p.space AND c.id = p.checkpoint
        )
    ))
";
