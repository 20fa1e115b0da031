//! The implementation of `StateSchema`, if superstep is built with its feature `schema`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

use crate::valid::Model;

/// Only superstep knows its features, so the code goes through a macro of its that keeps or drops it.
pub(super) fn expand(model: &Model) -> TokenStream {
    let Model { ident, update, .. } = model;
    let private = model.private();
    let deferred = model.deferred(&quote!(#private::Described));
    let (impl_generics, _, where_clause) = deferred.split_for_impl();
    let arguments = model.generics.split_for_impl().1;
    let (state_name, update_name) = (ident.to_string(), update.to_string());
    let shown = || model.fields.iter().filter(|field| field.is_tracked() && !field.internal);
    let property = |name: &str, ty: &Type| quote!((#name, <#ty as #private::Described<'__checked>>::describe as #private::Describe),);
    let properties = shown().map(|field| property(&field.name, &field.ty));
    let updates = shown().map(|field| property(&field.name, field.update_type()));
    quote! {
        #private::schema! {
            #[automatically_derived]
            impl #impl_generics #private::StateSchema for #ident #arguments #where_clause {
                const NAME: &'static str = #state_name;
                const UPDATE_NAME: &'static str = #update_name;
                fn properties() -> ::std::vec::Vec<(&'static str, #private::Describe)> {
                    ::std::vec![#(#properties)*]
                }
                fn update_properties() -> ::std::vec::Vec<(&'static str, #private::Describe)> {
                    ::std::vec![#(#updates)*]
                }
            }
        }
    }
}
