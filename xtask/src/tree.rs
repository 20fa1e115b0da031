//! `cargo xtask tree`: what superstep makes its users build stays small, single and pure Rust, and what few users want
//! stays behind its feature.

use crate::{Result, command};
use std::collections::{BTreeMap, BTreeSet};

const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];
/// What keeps values on a disk: only the crates of databases build it.
const DATABASES: [&str; 7] =
    ["aes-gcm", "deadpool-postgres", "libsqlite3-sys", "lz4_flex", "rusqlite", "superstep-storage", "tokio-postgres"];
/// What speaks HTTP, TLS and MCP.
const CLIENTS: [&str; 5] = ["h2", "hyper", "reqwest", "rmcp", "rustls"];
const TLS_STACKS: [&str; 6] = ["boring", "native-tls", "openssl", "rustls", "s2n-tls", "schannel"];
/// What a TLS stack computes with.
const TLS_PROVIDERS: [&str; 5] = ["aws-lc-rs", "graviola", "ring", "rustls-rustcrypto", "symcrypt"];

pub(crate) fn run() -> Result<()> {
    let mut problems = Vec::new();
    for build in builds() {
        let tree = build.tree()?;
        let versions = versions(&tree);
        println!("{} builds {} crates (at most {})", build.name(), count(&versions), build.most);
        problems.extend(build.problems(&versions).into_iter().map(|problem| format!("{}: {problem}", build.name())));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// Packages with some features, and what holds for all that they make their users build.
struct Build {
    packages: Vec<&'static str>,
    features: Vec<&'static str>,
    most: usize,
    /// Whether each crate has one version and none builds C.
    is_lean: bool,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
}

/// Crates by name, with their versions.
type Versions<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn builds() -> Vec<Build> {
    let mut builds = vec![
        lean("superstep", 45),
        with("superstep", &["conformance", "png", "schema"], 90, &[], &DATABASES),
        with("superstep-sqlite", &["compression", "encryption"], 90, &["rusqlite"], &["tokio-postgres"]),
        with("superstep-postgres", &["compression", "encryption", "tls"], 140, &["rustls"], &["rusqlite"]),
        lean("superstep-agent", 55),
    ];
    let provider = |name| with("superstep-agent", &[name], 130, &["reqwest", "rustls"], &["rmcp"]);
    builds.extend(PROVIDERS.map(provider));
    builds.push(with("superstep-agent", &["mcp"], 160, &["rmcp"], &DATABASES));
    let everything = ["superstep-agent/openai", "superstep-agent/mcp", "superstep-postgres/tls"];
    let mut all = with("superstep-agent", &everything, 200, &["rmcp", "tokio-postgres-rustls"], &[]);
    all.packages.push("superstep-postgres");
    builds.push(all);
    builds
}

fn lean(package: &'static str, most: usize) -> Build {
    Build { is_lean: true, ..with(package, &[], most, &[], &CLIENTS) }
}

fn with(
    package: &'static str,
    features: &[&'static str],
    most: usize,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
) -> Build {
    Build { packages: vec![package], features: features.to_vec(), most, is_lean: false, has, lacks }
}

impl Build {
    fn name(&self) -> String {
        match self.features.join(", ") {
            features if features.is_empty() => self.packages.join(", "),
            features => format!("{} with {features}", self.packages.join(", ")),
        }
    }

    fn tree(&self) -> Result<String> {
        let arguments = ["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
        let packages = self.packages.iter().flat_map(|package| ["--package", package]);
        command::output(command::cargo().args(arguments).args(packages).args(["--features", &self.features.join(",")]))
    }

    fn problems(&self, versions: &Versions) -> Vec<String> {
        let mut problems = tls_problems(versions);
        let count = count(versions);
        if count > self.most {
            problems.push(format!("{count} crates are more than {}", self.most));
        }
        let has = |name: &&&str| versions.contains_key(**name);
        problems.extend(self.lacks.iter().filter(has).map(|name| format!("`{name}` belongs behind another feature")));
        problems.extend(self.has.iter().filter(|name| !has(name)).map(|name| format!("`{name}` is not there")));
        if self.is_lean {
            problems.extend(weight_problems(versions));
        }
        problems
    }
}

/// The versions of each crate in the output of `cargo tree`.
fn versions(tree: &str) -> Versions<'_> {
    let mut versions: Versions<'_> = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions
}

fn count(versions: &Versions) -> usize {
    versions.values().map(BTreeSet::len).sum()
}

/// What secures connections is built once.
fn tls_problems(versions: &Versions) -> Vec<String> {
    let several = |names: &[&str]| {
        let named = versions.iter().filter(|(name, _)| names.contains(name));
        let built = named.flat_map(|(name, all)| all.iter().map(move |version| format!("`{name}` {version}")));
        let built: Vec<String> = built.collect();
        (built.len() > 1).then(|| format!("TLS stands twice: {}", built.join(", ")))
    };
    [several(&TLS_STACKS), several(&TLS_PROVIDERS)].into_iter().flatten().collect()
}

fn weight_problems(versions: &Versions) -> Vec<String> {
    let mut problems = Vec::new();
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
    use super::{Build, versions};

    fn lean(most: usize) -> Build {
        Build { lacks: &["reqwest"], ..super::lean("a", most) }
    }

    #[track_caller]
    fn check(build: &Build, tree: &str, expected: &[&str]) {
        assert_eq!(build.problems(&versions(tree)), expected);
    }

    #[test]
    fn a_crate_seen_twice_counts_once() {
        check(&lean(3), "superstep v0.1.0 (/a/b)\nserde v1.0.0\nserde v1.0.0 (*)\n\n[build-dependencies]", &[]);
        check(&lean(1), "superstep v0.1.0 (/a/b)\nserde v1.0.0", &["2 crates are more than 1"]);
    }

    #[test]
    fn two_versions_of_a_crate_are_refused() {
        let tree = "syn v2.0.1\nsyn v3.0.0 (proc-macro)";
        check(&lean(9), tree, &["`syn` is built in several versions: v2.0.1, v3.0.0"]);
        check(&Build { is_lean: false, ..lean(9) }, tree, &[]);
    }

    #[test]
    fn crates_that_build_c_are_refused() {
        check(
            &lean(9),
            "cc v1.0.0\nlibz-sys v1.1.0\nsysinfo v1.0.0",
            &["`cc` builds or links C", "`libz-sys` builds or links C"],
        );
    }

    #[test]
    fn what_belongs_behind_a_feature_is_not_there_without_it_and_is_there_with_it() {
        check(&lean(9), "reqwest v0.13.0", &["`reqwest` belongs behind another feature"]);
        let http = Build { has: &["reqwest"], lacks: &[], ..lean(9) };
        check(&http, "reqwest v0.13.0", &[]);
        check(&http, "serde v1.0.0", &["`reqwest` is not there"]);
    }

    #[test]
    fn a_second_tls_stack_is_refused() {
        check(&lean(9), "rustls v0.23.0\nring v0.17.0\nhyper-rustls v0.27.0", &[]);
        check(
            &lean(9),
            "rustls v0.23.0\nnative-tls v0.2.0\nring v0.17.0\naws-lc-rs v1.0.0",
            &[
                "TLS stands twice: `native-tls` v0.2.0, `rustls` v0.23.0",
                "TLS stands twice: `aws-lc-rs` v1.0.0, `ring` v0.17.0",
            ],
        );
    }
}
