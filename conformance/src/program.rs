//! Programs: the statements of a node, run in order, and what they ask for.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value, json};
use superstep::{
    BoxError, Calling, Command, Context, Goto, IntoOutcome, JsonState, Namespace, Outcome, OutcomeResult, Send, Store,
};

use crate::expr::{Env, truthy};
use crate::failure::{Fail, WrongValue, refused_by_store};
use crate::scenario::node_name;

/// What a program has asked for so far.
#[derive(Default)]
pub(crate) struct Wishes {
    update: Option<Map<String, Value>>,
    goto: Vec<Goto>,
    /// Where a conditional edge leads.
    pub(crate) routes: Vec<Goto>,
    parent: Option<(Map<String, Value>, Vec<Goto>)>,
    raw: Option<Value>,
    /// What an entrypoint keeps for its next run, if that is not what it returns.
    saved: Option<Value>,
}

impl Wishes {
    fn add(&mut self, values: Map<String, Value>) {
        self.update.get_or_insert_default().extend(values);
    }

    /// What a node returns.
    pub(crate) fn into_outcome(self) -> OutcomeResult<JsonState> {
        if let Some(value) = self.raw {
            return value.into_outcome();
        }
        let mut commands = Vec::new();
        if self.update.is_some() || !self.goto.is_empty() {
            let update = self.update.map_or(Value::Null, Value::Object);
            commands.push(Command::new().update(update).goto_all(self.goto));
        }
        if let Some((update, goto)) = self.parent {
            commands.push(Command::to_parent::<JsonState>(Value::Object(update), goto));
        }
        commands.into_outcome()
    }

    /// What a function returns: its value, and what it keeps for its next run.
    pub(crate) fn into_returned(self) -> (Value, Value) {
        let value = self.raw.unwrap_or_default();
        let saved = self.saved.unwrap_or_else(|| value.clone());
        (value, saved)
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<(), BoxError>> + std::marker::Send + 'a>>;

/// Runs a program as a node does.
pub(crate) async fn node(program: &[Value], mut env: Env, place: &str) -> Result<Outcome<JsonState>, BoxError> {
    let mut wishes = Wishes::default();
    run(program, &mut env, &mut wishes, place).await?;
    wishes.into_outcome()
}

/// Runs statements; `place` names them for what counts how often they ran.
pub(crate) fn run<'a>(program: &'a [Value], env: &'a mut Env, wishes: &'a mut Wishes, place: &'a str) -> Running<'a> {
    Box::pin(async move {
        for (ix, statement) in program.iter().enumerate() {
            run_statement(statement, env, wishes, &format!("{place}/{ix}")).await?;
        }
        Ok(())
    })
}

/// The statements, by the key that tells them apart.
const STATEMENTS: [&str; 23] = [
    "update",
    "overwrite",
    "updates",
    "raw",
    "goto",
    "route",
    "send",
    "parent",
    "interrupt",
    "fail",
    "sleep",
    "emit",
    "heartbeat",
    "let",
    "if",
    "count",
    "invoke",
    "store_put",
    "store_get",
    "call",
    "gather",
    "return",
    "final",
];

async fn run_statement(statement: &Value, env: &mut Env, wishes: &mut Wishes, place: &str) -> Result<(), BoxError> {
    let key = STATEMENTS.iter().find(|key| statement.get(**key).is_some()).copied().unwrap_or_default();
    let argument = &statement[key];
    match key {
        "if" => {
            let branch = if truthy(&env.eval(argument)?) { "then" } else { "else" };
            let program = statement[branch].as_array().map_or(&[][..], Vec::as_slice);
            run(program, env, wishes, &format!("{place}/{branch}")).await
        }
        "update" | "overwrite" | "updates" | "raw" | "return" | "final" | "goto" | "route" | "send" | "parent" => {
            wish(key, argument, env, wishes)
        }
        "fail" => fail(statement, env, place),
        "let" => bind(env, argument, env.eval(&statement["be"])?),
        "count" => {
            env.world.count(text(argument)?);
            Ok(())
        }
        "sleep" => {
            let ms = argument.as_f64().unwrap_or_default();
            tokio::time::sleep(Duration::from_secs_f64(ms / 1000.0)).await;
            Ok(())
        }
        "interrupt" | "emit" | "heartbeat" | "invoke" | "store_put" | "store_get" | "call" | "gather" => {
            let value = ask(key, argument, statement, env).await?;
            bind(env, statement.get("as").unwrap_or(&json!("_")), value)
        }
        _ => Err(Box::new(WrongValue::new("ValueError", format!("unknown statement {statement}")))),
    }
}

fn bind(env: &mut Env, name: &Value, value: Value) -> Result<(), BoxError> {
    env.local.insert(text(name)?.to_owned(), value);
    Ok(())
}

fn text(value: &Value) -> Result<&str, WrongValue> {
    value.as_str().ok_or_else(|| WrongValue::wrong_type(format!("{value} is not a name")))
}

fn object(value: &Value) -> Result<&Map<String, Value>, WrongValue> {
    value.as_object().ok_or_else(|| WrongValue::wrong_type(format!("{value} is not an object")))
}

/// The statements that say what the program returns.
fn wish(key: &str, argument: &Value, env: &Env, wishes: &mut Wishes) -> Result<(), BoxError> {
    match key {
        "update" => wishes.add(env.eval_entries(object(argument)?)?),
        "overwrite" => {
            let values = env.eval_entries(object(argument)?)?;
            wishes.add(values.into_iter().map(|(k, v)| (k, json!({ "__overwrite__": v }))).collect());
        }
        "goto" => wishes.goto.extend(nodes(&env.eval(argument)?)?),
        "route" => wishes.routes.extend(nodes(&env.eval(argument)?)?),
        "send" => {
            let sends = sends(argument, env)?;
            wishes.goto.extend(sends.iter().cloned());
            wishes.routes.extend(sends);
        }
        "parent" => {
            let update = argument.get("update").map(|u| object(u).and_then(|u| env.eval_entries(u))).transpose()?;
            let goto = argument.get("goto").map(|g| env.eval(g).and_then(|g| nodes(&g))).transpose()?;
            wishes.parent = Some((update.unwrap_or_default(), goto.unwrap_or_default()));
        }
        "final" => {
            wishes.saved = Some(env.eval(&argument["save"])?);
            wishes.raw = Some(env.eval(&argument["value"])?);
        }
        _ => wishes.raw = Some(env.eval(argument)?),
    }
    Ok(())
}

/// One name or a list of names, as places to go to.
fn nodes(value: &Value) -> Result<Vec<Goto>, WrongValue> {
    let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    names.iter().map(|name| Ok(Goto::from(node_name(text(name)?)))).collect()
}

fn sends(argument: &Value, env: &Env) -> Result<Vec<Goto>, WrongValue> {
    let node = node_name(text(&argument["node"])?);
    let send = |env: &Env| Ok(Goto::from(Send::new(node.clone(), env.eval(&argument["arg"])?)));
    let Some(each) = argument.get("each") else { return Ok(vec![send(env)?]) };
    let each = env.eval(each)?;
    let items = each.as_array().ok_or_else(|| WrongValue::wrong_type(format!("{each} is not a list")))?;
    let mut env = env.clone();
    let mut sends = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        env.local.insert("item".to_owned(), item.clone());
        env.local.insert("index".to_owned(), index.into());
        sends.push(send(&env)?);
    }
    Ok(sends)
}

fn fail(statement: &Value, env: &Env, place: &str) -> Result<(), BoxError> {
    let attempt = env.world.attempt(place);
    if statement.get("times").and_then(Value::as_u64).is_some_and(|times| attempt > times) {
        return Ok(());
    }
    let message = text(&statement["fail"])?.to_owned();
    env.world.raise(&message);
    Err(Box::new(Fail { message, other: statement["kind"] == "other" }))
}

/// The statements that need the run around the program; each gives a value.
async fn ask(key: &str, argument: &Value, statement: &Value, env: &Env) -> Result<Value, BoxError> {
    let outside = || WrongValue::new("RuntimeError", format!("`{key}` outside of a task"));
    let cx = env.cx.as_ref().ok_or_else(outside)?;
    match key {
        "interrupt" => return Ok(cx.interrupt(env.eval(argument)?)?),
        "emit" => cx.emit(env.eval(argument)?).await,
        "heartbeat" => cx.heartbeat(),
        "invoke" => return invoke(argument, &env.eval(&statement["input"])?, env, cx).await,
        "call" => return call(argument, &statement["args"], env, cx)?.await,
        "gather" => return gather(argument, env, cx).await,
        _ => return in_store(key, argument, env, cx).await,
    }
    Ok(Value::Null)
}

/// Runs a graph inside the node.
async fn invoke(name: &Value, input: &Value, env: &Env, cx: &Context) -> Result<Value, BoxError> {
    let unknown = || WrongValue::new("KeyError", format!("there is no graph {name}"));
    let graph = env.world.subgraph(text(name)?).ok_or_else(unknown)?;
    let graph = graph.map_err(|e| WrongValue::new("ValueError", e.to_string()))?;
    let output = match input {
        Value::Null => cx.invoke(&graph, superstep::GoOn).await?,
        input => cx.invoke(&graph, input.clone()).await?,
    };
    Ok(output.to_json())
}

async fn in_store(key: &str, argument: &Value, env: &Env, cx: &Context) -> Result<Value, BoxError> {
    let store = cx.store().ok_or_else(|| WrongValue::new("AttributeError", "there is no store"))?;
    let namespace = namespace(&env.eval(&argument["ns"])?)?;
    let name = env.eval_text(&argument["key"])?;
    if key == "store_get" {
        let item = store.get(namespace, name).await.map_err(|e| refused_by_store(&e))?;
        return Ok(item.map(|item| item.value).unwrap_or_default());
    }
    // Putting nothing deletes.
    let done = match env.eval(&argument["value"])? {
        Value::Null => store.delete(namespace, name).await,
        value => store.put(namespace, name, value).await,
    };
    done.map_err(|e| refused_by_store(&e))?;
    Ok(Value::Null)
}

/// A list of labels as a store's namespace.
pub(crate) fn namespace(labels: &Value) -> Result<Namespace, WrongValue> {
    let labels = labels.as_array().ok_or_else(|| WrongValue::wrong_type(format!("{labels} is not a list")))?;
    let labels = labels.iter().map(|label| text(label).map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
    Ok(Namespace::from(labels))
}

/// Starts a task of a workflow made of functions.
fn call(name: &Value, arguments: &Value, env: &Env, cx: &Context) -> Result<Calling<Value>, BoxError> {
    let unknown = || WrongValue::new("KeyError", format!("there is no task {name}"));
    let task = env.world.task(text(name)?).ok_or_else(unknown)?;
    Ok(task.call(cx, env.eval(arguments)?))
}

/// Starts several tasks at once and waits for all of them.
async fn gather(calls: &Value, env: &Env, cx: &Context) -> Result<Value, BoxError> {
    let calls = calls.as_array().map_or(&[][..], Vec::as_slice);
    let running = calls.iter().map(|c| call(&c["call"], &c["args"], env, cx)).collect::<Result<Vec<_>, _>>()?;
    let mut running: Vec<_> = running.into_iter().map(|calling| (Some(calling), Value::Null)).collect();
    let mut waits = None;
    std::future::poll_fn(|poller| {
        for (calling, result) in &mut running {
            let Some(future) = calling else { continue };
            let std::task::Poll::Ready(ended) = Pin::new(future).poll(poller) else { continue };
            *calling = None;
            match ended {
                Ok(value) => *result = value,
                Err(error) if is_failure(&error) => return std::task::Poll::Ready(Err(error)),
                // A question stops nobody: the others come to their end.
                Err(question) => waits = Some(question),
            }
        }
        if running.iter().any(|(calling, _)| calling.is_some()) {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(Ok(()))
        }
    })
    .await?;
    waits.map_or_else(|| Ok(running.into_iter().map(|(_, value)| value).collect()), Err)
}

fn is_failure(error: &BoxError) -> bool {
    error.is::<Fail>() || error.is::<WrongValue>() || error.is::<superstep::Error>()
}
