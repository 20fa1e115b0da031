//! Seed 003: states that change by commands.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use superstep::{
    Checkpointer, ErrorKind, MemorySaver, MergeStrategy, Message, ParallelNode, START, StateGraph, StateMutation,
    Update, Workflow, WorkflowError, WorkflowState,
};

trait ToolCatalog: Send + Sync {
    fn tools(&self) -> usize;
}

struct DefaultCatalog;

impl ToolCatalog for DefaultCatalog {
    fn tools(&self) -> usize {
        0
    }
}

#[derive(Clone)]
struct AgentState {
    messages: Vec<Message>,
    iterations: usize,
    output_tokens: usize,
    cache: Arc<dyn ToolCatalog>,
}

impl Default for AgentState {
    fn default() -> Self {
        Self { messages: Vec::new(), iterations: 0, output_tokens: 0, cache: Arc::new(DefaultCatalog) }
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct AgentCheckpoint {
    messages: Vec<Message>,
    iterations: usize,
    output_tokens: usize,
}

/// The derives are ours: `Clone` for a graph, those of serde for a checkpointer that keeps single mutations.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum AgentMutation {
    AppendMessage(Message),
    IncrementIteration,
    RecordOutputTokens(usize),
}

impl StateMutation<AgentState> for AgentMutation {
    fn apply(self, state: &mut AgentState) {
        match self {
            AgentMutation::AppendMessage(msg) => state.messages.push(msg),
            AgentMutation::IncrementIteration => state.iterations += 1,
            AgentMutation::RecordOutputTokens(n) => state.output_tokens += n,
        }
    }
}

impl WorkflowState for AgentState {
    type Checkpoint = AgentCheckpoint;
    type Mutation = AgentMutation;

    fn snapshot(&self) -> AgentCheckpoint {
        AgentCheckpoint {
            messages: self.messages.clone(),
            iterations: self.iterations,
            output_tokens: self.output_tokens,
        }
    }

    fn restore(checkpoint: AgentCheckpoint) -> Self {
        AgentState {
            messages: checkpoint.messages,
            iterations: checkpoint.iterations,
            output_tokens: checkpoint.output_tokens,
            cache: Arc::new(DefaultCatalog),
        }
    }
}

struct AgentStateMerge;

impl MergeStrategy<AgentState> for AgentStateMerge {
    fn merge(branches: Vec<AgentState>) -> Result<AgentState, WorkflowError> {
        // messages: concat, iterations: max, tokens: sum
        let iterations = branches.iter().map(|branch| branch.iterations).max();
        let iterations = iterations.ok_or_else(|| WorkflowError::MergeConflict("no branches to merge".into()))?;
        let output_tokens = branches.iter().map(|branch| branch.output_tokens).sum();
        let messages = branches.into_iter().flat_map(|branch| branch.messages).collect();
        Ok(AgentState { messages, iterations, output_tokens, ..AgentState::default() })
    }

    fn default_instance() -> Self {
        AgentStateMerge
    }
}

fn search_node(_: &Workflow<AgentState>) -> Update<Workflow<AgentState>> {
    let found = AgentMutation::AppendMessage(Message::assistant("found"));
    Workflow::<AgentState>::mutate([found, AgentMutation::IncrementIteration, AgentMutation::RecordOutputTokens(2)])
}

fn analyze_node(mut state: AgentState) -> AgentState {
    AgentMutation::AppendMessage(Message::assistant("analysed")).apply(&mut state);
    AgentMutation::RecordOutputTokens(3).apply(&mut state);
    state
}

#[tokio::test]
async fn the_agent_of_commands_runs_and_is_restored() {
    let saver: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
    let both = || {
        ParallelNode::builder()
            .merge_strategy(AgentStateMerge)
            .branch("search", search_node)
            .branch("analyze", analyze_node)
            .build()
    };
    let app = || {
        let mut graph = StateGraph::<Workflow<AgentState>>::new();
        graph.add_node("both", both()).add_edge(START, "both");
        graph.checkpointer(saver.clone()).compile().unwrap()
    };
    app().invoke(()).thread("t").await.unwrap();
    let state = app().thread("t").state().await.unwrap().state;
    let said: Vec<_> = state.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!((said, state.iterations, state.output_tokens), (vec!["found".into(), "analysed".into()], 1, 5));
    assert_eq!(state.cache.tools(), 0, "what is not saved was made anew");
}

/// An account that is never overdrawn: a batch counts as a whole or not at all.
#[derive(Clone, Default, Debug, PartialEq)]
struct Account(i64);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pay(i64);

impl StateMutation<Account> for Pay {
    fn apply(self, account: &mut Account) {
        account.0 += self.0;
    }
}

impl WorkflowState for Account {
    type Checkpoint = i64;
    type Mutation = Pay;
    fn snapshot(&self) -> i64 {
        self.0
    }
    fn restore(balance: i64) -> Self {
        Account(balance)
    }
    fn apply_batch(&mut self, mutations: impl IntoIterator<Item = Pay>) -> Result<(), WorkflowError> {
        let before = self.clone();
        mutations.into_iter().for_each(|pay| pay.apply(self));
        if self.0 >= 0 {
            return Ok(());
        }
        *self = before;
        Err(WorkflowError::ApplyFailed("the account would be overdrawn".into()))
    }
}

#[tokio::test]
async fn a_batch_may_be_checked_and_rolled_back() {
    let pays = |amounts: &'static [i64]| {
        let mut graph = StateGraph::<Workflow<Account>>::new();
        graph.add_node("pays", move |_: &Workflow<Account>| {
            Workflow::<Account>::mutate(amounts.iter().map(|n| Pay(*n)))
        });
        graph.add_edge(START, "pays").checkpointer(MemorySaver::new()).compile().unwrap()
    };
    let begin = || Workflow::<Account>::mutate([Pay(10)]);
    assert_eq!(pays(&[-15, 6]).invoke(begin()).thread("t").await.unwrap().state.0, Account(1));
    let app = pays(&[-5, -6]);
    let error = app.invoke(begin()).thread("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("failed to apply mutation: the account would be overdrawn"), "{error}");
    assert_eq!(app.thread("t").history().await.unwrap()[0].state.0, Account(10));
}
