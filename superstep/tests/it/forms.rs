//! The other forms of graphs and nodes: channels and subscribers, mutations, nodes and agents as types.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    Agent, AgentState, BinaryOperatorAggregate, BoxError, BuildError, CachePolicy, Command, Context, Conversation, END,
    EchoAgent, EphemeralValue, ErrorKind, JsonReducer, LastValue, MemoryCache, MemorySaver, MergeStrategy, Message,
    MessageGraph, Mode, MutationLog, Next, Node, NodeBuilder, ParallelNode, PartialAgent, Pregel, PregelBuilder,
    Reached, RetryPolicy, START, State, StateGraph, StateMutation, StateNode, Workflow, WorkflowError, WorkflowState,
};

use crate::support::{Count, Notes, NotesUpdate, says};

// ---- channels and subscribers ----

fn add(n: i64) -> impl Fn(Value) -> std::future::Ready<Result<Value, BoxError>> + Send + Sync + 'static {
    move |value| std::future::ready(Ok(json!(value.as_i64().unwrap_or(0) + n)))
}

fn one_node(node: NodeBuilder) -> PregelBuilder {
    let graph = Pregel::builder().channel("in", EphemeralValue::default()).channel("out", LastValue::default());
    graph
        .channel("log", BinaryOperatorAggregate::new(JsonReducer::Add, Some(json!([]))))
        .node("n", node)
        .input(["in"])
        .output(["out", "log"])
}

#[tokio::test]
async fn a_subscriber_runs_on_the_bare_value_through_all_its_steps() {
    let app =
        one_node(NodeBuilder::new().subscribe_only("in").then(add(1)).then(add(10)).write_to("out")).build().unwrap();
    assert_eq!(app.invoke(json!({ "in": 5 })).await.unwrap().to_json()["out"], 16);
}

#[tokio::test]
async fn a_subscriber_of_several_channels_gets_an_object_and_may_read_more() {
    let keys = async |value: Value| Ok(json!(value.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>())));
    let app = one_node(NodeBuilder::new().subscribe_to(["in"]).read_from(["log"]).then(keys).write_to("out"))
        .build()
        .unwrap();
    assert_eq!(app.invoke(json!({ "in": 5 })).await.unwrap().to_json()["out"], json!(["in", "log"]));
}

#[tokio::test]
async fn writes_may_be_mapped_fixed_or_left_out() {
    let node = NodeBuilder::new()
        .subscribe_only("in")
        .write_mapped("out", |v| v.as_i64().filter(|n| *n > 3).map(|n| json!(n * 2)))
        .write_value("log", json!(["ran"]));
    let app = one_node(node).build().unwrap();
    assert_eq!(app.invoke(json!({ "in": 5 })).await.unwrap().to_json(), json!({ "out": 10, "log": ["ran"] }));
    assert_eq!(app.invoke(json!({ "in": 1 })).await.unwrap().to_json(), json!({ "log": ["ran"] }));
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_has_retry_timeout_and_cache() {
    let runs = Count::default();
    let counter = runs.clone();
    let flaky = move |value: Value| {
        let failed = counter.up() == 0;
        async move { if failed { Err::<Value, BoxError>("not yet".into()) } else { Ok(value) } }
    };
    let node = NodeBuilder::new().subscribe_only("in").then(flaky).write_to("out");
    let node = node.add_retry_policy(RetryPolicy::new()).add_cache_policy(CachePolicy::new());
    let app = one_node(node).cache(MemoryCache::new()).build().unwrap();
    for _ in 0..2 {
        assert_eq!(app.invoke(json!({ "in": 5 })).await.unwrap().to_json()["out"], 5);
    }
    assert_eq!(runs.get(), 2, "one failure, one success, one cached result");

    let hangs = async |_: Value| std::future::pending().await;
    let second = std::time::Duration::from_secs(1);
    let node = NodeBuilder::new().subscribe_only("in").then(hangs).set_timeout(second);
    assert!(one_node(node).build().unwrap().invoke(json!({ "in": 5 })).await.unwrap_err().is_timeout());
    let node = NodeBuilder::new().subscribe_only("in").then(hangs);
    assert!(
        one_node(node).step_timeout(second).build().unwrap().invoke(json!({ "in": 5 })).await.unwrap_err().is_timeout()
    );
}

#[tokio::test]
async fn channels_and_subscribers_keep_their_state_in_threads() {
    let node = NodeBuilder::new().subscribe_only("in").then(async |v: Value| Ok(json!([v]))).write_to("log");
    let app = one_node(node).checkpointer(MemorySaver::new()).build().unwrap();
    app.invoke(json!({ "in": 1 })).thread("t").await.unwrap();
    assert_eq!(app.invoke(json!({ "in": 2 })).thread("t").await.unwrap().to_json(), json!({ "log": [1, 2] }));
}

#[test]
fn mistakes_in_channels_are_reported() {
    let node = NodeBuilder::new().subscribe_to(["inn"]).write_to("owt");
    let errors = one_node(node).build().unwrap_err();
    assert!(
        matches!(
            errors.errors(),
            [BuildError::UnknownField { .. }, BuildError::UnknownField { .. }, BuildError::NoEntryPoint]
        ),
        "{errors}"
    );
    let twice = one_node(NodeBuilder::new().subscribe_only("in")).node("n", NodeBuilder::new().subscribe_only("in"));
    assert!(matches!(twice.build().unwrap_err().errors(), [BuildError::DuplicateNode { .. }]));
}

#[tokio::test]
async fn a_cache_policy_without_a_cache_fails_the_run_of_subscribers_too() {
    let node = NodeBuilder::new().subscribe_only("in").add_cache_policy(CachePolicy::new());
    let error = one_node(node).build().unwrap().invoke(json!({ "in": 1 })).await.unwrap_err();
    assert!(error.to_string().contains("has no cache"), "{error}");
}

// ---- mutations ----

#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Account {
    balance: i64,
    notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Entry {
    Pay(i64),
    Note(String),
}

impl StateMutation<Account> for Entry {
    fn apply(self, account: &mut Account) {
        match self {
            Entry::Pay(amount) => account.balance += amount,
            Entry::Note(note) => account.notes.push(note),
        }
    }

    fn combine(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Entry::Pay(a), Entry::Pay(b)) => Some(Entry::Pay(a + b)),
            _ => None,
        }
    }
}

impl WorkflowState for Account {
    type Checkpoint = Account;
    type Mutation = Entry;

    fn snapshot(&self) -> Account {
        self.clone()
    }
    fn restore(checkpoint: Account) -> Self {
        checkpoint
    }
}

#[tokio::test]
async fn mutations_are_applied_in_task_order_and_saved() {
    let pay = |amount: i64| {
        move |_: Workflow<Account>| async move {
            Workflow::<Account>::mutate([Entry::Pay(amount), Entry::Note(amount.to_string())])
        }
    };
    let app = StateGraph::<Workflow<Account>>::new()
        .add_node("b", pay(2))
        .add_node("a", pay(1))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let out = app.invoke(Workflow::<Account>::mutate([Entry::Pay(10)])).thread("t").await.unwrap();
    assert_eq!(out.state.0, Account { balance: 13, notes: vec!["1".into(), "2".into()] });
    assert_eq!(app.thread("t").state().await.unwrap().state.0.balance, 13);
}

#[tokio::test]
async fn a_parallel_node_merges_its_branches() {
    struct Richest;
    impl MergeStrategy<Account> for Richest {
        fn merge(branches: Vec<Account>) -> Result<Account, WorkflowError> {
            let richest = branches.into_iter().max_by_key(|a| a.balance);
            richest.ok_or_else(|| WorkflowError::MergeConflict("nobody".into()))
        }
        fn default_instance() -> Self {
            Richest
        }
    }
    let earns = |amount: i64| {
        move |mut account: Account| async move {
            account.balance += amount;
            Ok::<_, BoxError>(account)
        }
    };
    let balance = |node: ParallelNode<Account, Richest>| async move {
        let app = StateGraph::<Workflow<Account>>::new().add_node("p", node).add_edge(START, "p").compile().unwrap();
        app.invoke(Workflow::<Account>::mutate([Entry::Pay(1)])).await.map(|out| out.state.0.balance)
    };
    let node = || ParallelNode::<Account, _>::builder().merge_strategy(Richest);
    assert_eq!(balance(node().branch("x", earns(5)).branch("y", earns(3)).build()).await.unwrap(), 6);
    let error = balance(node().build()).await.unwrap_err();
    assert_eq!(error.to_string(), "node `p` failed in step 1: state merge conflict: nobody");
    let last = ParallelNode::builder().branch("x", earns(5)).branch("y", earns(3)).build();
    assert_eq!(last.run(Account::default()).await.unwrap().balance, 3, "the last branch wins by default");
}

#[test]
fn a_mutation_log_replays_to_the_same_state() {
    let log = MutationLog::<Account>::default();
    log.record(1, "a", Entry::Pay(2));
    log.record(2, "b", Entry::Note("x".into()));
    assert_eq!(
        log.entries().iter().map(|e| (e.step, e.node.clone())).collect::<Vec<_>>(),
        [(1, "a".into()), (2, "b".into())]
    );
    assert_eq!(log.replay(Account::default()).unwrap(), Account { balance: 2, notes: vec!["x".into()] });
}

// ---- nodes and agents as types ----

struct Goes(Next);

#[async_trait]
impl Node<Notes> for Goes {
    fn id(&self) -> &'static str {
        "goes"
    }
    async fn run(&self, mut notes: Notes) -> Result<(Notes, Next), BoxError> {
        notes.log.push("goes".into());
        Ok((notes, self.0.clone()))
    }
}

async fn log_after(next: Next) -> Vec<String> {
    let mut graph = StateGraph::<Notes>::new();
    graph.add(Goes(next)).add_node("edge", says("edge")).add_node("other", says("other"));
    let app = graph.add_edge(START, "goes").add_edge("goes", "edge").compile().unwrap();
    app.invoke(Notes::update().log(["start"])).await.unwrap().state.log
}

#[tokio::test]
async fn a_node_continues_along_its_edges_goes_elsewhere_or_ends() {
    assert_eq!(log_after(Next::Continue).await, ["start", "goes", "edge"]);
    assert_eq!(log_after(Next::node("other")).await, ["start", "goes", "other"]);
    assert_eq!(log_after(Next::End).await, ["start", "goes"]);
}

#[tokio::test]
async fn a_function_may_say_how_to_go_on_too() {
    let node = |_: Notes| async { (Notes::update().log(["n"]), Next::End) };
    let mut graph = StateGraph::new();
    graph.add_node("n", node).add_node("edge", says("edge")).add_sequence(["n", "edge"]);
    assert_eq!(graph.compile().unwrap().invoke(Notes::update().total(1)).await.unwrap().state.log, ["n"]);
}

struct Shout;

#[async_trait]
impl Agent for Shout {
    type State = AgentState;
    async fn run(&self, mut state: AgentState) -> Result<AgentState, BoxError> {
        let last = state.messages.last().ok_or("nobody said anything")?.text().to_uppercase();
        state.messages.push(Message::assistant(last));
        Ok(state)
    }
}

#[tokio::test]
async fn an_agent_is_a_node_and_its_error_the_nodes_error() {
    let app = StateGraph::<AgentState>::new().add_node("shout", Shout).add_edge(START, "shout").compile().unwrap();
    let out = app.invoke(AgentState { messages: vec![Message::user("tea")] }).await.unwrap();
    assert_eq!(out.state.messages.iter().map(Message::text).collect::<Vec<_>>(), ["tea", "TEA"]);
    let error = app.invoke(AgentState::default()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.node(), error.to_string().as_str()),
        (ErrorKind::Node, Some("shout"), "node `shout` failed in step 1: nobody said anything")
    );
    let _: NotesUpdate = Notes::update();
}

/// Answers with how many lines it saw, and nothing else.
struct Counts(Count);

#[async_trait]
impl PartialAgent for Counts {
    type State = Notes;
    type Update = NotesUpdate;
    async fn run_partial(&self, notes: Notes) -> Result<NotesUpdate, BoxError> {
        self.0.up();
        if notes.total < 0 {
            return Err("there is less than nothing to count".into());
        }
        Ok(Notes::update().log([format!("saw {}", notes.log.len())]))
    }
}

#[tokio::test]
async fn a_partial_agent_is_a_node_whose_update_goes_through_the_reducers() {
    let runs = Count::default();
    let app = StateGraph::new()
        .add_node("counts", Counts(runs.clone()))
        .add_node("beside", says("beside"))
        .add_edge(START, "counts")
        .add_edge(START, "beside")
        .add_node("next", says("next"))
        .add_edge("counts", "next")
        .compile()
        .unwrap();
    let out = app.invoke(Notes::update().log(["start"]).total(3)).await.unwrap();
    // A whole state would have overwritten what ran beside it, and added the total once more.
    assert_eq!((out.state.log.join(" ").as_str(), out.state.total), ("start beside saw 1 next", 3));
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn a_partial_agent_fails_and_is_handled_like_any_node() {
    let options = superstep::NodeOptions::new().error_handler(says("handled"));
    let app = |options| {
        StateGraph::new()
            .add_node_with("counts", Counts(Count::default()), options)
            .add_edge(START, "counts")
            .compile()
            .unwrap()
    };
    let error = app(superstep::NodeOptions::new()).invoke(Notes::update().total(-1)).await.unwrap_err();
    assert_eq!(error.to_string(), "node `counts` failed in step 1: there is less than nothing to count");
    assert_eq!(app(options).invoke(Notes::update().total(-1)).await.unwrap().state.log, ["handled"]);
}

#[tokio::test]
async fn nodes_and_agents_may_be_behind_pointers() {
    let chosen: Vec<Box<dyn Node<Notes>>> = vec![Box::new(Goes(Next::Continue))];
    let shared: Arc<dyn Node<Notes>> = Arc::new(Goes(Next::End));
    let mut graph = StateGraph::<Notes>::new();
    graph.add_node("again", shared).add_sequence(["goes", "again"]);
    for node in chosen {
        graph.add(node);
    }
    let app = graph.compile().unwrap();
    assert_eq!(app.invoke(Notes::update().log(["start"])).await.unwrap().state.log, ["start", "goes", "goes"]);

    let agent: Box<dyn Agent<State = AgentState>> = Box::new(Shout);
    let mut graph = StateGraph::<AgentState>::new();
    graph.add_node("shout", agent).add_node("echo", Box::new(EchoAgent::new()));
    let app = graph.add_sequence(["shout", "echo"]).compile().unwrap();
    let out = app.invoke(AgentState { messages: vec![Message::user("tea")] }).await.unwrap();
    assert_eq!(out.state.messages.iter().map(Message::text).collect::<Vec<_>>(), ["tea", "TEA", "tea"]);
}

// ---- the graph over a list of messages ----

async fn answer(messages: Vec<Message>) -> Message {
    Message::assistant(format!("to {}", messages.last().map_or("".into(), Message::text))).with_id("answer")
}

#[tokio::test]
async fn a_graph_over_messages_merges_them_by_id_and_shows_the_bare_list() {
    let mut graph = MessageGraph::new();
    graph.add_node("answer", answer).add_edge(START, "answer");
    let app = graph.checkpointer(MemorySaver::new()).compile().unwrap();
    let out = app.invoke(Message::user("one").with_id("1")).thread("t").await.unwrap();
    assert_eq!(out.state.iter().map(Message::text).collect::<Vec<_>>(), ["one", "to one"]);

    let two = vec![Message::user("two").with_id("2"), Message::remove("1")];
    let mut events = app.stream(two).thread("t").modes([Mode::Updates, Mode::Values]).start();
    let mut shown = Vec::new();
    while let Some(event) = events.next().await {
        shown.push(event.unwrap().to_json());
    }
    let answered = json!({ "type": "assistant", "content": "to two", "id": "answer" });
    let two = json!({ "type": "user", "content": "two", "id": "2" });
    let before = json!({ "type": "assistant", "content": "to one", "id": "answer" });
    assert_eq!(shown, [json!([before, two]), json!({ "answer": [answered] }), json!([answered, two])]);
    assert_eq!(app.thread("t").state().await.unwrap().values(), json!([answered, two]));
}

#[tokio::test]
async fn a_graph_over_messages_can_be_a_node_of_another_one() {
    let inner = MessageGraph::new().add_node("answer", answer).add_edge(START, "answer").compile().unwrap();
    let app = MessageGraph::new().add_node("inner", inner).add_edge(START, "inner").compile().unwrap();
    let out = app.invoke(vec![Message::user("one")]).await.unwrap();
    assert_eq!(out.state.iter().map(Message::text).collect::<Vec<_>>(), ["one", "to one"]);
}

#[tokio::test]
async fn what_is_said_about_a_subscriber_is_given_to_the_tasks_stream() {
    let node = NodeBuilder::new().subscribe_only("in").meta("owner", "ada").write_to("out");
    let app = one_node(node).build().unwrap();
    let mut stream = app.stream(json!({ "in": 1 })).mode(superstep::Mode::Tasks).start();
    let start = stream.next().await.unwrap().unwrap().to_json();
    assert_eq!((start["name"].clone(), start["metadata"].clone()), (json!("n"), json!({ "owner": "ada" })));
}

#[test]
fn limits_of_subscribers_that_make_no_sense_are_reported() {
    let zero = std::time::Duration::ZERO;
    let node = NodeBuilder::new().subscribe_only("in").set_timeout(zero);
    let node = node.add_retry_policy(RetryPolicy::new().max_attempts(0));
    let errors = one_node(node).step_timeout(zero).build().unwrap_err();
    let places: Vec<_> = errors.errors().iter().map(ToString::to_string).collect();
    assert_eq!(places.len(), 3, "{errors}");
    assert!(
        places[0].contains("node `n`") && places[1].contains("node `n`") && places[2].contains("graph"),
        "{errors}"
    );
}

/// A node as a type that wants all there is.
struct Porter;

#[async_trait::async_trait]
impl StateNode<AgentState> for Porter {
    type Input = Reached<AgentState, u32>;
    type Output = Command<AgentState>;
    async fn run(&self, reached: Self::Input, cx: Context) -> Result<Self::Output, BoxError> {
        let text = format!("{} in {} with {:?}", cx.node(), reached.state.messages.len(), reached.sent);
        Ok(Command::new().update(AgentState::say(vec![Message::assistant(text)])).goto(END))
    }
}

#[tokio::test]
async fn a_state_node_gets_the_state_and_what_it_was_sent() {
    let said = |out: superstep::Output<AgentState>| {
        out.state.messages.iter().skip(1).map(|m| m.text().into_owned()).collect::<Vec<_>>()
    };
    let input = || AgentState { messages: vec![Message::user("hi")] };
    let by_edge = StateGraph::<AgentState>::new()
        .add_node("porter", Porter)
        .add_node("never", |_: AgentState| async { vec![Message::assistant("never")] })
        .add_edge(START, "porter")
        .compile()
        .unwrap();
    assert_eq!(said(by_edge.invoke(input()).await.unwrap()), ["porter in 1 with None"]);
    for sends in [vec![7], vec![7, 8]] {
        let payloads = sends.clone();
        let by_send = StateGraph::<AgentState>::new()
            .add_node("porter", Porter)
            .add_conditional_edges(START, move |_: &AgentState| {
                payloads.iter().map(|n| superstep::Send::new("porter", *n)).collect::<Vec<_>>()
            })
            .checkpointer(MemorySaver::new())
            .compile()
            .unwrap();
        let expected: Vec<_> = sends.iter().map(|n| format!("porter in 1 with Some({n})")).collect();
        assert_eq!(said(by_send.invoke(input()).thread("t").await.unwrap()), expected);
    }
}

#[derive(State, Clone, Default, serde::Serialize, serde::Deserialize)]
struct Desk<T> {
    #[state(messages)]
    talk: Vec<Message>,
    #[state(append)]
    notes: Vec<T>,
}

#[test]
fn a_state_with_one_list_of_messages_is_a_conversation() {
    fn last<S: Conversation>(state: &S) -> String {
        state.conversation().last().map_or_else(String::new, |m| m.text().into_owned())
    }
    let desk = Desk { talk: vec![Message::user("hello")], notes: vec![1] };
    assert_eq!(last(&desk), "hello");
    let update = Desk::<u8>::say(vec![Message::assistant("hi")]);
    assert_eq!(update.get(Desk::<u8>::TALK).map(Vec::len), Some(1));
}
