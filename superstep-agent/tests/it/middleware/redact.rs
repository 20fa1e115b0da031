//! Things that nobody should read.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use superstep::{
    Block, BoxError, Command, Context, Conversation, JsonMap, MemorySaver, Message, Mode, RichMessage, Role,
};
use superstep_agent::middleware::{
    AskModel, Blocked, Fallback, Hooks, Middleware, ModelAsk, Place, Redact, Redaction, Sensitive, Turn,
};
use superstep_agent::{
    ModelError, ModelErrorKind, OnToolError, ReactState, ScriptedModel, Tool, ToolContext, ToolError, ToolOutput,
    ToolSpec, create_react_agent,
};

use super::{call, calls, texts};

#[track_caller]
fn check(what: Sensitive, cases: &[(&str, &str)]) {
    let redact = Redact::new().find(what, Redaction::Replace);
    for (text, expected) in cases {
        let expected = expected.replace('#', &redact.text(example(what)).unwrap());
        assert_eq!(redact.text(text).unwrap(), expected, "in {text:?}");
    }
}

fn example(what: Sensitive) -> &'static str {
    match what {
        Sensitive::Email => "a@b.org",
        Sensitive::CreditCard => "4111111111111111",
        Sensitive::Ip => "1.2.3.4",
        Sensitive::Mac => "00:1A:2b:3c:4d:5e",
        _ => "https://a.org",
    }
}

#[test]
fn mail_addresses_are_found() {
    check(
        Sensitive::Email,
        &[
            ("write to ann.lee+x@mail.example.org.", "write to #."),
            ("<ann@example.org>,bob@example.com", "<#>,#"),
            ("jürgen@müller.example", "#"),
            ("ann@localhost, @ann, 3@4.5, a@b.c", "ann@localhost, @ann, 3@4.5, a@b.c"),
            ("日本a@b.org語", "#"),
        ],
    );
}

#[test]
fn card_numbers_are_found_if_their_check_digit_is_right() {
    check(
        Sensitive::CreditCard,
        &[
            ("card 4111 1111 1111 1111, 5500-0000-0000-0004!", "card #, #!"),
            ("378282246310005", "#"),
            ("4111 1111 1111 1112", "4111 1111 1111 1112"),
            ("no 12 4111111111111111", "no 12 #"),
            ("x4111111111111111 41111111111111114111", "x4111111111111111 41111111111111114111"),
            ("0000 0000 0000 0000", "0000 0000 0000 0000"),
        ],
    );
}

#[test]
fn addresses_of_machines_are_found() {
    check(
        Sensitive::Ip,
        &[
            ("from 10.0.0.1. To 192.168.1.254:8080", "from #. To #:8080"),
            ("host:10.0.0.1, [2001:db8::1]:80, fe80::1", "host:#, [#]:80, #"),
            ("at 12:34:56 version 1.2.3 std::io :: 256.1.1.1", "at 12:34:56 version 1.2.3 std::io :: 256.1.1.1"),
            ("::ffff:10.0.0.1 and node:::1", "# and node:#"),
        ],
    );
    check(
        Sensitive::Mac,
        &[
            ("card 00:1a:2B:3c:4D:5e.", "card #."),
            ("00-1a-2b-3c-4d-5e", "#"),
            ("00:1a:2b-3c:4d:5e x00:1a:2b:3c:4d:5e", "00:1a:2b-3c:4d:5e x00:1a:2b:3c:4d:5e"),
        ],
    );
    check(
        Sensitive::Url,
        &[
            ("see https://example.org/a?b=c#d, or www.example.org.", "see #, or #."),
            ("(HTTP://EXAMPLE.ORG) ftp://files.example.org", "(#) #"),
            ("http:// is no address, nor is awww.x", "http:// is no address, nor is awww.x"),
        ],
    );
}

#[test]
fn masks_leave_a_little_and_hashes_tell_equal_from_unequal() {
    let mask = |what, text: &str| Redact::new().find(what, Redaction::Mask).text(text).unwrap();
    assert_eq!(mask(Sensitive::Email, "ann@example.org"), "a****@****.org");
    assert_eq!(mask(Sensitive::CreditCard, "4111-1111-1111-1111"), "****-****-****-1111");
    assert_eq!(mask(Sensitive::Ip, "10.0.0.17 fe80::1"), "*.*.*.17 ****");
    assert_eq!(mask(Sensitive::Mac, "00:1a:2b:3c:4d:5e"), "**:**:**:**:**:5e");
    assert_eq!(mask(Sensitive::Url, "https://example.org"), "[MASKED_URL]");
    let hash = |text: &str| Redact::new().find(Sensitive::Email, Redaction::Hash).text(text).unwrap();
    assert_eq!(hash("ann@example.org"), hash("ann@example.org"));
    assert_ne!(hash("ann@example.org"), hash("bob@example.org"));
    // The beginning of SHA-256 of `a@b.org`, by another program.
    assert_eq!(hash("a@b.org"), "<email_hash:5b26064bbe849dab>");
}

#[test]
fn patterns_of_ones_own_are_found_and_what_overlaps_is_taken_out_as_a_whole() {
    let badge = |text: &str| text.match_indices("badge ").map(|(at, _)| at + 6..at + 9).collect();
    let redact = Redact::new().pattern("badge", badge, Redaction::Replace).find(Sensitive::Email, Redaction::Mask);
    assert_eq!(redact.text("badge 123, badge 456").unwrap(), "badge [REDACTED_BADGE], badge [REDACTED_BADGE]");
    assert_eq!(redact.text("badge 77a@example.org!").unwrap(), "badge [REDACTED_BADGE]!");
    let careless = Redact::new().pattern("any", |_| vec![1..2, 9..99, 3..3], Redaction::Mask);
    assert_eq!(careless.text("äöü").unwrap(), "****öü", "a place in the middle of a letter is widened");
}

/// Says what it knows of Ann, or fails with it.
struct Directory;

#[async_trait]
impl Tool for Directory {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("directory", "Knows everybody.")
    }
    async fn call(&self, args: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        match args["fail"].as_bool() {
            Some(true) => Err(ToolError::failed("no entry for ann@example.org")),
            _ => Ok(ToolOutput::text("ann@example.org")),
        }
    }
}

fn looking_up(args: Value) -> ScriptedModel {
    let look = Message::calls("for carl@example.org", [call("c1", "directory", args)]);
    ScriptedModel::new([look, Message::assistant("It is ann@example.org.")])
}

async fn conversation(redact: Redact, args: Value) -> Vec<String> {
    let agent = create_react_agent(looking_up(args), [Directory])
        .calling_tools(|node| node.on_error(OnToolError::Tell))
        .middleware(redact)
        .compile()
        .unwrap();
    texts(&agent.invoke("I am bob@example.org.").await.unwrap().state.messages)
}

#[tokio::test]
async fn what_humans_models_and_tools_say_is_looked_at() {
    let redact = Redact::new().find(Sensitive::Email, Redaction::Replace);
    let mail = "[REDACTED_EMAIL]";
    let all = [format!("I am {mail}."), format!("for {mail}"), mail.to_owned(), format!("It is {mail}.")];
    assert_eq!(conversation(redact.clone(), json!({})).await, all);
    let input = conversation(redact.clone().only([Place::Input]), json!({})).await;
    assert_eq!(input, [&*all[0], "for carl@example.org", "ann@example.org", "It is ann@example.org."]);
    let results = conversation(redact.clone().only([Place::ToolResults]), json!({})).await;
    assert_eq!(results, ["I am bob@example.org.", "for carl@example.org", mail, "It is ann@example.org."]);
    let failed = conversation(redact, json!({ "fail": true })).await;
    assert_eq!(failed[2], format!("Error: no entry for {mail}\n Please fix your mistakes."));
}

#[tokio::test]
async fn arguments_of_tools_stay_as_they_are() {
    let model = ScriptedModel::new([
        calls([call("c1", "directory", json!({ "of": "ann@example.org" }))]),
        Message::assistant("ok"),
    ]);
    let redact = Redact::new().find(Sensitive::Email, Redaction::Replace);
    let agent = create_react_agent(model, [Directory]).middleware(redact).compile().unwrap();
    let out = agent.invoke("Who?").await.unwrap();
    assert_eq!(out.state.messages[1].tool_calls().next().unwrap().args["of"], "ann@example.org");
}

#[tokio::test]
async fn what_is_taken_out_of_an_answer_is_never_heard_in_the_stream() {
    let redact = Redact::new().find(Sensitive::Email, Redaction::Mask);
    let model = ScriptedModel::new(["Write to ann@example.org today."]);
    let agent = create_react_agent(model, ()).name("desk").middleware(redact).compile().unwrap();
    let mut events = agent.stream("Whom?").modes([Mode::Messages, Mode::Updates, Mode::Values]).start();
    let mut heard = String::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        assert!(!event.to_json().to_string().contains("example"), "{event:?}");
        if let superstep::EventData::Message(said) = event.data {
            assert_eq!(said.message.name(), Some("desk"));
            heard += &said.message.text();
        }
    }
    assert_eq!(heard, "Write to a****@****.org today.");
    assert_eq!(events.output().unwrap().state.messages[1].text(), heard);
}

#[tokio::test]
async fn what_is_blocked_is_not_said_and_the_thread_goes_on() {
    let model = ScriptedModel::new(["Hello.", "Write to ann@example.org.", "Fine."]);
    let agent = create_react_agent(model.clone(), ())
        .middleware(Redact::new().find(Sensitive::Email, Redaction::Block))
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let error = agent.invoke("I am bob@example.org.").thread("t").await.unwrap_err();
    assert_eq!(error.downcast_ref::<Blocked>().unwrap().kind(), "email");
    assert!(model.requests().is_empty(), "no model has read it");
    agent.invoke("I am Bob.").thread("t").await.unwrap();
    assert_eq!(texts(&model.requests()[0].messages), ["I am [REDACTED_EMAIL].", "I am Bob."]);
    let error = agent.invoke("Whom shall I write to?").thread("t").await.unwrap_err();
    assert_eq!(error.downcast_ref::<ModelError>().unwrap().kind(), ModelErrorKind::Refused);
    assert!(!error.to_string().contains("example"), "{error}");
    let out = agent.invoke("Never mind.").thread("t").await.unwrap();
    assert_eq!(out.state.messages.last().unwrap().text(), "Fine.");
}

#[tokio::test]
async fn a_blocked_result_is_an_error_of_the_tool() {
    let redact = Redact::new().find(Sensitive::Email, Redaction::Block).only([Place::ToolResults]);
    let told = conversation(redact.clone(), json!({})).await;
    assert!(told[2].contains("kind `email`") && !told[2].contains("example"), "{}", told[2]);
    let agent = create_react_agent(looking_up(json!({})), [Directory]).middleware(redact).compile().unwrap();
    let error = agent.invoke("Who?").await.unwrap_err();
    assert!(error.to_string().contains("tool `directory` failed"), "{error}");
}

fn without_addresses() -> Redact {
    Redact::new().find(Sensitive::Email, Redaction::Replace)
}

/// Redact took the model's place, and so did the fallback: nothing was taken out.
#[tokio::test]
async fn models_that_others_ask_instead_are_looked_at_too() {
    struct Says(&'static str);
    #[async_trait]
    impl<S: Conversation> Middleware<S> for Says {
        fn name(&self) -> &'static str {
            "says"
        }
        async fn around_model(&self, _: ModelAsk<S>, _: AskModel<'_, S>) -> Result<Message, ModelError> {
            Ok(Message::assistant(self.0))
        }
    }
    let busy = || ScriptedModel::new([ModelError::new(ModelErrorKind::Overloaded, "large", "try later")]);
    let fallback = Fallback::to(ScriptedModel::new(["Write to ann@example.org."]));
    let agents = [
        create_react_agent(busy(), ()).middleware(without_addresses()).middleware(fallback),
        create_react_agent(busy(), ()).middleware(without_addresses()).middleware(Says("Write to ann@example.org.")),
    ];
    for agent in agents {
        let agent = agent.compile().unwrap();
        let mut events = agent.stream("Whom?").modes([Mode::Messages, Mode::Values]).start();
        while let Some(event) = events.next().await {
            assert!(!event.unwrap().to_json().to_string().contains("ann@"));
        }
        assert_eq!(events.output().unwrap().state.messages[1].text(), "Write to [REDACTED_EMAIL].");
    }
}

/// Knows Ann in many ways.
struct Register;

#[async_trait]
impl Tool for Register {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("register", "Knows everybody.")
    }
    async fn call(&self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let mail = "ann@example.org";
        match args["how"].as_str() {
            Some("beside") => Ok(ToolOutput::text("found").artifact(json!({ mail: [{ "mail": mail }] }))),
            Some("command") => {
                let result = Message::tool_result(&*cx.call().id, mail);
                let said = ReactState::say(vec![result, Message::user(format!("I am {mail}"))]);
                Ok(ToolOutput::blocks(Vec::new()).command(Command::<ReactState>::new().update(said)))
            }
            _ => Err(ToolError::invalid("there is no such way")),
        }
    }
}

/// Only the text of plain results was looked at.
#[tokio::test]
async fn thoughts_artifacts_commands_and_words_about_errors_are_looked_at() {
    let look = calls([
        call("c1", "register", json!({ "how": "beside" })),
        call("c2", "register", json!({ "how": "command" })),
        call("c3", "register", json!({ "how": "ann@example.org" })),
    ]);
    let thinks = RichMessage::new(
        Role::Assistant,
        vec![
            Block::Reasoning {
                text: "It is ann@example.org.".into(),
                signature: Some("s".into()),
                extra: JsonMap::new(),
            },
            Block::Opaque { provider: "x".into(), value: json!({ "found": ["ann@example.org"] }) },
            Block::text("Hello."),
        ],
    );
    let model = ScriptedModel::new([look, thinks.into()]);
    let agent = create_react_agent(model.clone(), [Register]).middleware(without_addresses()).compile().unwrap();
    let out = agent.invoke("Who?").await.unwrap();
    assert_eq!(out.state.messages.len(), 7);
    let said = serde_json::to_string(&out.state.messages[2..]).unwrap();
    assert!(!said.contains("ann@"), "{said}");
    assert!(said.contains(r#"{"[REDACTED_EMAIL]":[{"mail":"[REDACTED_EMAIL]"}]}"#), "{said}");
    assert!(said.contains("with kwargs") && said.contains("I am [REDACTED_EMAIL]"), "{said}");
    assert!(!said.contains("signature"), "thoughts that were changed prove nothing: {said}");
}

/// Somebody else than the user may say a human's words in the middle of a run.
#[tokio::test]
async fn what_a_human_says_in_the_middle_of_a_run_is_looked_at_before_the_model_reads_it() {
    struct Reminds;
    #[async_trait]
    impl<S: Conversation> Middleware<S> for Reminds {
        fn name(&self) -> &'static str {
            "reminds"
        }
        fn hooks(&self) -> Hooks {
            Hooks { before_model: true, ..Hooks::default() }
        }
        async fn before_model(&self, _: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
            Ok(Turn::say([Message::user("I am bob@example.org.")]))
        }
    }
    let model = ScriptedModel::new(["Hello."]);
    let agent = create_react_agent(model.clone(), ()).middleware(without_addresses()).middleware(Reminds);
    agent.compile().unwrap().invoke("Hi.").await.unwrap();
    assert_eq!(texts(&model.requests()[0].messages), ["Hi.", "I am [REDACTED_EMAIL]."]);
}
