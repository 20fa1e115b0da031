//! One check on every checkpointer.

/// Runs `check(saver)` with a checkpointer in memory, one in SQLite and, if there is a server, one in PostgreSQL.
macro_rules! on_each_saver {
    ($schema:literal, $check:path) => {{
        $check(superstep::MemorySaver::new()).await;
        {
            let folder = std::env::temp_dir().join(format!("superstep-{}-{}", $schema, std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            $check(superstep_sqlite::SqliteSaver::open(folder.join("threads.db")).unwrap()).await;
            std::fs::remove_dir_all(&folder).unwrap();
        }
        {
            let schema = format!("{}_{}", $schema, std::process::id());
            let database =
                superstep_postgres::PostgresDatabase::builder(crate::support::postgres::address()).schema(schema);
            $check(superstep_postgres::PostgresSaver::new(&database.connect().await.unwrap())).await;
        }
    }};
}
pub(crate) use on_each_saver;
