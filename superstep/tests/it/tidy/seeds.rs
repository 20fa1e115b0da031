//! The page of the seeds: its items are complete, and the tests that it names exist.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use super::{root, rust_files};

/// How many items each seed has.
const ITEMS: [(&str, usize); 5] = [("000", 29), ("001", 35), ("002", 27), ("003", 21), ("004", 99)];

const VERDICTS: [&str; 4] = ["*as written*", "*with this edit*", "*overruled*", "*Python's own*"];

#[test]
fn every_test_that_the_seeds_page_names_exists() {
    let mistakes = mistakes_in(&page());
    assert!(mistakes.is_empty(), "in `docs/seeds.md`:\n{}", mistakes.join("\n"));
}

#[test]
fn mistakes_of_the_seeds_page_are_noticed() {
    #[track_caller]
    fn check(before: &str, after: &str, word: &str) {
        let page = page();
        let changed = page.replacen(before, after, 1);
        assert_ne!(page, changed, "`{before}` is on the page");
        let mistakes = mistakes_in(&changed);
        assert!(mistakes.iter().any(|mistake| mistake.contains(word)), "`{after}` leaves {mistakes:?}");
    }
    check("`seeds::a_graph_", "`seeds::a_grahp_", "a_grahp_");
    check("`draw::mermaid::", "`draw::mermiad::", "mermiad");
    check("`agent: tool_node::", "`agent: tool::", "agent: tool::");
    check("`scenario: linear_chain`", "`scenario: linear_chian`", "linear_chian");
    check("`example: mcp`", "`example: mpc`", "example: mpc");
    check("`rustdoc: EchoAgent`", "`rustdoc: EchoAgnet`", "EchoAgnet");
    check("`rustdoc: EchoAgent`", "`doc: EchoAgent`", "doc: EchoAgent");
    check("`seeds::a_graph_", "`seeds::react`, `seeds::a_graph_", "seeds::react");
    check("| 002-05 |", "| 002-06 |", "002-05");
    check("| *as written* |", "| |", "one verdict");
    check("| *as written* |", "| *as written* *as written* |", "one verdict");
    check("*with this edit*: `", "*with this edit* `", "an edit");
    check("](#o-state)", "](#o-stat)", "o-stat");
    check("| all | 211 |", "| all | 212 |", "| all |");
}

fn page() -> String {
    fs::read_to_string(root().join("docs/seeds.md")).unwrap()
}

fn mistakes_in(page: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    let rows: Vec<Vec<&str>> = page.lines().filter(|line| line.starts_with("| 00")).map(cells).collect();
    let numbers: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let expected = ITEMS.iter().flat_map(|(seed, count)| (1..=*count).map(move |n| format!("{seed}-{n:02}")));
    for (at, number) in expected.enumerate() {
        if numbers.get(at) != Some(&&*number) {
            mistakes.push(format!("row {number} is not where it should be"));
            break;
        }
    }
    for row in &rows {
        let [number, _, _, verdict, shown] = row[..] else {
            mistakes.push(format!("{row:?} has not five cells"));
            continue;
        };
        let mut found = mistakes_of_a_verdict(page, verdict);
        // What is Python's own need not be shown.
        if !(verdict.starts_with("*Python's own*") && shown == "—") {
            found.extend(mistakes_of_tests(shown));
        }
        mistakes.extend(found.into_iter().map(|mistake| format!("{number}: {mistake}")));
    }
    for row in page.lines().filter(|line| line.starts_with("| <a id=")).map(cells) {
        let id = row[0].split('"').nth(1).unwrap_or_default();
        if !page.contains(&format!("](#{id})")) {
            mistakes.push(format!("{id}: no item leads there"));
        }
        mistakes.extend(mistakes_of_tests(row[row.len() - 1]).into_iter().map(|mistake| format!("{id}: {mistake}")));
    }
    mistakes.extend(mistakes_of_the_counts(page, &rows));
    mistakes
}

fn mistakes_of_a_verdict(page: &str, verdict: &str) -> Vec<String> {
    let said: Vec<&str> = VERDICTS.into_iter().flat_map(|known| verdict.matches(known)).collect();
    let [one] = said[..] else { return vec![format!("not one verdict but {said:?}")] };
    let rest = verdict.strip_prefix(one).unwrap_or("?");
    match one {
        "*as written*" if !rest.is_empty() => vec![format!("more than a verdict: {rest}")],
        "*with this edit*" if !(rest.starts_with(": `") && rest.contains("` → `")) => {
            vec![format!("not an edit: {rest}")]
        }
        "*overruled*" => {
            let links: Vec<&str> = rest.split("](#").skip(1).filter_map(|link| link.split(')').next()).collect();
            let lost = links.iter().filter(|id| !page.contains(&format!("| <a id=\"{id}\"></a>")));
            let mut mistakes: Vec<_> = lost.map(|id| format!("there is no {id}")).collect();
            mistakes.extend(links.is_empty().then(|| "it does not say what overrules it".to_owned()));
            mistakes
        }
        "*Python's own*" if rest.len() < 3 => vec!["it does not say why".to_owned()],
        _ => Vec::new(),
    }
}

/// The references in a cell that lead nowhere.
fn mistakes_of_tests(cell: &str) -> Vec<String> {
    let references: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    if references.is_empty() {
        return vec!["no test shows it".to_owned()];
    }
    let lost = references.into_iter().filter(|reference| !exists(reference));
    lost.map(|reference| format!("`{reference}` does not exist")).collect()
}

fn exists(reference: &str) -> bool {
    let root = root();
    match reference.split_once(": ") {
        None => has_test(&root.join("superstep/tests/it"), reference),
        Some(("agent", test)) => has_test(&root.join("superstep-agent/tests/it"), test),
        Some(("scenario", name)) => root.join(format!("conformance/scenarios/{name}.json")).is_file(),
        Some(("example", name)) => root.join(format!("superstep-agent/examples/{name}.rs")).is_file(),
        Some(("rustdoc", item)) => EXAMPLES.contains(item),
        Some(_) => false,
    }
}

/// Whether `a::b::name` is a test `name` in the file `a/b.rs` of the folder.
fn has_test(folder: &Path, test: &str) -> bool {
    let Some((module, name)) = test.rsplit_once("::") else { return false };
    let file = folder.join(module.replace("::", "/")).with_extension("rs");
    let Ok(source) = fs::read_to_string(file) else { return false };
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_it = |line: &str| line.trim_start_matches("async ").starts_with(&format!("fn {name}("));
    (0..lines.len())
        .filter(|at| is_it(lines[*at]))
        .any(|at| above(&lines[..at]).any(|line| line == "#[test]" || line.starts_with("#[tokio::test")))
}

/// The public items that have an example in their documentation.
static EXAMPLES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let files = ["superstep/src", "superstep-agent/src", "superstep-sqlite/src", "superstep-postgres/src"]
        .map(|source| rust_files(&root().join(source)));
    files.iter().flatten().flat_map(|file| examples_in(&fs::read_to_string(file).unwrap())).collect()
});

fn examples_in(source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let items = (0..lines.len()).filter_map(|at| {
        let mut words = lines[at].split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let is_item = words.next() == Some("pub") && ["struct", "enum", "trait", "type", "fn"].contains(&words.next()?);
        let name = words.next()?;
        (is_item && above(&lines[..at]).any(|line| line.starts_with("/// ```"))).then(|| name.to_owned())
    });
    items.collect()
}

/// The attributes and the documentation above an item: the lines before it, up to an empty one.
fn above<'a>(lines: &[&'a str]) -> impl Iterator<Item = &'a str> {
    lines.iter().rev().copied().take_while(|line| !line.is_empty())
}

/// The counts at the top, held against the rows.
fn mistakes_of_the_counts(page: &str, rows: &[Vec<&str>]) -> Vec<String> {
    let count = |seed: &str| {
        let of_seed = || rows.iter().filter(|row| row[0].starts_with(seed));
        let said = |verdict: &str| of_seed().filter(|row| row.iter().any(|cell| cell.starts_with(verdict))).count();
        let mut counts = vec![of_seed().count()];
        counts.extend(VERDICTS.map(said));
        counts.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let seeds = ITEMS.iter().map(|(seed, _)| (*seed, format!("| [{seed}](")));
    seeds
        .chain([("", "| all |".to_owned())])
        .filter_map(|(seed, beginning)| {
            let line = page.lines().find(|line| line.starts_with(&beginning)).unwrap_or_default();
            let expected = count(seed);
            (cells(line)[1..] != expected).then(|| format!("`{beginning}`: the counts are {}", expected.join(", ")))
        })
        .collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}
