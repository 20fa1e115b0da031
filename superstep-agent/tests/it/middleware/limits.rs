//! Limits on what an agent may use up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{CompiledStateGraph, EventData, MemorySaver, Message, Mode, Resume, Usage};
use superstep_agent::middleware::{
    Approval, ApprovalAnswer, Decision, Decisions, HistoryLimit, LimitReached, Limits, OnLimit, Per, Summarize,
};
use superstep_agent::team::agent_as_tool;
use superstep_agent::{ReactState, ScriptedModel, create_react_agent};

use super::{Noting, call, calls, texts, using};

/// A model that never has enough, and takes ten tokens each time.
fn greedy() -> ScriptedModel {
    ScriptedModel::thinking(|_| using(calls([call("c", "search", json!({}))]), Usage::new(7, 3)))
}

fn searching(model: &ScriptedModel, limits: Limits) -> (Noting, CompiledStateGraph<ReactState>) {
    let search = Noting::new("search");
    let agent = create_react_agent(model.clone(), [search.clone()])
        .middleware(limits)
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    (search, agent)
}

fn last(messages: &[Message]) -> String {
    messages.last().unwrap().text().into_owned()
}

#[tokio::test]
async fn a_limit_per_run_begins_anew_when_a_human_speaks_and_one_per_thread_does_not() {
    let model = greedy();
    let (_, agent) = searching(&model, Limits::new().model_calls(Per::Run, 2).model_calls(Per::Thread, 5));
    for (asked, why) in [(2, "2 model calls per run"), (4, "2 model calls per run"), (5, "5 model calls per thread")] {
        let out = agent.invoke("Go!").thread("t").await.unwrap();
        assert_eq!(last(&out.state.messages), format!("I stop here: the limit of {why} is reached."));
        assert_eq!(model.requests().len(), asked);
    }
    agent.invoke("Go!").thread("t").await.unwrap();
    assert_eq!(model.requests().len(), 5, "a thread that is used up asks no model");
    agent.invoke("Go!").thread("another").await.unwrap();
    assert_eq!(model.requests().len(), 7);
}

#[tokio::test]
async fn tokens_and_cost_are_those_of_the_answers() {
    let tokens = Limits::new().tokens(Per::Run, 25);
    let cost = Limits::new().cost(Per::Thread, 1.0, |usage| if usage.output == 3 { 0.3 } else { 0.0 });
    for (limits, asked, why) in [(tokens, 3, "25 tokens per run"), (cost, 4, "a cost of 1 per thread")] {
        let model = greedy();
        let (search, agent) = searching(&model, limits);
        let out = agent.invoke("Go!").thread("t").await.unwrap();
        assert_eq!(last(&out.state.messages), format!("I stop here: the limit of {why} is reached."));
        assert_eq!(model.requests().len(), asked);
        assert_eq!(search.calls().len(), asked, "what was asked for before is done");
    }
}

#[tokio::test]
async fn a_limit_can_be_an_error_that_the_caller_can_tell() {
    let (_, agent) = searching(&greedy(), Limits::new().model_calls(Per::Run, 1).on_limit(OnLimit::Fail));
    let error = agent.invoke("Go!").thread("t").await.unwrap_err();
    assert_eq!(error.downcast_ref::<LimitReached>().unwrap().limit(), "1 model calls per run");
    let limits = Limits::new().calls_of("search", Per::Run, 0).on_limit(OnLimit::Fail);
    let (search, agent) = searching(&greedy(), limits);
    let error = agent.invoke("Go!").thread("t").await.unwrap_err();
    assert_eq!(error.downcast_ref::<LimitReached>().unwrap().limit(), "0 calls of `search` per run");
    assert!(search.calls().is_empty());
}

fn three_at_once() -> ScriptedModel {
    let wishes = ["a", "b", "c"].map(|id| call(id, "search", json!({ "for": id })));
    ScriptedModel::new([calls(wishes), Message::assistant("Done.")])
}

#[tokio::test]
async fn a_limit_of_tool_calls_holds_for_calls_that_are_made_at_once() {
    let refusing = Limits::new().tool_calls(Per::Run, 2).on_limit(OnLimit::Refuse);
    let (search, agent) = searching(&three_at_once(), refusing);
    let said = agent.invoke("Go!").thread("t").await.unwrap().state.messages;
    assert_eq!(search.calls(), [json!({ "for": "a" }), json!({ "for": "b" })]);
    let refused = said.iter().find(|message| message.answers() == Some("c")).unwrap();
    assert!(refused.is_error());
    assert_eq!(refused.text(), "Not called: the limit of 2 tool calls per run is reached.");
    assert_eq!(last(&said), "Done.", "the model goes on");
}

#[tokio::test]
async fn a_soft_stop_answers_all_open_calls_and_says_why() {
    let (search, agent) = searching(&three_at_once(), Limits::new().calls_of("search", Per::Thread, 2));
    let said = agent.invoke("Go!").thread("t").await.unwrap().state.messages;
    assert_eq!(search.calls(), [] as [Value; 0]);
    let answered: Vec<&str> = said.iter().filter_map(Message::answers).collect();
    assert_eq!(answered, ["a", "b", "c"]);
    assert_eq!(last(&said), "I stop here: the limit of 2 calls of `search` per thread is reached.");
    assert!(agent.thread("t").state().await.unwrap().is_done());
}

#[tokio::test]
async fn only_calls_of_the_named_tool_and_only_those_that_were_made_count() {
    let wishes = || calls([call("l", "look", json!({})), call("s", "search", json!({}))]);
    let model = ScriptedModel::new([wishes(), wishes(), wishes(), Message::assistant("Done.")]);
    let (look, search) = (Noting::new("look"), Noting::new("search"));
    let agent = create_react_agent(model, [look.clone(), search.clone()])
        .middleware(Limits::new().calls_of("search", Per::Run, 1).on_limit(OnLimit::Refuse))
        .middleware(Approval::new().tool("search", Decisions::all()))
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    agent.invoke("Go!").thread("t").await.unwrap();
    let answer = |decision| Resume::value(ApprovalAnswer::new([decision]));
    agent.invoke(answer(Decision::reject("not yet"))).thread("t").await.unwrap();
    assert_eq!(search.calls().len(), 0);
    agent.invoke(answer(Decision::approve())).thread("t").await.unwrap();
    assert_eq!(search.calls().len(), 1, "a rejected call used up nothing");
    let out = agent.invoke(answer(Decision::approve())).thread("t").await.unwrap();
    assert_eq!((search.calls().len(), look.calls().len()), (1, 3));
    assert_eq!(last(&out.state.messages), "Done.");
}

#[tokio::test]
async fn limits_of_several_kinds_can_be_in_one_agent() {
    let model = greedy();
    let search = Noting::new("search");
    let agent = create_react_agent(model.clone(), [search.clone()])
        .middleware(Limits::new().model_calls(Per::Run, 4))
        .middleware(Limits::new().named("searches").tool_calls(Per::Run, 2).on_limit(OnLimit::Refuse))
        .compile()
        .unwrap();
    let out = agent.invoke("Go!").await.unwrap();
    assert_eq!((model.requests().len(), search.calls().len()), (4, 2));
    assert_eq!(last(&out.state.messages), "I stop here: the limit of 4 model calls per run is reached.");
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Weather {
    celsius: f64,
}

/// An agent that answers in words and then in a form; each call takes ten tokens, and the first form does not fit.
fn forecaster(limits: Limits) -> (ScriptedModel, CompiledStateGraph<ReactState>) {
    let model = ScriptedModel::thinking(|request| {
        let is_corrected = request.messages.iter().any(|message| message.text().contains("does not fit"));
        let words = match (&request.output, is_corrected) {
            (None, _) => "It is warm.",
            (Some(_), false) => r#"{"degrees": 21}"#,
            (Some(_), true) => r#"{"celsius": 21}"#,
        };
        using(Message::assistant(words), Usage::new(7, 3))
    });
    let agent = create_react_agent(model.clone(), ())
        .response_format::<Weather>()
        .middleware(limits)
        .checkpointer(MemorySaver::new());
    (model, agent.compile().unwrap())
}

#[tokio::test]
async fn a_structured_response_is_not_asked_for_beyond_a_limit() {
    let (model, agent) = forecaster(Limits::new().model_calls(Per::Run, 1));
    let out = agent.invoke("How warm is it?").thread("t").await.unwrap();
    let stopped = "I stop here: the limit of 1 model calls per run is reached.";
    assert_eq!(texts(&out.state.messages), ["How warm is it?", "It is warm.", stopped]);
    assert!(out.state.structured_response.is_none());
    assert_eq!(model.requests().len(), 1);

    let (model, agent) = forecaster(Limits::new().tokens(Per::Run, 10).on_limit(OnLimit::Fail));
    let error = agent.invoke("How warm is it?").thread("t").await.unwrap_err();
    assert_eq!(error.downcast_ref::<LimitReached>().unwrap().limit(), "10 tokens per run");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn all_calls_for_a_structured_response_count() {
    for limits in [Limits::new().model_calls(Per::Thread, 3), Limits::new().tokens(Per::Thread, 30)] {
        let (model, agent) = forecaster(limits);
        let out = agent.invoke("How warm is it?").thread("t").await.unwrap();
        assert!(out.state.structured_response.is_some());
        assert_eq!(model.requests().len(), 3, "the words, a form that does not fit, and one that does");
        let out = agent.invoke("And now?").thread("t").await.unwrap();
        assert!(last(&out.state.messages).starts_with("I stop here"), "{:?}", texts(&out.state.messages));
        assert_eq!(model.requests().len(), 3);
    }
}

#[tokio::test]
async fn what_a_response_took_is_noted_without_saying_anything_again() {
    let (_, agent) = forecaster(Limits::new().model_calls(Per::Run, 9));
    let mut events = agent.stream("How warm is it?").thread("t").mode(Mode::Messages).start();
    let mut heard = String::new();
    while let Some(event) = events.next().await {
        let EventData::Message(said) = event.unwrap().data else { panic!("only messages were asked for") };
        heard += &said.message.text();
    }
    assert_eq!(heard, r#"It is warm.{"degrees": 21}{"celsius": 21}"#);
    assert_eq!(texts(&events.output().unwrap().state.messages), ["How warm is it?", "It is warm."]);
}

/// An agent that lets an expert search once; each call of a model takes ten tokens.
fn asking_an_expert(limits: Limits) -> (ScriptedModel, CompiledStateGraph<ReactState>) {
    let says = |message| using(message, Usage::new(7, 3));
    let search = says(calls([call("s", "search", json!({}))]));
    let expert = ScriptedModel::new([search, says(Message::assistant("Oolong."))]);
    let expert = create_react_agent(expert, [Noting::new("search")]).name("expert").compile().unwrap();
    let ask = says(calls([call("e", "expert", json!({ "request": "Which tea?" }))]));
    let look = says(calls([call("l", "look", json!({}))]));
    let model = ScriptedModel::new([ask, look, says(Message::assistant("Oolong it is."))]);
    let agent = create_react_agent(model.clone(), [Noting::new("look")])
        .tool(agent_as_tool(expert, "expert", "Knows tea."))
        .middleware(limits)
        .checkpointer(MemorySaver::new());
    (model, agent.compile().unwrap())
}

#[tokio::test]
async fn what_an_agent_takes_that_is_called_as_a_tool_counts_for_its_caller() {
    let price = |usage: &Usage| f64::from(u32::try_from(usage.total()).unwrap()) / 10.0;
    let cost = Limits::new().cost(Per::Thread, 3.0, price);
    for limits in [Limits::new().model_calls(Per::Run, 3), Limits::new().tokens(Per::Thread, 30), cost] {
        let (model, agent) = asking_an_expert(limits);
        let out = agent.invoke("What shall I drink?").thread("t").await.unwrap();
        assert_eq!(out.state.messages[2].text(), "Oolong.");
        assert!(last(&out.state.messages).starts_with("I stop here"), "{:?}", texts(&out.state.messages));
        assert_eq!(model.requests().len(), 1);
    }
    let (model, agent) = asking_an_expert(Limits::new().tool_calls(Per::Run, 2).on_limit(OnLimit::Refuse));
    let out = agent.invoke("What shall I drink?").thread("t").await.unwrap();
    let refused = "Not called: the limit of 2 tool calls per run is reached.";
    assert_eq!(texts(&out.state.messages).split_off(2), ["Oolong.", "", refused, "Oolong it is."]);
    assert_eq!(model.requests().len(), 3);
}

/// A summary takes the messages away that limits are counted by: it has to remember what they took.
#[tokio::test]
async fn limits_hold_across_a_summary() {
    let model = greedy();
    let short = || using(Message::assistant("They search."), Usage::new(5, 5));
    let agent = create_react_agent(model.clone(), [Noting::new("search")])
        .middleware(Summarize::new(ScriptedModel::thinking(move |_| short()), HistoryLimit::Messages(4)).keep(2))
        .middleware(Limits::new().model_calls(Per::Run, 7).tokens(Per::Thread, 200))
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let out = agent.invoke("Go!").thread("t").await.unwrap();
    assert_eq!(last(&out.state.messages), "I stop here: the limit of 7 model calls per run is reached.");
    assert!(out.state.messages.len() <= 6, "{:?}", texts(&out.state.messages));
    let first = model.requests().len();
    assert!((4..7).contains(&first), "calls for summaries are calls of a model, too: {first}");
    let mut runs = 1;
    while !last(&agent.invoke("More!").thread("t").await.unwrap().state.messages).contains("200 tokens per thread") {
        runs += 1;
        assert!(runs < 10, "the thread's limit is forgotten");
    }
}
