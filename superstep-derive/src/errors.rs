//! Mistakes, collected so that one build shows all of them.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::{ToTokens, TokenStreamExt};

/// The mistakes found so far; as tokens they are one `compile_error!` each.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Notes a mistake at some tokens.
    pub(crate) fn at(&mut self, place: impl ToTokens, what: impl Display) {
        self.0.push(syn::Error::new_spanned(place, what));
    }

    /// Notes a mistake that was found elsewhere.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    /// The messages, for tests.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

impl ToTokens for Errors {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.append_all(self.0.iter().map(syn::Error::to_compile_error));
    }
}
