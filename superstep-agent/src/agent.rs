//! The ReAct loop: a model that calls tools until it has an answer.

mod build;
mod history;
mod hook;
mod model_node;
mod prompt;
mod route;
mod state;
mod structured;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep::{
    Checkpointer, CompilationError, CompiledStateGraph, Context, Conversation, Field, Persist, StateGraph, Store,
};

use crate::changes::Changes;
use crate::middleware::Middleware;
use crate::model::{ChatModel, Settings};
use crate::tool::{IntoTools, Tool};
use crate::tool_node::ToolNode;
pub use prompt::Prompt;
pub use state::{ReactState, ReactStateUpdate};
use structured::Structured;

/// An agent with a model and tools, as LangGraph's users know it.
///
/// ```
/// use superstep::{Message, ToolCall};
/// use superstep_agent::{create_react_agent, tool, ScriptedModel};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 { a + b }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let call = ToolCall::new("c1", "add", serde_json::json!({ "a": 20, "b": 22 }));
/// let model = ScriptedModel::new([Message::calls("", [call]), Message::assistant("It is 42.")]);
/// let agent = create_react_agent(model, [add]).prompt("You are good at sums.").compile()?;
/// let out = agent.invoke("What is 20 + 22?").await?;
/// assert_eq!(out.state.messages.last().unwrap().text(), "It is 42.");
/// # Ok(())
/// # }
/// ```
pub fn create_react_agent(model: impl ChatModel, tools: impl IntoTools) -> ReactAgent<ReactState> {
    ReactAgent::new(model).tools(tools)
}

/// An agent being built, over a state of your own if you like.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use superstep::{MemorySaver, Message, State};
/// use superstep_agent::{ReactAgent, ScriptedModel};
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Support {
///     #[state(messages)]
///     messages: Vec<Message>,
///     customer: Option<String>,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = ReactAgent::<Support>::new(ScriptedModel::new(["Hello, Ada."]))
///     .prompt_with(|state: &Support| format!("You talk to {}.", state.customer.as_deref().unwrap_or("a stranger")))
///     .checkpointer(MemorySaver::new())
///     .compile()?;
/// let input = Support { messages: vec![Message::user("hi")], customer: Some("Ada".into()) };
/// assert_eq!(agent.invoke(input).thread("t1").await?.state.messages[1].text(), "Hello, Ada.");
/// # Ok(())
/// # }
/// ```
pub struct ReactAgent<S: Conversation> {
    name: Option<String>,
    model: ModelSource<S>,
    tools: ToolNode<S>,
    prompt: Prompt<S>,
    settings: Settings,
    structured: Option<Structured<S>>,
    middleware: Vec<Arc<dyn Middleware<S>>>,
    changes: Changes<S>,
}

crate::debug::debug_parts!([S: Conversation] ReactAgent<S>, "ReactAgent", this => { name: this.name, tools: this.tools, prompt: this.prompt });

/// The model of an agent, or how it is picked.
pub(crate) type ModelSource<S> = Arc<dyn Fn(&S, &Context) -> Arc<dyn ChatModel> + Send + Sync>;

impl<S: Conversation> ReactAgent<S> {
    /// An agent without tools.
    pub fn new(model: impl ChatModel) -> Self {
        let model: Arc<dyn ChatModel> = Arc::new(model);
        Self::picking(move |_, _| model.clone())
    }

    /// An agent that picks its model before each call.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use superstep::{Context, Message};
    /// use superstep_agent::{ChatModel, ReactAgent, ReactState, ScriptedModel};
    ///
    /// let (small, large) = (Arc::new(ScriptedModel::new(["ok"])), Arc::new(ScriptedModel::new(["ok"])));
    /// let agent = ReactAgent::<ReactState>::picking(move |state: &ReactState, _: &Context| -> Arc<dyn ChatModel> {
    ///     if state.messages.len() > 20 { large.clone() } else { small.clone() }
    /// });
    /// # let _ = agent;
    /// ```
    pub fn picking(pick: impl Fn(&S, &Context) -> Arc<dyn ChatModel> + Send + Sync + 'static) -> Self {
        Self {
            name: None,
            model: Arc::new(pick),
            tools: ToolNode::default(),
            prompt: Prompt::none(),
            settings: Settings::default(),
            structured: None,
            middleware: Vec::new(),
            changes: Changes::none(),
        }
    }

    /// With a name, which its messages carry too.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// With more tools.
    pub fn tools(mut self, tools: impl IntoTools) -> Self {
        self.tools = self.tools.tools(tools.into_tools());
        self
    }

    /// With one more tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools = self.tools.tool(tool);
        self
    }

    /// With a change to how tools are called: timeouts, retries, errors.
    ///
    /// ```
    /// use std::time::Duration;
    /// use superstep_agent::{create_react_agent, OnToolError, ScriptedModel};
    /// let agent = create_react_agent(ScriptedModel::new(["ok"]), ())
    ///     .calling_tools(|node| node.timeout(Duration::from_secs(10)).on_error(OnToolError::Tell));
    /// # let _ = agent;
    /// ```
    pub fn calling_tools(mut self, change: impl FnOnce(ToolNode<S>) -> ToolNode<S>) -> Self {
        self.tools = change(self.tools);
        self
    }

    /// With instructions for the model: a text, or a system message. For a function of the state, see
    /// [`prompt_with`](Self::prompt_with).
    pub fn prompt(mut self, prompt: impl Into<Prompt<S>>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// With instructions that depend on the state.
    pub fn prompt_with(self, prompt: impl Fn(&S) -> String + Send + Sync + 'static) -> Self {
        self.prompt(Prompt::from_state(prompt))
    }

    /// With a function that makes everything that the model reads out of the state; the call for a structured response
    /// reads the whole conversation.
    pub fn messages_with(self, messages: impl Fn(&S) -> Vec<superstep::Message> + Send + Sync + 'static) -> Self {
        self.prompt(Prompt::whole(messages))
    }

    /// With a word on how the model is to answer.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// With a last call of the model that puts the answer into a field of the state.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use superstep::{Message, State};
    /// use superstep_agent::{ReactAgent, ScriptedModel};
    ///
    /// #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
    /// struct Weather { celsius: f64 }
    ///
    /// #[derive(State, Clone, Default, Serialize, Deserialize)]
    /// struct Asked {
    ///     #[state(messages)]
    ///     messages: Vec<Message>,
    ///     weather: Option<Weather>,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["It is 21 degrees.", r#"{"celsius": 21}"#]);
    /// let agent = ReactAgent::<Asked>::new(model).response_into(Asked::WEATHER).compile()?;
    /// let out = agent.invoke(Asked { messages: vec![Message::user("How warm is it?")], weather: None }).await?;
    /// assert_eq!(out.state.weather, Some(Weather { celsius: 21.0 }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn response_into<T>(mut self, field: Field<S, Option<T>>) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    {
        self.structured = Some(Structured::into_field(field, |value: T| Ok(value)));
        self
    }

    /// With middleware, inside of what was added before.
    pub fn middleware(mut self, middleware: impl Middleware<S>) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// With a memory of its threads.
    pub fn checkpointer(self, checkpointer: impl Checkpointer) -> Self
    where
        S: Persist,
    {
        self.configure(|graph| graph.checkpointer(checkpointer))
    }

    /// With a long-term memory.
    pub fn store(self, store: impl Store) -> Self {
        self.configure(|graph| graph.store(store))
    }

    /// Stops before these nodes: `agent`, `tools`.
    pub fn interrupt_before<N: Into<String>>(self, nodes: impl IntoIterator<Item = N>) -> Self {
        let nodes: Vec<String> = nodes.into_iter().map(Into::into).collect();
        self.configure(|graph| graph.interrupt_before(nodes))
    }

    /// Stops after these nodes: `agent`, `tools`.
    pub fn interrupt_after<N: Into<String>>(self, nodes: impl IntoIterator<Item = N>) -> Self {
        let nodes: Vec<String> = nodes.into_iter().map(Into::into).collect();
        self.configure(|graph| graph.interrupt_after(nodes))
    }

    /// With any other change to the graph: whatever a [`StateGraph`] can be told.
    ///
    /// # Example: middleware that is gone
    ///
    /// Hooks are nodes, named `approval.after_model` and the like. Threads that wait in one which the agent no longer has
    /// go on where [`removed_node`](StateGraph::removed_node) says; [`renamed_node`](StateGraph::renamed_node) and
    /// [`migrate`](StateGraph::migrate) are reached in the same way.
    ///
    /// ```
    /// use superstep::Then;
    /// use superstep_agent::{create_react_agent, ScriptedModel};
    /// let agent = create_react_agent(ScriptedModel::new(["ok"]), ())
    ///     .configure(|graph| graph.removed_node("approval.after_model", Then::go_to("agent")))
    ///     .compile()?;
    /// # Ok::<(), superstep::CompilationError>(())
    /// ```
    pub fn configure(mut self, change: impl FnOnce(&mut StateGraph<S>) -> &mut StateGraph<S> + 'static) -> Self {
        self.changes.add(change);
        self
    }

    /// The agent, ready to run.
    ///
    /// # Errors
    /// If the graph has mistakes, all of them.
    pub fn compile(self) -> Result<CompiledStateGraph<S>, CompilationError> {
        self.graph().compile()
    }

    /// The agent as a graph that can be added to.
    pub fn graph(self) -> StateGraph<S> {
        build::graph(self)
    }
}

impl ReactAgent<ReactState> {
    /// With a last call of the model that answers in the form of `T`; see [`ReactState::structured`].
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use superstep_agent::{create_react_agent, ScriptedModel};
    ///
    /// #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    /// struct Weather { celsius: f64 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(["It is 21 degrees.", r#"{"celsius": 21}"#]);
    /// let agent = create_react_agent(model, ()).response_format::<Weather>().compile()?;
    /// let out = agent.invoke("How warm is it?").await?;
    /// assert_eq!(out.state.structured::<Weather>()?.unwrap().celsius, 21.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn response_format<T>(mut self) -> Self
    where
        T: DeserializeOwned + Serialize + JsonSchema + Send + Sync + 'static,
    {
        let field = ReactState::STRUCTURED_RESPONSE;
        self.structured = Some(Structured::into_field(field, |value: T| Ok(serde_json::to_value(value)?)));
        self
    }
}
