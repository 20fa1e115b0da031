//! Finding what is sensitive in a text.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

/// How something is found, and what is left of it behind a mask.
#[derive(Clone)]
pub(super) enum Finder {
    Email,
    Card,
    Ip,
    Mac,
    Url,
    Custom(Arc<dyn Fn(&str) -> Vec<Range<usize>> + Send + Sync>),
}

impl Finder {
    /// Where it is: places between letters, none of them empty.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        match self {
            Finder::Email => emails(text),
            Finder::Card => cards(text),
            Finder::Ip => ips(text),
            Finder::Mac => macs(text),
            Finder::Url => urls(text),
            Finder::Custom(find) => {
                // Places in the middle of a letter are widened: better too much than too little.
                let widened = |range: Range<usize>| {
                    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end.min(text.len()))
                };
                let found = find(text).into_iter().filter(|range| range.start < range.end.min(text.len()));
                found.map(widened).collect()
            }
        }
    }

    pub(super) fn mask(&self, found: &str) -> String {
        match self {
            Finder::Email => {
                let (first, last) = (found.chars().next(), found.rsplit('.').next().unwrap_or_default());
                format!("{}****@****.{last}", first.map(String::from).unwrap_or_default())
            }
            Finder::Card => {
                let digits: Vec<char> = found.chars().filter(char::is_ascii_digit).collect();
                format!("****-****-****-{}", digits[digits.len().saturating_sub(4)..].iter().collect::<String>())
            }
            Finder::Ip if found.contains(':') => "****".to_owned(),
            Finder::Ip => format!("*.*.*.{}", found.rsplit('.').next().unwrap_or_default()),
            Finder::Mac => format!("**:**:**:**:**:{}", &found[found.len().saturating_sub(2)..]),
            Finder::Url => "[MASKED_URL]".to_owned(),
            Finder::Custom(_) => "****".to_owned(),
        }
    }
}

fn emails(text: &str) -> Vec<Range<usize>> {
    let is_local = |c: char| c.is_alphanumeric() || "._%+-'".contains(c);
    let is_domain = |c: char| c.is_alphanumeric() || ".-".contains(c);
    let around = |at: usize| {
        let start = text[..at].rfind(|c: char| !is_local(c)).map_or(0, |i| i + letter_at(text, i));
        let local = text[start..at].trim_start_matches(['.', '\'']);
        let rest = &text[at + 1..];
        let domain = rest[..rest.find(|c: char| !is_domain(c)).unwrap_or(rest.len())].trim_end_matches(['.', '-']);
        let (_, top) = domain.rsplit_once('.')?;
        let fits = !local.is_empty() && top.chars().count() >= 2 && top.chars().all(char::is_alphabetic);
        fits.then(|| at - local.len()..at + 1 + domain.len())
    };
    text.match_indices('@').filter_map(|(at, _)| around(at)).collect()
}

/// How many bytes the letter there has.
fn letter_at(text: &str, place: usize) -> usize {
    text[place..].chars().next().map_or(0, char::len_utf8)
}

/// Whether no letter or digit is right beside the range.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let before = text[..range.start].chars().next_back();
    let after = text[range.end..].chars().next();
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

/// Runs of letters that all are of a kind.
fn runs(text: &str, is_part: impl Fn(char) -> bool) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = None;
    for (place, c) in text.char_indices().chain([(text.len(), '\0')]) {
        match (is_part(c), start) {
            (true, None) => start = Some(place),
            (false, Some(begin)) => {
                runs.push(begin..place);
                start = None;
            }
            _ => {}
        }
    }
    runs
}

fn cards(text: &str) -> Vec<Range<usize>> {
    let groups: Vec<Range<usize>> = runs(text, |c| c.is_ascii_digit());
    let mut found = Vec::new();
    let mut first = 0;
    while first < groups.len() {
        match card_from(text, &groups[first..]) {
            Some((card, used)) => {
                found.push(card);
                first += used;
            }
            None => first += 1,
        }
    }
    found
}

/// The longest card number that begins with the first group of digits, and how many groups it has.
fn card_from(text: &str, groups: &[Range<usize>]) -> Option<(Range<usize>, usize)> {
    let is_joined = |pair: &[Range<usize>]| matches!(&text[pair[0].end..pair[1].start], " " | "-");
    let joined = 1 + groups.windows(2).take_while(|pair| is_joined(pair)).count();
    (1..=joined.min(groups.len())).rev().find_map(|used| {
        let range = groups[0].start..groups[used - 1].end;
        let digits: Vec<u32> = text[range.clone()].chars().filter_map(|c| c.to_digit(10)).collect();
        let fits = (13..=19).contains(&digits.len()) && has_right_check_digit(&digits) && stands_alone(text, &range);
        fits.then_some((range, used))
    })
}

/// Luhn's check: every second digit from the right counts twice.
fn has_right_check_digit(digits: &[u32]) -> bool {
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let places = digits.iter().rev().enumerate();
    let sum: u32 = places.map(|(place, digit)| if place % 2 == 1 { doubled(*digit) } else { *digit }).sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != 0)
}

fn ips(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for run in runs(text, |c| c.is_ascii_hexdigit() || c == '.' || c == ':') {
        let after_colons = text[run.clone()].match_indices(':').map(|(place, _)| run.start + place + 1);
        for start in [run.start].into_iter().chain(after_colons) {
            let is_new = found.last().is_none_or(|last| last.end <= start);
            found.extend(is_new.then(|| ip_from(text, start, run.end)).flatten());
        }
    }
    found
}

/// The longest address that begins there; what comes behind it may be a full stop, a colon or a port.
fn ip_from(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    const LONGEST: usize = 45;
    let last = end.min(start + LONGEST);
    let is_ip = |text: &str| text.len() > 2 && text.parse::<IpAddr>().is_ok();
    let ends = (start + 1..=last).rev().filter(|place| *place == end || matches!(text.as_bytes()[*place], b'.' | b':'));
    ends.map(|end| start..end).find(|range| is_ip(&text[range.clone()]) && stands_alone(text, range))
}

fn macs(text: &str) -> Vec<Range<usize>> {
    const LETTERS: usize = 17;
    let bytes = text.as_bytes();
    let is_mac = |window: &[u8]| {
        let separator = window[2];
        let fits = |(place, byte): (usize, &u8)| match place % 3 {
            2 => *byte == separator,
            _ => byte.is_ascii_hexdigit(),
        };
        matches!(separator, b':' | b'-') && window.iter().enumerate().all(fits)
    };
    let starts = bytes.windows(LETTERS).enumerate().filter(|(_, window)| is_mac(window));
    let ranges = starts.map(|(start, _)| start..start + LETTERS);
    ranges.filter(|range| stands_alone(text, range)).collect()
}

fn urls(text: &str) -> Vec<Range<usize>> {
    // Letters of other scripts keep their length: only those of ASCII change.
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<Range<usize>> = Vec::new();
    for scheme in ["http://", "https://", "ftp://", "www."] {
        for (start, _) in lower.match_indices(scheme) {
            let ends = |c: char| c.is_whitespace() || "<>\"`{}|\\^".contains(c);
            let rest = &text[start..];
            let url = rest[..rest.find(ends).unwrap_or(rest.len())].trim_end_matches(|c| ".,;:!?'()[]*".contains(c));
            let range = start..start + url.len();
            let before = text[..start].chars().next_back();
            if url.len() > scheme.len() && !before.is_some_and(|c| c.is_alphanumeric() || c == '/' || c == '.') {
                found.push(range);
            }
        }
    }
    found
}
