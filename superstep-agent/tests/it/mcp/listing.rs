//! What servers have: tools, resources, prompts.

use std::sync::Arc;

use serde_json::json;
use superstep::{Block, Media, Message, ToolCall};
use superstep_agent::mcp::{McpServers, ToolNames};
use superstep_agent::{ChatRequest, ReactAgent, ReactState, Reply, ScriptedModel, tool};

use super::desk::Desk;
use super::{answer, names};

#[tokio::test]
async fn tools_are_told_to_the_model_as_the_server_describes_them() {
    let tools = Desk::default().servers().tools().await.unwrap();
    let echo = tools[0].spec();
    assert_eq!((echo.name.as_str(), echo.description.as_str()), ("echo", "Does echo."));
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "x-own": 1 });
    assert_eq!(echo.parameters, schema);
}

#[tokio::test]
async fn tools_that_two_servers_have_get_the_names_of_their_servers() {
    let (a, b) = (Desk::default(), Desk::default());
    let servers = McpServers::new()
        .add("a", a.server().only(|tool| ["echo", "fail"].contains(&tool)))
        .add("b", b.server().only(|tool| ["echo", "ask"].contains(&tool)));
    let tools = servers.tools().await.unwrap();
    assert_eq!(names(&tools), ["a_echo", "fail", "b_echo", "ask"]);
    let said = answer(tools, "b_echo", json!({ "text": "hi" })).await.unwrap();
    assert_eq!(said.text(), "hi");
    assert_eq!(
        (a.calls.load(std::sync::atomic::Ordering::SeqCst), b.calls.load(std::sync::atomic::Ordering::SeqCst)),
        (0, 1)
    );

    let prefixed = servers.clone().names(ToolNames::Prefixed).tools().await.unwrap();
    assert_eq!(names(&prefixed), ["a_echo", "a_fail", "b_echo", "b_ask"]);
    let refused = servers.names(ToolNames::AsTheyAre).tools().await.err().unwrap().to_string();
    assert_eq!(refused, "MCP server `a` has a tool `echo` like another one; use `ToolNames::PrefixedIfNeeded`");
}

#[tokio::test]
async fn a_server_of_the_same_name_is_replaced() {
    let (old, new) = (Desk::default(), Desk::default());
    let servers = old.servers().add("desk", new.server().only(|tool| tool == "echo"));
    assert_eq!(names(&servers.tools().await.unwrap()), ["echo"]);
    assert_eq!(old.connections.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let servers = Desk::default().servers();
    let resources = servers.resources().await.unwrap();
    assert_eq!(resources.len(), 1);
    assert_eq!((&*resources[0].server, &*resources[0].uri), ("desk", "desk://note"));
    let mut picture = Media::base64("image/png", "aW1n");
    picture.name = Some("desk://png".to_owned());
    let read = servers.read_resource("desk", "desk://note").await.unwrap();
    assert_eq!(read, [Block::text("a note"), Block::Image(picture)]);
    let error = servers.read_resource("desk", "desk://lost").await.unwrap_err();
    assert!(error.code().is_some() && !error.is_connection());
    assert!(
        error.to_string().starts_with("MCP server `desk` answered with an error: no desk://lost (code "),
        "{error}"
    );
    let unknown = servers.read_resource("disk", "desk://note").await.unwrap_err();
    assert_eq!(unknown.to_string(), "MCP server `disk` is not known; there are `desk`");
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    let servers = Desk::default().servers();
    let prompts = servers.prompts().await.unwrap();
    assert_eq!(
        (&*prompts[0].name, &prompts[0].required, &prompts[0].optional),
        ("trip", &vec!["city".to_owned()], &vec!["tone".to_owned()])
    );
    let arguments = json!({ "city": "Oslo" }).as_object().unwrap().clone();
    let messages = servers.get_prompt("desk", "trip", arguments).await.unwrap();
    assert_eq!(messages, [Message::user("I want to see Oslo."), Message::assistant("When?")]);
}

#[tokio::test]
async fn a_changed_list_of_tools_is_noticed() {
    let servers = Desk::default().servers();
    let tools = servers.tools().await.unwrap();
    let before = servers.tools_version();
    answer(tools, "grow", json!({})).await.unwrap();
    assert_eq!(servers.tools_changed_since(before).await, before + 1);
    assert!(names(&servers.tools().await.unwrap()).contains(&"grown".to_owned()));
}

#[tokio::test]
async fn an_agent_with_live_tools_can_call_what_came_later() {
    let servers = Desk::default().servers();
    let call =
        |name: &str| Message::calls("", [ToolCall::new(format!("call-{name}"), name, json!({ "text": "hello" }))]);
    let model =
        Arc::new(ScriptedModel::new([Reply::from(call("grow")), Reply::from(call("grown")), Reply::from("done")]));
    let agent = ReactAgent::<ReactState>::new(model.clone()).middleware(servers.live_tools().await.unwrap());
    let out = agent.compile().unwrap().invoke("go").await.unwrap();
    let said: Vec<String> = out.state.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["go", "", "grown", "", "hello", "done"]);
    let told = |request: &ChatRequest| request.tools.iter().filter(|tool| tool.name == "grown").count();
    assert_eq!(model.requests().iter().map(told).collect::<Vec<_>>(), [0, 1, 1]);
}

/// Providers refuse dots, spaces and slashes; and two servers whose names and tools ran together lost one of them.
#[tokio::test]
async fn names_are_fit_for_providers_and_no_two_tools_have_one() {
    let long = "a_tool_whose_name_is_so_long_that_no_provider_takes_it_as_it_is_version_1";
    let desk = Desk::default().also(["files/read.v2", "files read.v2", long]);
    let servers =
        McpServers::new().add("my server", desk.server().only(move |tool| tool.contains("read") || tool == long));
    for names_of in [ToolNames::PrefixedIfNeeded, ToolNames::Prefixed] {
        let tools = servers.clone().names(names_of).tools().await.unwrap();
        let mut all = names(&tools);
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        assert!(all.iter().all(|name| name.len() <= 64 && name.chars().all(is_fit)), "{all:?}");
        assert!(all[0].starts_with("my_server_files_read_v2"), "{all:?}");
        let said = answer(tools, all[1].clone().leak(), json!({})).await.unwrap();
        assert_eq!(said.text(), "files read.v2", "the server knows it by its own name");
        all.dedup();
        assert_eq!(all.len(), 3, "{all:?}");
    }
    let (a, b) = (Desk::default().also(["x_y"]), Desk::default().also(["y"]));
    let servers = McpServers::new().add("a", a.server().only(|tool| tool == "x_y"));
    let servers = servers.add("a_x", b.server().only(|tool| tool == "y")).names(ToolNames::Prefixed);
    let tools = servers.tools().await.unwrap();
    let all = names(&tools);
    assert_ne!(all[0], all[1]);
    assert!(all.iter().all(|name| name.starts_with("a_x_y_")), "{all:?}");
    assert_eq!(answer(tools, all[1].clone().leak(), json!({})).await.unwrap().text(), "y");
}

/// A server that announced a tool of the agent's own name got the calls that were meant for it.
#[tokio::test]
async fn a_server_cannot_take_the_place_of_a_tool_of_the_program() {
    /// Greets.
    #[tool]
    fn grown() -> &'static str {
        "mine"
    }
    /// Echoes.
    #[tool]
    fn echo() -> &'static str {
        "mine"
    }
    let call = |name: &str| Message::calls("", [ToolCall::new(name, name, json!({ "text": "theirs" }))]);
    for live in [false, true] {
        let servers = Desk::default().servers();
        let replies = ["grow", "echo", "desk_echo", "grown"].map(|name| Reply::from(call(name)));
        let model = Arc::new(ScriptedModel::new(replies.into_iter().chain([Reply::from("done")])));
        let agent = ReactAgent::<ReactState>::new(model.clone());
        let agent = agent.tool(echo).tool(grown);
        let agent = if live {
            agent.middleware(servers.live_tools().await.unwrap())
        } else {
            agent.tools(servers.tools().await.unwrap())
        };
        let out = agent.compile().unwrap().invoke("go").await.unwrap();
        let said = |place: usize| out.state.messages[place].text().into_owned();
        assert_eq!([said(4), said(6), said(8)], ["mine", "theirs", "mine"], "live: {live}");
        let told: Vec<String> = model.requests()[3].tools.iter().map(|tool| tool.name.clone()).collect();
        let times = |name: &str| told.iter().filter(|told| *told == name).count();
        let counted = [times("echo"), times("desk_echo"), times("grown"), times("desk_grown")];
        assert_eq!(counted, [1, 1, 1, usize::from(live)], "{told:?}");
    }
}
