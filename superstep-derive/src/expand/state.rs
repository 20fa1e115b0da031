//! The implementation of `State`: every question is a match on the field's number or on the write.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{at, spanned};
use crate::attr::Rule;
use crate::setter;
use crate::valid::{Field, Model};

pub(super) fn expand(model: &Model) -> TokenStream {
    let Model { ident, write, .. } = model;
    let private = model.private();
    let (impl_generics, arguments, where_clause) = model.bounded.split_for_impl();
    let methods = [facts(model), update(model), difference(model), access(model), messages(model)];
    quote! {
        #[automatically_derived]
        #[allow(unreachable_code)]
        impl #impl_generics #private::State for #ident #arguments #where_clause {
            type Schema = ();
            type Write = #write #arguments;
            #(#methods)*
        }
    }
}

/// `fields`, `empty` and `field_of`.
fn facts(model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let specs = model.fields.iter().map(|field| {
        let (name, kind) = (&field.name, kind(field, &private));
        let internal = field.internal.then(|| quote!(.internal()));
        quote!(#private::FieldSpec::new(#name, #kind) #internal,)
    });
    let defaults = model.fields.iter().map(|field| {
        let (ident, default) = (&field.ident, default(field));
        quote!(#ident: #default,)
    });
    let numbers = model.numbered().map(|(ix, Field { ident, .. })| quote!(#write::#ident(_) => #ix,));
    // Only an inline constant may name the type parameters, which the type of a reducer may depend on.
    let specs = if model.fields.iter().any(|field| matches!(field.kind.rule, Rule::Reducer(_))) {
        quote!(const { &[#(#specs)*] })
    } else {
        quote!(const FIELDS: &[#private::FieldSpec] = &[#(#specs)*]; FIELDS)
    };
    let described = model
        .numbered()
        .filter(|(_, field)| field.is_tracked())
        .map(|(ix, Field { ty, .. })| quote!(#ix => (&Probe::<#ty>::NEW).describe(describer),));
    let version = model.version.map(|version| quote!(fn version((): &()) -> u32 { #version }));
    quote! {
        #version
        fn codec() -> ::core::option::Option<&'static #private::Codec<Self>> {
            #[allow(unused_imports)]
            use #private::probe::{NotSaved as _, Saved as _};
            (&#private::probe::Probe::<Self>::NEW).codec()
        }
        #[allow(unused_imports, unused_variables)]
        fn describe((): &(), field: usize, takes: bool, describer: &mut #private::Describer) -> #private::Json {
            use #private::schema_probe::*;
            match field {
                #(#described)*
                _ => #private::Json::Bool(true),
            }
        }
        fn fields((): &()) -> &[#private::FieldSpec] {
            #specs
        }
        fn empty((): &()) -> Self {
            Self { #(#defaults)* }
        }
        fn field_of((): &(), write: &Self::Write) -> ::core::option::Option<usize> {
            ::core::option::Option::Some(match *write { #(#numbers)* })
        }
    }
}

fn kind(field: &Field, private: &TokenStream) -> TokenStream {
    let kind = match &field.kind.rule {
        Rule::Reducer(with) => {
            let (ty, update) = (&field.ty, field.update_type());
            return quote!(#private::typed::reducer_kind::<#ty, #update, _>(&|| #private::typed::type_of(&(#with))));
        }
        Rule::LastValue => quote!(LastValue),
        Rule::Append => quote!(Append),
        Rule::Delta => quote!(Delta),
        Rule::Messages => quote!(Messages),
        Rule::Sum | Rule::Max | Rule::Reduce(_) => quote!(Reducer),
        Rule::Any => quote!(AnyValue),
        Rule::Ephemeral => quote!(Ephemeral),
        Rule::Topic { accumulate: false } => quote!(Topic),
        Rule::Topic { accumulate: true } => quote!(TopicAccumulate),
        Rule::Untracked => quote!(Untracked),
    };
    quote!(#private::FieldKind::#kind)
}

fn default(field: &Field) -> TokenStream {
    let ty = &field.ty;
    quote_spanned!(at(ty.span())=> <#ty as ::core::default::Default>::default())
}

fn update(model: &Model) -> TokenStream {
    let private = model.private();
    let arms = model.numbered().map(|(ix, field)| {
        let merge = merge(field, model);
        quote!(#ix => #merge,)
    });
    quote! {
        #[allow(unused_variables, unused_parens)]
        fn update(
            &mut self,
            (): &(),
            field: usize,
            writes: &mut dyn ::core::iter::Iterator<Item = #private::Put<Self::Write>>,
            scratch: &mut #private::Scratch,
        ) -> ::core::result::Result<#private::Change, #private::InvalidUpdate> {
            match field {
                #(#arms)*
                _ => #private::no_such_field(field),
            }
        }
    }
}

/// The call that merges the writes of one field by its rule.
fn merge(field: &Field, model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let Field { ident, ty, name, kind, .. } = field;
    let other = model.other_writes(1, &quote!(::core::option::Option::None));
    let writes = quote! {
        &mut #private::writes_to(writes, |write| match write {
            #write::#ident(value) => ::core::option::Option::Some(value),
            #other
        })
    };
    let slot = quote_spanned!(at(ty.span())=> &mut self.#ident);
    // The call stands at the attribute: what the rule asks of the type is shown there.
    let span = at(kind.key.span());
    let typed = spanned(quote!(#private::typed), span);
    let ok = quote!(::core::result::Result::Ok(()));
    match &kind.rule {
        Rule::LastValue | Rule::Ephemeral | Rule::Untracked => {
            quote!(#private::typed::last_value(#slot, #name, #writes))
        }
        Rule::Any => quote!(#private::typed::any_value(#slot, #writes)),
        Rule::Append | Rule::Delta => quote_spanned!(span=> #typed::append(#slot, #name, #writes)),
        Rule::Sum => quote_spanned!(span=> #typed::sum(#slot, #name, #writes)),
        Rule::Max => {
            let keep = quote_spanned!(span=> if update > *current { *current = update; });
            quote!(#private::typed::reduce(#slot, #name, #writes, |current, update| { #keep #ok }))
        }
        Rule::Messages => quote_spanned!(span=> #typed::messages(#slot, #name, #writes, scratch)),
        Rule::Topic { accumulate } => quote_spanned!(span=> #typed::topic(#slot, #accumulate, #writes)),
        Rule::Reducer(with) => {
            let merge = if field.update.is_some() { quote!(reducer_of_updates) } else { quote!(reducer) };
            quote!(#private::typed::#merge(#slot, #name, #writes, &(#with)))
        }
        Rule::Reduce(function) => {
            let update = field.update_type();
            let reduce = if field.update.is_some() { quote!(reduce_updates) } else { quote!(reduce) };
            quote! {{
                let merge: fn(&mut #ty, #update) = #function;
                #private::typed::#reduce(#slot, #name, #writes, |current, update| { merge(current, update); #ok })
            }}
        }
    }
}

/// `difference`: what a node changed, by the rule of the field.
fn difference(model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let arms = model.numbered().map(|(ix, field)| {
        let (ident, changed) = (&field.ident, changed(ix, field, model));
        quote!(#write::#ident(after) => #changed.map(#write::#ident),)
    });
    quote! {
        #[allow(clippy::needless_update)]
        fn difference(&self, (): &(), write: Self::Write) -> #private::Difference<Self::Write> {
            #[allow(unused_imports)]
            use #private::difference::{ByEq as _, ByPointer as _, Never as _};
            match write { #(#arms)* }
        }
    }
}

/// What became of one field, `after` being its value in the state that a node gave back.
fn changed(ix: usize, field: &Field, model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let Field { ident, ty, kind, .. } = field;
    let rules = quote!(#private::difference);
    // The compiler finds the best way to compare by following the references.
    let same = |ty: &TokenStream| quote!(|one: &#ty, other: &#ty| (&&&#rules::Same(one, other)).same());
    // By its name where it has one: generic code knows no other of the item.
    let listed = setter::argument_of("Vec", ty);
    let item = listed.map_or_else(|| quote!(<#ty as #private::IntoItems>::Item), |item| quote!(#item));
    let (values, items) = (same(&quote!(#ty)), same(&item));
    let is_same = quote!((&&&#rules::Same(&self.#ident, &after)).same());
    if field.update.is_some() {
        return quote!(#rules::replaced(after, |after| (&&&#rules::Same(&self.#ident, after)).same()));
    }
    match &kind.rule {
        Rule::LastValue | Rule::Ephemeral | Rule::Untracked | Rule::Any => quote!(#rules::kept(#is_same, after)),
        Rule::Append | Rule::Delta | Rule::Topic { accumulate: true } if listed.is_some() => {
            quote!(#rules::listed(&self.#ident, after, #items))
        }
        Rule::Append | Rule::Delta | Rule::Topic { accumulate: true } => {
            quote!(#rules::appended(&self.#ident, after, #items))
        }
        Rule::Topic { accumulate: false } => quote!(#rules::collected(&self.#ident, after, #items)),
        Rule::Messages => quote!(#rules::messages(&self.#ident, after, #items)),
        Rule::Sum => quote!(#rules::summed(&self.#ident, after, #values)),
        // Through the rule itself, so that it is asked of the type only once.
        Rule::Max | Rule::Reducer(_) | Rule::Reduce(_) => {
            quote!(#rules::reduced(&self.#ident, after, |current, update| {
            let mut merged = Self { #ident: current, ..Self::empty(&()) };
            let mut writes = ::core::iter::once(#private::Put::merge(#write::#ident(update)));
            let done = #private::State::update(&mut merged, &(), #ix, &mut writes, &mut ::core::default::Default::default());
            done.is_ok().then_some(merged.#ident)
        }, #values))
        }
    }
}

/// `read` and `reset`.
fn access(model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let reads = model.numbered().map(|(ix, Field { ident, update, .. })| {
        let value = quote!(::core::clone::Clone::clone(&self.#ident));
        let value = if update.is_some() { quote!(#private::Written::Value(#value)) } else { value };
        quote!(#ix => #write::#ident(#value),)
    });
    let resets = model.numbered().map(|(ix, field)| {
        let (ident, default) = (&field.ident, default(field));
        quote!(#ix => self.#ident = #default,)
    });
    quote! {
        fn read(&self, (): &(), field: usize) -> ::core::option::Option<Self::Write> {
            ::core::option::Option::Some(match field {
                #(#reads)*
                _ => return ::core::option::Option::None,
            })
        }
        fn reset(&mut self, (): &(), field: usize) {
            match field {
                #(#resets)*
                _ => {}
            }
        }
    }
}

/// `message_write`, `prepare`, `messages` and `message_ids`, if there are messages at all.
fn messages(model: &Model) -> TokenStream {
    let (write, private) = (&model.write, model.private());
    let idents: Vec<_> =
        model.fields.iter().filter(|f| matches!(f.kind.rule, Rule::Messages)).map(|f| &f.ident).collect();
    if idents.is_empty() {
        return TokenStream::new();
    }
    let made = model.numbered().filter(|(_, f)| matches!(f.kind.rule, Rule::Messages)).map(|(ix, field)| {
        let (ident, ty) = (&field.ident, &field.ty);
        quote!(#ix => #private::list_of::<#ty>(message).map(#write::#ident),)
    });
    let nothing_to_do = model.other_writes(idents.len(), &quote!({}));
    let no_messages = model.other_writes(idents.len(), &quote!(::std::vec::Vec::new()));
    quote! {
        fn message_write((): &(), field: usize, message: #private::Message) -> ::core::option::Option<Self::Write> {
            match field {
                #(#made)*
                _ => ::core::option::Option::None,
            }
        }
        fn prepare((): &(), write: &mut Self::Write) {
            match write {
                #(#write::#idents(messages) => #private::give_ids(messages),)*
                #nothing_to_do
            }
        }
        fn messages(write: &Self::Write) -> ::std::vec::Vec<#private::Message> {
            match write {
                #(#write::#idents(messages) => #private::messages_of(messages).to_vec(),)*
                #no_messages
            }
        }
        fn message_ids(&self) -> ::std::vec::Vec<::std::string::String> {
            let mut ids = ::std::vec::Vec::new();
            #(#private::collect_ids(&self.#idents, &mut ids);)*
            ids
        }
    }
}
