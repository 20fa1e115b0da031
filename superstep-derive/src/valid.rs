//! The third stage: what the attributes say together, as a model that can be written out.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{DeriveInput, Generics, LitStr, Path, Type, Visibility, parse_quote};

use crate::attr::{self, ContainerAttr, FieldAttr, Kind, Rule};
use crate::errors::Errors;
use crate::{names, setter};

/// Everything that the expansion needs to know.
pub(crate) struct Model {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) update: Ident,
    pub(crate) write: Ident,
    pub(crate) krate: Path,
    pub(crate) version: Option<u32>,
    /// As the struct declares them.
    pub(crate) generics: Generics,
    /// With the bounds that a state needs.
    pub(crate) bounded: Generics,
    pub(crate) fields: Vec<Field>,
}

/// One field; its place in the list is its number.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) ty: Type,
    /// What it is called in checkpoints and events.
    pub(crate) name: String,
    /// The name of its handle; `None` if another field took it.
    pub(crate) constant: Option<Ident>,
    pub(crate) kind: Kind,
    /// What its reducer takes, if that is another type than the field's.
    pub(crate) update: Option<Type>,
    /// Whether only nodes see and write it.
    pub(crate) internal: bool,
}

/// Puts the pieces together and notes what does not fit.
pub(crate) fn model(
    input: &DeriveInput,
    container: &ContainerAttr,
    fields: &[&syn::Field],
    errors: &mut Errors,
) -> Model {
    let all_renamed = fields.iter().all(|field| attr::field(&field.attrs, &mut Errors::default()).rename.is_some());
    attr::serde::of_container(&input.attrs, all_renamed, errors);
    let fields = checked_fields(fields, errors);
    let mut model = Model {
        ident: input.ident.clone(),
        vis: input.vis.clone(),
        update: update_name(&input.ident, container, errors),
        write: format_ident!("{}Write", input.ident),
        krate: container.krate(),
        version: container.version,
        generics: input.generics.clone(),
        bounded: input.generics.clone(),
        fields,
    };
    model.add_bounds();
    model
}

/// Notes lifetime parameters: a state outlives whatever it could borrow. Whether there were none.
pub(crate) fn owns_everything(generics: &Generics, errors: &mut Errors) -> bool {
    for lifetime in generics.lifetimes() {
        errors.at(lifetime, "a state borrows nothing, it outlives the run; own the value or share it in an `Arc`");
    }
    generics.lifetimes().next().is_none()
}

fn update_name(ident: &Ident, container: &ContainerAttr, errors: &mut Errors) -> Ident {
    let (default, write) = (format_ident!("{ident}Update"), format_ident!("{ident}Write"));
    match &container.update {
        Some(name) if name == ident || *name == write => {
            errors.at(
                name,
                format!("the name `{name}` is taken; choose another for the update, as in `update = {default}`"),
            );
            default
        }
        Some(name) => name.clone(),
        None => default,
    }
}

fn checked_fields(fields: &[&syn::Field], errors: &mut Errors) -> Vec<Field> {
    let (mut taken, mut constants) = (HashMap::new(), HashMap::new());
    let mut checked = Vec::new();
    for field in fields {
        let Some(ident) = &field.ident else { continue };
        let read = attr::field(&field.attrs, errors);
        attr::serde::of_field(&field.attrs, &read, errors);
        let update = checked_update(&read, errors);
        let internal = checked_internal(&read, errors);
        let FieldAttr { kind, rename, .. } = read;
        let name = checked_name(ident, rename.as_ref(), &mut taken, errors);
        let constant = checked_constant(ident, &mut constants, errors);
        checked.push(Field {
            vis: field.vis.clone(),
            ty: field.ty.clone(),
            name,
            constant,
            kind: checked_kind(field, kind, errors)
                .unwrap_or_else(|| Kind { rule: Rule::LastValue, key: ident.clone() }),
            ident: ident.clone(),
            update,
            internal,
        });
    }
    checked
}

/// The kind, unless the way the type is written already shows that it does not fit.
fn checked_kind(field: &syn::Field, kind: Option<Kind>, errors: &mut Errors) -> Option<Kind> {
    let kind = kind?;
    let ty = &field.ty;
    let not_a_list = setter::is_scalar(ty) || setter::argument_of("Option", ty).is_some();
    let takes = match kind.rule {
        Rule::Append | Rule::Delta if not_a_list => "a list, string, set or map",
        Rule::Messages | Rule::Topic { .. } if not_a_list || setter::is_named("String", ty) => "a `Vec`",
        _ => return Some(kind),
    };
    errors.at(
        &kind.key,
        format!("`{}` needs {takes}; the field `{}` is not one", kind.key, field.ident.to_token_stream()),
    );
    None
}

/// What the reducer takes, if there is one that can be told.
fn checked_update(read: &FieldAttr, errors: &mut Errors) -> Option<Type> {
    let update = read.update.as_ref()?;
    if let Some(Kind { rule: Rule::Reduce(_) | Rule::Reducer(_), .. }) = read.kind {
        return Some(update.clone());
    }
    errors.at(
        update,
        "`update` on a field is the type that its reducer takes: write `reduce = function` or `reducer = value` beside \
         it; the name of the update struct belongs on the struct",
    );
    None
}

/// Whether the field is internal, which one that is never saved cannot be.
fn checked_internal(read: &FieldAttr, errors: &mut Errors) -> bool {
    let Some(key) = &read.internal else { return false };
    if let Some(Kind { rule: Rule::Untracked, .. }) = read.kind {
        errors.at(key, "`internal` fields are saved with the thread, `untracked` ones never; choose one of the two");
    }
    true
}

fn checked_name(
    ident: &Ident,
    rename: Option<&LitStr>,
    taken: &mut HashMap<String, String>,
    errors: &mut Errors,
) -> String {
    let name = rename.map_or_else(|| names::plain(ident), LitStr::value);
    let place = rename.map_or_else(|| ident.to_token_stream(), ToTokens::to_token_stream);
    if let Some(why) = names::refusal(&name) {
        errors.at(&place, format!("field name `{name}` cannot be used: {why}; choose another with `rename = \"..\"`"));
    }
    if let Some(other) = taken.insert(name.clone(), ident.to_string()) {
        errors.at(
            &place,
            format!("the name `{name}` is taken by the field `{other}`; choose another with `rename = \"..\"`"),
        );
    }
    name
}

fn checked_constant(ident: &Ident, taken: &mut HashMap<String, String>, errors: &mut Errors) -> Option<Ident> {
    let constant = names::screaming(&names::plain(ident));
    if let Some(other) = taken.get(&constant) {
        errors.at(
            ident,
            format!("fields `{other}` and `{ident}` would share the constant `{constant}`; call one of them otherwise"),
        );
        return None;
    }
    let found = Ident::new(&constant, ident.span());
    taken.insert(constant, ident.to_string());
    Some(found)
}

impl Model {
    /// Where the names are that only derived code uses.
    pub(crate) fn private(&self) -> TokenStream {
        let krate = &self.krate;
        quote!(#krate::__private)
    }

    /// The fields with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate()
    }

    /// The catch-all arm of a match on a write; nothing if the other arms are all there is.
    pub(crate) fn other_writes(&self, arms: usize, then: &TokenStream) -> TokenStream {
        if arms < self.fields.len() { quote!(_ => #then,) } else { TokenStream::new() }
    }

    /// The generics of an implementation whose `bound` on each tracked field is checked only when it is used.
    ///
    /// A bound that names a lifetime of the `impl` is not decided where the `impl` stands.
    pub(crate) fn deferred(&self, bound: &TokenStream) -> Generics {
        let mut generics = self.bounded.clone();
        generics.params.insert(0, parse_quote!('__checked));
        let mut seen = std::collections::HashSet::new();
        let clause = generics.make_where_clause();
        let tracked = self.fields.iter().filter(|field| field.is_tracked());
        for ty in tracked.flat_map(|field| std::iter::once(&field.ty).chain(&field.update)) {
            if seen.insert(ty.to_token_stream().to_string()) {
                clause.predicates.push(parse_quote!(#ty: #bound<'__checked>));
            }
        }
        generics
    }

    /// Asks of type parameters, and of the fields that mention one, what a state needs.
    fn add_bounds(&mut self) {
        let parameters: Vec<Ident> = self.generics.type_params().map(|p| p.ident.clone()).collect();
        let constants = self.generics.const_params().map(|p| p.ident.clone());
        let named: Vec<Ident> = parameters.iter().cloned().chain(constants).collect();
        let private = self.private();
        if named.is_empty() {
            return;
        }
        let clause = self.bounded.make_where_clause();
        for parameter in parameters {
            clause.predicates.push(
                parse_quote!(#parameter: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static),
            );
        }
        let is_generic = |field: &&Field| {
            mentions(field.ty.to_token_stream(), &named) || mentions(field.update.to_token_stream(), &named)
        };
        for field in self.fields.iter().filter(is_generic) {
            let (ty, rule) = (&field.ty, field.rule_bound(&private));
            clause.predicates.push(
                parse_quote!(#ty: ::core::clone::Clone + ::core::default::Default + ::core::marker::Send + ::core::marker::Sync + 'static #rule),
            );
            if let Some(update) = &field.update {
                clause.predicates.push(
                    parse_quote!(#update: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static),
                );
            }
            if let (Rule::Messages, Some(message)) = (&field.kind.rule, setter::argument_of("Vec", ty)) {
                clause.predicates.push(parse_quote!(#message: #private::MessageLike));
            }
        }
    }
}

impl Field {
    /// Whether checkpoints hold it.
    pub(crate) fn is_tracked(&self) -> bool {
        !matches!(self.kind.rule, Rule::Untracked)
    }

    /// The type of what is written to it.
    pub(crate) fn update_type(&self) -> &Type {
        self.update.as_ref().unwrap_or(&self.ty)
    }

    /// The type of what a write to it holds.
    pub(crate) fn written_type(&self, private: &TokenStream) -> TokenStream {
        let ty = &self.ty;
        match &self.update {
            Some(update) => quote!(#private::Written<#ty, #update>),
            None => quote!(#ty),
        }
    }

    /// What the rule asks of the field's type, as one more bound.
    fn rule_bound(&self, private: &TokenStream) -> TokenStream {
        match self.kind.rule {
            Rule::Append | Rule::Delta => quote!(+ #private::IntoItems),
            Rule::Sum => quote!(+ ::core::ops::AddAssign),
            Rule::Max => quote!(+ ::core::cmp::PartialOrd),
            _ => TokenStream::new(),
        }
    }
}

/// Whether one of the names occurs in the tokens.
fn mentions(tokens: TokenStream, names: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &DeriveInput) -> (Model, Vec<String>) {
        let mut errors = Errors::default();
        let container = attr::container(&input.attrs, &mut errors);
        let fields = crate::ast::fields(input, &mut errors).expect("the test gives a struct with named fields");
        (model(input, &container, &fields, &mut errors), errors.texts())
    }

    #[test]
    fn names_are_the_fields_own_unless_renamed() {
        let (model, errors) = read(&parse_quote!(
            struct S {
                r#type: u8,
                #[state(rename = "kind")]
                sort: u8,
            }
        ));
        assert_eq!(model.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["type", "kind"]);
        assert_eq!(model.fields[0].constant.as_ref().map(ToString::to_string).as_deref(), Some("TYPE"));
        assert!(errors.is_empty());
    }

    #[test]
    fn a_name_cannot_be_taken_twice() {
        let (model, errors) = read(&parse_quote!(
            struct S {
                log: u8,
                Log: u8,
                #[state(rename = "log")]
                other: u8,
            }
        ));
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(model.fields[1].constant.is_none());
    }

    #[test]
    fn bounds_are_asked_of_parameters_and_of_fields_that_mention_them() {
        let (model, _) = read(&parse_quote!(
            struct S<T, const N: usize> {
                #[state(sum)]
                a: T,
                b: [T; N],
                c: u8,
            }
        ));
        let clause = model.bounded.where_clause.map(|clause| clause.predicates.len());
        assert_eq!(clause, Some(3));
        let (plain, _) = read(&parse_quote!(
            struct S {
                a: u8,
            }
        ));
        assert!(plain.bounded.where_clause.is_none());
    }

    #[test]
    fn a_type_is_checked_once_and_untracked_fields_never() {
        let (model, _) = read(&parse_quote!(
            struct S {
                a: u8,
                b: u8,
                #[state(untracked)]
                c: Cache,
            }
        ));
        let generics = model.deferred(&quote!(Storable));
        assert_eq!(generics.where_clause.map(|clause| clause.predicates.len()), Some(1));
    }
}
