//! Long conversations, made shorter.

use serde_json::json;
use superstep::{MemorySaver, Message, Mode};
use superstep_agent::middleware::{HistoryLimit, Summarize};
use superstep_agent::{ModelError, ModelErrorKind, ScriptedModel, create_react_agent};

use super::{call, calls, texts};

const SUMMARY: &str = "Summary of the conversation so far:\n\nnotes";

/// What the model reads of a history, and what the writer of the summary was given.
async fn shortened(
    summarize: fn(Summarize) -> Summarize,
    limit: HistoryLimit,
    history: Vec<Message>,
) -> [Vec<String>; 2] {
    let (writer, model) = (ScriptedModel::new(["notes", "notes"]), ScriptedModel::new(["ok"]));
    let agent = create_react_agent(model.clone(), ())
        .prompt("Be brief.")
        .middleware(summarize(Summarize::new(writer.clone(), limit)))
        .compile()
        .unwrap();
    let out = agent.invoke(history).await.unwrap();
    let read = texts(&model.requests()[0].messages);
    let (prompt, kept) = read.split_first().unwrap();
    assert_eq!(prompt, "Be brief.");
    assert_eq!(texts(&out.state.messages)[..kept.len()], *kept, "the thread keeps what the model reads");
    let asked = writer.requests().iter().flat_map(|request| texts(&request.messages)).collect();
    [kept.to_vec(), asked]
}

fn talk(words: &str) -> Vec<Message> {
    words.split(' ').map(Message::user).collect()
}

#[tokio::test]
async fn a_history_within_the_limits_stays_as_it_is() {
    let [read, asked] = shortened(|s| s.keep(1), HistoryLimit::Messages(3), talk("a b c")).await;
    assert_eq!(read, ["a", "b", "c"]);
    assert!(asked.is_empty());
}

#[tokio::test]
async fn older_messages_are_replaced_by_a_summary_and_the_last_are_kept() {
    let [read, asked] = shortened(|s| s.keep(2).prompt("Sum up."), HistoryLimit::Messages(3), talk("a b c d")).await;
    assert_eq!(read, [SUMMARY, "c", "d"]);
    assert_eq!(asked, ["Sum up.", "human: a\nhuman: b"]);
}

#[tokio::test]
async fn tokens_are_counted_by_letters_or_by_a_function() {
    let long = || vec![Message::user("x".repeat(400)), Message::user("and?")];
    let [read, _] = shortened(|s| s.keep(1), HistoryLimit::Tokens(100), long()).await;
    assert_eq!(read, [SUMMARY, "and?"]);
    let [read, _] = shortened(|s| s.keep(1), HistoryLimit::Tokens(120), long()).await;
    assert_eq!(read.len(), 2);
    assert_ne!(read[0], SUMMARY);
    let [read, _] =
        shortened(|s| s.keep(1).counting(|m| m.len() * 1000), HistoryLimit::Tokens(1999), talk("a b")).await;
    assert_eq!(read, [SUMMARY, "b"]);
    let either: fn(Summarize) -> Summarize = |s| s.keep(1).or(HistoryLimit::Messages(1));
    let [read, _] = shortened(either, HistoryLimit::Tokens(1_000_000), talk("a b")).await;
    assert_eq!(read, [SUMMARY, "b"]);
}

#[tokio::test]
async fn calls_of_tools_and_their_results_stay_together() {
    let history = || {
        vec![
            Message::user("old"),
            calls([call("c1", "look", json!({})), call("c2", "look", json!({}))]),
            Message::tool_result("c1", "one"),
            Message::tool_result("c2", "two"),
            Message::assistant("three"),
            Message::user("and now?"),
        ]
    };
    for (keep, expected) in [
        (2, vec![SUMMARY, "three", "and now?"]),
        (3, vec![SUMMARY, "", "one", "two", "three", "and now?"]),
        (4, vec![SUMMARY, "", "one", "two", "three", "and now?"]),
    ] {
        let (writer, model) = (ScriptedModel::new(["notes"]), ScriptedModel::new(["ok"]));
        let summarize = Summarize::new(writer, HistoryLimit::Messages(5)).keep(keep);
        let agent = create_react_agent(model.clone(), ()).middleware(summarize).compile().unwrap();
        agent.invoke(history()).await.unwrap();
        assert_eq!(texts(&model.requests()[0].messages), expected, "keeping {keep}");
    }
}

#[tokio::test]
async fn system_messages_at_the_beginning_stay_and_an_old_summary_becomes_part_of_the_new_one() {
    let (writer, model) = (ScriptedModel::new(["notes", "more notes"]), ScriptedModel::new(["1", "2", "3"]));
    let summarize = Summarize::new(writer.clone(), HistoryLimit::Messages(4)).keep(1);
    let agent =
        create_react_agent(model.clone(), ()).middleware(summarize).checkpointer(MemorySaver::new()).compile().unwrap();
    let first = vec![
        Message::system("rules"),
        Message::user("a"),
        Message::assistant("b"),
        Message::user("c"),
        Message::user("d"),
    ];
    agent.invoke(first).thread("t").await.unwrap();
    assert_eq!(texts(&model.requests()[0].messages), ["rules", SUMMARY, "d"]);
    agent.invoke("e").thread("t").await.unwrap();
    assert_eq!(
        texts(&model.requests()[1].messages),
        ["rules", "Summary of the conversation so far:\n\nmore notes", "e"]
    );
    assert!(
        texts(&writer.requests()[1].messages)[1].starts_with("human: Summary of the conversation so far:\n\nnotes")
    );
}

#[tokio::test]
async fn nothing_is_summed_up_twice_and_nothing_is_lost_if_the_writer_fails() {
    // Two long messages are kept: the limit stays passed, but there is nothing new to sum up.
    let writer = ScriptedModel::new(["notes"]);
    let model = ScriptedModel::new([calls([call("c1", "none", json!({}))]), Message::assistant("done")]);
    let summarize = Summarize::new(writer.clone(), HistoryLimit::Messages(1)).keep(9);
    let agent = create_react_agent(model, ()).middleware(summarize).compile().unwrap();
    agent.invoke(talk("a b c")).await.unwrap();
    assert!(writer.requests().is_empty());
    let broken = ScriptedModel::new([ModelError::new(ModelErrorKind::Overloaded, "small", "later")]);
    let agent = create_react_agent(ScriptedModel::new(["ok"]), ())
        .middleware(Summarize::new(broken, HistoryLimit::Messages(2)).keep(1))
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let error = agent.invoke(talk("a b c")).thread("t").await.unwrap_err();
    assert!(error.downcast_ref::<ModelError>().is_some(), "{error}");
    assert_eq!(agent.thread("t").state().await.unwrap().state.messages.len(), 3);
}

#[tokio::test]
async fn the_words_of_the_writer_are_not_among_the_agents_words() {
    let writer = ScriptedModel::new(["secret notes"]);
    let agent = create_react_agent(ScriptedModel::new(["the answer"]), ())
        .middleware(Summarize::new(writer, HistoryLimit::Messages(2)).keep(1))
        .compile()
        .unwrap();
    let mut events = agent.stream(talk("a b c")).mode(Mode::Messages).start();
    let mut heard = String::new();
    while let Some(event) = events.next().await {
        let superstep::EventData::Message(said) = event.unwrap().data else { panic!("only messages were asked for") };
        if said.node == "agent" {
            heard += &said.message.text();
        } else {
            assert!(said.chunk.is_none(), "{said:?}");
        }
    }
    assert_eq!(heard, "the answer");
}
