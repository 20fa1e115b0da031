//! The enum of writes: one variant per field, named as the field.

use proc_macro2::TokenStream;
use quote::quote;

use crate::valid::{Field, Model};

pub(super) fn expand(model: &Model) -> TokenStream {
    let Model { vis, write, generics, .. } = model;
    let declared_where = &generics.where_clause;
    let variants = model.fields.iter().map(|Field { ident, ty, .. }| quote!(#ident(#ty),));
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
    }
}
