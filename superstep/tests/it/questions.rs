//! Questions to a human, their answers, and commands from outside.

use std::sync::{Arc, Mutex};

use serde_json::json;
use superstep::{
    BoxError, CheckpointError, Command, CompiledStateGraph, Context, Durability, ErrorKind, GoOn, Goto, Interrupted,
    MemorySaver, Mode, Resume, START, Send, Sent, StateGraph,
};

use crate::support::hooked::{Call, Hook, Hooked, Serving};
use crate::support::{Count, Notes, NotesUpdate, a_b_c, events, saved, says};

fn input() -> NotesUpdate {
    Notes::update().topic("t")
}

/// A node that asks these questions, one after another.
fn asks(
    questions: &'static [&'static str],
) -> impl Fn(Notes, Context) -> std::future::Ready<Result<NotesUpdate, Interrupted>> + std::marker::Send + Sync + 'static
{
    move |_, cx| {
        let answers = questions.iter().map(|q| cx.interrupt::<String>(q)).collect::<Result<Vec<_>, _>>();
        std::future::ready(answers.map(|a| Notes::update().log([a.join(" ")])))
    }
}

fn one(questions: &'static [&'static str]) -> CompiledStateGraph<Notes> {
    saved(
        StateGraph::new().add_node("ask", asks(questions)).add_node("last", says("last")).add_sequence(["ask", "last"]),
    )
}

fn two() -> CompiledStateGraph<Notes> {
    let mut graph = StateGraph::new();
    graph.add_node("x", asks(&["x?"])).add_node("y", asks(&["y?"])).add_node("last", says("last"));
    saved(graph.add_edge(START, "x").add_edge(START, "y").add_edge(["x", "y"], "last"))
}

#[tokio::test]
async fn a_question_pauses_the_run_and_an_answer_goes_on() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let app = one(&["go?"]);
        let out = app.invoke(input()).thread("t").durability(durability).await.unwrap();
        assert!(out.is_interrupted());
        assert_eq!((out.interrupts.len(), out.interrupts[0].value_as::<String>().unwrap()), (1, "go?".to_owned()));
        let seen = app.thread("t").state().await.unwrap();
        assert_eq!((seen.next.clone(), seen.interrupts.clone()), (vec!["ask".to_owned()], out.interrupts.clone()));
        let out = app.invoke(Resume::value("yes")).thread("t").durability(durability).await.unwrap();
        assert_eq!(
            (out.state.log.clone(), out.interrupts.len()),
            (vec!["yes".to_owned(), "last".to_owned()], 0),
            "{durability:?}"
        );
    }
}

#[tokio::test]
async fn going_on_without_an_answer_asks_the_same_again() {
    let app = one(&["go?"]);
    let first = app.invoke(input()).thread("t").await.unwrap().interrupts;
    assert_eq!(app.invoke(GoOn).thread("t").await.unwrap().interrupts, first);
}

#[tokio::test]
async fn several_questions_of_a_node_are_asked_one_after_another() {
    let app = one(&["one?", "two?", "three?"]);
    let mut out = app.invoke(input()).thread("t").await.unwrap();
    let mut ids = Vec::new();
    for (question, answer) in [("one?", "1"), ("two?", "2"), ("three?", "3")] {
        assert_eq!(out.interrupts[0].value, question);
        ids.push(out.interrupts[0].id.clone());
        out = app.invoke(Resume::value(answer)).thread("t").await.unwrap();
    }
    assert_eq!(out.state.log, ["1 2 3", "last"]);
    ids.dedup();
    assert_eq!(ids.len(), 3, "each question has an id of its own");
}

#[tokio::test]
async fn one_answer_for_several_questions_is_refused_and_changes_nothing() {
    let app = two();
    let questions = app.invoke(input()).thread("t").await.unwrap().interrupts;
    let error = app.invoke(Resume::value("yes")).thread("t").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::AmbiguousResume, "several questions are open; answer by their ids with `Resume::by_id`")
    );
    assert_eq!(app.thread("t").state().await.unwrap().interrupts, questions);
}

#[tokio::test]
async fn answers_by_id_go_to_their_questions_and_the_others_stay_open() {
    let app = two();
    let questions = app.invoke(input()).thread("t").await.unwrap().interrupts;
    let id_of = |value: &str| questions.iter().find(|q| q.value == value).unwrap().id.clone();
    let out = app.invoke(Resume::by_id([(id_of("y?"), "yes")])).thread("t").await.unwrap();
    assert_eq!(out.interrupts.iter().map(|q| q.id.clone()).collect::<Vec<_>>(), [id_of("x?")]);
    let out = app.invoke(Resume::by_id([(id_of("x?"), "no")])).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["no", "yes", "last"]);
}

#[tokio::test]
async fn an_answer_to_an_unknown_question_is_refused_and_changes_nothing() {
    let app = one(&["go?"]);
    let questions = app.invoke(input()).thread("t").await.unwrap().interrupts;
    let unknown = "0123456789abcdef0123456789abcdef";
    let error = app.invoke(Resume::by_id([(unknown, "yes")])).thread("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownInterrupt);
    assert_eq!(
        error.to_string(),
        format!("nobody asked a question with id `{unknown}`; open are [{:?}]", questions[0].id)
    );
    assert_eq!(app.thread("t").state().await.unwrap().interrupts, questions);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_and_the_question_stays_open() {
    let node = |_: Notes, cx: Context| async move {
        let go: bool = cx.interrupt("go?")?;
        Ok::<_, Interrupted>(Notes::update().log([go.to_string()]))
    };
    let app = saved(StateGraph::new().add_node("ask", node).add_edge(START, "ask"));
    app.invoke(input()).thread("t").await.unwrap();
    let error = app.invoke(Resume::value("perhaps")).thread("t").await.unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::Invalid, Some("ask")));
    assert!(error.to_string().contains("the answer does not fit the question"), "{error}");
    let out = app.invoke(Resume::value(true)).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["true"]);
}

#[tokio::test]
async fn a_command_may_update_answer_and_go_elsewhere_at_once() {
    let mut graph = StateGraph::new();
    graph.add_node("ask", asks(&["go?"])).add_node("extra", says("extra")).add_edge(START, "ask");
    let app = saved(&mut graph);
    app.invoke(input()).thread("t").await.unwrap();
    let command = Command::new().update(Notes::update().total(5)).goto("extra").resume("yes");
    let out = app.invoke(command).thread("t").await.unwrap();
    assert_eq!((out.state.total, out.state.log.clone()), (5, vec!["yes".to_owned(), "extra".to_owned()]));
}

#[tokio::test]
async fn a_command_goes_on_with_a_finished_thread() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let out = app.invoke(Command::<Notes>::new().goto("b")).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["a", "b", "c", "b", "c"]);
}

#[tokio::test]
async fn an_empty_command_is_refused() {
    let app = saved(&mut a_b_c());
    app.invoke(input()).thread("t").await.unwrap();
    let error = app.invoke(Command::<Notes>::new()).thread("t").await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::EmptyInput, "the command is empty"));
}

#[tokio::test]
async fn a_nodes_goto_adds_to_its_edges() {
    let node = |_: Notes| async { Command::<Notes>::new().update(Notes::update().log(["a"])).goto("c") };
    let mut graph = StateGraph::new();
    graph.add_node("a", node).add_node("b", says("b")).add_node("c", says("c"));
    let app = graph.add_edge(START, "a").add_edge("a", "b").compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().state.log, ["a", "b", "c"]);
}

#[tokio::test]
async fn questions_are_streamed_as_updates_and_values() {
    let app = one(&["go?"]);
    let all = events(app.stream(input()).thread("t").modes([Mode::Updates, Mode::Values]).start()).await;
    let shown: Vec<_> = all.iter().map(|e| (e["mode"].as_str().unwrap(), e["data"].clone())).collect();
    let asked = json!([{ "value": "go?" }]);
    let values = json!({ "log": [], "total": 0, "topic": "t" });
    let mut asking = values.clone();
    asking["__interrupt__"] = asked.clone();
    assert_eq!(shown, [("Values", values), ("Updates", json!({ "__interrupt__": asked })), ("Values", asking)]);
}

#[tokio::test]
async fn a_node_beside_a_question_finishes_and_does_not_run_again() {
    let runs = Count::default();
    let counter = runs.clone();
    let beside = move |_: Notes| {
        counter.up();
        async { Notes::update().log(["beside"]) }
    };
    let mut graph = StateGraph::new();
    graph.add_node("ask", asks(&["go?"])).add_node("beside", beside);
    let app = saved(graph.add_edge(START, "ask").add_edge(START, "beside"));
    let out = app.invoke(input()).thread("t").await.unwrap();
    assert_eq!((out.interrupts.len(), out.to_json()["log"].clone()), (1, json!(["beside"])));
    let out = app.invoke(Resume::value("yes")).thread("t").await.unwrap();
    assert_eq!((out.state.log.clone(), runs.get()), (vec!["yes".to_owned(), "beside".to_owned()], 1));
}

#[tokio::test]
async fn a_question_without_a_checkpointer_pauses_but_cannot_be_answered() {
    let app = StateGraph::new().add_node("ask", asks(&["go?"])).add_edge(START, "ask").compile().unwrap();
    assert_eq!(app.invoke(input()).await.unwrap().interrupts.len(), 1);
    let error = app.invoke(Resume::value("yes")).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Invalid, "a question can only be answered in a graph with a checkpointer")
    );
}

#[tokio::test]
async fn a_second_saver_with_the_same_storage_answers_too() {
    let saver = MemorySaver::new();
    let graph = || {
        StateGraph::new()
            .add_node("ask", asks(&["go?"]))
            .add_edge(START, "ask")
            .checkpointer(saver.clone())
            .compile()
            .unwrap()
    };
    graph().invoke(input()).thread("t").await.unwrap();
    assert_eq!(graph().invoke(Resume::value("yes")).thread("t").await.unwrap().state.log, ["yes"]);
}

#[tokio::test]
async fn a_command_may_lead_to_several_places() {
    let work = |Sent(n): Sent<i64>| async move { Notes::update().total(n) };
    let node = |_: Notes| async {
        let to: [Goto; 3] = ["b".into(), Send::new("work", 1).into(), Send::new("work", 20).into()];
        Command::<Notes>::new().goto_all(to).goto_all(["c"])
    };
    let mut graph = StateGraph::new();
    graph.add_node("a", node).add_node("b", says("b")).add_node("c", says("c"));
    let app = graph.add_node("work", work).add_edge(START, "a").compile().unwrap();
    let out = app.invoke(input()).await.unwrap();
    assert_eq!((out.state.log.join(" ").as_str(), out.state.total), ("b c", 21));
}

/// A node that asks in several scopes, in an order that depends on the attempt, and goes on as far as it can.
fn scopes(inside: Option<CompiledStateGraph<Notes>>) -> CompiledStateGraph<Notes> {
    let turns = Count::default();
    let node = move |_: Notes, cx: Context| {
        let (turns, inside) = (turns.clone(), inside.clone());
        async move {
            let mut keys = ["x", "y"];
            if turns.up() % 2 == 1 {
                keys.reverse();
            }
            let mut log = Vec::new();
            for key in keys {
                let scope = cx.scoped(key);
                log.push(match &inside {
                    None => format!("{key}={}{}", scope.interrupt::<String>(key)?, scope.interrupt::<String>("and?")?),
                    Some(inside) => {
                        let topic = Notes::update().topic(key);
                        format!("{key}={}", scope.invoke(inside, topic).await?.state.log.concat())
                    }
                });
            }
            log.sort();
            Ok::<_, superstep::BoxError>(Notes::update().log(log))
        }
    };
    saved(StateGraph::new().add_node("ask", node).add_edge(START, "ask"))
}

/// Runs to the end; each answer is the question in capitals.
async fn answered(app: &CompiledStateGraph<Notes>, by_id: bool) -> (Vec<String>, Vec<String>) {
    let mut out = app.invoke(input()).thread("t").await.unwrap();
    let mut asked = Vec::new();
    while let [question] = &*out.interrupts {
        assert!(asked.len() < 9, "it goes on asking: {asked:?}");
        let text: String = question.value_as().unwrap();
        let answer = text.to_uppercase();
        asked.push(text);
        let resume = if by_id { Resume::by_id([(question.id.clone(), answer)]) } else { Resume::value(answer) };
        out = app.invoke(resume).thread("t").await.unwrap();
    }
    (asked, out.state.log)
}

#[tokio::test]
async fn answers_stay_with_their_scope_whatever_is_asked_first_when_the_node_runs_again() {
    for by_id in [false, true] {
        let (asked, log) = answered(&scopes(None), by_id).await;
        assert_eq!(log, ["x=XAND?", "y=YAND?"], "{by_id}");
        assert_eq!(asked.len(), 4, "nothing is asked twice: {asked:?}");
    }
}

/// Answers of scopes lay behind those of the node, in an object with a name of its own: whoever answered with such an
/// object answered for a scope that had not asked yet.
#[tokio::test]
async fn an_answer_cannot_pass_for_those_of_a_scope() {
    let node = |_: Notes, cx: Context| async move {
        let first: serde_json::Value = cx.interrupt("which cup?")?;
        let _: u8 = cx.interrupt("how many?")?;
        let paid: String = cx.scoped("pay").interrupt("pay?")?;
        Ok::<_, Interrupted>(Notes::update().log([first.to_string(), paid]))
    };
    let app = saved(StateGraph::new().add_node("ask", node).add_edge(START, "ask"));
    let scopes = serde_json::json!({ "pay": { "given": ["yes"] } });
    for forged in
        [serde_json::json!({ "superstep:scopes": scopes }), serde_json::json!({ "given": [], "scopes": scopes })]
    {
        let thread = forged.to_string();
        app.invoke(input()).thread(&thread).await.unwrap();
        app.invoke(Resume::value(&forged)).thread(&thread).await.unwrap();
        let out = app.invoke(Resume::value(2)).thread(&thread).await.unwrap();
        assert_eq!(out.interrupts[0].value, "pay?");
        let out = app.invoke(Resume::value("no")).thread(&thread).await.unwrap();
        assert_eq!(out.state.log, [forged.to_string(), "no".to_owned()]);
    }
}

#[tokio::test]
async fn graphs_called_in_scopes_keep_their_own_questions_and_histories() {
    let ask = |notes: Notes, cx: Context| async move {
        Ok::<_, Interrupted>(Notes::update().log([cx.interrupt::<String>(notes.topic)?]))
    };
    for by_id in [false, true] {
        let inside = StateGraph::new().add_node("inside", ask).add_edge(START, "inside").compile().unwrap();
        let (asked, log) = answered(&scopes(Some(inside)), by_id).await;
        assert_eq!(log, ["x=X", "y=Y"], "{by_id}: {asked:?}");
    }
}

/// Two parts of a node ask side by side: both questions are open, and each has an id.
#[tokio::test]
async fn scopes_may_ask_at_the_same_time() {
    let node = |_: Notes, cx: Context| async move {
        let (x, y) = (cx.scoped("x").interrupt::<u8>("x?"), cx.scoped("y").interrupt::<u8>("y?"));
        Ok::<_, Interrupted>(Notes::update().log([format!("{} {}", x?, y?)]))
    };
    let app = saved(StateGraph::new().add_node("ask", node).add_edge(START, "ask"));
    let open = app.invoke(input()).thread("t").await.unwrap().interrupts;
    assert_eq!(open.iter().map(|question| question.value.clone()).collect::<Vec<_>>(), ["x?", "y?"]);
    let left = app.invoke(Resume::by_id([(open[1].id.clone(), 2)])).thread("t").await.unwrap().interrupts;
    assert_eq!(left, open[..1]);
    let error = app.invoke(Resume::value("one")).thread("t").await.unwrap_err();
    assert!(error.to_string().contains("the answer does not fit the question"), "{error}");
    let out = app.invoke(Resume::value(1)).thread("t").await.unwrap();
    assert_eq!(out.state.log, ["1 2"]);
}

/// Each save takes as many turns as the seed says, and notes when it is done.
#[derive(Clone, Default)]
struct Slow {
    seed: u64,
    begun: Count,
    ended: Arc<Mutex<Vec<usize>>>,
}

#[async_trait::async_trait]
impl Hook for Slow {
    async fn around(&self, _: &Call, serving: Serving<'_>) -> Result<(), CheckpointError> {
        let number = self.begun.up();
        let turns = (self.seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7 * number as u32) % 11;
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        self.ended.lock().unwrap().push(number);
        serving.await
    }
}

/// Two graphs in their nodes, one in a graph in its node, and two that a node runs at once; each asks in its first step.
fn asking_inside() -> StateGraph<Notes> {
    let child = |question: &'static [&'static str]| {
        StateGraph::new().add_node("ask", asks(question)).add_edge(START, "ask").compile().unwrap()
    };
    let (one, other) = (child(&["e?"]), child(&["f?"]));
    let runs_two = move |_: Notes, cx: Context| {
        let (one, other) = (one.clone(), other.clone());
        async move {
            let (one, other) = tokio::join!(cx.invoke(&one, input()), cx.invoke(&other, input()));
            one.and(other).map(|_| ())
        }
    };
    let around = StateGraph::new().add_node("inner", child(&["c?"])).add_edge(START, "inner").compile().unwrap();
    let mut graph = StateGraph::new();
    graph
        .add_node("a", child(&["a?"]))
        .add_node("b", asks(&["b?"]))
        .add_node("c", around)
        .add_node("d", child(&["d?"]));
    graph.add_node("e", runs_two);
    for node in ["a", "b", "c", "d", "e"] {
        graph.add_edge(START, node);
    }
    graph
}

/// Their order was that in which the graphs were done with saving: on a file it changed from run to run.
#[tokio::test]
async fn questions_of_tasks_that_do_not_wait_come_in_task_order_however_long_saves_take() {
    let mut ends = std::collections::HashSet::new();
    for seed in 0..40 {
        let slow = Slow { seed, ..Slow::default() };
        let app = asking_inside().checkpointer(Hooked::new(slow.clone())).compile().unwrap();
        let out = app.invoke(input()).thread("t").await.unwrap();
        let asked: Vec<_> = out.interrupts.iter().map(|question| question.value.clone()).collect();
        assert_eq!(asked, ["a?", "b?", "c?", "d?", "e?", "f?"], "seed {seed}");
        assert_eq!(app.thread("t").state().await.unwrap().interrupts, out.interrupts, "seed {seed}");
        ends.insert(slow.ended.lock().unwrap().clone());
    }
    assert!(ends.len() > 20, "the saves ended in {} orders", ends.len());
}

/// As in LangGraph: who waits for something else asks when that has come.
#[tokio::test]
async fn questions_of_tasks_that_wait_come_as_they_are_asked() {
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let (sender, receiver) = (Arc::new(Mutex::new(Some(sender))), Arc::new(Mutex::new(Some(receiver))));
    let late = move |_: Notes, cx: Context| {
        let released = receiver.lock().unwrap().take();
        async move {
            released.expect("it runs once").await?;
            Ok::<(), BoxError>(cx.interrupt::<()>("late?")?)
        }
    };
    let early = move |_: Notes, cx: Context| {
        let release = sender.lock().unwrap().take();
        async move {
            tokio::task::yield_now().await;
            release.expect("it runs once").send(()).unwrap();
            Ok::<(), BoxError>(cx.interrupt::<()>("early?")?)
        }
    };
    let mut inner = StateGraph::new();
    inner.add_node("late", late).add_edge(START, "late");
    let mut graph = StateGraph::new();
    graph.add_node("a", inner.compile().unwrap()).add_node("b", early).add_node("c", asks(&["at once?"]));
    let app = saved(graph.add_edge(START, "a").add_edge(START, "b").add_edge(START, "c"));
    let out = app.invoke(input()).thread("t").await.unwrap();
    let asked: Vec<_> = out.interrupts.iter().map(|question| question.value.clone()).collect();
    assert_eq!(asked, ["at once?", "early?", "late?"]);
}
