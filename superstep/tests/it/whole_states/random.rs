//! Random steps of whole-state nodes, partial nodes and mutations, under all sorts of names: the names decide nothing.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use superstep::{
    Agent, BoxError, Command, ErrorKind, LastWriteWins, Message, Next, Node, ParallelNode, START, State, StateGraph,
    StateMutation, Workflow, WorkflowState,
};

/// A sequence of numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn shuffled<T>(&mut self, mut list: Vec<T>) -> Vec<T> {
        for place in (1..list.len()).rev() {
            list.swap(place, self.roll(place as u64 + 1) as usize);
        }
        list
    }
}

const NAMES: [&str; 6] = ["ant", "bee", "cat", "dog", "eel", "fox"];

// ---- fields ----

#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Field {
    #[state(append)]
    log: Vec<String>,
    #[state(sum)]
    total: i64,
    #[state(max)]
    best: i64,
    #[state(append)]
    marks: BTreeMap<String, i64>,
    #[state(messages)]
    messages: Vec<Message>,
    owner: Option<u64>,
}

#[derive(Clone, Debug)]
enum Act {
    Log(String),
    Add(i64),
    Raise(i64),
    Mark(String, i64),
    Own(u64),
    Tell(String),
    /// Only a whole state can do it.
    Forget,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Partial,
    Agent,
    Node,
    Function,
    Plain,
    Command,
}

#[derive(Clone, Debug)]
struct Worker {
    form: Form,
    acts: Vec<Act>,
}

impl Worker {
    fn random(dice: &mut Dice, number: usize) -> Self {
        let forms = [Form::Partial, Form::Agent, Form::Node, Form::Function, Form::Plain, Form::Command];
        let form = forms[dice.roll(6) as usize];
        let acts = (0..=dice.roll(3)).map(|nth| match dice.roll(if form == Form::Partial { 14 } else { 15 }) {
            0..=4 => Act::Log(format!("{number}.{nth}")),
            5..=7 => Act::Add(dice.roll(100) as i64),
            8..=10 => Act::Raise(dice.roll(100) as i64),
            11 => Act::Tell(format!("{number}.{nth}")),
            12 => Act::Mark(format!("{number}.{nth}"), dice.roll(9) as i64),
            13 => Act::Own(number as u64),
            _ => Act::Forget,
        });
        Self { form, acts: acts.collect() }
    }

    fn apply(&self, field: &mut Field) {
        for act in &self.acts {
            match act.clone() {
                Act::Log(line) => field.log.push(line),
                Act::Add(more) => field.total += more,
                Act::Raise(to) => field.best = field.best.max(to),
                Act::Mark(key, value) => drop(field.marks.insert(key, value)),
                Act::Own(by) => field.owner = Some(by),
                Act::Tell(id) => field.messages.push(Message::user("hi").with_id(id)),
                Act::Forget => field.log = vec!["forgotten".to_owned()],
            }
        }
    }

    fn update(&self) -> FieldUpdate {
        self.acts.iter().fold(Field::update(), |update, act| match act.clone() {
            Act::Log(line) => update.log([line]),
            Act::Add(more) => {
                let sum = update.total.unwrap_or_default() + more;
                update.total(sum)
            }
            Act::Raise(to) => {
                let best = update.best.unwrap_or(i64::MIN).max(to);
                update.best(best)
            }
            Act::Mark(key, value) => update.marks([(key, value)]),
            Act::Own(by) => update.owner(by),
            Act::Tell(id) => update.messages([Message::user("hi").with_id(id)]),
            Act::Forget => unreachable!("an update forgets nothing"),
        })
    }

    fn does(&self, is_it: impl Fn(&Act) -> bool) -> bool {
        self.acts.iter().any(is_it)
    }

    fn add_to(self, graph: &mut StateGraph<Field>, name: &str) {
        let whole = self.clone();
        match self.form {
            Form::Partial => graph.add_node(name, move |_: &Field| self.update()),
            Form::Agent => graph.add_node(name, AsAgent(self)),
            Form::Node => graph.add_node(name, AsNode(self)),
            Form::Function => graph.add_node(name, move |mut field: Field| {
                whole.apply(&mut field);
                async move { field }
            }),
            Form::Plain => graph.add_node(name, move |field: &Field| {
                let mut field = field.clone();
                whole.apply(&mut field);
                Ok::<_, BoxError>(field)
            }),
            Form::Command => graph.add_node(name, move |mut field: Field| {
                whole.apply(&mut field);
                Command::new().update(field)
            }),
        }
        .add_edge(START, name);
    }
}

struct AsAgent(Worker);

#[async_trait]
impl Agent for AsAgent {
    type State = Field;
    async fn run(&self, mut field: Field) -> Result<Field, BoxError> {
        self.0.apply(&mut field);
        Ok(field)
    }
}

struct AsNode(Worker);

#[async_trait]
impl Node<Field> for AsNode {
    fn id(&self) -> &'static str {
        "worker"
    }
    async fn run(&self, mut field: Field) -> Result<(Field, Next), BoxError> {
        self.0.apply(&mut field);
        Ok((field, Next::Continue))
    }
}

/// The rule, said once more: sums, greatest values, entries and lines of all come together; a last value has one writer, and
/// so has a list that was made anew.
fn expected(begin: &Field, workers: &[Worker]) -> Result<Field, Vec<usize>> {
    let those = |is_it: &dyn Fn(&Act) -> bool| -> Vec<usize> {
        (0..workers.len()).filter(|ix| workers[*ix].does(is_it)).collect()
    };
    let loggers = those(&|act| matches!(act, Act::Log(_) | Act::Forget));
    if loggers.len() > 1 && workers.iter().any(|worker| worker.does(|act| matches!(act, Act::Forget))) {
        return Err(loggers);
    }
    let owners = those(&|act| matches!(act, Act::Own(_)));
    if owners.len() > 1 {
        return Err(owners);
    }
    let mut field = begin.clone();
    workers.iter().for_each(|worker| worker.apply(&mut field));
    Ok(in_order(field))
}

/// The order of lines is that of the names; what is in them is not.
fn in_order(mut field: Field) -> Field {
    field.log.sort();
    field.messages.sort_by(|one, other| one.id.cmp(&other.id));
    field
}

#[tokio::test]
async fn names_decide_nothing_beside_whole_states_and_nothing_is_dropped() {
    let (mut conflicts, mut merged) = (0, 0);
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let workers: Vec<Worker> =
            (0..2 + dice.roll(4) as usize).map(|number| Worker::random(&mut dice, number)).collect();
        let begin = Field { log: vec!["begin".into()], total: 7, best: 50, ..Field::default() };
        let expected = expected(&begin, &workers);
        for _ in 0..4 {
            let names = dice.shuffled(NAMES.to_vec());
            let mut graph = StateGraph::new();
            for (worker, name) in workers.iter().zip(&names) {
                worker.clone().add_to(&mut graph, name);
            }
            match (graph.compile().unwrap().invoke(begin.clone()).await, &expected) {
                (Ok(out), Ok(expected)) => {
                    assert_eq!(in_order(out.state), *expected, "seed {seed}, {workers:?}");
                    merged += 1;
                }
                (Err(error), Err(writers)) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidUpdate, "seed {seed}: {error}");
                    let words = error.to_string();
                    assert!(words.contains("`log`") || words.contains("`owner`"), "seed {seed}: {words}");
                    assert!(writers.iter().all(|ix| words.contains(&format!("`{}`", names[*ix]))), "{words}");
                    conflicts += 1;
                }
                (found, expected) => {
                    panic!("seed {seed}: {:?}, not {expected:?}; {workers:?}", found.map(|out| out.state))
                }
            }
        }
    }
    assert!(conflicts > 100 && merged > 400, "{conflicts} conflicts, {merged} merged");
}

// ---- mutations ----

#[derive(Clone, Default, Debug, PartialEq)]
struct Tally {
    count: i64,
    lines: Vec<String>,
}

#[derive(Clone, Debug)]
enum Change {
    Add(i64),
    Say(String),
}

impl StateMutation<Tally> for Change {
    fn apply(self, tally: &mut Tally) {
        match self {
            Change::Add(more) => tally.count += more,
            Change::Say(line) => tally.lines.push(line),
        }
    }
}

impl WorkflowState for Tally {
    type Checkpoint = (i64, Vec<String>);
    type Mutation = Change;
    fn snapshot(&self) -> Self::Checkpoint {
        (self.count, self.lines.clone())
    }
    fn restore((count, lines): Self::Checkpoint) -> Self {
        Self { count, lines }
    }
}

struct TallyAgent(Vec<Change>);

#[async_trait]
impl Agent for TallyAgent {
    type State = Workflow<Tally>;
    async fn run(&self, mut tally: Workflow<Tally>) -> Result<Workflow<Tally>, BoxError> {
        self.0.iter().for_each(|change| change.clone().apply(&mut tally.0));
        Ok(tally)
    }
}

fn whole(changes: Vec<Change>) -> impl Fn(Tally) -> Tally + Clone + Send + Sync + 'static {
    move |mut tally| {
        changes.iter().for_each(|change| change.clone().apply(&mut tally));
        tally
    }
}

#[tokio::test]
async fn names_decide_nothing_beside_mutations_and_nothing_is_dropped() {
    let (mut conflicts, mut merged) = (0, 0);
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let count = 2 + dice.roll(3) as usize;
        // 0 to 3: mutations; 4: an agent; 5: a function of the whole state; 6: a parallel node.
        let nodes: Vec<(u64, Vec<Change>)> = (0..count)
            .map(|number| (dice.roll(7), vec![Change::Add(dice.roll(50) as i64), Change::Say(number.to_string())]))
            .collect();
        let wholes: Vec<usize> = (0..count).filter(|ix| nodes[*ix].0 > 3).collect();
        let mut expected = Tally { count: 1, lines: vec!["begin".into()] };
        nodes.iter().flat_map(|(_, changes)| changes).for_each(|change| change.clone().apply(&mut expected));
        expected.lines.sort();
        for _ in 0..4 {
            let names = dice.shuffled(NAMES.to_vec());
            let mut graph = StateGraph::<Workflow<Tally>>::new();
            for ((form, changes), name) in nodes.iter().cloned().zip(&names) {
                match form {
                    0..=3 => {
                        graph.add_node(*name, move |_: Workflow<Tally>| Workflow::<Tally>::mutate(changes.clone()))
                    }
                    4 => graph.add_node(*name, TallyAgent(changes)),
                    5 => graph.add_node(*name, whole(changes)),
                    _ => {
                        let node = ParallelNode::builder().merge_strategy(LastWriteWins);
                        graph.add_node(*name, node.branch("only", whole(changes)).build())
                    }
                }
                .add_edge(START, *name);
            }
            let begin = Workflow(Tally { count: 1, lines: vec!["begin".into()] });
            match graph.compile().unwrap().invoke(begin).await {
                Ok(out) => {
                    let mut tally = out.state.0;
                    tally.lines.sort();
                    assert!(wholes.len() < 2, "seed {seed}: two whole states became one");
                    assert_eq!(tally, expected, "seed {seed}, {nodes:?}");
                    merged += 1;
                }
                Err(error) => {
                    assert!(wholes.len() > 1, "seed {seed}: {error}");
                    let words = error.to_string();
                    assert!(wholes.iter().all(|ix| words.contains(&format!("`{}`", names[*ix]))), "{words}");
                    conflicts += 1;
                }
            }
        }
    }
    assert!(conflicts > 100 && merged > 300, "{conflicts} conflicts, {merged} merged");
}
