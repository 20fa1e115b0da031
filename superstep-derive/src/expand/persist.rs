//! The implementation of `Persist`, whose bounds are checked only where a state is saved.

use proc_macro2::TokenStream;
use quote::quote;

use crate::valid::{Field, Model};

pub(super) fn expand(model: &Model) -> TokenStream {
    let Model { ident, .. } = model;
    let private = model.private();
    let deferred = model.deferred(&quote!(#private::Storable));
    let (impl_generics, _, where_clause) = deferred.split_for_impl();
    let arguments = model.generics.split_for_impl().1;
    let methods = [write_methods(model), field_methods(model)];
    quote! {
        #[automatically_derived]
        #[allow(unused_variables, unreachable_code)]
        impl #impl_generics #private::Persist for #ident #arguments #where_clause {
            #(#methods)*
        }
    }
}

fn write_methods(model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let encodes = model.fields.iter().map(|field| {
        let ident = &field.ident;
        let encode = match &field.update {
            Some(_) => quote!(#private::encode_written(value, out)),
            None => encode(field, &private, &quote!(value)),
        };
        quote!(#write::#ident(ref value) => #encode,)
    });
    let shows = model.fields.iter().map(|field| {
        let (ident, show) = (&field.ident, show(field, &private));
        quote!(#write::#ident(ref value) => #show,)
    });
    let decodes = model.numbered().map(|(ix, field)| {
        let (ident, ty) = (&field.ident, &field.ty);
        let decode = match &field.update {
            Some(update) => quote!(#private::decode_written::<#ty, #update>(bytes)?),
            None => decode(field, &private),
        };
        quote!(#ix => #write::#ident(#decode),)
    });
    let from_json = model.numbered().map(|(ix, field)| {
        let (ident, ty) = (&field.ident, &field.ty);
        let value = match &field.update {
            _ if !field.is_tracked() => quote!(#private::takes_no_json::<#ty>()?),
            Some(update) => quote!(#private::written_from_json::<#ty, #update>(value, overwrite)?),
            None => quote!(#private::from_json::<#ty>(value)?),
        };
        quote!(#ix => #write::#ident(#value),)
    });
    quote! {
        fn write_from_json(
            (): &(),
            field: usize,
            value: &#private::Json,
            overwrite: bool,
        ) -> ::core::result::Result<Self::Write, #private::CodecError> {
            ::core::result::Result::Ok(match field {
                #(#from_json)*
                _ => return #private::no_such_saved_field(field),
            })
        }
        fn encode_write(
            (): &(),
            write: &Self::Write,
            out: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), #private::CodecError> {
            match *write { #(#encodes)* }
        }
        fn decode_write(
            (): &(),
            field: usize,
            bytes: &[u8],
        ) -> ::core::result::Result<Self::Write, #private::CodecError> {
            ::core::result::Result::Ok(match field {
                #(#decodes)*
                _ => return #private::no_such_saved_field(field),
            })
        }
        fn write_to_json(
            (): &(),
            write: &Self::Write,
        ) -> ::core::result::Result<::core::option::Option<#private::Json>, #private::CodecError> {
            match *write { #(#shows)* }
        }
    }
}

fn field_methods(model: &Model) -> TokenStream {
    let private = model.private();
    let encodes = model.numbered().map(|(ix, field)| {
        let ident = &field.ident;
        let encode = encode(field, &private, &quote!(&self.#ident));
        quote!(#ix => #encode,)
    });
    let decodes = model.numbered().map(|(ix, field)| {
        let (ident, decode) = (&field.ident, decode(field, &private));
        quote!(#ix => self.#ident = #decode,)
    });
    quote! {
        fn encode_field(
            &self,
            (): &(),
            field: usize,
            out: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), #private::CodecError> {
            match field {
                #(#encodes)*
                _ => #private::no_such_saved_field(field),
            }
        }
        fn decode_field(
            &mut self,
            (): &(),
            field: usize,
            bytes: &[u8],
        ) -> ::core::result::Result<(), #private::CodecError> {
            match field {
                #(#decodes)*
                _ => return #private::no_such_saved_field(field),
            }
            ::core::result::Result::Ok(())
        }
    }
}

fn encode(field: &Field, private: &TokenStream, value: &TokenStream) -> TokenStream {
    if field.is_tracked() {
        quote!(#private::encode_value(#value, out))
    } else {
        quote!(::core::result::Result::Ok(()))
    }
}

fn show(field: &Field, private: &TokenStream) -> TokenStream {
    if field.update.is_some() {
        quote!(#private::written_json(value))
    } else if field.is_tracked() {
        quote!(#private::json_value(value))
    } else {
        quote!(::core::result::Result::Ok(::core::option::Option::None))
    }
}

fn decode(field: &Field, private: &TokenStream) -> TokenStream {
    let ty = &field.ty;
    if field.is_tracked() {
        quote!(#private::decode_value::<#ty>(bytes)?)
    } else {
        quote!(<#ty as ::core::default::Default>::default())
    }
}
