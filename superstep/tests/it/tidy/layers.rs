//! The layers of the library: the order in which `lib.rs` lists its modules is the order of who may use whom, and the
//! picture in `ARCHITECTURE.md` shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::{root, rust_files};

#[test]
fn modules_use_only_those_listed_before_them() {
    for name in ["superstep", "superstep-agent", "superstep-storage", "superstep-sqlite", "superstep-postgres"] {
        let source = root().join(name).join("src");
        let layers = layers(&fs::read_to_string(source.join("lib.rs")).unwrap());
        assert!(layers.len() > 3, "the modules of `{name}` were found");
        let back = back_edges(&imports(&source, &layers), &layers);
        assert!(back.is_empty(), "these modules of `{name}` use one that its `lib.rs` lists after them: {back:?}");
    }
}

#[test]
fn the_picture_of_the_layers_is_the_list_of_modules() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let shown = pictured(&page);
    let listed = layers(&fs::read_to_string(root().join("superstep/src/lib.rs")).unwrap());
    assert_eq!(shown, listed, "the picture in `ARCHITECTURE.md` (left), the modules of `lib.rs` (right)");
}

#[test]
fn a_picture_lists_modules_before_its_bars() {
    assert_eq!(pictured("text\n```layers\na b  │ first\nc │ `d`, e\n```\nf │ g"), ["a", "b", "c"]);
}

#[test]
fn imports_are_found_wherever_they_stand() {
    let found = |source: &str| used(source.parse().expect("it is Rust")).into_iter().collect::<Vec<_>>();
    assert_eq!(found("use crate::state::State; fn f() { crate::engine::run(x); }"), ["engine", "state"]);
    assert_eq!(found("use crate::{Error, node::{Call, plan}, graph as g};"), ["Error", "graph", "node"]);
    assert_eq!(found(r#"/// `crate::doc::Link` is prose. const A: &str = "crate::text";"#), Vec::<String>::new());
    assert_eq!(found("#[cfg(test)] mod tests { use crate::seen; } #[cfg(unix)] use crate::real;"), ["real"]);
}

#[test]
fn back_edges_are_those_against_the_order() {
    let layers = ["id".to_owned(), "state".to_owned(), "engine".to_owned()];
    let imports = BTreeMap::from([
        ("id".to_owned(), BTreeSet::from(["engine".to_owned(), "id".to_owned()])),
        ("engine".to_owned(), BTreeSet::from(["state".to_owned(), "Name".to_owned()])),
    ]);
    assert_eq!(back_edges(&imports, &layers), BTreeSet::from(["id -> engine".to_owned()]));
}

/// The modules in the picture of the layers, from top to bottom.
fn pictured(page: &str) -> Vec<String> {
    let picture = page.split("```layers").nth(1).and_then(|rest| rest.split("```").next());
    let lines = picture.expect("there is a picture of the layers").lines();
    let modules = lines.filter_map(|line| line.split_once('│')).flat_map(|(modules, _)| modules.split_whitespace());
    modules.map(str::to_owned).collect()
}

/// The modules that `lib.rs` declares, in its order.
fn layers(lib: &str) -> Vec<String> {
    let words: Vec<String> =
        lib.parse::<TokenStream>().expect("it is Rust").into_iter().map(|token| token.to_string()).collect();
    let declared = words.windows(3).filter(|three| three[0] == "mod" && three[2] == ";");
    declared.map(|three| three[1].clone()).collect()
}

/// What each module at the top uses of the crate.
fn imports(source: &Path, layers: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files(source) {
        let top = file.strip_prefix(source).unwrap().components().next().unwrap();
        let top = top.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        // Tests inside the library may look at all of it.
        if layers.contains(&top) && !file.ends_with("tests.rs") {
            all.entry(top).or_default().extend(used(fs::read_to_string(&file).unwrap().parse().expect("it is Rust")));
        }
    }
    all
}

fn back_edges(imports: &BTreeMap<String, BTreeSet<String>>, layers: &[String]) -> BTreeSet<String> {
    let place = |module: &str| layers.iter().position(|layer| layer == module);
    let against = |from: &str, to: &str| place(to).is_some_and(|to| Some(to) > place(from));
    let edges = imports.iter().flat_map(|(from, used)| used.iter().map(move |to| (from, to)));
    edges.filter(|(from, to)| against(from, to)).map(|(from, to)| format!("{from} -> {to}")).collect()
}

/// The names that follow `crate::`, outside of unit tests.
fn used(tokens: TokenStream) -> BTreeSet<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            // An item ends with its body or its semicolon.
            is_test &= token.to_string() != ";";
            if token.to_string() == "crate" && follows(&tokens[at + 1..]) {
                found.extend(tokens.get(at + 3).map(names).unwrap_or_default());
            }
            continue;
        };
        if group.stream().to_string().replace(' ', "") == "cfg(test)" {
            is_test = true;
        } else if !is_test {
            found.extend(used(group.stream()));
        } else if group.delimiter() == proc_macro2::Delimiter::Brace {
            is_test = false;
        }
    }
    found
}

/// Whether a path goes on here.
fn follows(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [one, two, ..] if one.to_string() == ":" && two.to_string() == ":")
}

/// The name that stands here, or the first ones of the paths in braces.
fn names(token: &TokenTree) -> Vec<String> {
    let TokenTree::Group(group) = token else { return vec![token.to_string()] };
    let mut paths = vec![];
    let mut begins = true;
    for token in group.stream() {
        if begins {
            paths.push(token.to_string());
        }
        begins = token.to_string() == ",";
    }
    paths
}
