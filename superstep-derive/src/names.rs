//! Names: from Rust's cases to ours, and those that the engine keeps to itself.

use proc_macro2::Ident;
use syn::ext::IdentExt;

/// An identifier as text, without `r#`.
pub(crate) fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// `AskHuman` as `ask_human`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (ix, letter) in letters.iter().enumerate() {
        let starts_word = ix > 0 && letter.is_uppercase() && letters[ix - 1] != '_' && {
            let ends_acronym = letters.get(ix + 1).is_some_and(|next| next.is_lowercase());
            !letters[ix - 1].is_uppercase() || ends_acronym
        };
        if starts_word {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// `best_answer` as `BEST_ANSWER`.
pub(crate) fn screaming(name: &str) -> String {
    snake(name).to_uppercase()
}

/// Why a field or node cannot have this name, if it cannot.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("a name cannot be empty")
    } else if name.starts_with("__") {
        Some("names that begin with `__` are the engine's own")
    } else if name.contains(['|', ':']) {
        Some("`|` and `:` are the engine's separators")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_at_capitals_and_at_the_end_of_acronyms() {
        for (name, expected) in [
            ("Search", "search"),
            ("AskHuman", "ask_human"),
            ("LLMCall", "llm_call"),
            ("Http2Get", "http2_get"),
            ("already_snake", "already_snake"),
            ("Mixed_Case", "mixed_case"),
            ("X", "x"),
        ] {
            assert_eq!(snake(name), expected, "of {name}");
        }
        assert_eq!(screaming("best_answer"), "BEST_ANSWER");
        assert_eq!(screaming("_hidden"), "_HIDDEN");
    }

    #[test]
    fn raw_identifiers_lose_their_mark() {
        assert_eq!(plain(&syn::parse_quote!(r#type)), "type");
    }

    #[test]
    fn the_engines_own_names_are_refused() {
        for bad in ["", "__start__", "__x", "a|b", "a:b"] {
            assert!(refusal(bad).is_some(), "{bad:?} should be refused");
        }
        for good in ["log", "_log", "log__", "käse"] {
            assert!(refusal(good).is_none(), "{good:?} should be allowed");
        }
    }
}
