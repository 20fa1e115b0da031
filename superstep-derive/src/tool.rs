//! `#[tool]`: a function as a tool that models can call.

mod argument;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::{Attribute, Expr, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Pat, PatIdent, Type, Visibility, parse_quote};

use crate::errors::Errors;

/// What the attribute itself says.
#[derive(Default)]
struct Said {
    name: Option<LitStr>,
    returns_directly: bool,
}

/// An argument, and who gives it.
struct Argument {
    /// As the function names it.
    pattern: PatIdent,
    /// As the signature names it.
    outside: Ident,
    ty: Type,
    injected: bool,
    /// What is said about it: its documentation, and how it is read.
    attrs: Vec<Attribute>,
}

impl Argument {
    /// Names it inside the function. Tools are values, which names of arguments cannot shadow, but they can shadow
    /// functions, and those can shadow anything.
    fn bind(&self) -> TokenStream {
        let Self { pattern, outside, .. } = self;
        let ident = &pattern.ident;
        quote! {
            #[allow(dead_code, non_snake_case, clippy::all, clippy::pedantic)]
            fn #ident() {}
            let #pattern = #outside;
        }
    }
}

/// The whole of `#[tool]`.
pub(crate) fn expand(said: TokenStream, mut function: ItemFn) -> TokenStream {
    let mut errors = Errors::default();
    let said = read(said, &mut errors);
    let description = documentation(&function.attrs);
    if description.is_empty() {
        errors.at(&function.sig.ident, "a tool needs a doc comment: it is what the model knows of it");
    }
    if !function.sig.generics.params.is_empty() {
        errors.at(&function.sig.generics, "a tool has no generics: models call it with JSON");
    }
    let arguments = arguments(&mut function, &mut errors);
    let wrong = arguments.iter().filter_map(|argument| argument::mistake(&argument.ty, argument.injected));
    let wrong: Vec<syn::Error> = wrong.collect();
    // What follows from a wrong type would bury the mistake itself.
    let call = if wrong.is_empty() { call(&function, &arguments) } else { quote!(::std::unreachable!()) };
    let read = if wrong.is_empty() { &*arguments } else { &[] };
    wrong.into_iter().for_each(|error| errors.push(error));
    let code = code(&said, &description, read, &call, function);
    quote!(#code #errors)
}

fn read(said: TokenStream, errors: &mut Errors) -> Said {
    let mut known = Said::default();
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("name") {
            known.name = Some(meta.value()?.parse()?);
            Ok(())
        } else if meta.path.is_ident("return_direct") {
            known.returns_directly = true;
            Ok(())
        } else {
            Err(meta.error("`#[tool]` knows `name = \"..\"` and `return_direct`"))
        }
    });
    if let Err(error) = syn::parse::Parser::parse2(parser, said) {
        errors.push(error);
    }
    known
}

/// The text of doc comments, a line each.
fn documentation(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter(|attr| attr.path().is_ident("doc")).filter_map(|attr| match &attr.meta {
        Meta::NameValue(meta) => match &meta.value {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

/// The arguments; the function keeps none of their attributes.
fn arguments(function: &mut ItemFn, errors: &mut Errors) -> Vec<Argument> {
    let mut arguments = Vec::new();
    for input in &mut function.sig.inputs {
        let FnArg::Typed(typed) = input else {
            errors.at(input, "a tool is a free function; implement `Tool` for tools with data of their own");
            continue;
        };
        let mut attrs = std::mem::take(&mut typed.attrs);
        let Pat::Ident(pattern) = (*typed.pat).clone() else {
            errors.at(&typed.pat, "an argument of a tool needs a name: it is what the model fills in");
            continue;
        };
        let before = attrs.len();
        attrs.retain(|attr| !attr.path().is_ident("inject"));
        let injected = attrs.len() < before;
        let outside = format_ident!("{}_", pattern.ident.unraw());
        typed.pat = parse_quote!(#outside);
        arguments.push(Argument { pattern, outside, ty: (*typed.ty).clone(), injected, attrs });
    }
    // Statement by statement: a block inside would be called unnecessary.
    let body = &function.block.stmts;
    let bound = arguments.iter().map(Argument::bind);
    *function.block = parse_quote!({ #(#bound)* #(#body)* });
    arguments
}

fn code(
    said: &Said,
    description: &str,
    arguments: &[Argument],
    call: &TokenStream,
    mut function: ItemFn,
) -> TokenStream {
    let ident = std::mem::replace(&mut function.sig.ident, parse_quote!(run));
    let vis = std::mem::replace(&mut function.vis, Visibility::Public(parse_quote!(pub)));
    let attrs = std::mem::take(&mut function.attrs);
    let docs = attrs.iter().filter(|attr| attr.path().is_ident("doc"));
    let others = attrs.iter().filter(|attr| !attr.path().is_ident("doc"));
    let plain = ident.to_string();
    let name = said.name.as_ref().map_or(plain.trim_start_matches("r#").to_owned(), LitStr::value);
    let fields = arguments
        .iter()
        .filter(|a| !a.injected)
        .map(|Argument { pattern: PatIdent { ident, .. }, ty, attrs, .. }| quote!(#(#attrs)* #ident: #ty,));
    let returns_directly = said.returns_directly;
    let private = quote!(::superstep_agent::__private);
    quote! {
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy, Default)]
        #vis struct #ident;

        impl #ident {
            /// What the tool does, as a plain function.
            #(#others)*
            #[allow(dead_code, unreachable_pub, clippy::unused_async, clippy::missing_errors_doc)]
            #function
        }

        const _: () = {
            #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
            #[serde(crate = "superstep_agent::__private::serde")]
            #[schemars(crate = "superstep_agent::__private::schemars")]
            struct __Arguments { #(#fields)* }

            #[automatically_derived]
            impl #private::Tool for #ident {
                fn spec(&self) -> #private::ToolSpec {
                    #private::ToolSpec::new(#name, #description).args::<__Arguments>()
                }
                fn call<'a, 'b>(
                    &'a self,
                    __args: #private::Value,
                    __cx: #private::ToolContext,
                ) -> #private::ToolFuture<'b>
                where
                    'a: 'b,
                    Self: 'b,
                {
                    ::std::boxed::Box::pin(async move { #call })
                }
                fn returns_directly(&self) -> bool {
                    #returns_directly
                }
            }
        };
    }
}

/// Reads the arguments and calls the function.
fn call(function: &ItemFn, arguments: &[Argument]) -> TokenStream {
    let ident = &function.sig.ident;
    let private = quote!(::superstep_agent::__private);
    let values = arguments.iter().map(|Argument { pattern: PatIdent { ident, .. }, ty, injected, .. }| {
        let from_run = quote!(<#ty as #private::FromToolContext>::from_tool_context(&__cx)?);
        if *injected { from_run } else { quote!(__given.#ident) }
    });
    let wait = function.sig.asyncness.map(|_| quote!(.await));
    quote! {
        let __given: __Arguments = #private::arguments(__args)?;
        #private::IntoToolOutput::into_tool_output(#ident::run(#(#values),*) #wait)
    }
}
