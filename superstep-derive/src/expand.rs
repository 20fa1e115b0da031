//! The last stage: the model as code.
//!
//! Every path is absolute, so that nothing in the user's module can stand in the way.

mod conversation;
mod handles;
mod persist;
mod schema;
mod state;
mod stub;
mod update;
mod write;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::DeriveInput;

use crate::errors::Errors;
use crate::valid::Model;
use crate::{ast, attr, valid};

/// The whole of `#[derive(State)]`.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let container = attr::container(&input.attrs, &mut errors);
    let owned = valid::owns_everything(&input.generics, &mut errors);
    let model = ast::fields(input, &mut errors).map(|fields| valid::model(input, &container, &fields, &mut errors));
    let code = match model {
        Some(model) if owned => state_code(&model),
        _ => stub::expand(input, &container.krate()),
    };
    quote!(#code #errors)
}

fn state_code(model: &Model) -> TokenStream {
    let parts = [
        update::expand(model),
        handles::expand(model),
        write::expand(model),
        state::expand(model),
        conversation::expand(model),
        persist::expand(model),
        schema::expand(model),
    ];
    quote!(#(#parts)*)
}

/// Shows an error at the user's tokens while names still mean what they mean here.
fn at(span: Span) -> Span {
    span.resolved_at(Span::call_site())
}

/// The same tokens at another place; what is in groups stays.
pub(crate) fn spanned(tokens: TokenStream, span: Span) -> TokenStream {
    let moved = tokens.into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    moved.collect()
}
