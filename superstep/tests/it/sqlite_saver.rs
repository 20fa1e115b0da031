//! Checkpoints in SQLite.

use superstep::{AgentState, AgentStateUpdate, CompiledStateGraph, Message, START, SqliteSaver, StateGraph};

async fn model(state: AgentState) -> AgentStateUpdate {
    let answer = random(state.messages.len() as u64, 1000);
    AgentStateUpdate { messages: Some(vec![Message::assistant(answer)]) }
}

fn chat(saver: SqliteSaver) -> CompiledStateGraph<AgentState> {
    let graph = StateGraph::<AgentState>::new().add_node("model", model).add_edge(START, "model");
    graph.checkpointer(saver).compile().unwrap()
}

/// Text that does not compress.
fn random(seed: u64, len: usize) -> String {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            char::from(b'a' + (x % 26) as u8)
        })
        .collect()
}

#[tokio::test]
async fn a_long_chat_takes_at_most_three_times_the_bytes_of_its_messages() {
    let folder = tempfile();
    let file = folder.join("chat.db");
    let app = chat(SqliteSaver::open(&file).unwrap());
    for turn in 0..500 {
        let input = AgentState { messages: vec![Message::user(random(turn + 1_000_000, 1000))] };
        app.invoke(input).thread("t").await.unwrap();
    }
    let state = app.thread("t").state().await.unwrap().state;
    assert_eq!(state.messages.len(), 1000);
    let messages: usize = state.messages.iter().map(|m| m.text().len()).sum();
    drop(app);
    let bytes = std::fs::metadata(&file).unwrap().len();
    println!("{bytes} bytes on disk, {messages} bytes of messages: {:.2}", bytes as f64 / messages as f64);
    assert!(bytes <= 3 * messages as u64);
    std::fs::remove_dir_all(folder).unwrap();
}

fn tempfile() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("superstep-{}-{}", std::process::id(), line!()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn it_passes_the_suite() {
    superstep::conformance::checkpointer::run(|| async { SqliteSaver::memory().unwrap() }).await.assert();
    let ttl = |ttl| async move { SqliteSaver::memory().unwrap().ttl(ttl) };
    superstep::conformance::checkpointer::expiry(ttl).await.assert();
}
