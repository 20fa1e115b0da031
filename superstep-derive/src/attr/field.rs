//! `#[state(..)]` on a field.

use proc_macro2::{Ident, TokenStream};
use syn::{Attribute, ExprPath, LitStr, Type};

use super::entry::{Entry, Value, entries};
use crate::errors::Errors;

const ALLOWED: &str = "a field takes one of `append`, `delta`, `messages`, `sum`, `max`, `reduce = function`, \
    `reducer = value`, `any`, `ephemeral`, `topic`, `topic(accumulate)`, `untracked`, and beside it `rename = \"name\"`, \
    `internal`, and `update = Type` if it has a reducer";

/// How a field merges its writes.
#[derive(Clone)]
pub(crate) enum Rule {
    LastValue,
    Append,
    Delta,
    Messages,
    Sum,
    Max,
    Reduce(ExprPath),
    Reducer(TokenStream),
    Any,
    Ephemeral,
    Topic { accumulate: bool },
    Untracked,
}

/// A rule and the attribute that asked for it.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) rule: Rule,
    pub(crate) key: Ident,
}

/// What a field's attributes ask for.
#[derive(Default)]
pub(crate) struct FieldAttr {
    pub(crate) kind: Option<Kind>,
    pub(crate) rename: Option<LitStr>,
    /// What its reducer takes, if that is another type than the field's.
    pub(crate) update: Option<Type>,
    /// The key by which it is kept out of what is given to runs and shown of them.
    pub(crate) internal: Option<Ident>,
}

/// Whether this is a key for fields.
pub(super) fn is_key(key: &str) -> bool {
    key == "rename"
        || key == "internal"
        || key == "reduce"
        || key == "reducer"
        || key == "topic"
        || plain_rule(key).is_some()
}

/// Reads the attributes of a field.
pub(crate) fn field(attrs: &[Attribute], errors: &mut Errors) -> FieldAttr {
    let mut read = FieldAttr::default();
    for entry in entries("state", attrs, errors) {
        read.take(&entry, errors);
    }
    read
}

impl FieldAttr {
    fn take(&mut self, entry: &Entry, errors: &mut Errors) {
        let key = entry.name();
        match key.as_str() {
            "rename" => self.take_rename(entry, errors),
            "update" => self.take_update(entry, errors),
            "internal" => {
                entry.without_value(errors);
                self.internal = Some(entry.key.clone());
            }
            key if is_key(key) => self.take_kind(entry, errors),
            "crate" | "version" => errors.at(entry, format!("`{key}` belongs on the struct; {ALLOWED}")),
            key => errors.at(entry, format!("unknown key `{key}`; {ALLOWED}")),
        }
    }

    fn take_rename(&mut self, entry: &Entry, errors: &mut Errors) {
        let name = entry.text("rename = \"name\"", errors);
        if self.rename.is_some() {
            errors.at(entry, "`rename` is given twice");
        }
        self.rename = self.rename.take().or(name);
    }

    fn take_update(&mut self, entry: &Entry, errors: &mut Errors) {
        let update = entry.ty("update = Move", errors);
        if self.update.is_some() {
            errors.at(entry, "`update` is given twice");
        }
        self.update = self.update.take().or(update);
    }

    fn take_kind(&mut self, entry: &Entry, errors: &mut Errors) {
        let kind = rule(entry, errors).map(|rule| Kind { rule, key: entry.key.clone() });
        if self.kind.is_some() {
            errors.at(entry, format!("`{}` is a second merge rule; a field has one", entry.key));
        }
        self.kind = self.kind.take().or(kind);
    }
}

/// The rule that an entry stands for; wrong or missing values are noted.
fn rule(entry: &Entry, errors: &mut Errors) -> Option<Rule> {
    match entry.name().as_str() {
        "reduce" => entry
            .function("reduce = keep_best` for a `fn keep_best(current: &mut T, update: T)", errors)
            .map(Rule::Reduce),
        "reducer" => {
            entry.tokens("reducer = Longest` for a value that implements `Reducer<T>", errors).map(Rule::Reducer)
        }
        "topic" => Some(topic(entry, errors)),
        key => {
            entry.without_value(errors);
            plain_rule(key)
        }
    }
}

/// The rules whose name says everything.
fn plain_rule(key: &str) -> Option<Rule> {
    Some(match key {
        "append" => Rule::Append,
        "delta" => Rule::Delta,
        "messages" => Rule::Messages,
        "sum" => Rule::Sum,
        "max" => Rule::Max,
        "any" => Rule::Any,
        "ephemeral" => Rule::Ephemeral,
        "untracked" => Rule::Untracked,
        _ => return None,
    })
}

fn topic(entry: &Entry, errors: &mut Errors) -> Rule {
    let accumulate = match &entry.value {
        Value::None => false,
        Value::Args(args) if args.stream().to_string() == "accumulate" => true,
        Value::Args(_) | Value::Is(_) => {
            errors.at(entry, "write `topic` or `topic(accumulate)`");
            false
        }
    };
    Rule::Topic { accumulate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn read(attr: Attribute) -> (FieldAttr, Vec<String>) {
        let mut errors = Errors::default();
        let read = field(&[attr], &mut errors);
        (read, errors.texts())
    }

    #[test]
    fn the_first_rule_counts_and_the_second_is_a_mistake() {
        let (read, errors) = read(parse_quote!(#[state(sum, append)]));
        assert!(matches!(read.kind, Some(Kind { rule: Rule::Sum, .. })));
        assert_eq!(errors, ["`append` is a second merge rule; a field has one"]);
    }

    #[test]
    fn all_mistakes_of_a_field_are_found() {
        let (_, errors) = read(parse_quote!(#[state(append = 1, rename = 2, reduce, nonsense)]));
        assert_eq!(errors.len(), 5, "{errors:?}");
    }

    #[test]
    fn a_topic_accumulates_only_if_it_says_so() {
        let (plain, _) = read(parse_quote!(#[state(topic)]));
        assert!(matches!(plain.kind, Some(Kind { rule: Rule::Topic { accumulate: false }, .. })));
        let (kept, _) = read(parse_quote!(#[state(topic(accumulate))]));
        assert!(matches!(kept.kind, Some(Kind { rule: Rule::Topic { accumulate: true }, .. })));
        assert_eq!(read(parse_quote!(#[state(topic(keep))])).1, ["write `topic` or `topic(accumulate)`"]);
    }
}
