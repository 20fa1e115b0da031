//! `#[derive(Routes)]`: the variants of an enum as the targets of a conditional edge.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Data, DeriveInput, Ident, LitStr, Path, Variant, parse_quote};

use crate::attr::entries;
use crate::errors::Errors;
use crate::names;

const END: &str = "__end__";
const ALLOWED: &str = "a variant takes `#[route(\"node\")]` or `#[route(END)]`";

/// A variant and the node that it leads to.
struct Route {
    variant: Ident,
    target: String,
}

/// The whole of `#[derive(Routes)]`.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let krate = krate(&input.attrs, &mut errors);
    let routes = routes(input, &mut errors);
    let code = expand(input, &krate, &routes);
    quote!(#code #errors)
}

/// Where superstep is.
fn krate(attrs: &[Attribute], errors: &mut Errors) -> Path {
    let mut krate = None;
    for entry in entries("route", attrs, errors) {
        if entry.key == "crate" {
            krate = entry.module("crate = my::superstep", errors).or(krate);
        } else {
            errors.at(&entry, format!("on an enum `#[route(..)]` takes `crate = path`; {ALLOWED}"));
        }
    }
    krate.unwrap_or_else(|| parse_quote!(::superstep))
}

fn routes(input: &DeriveInput, errors: &mut Errors) -> Vec<Route> {
    let Data::Enum(data) = &input.data else {
        errors.at(&input.ident, "`Routes` is for enums: each variant is a way to go");
        return Vec::new();
    };
    if data.variants.is_empty() {
        errors.at(&input.ident, "an enum without variants leads nowhere; add one per target");
    }
    data.variants.iter().map(|variant| route(variant, errors)).collect()
}

fn route(variant: &Variant, errors: &mut Errors) -> Route {
    if !variant.fields.is_empty() {
        errors.at(&variant.fields, "a route carries no fields; to hand values to a node return a `Send`");
    }
    let mut given = variant.attrs.iter().filter(|attr| attr.path().is_ident("route"));
    let attr = given.next();
    for attr in given {
        errors.at(attr, "`route` is given twice; a variant leads to one node");
    }
    let target =
        attr.and_then(|attr| named_target(attr, errors)).unwrap_or_else(|| default_target(variant, attr, errors));
    Route { variant: variant.ident.clone(), target }
}

/// The target that an attribute names; a wrong one is noted.
fn named_target(attr: &Attribute, errors: &mut Errors) -> Option<String> {
    if attr.parse_args::<Ident>().is_ok_and(|ident| ident == "END") {
        return Some(END.to_owned());
    }
    let Ok(name) = attr.parse_args::<LitStr>() else {
        errors.at(attr, ALLOWED);
        return None;
    };
    if name.value() == END {
        errors.at(&name, "to lead to the end write `#[route(END)]`");
    } else {
        refuse(&name.value(), &name, errors);
    }
    Some(name.value())
}

fn default_target(variant: &Variant, attr: Option<&Attribute>, errors: &mut Errors) -> String {
    let target = names::snake(&names::plain(&variant.ident));
    if attr.is_none() {
        refuse(&target, &variant.ident, errors);
    }
    target
}

fn refuse(target: &str, place: &impl ToTokens, errors: &mut Errors) {
    if let Some(why) = names::refusal(target) {
        errors.at(place, format!("node name `{target}` cannot be used: {why}; {ALLOWED}"));
    }
}

fn expand(input: &DeriveInput, krate: &Path, routes: &[Route]) -> TokenStream {
    let ident = &input.ident;
    let (impl_generics, arguments, where_clause) = input.generics.split_for_impl();
    let targets = distinct(routes);
    let arms = routes.iter().map(|Route { variant, target }| quote!(Self::#variant { .. } => #target,));
    let body = if routes.is_empty() { quote!(::core::unreachable!()) } else { quote!(match self { #(#arms)* }) };
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::RouteMap for #ident #arguments #where_clause {
            const TARGETS: &'static [&'static str] = &[#(#targets),*];
            fn target(&self) -> &'static str {
                #body
            }
        }
    }
}

/// The targets in the order of the variants; two ways to one node are one target.
fn distinct(routes: &[Route]) -> Vec<&str> {
    let mut targets: Vec<&str> = Vec::new();
    for route in routes {
        if !targets.contains(&route.target.as_str()) {
            targets.push(&route.target);
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &DeriveInput) -> (Vec<String>, Vec<String>) {
        let mut errors = Errors::default();
        let routes = routes(input, &mut errors);
        (distinct(&routes).into_iter().map(ToOwned::to_owned).collect(), errors.texts())
    }

    #[test]
    fn variants_lead_to_their_name_or_where_they_are_told() {
        let (targets, errors) = read(&parse_quote!(
            enum Next {
                AskHuman,
                #[route("write")]
                Enough,
                #[route("write")]
                Plenty,
                #[route(END)]
                GiveUp,
            }
        ));
        assert_eq!(targets, ["ask_human", "write", "__end__"]);
        assert!(errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn all_wrong_variants_are_reported() {
        let (_, errors) = read(&parse_quote!(
            enum Next {
                #[route(end)]
                A,
                #[route("__start__")]
                B,
                C(u8),
                #[route]
                D,
            }
        ));
        assert_eq!(errors.len(), 4, "{errors:?}");
    }
}
