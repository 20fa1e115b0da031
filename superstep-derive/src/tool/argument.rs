//! Types that no argument of a tool can have.

use syn::{GenericArgument, Path, PathArguments, PathSegment, Type, TypeReference};

/// What comes from the run.
const FROM_RUN: [&str; 6] = ["Context", "ToolContext", "ToolCall", "StoreHandle", "StreamWriter", "Runtime"];

/// What is wrong with the type of an argument, if something is.
pub(super) fn mistake(ty: &Type, injected: bool) -> Option<syn::Error> {
    let what = match ty {
        Type::Reference(reference) => format!("a tool owns its arguments: take {}", owned(reference)),
        Type::Path(path) if !injected => from_run(&path.path)?,
        _ => return None,
    };
    Some(syn::Error::new_spanned(ty, what))
}

/// What to take in place of a reference.
fn owned(reference: &TypeReference) -> String {
    match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
        Type::Path(path) => match path.path.segments.last() {
            Some(last) => format!("`{}` itself", last.ident),
            None => "the value itself".to_owned(),
        },
        Type::Slice(_) => "a `Vec`".to_owned(),
        _ => "the value itself".to_owned(),
    }
}

/// Names `#[inject]` for what the run gives. A type of the user's own may have such a name: by its path, it is let
/// through.
fn from_run(path: &Path) -> Option<String> {
    let (first, last) = (path.segments.first()?, path.segments.last()?);
    let name = last.ident.to_string();
    let is_ours = path.segments.len() == 1 || first.ident == "superstep" || first.ident == "superstep_agent";
    if is_ours && FROM_RUN.contains(&&*name) {
        return Some(format!(
            "`{name}` comes from the run, not from the model: write `#[inject]` before the argument; a type of your own \
             is named by its path, as in `self::{name}`"
        ));
    }
    let shared = name == "Arc" && holds_a_type_of_its_own(last);
    shared.then(|| {
        "an `Arc` is how a tool is given the state: write `#[inject]` before the argument; what the model gives is taken \
         without `Arc`"
            .to_owned()
    })
}

/// Whether what is inside could be a state.
fn holds_a_type_of_its_own(arc: &PathSegment) -> bool {
    let PathArguments::AngleBracketed(inside) = &arc.arguments else { return false };
    let Some(GenericArgument::Type(Type::Path(inner))) = inside.args.first() else { return false };
    !inner.path.is_ident("str") && !inner.path.is_ident("String")
}
