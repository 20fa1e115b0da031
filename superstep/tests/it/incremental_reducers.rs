//! Reducers that say that they are incremental: what they merge is saved as its tail.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use superstep::{
    CheckpointRecord, Checkpointer, Command, CompiledStateGraph, Durability, Field, FieldKind, FieldValue, MemorySaver,
    Persist, Reducer, START, State, StateGraph, TaskRecord, Update,
};

use crate::support::hooked::{Hook, Hooked};
use crate::support::savers::on_each_saver;

/// Adds at the end, and says so.
struct Adds;

impl<T: Send + Sync + 'static> Reducer<Vec<T>> for Adds {
    const INCREMENTAL: bool = true;
    fn merge(&self, mut current: Vec<T>, update: Vec<T>) -> Vec<T> {
        current.extend(update);
        current
    }
}

/// Does the same and does not say it.
struct Quiet;

impl<T: Send + Sync + 'static> Reducer<Vec<T>> for Quiet {
    fn merge(&self, current: Vec<T>, update: Vec<T>) -> Vec<T> {
        Adds.merge(current, update)
    }
}

/// Keeps the last three.
struct LastThree;

impl Reducer<Vec<String>> for LastThree {
    const INCREMENTAL: bool = true;
    fn merge(&self, current: Vec<String>, update: Vec<String>) -> Vec<String> {
        let all = Adds.merge(current, update);
        all[all.len().saturating_sub(3)..].to_vec()
    }
}

macro_rules! state_with {
    ($name:ident, $($attribute:tt)*) => {
        #[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
        struct $name {
            #[state($($attribute)*)]
            log: Vec<String>,
            turn: u32,
        }
    };
}

state_with!(Appending, append);
state_with!(Adding, reducer = Adds);
state_with!(Keeping, reducer = Quiet);
state_with!(Recent, reducer = LastThree);

/// The reducer's type may depend on that of the state.
#[derive(State, Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
struct Generic<T> {
    #[state(reducer = Adds)]
    items: Vec<T>,
}

#[test]
fn the_kind_of_a_field_is_what_its_reducer_says() {
    let kind = |fields: &[superstep::FieldSpec]| fields[0].kind();
    assert_eq!(kind(Adding::fields(&())), FieldKind::Append);
    assert_eq!(kind(Keeping::fields(&())), FieldKind::Reducer);
    assert_eq!(kind(Generic::<u8>::fields(&())), FieldKind::Append);
}

/// A graph that appends 64 bytes in each of so many turns.
fn looping<S: Persist + State<Schema = ()>>(
    log: Field<S, Vec<String>>,
    turn: Field<S, u32>,
    turns: u32,
    at: fn(&S) -> u32,
    saver: impl Checkpointer,
) -> CompiledStateGraph<S> {
    let node = move |state: &S| {
        let now = at(state) + 1;
        Update::<S>::new().set(log, vec![format!("{now:064}")]).set(turn, now)
    };
    let path = move |state: &S| if at(state) < turns { "add" } else { superstep::END };
    let mut graph = StateGraph::<S>::new();
    graph.add_node("add", node).add_edge(START, "add").add_conditional_edges("add", path);
    graph.checkpointer(saver).compile().unwrap()
}

/// The bytes that all values take that are saved.
#[derive(Clone, Default)]
struct Weighs(Arc<Mutex<usize>>);

#[async_trait]
impl Hook for Weighs {
    fn write(&self, record: CheckpointRecord) -> CheckpointRecord {
        let fields = record.fields().iter().map(|field| match field.value() {
            FieldValue::Whole(whole) => whole.len(),
            FieldValue::Tail(tail) => tail.iter().map(|write| write.len()).sum(),
            FieldValue::Absent => 0,
        });
        let writes = |task: &TaskRecord| task.writes().iter().map(|write| write.value().len()).sum::<usize>();
        *self.0.lock().unwrap() += fields.sum::<usize>() + record.writes().iter().map(writes).sum::<usize>();
        record
    }
}

macro_rules! bytes_of {
    ($state:ident, $turns:expr) => {{
        let weighs = Weighs::default();
        let app = looping($state::LOG, $state::TURN, $turns, |s: &$state| s.turn, Hooked::new(weighs.clone()));
        let run = app.invoke($state::update().turn(0u32)).thread("t").durability(Durability::Sync);
        let out = run.recursion_limit(5_000).await.unwrap();
        assert_eq!(out.state.turn, $turns);
        let bytes = *weighs.0.lock().unwrap();
        bytes
    }};
}

/// With each step the whole value was saved again: a thousand steps of 64 bytes took 33 MB.
#[tokio::test]
async fn a_thousand_steps_through_an_incremental_reducer_grow_as_append_does() {
    let (some, many) = (bytes_of!(Adding, 250u32), bytes_of!(Adding, 1000u32));
    assert!(many < 5 * some, "four times the steps took {many} bytes instead of {some}");
    let appended = bytes_of!(Appending, 1000u32);
    assert_eq!(many, appended, "as `append`");
    assert!(many < 1000 * 64 * 8, "{many} bytes");
}

#[tokio::test]
async fn a_reducer_that_does_not_say_it_is_saved_whole() {
    let (some, many) = (bytes_of!(Keeping, 250u32), bytes_of!(Keeping, 1000u32));
    assert!(many > 12 * some, "four times the steps took {many} bytes instead of {some}");
}

/// What is merged away is not carried along for ever.
#[tokio::test]
async fn a_reducer_that_keeps_little_is_saved_whole_from_time_to_time() {
    let saver = MemorySaver::new();
    let app = looping(Recent::LOG, Recent::TURN, 1000, |s: &Recent| s.turn, saver.clone());
    let run = app.invoke(Recent::update().turn(0u32)).thread("t").recursion_limit(5_000);
    let log = run.await.unwrap().state.log;
    assert_eq!(log, [format!("{:064}", 998), format!("{:064}", 999), format!("{:064}", 1000)]);
    let saved = saver.get("t", "", None).await.unwrap().unwrap();
    let tail = saved.fields().iter().find(|field| field.name() == "log").unwrap().tail().len();
    assert!(tail < 400, "{tail} writes are read for three");
    assert_eq!(app.get_state("t").await.unwrap().state.log, log);
}

async fn comes_back(saver: impl Checkpointer + Clone) {
    let app = || looping(Adding::LOG, Adding::TURN, 40, |s: &Adding| s.turn, saver.clone());
    let run = app().invoke(Adding::update().log(["first".to_owned()])).thread("t");
    let out = run.interrupt_after(["add"]).await.unwrap();
    assert_eq!(out.state.log.len(), 2);
    let out = app().invoke(superstep::GoOn).thread("t").await.unwrap().state;
    assert_eq!((out.log.len(), out.log[0].as_str()), (41, "first"));
    assert_eq!(*app().get_state("t").await.unwrap().state, out);
    for snapshot in app().get_state_history("t").await.unwrap() {
        let turn = snapshot.state.turn as usize;
        assert_eq!(snapshot.state.log, out.log[..snapshot.state.log.len()]);
        assert!(snapshot.state.log.len() == turn + 1 || snapshot.state.log.is_empty());
    }
    let replaced = Update::<Adding>::new().overwrite(Adding::LOG, vec!["only".to_owned()]);
    app().update_state("t", replaced, None).await.unwrap();
    let command = Command::<Adding>::new().update(Adding::update().log(["more".to_owned()]));
    app().update_state("t", command, None).await.unwrap();
    assert_eq!(app().get_state("t").await.unwrap().state.log, ["only", "more"]);
}

#[tokio::test]
async fn what_an_incremental_reducer_merged_is_the_same_when_it_is_read() {
    on_each_saver!("incremental_reducers", comes_back);
}

/// A field that was saved whole goes on as a tail, and one that was saved as a tail goes on whole.
#[tokio::test]
async fn a_reducer_may_become_incremental_and_cease_to_be() {
    let saver = MemorySaver::new();
    let keeping = |turns| looping(Keeping::LOG, Keeping::TURN, turns, |s: &Keeping| s.turn, saver.clone());
    keeping(3).invoke(Keeping::update().turn(0u32)).thread("t").await.unwrap();
    let adding = looping(Adding::LOG, Adding::TURN, 3, |s: &Adding| s.turn, saver.clone());
    assert_eq!(adding.invoke(Adding::update().turn(0u32)).thread("t").await.unwrap().state.log.len(), 6);
    assert_eq!(keeping(3).invoke(Keeping::update().turn(0u32)).thread("t").await.unwrap().state.log.len(), 9);
    assert_eq!(adding.get_state("t").await.unwrap().state.log.len(), 9);
}
