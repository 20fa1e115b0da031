//! Ready middleware, and what all of it can rely on.

mod approval;
mod limits;
mod models;
mod redact;
mod summarize;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use superstep::{BoxError, CancellationToken, Context, Conversation, MemorySaver, Message, Mode, ToolCall, Usage};
use superstep_agent::middleware::{Hooks, Jump, Middleware, Turn};
use superstep_agent::{ScriptedModel, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, create_react_agent};

/// A tool that writes down what it was called with, and says it back.
#[derive(Clone)]
pub(crate) struct Noting {
    name: &'static str,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl Noting {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, calls: Arc::default() }
    }

    pub(crate) fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Noting {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "Writes down what it is called with.")
    }
    async fn call(&self, args: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.calls.lock().unwrap().push(args.clone());
        Ok(ToolOutput::text(format!("{} {args}", self.name)))
    }
}

pub(crate) fn call(id: &str, name: &str, args: Value) -> ToolCall {
    ToolCall::new(id, name, args)
}

pub(crate) fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Message {
    Message::calls("", calls)
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.text().into_owned()).collect()
}

pub(crate) fn using(message: Message, usage: Usage) -> Message {
    message.with_rich(|rich| rich.usage = Some(usage))
}

/// Says something before the model is asked, and lets nobody ask it.
struct Curt;

#[async_trait]
impl<S: Conversation> Middleware<S> for Curt {
    fn name(&self) -> &'static str {
        "curt"
    }
    fn hooks(&self) -> Hooks {
        Hooks { before_model: true, ..Hooks::default() }
    }
    async fn before_model(&self, _: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        Ok(Turn::say([Message::assistant("No.")]).jump(Jump::End))
    }
}

#[tokio::test]
async fn what_a_hook_lets_the_model_say_carries_the_agents_name_and_what_others_said_does_not() {
    let agent = create_react_agent(ScriptedModel::new(["never"]), ()).name("guard").middleware(Curt).compile().unwrap();
    let before = Message::assistant("Hello.").with_id("before");
    let out = agent.invoke(vec![before, Message::user("May I?")]).await.unwrap();
    assert_eq!(texts(&out.state.messages), ["Hello.", "May I?", "No."]);
    assert_eq!(out.state.messages.iter().map(Message::name).collect::<Vec<_>>(), [None, None, Some("guard")]);
}

#[tokio::test]
async fn every_piece_of_a_named_agents_words_carries_its_name() {
    let agent = create_react_agent(ScriptedModel::new(["to be or not"]), ()).name("poet").compile().unwrap();
    let mut events = agent.stream("Recite!").mode(Mode::Messages).start();
    let mut heard = Vec::new();
    while let Some(event) = events.next().await {
        let superstep::EventData::Message(said) = event.unwrap().data else { panic!("only messages were asked for") };
        assert_eq!(said.message.name(), Some("poet"));
        heard.push(said.message.text().into_owned());
    }
    assert_eq!(heard.concat(), "to be or not");
    assert!(heard.len() > 2, "in pieces: {heard:?}");
    assert_eq!(events.output().unwrap().state.messages[1].name(), Some("poet"));
}

/// A run that is cancelled in the middle of a tool leaves a call without a result; the next question is answered all the
/// same, and the model reads that the call was cancelled.
#[tokio::test]
async fn a_thread_goes_on_after_a_run_was_cancelled_in_the_middle_of_a_tool() {
    struct Endless(CancellationToken);
    #[async_trait]
    impl Tool for Endless {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("endless", "Never ends.")
        }
        async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
            self.0.cancel();
            std::future::pending().await
        }
    }
    use superstep_agent::middleware::{Approval, Decisions, Limits, Per};
    let cancel = CancellationToken::new();
    let model = ScriptedModel::new([calls([call("c1", "endless", json!({}))]), Message::assistant("Never mind.")]);
    let agent = create_react_agent(model.clone(), [Endless(cancel.clone())])
        .middleware(Limits::new().tool_calls(Per::Run, 1).model_calls(Per::Thread, 2))
        .middleware(Approval::new().tool("other", Decisions::all()))
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let error = agent.invoke("Work!").thread("t").cancellation(cancel).await.unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    let out = agent.invoke("Still there?").thread("t").await.unwrap();
    assert_eq!(out.state.messages.last().unwrap().text(), "Never mind.");
    let read = &model.requests()[1].messages;
    assert_eq!(read[2].answers(), Some("c1"));
    assert!(read[2].is_error() && read[2].text().contains("cancelled"), "{read:?}");
}
