//! Rules about the source that no compiler keeps.

mod layers;
mod seeds;

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// Words that follow each other in SQL, and in no other text of ours.
const SQL: &[&[&str]] = &[
    &["select", "from"],
    &["insert", "into"],
    &["update", "set"],
    &["delete from"],
    &["create table"],
    &["create index"],
    &["create unique index"],
    &["create schema"],
    &["create extension"],
    &["alter table"],
    &["drop table"],
    &["pragma"],
    &["savepoint"],
    &["begin immediate"],
];

#[test]
fn sql_is_below_the_sql_of_its_database_only() {
    let sources = CRATES.map(|name| root().join(name).join("src"));
    let files: Vec<PathBuf> = sources.iter().flat_map(|source| rust_files(source)).collect();
    assert!(files.len() > 50, "the source was found");
    // The suites hold hostile names that look like SQL, and run none.
    let homes = ["superstep-sqlite/src/sql", "superstep-postgres/src/sql", "superstep/src/conformance"];
    let homes = homes.map(|folder| root().join(folder));
    let is_home = |file: &Path| homes.iter().any(|home| file.starts_with(home)) || file.ends_with("tests.rs");
    let (home, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_home(file));
    assert!(home.iter().any(|file| !sql_in(&fs::read_to_string(file).unwrap()).is_empty()), "SQL is recognised");

    let strays: Vec<_> = others
        .iter()
        .flat_map(|file| {
            let found = sql_in(&fs::read_to_string(file).unwrap());
            found.into_iter().map(move |text| format!("{}: {text}", file.display()))
        })
        .collect();
    assert!(strays.is_empty(), "move these to `src/sql` of their database:\n{}", strays.join("\n"));
}

#[test]
fn sql_is_recognised_wherever_it_hides() {
    #[track_caller]
    fn check(source: &str, count: usize) {
        assert_eq!(sql_in(source).len(), count, "{source}");
    }
    check(r#"fn f() { run("SELECT a FROM b") }"#, 1);
    check(r##"const A: &str = r#"insert or ignore into a"#;"##, 1);
    check(r#"fn f() { log!({ "UPDATE a SET b = 1" }, "CREATE TABLE a (b)") }"#, 2);
    check(
        r"/// `SELECT a FROM b` is what it runs.
             fn f() {} // DELETE FROM a",
        0,
    );
    check(r#"const A: &str = "select another thread"; const B: &str = "update superstep";"#, 0);
}

/// The crates of the library and its databases.
const CRATES: [&str; 4] = ["superstep", "superstep-storage", "superstep-sqlite", "superstep-postgres"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    files.into_iter().filter(is_rust).chain(folders.iter().flat_map(|folder| rust_files(folder))).collect()
}

/// The literals that look like SQL. Comments do not count.
fn sql_in(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(source.parse().expect("it is Rust"), &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if !is_doc(&group.stream()) => collect(group.stream(), found),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if looks_like_sql(&text) {
                    found.push(text);
                }
            }
            _ => {}
        }
    }
}

/// Whether this is what doc comments are turned into: `doc = "..."`.
fn is_doc(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().next().is_some_and(|token| token.to_string() == "doc")
}

fn looks_like_sql(literal: &str) -> bool {
    let text = literal.trim_start_matches('r').trim_matches(['#', '"']).replace("\\n", " ").to_lowercase();
    let text = format!(" {} ", text.split_whitespace().collect::<Vec<_>>().join(" "));
    SQL.iter().any(|words| {
        let mut rest = Some(text.as_str());
        for word in *words {
            rest = rest.and_then(|rest| Some(&rest[rest.find(&format!(" {word} "))? + word.len() + 1..]));
        }
        rest.is_some()
    })
}
