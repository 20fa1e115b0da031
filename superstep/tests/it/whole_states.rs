//! Nodes that give back the whole state, beside each other and beside nodes that return updates.

mod mutations;
mod random;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use expect_test::expect;
use serde::{Deserialize, Serialize};
use superstep::{
    Agent, AgentState, BoxError, Checkpointer, Command, Context, EchoAgent, ErrorKind, GoOn, Interrupted, MappedGraph,
    MemorySaver, Message, Next, Node, Reached, Resume, START, Send, State, StateGraph, Update,
};

use crate::support::Count;
use crate::support::savers::on_each_saver;

/// One field of every kind.
#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Board {
    #[state(append)]
    log: Vec<String>,
    #[state(sum)]
    total: u32,
    #[state(max)]
    best: i32,
    #[state(reduce = keep_longest)]
    longest: String,
    #[state(topic)]
    news: Vec<String>,
    #[state(topic(accumulate))]
    archive: Vec<String>,
    #[state(messages)]
    messages: Vec<Message>,
    topic: Option<String>,
    owner: String,
}

fn keep_longest(current: &mut String, update: String) {
    if update.len() > current.len() {
        *current = update;
    }
}

/// An agent that changes the state by a function.
struct Changes(fn(&mut Board));

#[async_trait]
impl Agent for Changes {
    type State = Board;
    async fn run(&self, mut state: Board) -> Result<Board, BoxError> {
        (self.0)(&mut state);
        Ok(state)
    }
}

/// A graph whose nodes run in one step.
fn beside(nodes: &[(&'static str, fn(&mut Board))]) -> StateGraph<Board> {
    let mut graph = StateGraph::new();
    for (name, change) in nodes {
        graph.add_node(*name, Changes(*change)).add_edge(START, *name);
    }
    graph
}

fn start() -> Board {
    Board { log: vec!["begin".into()], total: 10, best: 3, longest: "long".into(), ..Board::default() }
}

/// What was asked for: an agent's log line, beside a node that logs too, was all that was left.
#[tokio::test]
async fn an_agent_loses_nothing_of_what_is_written_beside_it() {
    for (agent, other) in [("a", "b"), ("b", "a")] {
        let mut graph = beside(&[(agent, |board| board.log.push("agent".into()))]);
        graph.add_node(other, async |_: Board| Board::update().log(["other"]).total(5)).add_edge(START, other);
        let state = graph.compile().unwrap().invoke(start()).await.unwrap().state;
        let mut log = state.log;
        log.sort();
        assert_eq!(log, ["agent", "begin", "other"]);
        assert_eq!(state.total, 15);
    }
}

#[tokio::test]
async fn agents_side_by_side_are_merged_field_by_field() {
    let app = beside(&[
        ("x", |board| {
            board.log.push("x".into());
            board.total += 1;
            board.best = 7;
            board.longest = "longer".into();
            board.messages.push(Message::assistant("from x"));
        }),
        ("y", |board| {
            board.log.push("y".into());
            board.total += 2;
            board.best = 5;
            board.longest = "longest of all".into();
            board.archive.push("kept".into());
            board.owner = "y".into();
            board.messages.push(Message::assistant("from y"));
        }),
    ]);
    let state = app.compile().unwrap().invoke(start()).await.unwrap().state;
    assert_eq!(state.log, ["begin", "x", "y"]);
    assert_eq!((state.total, state.best, &*state.longest, &*state.owner), (13, 7, "longest of all", "y"));
    assert_eq!(state.archive, ["kept"]);
    assert_eq!(state.messages.iter().map(|m| m.text().into_owned()).collect::<Vec<_>>(), ["from x", "from y"]);
}

#[tokio::test]
async fn a_real_conflict_names_both_nodes_and_the_field() {
    let both = beside(&[("x", |board| board.owner = "x".into()), ("y", |board| board.owner = "y".into())]);
    let error = both.compile().unwrap().invoke(start()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
    let words = error.to_string();
    assert!(words.contains("`owner`") && words.contains("`x`") && words.contains("`y`"), "{words}");
    for (one, other) in [("x", "y"), ("y", "x")] {
        let mut graph = beside(&[(one, |board| board.log.clear()), ("z", |_| {})]);
        graph.add_node(other, async |_: Board| Board::update().log(["more"])).add_edge(START, other);
        let words = graph.compile().unwrap().invoke(start()).await.unwrap_err().to_string();
        assert!(words.contains("`log`") && words.contains("`x`") && words.contains("`y`"), "{words}");
        assert!(!words.contains("`z`"), "only those that wrote it: {words}");
    }
}

#[tokio::test]
async fn a_change_that_no_reducer_can_express_replaces_the_value() {
    let app = beside(&[("x", |board: &mut Board| {
        board.log = vec!["anew".into()];
        board.total = 1;
        board.best = -1;
        board.longest.clear();
        board.archive = vec!["only".into()];
    })]);
    let begin = Board { archive: vec!["old".into(), "older".into()], ..start() };
    let state = app.compile().unwrap().invoke(begin).await.unwrap().state;
    assert_eq!((state.log, state.total, state.best, &*state.longest), (vec!["anew".into()], 1, -1, ""));
    assert_eq!(state.archive, ["only"]);
}

/// The README had to warn of it: lists were appended to themselves.
#[tokio::test]
async fn functions_that_return_the_state_do_not_append_lists_to_themselves() {
    async fn whole(mut board: Board) -> Board {
        board.log.push("whole".into());
        board
    }
    fn plain(board: &Board) -> Result<Board, BoxError> {
        Ok(Board { log: [board.log.clone(), vec!["plain".into()]].concat(), ..board.clone() })
    }
    async fn command(mut board: Board) -> Command<Board> {
        board.log.push("command".into());
        Command::new().update(board)
    }
    async fn and_next(mut board: Board) -> (Board, Next) {
        board.log.push("next".into());
        (board, Next::Continue)
    }
    let mut graph = StateGraph::<Board>::new();
    graph.add_node("whole", whole).add_node("plain", plain).add_node("command", command).add_node("next", and_next);
    let app = graph.add_sequence(["whole", "plain", "command", "next"]).compile().unwrap();
    let state = app.invoke(start()).await.unwrap().state;
    assert_eq!(state.log, ["begin", "whole", "plain", "command", "next"]);
    assert_eq!(state.total, 10);
}

#[tokio::test]
async fn a_mapped_graph_that_gives_a_whole_state_changes_what_it_changed() {
    let inner = StateGraph::<AgentState>::new().add_node("echo", EchoAgent).add_edge(START, "echo").compile().unwrap();
    let output = |_: &AgentState| Board { log: vec!["begin".into(), "inner".into()], ..start() };
    let node = MappedGraph::new(inner, |_: &Board| AgentState { messages: vec![Message::user("hi")] }, output);
    let mut graph = beside(&[("x", |board| board.log.push("x".into()))]);
    let app = graph.add_node("inner", node).add_edge(START, "inner").compile().unwrap();
    assert_eq!(app.invoke(start()).await.unwrap().state.log, ["begin", "inner", "x"]);
}

#[tokio::test]
async fn a_state_that_was_sent_is_what_the_node_is_compared_with() {
    let sends = |board: &Board| {
        let of = |line: &str| Board { log: vec![line.to_owned()], ..board.clone() };
        vec![Send::new("work", of("one")), Send::new("work", of("two"))]
    };
    let app = StateGraph::<Board>::new()
        .add_node("work", Changes(|board| board.log.push(format!("after {}", board.log[0]))))
        .add_conditional_edges(START, sends)
        .compile()
        .unwrap();
    assert_eq!(app.invoke(start()).await.unwrap().state.log, ["begin", "after one", "after two"]);
}

#[tokio::test]
async fn messages_that_are_rewritten_removed_or_moved_are_changes() {
    let said =
        |texts: &[(&str, &str)]| texts.iter().map(|(id, text)| Message::user(*text).with_id(*id)).collect::<Vec<_>>();
    let begin = Board { messages: said(&[("1", "one"), ("2", "two"), ("3", "three")]), ..start() };
    let app = beside(&[
        ("x", |board| {
            board.messages.remove(1);
            board.messages[0] = Message::user("uno").with_id("1");
        }),
        ("y", |board| board.messages.push(Message::user("four").with_id("4"))),
    ]);
    let state = app.compile().unwrap().invoke(begin.clone()).await.unwrap().state;
    assert_eq!(state.messages, said(&[("1", "uno"), ("3", "three"), ("4", "four")]));

    let moved = beside(&[("x", |board| board.messages.reverse())]);
    let state = moved.compile().unwrap().invoke(begin).await.unwrap().state;
    assert_eq!(state.messages, said(&[("3", "three"), ("2", "two"), ("1", "one")]));
}

/// The values of an untracked field cannot be compared; pointers can.
#[tokio::test]
async fn pointers_that_stay_the_same_are_no_change() {
    trait Catalog: std::marker::Send + Sync {}
    struct Empty;
    impl Catalog for Empty {}
    #[derive(State, Clone, Default)]
    struct Shop {
        #[state(untracked)]
        catalog: Option<Arc<dyn Catalog>>,
        #[state(append)]
        log: Vec<String>,
    }
    async fn one(mut shop: Shop) -> Shop {
        shop.log.push("one".into());
        shop
    }
    let mut graph = StateGraph::<Shop>::new();
    let app = graph.add_node("a", one).add_node("b", one).add_edge(START, "a").add_edge(START, "b").compile().unwrap();
    let state = app.invoke(Shop { catalog: Some(Arc::new(Empty)), log: vec![] }).await.unwrap().state;
    assert_eq!(state.log.len(), 2);
    assert!(state.catalog.is_some());
}

/// What one task replaced is saved while its neighbour fails; when the neighbour comes back, the conflict is still one.
#[tokio::test]
async fn a_conflict_is_noticed_after_a_restart_too() {
    on_each_saver!("whole_conflict", check_restart);
}

async fn check_restart(saver: impl Checkpointer + Clone) {
    let (broken, runs) = (Arc::new(AtomicBool::new(true)), Count::default());
    let app = |saver, more: bool| {
        let (broken, runs) = (broken.clone(), runs.clone());
        let clears = move |mut board: Board| {
            runs.up();
            board.log.clear();
            async move { board }
        };
        let fails = move |_: Board| {
            let broken = broken.load(Ordering::SeqCst);
            async move { if broken { Err("not yet") } else { Ok(Board::update().log(["late"])) } }
        };
        let mut graph = StateGraph::<Board>::new();
        graph.add_node("x", clears).add_edge(START, "x").add_node("y", fails).add_edge(START, "y");
        if more {
            // Another shape: the thread is read by a graph that has changed since.
            graph.add_node("a", async |_: Board| ()).add_edge("y", "a");
        }
        graph.checkpointer(saver).compile().unwrap()
    };
    for (thread, more) in [("same", false), ("changed", true)] {
        broken.store(true, Ordering::SeqCst);
        app(saver.clone(), false).invoke(start()).thread(thread).await.unwrap_err();
        let before = runs.get();
        broken.store(false, Ordering::SeqCst);
        let error = app(saver.clone(), more).invoke(GoOn).thread(thread).await.unwrap_err();
        assert_eq!(runs.get(), before, "it finished and was saved");
        assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
        let words = error.to_string();
        assert!(words.contains("`log`") && words.contains("`x`") && words.contains("`y`"), "{words}");
    }
}

/// Messages that are sent have no ids yet: all of them looked new, and the conversation of the graph was replaced.
#[tokio::test]
async fn a_conversation_that_was_sent_adds_what_was_said_in_it() {
    let sends = |_: &AgentState| {
        ["one", "two"].map(|text| Send::new("echo", AgentState { messages: vec![Message::user(text)] })).to_vec()
    };
    let app = StateGraph::<AgentState>::new()
        .add_node("echo", EchoAgent)
        .add_conditional_edges(START, sends)
        .compile()
        .unwrap();
    let state = app.invoke(AgentState { messages: vec![Message::user("begin")] }).await.unwrap().state;
    let said: Vec<_> = state.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["begin", "one", "two"]);
}

/// A payload with a field of the state is no state, saved or not.
#[tokio::test]
async fn a_node_that_was_sent_something_else_is_compared_with_the_state_of_its_step() {
    #[derive(Clone, Serialize, Deserialize)]
    struct Job {
        owner: String,
    }
    async fn work(reached: Reached<Board, Job>, cx: Context) -> Result<Board, Interrupted> {
        let yes: bool = cx.interrupt("go on?")?;
        let mut board = Board::clone(&reached.state);
        board
            .log
            .push(format!("{yes} for {}", reached.sent.map_or("", |job| if job.owner == "ada" { "ada" } else { "?" })));
        Ok(board)
    }
    let app = StateGraph::<Board>::new()
        .add_node("work", work)
        .add_conditional_edges(START, |_: &Board| Send::new("work", Job { owner: "ada".into() }))
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    app.invoke(start()).thread("t").await.unwrap();
    let state = app.invoke(Resume::value(true)).thread("t").await.unwrap().state;
    assert_eq!((&*state.log, state.total), (["begin".to_owned(), "true for ada".to_owned()].as_slice(), 10));
}

#[tokio::test]
async fn messages_that_two_nodes_change_are_a_conflict_and_those_that_both_remove_are_gone() {
    let begin = Board { messages: ["1", "2", "3"].map(|id| Message::user(id).with_id(id)).to_vec(), ..start() };
    let rewrite: fn(&mut Board) = |board| board.messages[1] = Message::user("rewritten").with_id("2");
    let remove: fn(&mut Board) = |board| drop(board.messages.remove(1));
    for nodes in [[("x", rewrite), ("y", remove)], [("x", remove), ("y", rewrite)], [("x", rewrite), ("y", rewrite)]] {
        let error = beside(&nodes).compile().unwrap().invoke(begin.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
        let words = error.to_string();
        assert!(words.contains("`2`") && words.contains("`x`") && words.contains("`y`"), "{words}");
    }
    let state = beside(&[("x", remove), ("y", remove)]).compile().unwrap().invoke(begin).await.unwrap().state;
    assert_eq!(state.messages.iter().filter_map(|m| m.id.as_deref()).collect::<Vec<_>>(), ["1", "3"]);
}

/// What serde leaves out of a value is part of it all the same.
#[tokio::test]
async fn a_change_that_serde_does_not_write_is_a_change() {
    #[derive(Clone, Default, Debug, Serialize, Deserialize)]
    struct Link {
        #[serde(skip)]
        open: bool,
    }
    #[derive(State, Clone, Default, Debug, Serialize, Deserialize)]
    struct Net {
        link: Link,
    }
    let app = StateGraph::<Net>::new()
        .add_node("open", async |mut net: Net| {
            net.link.open = true;
            net
        })
        .add_edge(START, "open")
        .compile()
        .unwrap();
    assert!(app.invoke(()).await.unwrap().state.link.open);
}

#[tokio::test]
async fn a_whole_state_in_a_command_for_the_parent_changes_what_it_changed() {
    let child = StateGraph::<Board>::new()
        .add_node("up", async |mut board: Board| {
            board.log.push("from inside".into());
            Command::<Board>::to_parent(board, [superstep::Goto::from("there")])
        })
        .add_edge(START, "up")
        .compile()
        .unwrap();
    let app = StateGraph::<Board>::new()
        .add_node("child", child)
        .add_node("there", async |_: Board| ())
        .add_edge(START, "child")
        .compile()
        .unwrap();
    let state = app.invoke(start()).await.unwrap().state;
    assert_eq!((&*state.log, state.total), (["begin".to_owned(), "from inside".to_owned()].as_slice(), 10));
}

#[tokio::test]
async fn what_an_agent_changed_is_saved_and_shown() {
    on_each_saver!("whole_saved", check_saved);
}

async fn check_saved(saver: impl Checkpointer + Clone) {
    let mut graph = beside(&[("x", |board| board.log.push("x".into())), ("y", |board| board.total += 2)]);
    let app = graph.checkpointer(saver).compile().unwrap();
    let shown = crate::support::events(app.stream(start()).thread("t").start()).await;
    expect![[r#"
        [{"data":{"x":{"log":["x"]}},"mode":"Updates","path":[]},{"data":{"y":{"total":2}},"mode":"Updates","path":[]}]"#]]
    .assert_eq(&serde_json::to_string(&shown).unwrap());
    let state = app.thread("t").state().await.unwrap().state;
    assert_eq!((&*state.log, state.total), (["begin".to_owned(), "x".to_owned()].as_slice(), 12));
}

#[test]
fn a_state_is_merged_with_an_update_outside_of_graphs() {
    let board = start().merge(Board::update().log(["more"]).total(5).best(1).owner("ada")).unwrap();
    assert_eq!(
        (board.log, board.total, board.best, &*board.owner),
        (vec!["begin".into(), "more".into()], 15, 3, "ada")
    );
    let board = start().merge(Update::new().overwrite(Board::LOG, vec![])).unwrap();
    assert!(board.log.is_empty());
    let error = start().merge(Board::update().total(u32::MAX)).unwrap_err();
    assert_eq!(error.field(), "total");
}

/// A node as a type sees the same rule.
#[tokio::test]
async fn nodes_as_types_are_merged_too() {
    struct Logs(&'static str);
    #[async_trait]
    impl Node<Board> for Logs {
        fn id(&self) -> &str {
            self.0
        }
        async fn run(&self, mut board: Board) -> Result<(Board, Next), BoxError> {
            board.log.push(self.0.to_owned());
            Ok((board, Next::Continue))
        }
    }
    let nodes: Vec<Box<dyn Node<Board>>> = vec![Box::new(Logs("a")), Box::new(Changes(|board| board.total += 1))];
    let mut graph = StateGraph::<Board>::new();
    for node in nodes {
        let name = node.id().to_owned();
        graph.add(node).add_edge(START, name);
    }
    let state = graph.compile().unwrap().invoke(start()).await.unwrap().state;
    assert_eq!((state.log.len(), state.total), (2, 11));
}

/// The last name won, and the other's entry was lost.
#[tokio::test]
async fn an_entry_of_a_map_that_two_nodes_write_is_a_conflict() {
    #[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
    struct Maps {
        #[state(append)]
        sorted: BTreeMap<String, Vec<u32>>,
        #[state(append)]
        hashed: HashMap<String, u32>,
    }
    let push = |key: &'static str, value: u32| {
        move |mut maps: Maps| {
            maps.sorted.entry(key.to_owned()).or_default().push(value);
            maps.hashed.insert(key.to_owned(), value);
            maps
        }
    };
    let app = |one, other| {
        let mut graph = StateGraph::<Maps>::new();
        graph.add_node("a", push(one, 1)).add_node("b", push(other, 2));
        graph.add_edge(START, "a").add_edge(START, "b").compile().unwrap()
    };
    let merged = app("x", "y").invoke(()).await.unwrap().state;
    assert_eq!((merged.sorted.len(), merged.hashed.len()), (2, 2));
    // Updates beside each other keep the rule of the field, also beside an agent that writes another entry.
    let update = |value: u32| move |_: &Maps| Update::new().set(Maps::HASHED, HashMap::from([("z".to_owned(), value)]));
    let mut graph = StateGraph::<Maps>::new();
    graph.add_node("a", push("x", 1)).add_node("b", update(2)).add_node("c", update(3));
    let three = graph.add_edge(START, "a").add_edge(START, "b").add_edge(START, "c").compile().unwrap();
    assert_eq!(three.invoke(()).await.unwrap().state.hashed, HashMap::from([("x".into(), 1), ("z".into(), 3)]));
    let words = app("x", "x").invoke(()).await.unwrap_err().to_string();
    assert!(words.contains("`sorted`") && words.contains("`a`") && words.contains("`b`"), "{words}");
}

/// A reducer that forgets made the new value of the old and the new one, too: but not in any order.
#[tokio::test]
async fn a_reducer_that_forgets_is_no_way_to_merge_whole_states() {
    fn window(current: &mut Vec<u32>, update: Vec<u32>) {
        current.extend(update);
        current.drain(..current.len().saturating_sub(3));
    }
    fn toggle(current: &mut bool, update: bool) {
        *current ^= update;
    }
    #[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
    struct Windows {
        #[state(reduce = window)]
        last: Vec<u32>,
        #[state(reduce = toggle)]
        on: bool,
    }
    async fn alone(mut state: Windows) -> Windows {
        window(&mut state.last, vec![4]);
        state.on = true;
        state
    }
    let begin = Windows { last: vec![1, 2, 3], on: false };
    let mut graph = StateGraph::<Windows>::new();
    let state =
        graph.add_node("a", alone).add_edge(START, "a").compile().unwrap().invoke(begin.clone()).await.unwrap().state;
    assert_eq!(state, Windows { last: vec![2, 3, 4], on: true });
    let error = graph.add_node("b", alone).add_edge(START, "b").compile().unwrap().invoke(begin).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
}

/// It was compared with a state that the node had never seen, and everything else was reset.
#[tokio::test]
async fn a_node_that_sees_no_state_cannot_give_back_a_whole_one() {
    let app = StateGraph::<Board>::new()
        .add_node("work", |superstep::Sent(n): superstep::Sent<u32>| Board { total: n, ..Board::default() })
        .add_conditional_edges(START, |_: &Board| Send::new("work", 1_u32))
        .compile()
        .unwrap();
    let error = app.invoke(start()).await.unwrap_err();
    assert_eq!(error.node(), Some("work"));
    assert!(error.to_string().contains("return an update"), "{error}");
}

#[tokio::test]
async fn a_whole_state_by_hand_counts_for_what_it_changed() {
    let mut graph = beside(&[("x", |board| board.log.push("x".into()))]);
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    app.invoke(start()).thread("t").await.unwrap();
    let thread = app.thread("t");
    let mut state = Board::clone(&thread.state().await.unwrap().state);
    state.log.push("by hand".into());
    thread.update(state).as_node("x").await.unwrap();
    let state = thread.state().await.unwrap().state;
    assert_eq!((&*state.log, state.total), (["begin", "x", "by hand"].map(String::from).as_slice(), 10));
}

#[tokio::test]
async fn generic_states_compare_what_their_bounds_allow() {
    #[derive(State, Clone, Default, Debug)]
    struct Pile<T: Clone + Default + PartialEq + std::marker::Send + Sync + 'static> {
        #[state(append)]
        items: Vec<T>,
        top: T,
    }
    let mut graph = StateGraph::<Pile<u32>>::new();
    graph.add_node("a", |pile: Pile<u32>| pile).add_node("b", |mut pile: Pile<u32>| {
        pile.items.push(2);
        pile.top = 2;
        pile
    });
    let app = graph.add_edge(START, "a").add_edge(START, "b").compile().unwrap();
    let state = app.invoke(Pile { items: vec![1], top: 1 }).await.unwrap().state;
    assert_eq!((state.items, state.top), (vec![1, 2], 2));
}
