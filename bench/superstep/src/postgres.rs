//! W6 on disk: the ReAct loop with checkpoints in PostgreSQL.
use crate::common::{postgres_address, report};
use crate::graphs::{react_saved, run_react_saved};
use crate::{Bench, SYSTEM};
use serde_json::json;
use superstep::Durability;
use superstep_postgres::{PostgresDatabase, PostgresSaver};
use tokio_postgres::{Client, NoTls};

const TIMED: &str = "bench_timed";
const ONE_RUN: &str = "bench_one_run";

pub async fn run(bench: &Bench, durability: Durability) {
    let (turns, steps) = (bench.n, 2 * bench.n + 1);
    let client = connect().await;
    let app = react_saved(turns, saver(&client, TIMED).await);
    let times = bench.measure("W6-postgres", steps, || run_react_saved(&app, turns, durability)).await;
    if let Some(times) = times {
        let app = react_saved(turns, saver(&client, ONE_RUN).await);
        run_react_saved(&app, turns, durability).await;
        let extra = json!({"bytes_total": bytes_of(&client, ONE_RUN).await});
        report(SYSTEM, "W6-postgres", turns, &times, steps, extra);
    }
}

async fn connect() -> Client {
    let (client, connection) = tokio_postgres::connect(&postgres_address(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A saver with empty tables.
async fn saver(client: &Client, schema: &str) -> PostgresSaver {
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.unwrap();
    let database = PostgresDatabase::builder(postgres_address()).schema(schema).connect().await.unwrap();
    PostgresSaver::new(&database)
}

/// The tables of checkpoints with their indices.
async fn bytes_of(client: &Client, schema: &str) -> i64 {
    let tables = ["threads", "spaces", "checkpoints", "pending", "shapes"];
    let size = |table| format!("pg_total_relation_size('{schema}.superstep_{table}')");
    let sum = format!("SELECT {}", tables.map(size).join(" + "));
    client.query_one(&sum, &[]).await.unwrap().get(0)
}
