//! Models that fail: asked again, or others in their place.

use std::collections::BTreeMap;
use std::time::Duration;

use superstep::{CompiledStateGraph, EventData, Mode};
use superstep_agent::middleware::{Fallback, RetryModel};
use superstep_agent::{ModelError, ModelErrorKind, ReactState, Reply, ScriptedModel, create_react_agent};

fn failing(kind: ModelErrorKind) -> Reply {
    ModelError::new(kind, "large", "no").into()
}

fn busy() -> Reply {
    failing(ModelErrorKind::Overloaded)
}

fn retrying(model: &ScriptedModel, retry: RetryModel) -> CompiledStateGraph<ReactState> {
    create_react_agent(model.clone(), ()).middleware(retry).compile().unwrap()
}

#[tokio::test]
async fn other_models_are_asked_in_turn_with_the_same_question() {
    let (large, small) = (ScriptedModel::new([busy()]), ScriptedModel::new([failing(ModelErrorKind::Auth)]));
    let tiny = ScriptedModel::new(["Hello."]);
    let fallback = Fallback::to(small.clone()).then(tiny.clone());
    let agent = create_react_agent(large.clone(), ()).prompt("Be brief.").middleware(fallback).compile().unwrap();
    let out = agent.invoke("hi").await.unwrap();
    assert_eq!(out.state.messages[1].text(), "Hello.");
    assert_eq!(large.requests(), tiny.requests());
    assert_eq!(small.requests().len(), 1);
}

#[tokio::test]
async fn other_models_are_asked_only_for_the_errors_that_were_named() {
    let other = ScriptedModel::new(["Hello."]);
    let fallback = Fallback::to(other.clone()).when(ModelError::is_retryable);
    let model = ScriptedModel::new([failing(ModelErrorKind::Auth)]);
    let agent = create_react_agent(model, ()).middleware(fallback).compile().unwrap();
    let error = agent.invoke("hi").await.unwrap_err();
    assert_eq!(error.downcast_ref::<ModelError>().unwrap().kind(), ModelErrorKind::Auth);
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn the_last_error_is_told_if_all_models_fail() {
    let fallback = Fallback::to(ScriptedModel::new([failing(ModelErrorKind::Refused)]));
    let agent = create_react_agent(ScriptedModel::new([busy()]), ()).middleware(fallback).compile().unwrap();
    let error = agent.invoke("hi").await.unwrap_err();
    assert_eq!(error.downcast_ref::<ModelError>().unwrap().kind(), ModelErrorKind::Refused);
}

/// The call for a structured response once went past all that is around the model.
#[tokio::test]
async fn another_model_is_asked_for_a_structured_response_too() {
    let small = ScriptedModel::new([r#"["tea"]"#]);
    let agent = create_react_agent(ScriptedModel::new([Reply::from("Tea."), busy()]), ())
        .response_format::<Vec<String>>()
        .middleware(Fallback::to(small.clone()));
    let out = agent.compile().unwrap().invoke("What shall I drink?").await.unwrap();
    assert_eq!(out.state.structured::<Vec<String>>().unwrap().unwrap(), ["tea"]);
    assert!(small.requests()[0].output.is_some());
}

#[tokio::test]
async fn words_that_broke_off_are_not_in_the_message_of_the_next_model() {
    let broken = ScriptedModel::new([Reply::BreakOff("The answer is ".into())]);
    let agent =
        create_react_agent(broken, ()).middleware(Fallback::to(ScriptedModel::new(["It is 42."]))).compile().unwrap();
    let mut events = agent.stream("hi").mode(Mode::Messages).start();
    let mut heard: BTreeMap<String, String> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let EventData::Message(said) = event.unwrap().data else { panic!("only messages were asked for") };
        *heard.entry(said.message.id.clone().unwrap()).or_default() += &said.message.text();
    }
    let answer = &events.output().unwrap().state.messages[1];
    assert_eq!(answer.text(), "It is 42.");
    assert_eq!(heard[answer.id.as_ref().unwrap()], "It is 42.");
    assert_eq!(heard.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_again_after_pauses_that_grow_up_to_the_longest() {
    let model = ScriptedModel::new([busy(), busy(), busy(), busy(), Reply::from("At last.")]);
    let retry = RetryModel::new()
        .attempts(5)
        .first_pause(Duration::from_secs(1))
        .factor(3.0)
        .longest_pause(Duration::from_secs(5))
        .jitter(false);
    let begin = tokio::time::Instant::now();
    let out = retrying(&model, retry).invoke("hi").await.unwrap();
    assert_eq!(out.state.messages[1].text(), "At last.");
    assert_eq!(begin.elapsed().as_secs(), 1 + 3 + 5 + 5);
}

#[tokio::test(start_paused = true)]
async fn jitter_adds_up_to_a_quarter_and_never_goes_beyond_the_longest_pause() {
    for longest in [60, 4] {
        let model = ScriptedModel::new([busy(), Reply::from("ok")]);
        let retry = RetryModel::new().first_pause(Duration::from_secs(4)).longest_pause(Duration::from_secs(longest));
        let begin = tokio::time::Instant::now();
        retrying(&model, retry).invoke("hi").await.unwrap();
        let most = Duration::from_secs(longest.min(5)) + Duration::from_millis(2);
        assert!((Duration::from_secs(4)..=most).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_asks_for_is_waited_for_but_not_longer_than_the_longest_pause() {
    let asks = |seconds| {
        let error = ModelError::new(ModelErrorKind::RateLimited, "large", "slow down");
        Reply::from(error.retry_after(Duration::from_secs(seconds)))
    };
    let retry = || RetryModel::new().jitter(false).longest_pause(Duration::from_secs(30));
    let begin = tokio::time::Instant::now();
    retrying(&ScriptedModel::new([asks(20), Reply::from("ok")]), retry()).invoke("hi").await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 20);
    let begin = tokio::time::Instant::now();
    let model = ScriptedModel::new([asks(31), Reply::from("never said")]);
    assert!(retrying(&model, retry()).invoke("hi").await.is_err());
    assert_eq!((begin.elapsed().as_secs(), model.requests().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn attempts_and_errors_are_as_many_and_as_meant() {
    let model = ScriptedModel::new([busy(), busy(), busy()]);
    assert!(retrying(&model, RetryModel::new().attempts(2)).invoke("hi").await.is_err());
    assert_eq!(model.requests().len(), 2);
    let model = ScriptedModel::new([failing(ModelErrorKind::Auth), Reply::from("ok")]);
    assert!(retrying(&model, RetryModel::new()).invoke("hi").await.is_err());
    assert_eq!(model.requests().len(), 1, "a wrong key stays wrong");
    let model = ScriptedModel::new([failing(ModelErrorKind::Auth), Reply::from("ok")]);
    let retry = RetryModel::new().when(|error| error.kind() == ModelErrorKind::Auth);
    assert!(retrying(&model, retry).invoke("hi").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_outer_middleware_sees_what_the_inner_could_not_mend() {
    let (large, small) = (ScriptedModel::new([busy(), busy()]), ScriptedModel::new([busy(), Reply::from("Hello.")]));
    let agent = create_react_agent(large.clone(), ())
        .middleware(Fallback::to(small.clone()))
        .middleware(RetryModel::new().attempts(2))
        .compile()
        .unwrap();
    assert_eq!(agent.invoke("hi").await.unwrap().state.messages[1].text(), "Hello.");
    assert_eq!((large.requests().len(), small.requests().len()), (2, 2));
}
