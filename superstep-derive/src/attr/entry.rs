//! The grammar of `#[state(..)]`: `key`, `key = value` and `key(..)`, with commas between.

use proc_macro2::{Group, Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprPath, LitInt, LitStr, Path, Token, Type};

use crate::errors::Errors;

/// One entry of an attribute's list.
pub(crate) struct Entry {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

/// What follows the key. Values stay tokens until somebody knows what they should be.
pub(crate) enum Value {
    None,
    Is(TokenStream),
    Args(Group),
}

/// All entries of the attributes called `name`; a list that cannot be read is noted.
pub(crate) fn entries(name: &str, attrs: &[Attribute], errors: &mut Errors) -> Vec<Entry> {
    let mut found = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(name)) {
        let list = attr
            .meta
            .require_list()
            .map_err(|_| syn::Error::new_spanned(attr, format!("`{name}` has no values")))
            .and_then(|list| list.parse_args_with(Punctuated::<Entry, Token![,]>::parse_terminated));
        match list {
            Ok(list) => found.extend(list),
            Err(error) => errors.at(attr, format!("{error}; write a list, as in `#[{name}(key, other = value)]`")),
        }
    }
    found
}

impl Entry {
    /// The key as text.
    pub(crate) fn name(&self) -> String {
        self.key.to_string()
    }

    /// Notes a value that the key does not take.
    pub(crate) fn without_value(&self, errors: &mut Errors) {
        if !matches!(self.value, Value::None) {
            errors.at(self, format!("`{0}` takes no value; write `#[state({0})]`", self.key));
        }
    }

    /// The value as the path of a module.
    pub(crate) fn module(&self, example: &str, errors: &mut Errors) -> Option<Path> {
        self.parsed(Path::parse_mod_style, "a path", example, errors)
    }

    /// The value as the path of a function.
    pub(crate) fn function(&self, example: &str, errors: &mut Errors) -> Option<ExprPath> {
        self.parsed(ExprPath::parse, "the path of a function", example, errors)
    }

    /// The value as a name for an item.
    pub(crate) fn ident(&self, example: &str, errors: &mut Errors) -> Option<Ident> {
        self.parsed(Ident::parse, "a name", example, errors)
    }

    /// The value as a type.
    pub(crate) fn ty(&self, example: &str, errors: &mut Errors) -> Option<Type> {
        self.parsed(<Type as Parse>::parse, "a type", example, errors)
    }

    /// The value as text.
    pub(crate) fn text(&self, example: &str, errors: &mut Errors) -> Option<LitStr> {
        self.parsed(<LitStr as Parse>::parse, "a string", example, errors)
    }

    /// The value as the number of a version.
    pub(crate) fn version(&self, example: &str, errors: &mut Errors) -> Option<u32> {
        let parse = |input: ParseStream<'_>| match input.parse::<LitInt>()?.base10_parse()? {
            0 => Err(input.error("versions begin at 1")),
            version => Ok(version),
        };
        self.parsed(parse, "a number from 1 on", example, errors)
    }

    /// The value as an expression, not looked at.
    pub(crate) fn tokens(&self, example: &str, errors: &mut Errors) -> Option<TokenStream> {
        self.parsed(TokenStream::parse, "a value", example, errors)
    }

    fn parsed<T>(
        &self,
        parse: fn(ParseStream) -> syn::Result<T>,
        what: &str,
        example: &str,
        errors: &mut Errors,
    ) -> Option<T> {
        let parsed = match &self.value {
            Value::Is(tokens) => parse.parse2(tokens.clone()).ok(),
            Value::None | Value::Args(_) => None,
        };
        if parsed.is_none() {
            errors.at(self, format!("`{}` takes {what}, as in `{example}`", self.key));
        }
        parsed
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        // `parse_any`, since `crate` is a key.
        let key = Ident::parse_any(input)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Value::Is(value_tokens(&key, input)?)
        } else if input.peek(syn::token::Paren) {
            Value::Args(input.parse()?)
        } else {
            Value::None
        };
        Ok(Self { key, value })
    }
}

/// The tokens of one value.
///
/// A type or an expression says itself where it ends. What syn cannot read as one ends at the next
/// comma, or, since a closure has commas of its own, at the end of the list.
fn value_tokens(key: &Ident, input: ParseStream) -> syn::Result<TokenStream> {
    if key == "update" && input.fork().parse::<Type>().is_ok() {
        return Ok(input.parse::<Type>()?.into_token_stream());
    }
    if input.fork().parse::<Expr>().is_ok() {
        return Ok(input.parse::<Expr>()?.into_token_stream());
    }
    let closure = input.peek(Token![|]) || input.peek(Token![||]) || input.peek(Token![move]);
    let mut tokens = TokenStream::new();
    while !input.is_empty() && (closure || !input.peek(Token![,])) {
        tokens.extend([input.parse::<proc_macro2::TokenTree>()?]);
    }
    Ok(tokens)
}

impl ToTokens for Entry {
    fn to_tokens(&self, out: &mut TokenStream) {
        let Self { key, value } = self;
        out.extend(match value {
            Value::None => quote!(#key),
            Value::Is(tokens) => quote!(#key = #tokens),
            Value::Args(group) => quote!(#key #group),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn read(attr: Attribute) -> (Vec<String>, Vec<String>) {
        let mut errors = Errors::default();
        let entries = entries("state", &[attr], &mut errors);
        (entries.iter().map(|e| quote!(#e).to_string().replace(' ', "")).collect(), errors.texts())
    }

    #[test]
    fn keys_values_and_lists_are_told_apart() {
        let (found, errors) = read(parse_quote!(#[state(append, crate = a::b, topic(accumulate), rename = "x",)]));
        assert_eq!(found, ["append", "crate=a::b", "topic(accumulate)", "rename=\"x\""]);
        assert!(errors.is_empty());
    }

    #[test]
    fn a_value_may_have_commas_inside() {
        let (found, _) = read(parse_quote!(#[state(reducer = Pair::<u8, u8>::new(1), any)]));
        assert_eq!(found, ["reducer=Pair::<u8,u8>::new(1)", "any"]);
        let (found, _) = read(parse_quote!(#[state(reducer = ReducerFn(|a, b| a), any)]));
        assert_eq!(found, ["reducer=ReducerFn(|a,b|a)", "any"]);
        let (found, _) = read(parse_quote!(#[state(reduce = f, update = BTreeMap<u8, u8>, internal)]));
        assert_eq!(found, ["reduce=f", "update=BTreeMap<u8,u8>", "internal"]);
        let (found, _) = read(parse_quote!(#[state(reduce = |a, b| *a = b)]));
        assert_eq!(found, ["reduce=|a,b|*a=b"]);
    }

    #[test]
    fn an_attribute_without_a_list_is_a_mistake() {
        let expected = ["`state` has no values; write a list, as in `#[state(key, other = value)]`"];
        assert_eq!(read(parse_quote!(#[state])).1, expected);
        assert_eq!(read(parse_quote!(#[state = "append"])).1, expected);
        assert_eq!(read(parse_quote!(#[serde(default)])).1, [""; 0]);
    }
}
