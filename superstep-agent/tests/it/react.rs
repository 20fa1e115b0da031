//! The ReAct agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{
    BoxError, Context, EventData, MemorySaver, Message, Mode, Output, Resume, Role, State, StateGraph, ToolCall, Usage,
};
use superstep_agent::middleware::{Redact, Redaction, RetryModel, Sensitive};
use superstep_agent::{
    ChatModel, ModelError, ModelErrorKind, ReactAgent, ReactState, Reply, ScriptedModel, Settings, ToolChoice,
    create_react_agent, tool,
};

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Looks something up; its result is the answer.
#[tool(return_direct)]
fn look_up(word: String) -> String {
    format!("{word}: a word")
}

fn adding(id: &str, a: i64, b: i64) -> ToolCall {
    ToolCall::new(id, "add", json!({ "a": a, "b": b }))
}

fn said<S: superstep::Conversation>(out: &Output<S>) -> Vec<String> {
    out.state.conversation().iter().map(|m| m.text().into_owned()).collect()
}

fn sums() -> ScriptedModel {
    ScriptedModel::new([
        Message::calls("Let me see.", [adding("c1", 1, 2), adding("c2", 3, 4)]),
        Message::calls("", [adding("c3", 3, 7)]),
        Message::assistant("It is 10."),
    ])
}

#[tokio::test]
async fn the_model_is_asked_until_it_calls_no_tool() {
    let model = sums();
    let agent = create_react_agent(model.clone(), [add]).prompt("Do sums.").name("adder").compile().unwrap();
    let out = agent.invoke("1 + 2 + 3 + 4?").await.unwrap();
    assert_eq!(said(&out), ["1 + 2 + 3 + 4?", "Let me see.", "3", "7", "", "10", "It is 10."]);
    let messages = &out.state.messages;
    assert_eq!((messages[1].name(), messages[6].name()), (Some("adder"), Some("adder")));
    assert!(messages.iter().all(|m| m.id.is_some()));

    let asked = model.requests();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0].messages[0], Message::system("Do sums."));
    assert_eq!((asked[0].messages.len(), asked[1].messages.len(), asked[2].messages.len()), (2, 5, 7));
    assert!(asked.iter().all(|request| request.tools.len() == 1 && request.tools[0].name == "add"));
}

#[tokio::test]
async fn words_are_an_input_owned_or_not() {
    let agent = create_react_agent(ScriptedModel::new(["ok", "ok"]), ()).compile().unwrap();
    let owned = agent.invoke(format!("{} plus {}?", 1, 2)).await.unwrap();
    assert_eq!(said(&owned), said(&agent.invoke("1 plus 2?").await.unwrap()));
}

#[tokio::test]
async fn it_draws_itself() {
    let agent = create_react_agent(sums(), (add, look_up)).compile().unwrap();
    let drawing = agent.draw();
    let edges: Vec<_> = drawing.edges.iter().map(|e| format!("{} -> {}", e.from, e.to)).collect();
    for edge in ["__start__ -> agent", "agent -> tools", "agent -> __end__", "tools -> agent", "tools -> __end__"] {
        assert!(edges.iter().any(|e| e == edge), "{edge} is not in {edges:?}");
    }
    assert_eq!(agent.diagnostics(), []);
}

#[tokio::test]
async fn threads_remember() {
    let model = ScriptedModel::thinking(|request| {
        let humans = request.messages.iter().filter(|m| m.role() == Some(Role::User)).count();
        Message::assistant(format!("{humans} questions so far"))
    });
    let agent = create_react_agent(model, ()).checkpointer(MemorySaver::new()).compile().unwrap();
    agent.invoke("one").thread("t").await.unwrap();
    let out = agent.invoke("two").thread("t").await.unwrap();
    assert_eq!(said(&out), ["one", "1 questions so far", "two", "2 questions so far"]);
}

#[tokio::test]
async fn streaming_and_not_streaming_leave_equal_histories() {
    let plain = create_react_agent(sums(), [add]).name("adder").compile().unwrap();
    let expected = plain.invoke(Message::user("?").with_id("q")).await.unwrap();
    let agent = create_react_agent(sums(), [add]).name("adder").compile().unwrap();
    let mut events = agent.stream(Message::user("?").with_id("q")).mode(Mode::Messages).start();
    let (mut words, mut ids) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().await {
        let EventData::Message(said) = event.unwrap().data else { continue };
        words.push((said.node, said.message.text().into_owned()));
        ids.push(said.message.id.unwrap());
    }
    let out = events.output().unwrap();
    let without_ids = |messages: &[Message]| -> Vec<Message> {
        messages.iter().map(|m| Message { id: None, kind: m.kind.clone() }).collect()
    };
    assert_eq!(without_ids(&out.state.messages), without_ids(&expected.state.messages));
    let spoken: String = words.iter().filter(|(node, _)| node == "agent").map(|(_, text)| &**text).collect();
    assert_eq!(spoken, "Let me see.It is 10.");
    assert_eq!(
        words.iter().filter(|(node, _)| node == "tools").map(|(_, t)| &**t).collect::<Vec<_>>(),
        ["3", "7", "10"]
    );
    // What was seen has the ids of what is kept.
    ids.dedup();
    let kept: Vec<_> = out.state.messages[1..].iter().map(|m| m.id.clone().unwrap()).collect();
    assert!(kept.iter().all(|id| ids.contains(id)) && ids.iter().all(|id| kept.contains(id)));
}

/// Some servers count their answers with three digits, or not at all: a later answer replaced an earlier one.
#[tokio::test]
async fn answers_that_a_server_gave_one_id_are_all_kept() {
    let same = |text: &str| Message::assistant(text).with_id("chatcmpl-7");
    let model = || ScriptedModel::new([same("one"), same("two"), same("three")]);
    let last_only = |state: &ReactState| state.messages[state.messages.len() - 1..].to_vec();
    let all = |state: &ReactState| state.messages.clone();
    for sees in [all as fn(&ReactState) -> Vec<Message>, last_only] {
        let agent = create_react_agent(model(), ()).messages_with(sees).checkpointer(MemorySaver::new());
        let agent = agent.compile().unwrap();
        agent.invoke("1?").thread("t").await.unwrap();
        agent.invoke("2?").thread("t").await.unwrap();
        let mut events = agent.stream("3?").thread("t").mode(Mode::Messages).start();
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            let EventData::Message(said) = event.unwrap().data else { continue };
            seen.push(said.message.id.unwrap());
        }
        let out = events.output().unwrap();
        assert_eq!(said(out), ["1?", "one", "2?", "two", "3?", "three"]);
        seen.dedup();
        assert_eq!(seen, [out.state.messages[5].id.clone().unwrap()], "what was seen has the id of what is kept");
        assert_eq!(out.state.messages[1].id.as_deref(), Some("chatcmpl-7"), "an id that is free is kept");
    }
}

#[tokio::test]
async fn calls_that_a_server_gave_one_id_are_all_made() {
    let again = || Message::calls("", [adding("call_1", 1, 2)]);
    let model = ScriptedModel::new([again(), again(), Message::assistant("It is 3.")]);
    let agent = create_react_agent(model, [add]).compile().unwrap();
    let out = agent.invoke("1 + 2?").await.unwrap();
    assert_eq!(said(&out), ["1 + 2?", "", "3", "", "3", "It is 3."]);
}

#[tokio::test]
async fn a_result_that_is_the_answer_ends_the_rounds_also_beside_others() {
    let look = || ToolCall::new("d", "look_up", json!({ "word": "tea" }));
    for calls in [vec![look()], vec![adding("c", 1, 1), look()], vec![look(), adding("c", 1, 1)]] {
        let model = ScriptedModel::new([Message::calls("", calls.clone())]);
        let agent = create_react_agent(model.clone(), (add, look_up)).compile().unwrap();
        let out = agent.invoke("?").await.unwrap();
        assert_eq!(out.state.messages.len(), 2 + calls.len());
        assert_eq!(model.requests().len(), 1);
    }
}

#[tokio::test]
async fn the_last_steps_end_with_an_apology_not_with_an_error() {
    let model = ScriptedModel::thinking(|_| Message::calls("", [adding("c", 1, 1)]));
    let agent = create_react_agent(model, [add]).compile().unwrap();
    for limit in [2, 4, 6] {
        let out = agent.invoke("?").recursion_limit(limit).await.unwrap();
        assert_eq!(said(&out).last().unwrap(), "Sorry, need more steps to process this request.", "{limit}");
        assert_eq!(out.state.messages.last().unwrap().tool_calls().count(), 0);
    }
}

#[tokio::test]
async fn models_may_be_picked_and_prompts_may_depend_on_the_state() {
    let (small, large) = (ScriptedModel::new(["small"]), ScriptedModel::new(["large"]));
    let pick = {
        let (small, large) = (Arc::new(small.clone()), Arc::new(large.clone()));
        move |state: &ReactState, _: &Context| -> Arc<dyn ChatModel> {
            if state.messages.len() > 1 { large.clone() } else { small.clone() }
        }
    };
    let agent = ReactAgent::<ReactState>::picking(pick)
        .prompt_with(|state: &ReactState| format!("{} messages", state.messages.len()))
        .compile()
        .unwrap();
    agent.invoke("one").await.unwrap();
    agent.invoke(vec![Message::user("one"), Message::user("two")]).await.unwrap();
    assert_eq!(small.requests()[0].messages[0], Message::system("1 messages"));
    assert_eq!(large.requests()[0].messages[0], Message::system("2 messages"));

    let model = ScriptedModel::new(["ok"]);
    let whole = |state: &ReactState| vec![Message::user(state.messages.len().to_string())];
    create_react_agent(model.clone(), ()).messages_with(whole).compile().unwrap().invoke("a").await.unwrap();
    assert_eq!(model.requests()[0].messages, [Message::user("1")]);
}

#[tokio::test]
async fn settings_reach_the_model() {
    let model = ScriptedModel::new(["ok"]);
    let mut settings = Settings::default();
    (settings.temperature, settings.max_tokens) = (Some(0.5), Some(7));
    create_react_agent(model.clone(), ()).settings(settings.clone()).compile().unwrap().invoke("a").await.unwrap();
    assert_eq!(model.requests()[0].settings, settings);
    assert_eq!(model.requests()[0].tool_choice, ToolChoice::Auto);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Verdict {
    guilty: bool,
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Court {
    #[state(messages)]
    talk: Vec<Message>,
    verdict: Option<Verdict>,
    #[state(sum)]
    fee: u64,
}

#[tokio::test]
async fn an_agent_works_over_a_state_of_ones_own_and_answers_into_its_field() {
    let model = ScriptedModel::new(["He did it.", "guilty!", r#"```json{"guilty": true}```"#]);
    let agent = ReactAgent::<Court>::new(model.clone()).response_into(Court::VERDICT).compile().unwrap();
    let out = agent.invoke(Court { talk: vec![Message::user("well?")], fee: 3, ..Court::default() }).await.unwrap();
    assert_eq!((out.state.verdict, out.state.fee, out.state.talk.len()), (Some(Verdict { guilty: true }), 3, 2));
    let asked = model.requests();
    assert_eq!(asked[1].output.as_ref().unwrap().name, "Verdict");
    assert!(asked[2].messages.last().unwrap().text().starts_with("That does not fit the asked form"));
}

#[tokio::test]
async fn an_answer_that_never_fits_is_an_error() {
    let model = ScriptedModel::new(["He did it.", "no", "no", "no", r#"{"guilty": true}"#]);
    let agent = create_react_agent(model, ()).response_format::<Verdict>().compile().unwrap();
    let error = agent.invoke("well?").await.unwrap_err();
    assert_eq!(error.node(), Some("generate_structured_response"));
    assert!(error.to_string().contains("does not fit the asked form"), "{error}");
}

/// The last call went past all middleware, and was heard without the agent's name.
#[tokio::test]
async fn the_call_for_the_form_is_made_like_all_others() {
    #[derive(Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
    struct Contact {
        mail: String,
    }
    let busy = || ModelError::new(ModelErrorKind::Overloaded, "large", "try later");
    let form = Reply::from(r#"{"mail": "ann@example.org"}"#);
    let model = ScriptedModel::new([Reply::from("It is Ann."), Reply::from(busy()), form]);
    let agent = create_react_agent(model.clone(), ())
        .name("desk")
        .middleware(Redact::new().find(Sensitive::Email, Redaction::Hash))
        .middleware(RetryModel::new().first_pause(Duration::ZERO))
        .response_format::<Contact>()
        .compile()
        .unwrap();
    let mut events = agent.stream("Who?").modes([Mode::Messages, Mode::Values]).start();
    let mut speakers = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        assert!(!event.to_json().to_string().contains("ann@"), "{event:?}");
        if let EventData::Message(said) = event.data {
            speakers.extend(said.chunk.and_then(|piece| piece.name));
        }
    }
    speakers.dedup();
    assert_eq!(speakers, ["desk"]);
    let contact = events.output().unwrap().state.structured::<Contact>().unwrap().unwrap();
    assert!(contact.mail.starts_with("<email_hash:"), "{contact:?}");
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn a_run_can_stop_before_its_tools_and_go_on() {
    let agent = create_react_agent(sums(), [add])
        .checkpointer(MemorySaver::new())
        .interrupt_before(["tools"])
        .compile()
        .unwrap();
    let out = agent.invoke("?").thread("t").await.unwrap();
    assert_eq!(out.state.messages.len(), 2);
    assert_eq!(agent.thread("t").state().await.unwrap().next, ["tools", "tools"]);
    agent.invoke(superstep::GoOn).thread("t").await.unwrap();
    let out = agent.invoke(superstep::GoOn).thread("t").await.unwrap();
    assert_eq!(said(&out).last().unwrap(), "It is 10.");
}

#[tokio::test]
async fn the_models_error_is_the_runs_and_says_what_it_was() {
    let error = ModelError::new(ModelErrorKind::RateLimited, "gpt-5", "too many requests").status_code(429);
    let agent = create_react_agent(ScriptedModel::new([error]), ()).compile().unwrap();
    let error = agent.invoke("?").await.unwrap_err();
    let source =
        std::error::Error::source(&error).and_then(|e| e.downcast_ref::<ModelError>()).expect("a model's error");
    assert_eq!((source.kind(), source.status(), source.is_retryable()), (ModelErrorKind::RateLimited, Some(429), true));
    assert_eq!(error.node(), Some("agent"));
}

#[tokio::test]
async fn a_broken_stream_is_an_error_and_leaves_no_half_message() {
    let model = ScriptedModel::new([Reply::BreakOff("I was about to".into()), "Sorry, again.".into()]);
    let agent = create_react_agent(model, ()).checkpointer(MemorySaver::new()).compile().unwrap();
    let mut events = agent.stream("?").thread("t").mode(Mode::Messages).start();
    let (mut heard, mut failed) = (0, false);
    while let Some(event) = events.next().await {
        match event {
            Ok(_) => heard += 1,
            Err(error) => failed = error.to_string().contains("broke off"),
        }
    }
    assert!(heard == 4 + 1 && failed, "{heard}");
    let out = agent.invoke(superstep::GoOn).thread("t").await.unwrap();
    assert_eq!(said(&out), ["?", "Sorry, again."]);
}

#[tokio::test]
async fn usage_and_what_the_provider_said_are_kept() {
    let answer = Message::assistant("ok").with_rich(|m| m.usage = Some(Usage::new(7, 3)));
    let agent =
        create_react_agent(ScriptedModel::new([answer]), ()).checkpointer(MemorySaver::new()).compile().unwrap();
    agent.invoke("?").thread("t").await.unwrap();
    let state = agent.thread("t").state().await.unwrap().state;
    assert_eq!(state.messages[1].usage().unwrap().total(), 10);
}

/// Counts what goes on.
static TICKS: AtomicUsize = AtomicUsize::new(0);

/// Ticks until it is stopped.
#[tool]
async fn tick(#[inject] cx: Context) -> String {
    let _ = cx;
    loop {
        TICKS.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_run_stops_all_its_tools_and_the_thread_can_go_on() {
    let calls = ["a", "b", "c"].map(|id| ToolCall::new(id, "tick", json!({})));
    let model = ScriptedModel::new([Message::calls("", calls), Message::assistant("Where were we?")]);
    let agent = create_react_agent(model.clone(), [tick]).checkpointer(MemorySaver::new()).compile().unwrap();
    let run = tokio::spawn({
        let agent = agent.clone();
        async move { agent.invoke("go").thread("t").await.map(|_| ()) }
    });
    while TICKS.load(Ordering::SeqCst) < 30 {
        tokio::task::yield_now().await;
    }
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    tokio::time::sleep(Duration::from_millis(100)).await;
    let stopped = TICKS.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(TICKS.load(Ordering::SeqCst), stopped);

    let state = agent.thread("t").state().await.unwrap();
    assert_eq!(state.next, ["tools", "tools", "tools"]);
    // The next question does not wait for the old calls; the model is told what became of them.
    let out = agent.invoke("never mind").thread("t").await.unwrap();
    assert_eq!(said(&out).last().unwrap(), "Where were we?");
    let read = &model.requests()[1].messages;
    let roles: Vec<_> = read.iter().map(|m| m.role().unwrap()).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Tool, Role::User]);
    assert!(read[2].is_error() && read[2].text().contains("cancelled. It may have taken effect all the same."));
    let kept: Vec<_> = out.state.messages.iter().map(|m| m.role().unwrap()).collect();
    assert_eq!(kept, [&*roles, &[Role::Assistant]].concat(), "the thread keeps what the model was told");
}

/// One of two calls went through before the other failed. The model was told that both had been cancelled without an
/// effect, in that one request only: the thread kept calls without results.
#[tokio::test]
async fn calls_that_a_failed_run_leaves_are_answered_in_the_thread_and_may_have_taken_effect() {
    /// Transfers.
    #[tool]
    fn transfer() -> &'static str {
        "transferred"
    }
    /// Fails.
    #[tool]
    fn fail() -> Result<String, BoxError> {
        Err("the cable is cut".into())
    }
    let calls = ["transfer", "fail"].map(|name| ToolCall::new(name, name, json!({})));
    let model = ScriptedModel::new([Message::calls("", calls), Message::assistant("I do not know.")]);
    let agent = create_react_agent(model, (transfer, fail)).checkpointer(MemorySaver::new()).compile().unwrap();
    agent.invoke("go").thread("t").await.unwrap_err();
    let out = agent.invoke("what happened?").thread("t").await.unwrap();
    let answers: Vec<_> = out.state.messages[2..4].iter().map(|m| m.answers().unwrap()).collect();
    assert_eq!(answers, ["transfer", "fail"]);
    assert!(out.state.messages[2].text().contains("may have taken effect"));
    assert_eq!(said(&out)[4..], ["what happened?", "I do not know."]);
    let saved = agent.thread("t").state().await.unwrap();
    assert_eq!(saved.state.messages, out.state.messages);
}

/// What the model reads of a conversation, in short.
async fn read_of(messages: Vec<Message>) -> Vec<String> {
    let model = ScriptedModel::new(["ok"]);
    create_react_agent(model.clone(), [add]).compile().unwrap().invoke(messages).await.unwrap();
    let short = |m: &Message| match m.tool_calls().next() {
        Some(call) => format!("calls {}", call.id),
        None => m.text().split(':').next().unwrap().to_owned(),
    };
    model.requests()[0].messages.iter().map(short).collect()
}

/// A tool that says more than its result puts other words between the calls and the results of its siblings, which
/// providers refuse.
#[tokio::test]
async fn results_stand_behind_their_calls_when_the_model_reads_them() {
    let calls = ["c1", "c2"].map(|id| ToolCall::new(id, "add", json!({})));
    let messages = vec![
        Message::user("go"),
        Message::calls("", calls),
        Message::tool_result("c1", "shot taken"),
        Message::user("[screenshot]"),
        Message::tool_result("c2", "plain"),
    ];
    assert_eq!(read_of(messages).await, ["go", "calls c1", "shot taken", "plain", "[screenshot]"]);
}

/// A later call of the same id hid that the first had no result.
#[tokio::test]
async fn an_id_that_comes_again_hides_no_open_call() {
    let calls = || Message::calls("", [ToolCall::new("call_0", "add", json!({}))]);
    let messages = vec![
        Message::user("a"),
        calls(),
        Message::user("b"),
        calls(),
        Message::tool_result("call_0", "3"),
        Message::user("c"),
    ];
    let read = read_of(messages).await;
    assert_eq!(read, ["a", "calls call_0", "There is no result", "b", "calls call_0", "3", "c"]);
}

#[tokio::test]
async fn an_agent_is_a_node_of_a_larger_graph() {
    let agent = create_react_agent(sums(), [add]).name("adder").compile().unwrap();
    let app = StateGraph::<ReactState>::new()
        .add_node("adder", agent)
        .add_node("thanks", |_: ReactState| async { ReactState::update().messages([Message::user("thanks")]) })
        .add_sequence(["adder", "thanks"])
        .set_entry_point("adder")
        .compile()
        .unwrap();
    let mut events = app.stream("1 + 2 + 3 + 4?").mode(Mode::Messages).subgraphs().start();
    let mut words = String::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        if let EventData::Message(said) = event.data
            && said.node == "agent"
        {
            assert_eq!(event.namespace.len(), 1);
            words += &said.message.text();
        }
    }
    assert_eq!(words, "Let me see.It is 10.");
    assert_eq!(said(events.output().unwrap()).last().unwrap(), "thanks");
}

#[tokio::test]
async fn a_question_of_a_tool_pauses_the_agent_and_is_answered_with_its_id() {
    /// Books a table, if the human agrees.
    #[tool]
    async fn book(place: String, #[inject] cx: Context) -> Result<String, BoxError> {
        let answer: String = cx.interrupt(json!({ "book": place }))?;
        Ok(format!("{place}: {answer}"))
    }
    let calls = ["Rome", "Oslo"].map(|place| ToolCall::new(place, "book", json!({ "place": place })));
    let model = ScriptedModel::new([Message::calls("", calls), Message::assistant("Done.")]);
    let agent = create_react_agent(model, [book]).checkpointer(MemorySaver::new()).compile().unwrap();
    let out = agent.invoke("book").thread("t").await.unwrap();
    let ids: Vec<_> =
        out.interrupts.iter().map(|i| (i.id.clone(), i.value["book"].as_str().unwrap().to_lowercase())).collect();
    assert_eq!(ids.len(), 2);
    let out = agent.invoke(Resume::by_id(ids)).thread("t").await.unwrap();
    assert_eq!(said(&out)[2..], ["Rome: rome", "Oslo: oslo", "Done."]);
}
