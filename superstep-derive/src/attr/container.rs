//! `#[state(..)]` on the struct.

use proc_macro2::Ident;
use syn::{Attribute, Path, parse_quote};

use super::entry::{Entry, entries};
use super::field;
use crate::errors::Errors;

const ALLOWED: &str = "on a struct `#[state(..)]` takes `crate = path`, `update = Name` and `version = 2`";

/// What the struct's attributes ask for.
#[derive(Default)]
pub(crate) struct ContainerAttr {
    krate: Option<Path>,
    pub(crate) update: Option<Ident>,
    pub(crate) version: Option<u32>,
}

impl ContainerAttr {
    /// Where superstep is.
    pub(crate) fn krate(&self) -> Path {
        self.krate.clone().unwrap_or_else(|| parse_quote!(::superstep))
    }
}

/// Reads the attributes of the struct.
pub(crate) fn container(attrs: &[Attribute], errors: &mut Errors) -> ContainerAttr {
    let mut read = ContainerAttr::default();
    for entry in entries("state", attrs, errors) {
        read.take(&entry, errors);
    }
    read
}

impl ContainerAttr {
    fn take(&mut self, entry: &Entry, errors: &mut Errors) {
        match entry.name().as_str() {
            "crate" => set(&mut self.krate, entry.module("crate = my::superstep", errors), entry, errors),
            "update" => set(&mut self.update, entry.ident("update = ChatPatch", errors), entry, errors),
            "version" => set(&mut self.version, entry.version("version = 2", errors), entry, errors),
            key if field::is_key(key) => errors.at(entry, format!("`{key}` belongs on a field; {ALLOWED}")),
            key => errors.at(entry, format!("unknown key `{key}`; {ALLOWED}")),
        }
    }
}

fn set<T>(slot: &mut Option<T>, value: Option<T>, entry: &Entry, errors: &mut Errors) {
    if slot.is_some() {
        errors.at(entry, format!("`{}` is given twice", entry.key));
    }
    *slot = slot.take().or(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_values_counts_and_the_second_is_a_mistake() {
        let mut errors = Errors::default();
        let read = container(&[parse_quote!(#[state(update = A, update = B, crate = crate)])], &mut errors);
        assert_eq!(read.update.as_ref().map(ToString::to_string).as_deref(), Some("A"));
        assert!(read.krate().is_ident("crate"));
        assert_eq!(errors.texts(), ["`update` is given twice"]);
    }

    #[test]
    fn a_version_is_a_number_from_1_on() {
        let mut errors = Errors::default();
        assert_eq!(container(&[parse_quote!(#[state(version = 3)])], &mut errors).version, Some(3));
        assert!(errors.texts().is_empty());
        for attr in [
            parse_quote!(#[state(version = 0)]),
            parse_quote!(#[state(version = "2")]),
            parse_quote!(#[state(version = -1)]),
            parse_quote!(#[state(version = 99999999999)]),
            parse_quote!(#[state(version)]),
        ] {
            assert_eq!(container(&[attr], &mut errors).version, None);
        }
        assert_eq!(errors.texts(), ["`version` takes a number from 1 on, as in `version = 2`"; 5]);
    }

    #[test]
    fn keys_of_a_field_are_sent_there() {
        let mut errors = Errors::default();
        container(&[parse_quote!(#[state(append, nonsense)])], &mut errors);
        assert!(errors.texts()[0].starts_with("`append` belongs on a field"));
        assert!(errors.texts()[1].starts_with("unknown key `nonsense`"));
    }
}
