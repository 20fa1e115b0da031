//! Fields that nodes do not see: those that they do not name, and private ones.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{
    Agent, BoxError, CachePolicy, Command, Context, JsonInput, JsonState, MappedGraph, MemoryCache, Message, Narrow,
    NodeError, NodeOptions, Reached, START, Send, State, StateGraph, StateNode,
};

use crate::support::Count;

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct File {
    name: String,
    #[state(append)]
    notes: Vec<String>,
    #[state(sum)]
    pages: i64,
    #[state(messages)]
    talk: Vec<Message>,
    secret: Option<String>,
}

fn full() -> File {
    File {
        name: "plan".to_owned(),
        notes: vec!["one".to_owned()],
        pages: 7,
        talk: vec![Message::user("hi").with_id("m")],
        secret: Some("x".to_owned()),
    }
}

/// What a node saw, beside the graph.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<File>>>);

impl Seen {
    fn note(&self, file: &File) {
        self.0.lock().unwrap().push(file.clone());
    }

    fn take(&self) -> Vec<File> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn noting(&self) -> impl Fn(File) + std::marker::Send + Sync + 'static {
        let seen = self.clone();
        move |file| seen.note(&file)
    }
}

fn names_only() -> NodeOptions<File> {
    NodeOptions::new().fields(["name"])
}

fn name_alone() -> File {
    File { name: "plan".to_owned(), ..File::default() }
}

/// `fields` hid nothing from a typed node.
#[tokio::test]
async fn a_typed_node_sees_only_the_fields_that_it_names() {
    let seen = Seen::default();
    let [by_value, shared, by_ref] = [seen.clone(), seen.clone(), seen.clone()];
    let mut graph = StateGraph::<File>::new();
    graph.add_node_with("by_value", seen.noting(), names_only());
    graph.add_node_with("shared", move |file: Arc<File>| shared.note(&file), names_only());
    graph.add_node_with("by_ref", move |file: &File| by_ref.note(file), names_only());
    let asks = move |file: File, _: Context| {
        by_value.note(&file);
        std::future::ready(())
    };
    graph.add_node_with("asks", asks, names_only());
    let app = graph.add_sequence(["by_value", "shared", "by_ref", "asks"]).compile().unwrap();
    let out = app.invoke(full()).await.unwrap();
    assert_eq!(seen.take(), vec![name_alone(); 4]);
    assert_eq!(out.state, full(), "the state itself has everything");
}

#[tokio::test]
async fn private_fields_are_kept_from_typed_nodes_that_do_not_name_them() {
    let seen = Seen::default();
    let tells = |_: File| File::update().secret("told".to_owned());
    let app = StateGraph::<File>::new()
        .add_node("tells", tells)
        .add_node("plain", seen.noting())
        .add_node_with("named", seen.noting(), NodeOptions::new().fields(["secret"]))
        .add_sequence(["tells", "plain", "named"])
        .private(["secret"])
        .compile()
        .unwrap();
    let out = app.invoke(File::update().name("plan")).await.unwrap();
    let secret = Some("told".to_owned());
    assert_eq!(seen.take(), [name_alone(), File { secret: secret.clone(), ..File::default() }]);
    assert_eq!(out.state.secret, secret);
}

/// A whole state counts for what it changed in what the node was given: what it was not shown is not emptied.
#[tokio::test]
async fn a_whole_state_does_not_overwrite_what_its_node_did_not_see() {
    let renames = |file: File| File { name: format!("{}!", file.name), ..file };
    let adds = |file: File| File { pages: file.pages + 1, notes: vec!["two".to_owned()], ..file };
    let app = StateGraph::<File>::new()
        .add_node_with("renames", renames, names_only())
        .add_node_with("adds", adds, NodeOptions::new().fields(["name"]))
        .add_sequence(["renames", "adds"])
        .compile()
        .unwrap();
    let out = app.invoke(full()).await.unwrap().state;
    let notes = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(out, File { name: "plan!".to_owned(), pages: 8, notes, ..full() });
}

struct Renamer;

#[async_trait]
impl Agent for Renamer {
    type State = File;
    async fn run(&self, file: File) -> Result<File, BoxError> {
        let name = format!("{} of {} pages", file.name, file.pages);
        Ok(File { name, ..file })
    }
}

struct Looker(Seen);

#[async_trait]
impl StateNode<File> for Looker {
    type Input = Reached<File, u32>;
    type Output = ();
    async fn run(&self, reached: Reached<File, u32>, _: Context) -> Result<(), BoxError> {
        self.0.note(&reached.state);
        Ok(())
    }
}

struct View(File);

impl From<&File> for View {
    fn from(file: &File) -> Self {
        Self(file.clone())
    }
}

#[tokio::test]
async fn fields_are_hidden_from_nodes_of_every_form() {
    let seen = Seen::default();
    let (narrow, mapped, handler) = (seen.clone(), seen.clone(), seen.clone());
    let narrowed = move |Narrow(View(file)): Narrow<View>| narrow.note(&file);
    let fails = |_: &File| Err::<(), BoxError>("no".into());
    let handles = move |file: File, _: NodeError| {
        handler.note(&file);
        Command::<File>::new().goto("mapped")
    };
    let inner = StateGraph::<File>::new().add_node("in", |_: &File| {}).add_edge(START, "in").compile().unwrap();
    let maps = move |file: &File| {
        mapped.note(file);
        File::update().name("inner")
    };
    let mut graph = StateGraph::<File>::new();
    graph.add_node_with("narrowed", narrowed, names_only());
    graph.add_node_with("agent", Renamer, names_only());
    graph.add_node_with("fails", fails, names_only().error_handler(handles));
    graph.add_node_with("mapped", MappedGraph::new(inner, maps, |_: &File| File::update()), names_only());
    graph.add_node_with("sent", Looker(seen.clone()), names_only());
    graph.add_sequence(["narrowed", "agent", "fails", "mapped"]);
    graph.add_conditional_edges("mapped", |_: &File| Send::new("sent", 1));
    let out = graph.compile().unwrap().invoke(full()).await.unwrap().state;
    let after = File { name: "plan of 0 pages".to_owned(), ..File::default() };
    assert_eq!(seen.take(), [name_alone(), after.clone(), after.clone(), after]);
    assert_eq!(out, File { name: "plan of 0 pages".to_owned(), ..full() });
}

/// A graph as a node is given the fields that the node sees, and keeps its own of the others.
#[tokio::test]
async fn a_graph_as_a_node_is_given_only_what_the_node_sees() {
    let seen = Seen::default();
    let inner =
        StateGraph::<File>::new().add_node("in", seen.noting()).add_edge(START, "in").output(["name"]).compile();
    let app = StateGraph::<File>::new()
        .add_node_with("sub", inner.unwrap(), NodeOptions::new().fields(["name", "secret"]))
        .add_edge(START, "sub")
        .compile()
        .unwrap();
    assert_eq!(app.invoke(full()).await.unwrap().state, full());
    assert_eq!(seen.take(), [File { secret: Some("x".to_owned()), ..name_alone() }]);
}

#[tokio::test]
async fn the_key_of_a_cached_result_is_made_of_what_the_node_sees() {
    for policy in [CachePolicy::new(), CachePolicy::by(|file: &File| (file.name.clone(), file.pages))] {
        let runs = Count::default();
        let counter = runs.clone();
        let node = move |_: File| {
            counter.up();
            File::update().notes(["ran"])
        };
        let app = StateGraph::<File>::new()
            .add_node_with("n", node, names_only().cache(policy))
            .add_edge(START, "n")
            .cache(MemoryCache::new())
            .compile()
            .unwrap();
        app.invoke(full()).await.unwrap();
        app.invoke(File { pages: 100, ..full() }).await.unwrap();
        assert_eq!(runs.get(), 1, "the pages are hidden");
        app.invoke(File { name: "other".to_owned(), ..full() }).await.unwrap();
        assert_eq!(runs.get(), 2);
    }
}

/// Dynamic nodes that take an object leave hidden fields out of it; those that take the state find them empty.
#[tokio::test]
async fn a_dynamic_node_that_takes_the_state_sees_only_its_fields() {
    let fields = || JsonState::schema().last_value("a").last_value("b").last_value("seen");
    let looks = move |state: JsonState| {
        let schema = fields();
        json!({ "seen": [state.get(&schema, "a"), state.get(&schema, "b")] })
    };
    let object = |input: JsonInput| json!({ "seen": input.0 });
    for (node, seen) in [("looks", json!([1, null])), ("object", json!({ "a": 1 }))] {
        let mut graph = StateGraph::dynamic(fields());
        graph.add_node_with("looks", looks, NodeOptions::new().fields(["a"]));
        graph.add_node_with("object", object, NodeOptions::new().fields(["a"]));
        let app = graph.add_edge(START, node).compile().unwrap();
        let out = app.invoke(json!({ "a": 1, "b": 2 })).await.unwrap().to_json();
        assert_eq!(out, json!({ "a": 1, "b": 2, "seen": seen }));
    }
}

#[test]
fn a_private_field_cannot_be_part_of_the_input_or_the_output() {
    let mut graph = StateGraph::<File>::new();
    graph.add_node("n", |_: &File| {}).add_edge(START, "n").private(["secret"]);
    let why = "field `secret`: it is private and so no part of the";
    let error = graph.clone().input(["secret"]).compile().unwrap_err();
    assert_eq!(error.to_string(), format!("{why} input; leave it out of one of the lists"));
    let error = graph.output(["name", "secret"]).compile().unwrap_err();
    assert_eq!(error.to_string(), format!("{why} output; leave it out of one of the lists"));
}
