//! Sealed databases through their life: encryption is turned on, keys are changed, old ones are taken away.

use superstep::{AgentState, Checkpointer, CompiledStateGraph, EchoAgent, Key, Keys, Message, START, Seal, StateGraph};

fn keys(id: &str, byte: u8) -> Keys {
    Keys::new(id, Key::from([byte; 32]))
}

fn echo(saver: impl Checkpointer) -> CompiledStateGraph<AgentState> {
    let graph = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo");
    graph.checkpointer(saver).compile().unwrap()
}

/// The names of a graph are kept once for all threads, and were never sealed again: when the first thread and its key
/// were gone, no other thread could be read.
async fn threads_outlive<C: Checkpointer>(saver: impl Fn(Seal) -> C, seals: [Seal; 3]) {
    let [before, both, after] = seals;
    let hello = || AgentState { messages: vec![Message::user("hello")] };
    echo(saver(before)).invoke(hello()).thread("old").await.unwrap();
    let app = echo(saver(both));
    assert_eq!(app.invoke(hello()).thread("old").await.unwrap().state.messages.len(), 4);
    app.invoke(hello()).thread("new").await.unwrap();
    app.delete_thread("old").await.unwrap();
    let app = echo(saver(after));
    assert_eq!(app.thread("new").state().await.unwrap().state.messages.len(), 2);
    assert_eq!(app.invoke(hello()).thread("new").await.unwrap().state.messages.len(), 4);
}

fn rotation() -> [Seal; 3] {
    [
        Seal::new().encrypt(keys("old", 1)),
        Seal::new().encrypt(keys("new", 2).also_reads("old", Key::from([1; 32]))),
        Seal::new().encrypt(keys("new", 2)),
    ]
}

fn turning_on() -> [Seal; 3] {
    [Seal::new(), Seal::new().encrypt(keys("new", 2)).allow_plain(), Seal::new().encrypt(keys("new", 2))]
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use superstep::SqliteSaver;

    use super::*;

    #[tokio::test]
    async fn threads_outlive_the_key_that_was_there_before_them() {
        let saver = SqliteSaver::memory().unwrap();
        threads_outlive(|seal| saver.clone().seal(seal), rotation()).await;
    }

    #[tokio::test]
    async fn encryption_can_be_turned_on() {
        let saver = SqliteSaver::memory().unwrap();
        threads_outlive(|seal| saver.clone().seal(seal), turning_on()).await;
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use superstep::{PostgresDatabase, PostgresSaver};

    use super::*;
    use crate::support::postgres::address;

    async fn database(name: &str) -> PostgresDatabase {
        let schema = format!("sealed_{}_{name}", std::process::id());
        PostgresDatabase::builder(address()).schema(schema).connect().await.unwrap()
    }

    #[tokio::test]
    async fn threads_outlive_the_key_that_was_there_before_them() {
        let saver = PostgresSaver::new(&database("rotation").await);
        threads_outlive(|seal| saver.clone().seal(seal), rotation()).await;
    }

    #[tokio::test]
    async fn encryption_can_be_turned_on() {
        let saver = PostgresSaver::new(&database("on").await);
        threads_outlive(|seal| saver.clone().seal(seal), turning_on()).await;
    }
}
