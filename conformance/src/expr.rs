//! Expressions, with the meaning that Python gives to their operators.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use superstep::{Context, normal_message};

use crate::failure::WrongValue;
use crate::world::World;

/// What an expression can see: the node's input, its variables, the world.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) world: Arc<World>,
    pub(crate) state: Value,
    pub(crate) cx: Option<Context>,
    pub(crate) local: Map<String, Value>,
}

/// What the caller gave the run.
pub(crate) struct RunContext(pub(crate) Value);

type Evaluated = Result<Value, WrongValue>;

impl Env {
    pub(crate) fn new(world: &Arc<World>, state: Value, cx: Option<Context>) -> Self {
        Self { world: world.clone(), state, cx, local: Map::new() }
    }

    /// An expression's value.
    pub(crate) fn eval(&self, expression: &Value) -> Evaluated {
        match expression {
            Value::Array(items) => items.iter().map(|item| self.eval(item)).collect(),
            Value::Object(map) => match operator(map) {
                Some((operator, argument)) => self.apply(operator, argument),
                None => self.eval_entries(map).map(Value::Object),
            },
            literal => Ok(literal.clone()),
        }
    }

    /// An object with its values evaluated.
    pub(crate) fn eval_entries(&self, map: &Map<String, Value>) -> Result<Map<String, Value>, WrongValue> {
        map.iter().map(|(key, value)| Ok((key.clone(), self.eval(value)?))).collect()
    }

    /// An expression whose value is a text.
    pub(crate) fn eval_text(&self, expression: &Value) -> Result<String, WrongValue> {
        match self.eval(expression)? {
            Value::String(text) => Ok(text),
            other => Err(WrongValue::wrong_type(format!("expected a text, got {other}"))),
        }
    }

    fn apply(&self, operator: &str, argument: &Value) -> Evaluated {
        let key = argument.as_str().unwrap_or_default();
        match operator {
            "$get" => Ok(self.state.get(key).cloned().unwrap_or_default()),
            "$var" => Ok(self.local.get(key).cloned().unwrap_or_default()),
            "$input" => Ok(self.state.clone()),
            "$previous" => self.previous(),
            "$context" => Ok(self.run_context(key)),
            "$count" => Ok(self.world.counter(key).into()),
            "$lit" => Ok(argument.clone()),
            _ => compute(operator, &self.eval(argument)?),
        }
    }

    fn previous(&self) -> Evaluated {
        let previous = self.cx.as_ref().map(Context::previous::<Value>).transpose();
        let previous = previous.map_err(|e| WrongValue::new("ValueError", e.to_string()))?;
        Ok(previous.flatten().unwrap_or_default())
    }

    fn run_context(&self, key: &str) -> Value {
        let context = self.cx.as_ref().and_then(Context::context::<RunContext>);
        context.and_then(|c| c.0.get(key).cloned()).unwrap_or_default()
    }
}

/// The operator and its argument, if an object is an expression.
fn operator(map: &Map<String, Value>) -> Option<(&str, &Value)> {
    let (key, argument) = map.iter().next().filter(|_| map.len() == 1)?;
    key.starts_with('$').then_some((key, argument))
}

fn compute(operator: &str, value: &Value) -> Evaluated {
    match operator {
        "$remove" => Ok(json!({ "type": "remove", "content": "", "id": value })),
        "$message" => message(value),
        "$len" => length(value).map(Value::from),
        "$not" => Ok(json!(!truthy(value))),
        "$and" => Ok(json!(items(value)?.iter().all(truthy))),
        "$or" => Ok(json!(items(value)?.iter().any(truthy))),
        "$range" => range(value),
        _ => {
            let [a, b] = items(value)? else { return Err(WrongValue::new("IndexError", "two arguments are needed")) };
            compute_two(operator, a, b)
        }
    }
}

fn compute_two(operator: &str, a: &Value, b: &Value) -> Evaluated {
    match operator {
        "$add" => add(a, b),
        "$mul" => multiply(a, b),
        "$mod" => modulo(a, b),
        "$at" => at(a, b),
        "$has" => has(a, b),
        "$lt" => compare(a, b).map(|order| json!(order == Ordering::Less)),
        "$eq" => Ok(json!(equal(a, b))),
        other => Err(WrongValue::new("ValueError", format!("unknown operator {other}"))),
    }
}

fn items(value: &Value) -> Result<&[Value], WrongValue> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| WrongValue::wrong_type(format!("{value} is not a list")))
}

/// Whether Python takes a value for true.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// A number; Python counts booleans among them.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(b) => Some(Number::Whole(i64::from(*b))),
            Value::Number(n) => n.as_i64().map(Number::Whole).or_else(|| n.as_f64().map(Number::Real)),
            _ => None,
        }
    }

    fn pair(a: &Value, b: &Value) -> Option<(Self, Self)> {
        Some((Self::of(a)?, Self::of(b)?))
    }

    #[expect(clippy::cast_precision_loss, reason = "scenarios have small numbers")]
    fn real(self) -> f64 {
        match self {
            Number::Whole(n) => n as f64,
            Number::Real(x) => x,
        }
    }
}

fn unsupported(operator: &str, a: &Value, b: &Value) -> WrongValue {
    WrongValue::wrong_type(format!("{a} {operator} {b} has no meaning"))
}

fn calculate((a, b): (Number, Number), whole: fn(i64, i64) -> Option<i64>, real: fn(f64, f64) -> f64) -> Value {
    if let (Number::Whole(a), Number::Whole(b)) = (a, b)
        && let Some(result) = whole(a, b)
    {
        return result.into();
    }
    real(a.real(), b.real()).into()
}

fn add(a: &Value, b: &Value) -> Evaluated {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Ok(format!("{a}{b}").into()),
        (Value::Array(a), Value::Array(b)) => Ok(a.iter().chain(b).cloned().collect()),
        _ => match Number::pair(a, b) {
            Some(pair) => Ok(calculate(pair, i64::checked_add, |a, b| a + b)),
            None => Err(unsupported("+", a, b)),
        },
    }
}

fn multiply(a: &Value, b: &Value) -> Evaluated {
    match (a, b, Number::of(a), Number::of(b)) {
        (_, _, Some(x), Some(y)) => Ok(calculate((x, y), i64::checked_mul, |a, b| a * b)),
        (Value::String(text), _, _, Some(Number::Whole(n))) | (_, Value::String(text), Some(Number::Whole(n)), _) => {
            Ok(text.repeat(times(n)).into())
        }
        (Value::Array(list), _, _, Some(Number::Whole(n))) | (_, Value::Array(list), Some(Number::Whole(n)), _) => {
            Ok(std::iter::repeat_n(list, times(n)).flatten().cloned().collect())
        }
        _ => Err(unsupported("*", a, b)),
    }
}

fn times(n: i64) -> usize {
    usize::try_from(n).unwrap_or_default()
}

fn modulo(a: &Value, b: &Value) -> Evaluated {
    let (x, y) = Number::pair(a, b).ok_or_else(|| unsupported("%", a, b))?;
    if y.real() == 0.0 {
        return Err(WrongValue::new("ZeroDivisionError", "division by zero"));
    }
    // The result has the sign of the divisor.
    let whole = |a: i64, b: i64| (a.checked_rem(b)? + b).checked_rem(b);
    Ok(calculate((x, y), whole, |a, b| a - b * (a / b).floor()))
}

fn length(value: &Value) -> Result<usize, WrongValue> {
    match value {
        Value::String(text) => Ok(text.chars().count()),
        Value::Array(list) => Ok(list.len()),
        Value::Object(map) => Ok(map.len()),
        value if !truthy(value) => Ok(0),
        value => Err(WrongValue::wrong_type(format!("{value} has no length"))),
    }
}

fn range(value: &Value) -> Evaluated {
    match Number::of(value) {
        Some(Number::Whole(n)) => Ok((0..n).map(Value::from).collect()),
        _ => Err(WrongValue::wrong_type(format!("{value} is not a whole number"))),
    }
}

fn at(value: &Value, index: &Value) -> Evaluated {
    let missing = |exception| WrongValue::new(exception, format!("{value} has no {index}"));
    match (value, index) {
        (Value::Object(map), Value::String(key)) => match map.get(key) {
            Some(found) => Ok(found.clone()),
            None if is_message(value) => message_attribute(key).ok_or_else(|| missing("AttributeError")),
            None => Err(missing("KeyError")),
        },
        (Value::Object(_), _) => Err(missing("KeyError")),
        (Value::Array(list), _) => {
            let place = place(index, list.len()).ok_or_else(|| missing("TypeError"))?;
            list.get(place).cloned().ok_or_else(|| missing("IndexError"))
        }
        (Value::String(text), _) => {
            let place = place(index, text.chars().count()).ok_or_else(|| missing("TypeError"))?;
            text.chars().nth(place).map(|c| c.to_string().into()).ok_or_else(|| missing("IndexError"))
        }
        _ => Err(missing("TypeError")),
    }
}

/// Where an index points to; negative ones count from the end.
fn place(index: &Value, len: usize) -> Option<usize> {
    let Some(Number::Whole(index)) = Number::of(index) else { return None };
    let from_start = if index < 0 { index + len as i64 } else { index };
    Some(usize::try_from(from_start).unwrap_or(usize::MAX))
}

fn has(value: &Value, wanted: &Value) -> Evaluated {
    Ok(json!(match (value, wanted) {
        (Value::Object(map), Value::String(key)) => map.contains_key(key),
        (Value::Array(list), wanted) => list.iter().any(|item| equal(item, wanted)),
        (Value::String(text), Value::String(part)) if !text.is_empty() => text.contains(part),
        (Value::Object(_), _) => false,
        (value, _) if !truthy(value) => false,
        _ => return Err(unsupported("contains", value, wanted)),
    }))
}

/// Python's `==`: numbers of all kinds, and booleans, are compared by value.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => match Number::pair(a, b) {
            Some((Number::Whole(a), Number::Whole(b))) => a == b,
            Some((a, b)) => a.real().total_cmp(&b.real()).is_eq(),
            None => a == b,
        },
    }
}

fn compare(a: &Value, b: &Value) -> Result<Ordering, WrongValue> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
        (Value::Array(left), Value::Array(right)) => match left.iter().zip(right).find(|(a, b)| !equal(a, b)) {
            Some((a, b)) => compare(a, b),
            None => Ok(left.len().cmp(&right.len())),
        },
        _ => match Number::pair(a, b) {
            Some((Number::Whole(a), Number::Whole(b))) => Ok(a.cmp(&b)),
            Some((a, b)) => Ok(a.real().total_cmp(&b.real())),
            None => Err(unsupported("<", a, b)),
        },
    }
}

// ---- messages ----

/// Whether a value is a message in its normal form.
pub(crate) fn is_message(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    matches!(kind, Some("human" | "ai" | "system" | "tool" | "remove")) && value.get("content").is_some()
}

/// What a message has without being given it.
fn message_attribute(key: &str) -> Option<Value> {
    match key {
        "id" | "name" => Some(Value::Null),
        "tool_calls" => Some(json!([])),
        _ => None,
    }
}

fn message(value: &Value) -> Evaluated {
    normal_message(value.clone()).map_err(|why| WrongValue::new("ValueError", why))
}
