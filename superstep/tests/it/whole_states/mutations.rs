//! States that change through mutations: whole states beside them, run-time parts, what is saved, and the log of a thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use superstep::{
    Agent, BoxError, Checkpointer, Command, Context, Durability, ErrorKind, EventData, GoOn, Interrupted,
    LastWriteWins, MergeStrategy, Mode, MutationLog, Next, Node, ParallelNode, Put, Resume, START, StateGraph,
    StateMutation, Update, Workflow, WorkflowError, WorkflowState,
};

use crate::support::savers::on_each_saver;

/// A state with a part that is never saved.
#[derive(Clone)]
struct Count {
    n: i64,
    lines: Vec<String>,
    catalog: Arc<dyn Catalog>,
}

impl std::fmt::Debug for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {}", self.n, self.lines, self.catalog.name())
    }
}

trait Catalog: Send + Sync {
    fn name(&self) -> &str;
}

struct Named(&'static str);

impl Catalog for Named {
    fn name(&self) -> &str {
        self.0
    }
}

impl Default for Count {
    fn default() -> Self {
        Self { n: 0, lines: Vec::new(), catalog: Arc::new(Named("made anew")) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Change {
    Add(i64),
    Say(String),
}

impl StateMutation<Count> for Change {
    fn apply(self, count: &mut Count) {
        match self {
            Change::Add(more) => count.n += more,
            Change::Say(line) => count.lines.push(line),
        }
    }
}

impl WorkflowState for Count {
    type Checkpoint = (i64, Vec<String>);
    type Mutation = Change;
    fn snapshot(&self) -> Self::Checkpoint {
        (self.n, self.lines.clone())
    }
    fn restore((n, lines): Self::Checkpoint) -> Self {
        Self { n, lines, ..Self::default() }
    }
}

fn add(more: i64) -> impl Fn(Workflow<Count>) -> Update<Workflow<Count>> + Send + Sync + 'static {
    move |_| Workflow::<Count>::mutate([Change::Add(more)])
}

struct Adds(i64);

#[async_trait]
impl Agent for Adds {
    type State = Workflow<Count>;
    async fn run(&self, mut count: Workflow<Count>) -> Result<Workflow<Count>, BoxError> {
        count.0.n += self.0;
        Ok(count)
    }
}

fn parallel(more: i64) -> ParallelNode<Count, LastWriteWins> {
    ParallelNode::builder().branch("only", move |count: Count| Count { n: count.n + more, ..count }).build()
}

/// A mutation beside a node that gives back the whole state was lost if its node's name came first.
#[tokio::test]
async fn a_mutation_beside_a_whole_state_is_applied_to_it_whatever_the_names() {
    for name in ["a", "z"] {
        let mut with_agent = StateGraph::<Workflow<Count>>::new();
        with_agent.add_node("m", Adds(10));
        let mut with_parallel = StateGraph::<Workflow<Count>>::new();
        with_parallel.add_node("m", parallel(10));
        let mut with_function = StateGraph::<Workflow<Count>>::new();
        with_function.add_node("m", async |count: Count| Count { n: count.n + 10, ..count });
        for mut graph in [with_agent, with_parallel, with_function] {
            let app = graph.add_node(name, add(1)).add_edge(START, name).add_edge(START, "m").compile().unwrap();
            assert_eq!(app.invoke(()).await.unwrap().state.n, 11, "with the mutation in `{name}`");
        }
    }
}

#[tokio::test]
async fn two_whole_states_in_one_step_are_refused_with_both_names() {
    let mut agents = StateGraph::<Workflow<Count>>::new();
    agents.add_node("left", Adds(1)).add_node("right", Adds(2));
    let mut nodes = StateGraph::<Workflow<Count>>::new();
    nodes.add_node("left", parallel(1)).add_node("right", parallel(2));
    for mut graph in [agents, nodes] {
        let app = graph.add_node("beside", add(1)).add_edge(START, "beside");
        let app = app.add_edge(START, "left").add_edge(START, "right").compile().unwrap();
        let error = app.invoke(()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUpdate);
        let words = error.to_string();
        assert!(words.contains("`left`") && words.contains("`right`") && words.contains("whole state"), "{words}");
    }
}

#[tokio::test]
async fn an_overwrite_of_the_state_is_one_and_a_mutation_is_none() {
    let whole = Workflow(Count { n: 100, ..Count::default() });
    let put = |update: Update<Workflow<Count>>| Put::overwrite(update.puts()[0].write.clone());
    let overwrite = put(superstep::IntoUpdate::into_update(whole));
    let mutation = put(Workflow::<Count>::mutate([Change::Add(1)]));
    let graph = |put: Put<_>| {
        let mut graph = StateGraph::<Workflow<Count>>::new();
        graph.add_node("z", add(1)).add_node("a", move |_: Workflow<Count>| Update::new().put(put.clone()));
        graph.add_edge(START, "a").add_edge(START, "z").compile().unwrap()
    };
    assert_eq!(graph(overwrite).invoke(()).await.unwrap().state.n, 100);
    let words = graph(mutation).invoke(()).await.unwrap_err().to_string();
    assert!(words.contains("cannot overwrite"), "{words}");
}

/// What the caller gave went through `snapshot` and `restore` in the middle of a run, and was lost.
#[tokio::test]
async fn run_time_parts_that_the_caller_gave_are_carried() {
    on_each_saver!("run_time_parts", check_run_time_parts);
}

async fn check_run_time_parts(saver: impl Checkpointer + Clone) {
    let mut graph = StateGraph::<Workflow<Count>>::new();
    graph.add_node("agent", Adds(1)).add_node("parallel", parallel(2)).add_node("mutation", add(3));
    graph.add_node("whole", async |count: Workflow<Count>| count);
    graph.add_sequence(["agent", "parallel", "mutation", "whole"]);
    for app in [graph.compile().unwrap(), graph.checkpointer(saver).compile().unwrap()] {
        let given = Workflow(Count { catalog: Arc::new(Named("the caller's")), ..Count::default() });
        let out = app.invoke(given).thread("t").await.unwrap();
        assert_eq!((out.state.n, out.state.catalog.name()), (6, "the caller's"));
    }
}

#[tokio::test]
async fn branches_are_nodes_agents_and_producers_of_mutations() {
    struct Total;
    impl MergeStrategy<Count> for Total {
        fn merge(branches: Vec<Count>) -> Result<Count, WorkflowError> {
            let lines = branches.iter().flat_map(|count| count.lines.clone()).collect();
            Ok(Count { n: branches.iter().map(|count| count.n).sum(), lines, ..Count::default() })
        }
        fn default_instance() -> Self {
            Total
        }
    }
    struct Search;
    #[async_trait]
    impl Node<Workflow<Count>> for Search {
        fn id(&self) -> &'static str {
            "search"
        }
        async fn run(&self, mut count: Workflow<Count>) -> Result<(Workflow<Count>, Next), BoxError> {
            count.0.n += 1;
            Ok((count, Next::Continue))
        }
    }
    async fn analyze(_: Workflow<Count>, cx: Context) -> Result<Update<Workflow<Count>>, BoxError> {
        Ok(Workflow::<Count>::mutate([Change::Add(10), Change::Say(format!("in step {}", cx.step()))]))
    }
    let node = ParallelNode::builder()
        .merge_strategy(Total)
        .branch("search", Search)
        .branch("analyze", analyze)
        .branch("agent", Adds(100))
        .branch("plain", |count: Count| Count { n: count.n + 1000, ..count })
        .build();
    assert_eq!(node.run(Count::default()).await.unwrap().n, 1111);
    let app = StateGraph::<Workflow<Count>>::new().add_node("all", node).add_edge(START, "all").compile().unwrap();
    let state = app.invoke(()).await.unwrap().state;
    assert_eq!((state.n, &*state.lines), (1111, ["in step 1".to_owned()].as_slice()));
}

#[tokio::test]
async fn an_error_names_its_branch() {
    async fn fails(_: Count) -> Result<Count, BoxError> {
        Err("no luck".into())
    }
    async fn panics(_: Count) -> Count {
        panic!("by accident")
    }
    let node = ParallelNode::builder().branch("good", |count: Count| count).branch("bad", fails).build();
    let words = node.run(Count::default()).await.unwrap_err().to_string();
    assert!(words.contains("branch `bad`") && words.contains("no luck"), "{words}");
    let node = ParallelNode::builder().branch("worse", panics).build();
    let words = node.run(Count::default()).await.unwrap_err().to_string();
    assert!(words.contains("branch `worse`") && words.contains("by accident"), "{words}");
}

#[tokio::test]
async fn a_branch_asks_and_is_answered() {
    async fn asks(_: Workflow<Count>, cx: Context) -> Result<Update<Workflow<Count>>, Interrupted> {
        let more: i64 = cx.interrupt("how many?")?;
        Ok(Workflow::<Count>::mutate([Change::Add(more)]))
    }
    let node = ParallelNode::builder().branch("asks", asks).build();
    let app = StateGraph::<Workflow<Count>>::new()
        .add_node("node", node)
        .add_edge(START, "node")
        .checkpointer(superstep::MemorySaver::new())
        .compile()
        .unwrap();
    let paused = app.invoke(()).thread("t").await.unwrap();
    assert_eq!(paused.interrupts[0].value, "how many?");
    assert_eq!(app.invoke(Resume::value(5)).thread("t").await.unwrap().state.n, 5);
}

// ---- mutations without serde ----

#[derive(Clone, Default, Debug, PartialEq)]
struct Plain(i64);

#[derive(Debug, Clone)]
struct More(i64);

impl StateMutation<Plain> for More {
    fn apply(self, plain: &mut Plain) {
        plain.0 += self.0;
    }
}

impl WorkflowState for Plain {
    type Checkpoint = i64;
    type Mutation = More;
    fn snapshot(&self) -> i64 {
        self.0
    }
    fn restore(n: i64) -> Self {
        Plain(n)
    }
}

#[tokio::test]
async fn mutations_without_serde_are_saved_as_the_state_that_they_make() {
    on_each_saver!("no_serde", check_without_serde);
}

async fn check_without_serde(saver: impl Checkpointer + Clone) {
    let (broken, runs) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let app = |saver| {
        let (broken, runs) = (broken.clone(), runs.clone());
        let counted = move |_: Workflow<Plain>| {
            runs.fetch_add(1, Ordering::SeqCst);
            Workflow::<Plain>::mutate([More(1)])
        };
        let fails = move |_: Workflow<Plain>| {
            if broken.load(Ordering::SeqCst) { Err("not yet") } else { Ok(Workflow::<Plain>::mutate([More(10)])) }
        };
        let mut graph = StateGraph::<Workflow<Plain>>::new();
        graph.add_node("first", |_: Workflow<Plain>| Workflow::<Plain>::mutate([More(100)]));
        graph.add_node("counted", counted).add_node("fails", fails);
        graph.add_edge(START, "first").add_edge("first", "counted").add_edge("first", "fails");
        graph.projection_checkpointer(saver).compile().unwrap()
    };
    let input = Workflow::<Plain>::mutate([More(1000)]);
    app(saver.clone()).invoke(input).thread("t").durability(Durability::Sync).await.unwrap_err();
    assert_eq!(app(saver.clone()).thread("t").state().await.unwrap().state.0, Plain(1100));
    broken.store(false, Ordering::SeqCst);
    let out = app(saver.clone()).invoke(GoOn).thread("t").durability(Durability::Sync).await.unwrap();
    assert_eq!(out.state.0, Plain(1111), "the input and every mutation counts once");
    assert_eq!(runs.load(Ordering::SeqCst), 2, "what cannot be saved by itself runs again with its step");
    let history = app(saver.clone()).thread("t").history().await.unwrap();
    assert_eq!(history.iter().map(|snapshot| snapshot.state.0.0).collect::<Vec<_>>(), [1111, 1100, 1000, 0]);
    let log = app(saver).thread("t").mutation_log().await.unwrap();
    assert_eq!(log.replay(Plain::initial()).unwrap(), Plain(1111));
}

/// The record of such a task says that it has to run again, unless its step is saved: so it is not shown before.
#[tokio::test]
async fn what_cannot_be_saved_by_itself_is_shown_with_its_step() {
    let broken = Arc::new(AtomicBool::new(true));
    let fails = broken.clone();
    let mut graph = StateGraph::<Workflow<Plain>>::new();
    graph
        .add_node("ends", |_: Workflow<Plain>| Workflow::<Plain>::mutate([More(1)]))
        .add_node("fails", move |_: Workflow<Plain>| {
            if fails.load(Ordering::SeqCst) { Err("not yet") } else { Ok(Workflow::<Plain>::mutate([More(10)])) }
        })
        .add_edge(START, "ends")
        .add_edge(START, "fails");
    let app = graph.projection_checkpointer(superstep::MemorySaver::new()).compile().unwrap();
    let shown = async |mut stream: superstep::EventStream<Workflow<Plain>>| {
        let mut shown = Vec::new();
        while let Some(Ok(event)) = stream.next().await {
            if let superstep::EventData::Updates(update) = event.data {
                shown.push(update.node);
            }
        }
        shown
    };
    let input = Workflow::<Plain>::mutate([More(1000)]);
    let first = app.stream(input).thread("t").durability(Durability::Sync).start();
    assert_eq!(shown(first).await, [""; 0]);
    broken.store(false, Ordering::SeqCst);
    let second = app.stream(GoOn).thread("t").durability(Durability::Sync).start();
    assert_eq!(shown(second).await, ["ends", "fails"]);
}

/// The second update of one step could not be merged with the first one, and the thread could not go on.
#[tokio::test]
async fn updates_that_come_with_answers_are_saved_without_serde_too() {
    async fn asks(_: Workflow<Plain>, cx: Context) -> Result<Update<Workflow<Plain>>, Interrupted> {
        let (one, two): (i64, i64) = (cx.interrupt("one?")?, cx.interrupt("two?")?);
        Ok(Workflow::<Plain>::mutate([More(one + two)]))
    }
    let saver = superstep::MemorySaver::new();
    let app = || {
        let mut graph = StateGraph::<Workflow<Plain>>::new();
        graph.add_node("asks", asks).add_edge(START, "asks").projection_checkpointer(saver.clone()).compile().unwrap()
    };
    app().invoke(()).thread("t").await.unwrap();
    for (answer, more) in [(1, 10), (2, 100)] {
        let command = Command::new().resume(Resume::value(answer)).update(Workflow::<Plain>::mutate([More(more)]));
        app().invoke(command).thread("t").await.unwrap();
    }
    assert_eq!(app().thread("t").state().await.unwrap().state.0, Plain(113));
    app().thread("t").update_as_input(Workflow::<Plain>::mutate([More(1000)])).await.unwrap();
    assert_eq!(app().invoke(GoOn).thread("t").await.unwrap().interrupts.len(), 1);
    assert_eq!(app().thread("t").state().await.unwrap().state.0, Plain(1113));
}

#[test]
fn branches_have_names_of_their_own() {
    let compiled = |node: ParallelNode<Count, LastWriteWins>| {
        let mut graph = StateGraph::<Workflow<Count>>::new();
        graph.add_node("node", node).add_edge(START, "node").compile().unwrap_err().to_string()
    };
    let same = |count: Count| count;
    let twice = compiled(ParallelNode::builder().branch("a", same).branch("a", same).build());
    assert!(twice.contains("`a`"), "{twice}");
}

/// With `exit` only the end is saved, and the input is part of it.
#[tokio::test]
async fn mutations_without_serde_are_saved_at_the_exit_too() {
    let app = StateGraph::<Workflow<Plain>>::new()
        .add_node("one", |_: Workflow<Plain>| Workflow::<Plain>::mutate([More(1)]))
        .add_edge(START, "one")
        .projection_checkpointer(superstep::MemorySaver::new())
        .compile()
        .unwrap();
    for expected in [11, 22] {
        let input = Workflow::<Plain>::mutate([More(10)]);
        let out = app.invoke(input).thread("t").durability(Durability::Exit).await.unwrap();
        assert_eq!(out.state.0, Plain(expected));
    }
}

// ---- the log ----

fn logged(log: &MutationLog<Count>) -> Vec<String> {
    log.entries().iter().map(|entry| format!("{entry:?}")).collect()
}

#[tokio::test]
async fn a_thread_keeps_the_log_of_its_mutations() {
    on_each_saver!("mutation_log", check_log);
}

async fn check_log(saver: impl Checkpointer + Clone) {
    let mut graph = StateGraph::<Workflow<Count>>::new();
    graph.add_node("b", add(2)).add_node("a", add(1)).add_node("agent", Adds(10));
    graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "agent");
    let app = graph.checkpointer(saver).compile().unwrap();
    app.invoke(Workflow::<Count>::mutate([Change::Add(100)])).thread("t").await.unwrap();
    let thread = app.thread("t");
    let log = thread.mutation_log().await.unwrap();
    let first =
        ["step 0, __start__: Add(100)", "step 1, a: Add(1)", "step 1, b: Add(2)", "step 2, agent: a whole state"];
    assert_eq!(logged(&log), first);
    assert_eq!(log.entries()[1].mutation(), Some(&Change::Add(1)));

    app.invoke(Workflow::<Count>::mutate([Change::Say("again".into())])).thread("t").await.unwrap();
    thread.update(Workflow::<Count>::mutate([Change::Add(1000)])).as_node("agent").await.unwrap();
    let log = thread.mutation_log().await.unwrap();
    assert_eq!(logged(&log)[..4], first, "nothing that was logged changes");
    assert!(log.entries().len() > 8, "{:?}", logged(&log));
    let state = thread.state().await.unwrap().state;
    let replayed = log.replay(Count::initial()).unwrap();
    assert_eq!(replayed.snapshot(), state.0.snapshot());
    assert_eq!(replayed.n, 1126);

    // A fork has the log of what it comes from, and not of what it left.
    let history = thread.history().await.unwrap();
    let earlier = history.iter().find(|snapshot| snapshot.step == Some(1)).unwrap();
    let at = thread.at(earlier.checkpoint.as_ref().unwrap().id);
    let log = at.mutation_log().await.unwrap();
    assert_eq!(logged(&log), first[..3]);
    assert_eq!(log.replay(Count::initial()).unwrap().n, 103);
}

#[tokio::test]
async fn a_log_with_gaps_still_replays_to_the_state() {
    let mut graph = StateGraph::<Workflow<Count>>::new();
    graph.add_node("a", add(1)).add_node("b", add(2)).add_sequence(["a", "b"]);
    let app = graph.checkpointer(superstep::MemorySaver::new()).compile().unwrap();
    app.invoke(()).thread("t").durability(Durability::Exit).await.unwrap();
    let log = app.thread("t").mutation_log().await.unwrap();
    assert_eq!(logged(&log), ["step 2, : a whole state"], "what was not saved is said, not left out");
    assert_eq!(log.replay(Count::initial()).unwrap().n, 3);
}

#[tokio::test]
async fn the_updates_stream_has_typed_mutations() {
    let mut graph = StateGraph::<Workflow<Count>>::new();
    let app = graph.add_node("a", add(1)).add_node("agent", Adds(2)).add_sequence(["a", "agent"]).compile().unwrap();
    let mut events = app.stream(()).modes([Mode::Updates]).start();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if let EventData::Updates(update) = event.unwrap().data {
            let change = update.update::<Workflow<Count>>().unwrap();
            let mutations: Vec<Change> = change.mutations().cloned().collect();
            seen.push((update.node.clone(), mutations, change.whole_state().map(|count| count.n)));
        }
    }
    assert_eq!(seen, [("a".into(), vec![Change::Add(1)], None), ("agent".into(), vec![], Some(3))]);
}

/// The words `Apply` and `Replace` of a hidden type stood in it.
#[tokio::test]
async fn json_shows_the_state_and_the_mutations_as_they_are() {
    let mut graph = StateGraph::<Workflow<Count>>::new();
    graph.add_node("a", add(1)).add_edge(START, "a").checkpointer(superstep::MemorySaver::new());
    let app = graph.compile().unwrap();
    let shown = crate::support::events(app.stream(()).thread("t").modes([Mode::Updates, Mode::Values]).start()).await;
    let shown: Vec<_> = shown.iter().map(|event| event["data"].to_string()).collect();
    assert_eq!(shown, [r#"{"a":{"state":{"Add":1}}}"#, r#"{"state":[1,[]]}"#]);
}

/// A number that takes one mutation a step.
#[derive(Debug, Clone, Default, PartialEq)]
struct Careful(i64);

impl StateMutation<Careful> for i64 {
    fn apply(self, careful: &mut Careful) {
        careful.0 += self;
    }
}

impl WorkflowState for Careful {
    type Checkpoint = i64;
    type Mutation = i64;
    fn snapshot(&self) -> i64 {
        self.0
    }
    fn restore(checkpoint: i64) -> Self {
        Self(checkpoint)
    }
    fn apply_batch(&mut self, mutations: impl IntoIterator<Item = i64>) -> Result<(), WorkflowError> {
        let mutations: Vec<i64> = mutations.into_iter().collect();
        if mutations.len() > 1 {
            return Err(WorkflowError::ApplyFailed("one at a time".to_owned()));
        }
        mutations.into_iter().for_each(|mutation| mutation.apply(self));
        Ok(())
    }
}

/// The log looked for the latest checkpoint in the state as it is now, which merges what finished tasks wrote.
#[tokio::test]
async fn the_log_can_be_read_after_a_step_that_was_refused_when_it_was_merged() {
    let mut graph = StateGraph::<Workflow<Careful>>::new();
    graph.add_node("a", |_: Workflow<Careful>| Workflow::<Careful>::mutate([1]));
    graph.add_node("b", |_: Workflow<Careful>| Workflow::<Careful>::mutate([2]));
    graph.add_edge(START, "a").add_edge(START, "b");
    let app = graph.checkpointer(superstep::MemorySaver::new()).compile().unwrap();
    let refused = app.invoke(Workflow::<Careful>::mutate([10])).thread("t").await.unwrap_err();
    let thread = app.thread("t");
    // As in LangGraph: what the state is now cannot be told.
    assert_eq!(thread.state().await.unwrap_err().kind(), refused.kind());
    let log = thread.mutation_log().await.unwrap();
    assert_eq!(log.replay(Careful::initial()).unwrap(), Careful(10));
    thread.update(Workflow::<Careful>::mutate([5])).as_node("a").await.unwrap();
    assert_eq!(thread.state().await.unwrap().state.0, Careful(15));
    assert_eq!(thread.mutation_log().await.unwrap().replay(Careful::initial()).unwrap(), Careful(15));
    let unknown = app.thread("other").at(thread.state().await.unwrap().checkpoint.unwrap().id);
    assert_eq!(unknown.mutation_log().await.err().unwrap().kind(), ErrorKind::Invalid);
}
