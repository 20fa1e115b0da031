//! The update struct: every field optional, one setter per field.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::Type;

use crate::names;
use crate::setter::{self, Argument};
use crate::valid::{Field, Model};

pub(super) fn expand(model: &Model) -> TokenStream {
    let parts = [declaration(model), clone_and_default(model), debug(model), setters(model), conversions(model)];
    quote!(#(#parts)*)
}

fn declaration(model: &Model) -> TokenStream {
    let Model { ident, vis, update, generics, .. } = model;
    let where_clause = &generics.where_clause;
    let doc = format!("A partial [`{ident}`]: a field that is `None` stays as it is.");
    let fields = model.fields.iter().map(|field| {
        let (ident, vis, ty) = (&field.ident, &field.vis, field.update_type());
        let doc = format!("What to write to `{}`.", names::plain(ident));
        quote!(#[doc = #doc] #vis #ident: ::core::option::Option<#ty>,)
    });
    quote! {
        #[doc = #doc]
        #[must_use = "an update changes nothing until a node returns it"]
        #vis struct #update #generics #where_clause { #(#fields)* }
    }
}

fn clone_and_default(model: &Model) -> TokenStream {
    let Model { update, .. } = model;
    let fields: Vec<&Ident> = model.fields.iter().map(|field| &field.ident).collect();
    let (impl_generics, arguments, where_clause) = model.generics.split_for_impl();
    let (_, _, bounded_where) = model.bounded.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics ::core::default::Default for #update #arguments #where_clause {
            fn default() -> Self {
                Self { #(#fields: ::core::option::Option::None,)* }
            }
        }
        #[automatically_derived]
        impl #impl_generics ::core::clone::Clone for #update #arguments #bounded_where {
            fn clone(&self) -> Self {
                Self { #(#fields: ::core::clone::Clone::clone(&self.#fields),)* }
            }
        }
    }
}

/// `Debug`: the fields that are written. Its bounds are checked only where an update is shown.
fn debug(model: &Model) -> TokenStream {
    let Model { update, .. } = model;
    let private = model.private();
    let shown = model.deferred(&quote!(#private::Shown));
    let (impl_generics, _, where_clause) = shown.split_for_impl();
    let arguments = model.generics.split_for_impl().1;
    let text = update.to_string();
    let fields = model.fields.iter().map(|field| {
        let (ident, name) = (&field.ident, names::plain(&field.ident));
        let show = if field.is_tracked() {
            quote!(#private::Shown::shown(value))
        } else {
            quote!(&::core::format_args!(".."))
        };
        quote!(if let ::core::option::Option::Some(value) = &self.#ident { shown.field(#name, #show); })
    });
    quote! {
        #[automatically_derived]
        #[allow(unused_variables, unused_mut)]
        impl #impl_generics ::core::fmt::Debug for #update #arguments #where_clause {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut shown = f.debug_struct(#text);
                #(#fields)*
                shown.finish_non_exhaustive()
            }
        }
    }
}

fn setters(model: &Model) -> TokenStream {
    let Model { update, .. } = model;
    let (impl_generics, arguments, where_clause) = model.bounded.split_for_impl();
    let setters = model.fields.iter().map(|field| setter(field, model));
    let clearers = model.fields.iter().map(|field| clearer(field, model));
    let overwrite = overwrite(model);
    quote! {
        #[allow(dead_code, unreachable_pub, private_bounds)]
        impl #impl_generics #update #arguments #where_clause {
            #(#setters)*
            #(#clearers)*
            #overwrite
        }
    }
}

fn setter(field: &Field, model: &Model) -> TokenStream {
    let Field { ident, vis, kind, .. } = field;
    let (ty, plain, private) = (field.update_type(), names::plain(ident), model.private());
    let argument = setter::argument(ty, &kind.rule);
    let (takes, value) = match argument {
        Argument::Items(item) if setter::is_scalar(item) => (
            quote!(impl ::core::iter::IntoIterator<Item = #item>),
            quote!(::core::iter::IntoIterator::into_iter(value).collect()),
        ),
        Argument::Items(item) => (
            quote!(impl ::core::iter::IntoIterator<Item = impl ::core::convert::Into<#item>>),
            quote!(::core::iter::IntoIterator::into_iter(value).map(::core::convert::Into::into).collect()),
        ),
        Argument::Inner(inner) => {
            let (takes, value) = converted(inner);
            (takes, quote!(::core::option::Option::Some(#value)))
        }
        Argument::Whole(whole) => converted(whole),
    };
    let (doc, then) = if setter::collects(&kind.rule) {
        (format!("Adds to what `{plain}` gets."), quote!(#private::add_items(&mut self.#ident, value);))
    } else {
        let clears = clearer_name(field, model).map(|clear| format!(" To write `None`, call `{clear}`."));
        (
            format!("Writes `{plain}`.{}", clears.unwrap_or_default()),
            quote!(self.#ident = ::core::option::Option::Some(value);),
        )
    };
    quote! {
        #[doc = #doc]
        #vis fn #ident(mut self, value: #takes) -> Self {
            let value: #ty = #value;
            #then
            self
        }
    }
}

/// The type of an argument that becomes a `ty`, and how it does.
fn converted(ty: &Type) -> (TokenStream, TokenStream) {
    if setter::is_scalar(ty) {
        (quote!(#ty), quote!(value))
    } else {
        (quote!(impl ::core::convert::Into<#ty>), quote!(::core::convert::Into::into(value)))
    }
}

/// `clear_topic`, for an `Option`; a field of that name goes before.
fn clearer_name(field: &Field, model: &Model) -> Option<Ident> {
    let Field { ident, kind, .. } = field;
    let ty = field.update_type();
    let clear = format_ident!("clear_{}", names::plain(ident), span = ident.span());
    let clears = matches!(setter::argument(ty, &kind.rule), Argument::Inner(_)) && !has_field(model, &clear);
    clears.then_some(clear)
}

fn clearer(field: &Field, model: &Model) -> TokenStream {
    let Field { ident, vis, .. } = field;
    let Some(clear) = clearer_name(field, model) else { return TokenStream::new() };
    let doc = format!("Writes `None` to `{}`.", names::plain(ident));
    quote! {
        #[doc = #doc]
        #vis fn #clear(mut self) -> Self {
            self.#ident = ::core::option::Option::Some(::core::option::Option::None);
            self
        }
    }
}

/// The method `overwrite`; a field of that name goes before.
fn overwrite(model: &Model) -> TokenStream {
    let Model { ident, vis, .. } = model;
    let (private, arguments) = (model.private(), model.generics.split_for_impl().1);
    let name = format_ident!("overwrite");
    if has_field(model, &name) {
        return TokenStream::new();
    }
    quote! {
        /// Adds a write that replaces a field's value past its reducer.
        #vis fn #name<__Value, __Update>(
            self,
            field: #private::Field<#ident #arguments, __Value, __Update>,
            value: impl ::core::convert::Into<__Value>,
        ) -> #private::Update<#ident #arguments> {
            #private::Update::overwrite(#private::IntoUpdate::into_update(self), field, value)
        }
    }
}

fn has_field(model: &Model, name: &Ident) -> bool {
    model.fields.iter().any(|field| field.ident == *name)
}

fn conversions(model: &Model) -> TokenStream {
    let Model { ident, update, write, .. } = model;
    let private = model.private();
    let (impl_generics, arguments, where_clause) = model.bounded.split_for_impl();
    let pushes = model.fields.iter().map(|Field { ident, update, .. }| {
        let made = match update {
            Some(_) => quote!(|update| #write::#ident(#private::Written::Update(update))),
            None => quote!(#write::#ident),
        };
        quote!(#private::push(&mut update, &mut self.#ident, #made);)
    });
    quote! {
        #[automatically_derived]
        impl #impl_generics #private::IntoUpdate<#ident #arguments> for #update #arguments #where_clause {
            #[allow(unused_mut)]
            fn into_update(mut self) -> #private::Update<#ident #arguments> {
                let mut update = #private::Update::new();
                #(#pushes)*
                update
            }
        }
        #[automatically_derived]
        impl #impl_generics ::core::convert::From<#update #arguments> for #private::Update<#ident #arguments> #where_clause {
            fn from(update: #update #arguments) -> Self {
                #private::IntoUpdate::into_update(update)
            }
        }
        #[automatically_derived]
        impl #impl_generics #private::IntoOutcome<#ident #arguments> for #update #arguments #where_clause {
            fn into_outcome(self) -> #private::OutcomeResult<#ident #arguments> {
                #private::update_outcome(self)
            }
        }
        #[automatically_derived]
        impl #impl_generics #private::IntoOutcome<#ident #arguments> for #ident #arguments #where_clause {
            fn into_outcome(self) -> #private::OutcomeResult<#ident #arguments> {
                #private::update_outcome(self)
            }
            fn may_be_whole() -> bool {
                true
            }
        }
    }
}
