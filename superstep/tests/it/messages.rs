//! Messages in a state: merged by id, removed, and told apart.

use superstep::{AgentState, AgentStateUpdate, ErrorKind, MemorySaver, Message, MessageKind, START, StateGraph};

fn update(messages: Vec<Message>) -> AgentStateUpdate {
    AgentStateUpdate { messages: Some(messages) }
}

/// What is left of two messages after a node returned these.
async fn after(messages: Vec<Message>) -> Result<Vec<String>, superstep::Error> {
    let node = move |_: AgentState| {
        let messages = messages.clone();
        async move { update(messages) }
    };
    let app = StateGraph::<AgentState>::new()
        .add_node("n", node)
        .add_edge(START, "n")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let start = vec![Message::system("rules").with_id("s"), Message::user("hi").with_id("u")];
    app.invoke(update(start)).thread("t").await?;
    let seen = app.thread("t").state().await?;
    Ok(seen.state.messages.iter().map(|m| m.text().into_owned()).collect())
}

#[tokio::test]
async fn a_message_with_a_known_id_replaces_and_any_other_is_added() {
    let said = after(vec![Message::user("hello").with_id("u"), Message::assistant("hm")]).await.unwrap();
    assert_eq!(said, ["rules", "hello", "hm"]);
}

#[tokio::test]
async fn a_removal_takes_one_message_away_and_the_great_one_all_before_it() {
    assert_eq!(after(vec![Message::remove("s")]).await.unwrap(), ["hi"]);
    assert_eq!(
        after(vec![Message::assistant("lost"), Message::remove_all(), Message::user("new")]).await.unwrap(),
        ["new"]
    );
}

#[tokio::test]
async fn a_removal_of_what_is_not_there_is_an_error_that_names_it() {
    let error = after(vec![Message::remove("nobody")]).await.unwrap_err();
    let words = "field `messages`: there is no message with id `nobody` to remove (in what `n` wrote)";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, words));
}

#[tokio::test]
async fn kinds_of_messages_survive_a_thread() {
    let said =
        vec![Message::system("s"), Message::user("u"), Message::assistant("a"), Message::tool_result("c1", "42")];
    let app = StateGraph::<AgentState>::new()
        .add_node("n", async |_: AgentState| ())
        .add_edge(START, "n")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let out = app.invoke(update(said)).thread("t").await.unwrap();
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(seen.state.messages, out.state.messages);
    let [system, user, assistant, tool] = seen.state.messages.as_slice() else { panic!("four messages") };
    assert!(matches!(system.kind, MessageKind::System(_)), "{system:?}");
    assert!(matches!(user.kind, MessageKind::User(_)), "{user:?}");
    assert!(!matches!(assistant.kind, MessageKind::User(_) | MessageKind::System(_)), "{assistant:?}");
    assert_eq!(tool.text(), "42");
    assert!(serde_json::to_string(tool).unwrap().contains("c1"), "the call it answers is kept");
}
