//! Reasoning without observation: a model plans all steps at once, naming the evidence that each will find; tools find it; the
//! model solves the task.
//!
//! After LangGraph's notebook "Reasoning without Observation". `cargo run -p superstep-agent --example rewoo`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use superstep::{BoxError, Runtime, START, State, StateGraph};
use superstep_agent::{ChatModel, ChatModelExt, ScriptedModel};

type Model = Runtime<Arc<dyn ChatModel>>;

/// A line of the plan: `Plan: why #E1 = Tool[input]`.
#[derive(Clone, Serialize, Deserialize)]
struct Step {
    why: String,
    evidence: String,
    tool: String,
    input: String,
}

impl Step {
    fn read(line: &str) -> Option<Self> {
        let (why, rest) = line.strip_prefix("Plan: ")?.split_once(" #")?;
        let (number, call) = rest.split_once(" = ")?;
        let (tool, input) = call.strip_suffix(']')?.split_once('[')?;
        let [why, tool, input] = [why, tool, input].map(str::to_owned);
        Some(Self { why, evidence: format!("#{number}"), tool, input })
    }

    /// Its input, with what was found in place of its name.
    fn input(&self, found: &BTreeMap<String, String>) -> String {
        found.iter().fold(self.input.clone(), |input, (name, what)| input.replace(name, what))
    }
}

#[derive(State, Clone, Default, Serialize, Deserialize)]
struct Work {
    task: String,
    steps: Vec<Step>,
    #[state(append)]
    found: BTreeMap<String, String>,
    answer: String,
}

async fn plan(work: Arc<Work>, model: Model) -> Result<WorkUpdate, BoxError> {
    let said = model.ask(format!("Plan, each step with one #E, using Search[..] and Think[..]: {}", work.task)).await?;
    Ok(Work::update().steps(said.text().lines().filter_map(Step::read).collect::<Vec<_>>()))
}

/// Stands for a search engine.
fn search(query: &str) -> &'static str {
    if query.contains("winner") { "Jannik Sinner won in 2024" } else { "he grew up in Sexten, in South Tyrol" }
}

async fn tool(work: Arc<Work>, model: Model) -> Result<WorkUpdate, BoxError> {
    let step = &work.steps[work.found.len()];
    let input = step.input(&work.found);
    let found = match &*step.tool {
        "Search" => search(&input).to_owned(),
        "Think" => model.ask(input).await?.text().into_owned(),
        other => return Err(format!("the plan names `{other}`, which is no tool").into()),
    };
    Ok(Work::update().found([(step.evidence.clone(), found)]))
}

async fn solve(work: Arc<Work>, model: Model) -> Result<WorkUpdate, BoxError> {
    let evidence: Vec<_> = work.steps.iter().map(|s| format!("{}: {}", s.why, work.found[&s.evidence])).collect();
    let said = model.ask(format!("Solve `{}` with this evidence:\n{}", work.task, evidence.join("\n"))).await?;
    Ok(Work::update().answer(said.text()))
}

pub(crate) async fn run() -> Result<(Vec<String>, String), BoxError> {
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::new([
        "Plan: Find the winner. #E1 = Search[winner of the Australian Open 2024]\n\
         Plan: Name him. #E2 = Think[Who is it? #E1]\n\
         Plan: Find the town. #E3 = Search[hometown of #E2]",
        "Jannik Sinner",
        "Sexten",
    ]));
    let app = StateGraph::<Work>::new()
        .add_node("plan", plan)
        .add_node("tool", tool)
        .add_node("solve", solve)
        .add_edge(START, "plan")
        .add_edge("plan", "tool")
        .add_conditional_edges_with_map(
            "tool",
            |work: &Work| if work.found.len() < work.steps.len() { "tool" } else { "solve" },
            ["tool", "solve"],
        )
        .compile()?;
    let task = "What is the hometown of the winner of the Australian Open 2024?";
    let work = app.invoke(Work::update().task(task)).context(model).await?.state;
    let found = work.steps.iter().map(|step| format!("{} {}", step.evidence, work.found[&step.evidence])).collect();
    println!("{}", work.answer);
    Ok((found, work.answer))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await.map(drop)
}
