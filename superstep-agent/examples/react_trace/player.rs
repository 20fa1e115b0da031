//! Scripted conversations, played by the agent.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    BoxError, Command, CompiledStateGraph, Context, Conversation, ErrorKind, GoOn, MemorySaver, Message, Resume, Role,
    StateSnapshot, ToolCall,
};
use superstep_agent::{OnToolError, ReactState, ScriptedModel, Tool, create_react_agent, tool};

/// What is played.
#[derive(Deserialize)]
pub(crate) struct Scenario {
    tools: Vec<String>,
    script: Vec<Said>,
    turns: Vec<Turn>,
    prompt: Option<String>,
    name: Option<String>,
    on_error: Option<String>,
    #[serde(default)]
    response: bool,
    #[serde(default)]
    interrupt_before: Vec<String>,
    #[serde(default)]
    interrupt_after: Vec<String>,
    recursion_limit: Option<usize>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<Called>,
}

#[derive(Deserialize)]
struct Called {
    id: String,
    name: String,
    args: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Turn {
    Say(String),
    Resume(Value),
    Answers(HashMap<String, Value>),
    GoOn(#[expect(dead_code, reason = "the word says it all")] bool),
}

/// An answer.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Answer {
    value: i64,
}

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Divides two numbers.
#[tool]
fn divide(a: i64, b: i64) -> Result<i64, BoxError> {
    a.checked_div(b).ok_or_else(|| "division by zero".into())
}

/// Asks a human.
#[tool]
fn ask(question: String, #[inject] cx: Context) -> Result<String, BoxError> {
    Ok(cx.interrupt(json!({ "question": question }))?)
}

/// Looks up a word.
#[tool(return_direct)]
fn look(word: String) -> String {
    format!("{word}: a word")
}

/// Notes something.
#[tool]
fn note(text: String, #[inject] call: ToolCall) -> Command<ReactState> {
    Command::new().update(ReactState::say(vec![Message::tool_result(call.id, format!("noted: {text}"))]))
}

/// Counts the messages.
#[tool]
fn count(#[inject] state: Arc<ReactState>) -> usize {
    state.messages.len()
}

fn tools(names: &[String]) -> Vec<Arc<dyn Tool>> {
    let known: [Arc<dyn Tool>; 6] =
        [Arc::new(add), Arc::new(divide), Arc::new(ask), Arc::new(look), Arc::new(note), Arc::new(count)];
    known.into_iter().filter(|tool| names.contains(&tool.spec().name)).collect()
}

impl From<Said> for Message {
    fn from(said: Said) -> Self {
        let calls = said.calls.into_iter().map(|call| ToolCall::new(call.id, call.name, call.args));
        let calls: Vec<_> = calls.collect();
        if calls.is_empty() { Message::assistant(said.text) } else { Message::calls(said.text, calls) }
    }
}

/// Plays a conversation and tells what came of each turn, and what the model read.
pub(crate) async fn play(scenario: Scenario) -> Result<Value, BoxError> {
    let model = ScriptedModel::new(scenario.script.into_iter().map(Message::from));
    let mut agent = create_react_agent(model.clone(), tools(&scenario.tools))
        .checkpointer(MemorySaver::new())
        .interrupt_before(scenario.interrupt_before)
        .interrupt_after(scenario.interrupt_after);
    if let Some(prompt) = scenario.prompt {
        agent = agent.prompt(prompt);
    }
    if let Some(name) = scenario.name {
        agent = agent.name(name);
    }
    if scenario.response {
        agent = agent.response_format::<Answer>();
    }
    if let Some(policy) = scenario.on_error {
        agent = agent.calling_tools(|node| match policy.as_str() {
            "tell" => node.on_error(OnToolError::Tell),
            "raise" => node.on_error(OnToolError::Raise),
            words => node.on_error(words),
        });
    }
    let agent = agent.compile()?;
    let mut turns = Vec::new();
    for turn in scenario.turns {
        let error = take(&agent, turn, scenario.recursion_limit).await?;
        turns.push(shown_turn(error, &agent.thread("t").state().await?));
    }
    let read = model.requests().into_iter().map(|request| request.messages.iter().map(shown).collect::<Value>());
    Ok(json!({ "turns": turns, "read": read.collect::<Value>() }))
}

/// Takes a turn, and says what kind of error it came to.
async fn take(
    agent: &CompiledStateGraph<ReactState>,
    turn: Turn,
    limit: Option<usize>,
) -> Result<Option<&'static str>, BoxError> {
    let run = match turn {
        Turn::Say(text) => agent.invoke(&*text),
        Turn::Resume(answer) => agent.invoke(Resume::value(answer)),
        Turn::GoOn(_) => agent.invoke(GoOn),
        Turn::Answers(answers) => {
            let open = agent.thread("t").state().await?.interrupts;
            let answer = |question: &Value| answers[question.as_str().unwrap_or_default()].clone();
            agent.invoke(Resume::by_id(open.iter().map(|i| (i.id.clone(), answer(&i.value["question"])))))
        }
    };
    Ok(match run.thread("t").recursion_limit(limit.unwrap_or(25)).await {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::RecursionLimit => Some("recursion"),
        Err(_) => Some("failed"),
    })
}

fn shown_turn(error: Option<&str>, snapshot: &StateSnapshot<ReactState>) -> Value {
    let mut next = snapshot.next.clone();
    next.sort();
    let mut interrupts: Vec<Value> = snapshot.interrupts.iter().map(|i| i.value.clone()).collect();
    interrupts.sort_by_key(Value::to_string);
    json!({
        "error": error,
        "messages": snapshot.state.messages.iter().map(shown).collect::<Value>(),
        "next": next,
        "interrupts": interrupts,
        "structured": snapshot.state.structured_response,
    })
}

/// The words of errors are each language's own.
const WORDED_OTHERWISE: [&str; 2] = ["Error invoking tool", "Error: division"];

fn shown(message: &Message) -> Value {
    let kind = match message.role() {
        Some(Role::User) => "human",
        Some(Role::Assistant) => "ai",
        Some(Role::Tool) => "tool",
        _ => "system",
    };
    let text = message.text();
    let is_worded_otherwise = WORDED_OTHERWISE.iter().any(|begin| text.starts_with(begin));
    let mut shown = json!({ "type": kind, "content": if is_worded_otherwise { "an error" } else { &*text } });
    let calls: Vec<_> =
        message.tool_calls().map(|call| json!({ "id": call.id, "name": call.name, "args": call.args })).collect();
    if !calls.is_empty() {
        shown["calls"] = calls.into();
    }
    if let Some(call) = message.answers() {
        shown["answers"] = call.into();
        if message.is_error() {
            shown["error"] = true.into();
        }
    } else if let Some(name) = message.name() {
        shown["name"] = name.into();
    }
    shown
}
