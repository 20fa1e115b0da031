//! Filters written as JSON.
//!
//! ```text
//! filter    = { entry, .. }                        all entries must hold
//! entry     = path: value                          the part is like the value
//!           | path: { operator: operand, .. }      all operators must hold
//!           | "$and": [filter, ..] | "$or": [filter, ..] | "$not": filter
//! operator  = "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" | "$in"
//! ```
//!
//! A path is a [`FieldPath`] as text; a key that starts with `$` is written with a backslash before it.

use serde_json::{Map, Value};

use super::{Clause, Comparison, Condition, Filter};
use crate::store::{FieldPath, StoreError};

pub(super) fn filter(json: &Value) -> Result<Filter, StoreError> {
    let entries = json.as_object().ok_or_else(|| StoreError::FilterNotAnObject { filter: json.to_string() })?;
    let mut clauses = Vec::new();
    for (key, wanted) in entries {
        match key.as_str() {
            "$and" => filters("$and", wanted)?.into_iter().for_each(|part| clauses.extend(part.0)),
            "$or" => clauses.push(Clause::Any(filters("$or", wanted)?)),
            "$not" => clauses.push(Clause::Not(filter(wanted)?)),
            other if other.starts_with('$') => return Err(StoreError::UnknownJoin { operator: other.to_owned() }),
            path => conditions(path, wanted, &mut clauses)?,
        }
    }
    Ok(Filter(clauses))
}

fn filters(operator: &'static str, json: &Value) -> Result<Vec<Filter>, StoreError> {
    let not_a_list = || StoreError::JoinNeedsFilters { operator, operand: json.to_string() };
    json.as_array().ok_or_else(not_a_list)?.iter().map(filter).collect()
}

fn conditions(path: &str, wanted: &Value, clauses: &mut Vec<Clause>) -> Result<(), StoreError> {
    match wanted.as_object().filter(|object| has_operator(object)) {
        Some(operators) => {
            for (operator, operand) in operators {
                let unknown = || StoreError::UnknownOperator { key: path.to_owned(), operator: operator.clone() };
                let comparison = Comparison::parse(operator).ok_or_else(unknown)?;
                clauses.push(condition(path, comparison, operand)?);
            }
        }
        None => clauses.push(condition(path, Comparison::Matches, wanted)?),
    }
    Ok(())
}

/// An operator that would be taken for data is a mistake that finds nothing, so it is refused.
fn condition(path: &str, comparison: Comparison, operand: &Value) -> Result<Clause, StoreError> {
    match nested_operator(operand) {
        Some(operator) => Err(StoreError::NestedOperator { key: path.to_owned(), operator: operator.to_owned() }),
        None => Ok(Clause::Condition(Condition { path: FieldPath::from(path), comparison, value: operand.clone() })),
    }
}

fn has_operator(object: &Map<String, Value>) -> bool {
    object.keys().any(|key| key.starts_with('$'))
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
