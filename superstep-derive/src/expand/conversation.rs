//! The implementation of `Conversation`, for states with one list of messages.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse_quote;

use crate::attr::Rule;
use crate::valid::{Field, Model};

pub(super) fn expand(model: &Model) -> TokenStream {
    let mut lists = model.fields.iter().filter(|field| matches!(field.kind.rule, Rule::Messages));
    let (Some(Field { ident, ty, .. }), None) = (lists.next(), lists.next()) else { return TokenStream::new() };
    let (state, write, private) = (&model.ident, &model.write, model.private());
    let arguments = model.bounded.split_for_impl().1;
    // Messages of a type of their own are no conversation: that is decided where one is asked for.
    let mut generics = model.bounded.clone();
    generics.params.insert(0, parse_quote!('__checked));
    generics.make_where_clause().predicates.push(parse_quote!(#ty: #private::ConversationField<'__checked>));
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #private::Conversation for #state #arguments #where_clause {
            fn conversation(&self) -> &[#private::Message] {
                <#ty as #private::ConversationField<'__checked>>::messages(&self.#ident)
            }
            fn say(messages: ::std::vec::Vec<#private::Message>) -> #private::Update<Self> {
                let messages = <#ty as #private::ConversationField<'__checked>>::from_messages(messages);
                #private::Update::from_writes([#write::#ident(messages)])
            }
        }
    }
}
