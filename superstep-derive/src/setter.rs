//! What a setter of the update struct takes, judged by how the field's type is written.

use syn::{GenericArgument, PathArguments, Type};

use crate::attr::Rule;

/// The argument of a setter.
pub(crate) enum Argument<'a> {
    /// Items of the `Vec` that the field is.
    Items(&'a Type),
    /// What is in the `Option` that the field is.
    Inner(&'a Type),
    /// The value itself.
    Whole(&'a Type),
}

/// The argument of the setter of a field with this type and rule.
pub(crate) fn argument<'a>(ty: &'a Type, rule: &Rule) -> Argument<'a> {
    let items = if collects(rule) { argument_of("Vec", ty) } else { None };
    match (items, argument_of("Option", ty)) {
        (Some(item), _) => Argument::Items(item),
        (None, Some(inner)) => Argument::Inner(inner),
        (None, None) => Argument::Whole(ty),
    }
}

/// Whether a second call of the setter adds to what the first one gave.
pub(crate) fn collects(rule: &Rule) -> bool {
    matches!(rule, Rule::Append | Rule::Delta | Rule::Messages | Rule::Topic { .. })
}

/// Whether the type is a number, `bool` or `char`.
///
/// Their setters take the type itself: a literal passed as `impl Into<u64>` would be an `i32`, which is not.
pub(crate) fn is_scalar(ty: &Type) -> bool {
    const SCALARS: [&str; 16] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64", "bool",
        "char",
    ];
    SCALARS.iter().any(|scalar| is_named(scalar, ty))
}

/// Whether the type is written as this name alone.
pub(crate) fn is_named(name: &str, ty: &Type) -> bool {
    matches!(bare(ty), Type::Path(path) if path.path.is_ident(name))
}

/// `T` if the type is written `name<T>`, with or without a path before it.
pub(crate) fn argument_of<'a>(name: &str, ty: &'a Type) -> Option<&'a Type> {
    let Type::Path(path) = bare(ty) else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

/// The type without parentheses and without the invisible groups that `macro_rules!` makes.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;
    use syn::parse_quote;

    #[track_caller]
    fn check(ty: &Type, rule: &Rule, expected: &str) {
        let text = match argument(ty, rule) {
            Argument::Items(ty) => format!("items of {}", quote!(#ty)),
            Argument::Inner(ty) => format!("inner {}", quote!(#ty)),
            Argument::Whole(ty) => format!("whole {}", quote!(#ty)),
        };
        assert_eq!(text.replace(' ', ""), expected.replace(' ', ""));
    }

    #[test]
    fn collecting_vecs_take_items_and_options_what_is_inside() {
        check(&parse_quote!(Vec<String>), &Rule::Append, "items of String");
        check(&parse_quote!(std::vec::Vec<u8>), &Rule::Topic { accumulate: true }, "items of u8");
        check(&parse_quote!((Vec<Message>)), &Rule::Messages, "items of Message");
        check(&parse_quote!(Vec<String>), &Rule::LastValue, "whole Vec<String>");
        check(&parse_quote!(Option<String>), &Rule::LastValue, "inner String");
        check(&parse_quote!(Option<Vec<u8>>), &Rule::Any, "inner Vec<u8>");
        check(&parse_quote!(BTreeMap<u8, u8>), &Rule::Append, "whole BTreeMap<u8, u8>");
        check(&parse_quote!(Vec<u8, Global>), &Rule::Append, "whole Vec<u8, Global>");
    }

    #[test]
    fn literals_reach_scalars() {
        assert!(is_scalar(&parse_quote!(u64)) && is_scalar(&parse_quote!(bool)));
        assert!(!is_scalar(&parse_quote!(String)) && !is_scalar(&parse_quote!(my::u64)));
    }
}
