//! The words of a text: what a search by words goes by, on every store alike.
//!
//! A database's own idea of words (stemming, stop words, its version of Unicode) never takes part.

use std::collections::BTreeSet;

use serde_json::Value;

/// A longer word is known by its first characters.
const LONGEST: usize = 64;

/// The distinct words of a text: runs of letters and digits in lower case. A character of a script without spaces is a
/// word by itself.
pub(super) fn words_of(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    // Lower case first: `İ` becomes two characters, of which one is no letter.
    for character in text.to_lowercase().chars() {
        let stands_alone = stands_alone(character);
        if stands_alone || !character.is_alphanumeric() {
            finish(&mut word, &mut words);
        }
        if character.is_alphanumeric() {
            word.push(character);
        }
        if stands_alone {
            finish(&mut word, &mut words);
        }
    }
    finish(&mut word, &mut words);
    words
}

/// The distinct words of all strings, numbers and truth values inside; keys are none of them.
pub(super) fn words_inside(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => words.extend(words_of(&value.to_string())),
        Value::String(text) => words.extend(words_of(text)),
        Value::Array(elements) => elements.iter().for_each(|element| words_inside(element, words)),
        Value::Object(object) => object.values().for_each(|part| words_inside(part, words)),
    }
}

fn finish(word: &mut String, words: &mut BTreeSet<String>) {
    if word.is_empty() {
        return;
    }
    words.insert(word.chars().take(LONGEST).collect());
    word.clear();
}

/// Kana and Chinese characters, with their extensions.
fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(words_of(text).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        check("Tea, TEA & milk-2!", &["2", "milk", "tea"]);
        check("Ärger über Ölfässer", &["ärger", "ölfässer", "über"]);
        check("don't", &["don", "t"]);
        check(" \t?!", &[]);
    }

    #[test]
    fn scripts_without_spaces_are_words_by_character() {
        check("お茶 tea茶x", &["tea", "x", "お", "茶"]);
    }

    #[test]
    fn a_long_word_is_known_by_its_beginning() {
        let long = "x".repeat(80);
        check(&long, &[&"x".repeat(64)]);
    }
}
