//! Questions of a server to the user: they pause the run.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use superstep::{AgentState, CompiledStateGraph, Output, Resume};
use superstep_agent::mcp::{Elicitation, ElicitationAnswer};

use super::desk::Desk;
use super::{app, asking};

async fn paused(
    desk: &Desk,
    calls: impl IntoIterator<Item = (&'static str, Value)>,
) -> (CompiledStateGraph<AgentState>, Elicitation) {
    let app = app(desk.servers().tools().await.unwrap());
    let out = app.invoke(asking(calls)).thread("t").await.unwrap();
    let question = question(&out);
    (app, question)
}

fn question(out: &Output<AgentState>) -> Elicitation {
    assert_eq!(out.interrupts.len(), 1, "{out:?}");
    out.interrupts[0].value_as().unwrap()
}

async fn resumed(app: &CompiledStateGraph<AgentState>, answer: ElicitationAnswer) -> Output<AgentState> {
    app.invoke(Resume::value(answer)).thread("t").await.unwrap()
}

fn said(out: &Output<AgentState>) -> Vec<String> {
    out.state.messages[1..].iter().map(|message| message.text().into_owned()).collect()
}

#[tokio::test]
async fn a_question_pauses_the_run_and_the_answer_reaches_the_server() {
    let desk = Desk::default();
    let (app, question) = paused(&desk, [("ask", json!({}))]).await;
    assert_eq!((&*question.server, question.tool.as_deref(), &*question.message), ("desk", Some("ask"), "Which seat?"));
    assert_eq!(question.schema.as_ref().unwrap()["properties"]["seat"], json!({ "type": "string" }));
    let out = resumed(&app, question.accept(json!({ "seat": "12A" }))).await;
    assert_eq!(said(&out), [r#"Accept {"seat":"12A"}"#]);
    assert_eq!(desk.calls.load(Ordering::SeqCst), 2, "the call is made again");
}

#[tokio::test]
async fn a_question_can_be_declined_or_cancelled() {
    let (app, question) = paused(&Desk::default(), [("ask", json!({}))]).await;
    assert_eq!(said(&resumed(&app, question.decline()).await), ["Decline null"]);
    let (app, question) = paused(&Desk::default(), [("ask", json!({}))]).await;
    assert_eq!(said(&resumed(&app, question.cancel()).await), ["Cancel null"]);
}

#[tokio::test]
async fn an_answer_may_be_plain_json() {
    let (app, _) = paused(&Desk::default(), [("ask", json!({}))]).await;
    let answer = json!({ "action": "accept", "content": { "seat": "1C" } });
    let out = app.invoke(Resume::value(answer)).thread("t").await.unwrap();
    assert_eq!(said(&out), [r#"Accept {"seat":"1C"}"#]);
}

#[tokio::test]
async fn questions_of_one_call_are_answered_one_after_another() {
    let (app, first) = paused(&Desk::default(), [("ask_twice", json!({}))]).await;
    let out = resumed(&app, first.accept(json!({ "seat": "1" }))).await;
    let second = question(&out);
    assert_eq!(second.message, "And back?");
    let out = resumed(&app, second.accept(json!({ "seat": "2" }))).await;
    assert_eq!(said(&out), [r#"Accept {"seat":"1"}, Accept {"seat":"2"}"#]);
}

/// Both calls are of one task, which runs again as a whole, so answers come back in the order in which they were given
/// and not in the order in which the calls ask.
#[tokio::test]
async fn answers_find_their_questions_among_calls_side_by_side() {
    let calls = [("ask", json!({ "text": "Out?" })), ("ask", json!({ "text": "Back?" }))];
    let (app, first) = paused(&Desk::default(), calls).await;
    let seat = |question: &Elicitation| question.accept(json!({ "seat": question.message.clone() }));
    let out = resumed(&app, seat(&first)).await;
    let second = question(&out);
    assert_ne!(first.message, second.message);
    assert_eq!((&first.tool, &second.tool), (&None, &None), "it could be either");
    let out = resumed(&app, seat(&second)).await;
    assert_eq!(said(&out), [r#"Accept {"seat":"Out?"}"#, r#"Accept {"seat":"Back?"}"#]);
}

/// Over a pipe, a question does not say which call it belongs to.
#[tokio::test]
async fn a_question_that_could_be_anybodys_is_refused() {
    let desk = Desk::default();
    let app = app(desk.servers().tools().await.unwrap());
    let waiting = app.clone();
    let other =
        tokio::spawn(async move { waiting.invoke(asking([("wait", json!({}))])).thread("other").await.map(drop) });
    desk.waits.notified().await;
    let error = app.invoke(asking([("ask", json!({}))])).thread("t").await.unwrap_err().to_string();
    assert!(error.contains("several runs call tools, and the question does not say whom it is for"), "{error}");
    other.abort();
}
