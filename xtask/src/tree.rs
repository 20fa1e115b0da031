//! `cargo xtask tree`: what superstep makes its users build stays small, single and pure Rust.

use crate::{Result, command};
use std::collections::{BTreeMap, BTreeSet};

const MOST_CRATES: usize = 45;

pub(crate) fn run() -> Result<()> {
    let tree = command::output(command::cargo().args([
        "tree",
        "--package",
        "superstep",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]))?;
    let versions = versions(&tree);
    let problems = problems(&versions);
    println!("superstep builds {} crates (at most {MOST_CRATES})", count(&versions));
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// The versions of each crate in the output of `cargo tree`.
fn versions(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions
}

fn count(versions: &BTreeMap<&str, BTreeSet<&str>>) -> usize {
    versions.values().map(BTreeSet::len).sum()
}

fn problems(versions: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut problems = Vec::new();
    let count = count(versions);
    if count > MOST_CRATES {
        problems.push(format!("{count} crates are more than {MOST_CRATES}"));
    }
    for (name, versions) in versions {
        if versions.len() > 1 {
            let versions: Vec<_> = versions.iter().copied().collect();
            problems.push(format!("`{name}` is built in several versions: {}", versions.join(", ")));
        }
        if builds_c(name) {
            problems.push(format!("`{name}` builds or links C"));
        }
    }
    problems
}

fn builds_c(name: &str) -> bool {
    matches!(name, "cc" | "cmake" | "bindgen" | "pkg-config" | "vcpkg") || name.ends_with("-sys")
}

#[cfg(test)]
mod tests {
    use super::{problems, versions};

    #[track_caller]
    fn check(tree: &str, expected: &[&str]) {
        assert_eq!(problems(&versions(tree)), expected);
    }

    #[test]
    fn a_crate_seen_twice_counts_once() {
        check("superstep v0.1.0 (/a/b)\nserde v1.0.0\nserde v1.0.0 (*)\n\n[build-dependencies]", &[]);
    }

    #[test]
    fn two_versions_of_a_crate_are_refused() {
        check("syn v2.0.1\nsyn v3.0.0 (proc-macro)", &["`syn` is built in several versions: v2.0.1, v3.0.0"]);
    }

    #[test]
    fn crates_that_build_c_are_refused() {
        check(
            "cc v1.0.0\nlibz-sys v1.1.0\nsysinfo v1.0.0",
            &["`cc` builds or links C", "`libz-sys` builds or links C"],
        );
    }
}
