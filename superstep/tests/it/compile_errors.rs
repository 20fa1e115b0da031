//! Every mistake in a graph that `compile` finds, and what is legal but probably not meant.

use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::json;
use superstep::{
    BoxError, CachePolicy, Command, Diagnostic, END, JsonInput, JsonState, LastValue, NamedPath, NodeBuilder,
    NodeDefaults, NodeOptions, Pregel, RetryPolicy, START, Send, StateGraph, Topic,
};

use crate::support::{Notes, a_b_c, says};

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "so that callers write `expect![..]`")]
fn check<S: superstep::State>(graph: &StateGraph<S>, expect: Expect) {
    match graph.compile() {
        Ok(_) => panic!("the graph should not compile; expected {}", expect.data()),
        Err(error) => expect.assert_eq(&error.to_string()),
    }
}

fn n() -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("plan", says("plan")).add_edge(START, "plan");
    graph
}

/// `main` returns errors as `{:?}`; that was the dump of a list of structs.
#[test]
fn mistakes_are_shown_in_words_where_main_returns_them() {
    let error = n().add_edge("plan", "wirte").add_edge(END, "plan").compile().unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn names_must_be_usable() {
    check(n().add_node("", says("x")), expect!["node name `` cannot be used: it is empty"]);
    check(n().add_node("a:b", says("x")), expect!["node name `a:b` cannot be used: `|` and `:` are reserved"]);
    check(n().add_node("a|b", says("x")), expect!["node name `a|b` cannot be used: `|` and `:` are reserved"]);
    check(
        n().add_node(START, says("x")),
        expect!["node name `__start__` cannot be used: it is reserved; use the constants `START` and `END` in edges"],
    );
    check(
        n().add_node(END, says("x")),
        expect!["node name `__end__` cannot be used: it is reserved; use the constants `START` and `END` in edges"],
    );
}

#[test]
fn names_of_the_engine_are_no_names_for_nodes_and_fields() {
    for name in ["__error_handler__plan", "__default_error_handler__"] {
        let words = n().add_node(name, says("x")).compile().unwrap_err().to_string();
        assert_eq!(words, format!("node name `{name}` cannot be used: it is reserved for error handlers"));
    }
    let reserved =
        ["__start__", "__no_writes__", "__return__", "__tasks__", "__interrupt__", "branch:to:a", "join:a:b"];
    for name in reserved {
        let expected = format!("field `{name}`: the name is reserved; give the field another one");
        let dynamic = StateGraph::dynamic(JsonState::schema().last_value(name))
            .add_node("a", async |_: JsonInput| json!({}))
            .add_edge(START, "a")
            .compile();
        assert_eq!(dynamic.unwrap_err().to_string(), expected);
        let channels = Pregel::builder()
            .channel(name, LastValue::default())
            .node("a", NodeBuilder::new().subscribe_only(name).write_to(name))
            .input([name])
            .output([name])
            .build();
        assert_eq!(channels.unwrap_err().to_string(), expected);
    }
}

#[test]
fn names_must_differ() {
    check(n().add_node("plan", says("x")), expect!["node `plan` was added twice; give one of them another name"]);
}

#[test]
fn edges_must_join_nodes_that_are_there() {
    check(
        n().add_edge("paln", END),
        expect![[r#"edge from unknown node `paln`; add it with `add_node("paln", ..)` (did you mean `plan`?)"#]],
    );
    check(
        n().add_edge("plan", "act"),
        expect![[r#"edge from `plan` to unknown node `act`; add it with `add_node("act", ..)`"#]],
    );
    check(
        n().add_edge(["plan", "act"], END),
        expect![[r#"edge from unknown node `act`; add it with `add_node("act", ..)`"#]],
    );
    check(
        n().add_conditional_edges("act", |_: &Notes| END),
        expect![[r#"edge from unknown node `act`; add it with `add_node("act", ..)`"#]],
    );
    check(
        n().add_conditional_edges_with_map("plan", |_: &Notes| "x", [("x", "act")]),
        expect![[r#"edge from `plan` to unknown node `act`; add it with `add_node("act", ..)`"#]],
    );
    check(
        StateGraph::new()
            .add_node_with("plan", says("x"), NodeOptions::new().destinations(["act"]))
            .add_edge(START, "plan"),
        expect![[r#"edge from `plan` to unknown node `act`; add it with `add_node("act", ..)`"#]],
    );
}

#[test]
fn start_and_end_have_one_direction() {
    check(n().add_edge(END, "plan"), expect!["`END` cannot be the source of an edge (to `plan`)"]);
    check(
        n().add_edge("plan", START),
        expect!["`START` cannot be the target of an edge (from `plan`); to go round again, lead to the first node"],
    );
}

#[test]
fn a_graph_must_have_an_entry() {
    check(
        StateGraph::new().add_node("plan", says("x")),
        expect![[r#"the graph has no entry; add `add_edge(START, "..")` or `set_entry_point("..")`"#]],
    );
}

#[test]
fn named_branches_of_a_node_must_differ() {
    let way = || NamedPath::new("way", |_: &Notes| END);
    let mut graph = n();
    graph.add_conditional_edges("plan", way()).add_conditional_edges_with_map("plan", way(), [(END, END)]);
    check(&graph, expect!["node `plan` has two conditional edges named `way`; give one another `NamedPath`"]);
}

#[test]
fn stops_must_name_nodes() {
    check(
        n().interrupt_before(["plna"]),
        expect!["`interrupt_before` names unknown node `plna` (did you mean `plan`?)"],
    );
    check(n().interrupt_after(["act"]), expect!["`interrupt_after` names unknown node `act`"]);
}

#[test]
fn lists_of_fields_must_name_fields() {
    check(n().input(["topik"]), expect!["`input` names unknown field `topik` (did you mean `topic`?)"]);
    check(n().output(["x"]), expect!["`output` names unknown field `x`"]);
    check(
        StateGraph::new().add_node_with("plan", says("x"), NodeOptions::new().fields(["x"])).add_edge(START, "plan"),
        expect!["node `plan` names unknown field `x`"],
    );
}

#[test]
fn private_fields_must_be_fields() {
    check(n().private(["x"]), expect!["`private` names unknown field `x`"]);
}

#[test]
fn declared_writes_must_be_fields() {
    check(
        StateGraph::new()
            .add_node_with("plan", says("x"), NodeOptions::new().writes(["topik"]))
            .add_edge(START, "plan"),
        expect!["node `plan` names unknown field `topik` (did you mean `topic`?)"],
    );
}

#[test]
fn a_field_has_one_rule() {
    let fields = JsonState::schema().field("x", Topic::new()).append("x");
    check(
        StateGraph::dynamic(fields).add_node("n", async |_: superstep::JsonInput| ()).add_edge(START, "n"),
        expect!["field `x`: it is Topic in one place and Append in another"],
    );
    let same = JsonState::schema().field("x", Topic::new()).field("x", LastValue::default());
    assert!(
        StateGraph::dynamic(same)
            .add_node("n", async |_: superstep::JsonInput| ())
            .add_edge(START, "n")
            .compile()
            .is_ok()
    );
    let managed = JsonState::schema().remaining_steps("left");
    check(
        StateGraph::dynamic(managed)
            .add_node("n", async |_: superstep::JsonInput| ())
            .add_edge(START, "n")
            .output(["left"]),
        expect!["field `left`: managed values cannot be part of the output"],
    );
}

#[test]
fn limits_must_be_positive() {
    let with = |options| {
        let mut graph = StateGraph::<Notes>::new();
        graph.add_node_with("plan", says("x"), options).add_edge(START, "plan");
        graph
    };
    check(
        &with(NodeOptions::new().timeout(Duration::ZERO)),
        expect!["node `plan`: a timeout must be greater than zero"],
    );
    check(
        &with(NodeOptions::new().retry(RetryPolicy::new().max_attempts(0))),
        expect!["node `plan`: a retry policy needs at least one attempt"],
    );
    check(
        n().set_node_defaults(NodeDefaults::new().timeout(Duration::ZERO)),
        expect!["node defaults: a timeout must be greater than zero"],
    );
}

/// A subgraph uses the cache of the graph around it, so only a run can tell that there is none.
#[tokio::test]
async fn a_cache_policy_without_a_cache_fails_the_run() {
    let options = NodeOptions::new().cache(CachePolicy::by(|s: &Notes| s.total));
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node_with("plan", says("x"), options).add_edge(START, "plan");
    let error = graph.compile().unwrap().invoke(Notes::update().topic("t")).await.unwrap_err();
    expect!["node `plan` has a cache policy, but the graph has no cache; give it one with `.cache(..)`"]
        .assert_eq(&error.to_string());
}

#[test]
fn a_step_timeout_must_be_positive() {
    check(n().step_timeout(Duration::ZERO), expect!["the graph: a timeout must be greater than zero"]);
}

#[test]
fn a_join_must_wait_for_somebody() {
    check(
        n().add_edge(Vec::<String>::new(), "plan"),
        expect!["the join into `plan` waits for nobody; name at least one source"],
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("a", says("a")).add_node("a", says("a")).add_edge("a", "b").output(["x"]);
    check(
        &graph,
        expect![[r#"
            the graph has 4 mistakes:
              - node `a` was added twice; give one of them another name
              - edge from `a` to unknown node `b`; add it with `add_node("b", ..)`
              - the graph has no entry; add `add_edge(START, "..")` or `set_entry_point("..")`
              - `output` names unknown field `x`"#]],
    );
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "so that callers write `expect![..]`")]
fn diagnosed(graph: &StateGraph<Notes>, expect: Expect) {
    let app = graph.compile().expect("it is legal");
    expect.assert_eq(&app.diagnostics().iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_plain_graph_has_no_diagnostics() {
    diagnosed(&a_b_c(), expect![""]);
}

#[test]
fn a_node_that_no_edge_leads_to_is_diagnosed() {
    diagnosed(a_b_c().add_node("lost", says("lost")), expect!["no edge leads to node `lost`"]);
}

#[test]
fn a_node_that_may_be_sent_to_is_not_lost_unless_it_is_said_where_sends_go() {
    let lost = || {
        let mut graph = a_b_c();
        graph.add_node("lost", says("lost"));
        graph
    };
    let sends = |_: Notes| async { vec![Send::new("lost", 1)] };
    let commands = |_: Notes| async { Ok::<_, BoxError>(Command::<Notes>::new().goto("lost")) };
    let open = |graph: &StateGraph<Notes>, node: &str| {
        assert_eq!(graph.compile().unwrap().diagnostics(), [Diagnostic::UnknownTargets { node: node.to_owned() }]);
    };
    open(lost().add_node("d", sends).add_edge("c", "d"), "d");
    open(lost().add_node("d", commands).add_edge("c", "d"), "d");
    open(lost().add_conditional_edges("c", |_: &Notes| Send::new("lost", 1)), "c");
    let handled = NodeOptions::new().error_handler(commands);
    open(lost().add_node_with("d", says("d"), handled).add_edge("c", "d"), "d");
    let inner = StateGraph::<Notes>::new().add_node("up", commands).add_edge(START, "up").compile().unwrap();
    open(lost().add_node("d", inner).add_edge("c", "d"), "d");
    let mut nobody_lost = a_b_c();
    nobody_lost.add_conditional_edges("c", |_: &Notes| "a");
    assert_eq!(nobody_lost.compile().unwrap().diagnostics(), []);

    let known = NodeOptions::new().destinations(["a"]);
    diagnosed(lost().add_node_with("d", sends, known).add_edge("c", "d"), expect!["no edge leads to node `lost`"]);
    diagnosed(
        a_b_c().add_node("sends", sends).add_node("lost", says("lost")),
        expect![[r"
            no edge leads to node `sends`
            no edge leads to node `lost`"]],
    );
}

/// A way back that a node may take once hid that the ways there differ.
#[test]
fn a_loop_that_a_command_may_take_hides_nothing() {
    let back = NodeOptions::new().destinations(["a"]);
    let mut graph = a_b_c();
    graph.add_edge("a", "c").add_node_with("d", says("d"), back).add_edge("c", "d");
    let found = graph.compile().unwrap();
    let twice = |node: &str, steps: [usize; 2]| Diagnostic::MayRunTwice { node: node.to_owned(), steps: steps.into() };
    assert_eq!(found.diagnostics(), [twice("c", [2, 3]), twice("d", [3, 4])]);
}

#[test]
fn a_node_on_paths_of_different_length_is_diagnosed() {
    diagnosed(
        a_b_c().add_edge("a", "c"),
        expect![[
            r#"node `c` may run in each of the steps [2, 3], because the paths to it differ in length; join them with `add_edge([..], "c")`, or defer it"#
        ]],
    );
}

#[test]
fn two_writers_of_a_last_value_in_one_step_are_diagnosed() {
    let writes = || NodeOptions::new().writes(["topic"]);
    let mut graph = StateGraph::new();
    graph.add_node_with("x", says("x"), writes()).add_node_with("y", says("y"), writes());
    diagnosed(
        graph.add_edge(START, "x").add_edge(START, "y"),
        expect![[
            r#"nodes ["x", "y"] may run in one step and declare that they write `topic`, which takes one write per step; give it a reducer"#
        ]],
    );
}

#[test]
fn goto_beside_static_edges_is_diagnosed() {
    let mut graph = StateGraph::new();
    graph
        .add_node_with("a", says("a"), NodeOptions::new().destinations(["b"]))
        .add_node("b", says("b"))
        .add_node("c", says("c"))
        .add_edge(START, "a")
        .add_edge("a", "c");
    diagnosed(
        &graph,
        expect![[r#"node `a` has destinations for `goto` and static edges to ["c"]: goto adds to them, both run"#]],
    );
}
