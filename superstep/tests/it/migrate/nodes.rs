//! Nodes that were renamed or removed while threads waited for them.

use superstep::{
    Command, CompiledStateGraph, Context, ErrorKind, GoOn, Interrupted, MemorySaver, Resume, START, Send, Sent,
    StateGraph, Then,
};

use crate::support::{Count, Notes, NotesUpdate, says};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

async fn ask(_: Notes, cx: Context) -> Result<NotesUpdate, Interrupted> {
    let answer: String = cx.interrupt("sure?")?;
    Ok(Notes::update().log([answer]))
}

fn saved(graph: &mut StateGraph<Notes>, saver: &MemorySaver) -> CompiledStateGraph<Notes> {
    graph.checkpointer(saver.clone()).compile().unwrap()
}

/// `a`, then a node of this name that asks, then `z`.
fn asking(name: &str) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node(name, ask).add_node("z", says("z")).add_sequence(["a", name, "z"]);
    graph
}

/// A thread that waits for an answer to node `ask`.
async fn waiting() -> MemorySaver {
    let saver = MemorySaver::new();
    saved(&mut asking("ask"), &saver).invoke(input()).thread("t").await.unwrap();
    saver
}

const GONE: &str = "thread `t` waits for node `ask`, which the graph has no more; say what became of it with \
                    `renamed_node(\"ask\", ..)` or `removed_node(\"ask\", ..)`, or drop what is left to do with \
                    `clear_tasks` or new input";

#[tokio::test]
async fn work_for_a_node_that_is_gone_is_not_dropped_in_silence() {
    let saver = waiting().await;
    let app = saved(&mut asking("approve"), &saver);
    for _ in 0..2 {
        let error = app.invoke(GoOn).thread("t").await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, GONE));
        let error = app.invoke(Resume::value("yes")).thread("t").await.unwrap_err();
        assert_eq!(error.to_string(), GONE);
    }
    let out = saved(&mut asking("ask"), &saver).invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["a", "yes", "z"], "nothing was lost");
}

#[tokio::test]
async fn a_thread_with_work_for_a_node_that_is_gone_can_be_looked_at_and_left() {
    let saver = waiting().await;
    let app = saved(&mut asking("approve"), &saver);
    let state = app.thread("t").state().await.unwrap();
    assert_eq!((state.state.log.len(), state.next.len(), app.thread("t").history().await.unwrap().len()), (1, 0, 3));
    app.thread("t").copy_to("cleared").await.unwrap();
    app.thread("cleared").clear_tasks().await.unwrap();
    assert_eq!(app.invoke(GoOn).thread("cleared").await.unwrap().state.log, ["a"]);
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!((out.state.log.join(" "), out.interrupts.len()), ("a a".to_owned(), 1), "new input begins anew");
}

#[tokio::test]
async fn a_renamed_node_takes_the_answer() {
    let saver = waiting().await;
    let app = saved(asking("approve").renamed_node("ask", "approve"), &saver);
    let state = app.thread("t").state().await.unwrap();
    assert_eq!((state.next.join(" "), state.interrupts.len()), ("approve".to_owned(), 1));
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["a", "yes", "z"]);
}

/// People answer by the id that they were shown before the program was changed.
#[tokio::test]
async fn a_question_keeps_its_id_when_its_node_is_renamed() {
    let saver = waiting().await;
    let asked = saved(&mut asking("ask"), &saver).thread("t").state().await.unwrap().interrupts;
    let app = saved(asking("approve").renamed_node("ask", "approve"), &saver);
    assert_eq!(app.thread("t").state().await.unwrap().interrupts, asked);
    let out = app.invoke(Resume::by_id([(asked[0].id.as_str(), "yes")])).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["a", "yes", "z"]);
}

#[tokio::test]
async fn a_node_may_be_renamed_twice_and_the_thread_may_wait_in_between() {
    let saver = waiting().await;
    let mut twice = asking("confirm");
    twice.renamed_node("ask", "approve").renamed_node("approve", "confirm");
    let app = saved(&mut twice, &saver);
    app.thread("t").copy_to("u").await.unwrap();
    assert_eq!(app.invoke(Resume::value("yes")).thread("t").await.unwrap().state.log, ["a", "yes", "z"]);
    app.invoke(input()).thread("u").await.unwrap();
    // What was saved under the new name does not need the old one any more.
    let out = saved(&mut asking("confirm"), &saver).invoke(Resume::value("no")).thread("u").await.unwrap();
    assert_eq!(out.state.log, ["a", "a", "no", "z"]);
}

#[tokio::test]
async fn work_for_a_removed_node_goes_to_another() {
    let saver = waiting().await;
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("z", says("z")).add_sequence(["a", "z"]);
    let app = saved(graph.removed_node("ask", Then::go_to("z")), &saver);
    assert_eq!(app.thread("t").state().await.unwrap().next, ["z"]);
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.log, ["a", "z"]);
}

#[tokio::test]
async fn work_for_a_removed_node_is_dropped_if_the_graph_says_so() {
    let saver = waiting().await;
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node("z", says("z")).add_sequence(["a", "z"]);
    let app = saved(graph.removed_node("ask", Then::forget()), &saver);
    assert_eq!(app.thread("t").state().await.unwrap().next.len(), 0);
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.log, ["a"]);
}

/// Sends two parts to a node of this name; the second part asks. The first one is counted.
fn sending(name: &'static str, firsts: &Count) -> StateGraph<Notes> {
    let firsts = firsts.clone();
    let work = move |Sent(part): Sent<i64>, cx: Context| {
        if part == 1 {
            firsts.up();
        }
        std::future::ready(work_on(part, &cx))
    };
    let mut graph = StateGraph::new();
    graph.add_node("a", says("a")).add_node(name, work).add_node("z", says("z"));
    let sends = move |_: &Notes| (1..=2).map(|part| Send::new(name, part)).collect::<Vec<_>>();
    graph.add_edge(START, "a").add_conditional_edges("a", sends).add_edge(name, "z");
    graph
}

fn work_on(part: i64, cx: &Context) -> Result<NotesUpdate, Interrupted> {
    if part == 2 {
        let answer: String = cx.interrupt("sure?")?;
        return Ok(Notes::update().log([answer]));
    }
    Ok(Notes::update().total(part).log([format!("part {part}")]))
}

#[tokio::test]
async fn sends_follow_a_renamed_node_and_what_finished_stays() {
    let (saver, firsts) = (MemorySaver::new(), Count::default());
    saved(&mut sending("work", &firsts), &saver).invoke(input()).thread("t").await.unwrap();
    let error = saved(&mut sending("job", &firsts), &saver).invoke(GoOn).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("waits for node `work`"), "{error}");
    let app = saved(sending("job", &firsts).renamed_node("work", "job"), &saver);
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!((out.state.log.join(", "), out.state.total), ("a, part 1, yes, z".to_owned(), 1));
    assert_eq!(firsts.get(), 1, "the first part had finished under the old name");
}

#[tokio::test]
async fn sends_to_a_removed_node_go_to_another_or_nowhere() {
    let (saver, firsts) = (MemorySaver::new(), Count::default());
    saved(&mut sending("work", &firsts), &saver).invoke(input()).thread("t").await.unwrap();
    let app = saved(sending("job", &firsts).removed_node("work", Then::go_to("job")), &saver);
    app.thread("t").copy_to("copy").await.unwrap();
    let asked = app.thread("t").state().await.unwrap();
    assert_eq!((asked.next.len(), asked.interrupts.len(), asked.state.total), (2, 0, 0), "both parts begin anew");
    let out = app.invoke(GoOn).thread("t").await.unwrap();
    assert_eq!((out.interrupts.len(), out.state.total, firsts.get()), (1, 1, 2));
    let app = saved(sending("job", &firsts).removed_node("work", Then::forget()), &saver);
    assert_eq!(app.invoke(GoOn).thread("copy").await.unwrap().state.log, ["a"]);
}

/// `left` runs at once; `right` asks in the same step, or in the one after it. Both meet in `both`.
fn joining([left, right, both]: [&str; 3], same_step: bool) -> StateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node(left, says("left")).add_node(right, ask).add_node("later", says("later"));
    graph.add_node(both, says("both")).add_node("first", async |_: Notes| ()).add_edge(START, left);
    graph.add_edge(START, if same_step { right } else { "first" }).add_edge("first", right);
    graph.add_edge(right, "later").add_edge([left, "later"], both);
    graph
}

#[tokio::test]
async fn a_join_waits_on_for_members_and_targets_under_their_new_names() {
    const OLD: [&str; 3] = ["left", "right", "both"];
    for new in [["l", "right", "both"], ["left", "r", "both"], ["left", "right", "b"], ["l", "r", "b"]] {
        for same_step in [true, false] {
            let saver = MemorySaver::new();
            saved(&mut joining(OLD, same_step), &saver).invoke(input()).thread("t").await.unwrap();
            let mut graph = joining(new, same_step);
            for (old, new) in OLD.into_iter().zip(new).filter(|(old, new)| old != new) {
                graph.renamed_node(old, new);
            }
            let out = saved(&mut graph, &saver).invoke(Resume::value("yes")).thread("t").await.unwrap();
            assert_eq!(out.state.log, ["left", "yes", "later", "both"], "{new:?}, in the same step: {same_step}");
        }
    }
}

#[tokio::test]
async fn a_join_into_a_removed_node_is_reported_or_goes_elsewhere() {
    let saver = MemorySaver::new();
    let old = || {
        let mut graph = StateGraph::new();
        graph.add_node("x", says("x")).add_node("y", says("y")).add_node("both", says("both"));
        graph.add_edge(START, "x").add_edge(START, "y").add_edge(["x", "y"], "both");
        graph
    };
    saved(old().interrupt_before(["both"]), &saver).invoke(input()).thread("t").await.unwrap();
    let new = || {
        let mut graph = StateGraph::new();
        graph.add_node("x", says("x")).add_node("y", says("y")).add_node("end", says("end"));
        graph.add_edge(START, "x").add_edge(START, "y").add_edge("y", "end");
        graph
    };
    let error = saved(&mut new(), &saver).invoke(GoOn).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("waits for node `both`"), "{error}");
    let app = saved(new().removed_node("both", Then::go_to("end")), &saver);
    assert_eq!(app.thread("t").state().await.unwrap().next, ["end"]);
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.log, ["x", "y", "end"]);
}

/// What a finished task leads to is saved with it, before its step is over.
#[tokio::test]
async fn a_finished_task_that_leads_to_a_node_that_is_gone_is_reported_too() {
    let saver = MemorySaver::new();
    let graph = |next: &str| {
        let mut graph = StateGraph::new();
        graph.add_node("quick", says("quick")).add_node("ask", ask).add_node(next, says("next"));
        graph.add_edge(START, "quick").add_edge(START, "ask").add_edge("quick", next);
        graph
    };
    saved(&mut graph("next"), &saver).invoke(input()).thread("t").await.unwrap();
    let error = saved(&mut graph("after"), &saver).invoke(Resume::value("yes")).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("waits for node `next`"), "{error}");
    let app = saved(graph("after").renamed_node("next", "after"), &saver);
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["yes", "quick", "next"]);
}

#[tokio::test]
async fn a_renamed_subgraph_goes_on_where_it_waits() {
    let (saver, calls) = (MemorySaver::new(), Count::default());
    let graph = |name: &str| {
        let calls = calls.clone();
        let counted = move |_: Notes| {
            calls.up();
            std::future::ready(Notes::update().log(["x"]))
        };
        let mut child = StateGraph::<Notes>::new();
        child.add_node("x", counted).add_node("ask", ask).add_sequence(["x", "ask"]);
        let child = child.output(["total", "topic"]).compile().unwrap();
        let mut graph = StateGraph::new();
        graph.add_node("a", says("a")).add_node(name, child).add_sequence(["a", name]);
        graph
    };
    saved(&mut graph("child"), &saver).invoke(input()).thread("t").await.unwrap();
    let app = saved(graph("kid").renamed_node("child", "kid"), &saver);
    let state = app.thread("t").state_with_subgraphs().await.unwrap();
    let inner = &state.to_json()["tasks"][0]["state"];
    assert_eq!(inner["values"]["log"], serde_json::json!(["a", "x"]), "{inner}");
    app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    let history = app.thread("t").history().await.unwrap();
    assert!(history[0].next.is_empty());
    assert_eq!(calls.get(), 1, "the child went on where it waited");
}

#[tokio::test]
async fn a_node_inside_a_subgraph_that_is_gone_is_reported_with_its_place() {
    let saver = MemorySaver::new();
    let graph = |name: &str| {
        let mut child = StateGraph::<Notes>::new();
        child.add_node("x", says("x")).add_node(name, ask).add_sequence(["x", name]);
        let mut graph = StateGraph::new();
        graph.add_node("child", child.compile().unwrap()).add_edge(START, "child");
        graph
    };
    saved(&mut graph("ask"), &saver).invoke(input()).thread("t").await.unwrap();
    let error = saved(&mut graph("approve"), &saver).invoke(Resume::value("yes")).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("thread `t` waits for node `ask` in `child:"), "{error}");
}

#[tokio::test]
async fn what_a_caller_wants_to_go_to_follows_a_renamed_node() {
    let saver = MemorySaver::new();
    let graph = |name: &str| {
        let mut graph = StateGraph::new();
        graph.add_node("a", says("a")).add_node(name, says("b")).add_edge(START, "a").interrupt_before([name]);
        graph
    };
    let old = saved(&mut graph("b"), &saver);
    old.invoke(input()).thread("t").await.unwrap();
    old.thread("t").update(Command::<Notes>::new().goto("b")).as_node("a").await.unwrap();
    let app = saved(graph("c").renamed_node("b", "c"), &saver);
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().state.log, ["a", "b"]);
}

#[test]
fn wrong_fates_of_nodes_are_mistakes() {
    let mut graph = asking("approve");
    graph
        .renamed_node("a", "approve")
        .renamed_node("ask", "aprove")
        .renamed_node("b", "approve")
        .removed_node("b", Then::forget())
        .removed_node("c", Then::go_to("d"))
        .renamed_node("e", "f")
        .renamed_node("f", "e");
    let words = graph.compile().unwrap_err().to_string();
    for line in [
        "`renamed_node(\"a\", \"approve\")`: `a` is a node of the graph",
        "`renamed_node(\"ask\", \"aprove\")`: there is no node `aprove` (did you mean `approve`?)",
        "`removed_node(\"b\", ..)`: it was said before what became of `b`",
        "`removed_node(\"c\", ..)`: there is no node `d`",
        "`renamed_node(\"e\", \"f\")`: there is no node `f`",
    ] {
        assert!(words.contains(line), "{words}");
    }
}
