//! `docs/mistakes.md` shows mistakes beside what is said to them. Programs and words are taken from here and from `tests/ui`,
//! so that the page stays true; `UPDATE_EXPECT=1` writes them into it.

mod answer_to_nobody;
mod misspelt_target;
mod no_context;
mod no_end;
mod no_thread;
mod sent_something_else;
mod two_writers;
mod unknown_node;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use superstep::BoxError;

/// A program, and what is said to it.
struct Mistake {
    program: String,
    said: String,
}

impl Mistake {
    /// One that the compiler finds: a case of the UI tests.
    fn of_compiler(name: &str) -> Self {
        let read = |kind| read(&format!("tests/ui/{name}.{kind}"));
        Self { program: read("rs"), said: each_once(&read("stderr")) }
    }

    /// One that a graph finds, when it is compiled or run; in the words of a `main` that returns it.
    async fn of_graph(name: &str) -> Self {
        let program = read(&format!("tests/it/mistakes/{name}.rs")).replace("pub(super) ", "");
        let error = made(name).await.expect_err("it is a mistake");
        Self { program, said: format!("Error: {error:?}\n") }
    }

    fn shown(&self) -> String {
        format!("```rust\n{}```\n\n```text\n{}```\n", self.program, self.said)
    }
}

/// Errors without those that say the same at another place.
fn each_once(said: &str) -> String {
    let (mut known, mut once) = (HashSet::new(), String::new());
    for error in said.split_inclusive("\n\n") {
        if known.insert(error.lines().next()) {
            once.push_str(error);
        }
    }
    format!("{}\n", once.trim_end())
}

async fn made(name: &str) -> Result<(), BoxError> {
    match name {
        "answer_to_nobody" => answer_to_nobody::main().await,
        "misspelt_target" => misspelt_target::main().await,
        "no_context" => no_context::main().await,
        "no_end" => no_end::main().await,
        "no_thread" => no_thread::main().await,
        "sent_something_else" => sent_something_else::main().await,
        "two_writers" => two_writers::main().await,
        "unknown_node" => unknown_node::main(),
        other => panic!("the page names `{other}`, which is no mistake"),
    }
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The page with what belongs behind each of its marks: `<!-- compiler: name -->` and `<!-- graph: name -->`.
async fn written(page: &str) -> String {
    let mut out = String::new();
    for section in page.split_inclusive("\n## ") {
        let Some((before, mark)) = section.split_once("<!-- ") else {
            out.push_str(section);
            continue;
        };
        let (mark, after) = mark.split_once(" -->").expect("a mark ends");
        let mistake = match mark.split_once(": ").expect("a mark has a kind and a name") {
            ("compiler", name) => Mistake::of_compiler(name),
            (_, name) => Mistake::of_graph(name).await,
        };
        let next = if after.ends_with("\n## ") { "\n## " } else { "" };
        write!(out, "{before}<!-- {mark} -->\n{}{next}", mistake.shown()).expect("text takes text");
    }
    out
}

#[tokio::test]
async fn the_page_shows_what_is_said_to_each_mistake() {
    let page = read("../docs/mistakes.md");
    let expected = written(&page).await;
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mistakes.md"), &expected).unwrap();
    } else {
        assert!(page == expected, "docs/mistakes.md is not true any more; run this test with UPDATE_EXPECT=1");
    }
    assert!(expected.matches("\n<!-- ").count() >= 10, "ten mistakes at least");
}
