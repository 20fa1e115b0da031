//! The node that carries out tool calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use superstep::{
    AgentState, BoxError, Command, Context, Conversation, END, MemorySaver, MemoryStore, Message, Mode, Resume,
    Runtime, START, StateGraph, Store, StoreHandle, StreamWriter, ToolCall,
};
use superstep_agent::{
    ChatAgent, OnToolError, ScriptedModel, Tool, ToolContext, ToolError, ToolNode, ToolOutput, ToolSpec, tool,
    tools_condition,
};

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Fails.
#[tool]
async fn fail() -> Result<String, BoxError> {
    Err("the cable is cut".into())
}

fn call(id: &str, name: &str, args: Value) -> ToolCall {
    ToolCall::new(id, name, args)
}

fn app(node: ToolNode<AgentState>) -> superstep::CompiledStateGraph<AgentState> {
    StateGraph::new().add_node("tools", node).add_edge(START, "tools").compile().unwrap()
}

fn asking(calls: impl IntoIterator<Item = ToolCall>) -> AgentState {
    AgentState { messages: vec![Message::calls("", calls)] }
}

async fn answers(node: ToolNode<AgentState>, calls: impl IntoIterator<Item = ToolCall>) -> Vec<Message> {
    app(node).invoke(asking(calls)).await.unwrap().state.messages.split_off(1)
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|m| m.text().into_owned()).collect()
}

#[test]
fn two_tools_of_one_name_and_limits_of_zero_are_mistakes() {
    let node = ToolNode::<AgentState>::new((add, fail)).tool(add).timeout(Duration::ZERO).max_concurrency(0);
    let mistakes = StateGraph::new().add_node("tools", node).add_edge(START, "tools").compile().unwrap_err();
    let words = [
        "node `tools`: two tools are named `add`; give one of them another name",
        "node `tools`: the timeout of its tools is zero; give them time, or leave it out",
        "node `tools`: `max_concurrency(0)` lets no tool run; allow at least one call",
    ];
    assert_eq!(mistakes.errors().iter().map(ToString::to_string).collect::<Vec<_>>(), words);
    app(ToolNode::new([add]).max_concurrency(usize::MAX));
}

#[tokio::test]
async fn calls_are_answered_in_their_order_whichever_ends_first() {
    struct Late(Arc<tokio::sync::Barrier>);
    #[async_trait]
    impl Tool for Late {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("late", "Waits for the other.")
        }
        async fn call(&self, args: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
            self.0.wait().await;
            Ok(ToolOutput::text(args["n"].to_string()))
        }
    }
    // Each waits for the other: they must run at the same time.
    let node = ToolNode::new((Late(Arc::new(tokio::sync::Barrier::new(2))), add));
    let calls = [
        call("c1", "late", json!({ "n": 1 })),
        call("c2", "add", json!({ "a": 1, "b": 1 })),
        call("c3", "late", json!({ "n": 3 })),
    ];
    let answers = answers(node, calls).await;
    assert_eq!(texts(&answers), ["1", "2", "3"]);
    assert_eq!(answers.iter().map(|m| m.answers().unwrap()).collect::<Vec<_>>(), ["c1", "c2", "c3"]);
    assert_eq!(answers[1].name(), Some("add"));
    assert!(!answers[1].is_error());
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_and_arguments_that_do_not_fit_go_back_to_the_model() {
    let calls = [
        call("c1", "subtract", json!({})),
        call("c2", "add", json!({ "a": "one", "b": 2 })),
        call("c3", "add", json!("{broken")),
        call("c4", "add", json!({ "a": 1, "b": 2, "cx": "of no use" })),
    ];
    let answers = answers(ToolNode::new((add, fail)), calls).await;
    assert_eq!(answers[0].text(), "Error: subtract is not a valid tool, try one of [add, fail].");
    let fix = "Please fix the error and try again.";
    assert!(answers[1].text().starts_with("Error invoking tool 'add' with kwargs"), "{}", answers[1].text());
    assert!(
        answers[1].text().contains("invalid type: string \"one\", expected i64") && answers[1].text().ends_with(fix)
    );
    assert!(answers[2].text().contains("no JSON object: {broken"), "{}", answers[2].text());
    assert_eq!(answers.iter().map(Message::is_error).collect::<Vec<_>>(), [true, true, true, false]);
}

#[tokio::test]
async fn errors_fail_the_run_unless_the_policy_says_otherwise() {
    let policies: [(OnToolError, Result<&str, &str>); 6] = [
        (OnToolError::TellInvalid, Err("tool `fail` failed: the cable is cut")),
        (OnToolError::Raise, Err("tool `fail` failed: the cable is cut")),
        (OnToolError::Tell, Ok("Error: the cable is cut\n Please fix your mistakes.")),
        ("try later".into(), Ok("try later")),
        (OnToolError::handler(|e, c| Some(format!("{}: {e}", c.name))), Ok("fail: the cable is cut")),
        (OnToolError::handler(|_, _| None), Err("tool `fail` failed: the cable is cut")),
    ];
    for (policy, expected) in policies {
        let shown = format!("{policy:?}");
        let node = ToolNode::new([fail]).on_error(policy);
        let ended = app(node).invoke(asking([call("c1", "fail", json!({}))])).await;
        match (ended, expected) {
            (Ok(out), Ok(text)) => assert_eq!(out.state.messages[1].text(), text, "{shown}"),
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{shown}: {error}"),
            (ended, _) => panic!("{shown}: {:?}", ended.map(|out| texts(&out.state.messages))),
        }
    }
    let raised = ToolNode::new([add]).on_error(OnToolError::Raise);
    assert!(app(raised).invoke(asking([call("c1", "add", json!({}))])).await.is_err());
}

/// Fails as often as it was told to.
struct Shaky(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Shaky {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("shaky", "May fail.")
    }
    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        match self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(_) => Err(ToolError::failed("not yet")),
            Err(_) => Ok(ToolOutput::text("at last")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_repeated_as_often_as_allowed_with_growing_pauses() {
    let begin = tokio::time::Instant::now();
    let node =
        |failures| ToolNode::new([Shaky(Arc::new(AtomicUsize::new(failures)))]).retries(2, Duration::from_secs(1));
    assert_eq!(texts(&answers(node(2), [call("c", "shaky", json!({}))]).await), ["at last"]);
    assert_eq!(begin.elapsed().as_secs(), 3);
    assert!(app(node(3)).invoke(asking([call("c", "shaky", json!({}))])).await.is_err());
    // Arguments that do not fit do not get better.
    let begin = tokio::time::Instant::now();
    answers(ToolNode::new([add]).retries(2, Duration::from_secs(1)), [call("c", "add", json!({}))]).await;
    assert_eq!(begin.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_an_error_of_its_own() {
    /// Sleeps.
    #[tool]
    async fn sleep(seconds: u64) -> &'static str {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        "rested"
    }
    let node = ToolNode::new([sleep]).timeout(Duration::from_secs(5)).on_error(OnToolError::Tell);
    let calls = [call("c1", "sleep", json!({ "seconds": 9 })), call("c2", "sleep", json!({ "seconds": 1 }))];
    let answers = answers(node, calls).await;
    assert_eq!(texts(&answers), ["Error: it took longer than 5s\n Please fix your mistakes.", "rested"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_than_allowed_run_at_the_same_time() {
    struct Counted(Arc<AtomicUsize>, Arc<AtomicUsize>);
    #[async_trait]
    impl Tool for Counted {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("counted", "Counts.")
        }
        async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
            let now = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            self.1.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("ok"))
        }
    }
    for (limit, expected) in [(Some(2), 2), (None, 5)] {
        let most = Arc::new(AtomicUsize::new(0));
        let mut node = ToolNode::new([Counted(Arc::default(), most.clone())]);
        if let Some(limit) = limit {
            node = node.max_concurrency(limit);
        }
        let calls = (0..5).map(|n| call(&format!("c{n}"), "counted", json!({})));
        assert_eq!(answers(node, calls).await.len(), 5);
        assert_eq!(most.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test]
async fn what_is_injected_comes_from_the_run_and_is_invisible_to_the_model() {
    struct Tenant(&'static str);
    /// Knows everything.
    #[tool]
    async fn oracle(
        question: String,
        #[inject] state: Arc<AgentState>,
        #[inject] cx: Context,
        #[inject] store: StoreHandle,
        #[inject] writer: StreamWriter,
        #[inject] tenant: Runtime<Tenant>,
        #[inject] tool: ToolContext,
    ) -> Result<String, BoxError> {
        let call = tool.call();
        store.put(["facts"], "question", json!({ "q": question })).await?;
        writer.send(json!({ "asked": question })).await;
        let key = tool.idempotency_key();
        assert!(key.ends_with(&call.id) && key.len() > call.id.len());
        Ok(format!("{question} {} {} {} {}", state.messages.len(), cx.node(), tenant.0.0, call.id))
    }
    let properties = oracle.spec().parameters["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(properties, ["question"]);
    let store = MemoryStore::new();
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("tools", ToolNode::new([oracle])).add_edge(START, "tools");
    let app = graph.store(store.clone()).compile().unwrap();
    let asked = asking([call("c9", "oracle", json!({ "question": "why?", "state": "of the model" }))]);
    let mut events = app.stream(asked).mode(Mode::Custom).context(Tenant("acme")).start();
    let mut custom = 0;
    while let Some(event) = events.next().await {
        event.unwrap();
        custom += 1;
    }
    assert_eq!(custom, 1);
    assert_eq!(events.output().unwrap().state.messages[1].text(), "why? 1 tools acme c9");
    assert_eq!(store.get(["facts"], "question").await.unwrap().unwrap().value["q"], "why?");
}

#[tokio::test]
async fn a_tool_that_wants_another_state_says_so() {
    /// Wants what is not there.
    #[tool]
    fn picky(#[inject] state: Arc<Vec<Message>>) -> usize {
        state.len()
    }
    let error = app(ToolNode::new([picky])).invoke(asking([call("c", "picky", json!({}))])).await.unwrap_err();
    assert!(error.to_string().contains("wants the state") && error.to_string().contains("AgentState"), "{error}");
}

#[tokio::test]
async fn a_command_of_a_tool_for_another_state_names_both_states_and_the_tool() {
    /// Works somewhere else.
    #[tool]
    fn stray() -> Command<superstep_agent::ReactState> {
        Command::new()
    }
    let error = app(ToolNode::new([stray])).invoke(asking([call("c", "stray", json!({}))])).await.unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("tool `stray`") && words.contains("ReactState`; here it is") && words.contains("AgentState"),
        "{words}"
    );
}

#[tokio::test]
async fn a_command_of_a_tool_changes_the_graph_and_its_call_is_answered() {
    /// Ends it all.
    #[tool]
    fn finish(answered: bool, #[inject] call: ToolCall) -> Command<AgentState> {
        let command = Command::new().goto("last");
        if answered { command.update(AgentState::say(vec![Message::tool_result(call.id, "mine")])) } else { command }
    }
    for (answered, text) in [(true, "mine"), (false, "")] {
        let app = StateGraph::new()
            .add_node("tools", ToolNode::new([finish]))
            .add_node("last", |_: AgentState| async { vec![Message::assistant("bye")] })
            .add_edge(START, "tools")
            .compile()
            .unwrap();
        let out = app.invoke(asking([call("c1", "finish", json!({ "answered": answered }))])).await.unwrap();
        assert_eq!(texts(&out.state.messages[1..]), [text, "bye"]);
        assert_eq!(out.state.messages[1].answers(), Some("c1"));
    }
}

#[tokio::test]
async fn a_tool_may_ask_a_human_and_its_sibling_is_not_called_again() {
    static SENT: Mutex<Vec<String>> = Mutex::new(Vec::new());
    /// Sends mail, if it may.
    #[tool]
    async fn send(to: String, #[inject] cx: Context) -> Result<String, BoxError> {
        let text = if to == "boss" { cx.interrupt::<String>(json!({ "send to": to }))? } else { "sent".to_owned() };
        SENT.lock().unwrap().push(to);
        Ok(text)
    }
    let app = StateGraph::<AgentState>::new()
        .add_node("model", |_: AgentState| async {
            let calls = ["boss", "ann"].map(|to| call(to, "send", json!({ "to": to })));
            vec![Message::calls("", calls).with_id("m")]
        })
        .add_node("tools", ToolNode::new([send]).on_error(OnToolError::Tell))
        .add_edge(START, "model")
        .add_conditional_edges("model", |state: &AgentState| {
            let calls = state.messages.last().unwrap().tool_calls();
            calls.map(|call| superstep::Send::new("tools", call.clone())).collect::<Vec<_>>()
        })
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let out = app.invoke(()).thread("t").await.unwrap();
    assert_eq!(out.interrupts.len(), 1);
    let out = app.invoke(Resume::value("approved")).thread("t").await.unwrap();
    assert_eq!(texts(&out.state.messages[1..]), ["approved", "sent"]);
    assert_eq!(*SENT.lock().unwrap(), ["ann", "boss"]);
}

/// Waits for its turn, then asks whether it may.
struct Asks {
    name: &'static str,
    turn: Arc<tokio::sync::Notify>,
    then: Arc<tokio::sync::Notify>,
    heard: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Asks {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "Asks first.")
    }
    async fn call(&self, _: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        self.turn.notified().await;
        let asked = cx.context().interrupt::<bool>(format!("{}?", self.name));
        self.then.notify_one();
        let yes = asked.map_err(ToolError::failed)?;
        self.heard.lock().unwrap().push(format!("{} {yes}", self.name));
        Ok(ToolOutput::text(yes.to_string()))
    }
}

fn questions(out: &superstep::Output<AgentState>) -> Vec<Value> {
    out.interrupts.iter().map(|interrupt| interrupt.value.clone()).collect()
}

/// Two calls of one task asked, and whichever was the quicker when they ran again took the answer to the other's
/// question: a payment was made because a human had agreed to tidying up.
#[tokio::test]
async fn an_answer_stays_with_the_call_that_asked_whichever_is_quicker_when_they_run_again() {
    let (pay, tidy, heard) =
        (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()), Arc::default());
    let asks = |name, turn: &Arc<tokio::sync::Notify>, then: &Arc<tokio::sync::Notify>| {
        let heard: &Arc<Mutex<Vec<String>>> = &heard;
        Asks { name, turn: turn.clone(), then: then.clone(), heard: heard.clone() }
    };
    let node = ToolNode::new([asks("pay", &pay, &tidy), asks("tidy", &tidy, &pay)]);
    let mut graph = StateGraph::new();
    graph.add_node("tools", node).add_edge(START, "tools");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let calls = asking([call("c1", "pay", json!({})), call("c2", "tidy", json!({}))]);
    tidy.notify_one();
    let out = app.invoke(calls).thread("t").await.unwrap();
    assert_eq!(questions(&out), ["tidy?", "pay?"]);
    let (to_tidy, to_pay) = (out.interrupts[0].id.clone(), out.interrupts[1].id.clone());
    drain(&tidy);
    pay.notify_one();
    let out = app.invoke(Resume::by_id([(to_tidy, true)])).thread("t").await.unwrap();
    assert_eq!(questions(&out), ["pay?"], "its question was not answered");
    drain(&pay);
    tidy.notify_one();
    let out = app.invoke(Resume::by_id([(to_pay, false)])).thread("t").await.unwrap();
    assert!(out.interrupts.is_empty(), "{:?}", out.interrupts);
    assert_eq!(texts(&out.state.messages[1..]), ["false", "true"]);
    assert_eq!(*heard.lock().unwrap(), ["tidy true", "tidy true", "pay false"]);
}

/// Takes back a turn that nobody took.
fn drain(turn: &tokio::sync::Notify) {
    let mut taken = Box::pin(turn.notified());
    let _ = taken.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
}

/// A tool asked, was allowed and failed; the second try asked a second time, and when the human said no, the first
/// try read the old yes and went through.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_tried_again_reads_the_answer_that_it_was_given() {
    struct Order(Arc<AtomicUsize>);
    #[async_trait]
    impl Tool for Order {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("order", "Orders, if it may.")
        }
        async fn call(&self, _: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
            let yes: bool = cx.context().interrupt("order?").map_err(ToolError::failed)?;
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => Err(ToolError::failed("the shop is busy")),
                _ => Ok(ToolOutput::text(format!("ordered: {yes}"))),
            }
        }
    }
    for answer in [true, false] {
        let tries = Arc::default();
        let node = ToolNode::new([Order(Arc::clone(&tries))]).retries(2, Duration::from_millis(1));
        let mut graph = StateGraph::new();
        graph.add_node("tools", node).add_edge(START, "tools");
        let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
        let out = app.invoke(asking([call("c1", "order", json!({}))])).thread("t").await.unwrap();
        assert_eq!(questions(&out), ["order?"]);
        let out = app.invoke(Resume::value(answer)).thread("t").await.unwrap();
        assert!(out.interrupts.is_empty(), "it is asked once: {:?}", out.interrupts);
        assert_eq!(texts(&out.state.messages[1..]), [format!("ordered: {answer}")]);
        assert_eq!(tries.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn calls_that_are_answered_already_are_not_carried_out_again() {
    let messages = vec![
        Message::calls(
            "",
            [call("c1", "add", json!({ "a": 1, "b": 1 })), call("c2", "add", json!({ "a": 2, "b": 2 }))],
        ),
        Message::tool_result("c1", "two, I know"),
    ];
    let out = app(ToolNode::new([add])).invoke(AgentState { messages }).await.unwrap();
    assert_eq!(texts(&out.state.messages[1..]), ["two, I know", "4"]);
    let error = app(ToolNode::new([add])).invoke(AgentState { messages: vec![Message::user("hi")] }).await;
    assert!(error.unwrap_err().to_string().contains("no message of a model"));
}

#[tokio::test]
async fn artifacts_and_parts_are_kept_beside_the_words() {
    /// Finds rows.
    #[tool]
    fn rows() -> ToolOutput {
        ToolOutput::text("3 rows").artifact(json!([1, 2, 3]))
    }
    let answers = answers(ToolNode::new([rows]), [call("c1", "rows", json!({}))]).await;
    let rich = answers[0].clone().into_rich().unwrap();
    assert_eq!((answers[0].text(), rich.answer.unwrap().artifact), ("3 rows".into(), Some(json!([1, 2, 3]))));
}

#[test]
fn the_condition_sends_calls_to_the_tools_and_all_else_to_the_end() {
    assert_eq!(tools_condition(&asking([call("c", "add", json!({}))])), "tools");
    assert_eq!(tools_condition(&AgentState { messages: vec![Message::assistant("done")] }), END);
    assert_eq!(tools_condition(&AgentState::default()), END);
}

/// Seed 000 writes `add_node("tool", Box::new(ToolNode::new(tools)))`, and keeps nodes as `Box<dyn Node<S>>`.
#[tokio::test]
async fn a_tool_node_is_a_boxed_node_and_runs_by_itself() {
    /// Doubles a number.
    #[tool]
    fn double(n: i64) -> i64 {
        n * 2
    }
    let asked = || {
        let call = ToolCall::new("c1", "double", serde_json::json!({ "n": 21 }));
        AgentState { messages: vec![Message::calls("", [call])] }
    };
    let boxed: Box<dyn superstep::Node<AgentState>> = Box::new(ToolNode::new((double,)));
    let (state, next) = boxed.run(asked()).await.unwrap();
    assert_eq!((&*state.messages[1].text(), next), ("42", superstep::Next::Continue));
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("boxed", boxed).add_node("tool", Box::new(ToolNode::new((double,)))).add_edge(START, "boxed");
    assert_eq!(graph.compile().unwrap().invoke(asked()).await.unwrap().state.messages[1].text(), "42");
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("tool", Box::new(ToolNode::new((double,)))).add_edge(START, "tool");
    assert_eq!(graph.compile().unwrap().invoke(asked()).await.unwrap().state.messages[1].text(), "42");
}

/// A chat that calls tools, and the tools: boxed, in a line.
#[tokio::test]
async fn a_chat_and_its_tools_are_a_line_of_boxed_nodes() {
    let llm = ScriptedModel::new([Message::calls("let me see", [call("c1", "add", json!({ "a": 20, "b": 22 }))])]);
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(add)];
    let mut graph = StateGraph::<AgentState>::new();
    graph
        .add_node("chat", Box::new(ChatAgent::new(llm)))
        .add_node("tool", Box::new(ToolNode::new(tools)))
        .add_sequence(&["chat", "tool"]);
    let compiled = graph.compile().unwrap();
    let state = compiled.invoke(AgentState { messages: vec![Message::user("20 + 22?")] }).await.unwrap().state;
    assert_eq!(texts(&state.messages), ["20 + 22?", "let me see", "42"]);
}
