//! Checkpoints in PostgreSQL, on the server that `SUPERSTEP_TEST_POSTGRES` names. Each test has a schema of its own.

mod damage;
mod lost;
mod races;
mod round_trips;
mod silent;
#[cfg(feature = "conformance")]
mod suite;
mod trouble;
mod wire;

use std::env;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use superstep::{
    AgentState, AgentStateUpdate, CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, CompiledStateGraph,
    EchoAgent, Epoch, Lease, ListQuery, MemorySaver, Message, START, StateGraph, TaskId, TaskRecord,
};
use superstep_postgres::{PostgresBuilder, PostgresDatabase, PostgresSaver};
use tokio_postgres::types::FromSqlOwned;

/// A schema that nobody else uses.
struct Place {
    address: String,
    schema: String,
}

impl Place {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let address = env::var("SUPERSTEP_TEST_POSTGRES");
        Self {
            address: address.expect("this test needs PostgreSQL: run it with `cargo xtask test`"),
            schema: format!("saver_{}_{number}", process::id()),
        }
    }

    fn builder(&self) -> PostgresBuilder {
        // The name tells an administrator whose connections these are.
        let address = format!("{}?application_name={}", self.address, self.schema);
        PostgresDatabase::builder(address).schema(self.schema.clone())
    }

    async fn saver(&self) -> PostgresSaver {
        PostgresSaver::new(&self.builder().connect().await.unwrap())
    }

    /// A connection past superstep.
    async fn admin(&self) -> Admin {
        let (client, connection) = tokio_postgres::connect(&self.address, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("SET search_path TO {}", self.schema)).await.unwrap();
        Admin { client, schema: self.schema.clone() }
    }
}

/// Someone who looks at the tables, holds their rows, or changes them.
struct Admin {
    client: tokio_postgres::Client,
    schema: String,
}

impl Admin {
    async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    async fn ask<T: FromSqlOwned>(&self, sql: &str) -> T {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Waits until so many statements of the savers of this place wait for locks.
    async fn waits(&self, statements: i64) {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND wait_event_type = 'Lock'",
            self.schema
        );
        while self.ask::<i64>(&sql).await != statements {
            tokio::task::yield_now().await;
        }
    }

    /// The rows of all tables that belong to threads.
    async fn rows(&self) -> i64 {
        let tables = ["threads", "spaces", "checkpoints", "pending"];
        let counts = tables.map(|table| format!("(SELECT count(*) FROM superstep_{table})"));
        self.ask(&format!("SELECT {}", counts.join(" + "))).await
    }
}

fn echo(saver: impl Checkpointer) -> CompiledStateGraph<AgentState> {
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("echo", EchoAgent).add_edge(START, "echo");
    graph.checkpointer(saver).compile().unwrap()
}

fn says(text: &str) -> AgentState {
    AgentState { messages: vec![Message::user(text)] }
}

/// Someone who claimed a thread, and makes checkpoints out of one that a graph made.
struct Author {
    saver: PostgresSaver,
    epoch: Epoch,
    head: Option<CheckpointId>,
    pattern: CheckpointRecord,
    task: TaskRecord,
}

const THREAD: &str = "t";

/// A save that has begun.
type Saving = tokio::task::JoinHandle<Result<(), CheckpointError>>;

impl Author {
    /// Claims the thread.
    async fn claim(saver: &PostgresSaver) -> Self {
        let memory = MemorySaver::new();
        echo(memory.clone()).invoke(says("hello")).thread(THREAD).await.unwrap();
        let made = memory.list(THREAD, "", &ListQuery::new()).await.unwrap();
        let claim = saver.claim(THREAD, "", None).await.unwrap();
        Self {
            saver: saver.clone(),
            epoch: claim.epoch,
            head: claim.head,
            pattern: made[0].record().clone(),
            task: made[1].writes()[0].clone(),
        }
    }

    fn lease(&self) -> Lease<'static> {
        Lease::new(THREAD, "", self.epoch)
    }

    /// A checkpoint behind the head.
    fn next(&self) -> CheckpointRecord {
        let id = CheckpointId::from_u128(self.head.map_or(1 << 64, |head| head.as_u128() + 1));
        self.pattern.clone().with_id(id).with_parent(self.head).with_base(self.head).with_head(self.head)
    }

    async fn put(&mut self) -> Result<CheckpointId, CheckpointError> {
        let record = self.next();
        let id = record.id();
        self.saver.put(self.lease(), record).await?;
        self.head = Some(id);
        Ok(id)
    }

    /// A saver that knows nothing of the first: what one is given for a namespace, it does one after another.
    fn another(&self) -> PostgresSaver {
        PostgresSaver::new(self.saver.database())
    }

    /// Saves a checkpoint while others go on.
    fn spawn(&self, record: CheckpointRecord) -> Saving {
        let (saver, lease) = (self.another(), self.lease());
        tokio::spawn(async move { saver.put(lease, record).await })
    }

    /// Begins to save a checkpoint, after those that were begun before.
    fn begin(&self, lease: Lease<'static>, record: CheckpointRecord) -> Saving {
        let saver = self.saver.clone();
        tokio::spawn(async move { saver.put(lease, record).await })
    }

    fn begin_writes(&self, checkpoint: CheckpointId, task: TaskRecord) -> Saving {
        let (saver, lease) = (self.saver.clone(), self.lease());
        tokio::spawn(async move { saver.put_writes(lease, checkpoint, task).await })
    }

    /// Saves what a task wrote while others go on.
    fn spawn_writes(&self, checkpoint: CheckpointId, task: TaskRecord) -> Saving {
        let (saver, lease) = (self.another(), self.lease());
        tokio::spawn(async move { saver.put_writes(lease, checkpoint, task).await })
    }

    /// What task number so-and-so wrote.
    fn task(&self, number: u128) -> TaskRecord {
        let made = &self.task;
        TaskRecord::new(TaskId::from_u128(number), made.path()).with_writes(made.writes().to_vec())
    }

    async fn ids(&self) -> Vec<CheckpointId> {
        let listed = self.saver.list(THREAD, "", &ListQuery::new()).await.unwrap();
        listed.iter().map(|saved| saved.record().id()).collect()
    }
}

/// Text that does not compress.
fn random(seed: u64, len: usize) -> String {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        char::from(b'a' + (x % 26) as u8)
    };
    (0..len).map(|_| letter()).collect()
}

/// A message is in the step that wrote it, in an outline, and if it is an input in that too.
#[tokio::test]
async fn a_long_chat_takes_at_most_3_6_times_the_bytes_of_its_messages() {
    async fn model(state: AgentState) -> AgentStateUpdate {
        let answer = random(state.messages.len() as u64, 1000);
        AgentStateUpdate { messages: Some(vec![Message::assistant(answer)]) }
    }
    let place = Place::new();
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("model", model).add_edge(START, "model");
    let app = graph.checkpointer(place.saver().await).compile().unwrap();
    for turn in 0..500 {
        app.invoke(says(&random(turn + 1_000_000, 1000))).thread("t").await.unwrap();
    }
    let state = app.thread("t").state().await.unwrap().state;
    assert_eq!(state.messages.len(), 1000);
    let messages: usize = state.messages.iter().map(|message| message.text().len()).sum();
    let bytes: i64 = place
        .admin()
        .await
        .ask(&format!(
            "SELECT sum(pg_total_relation_size(c.oid))::BIGINT FROM pg_class c
            WHERE c.relnamespace = '{}'::regnamespace AND c.relkind = 'r'",
            place.schema
        ))
        .await;
    println!("{bytes} bytes on disk, {messages} bytes of messages");
    assert!(5 * bytes as usize <= 18 * messages);
}
