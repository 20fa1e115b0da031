//! What the value of an item must satisfy to be found.
//!
//! A filter is a list of clauses that all must hold. A part that is missing counts as null, for every comparison.

mod compare;
mod parse;

use std::cmp::Ordering;

use serde_json::Value;

use self::compare::{compare, is_equal, is_like};
use super::{FieldPath, StoreError};

/// Conditions on the parts of a value.
///
/// A part is named by a [`FieldPath`]: `"user.name"`, or a list of keys for keys that hold a dot.
///
/// ```
/// use serde_json::json;
/// use superstep::{Filter, StoreError};
///
/// # fn main() -> Result<(), StoreError> {
/// let filter = Filter::eq("kind", "note").and(Filter::gt("meta.stars", 3));
/// assert!(filter.accepts(&json!({ "kind": "note", "meta": { "stars": 5 } })));
/// assert!(!filter.accepts(&json!({ "kind": "note", "meta": { "stars": 3 } })));
///
/// assert_eq!(filter, Filter::parse(&json!({ "kind": { "$eq": "note" }, "meta.stars": { "$gt": 3 } }))?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use = "a filter does nothing until a query uses it"]
pub struct Filter(Vec<Clause>);

impl Filter {
    /// Reads a filter from JSON: `{"path": value}` for [`matching`](Filter::matching), `{"path": {"$gt": value}}` for
    /// an operator. Several paths and several operators must all hold. `{"$or": [..]}`, `{"$and": [..]}` and
    /// `{"$not": ..}` join filters.
    ///
    /// Refuses operators it does not know, and operators inside the value of a path. A key that starts with `$` is
    /// written with a backslash before it.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::{Filter, StoreError};
    ///
    /// # fn main() -> Result<(), StoreError> {
    /// let filter = Filter::parse(&json!({ "$or": [{ "stars": { "$in": [4, 5] } }, { "pinned": true }] }))?;
    /// assert!(filter.accepts(&json!({ "stars": 1, "pinned": true })));
    ///
    /// let refused = Filter::parse(&json!({ "stars": { "$near": 4 } })).expect_err("there is no `$near`");
    /// assert_eq!(
    ///     refused.to_string(),
    ///     "unknown operator `$near` for key `stars`; use `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` or `$in`",
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn parse(filter: &Value) -> Result<Self, StoreError> {
        let filter = parse::filter(filter)?;
        filter.validate()?;
        Ok(filter)
    }

    /// The part is like `value`: an object needs only the keys of `value`, a list as many elements, each alike.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::Filter;
    ///
    /// let pro = Filter::matching("plan", json!({ "name": "pro" }));
    /// assert!(pro.accepts(&json!({ "plan": { "name": "pro", "seats": 3 } })));
    /// ```
    pub fn matching(path: impl Into<FieldPath>, value: impl Into<Value>) -> Self {
        Self::one(path, Comparison::Matches, value)
    }

    /// The part is exactly `value`; 1 and 1.0 are equal.
    pub fn eq(path: impl Into<FieldPath>, value: impl Into<Value>) -> Self {
        Self::one(path, Comparison::Eq, value)
    }

    /// The part is not exactly `value`.
    pub fn ne(path: impl Into<FieldPath>, value: impl Into<Value>) -> Self {
        Self::one(path, Comparison::Ne, value)
    }

    /// The part is greater than `value`. Numbers compare with numbers and strings with strings; else it fails.
    pub fn gt(path: impl Into<FieldPath>, value: impl Into<Value>) -> Self {
        Self::one(path, Comparison::Gt, value)
    }

    /// The part is `value` or greater, compared as in [`gt`](Filter::gt).
    pub fn gte(path: impl Into<FieldPath>, value: impl Into<Value>) -> Self {
        Self::one(path, Comparison::Gte, value)
    }

    /// The part is less than `value`, compared as in [`gt`](Filter::gt).
    pub fn lt(path: impl Into<FieldPath>, value: impl Into<Value>) -> Self {
        Self::one(path, Comparison::Lt, value)
    }

    /// The part is `value` or less, compared as in [`gt`](Filter::gt).
    pub fn lte(path: impl Into<FieldPath>, value: impl Into<Value>) -> Self {
        Self::one(path, Comparison::Lte, value)
    }

    /// The part is exactly one of `values`.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::Filter;
    ///
    /// let bright = Filter::one_of("color", ["red", "yellow"]);
    /// assert!(bright.accepts(&json!({ "color": "red" })));
    /// assert!(!bright.accepts(&json!({ "color": "grey" })));
    /// ```
    pub fn one_of(path: impl Into<FieldPath>, values: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        Self::one(path, Comparison::In, values)
    }

    /// At least one of `filters` must hold; none of none does.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::Filter;
    ///
    /// let urgent = Filter::any([Filter::eq("pinned", true), Filter::gt("stars", 4)]);
    /// assert!(urgent.accepts(&json!({ "stars": 5 })));
    /// assert!(!urgent.accepts(&json!({ "stars": 4 })));
    /// ```
    pub fn any(filters: impl IntoIterator<Item = Filter>) -> Self {
        Self(vec![Clause::Any(filters.into_iter().collect())])
    }

    /// Both this and `other` must hold.
    pub fn and(mut self, other: Filter) -> Self {
        self.0.extend(other.0);
        self
    }

    /// This or `other` must hold.
    pub fn or(self, other: Filter) -> Self {
        Self::any([self, other])
    }

    /// This must not hold.
    ///
    /// ```
    /// use serde_json::json;
    /// use superstep::Filter;
    ///
    /// let open = Filter::eq("done", true).negated();
    /// assert!(open.accepts(&json!({ "done": false })) && open.accepts(&json!({})));
    /// ```
    pub fn negated(self) -> Self {
        Self(vec![Clause::Not(self)])
    }

    /// The clauses, all of which must hold; for stores that turn them into a database query.
    pub fn clauses(&self) -> &[Clause] {
        &self.0
    }

    /// Whether it accepts everything, because it has no clauses.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `value` satisfies every clause.
    pub fn accepts(&self, value: &Value) -> bool {
        self.0.iter().all(|clause| clause.holds(value))
    }

    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        self.0.iter().try_for_each(Clause::validate)
    }

    fn one(path: impl Into<FieldPath>, comparison: Comparison, value: impl Into<Value>) -> Self {
        Self(vec![Clause::Condition(Condition { path: path.into(), comparison, value: value.into() })])
    }
}

/// One part of a [`Filter`]. The set is closed: a store handles all of them, and the compiler checks that it does.
///
/// ```
/// use superstep::{Clause, Filter};
///
/// fn depth(filter: &Filter) -> usize {
///     let below = |clause: &Clause| match clause {
///         Clause::Condition(_) => 0,
///         Clause::Any(filters) => filters.iter().map(depth).max().unwrap_or(0),
///         Clause::Not(filter) => depth(filter),
///     };
///     1 + filter.clauses().iter().map(below).max().unwrap_or(0)
/// }
/// assert_eq!(depth(&Filter::eq("a", 1).or(Filter::eq("b", 2)).negated()), 3);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// A condition on one part of the value.
    Condition(Condition),
    /// At least one of these holds; `$or`.
    Any(Vec<Filter>),
    /// This does not hold; `$not`.
    Not(Filter),
}

impl Clause {
    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Condition(condition) => condition.holds(condition.path.find(value).unwrap_or(&Value::Null)),
            Self::Any(filters) => filters.iter().any(|filter| filter.accepts(value)),
            Self::Not(filter) => !filter.accepts(value),
        }
    }

    fn validate(&self) -> Result<(), StoreError> {
        match self {
            Self::Condition(condition) => condition.validate(),
            Self::Any(filters) => filters.iter().try_for_each(Filter::validate),
            Self::Not(filter) => filter.validate(),
        }
    }
}

/// One condition of a [`Filter`].
///
/// ```
/// use superstep::{Clause, Comparison, FieldPath, Filter};
///
/// let filter = Filter::lt("user.age", 30);
/// let Clause::Condition(condition) = &filter.clauses()[0] else { unreachable!("it is a condition") };
/// assert_eq!((&condition.path, condition.comparison), (&FieldPath::from(["user", "age"]), Comparison::Lt));
/// assert_eq!(condition.value, 30);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Condition {
    /// The part it looks at.
    pub path: FieldPath,
    /// How it compares.
    pub comparison: Comparison,
    /// What it compares with.
    pub value: Value,
}

impl Condition {
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
            Comparison::In => {
                self.value.as_array().is_some_and(|values| values.iter().any(|value| is_equal(found, value)))
            }
        }
    }

    fn validate(&self) -> Result<(), StoreError> {
        let (key, operand) = (|| self.path.to_string(), || self.value.to_string());
        match self.comparison.ordering_operator() {
            Some(operator) if !self.value.is_number() && !self.value.is_string() => {
                Err(StoreError::Unordered { key: key(), operator, operand: operand() })
            }
            _ if self.comparison == Comparison::In && !self.value.is_array() => {
                Err(StoreError::InNeedsList { key: key(), operand: operand() })
            }
            _ => Ok(()),
        }
    }
}

/// How a [`Condition`] compares. The set is closed, as that of clauses.
///
/// ```
/// use superstep::Comparison;
///
/// fn sql(comparison: Comparison) -> Option<&'static str> {
///     match comparison {
///         Comparison::Matches | Comparison::In => None,
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
    /// Equal to an element of the operand; `$in`.
    In,
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
            "$in" => Some(Self::In),
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
            Self::Matches | Self::Eq | Self::Ne | Self::In => None,
        }
    }
}
