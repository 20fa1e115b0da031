//! Drawings, judged by their text.

use superstep::{Drawing, DrawnEdge, DrawnNode};

mod dot;
mod follow;
mod mermaid;
#[cfg(feature = "png")]
mod png;
mod readable;
#[cfg(feature = "svg")]
mod svg;
mod terminal;

/// Compares a drawing with the text expected. That text is indented as the test is; tabs are shown as two spaces.
#[track_caller]
fn check(drawn: &str, expected: &str) {
    let lines: Vec<&str> = expected.trim_start_matches('\n').trim_end().lines().collect();
    let indent = lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    let expected: Vec<&str> = lines.iter().map(|line| line.get(indent.unwrap_or(0)..).unwrap_or("")).collect();
    let drawn = drawn.replace('\t', "  ");
    assert_eq!(drawn.trim_end(), expected.join("\n"), "\n{drawn}");
}

fn nodes(ids: &str) -> Vec<DrawnNode> {
    ids.split(' ').map(DrawnNode::new).collect()
}

fn edge(from: &str, to: &str) -> DrawnEdge {
    DrawnEdge::new(from, to)
}

fn maybe(from: &str, to: &str) -> DrawnEdge {
    DrawnEdge::new(from, to).conditional()
}

fn chain() -> Drawing {
    Drawing::new(
        nodes("__start__ plan act __end__"),
        [edge("__start__", "plan"), edge("plan", "act"), edge("act", "__end__")],
    )
}

fn branch() -> Drawing {
    let edges = [
        edge("__start__", "route"),
        maybe("route", "search").label("needs facts"),
        maybe("route", "answer").label("knows"),
        edge("search", "__end__"),
        edge("answer", "__end__"),
    ];
    Drawing::new(nodes("__start__ route search answer __end__"), edges)
}

fn agent_loop() -> Drawing {
    let edges = [
        edge("__start__", "agent"),
        maybe("agent", "tools").label("continue"),
        maybe("agent", "__end__").label("end"),
        edge("tools", "agent"),
    ];
    Drawing::new(nodes("__start__ agent tools __end__"), edges)
}

fn fan() -> Drawing {
    let workers = ["web", "mail", "files"];
    let out = workers.map(|worker| edge("plan", worker));
    let back = workers.map(|worker| edge(worker, "join"));
    let ends = [edge("__start__", "plan"), edge("join", "__end__")];
    let mut all = nodes("__start__ plan web mail files join __end__");
    all[5] = DrawnNode::new("join").metadata("defer", true);
    Drawing::new(all, ends.into_iter().chain(out).chain(back))
}

fn groups() -> Drawing {
    let edges = [
        edge("__start__", "ask"),
        edge("ask", "team:lead"),
        edge("team:lead", "team:lab:test"),
        edge("team:lab:test", "team:lab:fix"),
        maybe("team:lab:fix", "team:lab:test"),
        maybe("team:lab:fix", "tell"),
        edge("tell", "__end__"),
    ];
    Drawing::new(nodes("__start__ ask team:lead team:lab:test team:lab:fix tell __end__"), edges)
}

fn hostile() -> Drawing {
    let all = ["say \"hi\"]", "a\nb;\u{1b}[31m", "back\\"].map(DrawnNode::new);
    let edges = [edge("say \"hi\"]", "a\nb;\u{1b}[31m").label("--> \"x\" | <b>"), edge("say \"hi\"]", "back\\")];
    Drawing::new(all, edges)
}
