//! An agent with the tools of an MCP server, which asks the user something in the middle of a call.
//!
//! Without arguments the server is a graph in the same program; otherwise it is the program that they name:
//! `cargo run --features mcp --example mcp -- npx -y @modelcontextprotocol/server-everything`.

use superstep::{BoxError, MemorySaver, Message, Resume, ToolCall};
use superstep_agent::mcp::{Elicitation, McpServer, McpServers, serve_tool};
use superstep_agent::{ScriptedModel, create_react_agent};

/// Whether there is a graph behind the server, or a program.
fn servers(command: &[String]) -> Result<McpServers, BoxError> {
    if let [program, args @ ..] = command {
        return Ok(McpServers::new().add("program", McpServer::stdio(program, args)));
    }
    let poet = create_react_agent(ScriptedModel::new(["Leaves in the hot rain, / a cup of morning."]), ()).compile()?;
    let server = serve_tool(poet, "haiku", "Writes a haiku about something.");
    let connect = move || {
        let (ours, theirs) = tokio::io::duplex(4096);
        tokio::spawn(server.clone().serve(theirs));
        async { Ok(ours) }
    };
    Ok(McpServers::new().add("poet", McpServer::pipe(connect)))
}

/// What was said, message by message.
///
/// # Errors
/// If the server cannot be reached, or the run fails.
pub(crate) async fn run(command: &[String]) -> Result<Vec<String>, BoxError> {
    let servers = servers(command)?;
    let tools = servers.tools().await?;
    let mut said: Vec<String> = tools.iter().map(|tool| tool.spec()).map(|t| format!("tool {}", t.name)).collect();

    // A model of your provider goes here.
    let call = ToolCall::new("c1", tools[0].spec().name, serde_json::json!({ "message": "tea" }));
    let model = ScriptedModel::new([Message::calls("", [call]), Message::assistant("Here you are.")]);
    let agent = create_react_agent(model, tools).checkpointer(MemorySaver::new()).compile()?;

    let mut out = agent.invoke("A haiku about tea, please.").thread("t1").await?;
    while let Some(interrupt) = out.interrupts.first() {
        let question: Elicitation = interrupt.value_as()?;
        said.push(format!("{} asks: {}", question.server, question.message));
        out = agent.invoke(Resume::value(question.decline())).thread("t1").await?;
    }
    said.extend(out.state.messages.iter().map(|message| message.text().into_owned()));
    servers.close().await;
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    run(&command).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
