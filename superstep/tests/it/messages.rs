//! Messages in a state: merged by id, removed, and told apart.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use superstep::{
    AgentState, AgentStateUpdate, END, ErrorKind, IntoUpdate, MemorySaver, Message, MessageKind, START, State,
    StateGraph,
};

fn update(messages: Vec<Message>) -> AgentStateUpdate {
    AgentStateUpdate { messages: Some(messages) }
}

/// What is left of two messages after a node returned these.
async fn after(messages: Vec<Message>) -> Result<Vec<String>, superstep::Error> {
    let node = move |_: AgentState| {
        let messages = messages.clone();
        async move { update(messages) }
    };
    let app = StateGraph::<AgentState>::new()
        .add_node("n", node)
        .add_edge(START, "n")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let start = vec![Message::system("rules").with_id("s"), Message::user("hi").with_id("u")];
    app.invoke(update(start)).thread("t").await?;
    let seen = app.thread("t").state().await?;
    Ok(seen.state.messages.iter().map(|m| m.text().into_owned()).collect())
}

#[tokio::test]
async fn a_message_with_a_known_id_replaces_and_any_other_is_added() {
    let said = after(vec![Message::user("hello").with_id("u"), Message::assistant("hm")]).await.unwrap();
    assert_eq!(said, ["rules", "hello", "hm"]);
}

#[tokio::test]
async fn a_removal_takes_one_message_away_and_the_great_one_all_before_it() {
    assert_eq!(after(vec![Message::remove("s")]).await.unwrap(), ["hi"]);
    assert_eq!(
        after(vec![Message::assistant("lost"), Message::remove_all(), Message::user("new")]).await.unwrap(),
        ["new"]
    );
}

#[tokio::test]
async fn a_removal_of_what_is_not_there_is_an_error_that_names_it() {
    let error = after(vec![Message::remove("nobody")]).await.unwrap_err();
    let words = "field `messages`: there is no message with id `nobody` to remove (in what `n` wrote in step 1)";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Invalid, words));
}

#[tokio::test]
async fn kinds_of_messages_survive_a_thread() {
    let said =
        vec![Message::system("s"), Message::user("u"), Message::assistant("a"), Message::tool_result("c1", "42")];
    let app = StateGraph::<AgentState>::new()
        .add_node("n", async |_: AgentState| ())
        .add_edge(START, "n")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let out = app.invoke(update(said)).thread("t").await.unwrap();
    let seen = app.thread("t").state().await.unwrap();
    assert_eq!(seen.state.messages, out.state.messages);
    let [system, user, assistant, tool] = seen.state.messages.as_slice() else { panic!("four messages") };
    assert!(matches!(system.kind, MessageKind::System(_)), "{system:?}");
    assert!(matches!(user.kind, MessageKind::User(_)), "{user:?}");
    assert!(!matches!(assistant.kind, MessageKind::User(_) | MessageKind::System(_)), "{assistant:?}");
    assert_eq!(tool.text(), "42");
    assert!(serde_json::to_string(tool).unwrap().contains("c1"), "the call it answers is kept");
}

/// A conversation, and how many of the updates of its script were made.
#[derive(State, Clone, Debug, Default)]
struct Script {
    #[state(messages)]
    messages: Vec<Message>,
    turn: usize,
}

#[derive(Clone, Debug)]
enum Turn {
    Merge(Vec<Message>),
    Overwrite(Vec<Message>),
}

/// Plays the updates of a script, one in each step of a run.
async fn play(script: Vec<Turn>) -> Result<Vec<Message>, superstep::Error> {
    let turns = script.len();
    let node = move |s: Arc<Script>| {
        let turn = script[s.turn].clone();
        async move {
            let update = Script::update().turn(s.turn + 1);
            match turn {
                Turn::Merge(messages) => update.messages(messages).into_update(),
                Turn::Overwrite(messages) => update.overwrite(Script::MESSAGES, messages),
            }
        }
    };
    let app = StateGraph::<Script>::new()
        .add_node("n", node)
        .add_edge(START, "n")
        .add_conditional_edges("n", move |s: &Script| if s.turn < turns { "n" } else { END })
        .compile()
        .unwrap();
    Ok(app.invoke(Script::default()).await?.messages.clone())
}

/// The same in plain words: each message is looked for among all of them.
fn plain(script: &[Turn]) -> Option<Vec<Message>> {
    let mut list: Vec<Message> = Vec::new();
    for turn in script {
        let update = match turn {
            Turn::Merge(update) => update,
            Turn::Overwrite(all) => {
                list.clone_from(all);
                continue;
            }
        };
        if let Some(cut) = update.iter().rposition(|m| matches!(m.kind, MessageKind::RemoveAll)) {
            list = update[cut + 1..].to_vec();
            continue;
        }
        let mut removed = Vec::new();
        for message in update {
            let place = list.iter().rposition(|known| known.id == message.id);
            match (place, matches!(message.kind, MessageKind::Remove)) {
                (Some(place), true) => removed.push(place),
                (None, true) => return None,
                (Some(place), false) => {
                    removed.retain(|gone| *gone != place);
                    list[place] = message.clone();
                }
                (None, false) => list.push(message.clone()),
            }
        }
        let mut place = 0..;
        list.retain(|_| !place.next().is_some_and(|place| removed.contains(&place)));
    }
    Some(list)
}

/// Few ids, which meet again and again, or so many that an index of them has to grow.
fn scripts() -> impl Strategy<Value = Vec<Turn>> {
    let script = |ids: u8, longest: usize| {
        let said = |(id, text): (u8, u16)| Message::user(text.to_string()).with_id(format!("id{id}"));
        let message = (0..40u8, 0..ids, 0..1000u16).prop_map(move |(kind, id, text)| match kind {
            0 => Message::remove_all(),
            1..=4 => Message::remove(format!("id{id}")),
            _ => said((id, text)),
        });
        let few = vec(message, 0..5).prop_map(Turn::Merge);
        let many = vec((0..ids, 0..1000u16).prop_map(said), 0..longest);
        vec(prop_oneof![3 => few, 1 => many.clone().prop_map(Turn::Merge), 1 => many.prop_map(Turn::Overwrite)], 1..12)
    };
    prop_oneof![script(4, 4), script(200, 60)]
}

#[test]
fn messages_merge_as_if_each_were_looked_for_among_all() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let config = ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(script in scripts())| {
        let (expected, played) = (plain(&script), runtime.block_on(play(script)));
        prop_assert_eq!(played.ok(), expected);
    });
}

/// The index of ids took a list for the one that it knew, because it was as long and ended with the same message.
#[tokio::test]
async fn a_list_that_was_overwritten_is_not_taken_for_the_one_before_it() {
    let said = |id: &str, text: &str| Message::user(text).with_id(id);
    let script = vec![
        Turn::Merge(vec![said("a", "one"), said("z", "last")]),
        Turn::Overwrite(vec![said("b", "two"), said("z", "last")]),
        Turn::Merge(vec![said("b", "two, mended")]),
    ];
    assert_eq!(play(script).await.unwrap(), [said("b", "two, mended"), said("z", "last")]);
}

fn said(id: usize, text: &str) -> Message {
    Message::user(text).with_id(format!("m{id}"))
}

#[tokio::test]
async fn every_message_of_a_long_conversation_is_found_again() {
    let ids: Vec<usize> = (0..1_000).collect();
    let turns = |text: &str| -> Vec<Turn> {
        ids.chunks(7).map(|ids| Turn::Merge(ids.iter().map(|id| said(*id, text)).collect())).collect()
    };
    let mended: Vec<Message> = ids.iter().map(|id| said(*id, "mended")).collect();
    assert_eq!(play([turns("said"), turns("mended")].concat()).await.unwrap(), mended);
}

/// The hashes of these two ids are the same, as far as the index knows them.
#[tokio::test]
async fn two_ids_with_one_hash_are_two_messages() {
    let merge = |messages: Vec<Message>| Turn::Merge(messages);
    let script = [
        merge(vec![said(45_863, "one")]),
        merge(vec![said(97_927, "two")]),
        merge(vec![said(97_927, "two, mended"), said(45_863, "one, mended")]),
    ];
    assert_eq!(play(script.to_vec()).await.unwrap(), [said(45_863, "one, mended"), said(97_927, "two, mended")]);
    let script = [merge(vec![said(45_863, "one")]), merge(vec![Message::remove("m97927")])];
    assert!(play(script.to_vec()).await.is_err(), "the other one is not there");
}

/// Two nodes write in one step, in the order of their names; what overwrites counts alone.
#[tokio::test]
async fn an_overwrite_counts_alone_among_the_writes_of_a_step_and_messages_merge_with_it_after() {
    for (merges, overwrites) in [("a", "b"), ("b", "a")] {
        let app = StateGraph::<Script>::new()
            .add_node(merges, async |_: Arc<Script>| Script::update().messages([said(1, "lost")]))
            .add_node(overwrites, async |_: Arc<Script>| {
                Script::update().overwrite(Script::MESSAGES, vec![said(2, "two"), said(0, "last")])
            })
            .add_node("c", async |_: Arc<Script>| Script::update().messages([said(2, "two, mended")]))
            .add_edge(START, "a")
            .add_edge(START, "b")
            .add_edge(["a", "b"], "c")
            .compile()
            .unwrap();
        let out = app.invoke(Script { messages: vec![said(1, "one"), said(0, "last")], turn: 0 }).await.unwrap();
        assert_eq!(out.messages, [said(2, "two, mended"), said(0, "last")], "{overwrites} overwrites");
    }
}
