//! The enum of writes: one variant per field, named as the field.

use proc_macro2::TokenStream;
use quote::quote;

use crate::names;
use crate::valid::{Field, Model};

pub(super) fn expand(model: &Model) -> TokenStream {
    let Model { vis, write, generics, .. } = model;
    let declared_where = &generics.where_clause;
    let (private, debug) = (model.private(), debug(model));
    let variants = model.fields.iter().map(|field| {
        let (ident, holds) = (&field.ident, field.written_type(&private));
        quote!(#ident(#holds),)
    });
    let clones = model.fields.iter().map(
        |Field { ident, .. }| quote!(Self::#ident(ref value) => Self::#ident(::core::clone::Clone::clone(value)),),
    );
    let (impl_generics, arguments, where_clause) = model.bounded.split_for_impl();
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, private_interfaces, clippy::large_enum_variant)]
        #vis enum #write #generics #declared_where { #(#variants)* }

        #[automatically_derived]
        impl #impl_generics ::core::clone::Clone for #write #arguments #where_clause {
            fn clone(&self) -> Self {
                match *self { #(#clones)* }
            }
        }

        #debug
    }
}

/// `Debug`: the field and what it gets. Its bounds are checked only where a write is shown.
fn debug(model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let shown = model.deferred(&quote!(#private::Shown));
    let (impl_generics, _, where_clause) = shown.split_for_impl();
    let arguments = model.generics.split_for_impl().1;
    let fields = model.fields.iter().map(|field| {
        let (ident, name) = (&field.ident, names::plain(&field.ident));
        let show = if field.update.is_some() {
            quote!(#private::shown_written(value))
        } else if field.is_tracked() {
            quote!(#private::Shown::shown(value))
        } else {
            quote!(&::core::format_args!(".."))
        };
        quote!(Self::#ident(ref value) => f.debug_tuple(#name).field(#show).finish(),)
    });
    quote! {
        #[automatically_derived]
        #[allow(unused_variables)]
        impl #impl_generics ::core::fmt::Debug for #write #arguments #where_clause {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match *self { #(#fields)* }
            }
        }
    }
}
