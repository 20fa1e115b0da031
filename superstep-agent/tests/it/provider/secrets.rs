//! Keys: where they come from, where they go, and where they are never seen.

use std::error::Error;
use std::fmt::Write;
use std::process::Command;
use std::sync::{Arc, Mutex};

use superstep_agent::{Anthropic, ChatModel, Gemini, ModelErrorKind, OpenAi, OpenAiResponses, chat_model};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::server::{Answer, Server};
use crate::provider::read;

const KEY: &str = "sk-very-secret-0123456789";

/// Everything that is logged, at any level and by anyone.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        attributes.record(&mut self.clone());
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn keys_are_seen_nowhere() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let mut seen = String::new();
    let echo = format!(r#"{{"error":{{"message":"your key {KEY} is wrong","type":"authentication_error"}}}}"#);
    let busy = Answer::json(500, format!("your key {KEY} is fine, but we are busy"));
    let answers =
        [busy.clone(), Answer::json(401, &*echo), Answer::json(200, &*echo), busy.clone(), busy.clone(), busy];
    let server = Server::start(answers).await;
    let model = OpenAi::new("m").base_url(server.url()).api_key(KEY).header("x-proxy-key", KEY);
    for _ in 0..3 {
        let error = model.generate("hi".into()).await.unwrap_err();
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        write!(seen, "{error} {error:?} {:?}", causes.map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    }
    assert_eq!(server.requests()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    write!(seen, "{model:?} {:?}", Anthropic::new("m").api_key(KEY).header("a", KEY)).unwrap();
    write!(seen, "{:?} {:?}", Gemini::new("m").api_key(KEY), OpenAiResponses::new("m").api_key(KEY)).unwrap();
    let log = log.0.lock().unwrap();
    assert!(log.contains("asking the model again"), "{log}");
    assert!(seen.contains("[key]") && seen.contains("Secret(..)"), "{seen}");
    assert!(!seen.contains(KEY) && !log.contains(KEY), "{seen}\n{log}");
}

/// An address may hold a password: it was shown, and became the name under which answers are kept.
#[tokio::test(start_paused = true)]
async fn passwords_in_addresses_are_seen_nowhere() {
    let server = Server::start([Answer::json(200, read("openai/text", "answer.json"))]).await;
    let url = server.url().replace("http://", "http://user:hunter2@");
    let model = OpenAi::new("m").base_url(url);
    let answer = model.generate("hi".into()).await.unwrap();
    let host = server.url().replace("http://", "").split('/').next().unwrap().to_owned();
    assert_eq!(answer.clone().into_rich().unwrap().response["provider"], host);
    let gone = OpenAi::new("m").base_url("http://user:hunter2@127.0.0.1:1/v1?key=hunter2").retries(0);
    let error = gone.generate("hi".into()).await.unwrap_err();
    let seen = format!("{model:?} {gone:?} {error} {error:?} {}", serde_json::to_string(&answer).unwrap());
    assert!(!seen.contains("hunter2") && seen.contains("http://127.0.0.1:1/v1"), "{seen}");
}

/// What the next tests are about depends on the environment, so each part runs in a process of its own.
fn with_env(part: &str, variables: &[(&str, &str)]) {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "provider::secrets::part_in_a_process_of_its_own"]).env("SUPERSTEP_PART", part);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GEMINI_API_KEY"] {
        test.env_remove(name);
    }
    let output = test.envs(variables.iter().copied()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{part}: {told}");
}

#[tokio::test(start_paused = true)]
async fn part_in_a_process_of_its_own() {
    match std::env::var("SUPERSTEP_PART").as_deref() {
        Ok("no keys") => {
            for name in ["openai:m", "openai-responses:m", "anthropic:m", "gemini:m"] {
                let error = chat_model(name).err().unwrap();
                assert_eq!(error.kind(), ModelErrorKind::Auth);
                assert!(error.to_string().contains("_API_KEY`, or call `api_key`"), "{error}");
            }
            let error = OpenAi::new("m").generate("hi".into()).await.unwrap_err();
            assert_eq!(error.kind(), ModelErrorKind::Auth, "before anything is sent");
        }
        Ok("keys") => {
            let names = ["openai:m", "openai-responses:m", "anthropic:m", "gemini:m"];
            assert!(names.iter().all(|name| chat_model(name).unwrap().name() == "m"));
            let server = Server::start([Answer::json(200, read("openai/text", "answer.json"))]).await;
            OpenAi::new("m").base_url(server.url()).generate("hi".into()).await.unwrap();
            assert_eq!(server.requests()[0].header("authorization"), None, "the key is for OpenAI alone");
        }
        Ok("a variable") => {
            let server = Server::start([Answer::json(200, read("openai/text", "answer.json"))]).await;
            let model = OpenAi::new("m").base_url(server.url()).api_key_from("MY_KEY");
            model.generate("hi".into()).await.unwrap();
            assert_eq!(server.requests()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
            let error = model.api_key_from("NO_SUCH_KEY").generate("hi".into()).await.unwrap_err();
            assert_eq!(error.kind(), ModelErrorKind::Auth);
            assert_eq!(
                error.to_string(),
                "model `m`: there is no key: set the environment variable `NO_SUCH_KEY`, or call `api_key`"
            );
        }
        Ok("another server") => {
            let error = OpenAi::from_env("m").unwrap().retries(0).generate("hi".into()).await.unwrap_err();
            assert_eq!(error.kind(), ModelErrorKind::Connection, "{error}");
        }
        _ => {}
    }
}

#[test]
fn a_key_can_come_from_a_variable() {
    with_env("a variable", &[("MY_KEY", KEY)]);
}

#[test]
fn models_without_a_key_say_which_variable_to_set() {
    with_env("no keys", &[("OPENAI_API_KEY", " ")]);
}

#[test]
fn keys_of_the_environment_go_to_their_provider_only() {
    with_env("keys", &[("OPENAI_API_KEY", KEY), ("ANTHROPIC_API_KEY", KEY), ("GEMINI_API_KEY", KEY)]);
}

#[test]
fn another_server_of_the_environment_needs_no_key() {
    with_env("another server", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]);
}
