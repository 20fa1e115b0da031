//! The graph below state graphs: channels, and nodes that subscribe to them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::cache::Cache;
use crate::call::{AnyNode, Call, Context, NodeFuture, RetryPolicy, TimeoutPolicy};
use crate::channel::Channel;
use crate::checkpoint::Checkpointer;
use crate::error::{BoxError, BuildError, CompilationError, Hint};
use crate::graph::build::Settings;
use crate::graph::compile::{CompiledStateGraph, check_cache, check_limits, finish, node_plan, reserved_fields};
use crate::index::{ChannelIx, Indexed, Ix};
use crate::json::{JsonFields, JsonState, JsonWrite};
use crate::names::PREGEL_NAME;
use crate::node::{CachePolicy, FromContext, NodeRules, Outcome};
use crate::plan::{GraphCore, InputMode, NameTable, Persistence};
use crate::state::erased::{StateType, Typed};
use crate::state::{Codec, FieldSpec, Given, Put, State};
use crate::store::Store;
use crate::view::Fields;

type StepFuture = Pin<Box<dyn Future<Output = Result<Value, BoxError>> + Send>>;

/// What a node does with a value. The context is made only if a step of the node asks for it.
#[derive(Clone)]
struct Step {
    run: Arc<dyn Fn(Value, Option<&Context>) -> StepFuture + Send + Sync>,
    asks: bool,
}

type Map = Arc<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

/// A node of a [`Pregel`] graph: what wakes it, what it reads, what it does, where it writes.
///
/// ```
/// use serde_json::{json, Value};
/// use superstep::NodeBuilder;
/// let double = NodeBuilder::new()
///     .subscribe_only("in")
///     .then(async |v: Value| Ok(json!(v.as_i64().unwrap_or(0) * 2)))
///     .write_to("out");
/// # let _ = double;
/// ```
#[derive(Clone, Default)]
#[must_use = "a node does nothing until it is added to a graph"]
pub struct NodeBuilder {
    triggers: Vec<String>,
    reads: Vec<String>,
    single: bool,
    steps: Vec<Step>,
    writes: Vec<(String, Write)>,
    metadata: BTreeMap<String, Value>,
    retry: Vec<RetryPolicy>,
    cache: Option<CachePolicy<JsonState>>,
    timeout: Option<TimeoutPolicy>,
}

crate::debug::debug_parts!([] NodeBuilder, "NodeBuilder", this => { triggers: this.triggers, reads: this.reads });

#[derive(Clone)]
enum Write {
    Result,
    Mapped(Map),
    Constant(Value),
}

impl NodeBuilder {
    /// A node that nothing wakes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Woken by one channel, whose bare value is the input.
    pub fn subscribe_only(mut self, channel: impl Into<String>) -> Self {
        let channel = channel.into();
        self.triggers.push(channel.clone());
        self.reads.push(channel);
        self.single = self.triggers.len() == 1;
        self
    }

    /// Woken by these channels; the input is an object of them.
    pub fn subscribe_to<N: Into<String>>(mut self, channels: impl IntoIterator<Item = N>) -> Self {
        for channel in channels {
            let channel = channel.into();
            self.triggers.push(channel.clone());
            self.reads.push(channel);
        }
        self.single = false;
        self
    }

    /// Reads these channels too, without being woken by them.
    pub fn read_from<N: Into<String>>(mut self, channels: impl IntoIterator<Item = N>) -> Self {
        self.reads.extend(channels.into_iter().map(Into::into));
        self.single = false;
        self
    }

    /// Does this with the input, or with what the step before gave. After the value it may ask for what nodes may ask for:
    /// a [`Context`], a [`StoreHandle`](crate::StoreHandle), a [`Runtime`](crate::Runtime) and so on.
    ///
    /// ```
    /// use serde_json::{json, Value};
    /// use superstep::{Context, LastValue, MemoryStore, NodeBuilder, Pregel, Store, StoreHandle};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let keep = NodeBuilder::new().subscribe_only("in").then(async |value: Value, cx: Context, store: StoreHandle| {
    ///     store.put(["kept"], "last", value.clone()).await?;
    ///     cx.emit("kept").await;
    ///     Ok(value)
    /// });
    /// let store = MemoryStore::new();
    /// let app = Pregel::builder()
    ///     .channel("in", LastValue::default())
    ///     .node("keep", keep)
    ///     .input(["in"])
    ///     .store(store)
    ///     .build()?;
    /// app.invoke(json!({ "in": 7 })).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn then<M>(mut self, run: impl StepFn<M>) -> Self {
        self.steps.push(Step { asks: run.asks(), run: Arc::new(move |value, cx| run.start(value, cx)) });
        self
    }

    /// Writes the result to a channel.
    pub fn write_to(mut self, channel: impl Into<String>) -> Self {
        self.writes.push((channel.into(), Write::Result));
        self
    }

    /// Writes what a function makes of the result; nothing if it gives `None`.
    pub fn write_mapped(
        mut self,
        channel: impl Into<String>,
        map: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        self.writes.push((channel.into(), Write::Mapped(Arc::new(map))));
        self
    }

    /// Writes a fixed value.
    pub fn write_value(mut self, channel: impl Into<String>, value: impl Into<Value>) -> Self {
        self.writes.push((channel.into(), Write::Constant(value.into())));
        self
    }

    /// Says something about the node.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Runs it again when it fails.
    pub fn add_retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry.push(policy);
        self
    }

    /// Keeps its results.
    pub fn add_cache_policy(mut self, policy: CachePolicy<JsonState>) -> Self {
        self.cache = Some(policy);
        self
    }

    /// Limits how long an attempt may take.
    pub fn set_timeout(mut self, timeout: impl Into<TimeoutPolicy>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    fn boxed(self) -> AnyNode {
        let run = move |call: Call<'_>| -> NodeFuture {
            let input = self.input(&call);
            let (steps, writes) = (self.steps.clone(), self.writes.clone());
            let cx = steps.iter().any(|step| step.asks).then(|| (call.context)());
            Box::pin(async move {
                let mut value = input?;
                for step in steps {
                    value = (step.run)(value, cx.as_ref()).await?;
                }
                let written = |(channel, write): &(String, Write)| {
                    let value = match write {
                        Write::Result => Some(value.clone()).filter(|v| !v.is_null()),
                        Write::Mapped(map) => map(&value),
                        Write::Constant(constant) => Some(constant.clone()),
                    };
                    value.map(|v| Put::merge(JsonWrite::new(channel.as_str(), v)))
                };
                Ok(Outcome::<JsonState> { puts: writes.iter().filter_map(written).collect(), ..Outcome::none() }
                    .erased())
            })
        };
        AnyNode::new("", run)
    }

    /// What it reads, or what it was sent.
    fn input(&self, call: &Call<'_>) -> Result<Value, BoxError> {
        let state = match call.input {
            Given::State(state) => state,
            Given::Sent(payload) => return Ok(payload.to_json()?),
        };
        let read = |name: &String| state.get::<JsonState>().get(call.typed::<JsonState>().schema(), name).cloned();
        if self.single {
            return Ok(self.reads.first().and_then(read).unwrap_or_default());
        }
        Ok(Value::Object(self.reads.iter().filter_map(|name| Some((name.clone(), read(name)?))).collect()))
    }
}

/// An async function that can be a step of a [`NodeBuilder`]: a value, then what it asks for. You rarely name it.
///
/// ```
/// use serde_json::Value;
/// use superstep::{BoxError, Context, StepFn};
/// fn is_a_step<M>(_: impl StepFn<M>) {}
/// async fn plain(value: Value) -> Result<Value, BoxError> { Ok(value) }
/// async fn asking(value: Value, _: Context) -> Result<Value, BoxError> { Ok(value) }
/// is_a_step(plain);
/// is_a_step(asking);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a step of a node",
    label = "not a step",
    note = "a step is `async fn(Value, ..) -> Result<Value, superstep::BoxError>`: after the value what it asks for (`Context`, `StoreHandle`, `Runtime<T>`, ..)"
)]
pub trait StepFn<Args>: Send + Sync + 'static {
    /// Starts it.
    #[doc(hidden)]
    fn start(&self, value: Value, cx: Option<&Context>) -> StepFuture;

    /// Whether it asks for anything besides the value.
    #[doc(hidden)]
    fn asks(&self) -> bool;
}

macro_rules! steps {
    ($([$($arg:ident),*]),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl<F, Fut, $($arg,)*> StepFn<($($arg,)*)> for F
        where
            F: Fn(Value, $($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<Value, BoxError>> + Send + 'static,
            $($arg: FromContext,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn start(&self, value: Value, cx: Option<&Context>) -> StepFuture {
                $(let $arg = match $arg::from_context(cx.expect("a step that asks is given a context")) {
                    Ok(arg) => arg,
                    Err(error) => return Box::pin(async move { Err(error) }),
                };)*
                Box::pin(self(value, $($arg),*))
            }

            fn asks(&self) -> bool {
                steps!(@asks $($arg),*)
            }
        }
    )*};
    (@asks) => { false };
    (@asks $($arg:ident),+) => { true };
}

steps!([], [A], [A, B], [A, B, C], [A, B, C, D]);

/// A graph of channels and nodes that subscribe to them; a [`StateGraph`](crate::StateGraph) is the friendlier form.
///
/// ```
/// use serde_json::{json, Value};
/// use superstep::{EphemeralValue, LastValue, NodeBuilder, Pregel, Topic};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Pregel::builder()
///     .channel("a", EphemeralValue::default())
///     .channel("b", LastValue::default())
///     .channel("seen", Topic::new().accumulate())
///     .node("double", NodeBuilder::new().subscribe_only("a")
///         .then(async |v: Value| Ok(json!(v.as_i64().unwrap_or(0) * 2))).write_to("b").write_to("seen"))
///     .node("echo", NodeBuilder::new().subscribe_only("b").write_to("seen"))
///     .input(["a"])
///     .output(["b", "seen"])
///     .build()?;
/// let out = app.invoke(json!({ "a": 4 })).await?;
/// assert_eq!(out.to_json(), json!({ "b": 8, "seen": [8, 8] }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pregel;

impl Pregel {
    /// Starts a graph.
    pub fn builder() -> PregelBuilder {
        let settings = Settings::named(PREGEL_NAME.to_owned());
        PregelBuilder {
            fields: JsonFields::default(),
            nodes: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            settings,
        }
    }
}

/// Builds a [`Pregel`] graph.
///
/// ```
/// let mistakes = superstep::Pregel::builder().build().unwrap_err();
/// assert!(mistakes.to_string().contains("has no entry"));
/// ```
#[must_use = "a graph does nothing until it is built"]
pub struct PregelBuilder {
    fields: JsonFields,
    nodes: Vec<(String, NodeBuilder)>,
    input: Vec<String>,
    output: Vec<String>,
    settings: Settings,
}

crate::debug::debug_parts!([] PregelBuilder, "PregelBuilder", this => { fields: this.fields, nodes: this.nodes, input: this.input, output: this.output });

impl PregelBuilder {
    /// Adds a channel.
    pub fn channel(mut self, name: impl Into<String>, channel: impl Channel) -> Self {
        self.fields = self.fields.field(name, channel);
        self
    }

    /// Adds a node.
    pub fn node(mut self, name: impl Into<String>, node: NodeBuilder) -> Self {
        self.nodes.push((name.into(), node));
        self
    }

    /// The channels that an input writes.
    pub fn input<N: Into<String>>(mut self, channels: impl IntoIterator<Item = N>) -> Self {
        self.input = channels.into_iter().map(Into::into).collect();
        self
    }

    /// The channels that a result shows.
    pub fn output<N: Into<String>>(mut self, channels: impl IntoIterator<Item = N>) -> Self {
        self.output = channels.into_iter().map(Into::into).collect();
        self
    }

    /// Saves every step.
    pub fn checkpointer(mut self, checkpointer: impl Checkpointer) -> Self {
        self.settings.checkpointer = Persistence::In(Arc::new(checkpointer));
        self
    }

    /// Long-term memory.
    pub fn store(mut self, store: impl Store) -> Self {
        self.settings.store = Some(Arc::new(store));
        self
    }

    /// Where results of nodes with a cache policy are kept.
    pub fn cache(mut self, cache: impl Cache) -> Self {
        self.settings.cache = Some(Arc::new(cache));
        self
    }

    /// Limits how long one step may take.
    pub fn step_timeout(mut self, limit: std::time::Duration) -> Self {
        self.settings.step_timeout = Some(limit);
        self
    }

    /// Freezes the graph.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn build(self) -> Result<CompiledStateGraph<JsonState>, CompilationError> {
        let mistakes = self.mistakes();
        if !mistakes.is_empty() {
            return Err(CompilationError::new(mistakes));
        }
        let fields = Arc::new(self.fields);
        let ty: Arc<dyn StateType> = Arc::new(Typed::<JsonState>::new(fields.clone(), Some(Codec::of())));
        let place = |name: &String| fields.place(name);
        let input: Vec<usize> = self.input.iter().filter_map(place).collect();
        let output: Vec<usize> = self.output.iter().filter_map(place).collect();
        let mut names = NameTable::default();
        let mut nodes = Indexed::default();
        for (name, builder) in self.nodes {
            let options = NodeRules {
                retry: (!builder.retry.is_empty()).then(|| builder.retry.clone()),
                timeout: builder.timeout,
                cache: builder.cache.clone().map(|policy| policy.rule),
                metadata: builder.metadata.clone(),
                fields: Some(builder.reads.clone()),
                ..NodeRules::default()
            };
            let triggers: crate::plan::Numbers =
                builder.triggers.iter().filter_map(place).map(ChannelIx::new).collect();
            let mut node = node_plan(&name, builder.boxed(), options, ty.fields());
            node.triggers = triggers;
            names.insert(name.as_str().into(), nodes.push(node));
        }
        let mut plan = finish(nodes, names, Indexed::default(), &ty, &self.settings);
        plan.input = InputMode::Fields(input);
        plan.output = Fields::many(output);
        Ok(CompiledStateGraph::of(GraphCore::new(plan, self.settings, Vec::new())))
    }

    fn mistakes(&self) -> Vec<BuildError> {
        let fields = <JsonState as State>::fields(&self.fields);
        let mut errors: Vec<BuildError> = reserved_fields(fields).collect();
        let mut known = |place: String, names: &[String]| {
            for name in names.iter().filter(|n| self.fields.place(n).is_none()) {
                let hint = Hint::near(name, fields.iter().map(FieldSpec::name));
                errors.push(BuildError::UnknownField { place: place.clone(), name: name.clone(), hint });
            }
        };
        known("`input`".to_owned(), &self.input);
        known("`output`".to_owned(), &self.output);
        for (name, node) in &self.nodes {
            known(format!("node `{name}`"), &node.reads);
            let written: Vec<String> = node.writes.iter().map(|(c, _)| c.clone()).collect();
            known(format!("node `{name}`"), &written);
        }
        for (name, node) in &self.nodes {
            let place = format!("node `{name}`");
            check_limits(&place, node.timeout.as_ref(), Some(&node.retry), &mut errors);
            check_cache(&place, node.cache.as_ref().map(|policy| &policy.rule), &mut errors);
            if node.triggers.is_empty() {
                let why = "nothing wakes it; let it subscribe to a channel with `subscribe_to`".to_owned();
                errors.push(BuildError::BadOption { place, why });
            }
        }
        if self.settings.step_timeout.is_some_and(|limit| limit.is_zero()) {
            let why = "a timeout must be greater than zero".to_owned();
            errors.push(BuildError::BadOption { place: "the graph".to_owned(), why });
        }
        let read = |input: &String| self.nodes.iter().any(|(_, n)| n.triggers.contains(input));
        if !self.input.iter().any(read) {
            errors.push(BuildError::NoEntryPoint);
        }
        for (ix, (name, _)) in self.nodes.iter().enumerate() {
            if self.nodes[..ix].iter().any(|(n, _)| n == name) {
                errors.push(BuildError::DuplicateNode { name: name.clone() });
            }
        }
        errors
    }
}
