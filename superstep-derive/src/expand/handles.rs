//! What the struct itself gets: `update()` and one constant per field.

use proc_macro2::TokenStream;
use quote::quote;

use crate::names;
use crate::valid::{Field, Model};

pub(super) fn expand(model: &Model) -> TokenStream {
    let Model { ident, vis, update, .. } = model;
    let (impl_generics, arguments, where_clause) = model.bounded.split_for_impl();
    let constants = model.fields.iter().map(|field| constant(field, model));
    quote! {
        #[allow(dead_code, unreachable_pub, private_bounds)]
        impl #impl_generics #ident #arguments #where_clause {
            /// An update that writes nothing yet.
            #vis fn update() -> #update #arguments {
                ::core::default::Default::default()
            }
            #(#constants)*
        }
    }
}

fn constant(field: &Field, model: &Model) -> TokenStream {
    let Field { ident, vis, ty, constant, .. } = field;
    let Some(constant) = constant else { return TokenStream::new() };
    let (state, private) = (&model.ident, model.private());
    let arguments = model.generics.split_for_impl().1;
    let update = field.update_type();
    let made = made(field, model);
    let doc = format!("The handle of the field `{}`.", names::plain(ident));
    quote! {
        #[doc = #doc]
        #vis const #constant: #private::Field<#state #arguments, #ty, #update> = #made;
    }
}

/// The handle: how the field is written, and how it is read out of a write.
fn made(field: &Field, model: &Model) -> TokenStream {
    let Field { ident, name, .. } = field;
    let (write, private) = (&model.write, model.private());
    if field.update.is_some() {
        return quote! {
            #private::Field::reduced(
                #name,
                |update| #write::#ident(#private::Written::Update(update)),
                |value| #write::#ident(#private::Written::Value(value)),
                |write| match write {
                    #write::#ident(#private::Written::Update(update)) => ::core::option::Option::Some(update),
                    _ => ::core::option::Option::None,
                },
            )
        };
    }
    let other = model.other_writes(1, &quote!(::core::option::Option::None));
    quote! {
        #private::Field::new(
            #name,
            |value| #write::#ident(value),
            |write| match write {
                #write::#ident(value) => ::core::option::Option::Some(value),
                #other
            },
        )
    }
}
