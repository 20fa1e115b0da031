//! What the value of an item must satisfy to be found.
//!
//! A filter is a list of conditions that all must hold. A key that is missing counts as null, for every comparison.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::StoreError;

/// Conditions on the top-level keys of a value.
///
/// ```
/// use serde_json::json;
/// use superstep::{Filter, StoreError};
///
/// # fn main() -> Result<(), StoreError> {
/// let filter = Filter::eq("kind", "note").and(Filter::gt("stars", 3));
/// assert!(filter.accepts(&json!({ "kind": "note", "stars": 5 })));
/// assert!(!filter.accepts(&json!({ "kind": "note", "stars": 3 })));
///
/// assert_eq!(filter, Filter::parse(&json!({ "kind": { "$eq": "note" }, "stars": { "$gt": 3 } }))?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use = "a filter does nothing until a query uses it"]
pub struct Filter(Vec<Condition>);

impl Filter {
    /// Reads a filter from JSON: `{"key": value}` for [`matching`](Filter::matching), `{"key": {"$gt": value}}` for an
    /// operator. Several keys and several operators must all hold.
    ///
    /// Refuses operators it does not know, and operators below the top level.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::Filter;
    ///
    /// let refused = Filter::parse(&json!({ "stars": { "$in": [1, 2] } })).expect_err("there is no `$in`");
    /// assert_eq!(
    ///     refused.to_string(),
    ///     "unknown operator `$in` for key `stars`; use `$eq`, `$ne`, `$gt`, `$gte`, `$lt` or `$lte`",
    /// );
    /// ```
    pub fn parse(filter: &Value) -> Result<Self, StoreError> {
        let keys = filter.as_object().ok_or_else(|| StoreError::FilterNotAnObject { filter: filter.to_string() })?;
        let mut conditions = Vec::new();
        for (key, wanted) in keys {
            match wanted.as_object().filter(|object| has_operator(object)) {
                Some(operators) => parse_operators(key, operators, &mut conditions)?,
                None => conditions.push(Condition::new(key, Comparison::Matches, wanted.clone())),
            }
        }
        conditions.iter().try_for_each(refuse_nested_operator)?;
        let filter = Self(conditions);
        filter.validate()?;
        Ok(filter)
    }

    /// The key's value is like `value`: an object needs only the keys of `value`, a list as many elements, each alike.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::Filter;
    ///
    /// let pro = Filter::matching("plan", json!({ "name": "pro" }));
    /// assert!(pro.accepts(&json!({ "plan": { "name": "pro", "seats": 3 } })));
    /// ```
    pub fn matching(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::one(key, Comparison::Matches, value)
    }

    /// The key's value is exactly `value`; 1 and 1.0 are equal.
    pub fn eq(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::one(key, Comparison::Eq, value)
    }

    /// The key's value is not exactly `value`.
    pub fn ne(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::one(key, Comparison::Ne, value)
    }

    /// The key's value is greater than `value`. Numbers compare with numbers and strings with strings; else it fails.
    pub fn gt(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::one(key, Comparison::Gt, value)
    }

    /// The key's value is `value` or greater, compared as in [`gt`](Filter::gt).
    pub fn gte(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::one(key, Comparison::Gte, value)
    }

    /// The key's value is less than `value`, compared as in [`gt`](Filter::gt).
    pub fn lt(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::one(key, Comparison::Lt, value)
    }

    /// The key's value is `value` or less, compared as in [`gt`](Filter::gt).
    pub fn lte(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::one(key, Comparison::Lte, value)
    }

    /// Both this and `other` must hold.
    pub fn and(mut self, other: Filter) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The conditions, all of which must hold; for stores that turn them into a database query.
    pub fn conditions(&self) -> &[Condition] {
        &self.0
    }

    /// Whether `value` satisfies every condition.
    pub fn accepts(&self, value: &Value) -> bool {
        self.0.iter().all(|condition| condition.holds(value.get(&condition.key).unwrap_or(&Value::Null)))
    }

    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        self.0.iter().try_for_each(Condition::validate)
    }

    fn one(key: impl Into<String>, comparison: Comparison, value: impl Into<Value>) -> Self {
        Self(vec![Condition::new(key, comparison, value.into())])
    }
}

/// One condition of a [`Filter`].
///
/// ```
/// use superstep::{Comparison, Filter};
///
/// let filter = Filter::lt("age", 30);
/// let condition = &filter.conditions()[0];
/// assert_eq!((condition.key.as_str(), condition.comparison), ("age", Comparison::Lt));
/// assert_eq!(condition.value, 30);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Condition {
    /// The top-level key it looks at.
    pub key: String,
    /// How it compares.
    pub comparison: Comparison,
    /// What it compares with.
    pub value: Value,
}

impl Condition {
    fn new(key: impl Into<String>, comparison: Comparison, value: Value) -> Self {
        Self { key: key.into(), comparison, value }
    }

    fn holds(&self, found: &Value) -> bool {
        let order = || compare(found, &self.value);
        match self.comparison {
            Comparison::Matches => is_like(found, &self.value),
            Comparison::Eq => is_equal(found, &self.value),
            Comparison::Ne => !is_equal(found, &self.value),
            Comparison::Gt => order().is_some_and(Ordering::is_gt),
            Comparison::Gte => order().is_some_and(Ordering::is_ge),
            Comparison::Lt => order().is_some_and(Ordering::is_lt),
            Comparison::Lte => order().is_some_and(Ordering::is_le),
        }
    }

    fn validate(&self) -> Result<(), StoreError> {
        match self.comparison.ordering_operator() {
            Some(operator) if !self.value.is_number() && !self.value.is_string() => {
                Err(StoreError::Unordered { key: self.key.clone(), operator, operand: self.value.to_string() })
            }
            _ => Ok(()),
        }
    }
}

/// How a [`Condition`] compares. The set is closed: a store handles all of them, and the compiler checks that it does.
///
/// ```
/// use superstep::Comparison;
///
/// fn sql(comparison: Comparison) -> Option<&'static str> {
///     match comparison {
///         Comparison::Matches => None,
///         Comparison::Eq => Some("="),
///         Comparison::Ne => Some("<>"),
///         Comparison::Gt => Some(">"),
///         Comparison::Gte => Some(">="),
///         Comparison::Lt => Some("<"),
///         Comparison::Lte => Some("<="),
///     }
/// }
/// assert_eq!(sql(Comparison::Gte), Some(">="));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Like the operand, objects by subset; a plain value in JSON.
    Matches,
    /// Equal to the operand; `$eq`.
    Eq,
    /// Not equal to the operand; `$ne`.
    Ne,
    /// Greater than the operand; `$gt`.
    Gt,
    /// Greater than the operand or equal; `$gte`.
    Gte,
    /// Less than the operand; `$lt`.
    Lt,
    /// Less than the operand or equal; `$lte`.
    Lte,
}

impl Comparison {
    fn parse(operator: &str) -> Option<Self> {
        match operator {
            "$eq" => Some(Self::Eq),
            "$ne" => Some(Self::Ne),
            "$gt" => Some(Self::Gt),
            "$gte" => Some(Self::Gte),
            "$lt" => Some(Self::Lt),
            "$lte" => Some(Self::Lte),
            _ => None,
        }
    }

    /// The operator in JSON, if it needs operands that have an order.
    fn ordering_operator(self) -> Option<&'static str> {
        match self {
            Self::Gt => Some("$gt"),
            Self::Gte => Some("$gte"),
            Self::Lt => Some("$lt"),
            Self::Lte => Some("$lte"),
            Self::Matches | Self::Eq | Self::Ne => None,
        }
    }
}

fn parse_operators(
    key: &str,
    operators: &Map<String, Value>,
    conditions: &mut Vec<Condition>,
) -> Result<(), StoreError> {
    for (operator, operand) in operators {
        let unknown = || StoreError::UnknownOperator { key: key.to_owned(), operator: operator.clone() };
        let comparison = Comparison::parse(operator).ok_or_else(unknown)?;
        conditions.push(Condition::new(key, comparison, operand.clone()));
    }
    Ok(())
}

fn has_operator(object: &Map<String, Value>) -> bool {
    object.keys().any(|key| key.starts_with('$'))
}

/// An operator that would be taken for data is a mistake that finds nothing, so it is refused.
fn refuse_nested_operator(condition: &Condition) -> Result<(), StoreError> {
    match nested_operator(&condition.value) {
        Some(operator) => Err(StoreError::NestedOperator { key: condition.key.clone(), operator: operator.to_owned() }),
        None => Ok(()),
    }
}

fn nested_operator(value: &Value) -> Option<&str> {
    match value {
        Value::Object(object) => match object.keys().find(|key| key.starts_with('$')) {
            Some(operator) => Some(operator),
            None => object.values().find_map(nested_operator),
        },
        Value::Array(elements) => elements.iter().find_map(nested_operator),
        _ => None,
    }
}

fn is_like(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| is_like(found.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(found), Value::Array(wanted)) => all_pairs(found, wanted, is_like),
        _ => is_equal(found, wanted),
    }
}

fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => all_pairs(left, right, is_equal),
        (Value::Object(left), Value::Object(right)) => {
            let has = |(key, value)| right.get(key).is_some_and(|other| is_equal(value, other));
            left.len() == right.len() && left.iter().all(has)
        }
        _ => left == right,
    }
}

fn all_pairs(left: &[Value], right: &[Value], test: fn(&Value, &Value) -> bool) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| test(left, right))
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Integers compare exactly; a float makes both floats.
fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}
