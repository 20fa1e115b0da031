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

/// Jumps the first time that its hook runs.
struct Jumps {
    name: &'static str,
    hooks: Hooks,
    jump: Option<Jump>,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Jumps {
    fn turn<S: Conversation>(&self) -> Turn<S> {
        let mut ran = self.ran.lock().unwrap();
        ran.push(self.name.to_owned());
        let is_first = ran.iter().filter(|ran| *ran == self.name).count() == 1;
        match self.jump.filter(|_| is_first) {
            Some(to) => Turn::go_on().jump(to),
            None => Turn::go_on(),
        }
    }
}

#[async_trait]
impl<S: Conversation> Middleware<S> for Jumps {
    fn name(&self) -> &str {
        self.name
    }
    fn hooks(&self) -> Hooks {
        self.hooks
    }
    async fn before_agent(&self, _: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        Ok(self.turn())
    }
    async fn before_model(&self, _: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        Ok(self.turn())
    }
    async fn after_model(&self, _: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        Ok(self.turn())
    }
    async fn after_agent(&self, _: Arc<S>, _: Context) -> Result<Turn<S>, BoxError> {
        Ok(self.turn())
    }
}

/// What ran, with a jump from one of the hooks: `x` has it, and `last` is a hook after the agent, `t` the tool.
async fn path(hooks: Hooks, jump: Jump) -> String {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let jumps = |name, hooks, jump| Jumps { name, hooks, jump, ran: ran.clone() };
    let replies = [calls([call("c1", "t", json!({}))]), Message::assistant("a"), Message::assistant("b")];
    let model = ScriptedModel::new(replies);
    let tool = Noting::new("t");
    let last = Hooks { after_agent: true, ..Hooks::default() };
    let agent = create_react_agent(model.clone(), [tool.clone()])
        .middleware(jumps("last", last, None))
        .middleware(jumps("x", hooks, Some(jump)))
        .compile()
        .unwrap();
    agent.invoke("go").recursion_limit(20).await.unwrap();
    let (asked, called) = (model.requests().len(), tool.calls().len());
    let ran = ran.lock().unwrap().join(" ");
    format!("{ran}, model {asked}, tool {called}")
}

/// A jump to the end out of a hook after the agent led to the first of those hooks, for ever.
#[tokio::test]
async fn every_hook_can_jump_everywhere() {
    let before_agent = || Hooks { before_agent: true, ..Hooks::default() };
    let before_model = || Hooks { before_model: true, ..Hooks::default() };
    let after_model = || Hooks { after_model: true, ..Hooks::default() };
    let after_agent = || Hooks { after_agent: true, ..Hooks::default() };
    assert_eq!(path(before_agent(), Jump::Model).await, "x last, model 2, tool 1");
    assert_eq!(path(before_agent(), Jump::Tools).await, "x last, model 2, tool 1", "there is nothing to call");
    assert_eq!(path(before_agent(), Jump::End).await, "x last, model 0, tool 0");
    assert_eq!(path(before_model(), Jump::Model).await, "x x x last, model 2, tool 1");
    assert_eq!(path(before_model(), Jump::Tools).await, "x x x last, model 2, tool 1");
    assert_eq!(path(before_model(), Jump::End).await, "x last, model 0, tool 0");
    assert_eq!(path(after_model(), Jump::Model).await, "x x last, model 2, tool 0", "the call is answered otherwise");
    assert_eq!(path(after_model(), Jump::Tools).await, "x x last, model 2, tool 1");
    assert_eq!(path(after_model(), Jump::End).await, "x last, model 1, tool 0");
    assert_eq!(path(after_agent(), Jump::Model).await, "x x last, model 3, tool 1");
    assert_eq!(path(after_agent(), Jump::Tools).await, "x x last, model 3, tool 1", "there is nothing to call");
    assert_eq!(path(after_agent(), Jump::End).await, "x last, model 2, tool 1");
}

/// Hooks take steps too: the agent noticed too late that the limit was near, and the run failed.
#[tokio::test]
async fn an_agent_with_hooks_stops_in_time_before_the_limit_of_steps() {
    use superstep_agent::middleware::{Approval, Decisions, Limits, Per};
    let approval = || Approval::new().tool("nothing", Decisions::all());
    for limit in 5..20 {
        let model = ScriptedModel::thinking(|_| calls([call(&Message::new_id(), "t", json!({}))]));
        let agent = create_react_agent(model, [Noting::new("t")])
            .middleware(approval())
            .middleware(Limits::new().model_calls(Per::Run, 100))
            .compile()
            .unwrap();
        let out = agent.invoke("go").recursion_limit(limit).await.unwrap_or_else(|error| panic!("{limit}: {error}"));
        assert_eq!(out.state.messages.last().unwrap().text(), "Sorry, need more steps to process this request.");
    }
}
