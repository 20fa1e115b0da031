//! The first stage: is it a struct with named fields, and which are they?

use syn::{Data, DeriveInput, Field, Fields};

use crate::errors::Errors;

const SHAPE: &str = "`State` is for structs with named fields";

/// The fields of a struct; `None`, with the mistake noted, if it has another shape.
pub(crate) fn fields<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<Vec<&'a Field>> {
    let hint = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => return Some(named.named.iter().collect()),
            Fields::Unit => return Some(Vec::new()),
            Fields::Unnamed(_) => "give these fields names",
        },
        Data::Enum(_) => "put the enum into a field of one; to route by an enum derive `Routes`",
        Data::Union(_) => "put the union into a field of one",
    };
    errors.at(&input.ident, format!("{SHAPE}; {hint}"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn a_unit_struct_has_no_fields_and_a_tuple_is_refused() {
        let mut errors = Errors::default();
        assert_eq!(
            fields(
                &parse_quote!(
                    struct Unit;
                ),
                &mut errors
            )
            .map(|f| f.len()),
            Some(0)
        );
        assert!(errors.texts().is_empty());
        assert!(
            fields(
                &parse_quote!(
                    struct Pair(u8, u8);
                ),
                &mut errors
            )
            .is_none()
        );
        assert_eq!(errors.texts(), ["`State` is for structs with named fields; give these fields names"]);
    }
}
