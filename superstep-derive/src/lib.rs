//! The macros of superstep: [`macro@State`] for the state of a graph, [`macro@Routes`] for its branches,
//! [`macro@tool`] for functions that models may call, [`macro@debug_node`] for functions that the compiler does not take
//! for nodes.
//!
//! A derive is a pipeline. `ast` finds the fields, `attr` reads the attributes, `valid` checks what they
//! say together and makes a `Model`, `expand` writes the code. Mistakes are collected on the way and
//! reported all at once, beside code that is as complete as it can be, so that one wrong
//! attribute does not become twenty errors elsewhere.

mod ast;
mod attr;
mod debug_node;
mod errors;
mod expand;
mod names;
mod routes;
mod setter;
mod tool;
mod valid;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct with named fields the state of a graph.
///
/// ```text
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Chat {
///     #[state(messages)]           messages: Vec<Message>,
///     #[state(append)]             log: Vec<String>,
///     #[state(sum)]                tokens: u64,
///     #[state(reduce = keep_best)] best: Option<Answer>,
///                                  topic: Option<String>,
///     #[state(untracked)]          cache: Arc<Catalog>,
/// }
///
/// Chat::update().log(["asked"]).topic("tea")
/// ```
///
/// Every field's type is `Clone + Default + Send + Sync + 'static`; the struct itself is `Clone`.
/// To be saved in checkpoints, every field but the untracked ones is `Serialize + DeserializeOwned`;
/// that is checked only where a state is saved.
///
/// # What it writes
///
/// - the implementations of `State`, of `Persist` and, with superstep's feature `schema`, of `StateSchema`;
/// - `ChatUpdate`, a partial `Chat` in which every field is optional, with one setter per field and
///   a `clear_..` for every `Option`. A setter of a field that collects takes items, and adds to those
///   it already has; the others set. It is `Debug` if every tracked field is;
/// - `Chat::update()`, an empty `ChatUpdate`;
/// - one constant per field, `Chat::LOG`, to name the field in an `Update`;
/// - `ChatWrite`, hidden, a write to one of the fields.
///
/// # Attributes of the struct
///
/// | attribute | meaning |
/// |---|---|
/// | `#[state(update = Name)]` | the name of the update struct instead of `ChatUpdate` |
/// | `#[state(version = 2)]` | the version of what is saved, 1 without it; `StateGraph::migrate` reads earlier ones |
/// | `#[state(crate = path)]` | where superstep is, if not at `::superstep` |
///
/// # Attributes of a field
///
/// At most one of these; without any, the field keeps its last value and two writers in one step are an error.
///
/// | attribute | the field |
/// |---|---|
/// | `#[state(append)]` | takes the items of a list, string, set or map |
/// | `#[state(delta)]` | as `append`, but empty from the start instead of absent |
/// | `#[state(messages)]` | merges chat messages by id |
/// | `#[state(sum)]` | adds |
/// | `#[state(max)]` | keeps the greatest |
/// | `#[state(reduce = path)]` | merges in place by a `fn(&mut T, T)` |
/// | `#[state(reduce = path, update = U)]` | merges in place by a `fn(&mut T, U)` |
/// | `#[state(reducer = value)]` | merges by a `Reducer<T>` |
/// | `#[state(reducer = value, update = U)]` | merges by a `Reducer<T, U>` |
/// | `#[state(any)]` | keeps the last writer's value for as long as somebody writes |
/// | `#[state(ephemeral)]` | keeps a value for one step |
/// | `#[state(topic)]` | collects the items of one step |
/// | `#[state(topic(accumulate))]` | collects items for good |
/// | `#[state(untracked)]` | lives in the run, never in a checkpoint |
///
/// Beside it, `#[state(rename = "name")]` sets the field's name in checkpoints and events, and `#[state(internal)]` keeps the
/// field to the graph's nodes: it is saved with the thread, and nodes read and write it, but no input writes it, and no
/// output, event, snapshot or schema shows it. A caller who holds a typed state sees it there, and may write it by hand with
/// `Thread::update`.
///
/// # Attributes of serde
///
/// A state is saved and shown field by field, each by its type's own `Serialize`; what serde is told about the
/// struct does not count. So `#[serde(skip)]`, `with`, `rename`, `rename_all`, `flatten` and their like are refused,
/// unless `#[state(..)]` says the same beside them: `untracked` for `skip`, `rename` for `rename`.
/// `#[serde(default)]` does no harm.
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    expand::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Makes a fieldless enum the answer of a conditional edge: each variant names a node.
///
/// ```text
/// #[derive(Routes)]
/// enum AfterPlan {
///     Search,                       // to node "search"
///     AskHuman,                     // to node "ask_human"
///     #[route("write")] Enough,     // to node "write"
///     #[route(END)] GiveUp,         // to the end
/// }
/// ```
///
/// The edge then knows every target: a node that is missing is a mistake that `compile` reports,
/// and a drawing shows what can happen. `#[route(crate = path)]` on the enum says where
/// superstep is, if not at `::superstep`.
#[proc_macro_derive(Routes, attributes(route))]
pub fn derive_routes(input: TokenStream) -> TokenStream {
    routes::derive(&parse_macro_input!(input as DeriveInput)).into()
}

/// Says what is wrong with a function that should be a node.
///
/// A function is taken as a node by its whole signature, so the compiler only says that it is none. With this attribute
/// each argument, the returned type, both sides of a `Result` and the future are asked by themselves, and what is wrong is
/// shown where it stands. It changes nothing in the function; take it away again when it compiles.
///
/// ```text
/// #[debug_node]
/// async fn reply(chat: Chat, store: Arc<dyn Store>) -> Result<ChatUpdate, Box<dyn Error>> { .. }
///                                   ^^^^^^^^^^^^^^               neither a node nor a path can ask for `Arc<dyn Store>`
///                                                                         ^^^^^^^^^^^^^^ cannot be the error of a node
/// ```
///
/// The state that the graph is over is that of the first argument. Where that is something else, as `Sent<T>` or a view, it
/// is named: `#[debug_node(state = Chat)]`. `#[debug_node(crate = path)]` says where superstep is, if not at `::superstep`.
#[proc_macro_attribute]
pub fn debug_node(said: TokenStream, function: TokenStream) -> TokenStream {
    debug_node::expand(said.into(), &parse_macro_input!(function as syn::ItemFn)).into()
}

/// Makes a function a tool that models can call.
///
/// ```text
/// /// How the weather is in a city.
/// #[tool]
/// async fn weather(
///     /// The city, in English.
///     city: String,
///     #[inject] store: StoreHandle,
/// ) -> Result<String, BoxError> { .. }
///
/// let tools = ToolNode::new([weather]);          // `weather` is the tool
/// let text = weather::run("Oslo".into(), store); // and this is the function
/// ```
///
/// The doc comments are what the model is told; the arguments must be `Deserialize + JsonSchema`, and may carry
/// attributes of both. Arguments with `#[inject]` are given by the run and stay invisible to the model: see
/// `FromToolContext`. `#[tool(name = "get_weather")]` tells the model another name; with `#[tool(return_direct)]` the
/// result is the agent's answer.
///
/// The tool is a value, as a constant is: a variable of the same name cannot be made where it can be seen. Arguments of
/// tools may have the names of tools.
#[proc_macro_attribute]
pub fn tool(said: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(said.into(), parse_macro_input!(function as syn::ItemFn)).into()
}
