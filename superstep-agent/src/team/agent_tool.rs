//! An agent that another calls as a tool.

use crate::message::Tally;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use superstep::{Block, CompiledStateGraph, Conversation, Message, Persist, Role};

use crate::__private::arguments;
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// An agent as a tool: it is given a request in words, works on it by itself, and its last message is the result.
///
/// It runs inside the run that calls it. Its questions pause the outer run, its words are in the outer stream under its
/// own namespace, and it is cancelled with it. Of its conversation, the one who calls it sees the last message only; the
/// caller's [`Limits`](crate::middleware::Limits) count all that it took.
///
/// ```
/// use superstep::{Message, ToolCall};
/// use superstep_agent::{create_react_agent, team::agent_as_tool, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let expert = create_react_agent(ScriptedModel::new(["Oolong."]), ()).name("expert").compile()?;
/// let ask = Message::calls("", [ToolCall::new("c1", "ask_expert", serde_json::json!({ "request": "Which tea?" }))]);
/// let model = ScriptedModel::new([ask, Message::assistant("Drink oolong.")]);
/// let agent = create_react_agent(model, [agent_as_tool(expert, "ask_expert", "Knows tea.")]).compile()?;
/// assert_eq!(agent.invoke("What shall I drink?").await?.state.messages[2].text(), "Oolong.");
/// # Ok(())
/// # }
/// ```
pub fn agent_as_tool<S: Conversation + Persist>(
    agent: CompiledStateGraph<S>,
    name: impl Into<String>,
    description: impl Into<String>,
) -> AgentTool<S> {
    AgentTool { agent, name: name.into(), description: description.into() }
}

/// What [`agent_as_tool`] makes.
///
/// ```
/// use superstep_agent::{create_react_agent, team::{agent_as_tool, AgentTool}, ReactState, ScriptedModel, Tool};
/// # fn main() -> Result<(), superstep::CompilationError> {
/// let expert = create_react_agent(ScriptedModel::new(["Oolong."]), ()).name("expert").compile()?;
/// let tool: AgentTool<ReactState> = agent_as_tool(expert, "ask_expert", "Knows tea.");
/// assert_eq!(tool.spec().parameters["required"][0], "request");
/// # Ok(())
/// # }
/// ```
pub struct AgentTool<S: Conversation> {
    agent: CompiledStateGraph<S>,
    name: String,
    description: String,
}

crate::debug::debug_parts!([S: Conversation] AgentTool<S>, "AgentTool", this => { agent: this.agent, name: this.name, description: this.description });

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// What is to be done, with all that has to be known for it.
    request: String,
}

#[async_trait]
impl<S: Conversation + Persist> Tool for AgentTool<S> {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(&*self.name, &*self.description).args::<Args>()
    }

    async fn call(&self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let Args { request } = arguments(args)?;
        let question = S::say(vec![Message::user(request)]);
        let out = cx.context().invoke(&self.agent, question).await.map_err(ToolError::Failed)?;
        let said = out.state.conversation();
        let last = said.last().filter(|message| message.role() != Some(Role::User));
        let Some(last) = last else { return Err(ToolError::failed(format!("agent `{}` said nothing", self.name))) };
        let blocks = last.blocks().iter().filter(|block| is_for_others(block)).cloned().collect();
        Ok(ToolOutput::blocks(blocks).taking(Tally::of_run(said)))
    }
}

/// Thoughts and calls are the agent's own.
fn is_for_others(block: &Block) -> bool {
    matches!(block, Block::Text { .. } | Block::Image(_) | Block::Audio(_) | Block::File(_))
}
