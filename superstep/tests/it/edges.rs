//! Edges in their less common forms, and where they lead.

use superstep::{BuildError, END, NamedPath, START, StateGraph};

use crate::support::{Notes, NotesUpdate, saved, says};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// `a` leads to what the path says of `x`, `y` and `END`; all of them meet in `then`.
fn meeting(chosen: &'static [&'static str]) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    for name in ["a", "then", "x", "y"] {
        graph.add_node(name, says(name));
    }
    let map = [("left", "x"), ("right", "y"), ("stop", END)];
    graph.add_edge(START, "a").add_conditional_edges_then("a", move |_: &Notes| chosen.to_vec(), map, "then");
    graph
}

async fn log(graph: &StateGraph<Notes>) -> String {
    graph.compile().unwrap().invoke(input()).await.unwrap().state.log.join(" ")
}

#[tokio::test]
async fn what_a_conditional_edge_leads_to_meets_in_one_node() {
    assert_eq!(log(&meeting(&["left"])).await, "a x then");
    assert_eq!(log(&meeting(&["right"])).await, "a y then");
    assert_eq!(log(&meeting(&["left", "right"])).await, "a x y then", "it runs once, after both");
    assert_eq!(log(&meeting(&["left", "stop"])).await, "a x then");
}

#[tokio::test]
async fn nothing_meets_if_the_edge_leads_nowhere() {
    assert_eq!(log(&meeting(&["stop"])).await, "a");
    assert_eq!(log(&meeting(&[])).await, "a");
}

#[tokio::test]
async fn the_map_of_a_meeting_edge_counts() {
    let error = meeting(&["x"]).compile().unwrap().invoke(input()).await.unwrap_err();
    assert_eq!(error.node(), Some("a"));
    assert!(error.to_string().contains("`x`") && error.to_string().contains("left"), "{error}");
}

#[test]
fn a_meeting_point_must_exist() {
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_edge(START, "a");
    graph.add_conditional_edges_then("a", |_: &Notes| "left", [("left", "a")], "them");
    let errors = graph.compile().unwrap_err();
    assert!(matches!(errors.errors(), [BuildError::UnknownTarget { .. }]), "{errors}");
}

#[test]
fn a_meeting_point_is_drawn_behind_every_target() {
    let drawn = meeting(&[]).compile().unwrap().draw();
    let leads = |from: &str, to: &str| drawn.edges.iter().any(|e| e.from == from && e.to == to && !e.conditional);
    assert!(leads("x", "then") && leads("y", "then"), "{drawn:?}");
}

#[tokio::test]
async fn a_meeting_point_is_next_after_an_update_by_hand() {
    let app = saved(&mut meeting(&["left"]));
    app.thread("t").update(Notes::update().log(["by hand"])).as_node("x").await.unwrap();
    assert_eq!(app.thread("t").state().await.unwrap().next, ["then"]);
}

#[tokio::test]
async fn conditional_edges_of_one_node_are_all_followed() {
    let mut graph = StateGraph::new();
    for name in ["a", "x", "y", "z"] {
        graph.add_node(name, says(name));
    }
    graph
        .set_entry_point("a")
        .add_conditional_edges("a", NamedPath::new("first", |_: &Notes| "x"))
        .add_conditional_edges_with_map("a", NamedPath::new("second", |_: &Notes| "go"), [("go", "y")])
        .add_conditional_edges_with_map("a", |_: &Notes| "last", [("last", "z")])
        .set_finish_point("z");
    assert_eq!(log(&graph).await, "a x y z");
}

#[test]
fn two_conditional_edges_of_one_node_may_not_share_a_name() {
    let mut graph = StateGraph::new();
    graph
        .add_node("a", says("a"))
        .add_edge(START, "a")
        .add_conditional_edges("a", NamedPath::new("same", |_: &Notes| END))
        .add_conditional_edges("a", NamedPath::new("same", |_: &Notes| END));
    let errors = graph.compile().unwrap_err();
    assert!(errors.to_string().contains("same"), "{errors}");
}

#[tokio::test]
async fn the_entry_may_be_decided_by_the_input() {
    let graph = || {
        let mut graph = StateGraph::new();
        graph
            .add_node("x", says("x"))
            .add_node("y", says("y"))
            .set_conditional_entry_point(|notes: &Notes| if notes.total > 1 { "x" } else { "y" });
        graph
    };
    let run = |total: i64| async move {
        graph().compile().unwrap().invoke(Notes::update().total(total)).await.unwrap().state.log.join(" ")
    };
    assert_eq!((run(2).await.as_str(), run(1).await.as_str()), ("x", "y"));
}

#[test]
fn a_finish_point_must_be_a_node_and_is_drawn() {
    let mut drawn = StateGraph::new();
    drawn.add_node("a", says("a")).set_entry_point("a").set_finish_point("a");
    let drawn = drawn.compile().unwrap().draw();
    assert!(drawn.edges.iter().any(|e| e.from == "a" && e.to == END), "{drawn:?}");
    let mut unknown = StateGraph::new();
    unknown.add_node("a", says("a")).set_entry_point("a").set_finish_point("b");
    assert!(matches!(unknown.compile().unwrap_err().errors(), [BuildError::UnknownSource { .. }]));
}

/// The play of a graph does not come to where only a path that names nothing leads.
#[test]
fn declared_edges_are_drawn_even_where_no_known_edge_leads() {
    let mut graph = StateGraph::<Notes>::new();
    for name in ["a", "b", "c", "d", "lost", "last"] {
        graph.add_node(name, says(name));
    }
    graph
        .add_edge(START, "a")
        .add_conditional_edges("a", |_: &Notes| "b")
        .add_edge("b", "c")
        .add_edge("c", END)
        .add_edge(["a", "b"], "d")
        .add_edge("last", END);
    let drawn = graph.compile().unwrap().draw();
    let mut edges: Vec<_> = drawn.edges.iter().map(|e| (&*e.from, &*e.to, e.conditional)).collect();
    edges.sort_unstable();
    let plain = [
        ("__start__", "a"),
        ("a", "d"),
        ("b", "c"),
        ("b", "d"),
        ("c", "__end__"),
        ("d", "__end__"),
        ("last", "__end__"),
    ];
    assert_eq!(edges, plain.map(|(from, to)| (from, to, false)));
}
