//! Seed 002: reducers, messages with ids, and who merges.

use async_trait::async_trait;
use superstep::{
    AddMessages, Agent, AgentState, AgentStateUpdate, BoxError, InvalidUpdate, Message, MessageKind, PartialAgent,
    Reducer, ReducerFn, START, StateGraph, add_messages,
};

use super::AgentError;

/// §2.1, to the letter.
static REPLACE: ReducerFn<fn(String, String) -> String> = ReducerFn(|_, update| update);

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.text().into_owned()).collect()
}

#[test]
fn reducers_are_functions_statics_and_types() {
    assert_eq!(REPLACE.merge("before".into(), "after".into()), "after");
    let append = ReducerFn(|mut c: Vec<u8>, u: Vec<u8>| {
        c.extend(u);
        c
    });
    assert_eq!(append.merge(vec![1], vec![2, 3]), [1, 2, 3]);
    let current = vec![Message::user("a").with_id("1"), Message::user("b").with_id("2")];
    let merged = AddMessages.merge(current, vec![Message::user("c").with_id("1"), Message::user("d")]);
    assert_eq!(texts(&merged), ["c", "b", "d"]);
    assert!(merged[2].id.is_some(), "who has no id is given one");
}

/// §5.2 and §5.4.
#[test]
fn a_partial_is_merged_by_hand_and_pieces_rewrite_one_message() -> Result<(), InvalidUpdate> {
    let mut state = AgentState::default();
    state.messages.push(Message { id: Some("msg-1".into()), kind: MessageKind::User("hello".into()) });
    let partial = AgentStateUpdate {
        messages: Some(vec![Message { id: None, kind: MessageKind::Assistant("hello! what can I do?".into()) }]),
    };
    state = state.merge(partial)?;
    let last = state.messages.last().unwrap();
    assert!(last.id.is_some() && last.text() == "hello! what can I do?", "{last:?}");

    for text in ["", "one", "one two"] {
        let piece = Message { id: Some("answer".into()), kind: MessageKind::Assistant(text.into()) };
        state.messages = add_messages(state.messages, vec![piece])?;
    }
    assert_eq!(texts(&state.messages), ["hello", "hello! what can I do?", "one two"]);
    assert_eq!(state.clone().merge(AgentStateUpdate::default())?, state, "what is not in the update stays");
    Ok(())
}

#[async_trait]
trait LlmClient {
    async fn chat(&self, messages: &[Message]) -> Result<String, AgentError>;
}

struct Counts;

#[async_trait]
impl LlmClient for Counts {
    async fn chat(&self, messages: &[Message]) -> Result<String, AgentError> {
        Ok(format!("number {}", messages.len()))
    }
}

struct ChatAgent<L> {
    llm: L,
}

/// §5.3, mode one: the agent merges.
#[async_trait]
impl<L> Agent for ChatAgent<L>
where
    L: LlmClient + Send + Sync + 'static,
{
    type State = AgentState;

    async fn run(&self, state: Self::State) -> Result<Self::State, BoxError> {
        let reply = self.llm.chat(&state.messages).await?;
        let new_msg = Message { id: None, kind: MessageKind::Assistant(reply) };
        let merged = add_messages(state.messages, vec![new_msg])?;
        Ok(AgentState { messages: merged })
    }
}

struct PartialChatAgent<L> {
    llm: L,
}

/// Mode two: the caller merges, or the graph.
#[async_trait]
impl<L> PartialAgent for PartialChatAgent<L>
where
    L: LlmClient + Send + Sync + 'static,
{
    type State = AgentState;
    type Update = AgentStateUpdate;

    async fn run_partial(&self, state: AgentState) -> Result<AgentStateUpdate, BoxError> {
        let reply = self.llm.chat(&state.messages).await?;
        Ok(AgentStateUpdate { messages: Some(vec![Message { id: None, kind: MessageKind::Assistant(reply) }]) })
    }
}

#[tokio::test]
async fn who_merges_makes_no_difference() {
    let state = AgentState { messages: vec![Message::user("hi").with_id("1")] };
    let one = ChatAgent { llm: Counts }.run(state.clone()).await.unwrap();

    let agent = PartialChatAgent { llm: Counts };
    let partial = agent.run_partial(state.clone()).await.unwrap();
    let two = state.clone().merge(partial).unwrap();
    assert_eq!(texts(&one.messages), ["hi", "number 1"]);
    assert_eq!(texts(&two.messages), texts(&one.messages));

    // Mode three: of several nodes, each has its own form.
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("whole", ChatAgent { llm: Counts }).add_node("partial", agent).add_edge(START, "whole");
    let three = graph.add_edge("whole", "partial").compile().unwrap().invoke(state).await.unwrap().state;
    assert_eq!(texts(&three.messages), ["hi", "number 1", "number 2"]);
}
