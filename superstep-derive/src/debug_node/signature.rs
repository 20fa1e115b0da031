//! What the signature of a node shows by the way it is written.

use syn::{
    FnArg, GenericArgument, GenericParam, ItemFn, Path, PathArguments, ReturnType, Type, TypeParamBound, parse_quote,
};

/// The first argument of a node.
pub(super) struct Input {
    /// The state that the graph is over, as far as the argument tells.
    pub(super) state: Option<Type>,
    /// Whether it is the state itself, shared or borrowed.
    pub(super) is_state: bool,
}

/// What the type of the first argument says.
pub(super) fn input(ty: &Type, krate: &Path) -> Input {
    let of_state = |state: &Type| Input { state: Some(state.clone()), is_state: true };
    if let Type::Reference(reference) = ty {
        return of_state(&reference.elem);
    }
    let Type::Path(path) = ty else { return of_state(ty) };
    let Some(last) = path.path.segments.last() else { return of_state(ty) };
    let inner = first_argument(&last.arguments);
    match (last.ident.to_string().as_str(), inner) {
        ("Arc", Some(state)) => of_state(state),
        ("Reached", Some(state)) => Input { state: Some(state.clone()), is_state: false },
        ("JsonInput", None) => Input { state: Some(parse_quote!(#krate::JsonState)), is_state: false },
        ("Sent" | "Narrow", Some(_)) => Input { state: None, is_state: false },
        _ => of_state(ty),
    }
}

fn first_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

/// What no node can have.
pub(super) fn mistakes(function: &ItemFn) -> Vec<syn::Error> {
    let mut mistakes = Vec::new();
    let generics = &function.sig.generics;
    if generics.params.iter().any(|param| !matches!(param, GenericParam::Lifetime(_))) {
        let what = "`#[debug_node]` checks one function at a time: take it away from a generic one, or write the types";
        mistakes.push(syn::Error::new_spanned(generics, what));
    }
    match function.sig.inputs.first() {
        None => {
            let what = "a node takes the state first, or what it was sent; take `_: Chat` if it needs nothing of it";
            mistakes.push(syn::Error::new_spanned(&function.sig, what));
        }
        Some(FnArg::Receiver(receiver)) => {
            let what = "a node is a free function; implement `Node` for a type with data of its own";
            mistakes.push(syn::Error::new_spanned(receiver, what));
        }
        Some(FnArg::Typed(_)) => {}
    }
    mistakes
}

/// What is wrong with an argument, if the way it is written shows it.
pub(super) fn wrong_argument(ty: &Type, ix: usize, function: &ItemFn) -> Option<syn::Error> {
    let what = match ty {
        Type::ImplTrait(_) => "an argument of a node has a type of its own; write it",
        Type::Reference(reference) if reference.mutability.is_some() => {
            "a node changes the state by what it returns; take it by value, or borrow it with `&`"
        }
        Type::Reference(_) if ix > 0 => "what a node asks for is its own; take it by value",
        Type::Reference(_) if function.sig.asyncness.is_some() => {
            "an async node outlives the state of its caller; take the state by value, or in an `Arc`, which is not copied"
        }
        _ => return None,
    };
    Some(syn::Error::new_spanned(ty, what))
}

/// Whether a plain function is written to return a future.
pub(super) fn is_future(function: &ItemFn) -> bool {
    let ReturnType::Type(_, ty) = &function.sig.output else { return false };
    if function.sig.asyncness.is_some() {
        return false;
    }
    match &**ty {
        Type::ImplTrait(returned) => returned.bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(|last| last.ident == "Future"),
            _ => false,
        }),
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| last.ident == "Pin" || last.ident == "BoxFuture")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[track_caller]
    fn check(ty: &Type, state: &str, is_state: bool) {
        let found = input(ty, &parse_quote!(superstep));
        let shown = found.state.map_or_else(String::new, |state| quote!(#state).to_string().replace(' ', ""));
        assert_eq!((&*shown, found.is_state), (state, is_state));
    }

    #[test]
    fn the_state_is_told_by_the_first_argument() {
        check(&parse_quote!(Chat), "Chat", true);
        check(&parse_quote!(&Chat), "Chat", true);
        check(&parse_quote!(std::sync::Arc<Chat>), "Chat", true);
        check(&parse_quote!(Vec<Message>), "Vec<Message>", true);
        check(&parse_quote!(Reached<Chat, u8>), "Chat", false);
        check(&parse_quote!(superstep::JsonInput), "superstep::JsonState", false);
        check(&parse_quote!(Sent<u8>), "", false);
    }

    #[test]
    fn functions_that_return_futures_are_known_by_their_type() {
        assert!(is_future(&parse_quote!(
            fn f() -> impl Future<Output = ()> + Send {}
        )));
        assert!(is_future(&parse_quote!(
            fn f() -> Pin<Box<dyn Future<Output = ()>>> {}
        )));
        assert!(!is_future(&parse_quote!(
            async fn f() -> Update {}
        )));
        assert!(!is_future(&parse_quote!(
            fn f() -> Update {}
        )));
    }
}
