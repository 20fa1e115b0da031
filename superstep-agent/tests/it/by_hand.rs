//! Conversations of agents that are changed by hand: the agent goes on from what they say then.

use serde_json::json;
use superstep::{CompiledStateGraph, GoOn, MemorySaver, Message, Resume};
use superstep_agent::middleware::{Approval, ApprovalAnswer, Decision, Decisions, Limits, Per};
use superstep_agent::{ReactState, ScriptedModel, create_react_agent, tool};

use crate::middleware::{Noting, call, calls, texts};

fn mail_to(whom: &str) -> Message {
    calls([call("c1", "mail", json!({ "to": whom }))])
}

fn last_id(messages: &[Message]) -> String {
    messages.last().unwrap().id.clone().unwrap()
}

async fn next(agent: &CompiledStateGraph<ReactState>) -> Vec<String> {
    agent.thread("t").state().await.unwrap().next
}

/// An update as `agent` led nowhere, and the call was never made.
#[tokio::test]
async fn a_call_that_is_edited_at_a_stop_is_made_as_it_is_then() {
    for as_node in [None, Some("agent")] {
        let mail = Noting::new("mail");
        let agent =
            create_react_agent(ScriptedModel::new([mail_to("all"), Message::assistant("Sent.")]), [mail.clone()])
                .checkpointer(MemorySaver::new())
                .interrupt_before(["tools"])
                .compile()
                .unwrap();
        let stopped = agent.invoke("Tell them.").thread("t").await.unwrap();
        let edited = mail_to("ann").with_id(last_id(&stopped.state.messages));
        let mut update = agent.thread("t").update(ReactState::update().messages([edited]));
        if let Some(node) = as_node {
            update = update.as_node(node);
        }
        update.await.unwrap();
        assert_eq!(next(&agent).await, ["tools"]);
        let out = agent.invoke(GoOn).thread("t").await.unwrap();
        assert_eq!(
            (mail.calls(), out.state.messages.last().unwrap().text().into_owned()),
            (vec![json!({ "to": "ann" })], "Sent.".to_owned())
        );
    }
}

#[tokio::test]
async fn a_call_that_is_edited_while_it_waits_for_approval_is_asked_about_as_it_is_then() {
    let mail = Noting::new("mail");
    let agent = create_react_agent(ScriptedModel::new([mail_to("all"), Message::assistant("Sent.")]), [mail.clone()])
        .middleware(Approval::new().tool("mail", Decisions::all()))
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let asked = agent.invoke("Tell them.").thread("t").await.unwrap();
    let edited = mail_to("ann").with_id(last_id(&asked.state.messages));
    agent.thread("t").update(ReactState::update().messages([edited])).await.unwrap();
    assert_eq!(next(&agent).await, ["approval.after_model"]);
    let asked = agent.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(asked.interrupts[0].value["action_requests"][0]["args"], json!({ "to": "ann" }));
    agent.invoke(Resume::value(ApprovalAnswer::new([Decision::approve()]))).thread("t").await.unwrap();
    assert_eq!(mail.calls(), [json!({ "to": "ann" })]);
}

#[tokio::test]
async fn what_is_said_at_a_stop_before_the_model_is_answered_with_hooks_too() {
    let model = ScriptedModel::new(["Hello."]);
    let agent = create_react_agent(model.clone(), ())
        .middleware(Limits::new().model_calls(Per::Run, 5))
        .checkpointer(MemorySaver::new())
        .interrupt_before(["agent"])
        .compile()
        .unwrap();
    assert_eq!(agent.diagnostics(), []);
    agent.invoke("Hi.").thread("t").await.unwrap();
    agent.thread("t").update(ReactState::update().messages([Message::user("Are you there?")])).await.unwrap();
    let out = agent.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!(texts(&out.state.messages), ["Hi.", "Are you there?", "Hello."]);
}

#[tokio::test]
async fn an_answer_that_is_replaced_by_a_call_leads_to_the_tools() {
    let mail = Noting::new("mail");
    let agent = create_react_agent(ScriptedModel::new(["No.", "Sent."]), [mail.clone()])
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let out = agent.invoke("Tell them.").thread("t").await.unwrap();
    let instead = mail_to("ann").with_id(last_id(&out.state.messages));
    agent.thread("t").update(ReactState::update().messages([instead])).as_node("agent").await.unwrap();
    let out = agent.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((mail.calls().len(), out.state.messages.last().unwrap().text().into_owned()), (1, "Sent.".to_owned()));
}

/// Looks something up; its result is the answer.
#[tool(return_direct)]
fn look_up(word: String) -> String {
    format!("{word}: a word")
}

/// The run ended with the other call's result, and the model never read that this one was rejected.
#[tokio::test]
async fn a_rejected_call_whose_result_would_be_the_answer_is_none() {
    let both = || calls([call("c1", "look_up", json!({ "word": "tea" })), call("c2", "mail", json!({ "to": "ann" }))]);
    for (decision, ends_with) in
        [(Decision::reject("Not now."), "As you like."), (Decision::approve(), "mail {\"to\":\"ann\"}")]
    {
        let model = ScriptedModel::new([both(), Message::assistant("As you like.")]);
        let agent = create_react_agent(model, ())
            .tool(look_up)
            .tool(Noting::new("mail"))
            .middleware(Approval::new().tool("look_up", Decisions::all()))
            .checkpointer(MemorySaver::new())
            .compile()
            .unwrap();
        agent.invoke("Go.").thread("t").await.unwrap();
        let out = agent.invoke(Resume::value(ApprovalAnswer::new([decision]))).thread("t").await.unwrap();
        assert_eq!(out.state.messages.last().unwrap().text(), ends_with);
    }
}
