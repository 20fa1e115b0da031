//! A human's word before tools are called.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use superstep::{
    BoxError, CompiledStateGraph, Context, Conversation, Durability, GoOn, MemorySaver, Message, Resume, Then,
};
use superstep_agent::middleware::{
    Approval, ApprovalAnswer, ApprovalRequest, Decision, DecisionKind, Decisions, Hooks, Jump, Middleware, Turn,
};
use superstep_agent::{
    ReactState, ScriptedModel, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, create_react_agent,
};

use super::{Noting, call, calls, texts};

/// An agent that wants to send two mails and look something up, and then is done.
struct Office {
    mail: Noting,
    look: Noting,
    model: ScriptedModel,
    agent: CompiledStateGraph<ReactState>,
}

fn office(approval: Approval) -> Office {
    let (mail, look) = (Noting::new("mail"), Noting::new("look"));
    let wishes = calls([
        call("m1", "mail", json!({ "to": "ann" })),
        call("l1", "look", json!({ "at": "prices" })),
        call("m2", "mail", json!({ "to": "bob" })),
    ]);
    let model = ScriptedModel::new([wishes, Message::assistant("All done.")]);
    let agent = create_react_agent(model.clone(), [mail.clone(), look.clone()])
        .middleware(approval)
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    Office { mail, look, model, agent }
}

fn for_mail() -> Approval {
    Approval::new().tool("mail", Decisions::all())
}

async fn decide(office: &Office, decisions: impl IntoIterator<Item = Decision>) -> Vec<Message> {
    let asked = office.agent.invoke("Go!").thread("t").await.unwrap();
    assert_eq!(asked.interrupts.len(), 1);
    let answer = Resume::value(ApprovalAnswer::new(decisions));
    office.agent.invoke(answer).thread("t").await.unwrap().state.messages.split_off(1)
}

#[tokio::test]
async fn all_calls_of_a_message_that_need_a_word_are_asked_about_at_once() {
    let office = office(for_mail().describe(|call| format!("write to {}?", call.args["to"])));
    let out = office.agent.invoke("Go!").thread("t").await.unwrap();
    let expected = json!({
        "action_requests": [
            { "name": "mail", "args": { "to": "ann" }, "description": "write to \"ann\"?" },
            { "name": "mail", "args": { "to": "bob" }, "description": "write to \"bob\"?" },
        ],
        "review_configs": [
            { "action_name": "mail", "allowed_decisions": ["approve", "edit", "reject", "respond"] },
            { "action_name": "mail", "allowed_decisions": ["approve", "edit", "reject", "respond"] },
        ],
    });
    assert_eq!(out.interrupts.len(), 1);
    assert_eq!(out.interrupts[0].value, expected);
    assert_eq!(out.interrupts[0].value_as::<ApprovalRequest>().unwrap().action_requests.len(), 2);
    assert_eq!(office.mail.calls().len() + office.look.calls().len(), 0, "nothing is called before the answer");
}

#[tokio::test]
async fn the_words_about_a_call_name_the_tool_and_its_arguments_if_nothing_else_is_said() {
    let out = office(for_mail()).agent.invoke("Go!").thread("t").await.unwrap();
    let request: ApprovalRequest = out.interrupts[0].value_as().unwrap();
    let words = &request.action_requests[0].description;
    assert!(words.contains("`mail`") && words.contains("ann"), "{words}");
}

#[tokio::test]
async fn approved_calls_are_made_as_they_are() {
    let office = office(for_mail());
    let said = decide(&office, [Decision::approve(), Decision::approve()]).await;
    assert_eq!(office.mail.calls(), [json!({ "to": "ann" }), json!({ "to": "bob" })]);
    assert_eq!(office.look.calls(), [json!({ "at": "prices" })]);
    assert_eq!(said.last().unwrap().text(), "All done.");
}

#[tokio::test]
async fn an_edited_call_is_made_with_the_new_arguments_or_of_the_other_tool() {
    let office = office(for_mail());
    let edits = [Decision::edit("mail", json!({ "to": "eve" })), Decision::edit("look", json!({ "at": "addresses" }))];
    let said = decide(&office, edits).await;
    assert_eq!(office.mail.calls(), [json!({ "to": "eve" })]);
    assert_eq!(office.look.calls(), [json!({ "at": "prices" }), json!({ "at": "addresses" })]);
    let asked: Vec<(&str, &str)> = said[0].tool_calls().map(|call| (&*call.id, &*call.name)).collect();
    assert_eq!(asked, [("m1", "mail"), ("l1", "look"), ("m2", "look")], "the conversation tells what was called");
    let answered: Vec<&str> = said[1..4].iter().filter_map(Message::answers).collect();
    assert_eq!(answered, ["m1", "l1", "m2"]);
}

#[tokio::test]
async fn a_rejected_call_is_not_made_and_the_model_reads_why() {
    let office = office(for_mail());
    let said = decide(&office, [Decision::reject("Not to Ann."), Decision::Reject { message: None }]).await;
    assert_eq!(office.mail.calls(), [] as [Value; 0]);
    assert_eq!(office.look.calls().len(), 1, "what needs no word is called");
    assert_eq!(said[1].text(), "Not to Ann.");
    assert_eq!(said[2].text(), "A human rejected this call of `mail`.");
    assert!(said[1].is_error() && said[2].is_error());
    assert_eq!(office.model.requests()[1].messages.len(), 5);
}

#[tokio::test]
async fn a_human_may_answer_in_the_place_of_every_tool_and_the_model_goes_on() {
    let office = office(for_mail().tool("look", Decisions::of([DecisionKind::Respond])));
    let words = ["Ann knows.", "It costs 3.", "Bob knows."];
    let said = decide(&office, words.map(Decision::respond)).await;
    assert_eq!(texts(&said[1..]), ["Ann knows.", "It costs 3.", "Bob knows.", "All done."]);
    assert!(said[1..4].iter().all(|answer| !answer.is_error()));
    assert_eq!((office.mail.calls().len(), office.look.calls().len()), (0, 0));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_and_the_question_stays_open() {
    let office = office(Approval::new().tool("mail", Decisions::of([DecisionKind::Approve, DecisionKind::Reject])));
    let agent = &office.agent;
    let asked = agent.invoke("Go!").thread("t").await.unwrap();
    let wrong: [(Value, &str); 5] = [
        (json!({ "decisions": [{ "type": "approve" }] }), "there are 1 decisions for 2 tool calls"),
        (
            json!({ "decisions": [{ "type": "approve" }, { "type": "respond", "message": "hm" }] }),
            "`respond` is not allowed for tool `mail`; decide among `approve`, `reject`",
        ),
        (json!({ "decisions": [{ "type": "aprove" }, { "type": "approve" }] }), "aprove"),
        (json!("yes"), "the answer does not fit the question"),
        (json!(true), r#"answer with a decision for each call, like {"decisions": [{"type": "approve"}]}"#),
    ];
    for (answer, why) in wrong {
        let error = agent.invoke(Resume::value(answer)).thread("t").await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        let open = agent.thread("t").state().await.unwrap().interrupts;
        assert_eq!(open, asked.interrupts, "after: {error}");
        assert_eq!(office.mail.calls().len() + office.look.calls().len(), 0);
    }
    let answer = Resume::value(ApprovalAnswer::new([Decision::approve(), Decision::reject("no")]));
    let out = agent.invoke(answer).thread("t").await.unwrap();
    assert_eq!(out.state.messages.last().unwrap().text(), "All done.");
    assert_eq!(office.mail.calls(), [json!({ "to": "ann" })]);
}

/// The model was told that a call which nobody had approved may have taken effect.
#[tokio::test]
async fn new_input_while_a_question_is_open_tells_the_model_that_nothing_was_approved_and_called() {
    let office = office(for_mail());
    office.agent.invoke("Go!").thread("t").await.unwrap();
    let out = office.agent.invoke("Never mind.").thread("t").await.unwrap();
    let not_approved = "Not called: it waited for approval, and was not approved.";
    let beside = "Not called: a call beside it waited for approval, and was not approved.";
    let kept = &out.state.messages[2..];
    assert_eq!(texts(kept), [not_approved, beside, not_approved, "Never mind.", "All done."]);
    assert!(kept[..3].iter().all(Message::is_error));
    assert_eq!(texts(&office.model.requests()[1].messages[2..5]), [not_approved, beside, not_approved]);
    assert_eq!((office.mail.calls().len(), office.look.calls().len()), (0, 0));
}

/// Jumps to the tools before anybody is asked.
struct Hasty;

#[async_trait]
impl<S: Conversation> Middleware<S> for Hasty {
    fn name(&self) -> &'static str {
        "hasty"
    }
    fn hooks(&self) -> Hooks {
        Hooks { after_model: true, ..Hooks::default() }
    }
    async fn after_model(&self, state: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        let calls = state.conversation().last().is_some_and(|said| said.tool_calls().next().is_some());
        Ok(if calls { Turn::go_on().jump(Jump::Tools) } else { Turn::go_on() })
    }
}

/// Is called, and fails.
struct Broken(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Broken {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("mail", "Sends a mail.")
    }
    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(ToolError::failed("the line is dead"))
    }
}

#[tokio::test]
async fn a_call_that_was_made_and_failed_may_have_taken_effect_approved_or_not() {
    for is_hasty in [false, true] {
        let made = Arc::new(AtomicUsize::new(0));
        let wish = calls([call("m1", "mail", json!({ "to": "ann" }))]);
        let model = ScriptedModel::new([wish, Message::assistant("Well.")]);
        let agent = create_react_agent(model, [Broken(made.clone())]).middleware(for_mail());
        let agent = if is_hasty { agent.middleware(Hasty) } else { agent };
        let agent = agent.checkpointer(MemorySaver::new()).compile().unwrap();
        let mut ran = agent.invoke("Go!").thread("t").await;
        if !is_hasty {
            assert_eq!(ran.unwrap().interrupts.len(), 1);
            let answer = Resume::value(ApprovalAnswer::new([Decision::approve()]));
            ran = agent.invoke(answer).thread("t").await;
        }
        assert!(ran.unwrap_err().to_string().contains("the line is dead"));
        let out = agent.invoke("Never mind.").thread("t").await.unwrap();
        let words = out.state.messages[2].text();
        assert!(words.contains("It may have taken effect all the same"), "{words}");
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}

/// Notes its key, and the first call waits for the second.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Tool for Slow {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("mail", "Sends a mail.")
    }
    async fn call(&self, _: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.lock().unwrap().push(cx.idempotency_key());
        while self.0.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        Ok(ToolOutput::text("sent"))
    }
}

#[tokio::test]
async fn two_answers_to_one_question_may_both_call_the_tool_with_one_key_and_the_first_is_fenced() {
    let (mail, wish) = (Slow::default(), calls([call("m1", "mail", json!({}))]));
    let model = ScriptedModel::new([wish, Message::assistant("Done."), Message::assistant("Done.")]);
    let agent = create_react_agent(model, [mail.clone()]).middleware(for_mail()).checkpointer(MemorySaver::new());
    let agent = agent.compile().unwrap();
    agent.invoke("Go!").thread("t").await.unwrap();
    let approve = || {
        let answer = Resume::value(ApprovalAnswer { decisions: vec![Decision::Approve] });
        agent.invoke(answer).thread("t").durability(Durability::Sync)
    };
    let (first, second) = tokio::join!(approve().into_future(), approve().into_future());
    assert!(first.unwrap_err().is_fenced());
    assert_eq!(texts(&second.unwrap().state.messages[2..]), ["sent", "Done."]);
    let keys = mail.0.lock().unwrap();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

/// A thread waits for a word of somebody whom the next release no longer asks.
#[tokio::test]
async fn approval_can_be_taken_out_of_an_agent_whose_thread_waits_for_it() {
    let not_approved = "Not called: it waited for approval, and was not approved.";
    for (then, result, made) in [("agent", not_approved, 0), ("tools", r#"mail {"to":"ann"}"#, 1)] {
        let (saver, mail) = (MemorySaver::new(), Noting::new("mail"));
        let wish = calls([call("m1", "mail", json!({ "to": "ann" }))]);
        let model = ScriptedModel::new([wish, Message::assistant("Well.")]);
        let agent = || create_react_agent(model.clone(), [mail.clone()]).checkpointer(saver.clone());
        agent().middleware(for_mail()).compile().unwrap().invoke("Go!").thread("t").await.unwrap();

        let error = agent().compile().unwrap().invoke(GoOn).thread("t").await.unwrap_err();
        assert!(error.to_string().contains("`approval.after_model`"), "{error}");
        let without = agent().configure(move |graph| graph.removed_node("approval.after_model", Then::go_to(then)));
        let out = without.compile().unwrap().invoke(GoOn).thread("t").await.unwrap();
        assert_eq!(texts(&out.state.messages[2..]), [result, "Well."]);
        assert_eq!(mail.calls().len(), made);
    }
}

#[tokio::test]
async fn tools_that_were_not_chosen_are_called_without_a_question() {
    let office = office(Approval::new().tool("pay", Decisions::all()));
    let out = office.agent.invoke("Go!").thread("t").await.unwrap();
    assert!(out.interrupts.is_empty());
    assert_eq!(office.mail.calls().len(), 2);
}
