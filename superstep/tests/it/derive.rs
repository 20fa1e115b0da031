//! What `#[derive(State)]` makes.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use superstep::{
    Change, FieldKind, IntoUpdate, InvalidUpdate, Message, MessageLike, Persist, Put, Reducer, ReducerFn, RouteMap,
    Routes, Scratch, State, Update,
};

/// Not serialisable, not Debug.
#[expect(missing_debug_implementations, reason = "states need not be `Debug`")]
#[derive(Clone, Default)]
pub struct Catalog;

#[derive(Clone, Default)]
struct Secret;

struct Longest;
impl Reducer<String> for Longest {
    fn merge(&self, current: String, update: String) -> String {
        if update.len() > current.len() { update } else { current }
    }
}

static SHORTER: ReducerFn<fn(String, String) -> String> = ReducerFn(|a, b| if b.len() < a.len() { b } else { a });

fn keep_best(best: &mut Option<u32>, new: Option<u32>) {
    *best = (*best).max(new);
}

/// A conversation.
#[expect(missing_debug_implementations, reason = "states need not be `Debug`")]
#[derive(State, Clone, Default, Serialize, Deserialize)]
pub struct Chat {
    /// The messages.
    #[state(messages)]
    pub messages: Vec<Message>,
    /// The log.
    #[state(append)]
    pub log: Vec<String>,
    #[state(append)]
    text: String,
    #[state(append)]
    seen: BTreeMap<String, u8>,
    #[state(sum)]
    pub(crate) tokens: u64,
    #[state(max)]
    high: f32,
    #[state(reduce = keep_best)]
    best: Option<u32>,
    #[state(reducer = Longest)]
    longest: String,
    #[state(reducer = SHORTER)]
    shortest: String,
    #[state(reducer = ReducerFn(|a: u8, b: u8| a ^ b))]
    parity: u8,
    topic: Option<String>,
    #[state(any)]
    hint: String,
    #[state(ephemeral)]
    question: Option<String>,
    #[serde(skip)]
    #[state(untracked)]
    cache: Arc<Catalog>,
    #[state(topic)]
    jobs: Vec<u32>,
    #[state(topic(accumulate), rename = "all-jobs")]
    all_jobs: Vec<u32>,
    #[state(delta)]
    events: Vec<String>,
    r#type: String,
    #[serde(skip)]
    #[state(untracked)]
    secret: Secret,
    clear_topic: bool,
}

fn apply(state: &mut Chat, update: impl IntoUpdate<Chat>) -> Result<Vec<Change>, InvalidUpdate> {
    let update = update.into_update();
    let mut changes = Vec::new();
    for (ix, _) in Chat::fields(&()).iter().enumerate() {
        let puts: Vec<Put<_>> =
            update.puts().iter().filter(|p| Chat::field_of(&(), &p.write) == Some(ix)).cloned().collect();
        changes.push(state.update(&(), ix, &mut puts.into_iter(), &mut Scratch::default())?);
    }
    Ok(changes)
}

#[test]
fn setters_and_literals_make_updates() -> Result<(), InvalidUpdate> {
    let mut chat = Chat::empty(&());
    let update = Chat::update()
        .messages([Message::user("hi").with_id("1")])
        .messages(vec![Message::assistant("hello")])
        .log(["a"])
        .log(["b".to_owned()])
        .text("x")
        .text("y")
        .seen([("k".to_owned(), 1)])
        .tokens(5)
        .high(1.5)
        .best(3)
        .longest("long")
        .shortest("s")
        .parity(3)
        .topic("tea")
        .hint("h")
        .question("q")
        .cache(Catalog)
        .jobs([1, 2])
        .all_jobs([3])
        .events(["e"])
        .r#type("t")
        .clear_topic(true)
        .clear_question();
    apply(&mut chat, update.clone())?;
    apply(&mut chat, ChatUpdate { tokens: Some(2), best: Some(Some(1)), parity: Some(1), ..Default::default() })?;
    assert_eq!((chat.messages.len(), chat.log.join(""), chat.text.as_str(), chat.tokens), (2, "ab".into(), "xy", 7));
    assert_eq!((chat.best, chat.longest.as_str(), chat.shortest.as_str(), chat.parity), (Some(3), "long", "", 2));
    assert_eq!((chat.topic.as_deref(), chat.question, chat.r#type.as_str()), (Some("tea"), None, "t"));
    assert!((chat.high - 1.5).abs() < 0.01 && chat.clear_topic);
    assert_eq!((chat.all_jobs, chat.events), (vec![3], vec!["e".to_owned()]));
    assert!(chat.jobs.is_empty(), "a topic forgets");
    Ok(())
}

#[test]
fn names_and_kinds() {
    use FieldKind::*;
    let fields = Chat::fields(&());
    assert_eq!(fields[15].name(), "all-jobs");
    assert_eq!(Chat::ALL_JOBS.name(), "all-jobs");
    assert_eq!(Chat::TYPE.name(), "type");
    assert_eq!(fields[17].name(), "type");
    let kinds: Vec<_> = fields.iter().map(superstep::FieldSpec::kind).collect();
    assert_eq!(
        kinds,
        [
            Messages,
            Append,
            Append,
            Append,
            Reducer,
            Reducer,
            Reducer,
            Reducer,
            Reducer,
            Reducer,
            LastValue,
            AnyValue,
            Ephemeral,
            Untracked,
            Topic,
            TopicAccumulate,
            Delta,
            LastValue,
            Untracked,
            LastValue
        ]
    );
}

#[test]
fn overwrite_and_two_writers() {
    let mut chat = Chat { log: vec!["old".into()], ..Chat::default() };
    apply(&mut chat, Chat::update().topic("x").overwrite(Chat::LOG, vec!["new".to_owned()])).unwrap();
    assert_eq!(chat.log, ["new"]);
    let twice = Update::<Chat>::from(Chat::update().topic("a")).and(Chat::update().topic("b"));
    let error = apply(&mut chat, twice).unwrap_err();
    assert!(error.to_string().contains("topic"), "{error}");
    let update: Update<Chat> = Update::new().set(Chat::TOPIC, Some("tea".to_owned()));
    assert_eq!(update.get(Chat::TOPIC), Some(&Some("tea".to_owned())));
    assert_eq!(update.get(Chat::LOG), None);
}

#[test]
fn fields_and_writes_survive_saving() {
    let mut chat = Chat { log: vec!["a".into()], tokens: 4, ..Chat::default() };
    chat.messages.push(Message::user("hi").with_id("1"));
    let mut read = Chat::default();
    for ix in 0..Chat::fields(&()).len() {
        let mut bytes = Vec::new();
        chat.encode_field(&(), ix, &mut bytes).unwrap();
        read.decode_field(&(), ix, &bytes).unwrap();
        let write = chat.read(&(), ix).unwrap();
        let mut bytes = Vec::new();
        Chat::encode_write(&(), &write, &mut bytes).unwrap();
        let again = Chat::decode_write(&(), ix, &bytes).unwrap();
        assert_eq!(Chat::field_of(&(), &again), Some(ix));
    }
    assert_eq!((read.log, read.tokens, read.messages), (chat.log, 4, chat.messages));
    let error = Chat::default().decode_field(&(), 4, b"\xa3abc").unwrap_err();
    assert!(error.to_string().contains("msgpack"), "{error}");
    assert!(Chat::default().decode_field(&(), 99, b"").is_err());
    assert!(chat_read_none());
}

fn chat_read_none() -> bool {
    let mut chat = Chat { tokens: 3, ..Chat::default() };
    chat.reset(&(), 4);
    chat.reset(&(), 400);
    chat.tokens == 0 && chat.read(&(), 400).is_none()
}

#[test]
fn messages_get_ids_and_are_shown() {
    let mut write = Chat::update().messages([Message::user("hi")]).into_update().puts()[0].write.clone();
    Chat::prepare(&(), &mut write);
    let shown = Chat::messages(&write);
    assert!(shown[0].id.is_some());
    let chat = Chat { messages: shown.clone(), ..Chat::default() };
    assert_eq!(chat.message_ids(), [shown[0].id.clone().unwrap()]);
    assert!(Chat::messages(&Chat::update().log(["x"]).into_update().puts()[0].write).is_empty());
}

mod own_message {
    use super::*;
    #[derive(Clone, Default)]
    pub(crate) struct Message(Option<String>);
    impl MessageLike for Message {
        fn id(&self) -> Option<&str> {
            self.0.as_deref()
        }
        fn set_id(&mut self, id: String) {
            self.0 = Some(id);
        }
        fn is_removal(&self) -> bool {
            false
        }
        fn removes_all(&self) -> bool {
            false
        }
    }
    #[derive(State, Clone)]
    pub(crate) struct Talk {
        #[state(messages)]
        said: Vec<Message>,
    }
    #[test]
    fn a_message_type_of_ones_own() {
        let mut write = Talk::update().said([Message(None)]).into_update().puts()[0].write.clone();
        Talk::prepare(&(), &mut write);
        assert!(Talk::messages(&write).is_empty());
        assert!(Talk::empty(&()).message_ids().is_empty());
    }
}

#[expect(missing_debug_implementations, reason = "states need not be `Debug`")]
#[derive(State, Clone, Default)]
#[state(update = Patch)]
/// Generic.
pub struct Generic<T: Clone + Default + Send + Sync + 'static = String, const N: usize = 3> {
    value: T,
    #[state(append)]
    /// Many.
    pub many: Vec<T>,
    maybe: Option<T>,
    #[state(untracked)]
    count: std::marker::PhantomData<[u8; N]>,
}

/// Bounds are asked of the impls, not of the struct.
#[derive(State, Clone)]
struct Loose<T>
where
    T: Copy,
{
    #[state(sum)]
    total: T,
    #[state(max)]
    top: T,
    #[state(append)]
    all: Vec<T>,
}

fn saves<S: Persist>() {}

#[test]
fn generics() {
    let patch: Patch<String, 7> = Generic::update().value("x").many(["y"]).maybe("z").clear_maybe();
    let update = patch.overwrite(Generic::MANY, vec![]);
    assert_eq!(update.puts().len(), 4);
    saves::<Generic<String, 5>>();
    saves::<Loose<u8>>();
    saves::<Chat>();
    let loose = Loose::<u8>::update().total(3).top(4).all([1, 2]);
    assert_eq!(IntoUpdate::into_update(loose).puts().len(), 3);
    let whole: Update<Loose<u8>> = Loose::<u8>::empty(&()).into_update();
    assert_eq!(whole.puts().len(), 3);
}

/// A state that cannot be saved is fine until it is saved.
#[derive(State, Clone)]
struct Unsaved {
    catalog: Option<Catalog>,
    secret: SecretBox,
}
#[derive(Clone, Default)]
struct SecretBox(Secret);

#[derive(State, Clone)]
struct Nothing {}
#[derive(State, Clone)]
struct Unit;
#[derive(State, Clone)]
struct One {
    overwrite: u8,
}

#[test]
fn small_states() {
    assert!(Nothing::fields(&()).is_empty() && Unit::fields(&()).is_empty());
    assert_eq!(Unsaved::update().catalog(Catalog).into_update().puts().len(), 1);
    assert_eq!(One::update().overwrite(3).into_update().get(One::OVERWRITE), Some(&3));
    saves::<Nothing>();
    let _ = (Unsaved::empty(&()).secret, Unsaved::empty(&()).catalog, One::empty(&()).overwrite);
}

macro_rules! by_macro {
    ($name:ident, $ty:ty) => {
        #[derive(State, Clone)]
        struct $name {
            #[state(append)]
            list: $ty,
            fixed: u8,
            #[state(reduce = keep_best)]
            best: Option<u32>,
        }
    };
}
by_macro!(Made, Vec<String>);

#[test]
fn structs_made_by_macros() {
    let update = Made::update().list(["x"]).fixed(1).best(2);
    assert_eq!(update.into_update().puts().len(), 3);
    let made = Made::empty(&());
    assert!(made.list.is_empty() && made.fixed == 0 && made.best.is_none());
}

mod elsewhere {
    pub(crate) use superstep as renamed;
}
#[derive(State, Clone)]
#[state(crate = elsewhere::renamed)]
struct Renamed {
    x: u8,
}

#[derive(Routes)]
enum AfterPlan {
    Search,
    AskHuman,
    #[route("write")]
    Enough,
    #[route(END)]
    GiveUp,
}

#[test]
fn routes() {
    assert_eq!(AfterPlan::TARGETS, ["search", "ask_human", "write", "__end__"]);
    let ways = [AfterPlan::Search, AfterPlan::AskHuman, AfterPlan::Enough, AfterPlan::GiveUp];
    assert_eq!(ways.map(|way| way.target()), ["search", "ask_human", "write", "__end__"]);
    assert_eq!(Renamed::empty(&()).x, 0);
}

#[cfg(feature = "schema")]
#[test]
fn schema() {
    use superstep::StateSchema;
    #[derive(State, Clone)]
    struct Described {
        #[state(append)]
        log: Vec<String>,
        n: Option<u8>,
        #[state(untracked)]
        c: Catalog,
    }
    let schema = Described::json_schema();
    assert_eq!(schema["required"], serde_json::json!(["log", "n"]));
    assert_eq!(schema["properties"]["log"]["items"]["type"], "string");
    let input = Described::input_schema();
    assert_eq!(input["title"], "DescribedUpdate");
    assert!(input.get("required").is_none());
    let d = Described::empty(&());
    let _ = (d.log, d.n, d.c);
}

#[test]
fn an_update_shows_what_it_writes() {
    let update = Chat::update().log(["asked"]).topic("tea").cache(Catalog);
    assert_eq!(format!("{update:?}"), r#"ChatUpdate { log: ["asked"], topic: Some("tea"), cache: .., .. }"#);
    assert_eq!(format!("{:?}", Chat::update()), "ChatUpdate { .. }");
}
