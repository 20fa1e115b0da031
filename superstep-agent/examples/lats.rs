//! LATS: a search through a tree of answers. The most promising one is worked on by several tries at the same time, each try is
//! graded, and what it is worth tells on all that led to it.
//!
//! After LangGraph's notebook "Language Agent Tree Search". `cargo run -p superstep-agent --example lats`

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::{BoxError, END, Message, Reached, Runtime, START, Send, State, StateGraph};
use superstep_agent::{ChatModel, ChatModelExt, ChatRequest, ScriptedModel};

type Model = Runtime<Arc<dyn ChatModel>>;

const TRIES: usize = 3;
const DEEPEST: usize = 5;

/// An answer in the tree.
#[derive(Clone, Serialize, Deserialize)]
struct Answer {
    parent: Option<usize>,
    text: String,
    value: f64,
    visits: f64,
    is_solution: bool,
}

/// A try, on its way into the tree.
#[derive(Clone, Serialize, Deserialize)]
struct Try {
    from: Option<usize>,
    text: String,
    grade: Grade,
}

/// What an answer is worth.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Grade {
    /// From 0 to 10.
    score: f64,
    /// Whether it answers the question whole.
    solves: bool,
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Search {
    question: String,
    #[state(reduce = grow, update = Try)]
    tree: Vec<Answer>,
}

/// Puts a try into the tree, and tells all that led to it what it is worth.
fn grow(tree: &mut Vec<Answer>, new: Try) {
    let Try { from, text, grade } = new;
    tree.push(Answer { parent: from, text, value: 0.0, visits: 0.0, is_solution: grade.solves });
    let mut at = Some(tree.len() - 1);
    while let Some(ix) = at {
        let answer = &mut tree[ix];
        answer.visits += 1.0;
        answer.value += (grade.score / 10.0 - answer.value) / answer.visits;
        at = answer.parent;
    }
}

impl Search {
    /// The answers that were made of this one.
    fn children(&self, of: usize) -> impl Iterator<Item = usize> {
        (0..self.tree.len()).filter(move |ix| self.tree[*ix].parent == Some(of))
    }

    /// How much an answer promises: what it was worth so far, and more if it was little tried.
    fn promise(&self, ix: usize) -> f64 {
        let answer = &self.tree[ix];
        let visits_of_parent = answer.parent.map_or(1.0, |parent| self.tree[parent].visits);
        answer.value + (visits_of_parent.ln() / answer.visits).sqrt()
    }

    /// The leaf that is reached by going to the most promising answer, again and again.
    fn most_promising(&self) -> usize {
        let mut at = 0;
        while let Some(next) = self.children(at).max_by(|a, b| self.promise(*a).total_cmp(&self.promise(*b))) {
            at = next;
        }
        at
    }

    /// The way to an answer, from the first one on.
    fn way_to(&self, ix: usize) -> Vec<usize> {
        let mut way: Vec<_> = std::iter::successors(Some(ix), |ix| self.tree[*ix].parent).collect();
        way.reverse();
        way
    }

    fn best_solution(&self) -> Option<&Answer> {
        self.tree.iter().filter(|answer| answer.is_solution).max_by(|a, b| a.value.total_cmp(&b.value))
    }
}

/// Makes an answer, out of the one that it was sent if it was sent one, and grades it.
async fn try_one(Reached { state, sent }: Reached<Search, usize>, model: Model) -> Result<SearchUpdate, BoxError> {
    let way = sent.map(|from| state.way_to(from)).unwrap_or_default();
    let earlier = way.into_iter().map(|ix| Message::assistant(state.tree[ix].text.as_str()));
    let request = ChatRequest::new([Message::user(state.question.as_str())].into_iter().chain(earlier));
    let text = model.ask(request).await?.text().into_owned();
    let grade = model.ask_for(format!("Grade this answer to `{}`: {text}", state.question)).await?;
    Ok(Search::update().tree(Try { from: sent, text, grade }))
}

/// Several tries of the most promising answer, unless one was found or the tree is deep enough.
fn expand(search: &Search) -> Vec<Send> {
    let from = search.most_promising();
    if search.best_solution().is_some() || search.way_to(from).len() > DEEPEST {
        return Vec::new();
    }
    (0..TRIES).map(|_| Send::new("try", from)).collect()
}

/// Stands for a model: each answer adds a word to the one before; the right words make a better one.
fn think(request: &ChatRequest) -> Message {
    let asked = request.messages.last().map(|message| message.text().into_owned()).unwrap_or_default();
    if let Some((_, text)) = asked.split_once(": ") {
        let right = text.split(' ').zip(["red", "green", "blue"]).filter(|(word, right)| word == right).count();
        let grade = Grade { score: [1.0, 4.0, 7.0, 10.0][right], solves: right == 3 };
        return Message::assistant(serde_json::json!(grade).to_string());
    }
    let known = if request.messages.len() == 1 { String::new() } else { format!("{asked} ") };
    Message::assistant(known + ["red", "green", "blue", "black"][request.messages.len() - 1])
}

pub(crate) async fn run() -> Result<(usize, Option<String>), BoxError> {
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::thinking(think));
    let app = StateGraph::<Search>::new()
        .add_node("try", try_one)
        .add_node("look", |_: &Search| ())
        .add_edge(START, "try")
        .add_edge("try", "look")
        .add_conditional_edges_with_map("look", expand, ["try", END])
        .compile()?;
    let search = app.invoke(Search::update().question("Which colours make white light?")).context(model).await?.state;
    let best = search.best_solution().map(|answer| answer.text.clone());
    println!("{} answers; the best: {best:?}", search.tree.len());
    Ok((search.tree.len(), best))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
