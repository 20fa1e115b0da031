//! `#[debug_node]`: what is wrong with a function that should be a node, told argument by argument.
//!
//! A function that is no node is refused where it is added, by one bound over the whole of it. Here each part is asked by
//! itself, at its own tokens.

mod signature;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, GenericArgument, ItemFn, Path, PathArguments, ReturnType, Type, parse_quote};

use self::signature::Input;
use crate::errors::Errors;
use crate::expand::spanned;

/// How many things a node may ask for beside its first argument.
const MOST_ASKED: usize = 6;

/// What the attribute itself says.
#[derive(Default)]
struct Said {
    state: Option<Type>,
    krate: Option<Path>,
}

/// The whole of `#[debug_node]`.
pub(crate) fn expand(said: TokenStream, function: &ItemFn) -> TokenStream {
    let mut errors = Errors::default();
    let said = read(said, &mut errors);
    let checks = checks(&said, function, &mut errors);
    quote!(#function #checks #errors)
}

fn read(said: TokenStream, errors: &mut Errors) -> Said {
    let mut known = Said::default();
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("state") {
            known.state = Some(meta.value()?.parse()?);
            Ok(())
        } else if meta.path.is_ident("crate") {
            known.krate = Some(meta.value()?.call(Path::parse_mod_style)?);
            Ok(())
        } else {
            Err(meta.error("`#[debug_node]` knows `state = Type` and `crate = path`"))
        }
    });
    if let Err(error) = syn::parse::Parser::parse2(parser, said) {
        errors.push(error);
    }
    known
}

/// The checks of what a look at the signature does not refuse.
fn checks(said: &Said, function: &ItemFn, errors: &mut Errors) -> TokenStream {
    let Some(arguments) = arguments(function, errors) else { return TokenStream::new() };
    let krate = said.krate.clone().unwrap_or_else(|| parse_quote!(::superstep));
    let private = quote!(#krate::__private);
    let input = signature::input(&arguments[0], &krate);
    let Some(state) = said.state.clone().or_else(|| input.state.clone()) else {
        errors.at(&arguments[0], "say which state the graph is over: `#[debug_node(state = Chat)]`");
        return TokenStream::new();
    };
    let parts = [
        first(&input, &arguments[0], &state, &private),
        asked(&arguments[1..], function, &private),
        returned(function, &state, &private),
        future(function, arguments.len(), &private),
    ];
    quote! {
        #[allow(warnings, clippy::all, clippy::pedantic)]
        const _: () = { #(#parts)* };
    }
}

/// The types of the arguments; `None` if they are not those of a node.
fn arguments(function: &ItemFn, errors: &mut Errors) -> Option<Vec<Type>> {
    let mut mistakes = signature::mistakes(function);
    let types = function.sig.inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(typed) => Some((*typed.ty).clone()),
        FnArg::Receiver(_) => None,
    });
    let types: Vec<Type> = types.collect();
    mistakes.extend(types.iter().enumerate().filter_map(|(ix, ty)| signature::wrong_argument(ty, ix, function)));
    if let Some(more) = types.get(MOST_ASKED + 1) {
        let what =
            format!("a node asks for {MOST_ASKED} things at most beside its first argument; `Context` has them all");
        mistakes.push(syn::Error::new_spanned(more, what));
    }
    let is_fine = mistakes.is_empty();
    mistakes.into_iter().for_each(|mistake| errors.push(mistake));
    is_fine.then_some(types)
}

/// The first argument: a state is asked to be one, anything else to be made of the state or of what was sent.
fn first(input: &Input, ty: &Type, state: &Type, private: &TokenStream) -> TokenStream {
    if input.is_state {
        return asked_of(state, &quote!(State), private);
    }
    asked_of(ty, &quote!(FromInput<#state>), private)
}

/// Asks a type for a trait. All of it stands at the type: an error is shown where the whole of a bound is.
fn asked_of(ty: &Type, bound: &TokenStream, private: &TokenStream) -> TokenStream {
    let (span, bound) = (ty.span(), quote!(#private::#bound));
    let bound = spanned(bound, span);
    quote_spanned!(span=> const _: () = { fn asked() where #ty: #bound {} };)
}

/// What it asks for.
fn asked(types: &[Type], function: &ItemFn, private: &TokenStream) -> TokenStream {
    // An async function has them in its future, which is asked as a whole.
    let sent = function.sig.asyncness.is_none().then(|| quote!(+ ::core::marker::Send + 'static));
    let checks = types.iter().map(|ty| asked_of(ty, &quote!(FromContext #sent), private));
    quote!(#(#checks)*)
}

/// What it returns: of a `Result` both sides by themselves.
fn returned(function: &ItemFn, state: &Type, private: &TokenStream) -> TokenStream {
    let ReturnType::Type(_, ty) = &function.sig.output else { return TokenStream::new() };
    if signature::is_future(function) {
        return TokenStream::new();
    }
    match sides_of_result(ty) {
        Some((fine, error)) => {
            let fine = asked_of(fine, &quote!(IntoOutcome<#state>), private);
            let error = asked_of(error, &quote!(NodeFailure), private);
            quote!(#fine #error)
        }
        None => asked_of(ty, &quote!(IntoOutcome<#state>), private),
    }
}

/// The future of an async function: it must be `Send`.
fn future(function: &ItemFn, arguments: usize, private: &TokenStream) -> TokenStream {
    if function.sig.asyncness.is_none() && !signature::is_future(function) {
        return TokenStream::new();
    }
    let ident = &function.sig.ident;
    let given = (0..arguments).map(|_| quote!(::core::unreachable!()));
    quote_spanned! {ident.span()=>
        fn waits() {
            #private::is_sent(#ident(#(#given),*));
        }
    }
}

/// `T` and `E` of a type that is written `Result<T, E>`.
fn sides_of_result(ty: &Type) -> Option<(&Type, &Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.iter().collect::<Vec<_>>()[..] {
        [GenericArgument::Type(fine), GenericArgument::Type(error)] => Some((fine, error)),
        _ => None,
    }
}
