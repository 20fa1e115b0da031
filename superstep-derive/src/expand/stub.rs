//! An empty implementation for what cannot be a state, so that its uses are not errors too.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DeriveInput, GenericParam, Generics, Path, parse_quote};

pub(super) fn expand(input: &DeriveInput, krate: &Path) -> TokenStream {
    let (ident, private) = (&input.ident, quote!(#krate::__private));
    let owned = without_lifetimes(&input.generics);
    let (impl_generics, _, where_clause) = owned.split_for_impl();
    let arguments = arguments(&input.generics);
    quote! {
        #[automatically_derived]
        impl #impl_generics #private::State for #ident #arguments #where_clause {
            type Schema = ();
            type Write = ();
            fn fields((): &()) -> &[#private::FieldSpec] { &[] }
            fn empty((): &()) -> Self { ::core::unreachable!() }
            fn field_of((): &(), (): &()) -> ::core::option::Option<usize> { ::core::option::Option::None }
            fn update(
                &mut self,
                (): &(),
                _: usize,
                _: &mut dyn ::core::iter::Iterator<Item = #private::Put<()>>,
                _: &mut #private::Scratch,
            ) -> ::core::result::Result<#private::Change, #private::InvalidUpdate> {
                ::core::unreachable!()
            }
            fn read(&self, (): &(), _: usize) -> ::core::option::Option<()> { ::core::option::Option::None }
            fn reset(&mut self, (): &(), _: usize) {}
        }
    }
}

/// The parameters without lifetimes, with the bounds that a state needs.
fn without_lifetimes(generics: &Generics) -> Generics {
    let mut owned = generics.clone();
    let parameters: Vec<Ident> = generics.type_params().map(|param| param.ident.clone()).collect();
    for parameter in parameters {
        let needs = quote!(::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static);
        owned.make_where_clause().predicates.push(parse_quote!(#parameter: #needs));
    }
    owned.params = owned.params.into_iter().filter(|param| !matches!(param, GenericParam::Lifetime(_))).collect();
    owned
}

/// The arguments that make the type owned: `'static` for every lifetime.
fn arguments(generics: &Generics) -> TokenStream {
    let arguments = generics.params.iter().map(|param| match param {
        GenericParam::Lifetime(_) => quote!('static),
        GenericParam::Type(param) => {
            let ident = &param.ident;
            quote!(#ident)
        }
        GenericParam::Const(param) => {
            let ident = &param.ident;
            quote!(#ident)
        }
    });
    quote!(<#(#arguments),*>)
}
