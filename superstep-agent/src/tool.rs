//! Tools: what a model may call, what they know of the run, and what they give back.

mod calls;
mod context;
mod error;
mod list;
mod output;
mod policy;

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::JsonMap;

pub(crate) use calls::{open_calls, or_only_leaving};
pub use context::{FromToolContext, ToolContext};
pub use error::ToolError;
pub(crate) use list::Tools;
pub use output::{IntoToolOutput, Json, ToolOutput};
pub(crate) use policy::unknown_tool;
pub use policy::{ErrorHandler, OnToolError};

/// Something that a model can call.
///
/// Most tools are functions with [`#[tool]`](macro@crate::tool); this is what the attribute writes, and what tools with data
/// of their own implement.
///
/// ```
/// use async_trait::async_trait;
/// use serde_json::{json, Value};
/// use superstep_agent::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
///
/// struct Dice { sides: u32 }
///
/// #[async_trait]
/// impl Tool for Dice {
///     fn spec(&self) -> ToolSpec {
///         ToolSpec::new("dice", format!("Throws a die with {} sides.", self.sides))
///     }
///     async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
///         Ok(ToolOutput::text("4"))
///     }
/// }
/// assert_eq!(Dice { sides: 6 }.spec().name, "dice");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    note = "put `#[tool]` on the function, or implement `Tool` for a type of your own"
)]
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Carries out a call. The arguments are what the model wrote: they may be anything.
    async fn call(&self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError>;

    /// Whether its result is the agent's answer: the model is not asked again.
    fn returns_directly(&self) -> bool {
        false
    }

    /// Whether it hands the conversation to somebody else: then nothing else that the same message asks for is called,
    /// and the tool answers those calls too.
    fn hands_over(&self) -> bool {
        false
    }

    /// The same under another name, for when its own is taken: tools that somebody else names, like those of MCP
    /// servers, give way to the program's. Of others, the one that is added last has the name.
    fn giving_way(&self) -> Option<Arc<dyn Tool>> {
        None
    }
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> ToolSpec {
        (**self).spec()
    }
    async fn call(&self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).call(args, cx).await
    }
    fn returns_directly(&self) -> bool {
        (**self).returns_directly()
    }
    fn hands_over(&self) -> bool {
        (**self).hands_over()
    }
    fn giving_way(&self) -> Option<Arc<dyn Tool>> {
        (**self).giving_way()
    }
}

/// What a model is told about a tool.
///
/// ```
/// use schemars::JsonSchema;
/// use superstep_agent::ToolSpec;
///
/// #[derive(JsonSchema)]
/// #[allow(dead_code)]
/// struct Args { city: String }
///
/// let spec = ToolSpec::new("weather", "How the weather is.").args::<Args>();
/// assert_eq!(spec.parameters["required"][0], "city");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to call it.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// Fields of the provider's own, added to what it is told as they are.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub extra: JsonMap,
}

impl ToolSpec {
    /// A tool without arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let parameters = json!({ "type": "object", "properties": {} });
        Self { name: name.into(), description: description.into(), parameters, extra: JsonMap::new() }
    }

    /// With the fields of `A` as arguments.
    pub fn args<A: JsonSchema>(self) -> Self {
        let mut schema = schemars::schema_for!(A);
        // They speak of the Rust type, not of the tool.
        schema.remove("$schema");
        schema.remove("title");
        schema.remove("description");
        schema.ensure_object().entry("properties").or_insert_with(|| json!({}));
        self.parameters(schema.to_value())
    }

    /// With arguments by their JSON schema.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = schema;
        self
    }
}

/// Tools to give to an agent or a [`ToolNode`](crate::ToolNode): one, several of different types as a tuple, or a list.
///
/// ```
/// use std::sync::Arc;
/// use superstep_agent::{tool, IntoTools, Tool};
///
/// /// Adds.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 { a + b }
/// /// Greets.
/// #[tool]
/// fn greet(name: String) -> String { format!("hello, {name}") }
///
/// assert_eq!((add, greet).into_tools().len(), 2);
/// assert_eq!([add].into_tools().len(), 1);
/// let found_at_run_time: Vec<Arc<dyn Tool>> = vec![Arc::new(greet)];
/// assert_eq!(found_at_run_time.into_tools().len(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of tools",
    note = "give a tuple of up to ten tools `(add, search)`, an array of one kind, or a `Vec<Arc<dyn Tool>>`; add more with `.tool(..)`; functions become tools with `#[tool]`"
)]
pub trait IntoTools {
    /// The tools as a list.
    fn into_tools(self) -> Vec<Arc<dyn Tool>>;
}

impl IntoTools for Vec<Arc<dyn Tool>> {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        self
    }
}

impl<T: Tool, const N: usize> IntoTools for [T; N] {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        self.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect()
    }
}

macro_rules! tuples {
    ($([$($tool:ident),*]),* $(,)?) => {$(
        impl<$($tool: Tool),*> IntoTools for ($($tool,)*) {
            #[allow(non_snake_case)]
            fn into_tools(self) -> Vec<Arc<dyn Tool>> {
                let ($($tool,)*) = self;
                vec![$(Arc::new($tool)),*]
            }
        }
    )*};
}

tuples!([], [A], [A, B], [A, B, C], [A, B, C, D], [A, B, C, D, E], [A, B, C, D, E, F], [A, B, C, D, E, F, G]);
tuples!([A, B, C, D, E, F, G, H], [A, B, C, D, E, F, G, H, I], [A, B, C, D, E, F, G, H, I, J]);
