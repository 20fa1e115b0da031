//! The examples that start MCP servers, with a shell in their place.

#[expect(clippy::duplicate_mod, dead_code, reason = "they share a module; `main` is for `cargo run --example`")]
#[path = "../../../examples/react_exa.rs"]
mod react_exa;
#[expect(clippy::duplicate_mod, dead_code, reason = "they share a module; `main` is for `cargo run --example`")]
#[path = "../../../examples/react_mcp_gitlab.rs"]
mod react_mcp_gitlab;

use std::sync::Arc;

use superstep_agent::ChatModel;

/// An MCP server in a shell. It has the tool that its first argument names, and answers a call of it with its second and
/// with the key in the variable that its third names.
const SHELL_SERVER: &str = r#"
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case "$line" in
        *'"method":"initialize"'*) result='"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}' ;;
        *'"method":"tools/list"'*) result='"tools":[{"name":"'$1'","inputSchema":{"type":"object"}}]' ;;
        *'"method":"tools/call"'*'"name":"'$1'"'*) result='"content":[{"type":"text","text":"'"$2, with $(printenv "$3")"'"}]' ;;
        *) continue ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{$result}}"
done"#;

fn in_a_shell(tool: &str, finds: &str, key_variable: &str) -> (String, Vec<String>) {
    let args = ["-c", SHELL_SERVER, "server", tool, finds, key_variable];
    ("sh".into(), args.map(str::to_owned).to_vec())
}

#[tokio::test]
async fn an_agent_searches_gitlab_with_its_mcp_server() {
    use react_mcp_gitlab::{Server, run, script};

    let key_variable = "GITLAB_PERSONAL_ACCESS_TOKEN";
    let (program, args) = in_a_shell("search_repositories", "2 projects", key_variable);
    let server = Server { name: "gitlab", program, args, key_variable, key: Some("glpat-1".into()) };
    let expected = [
        "tool search_repositories",
        "Which projects are about langgraph?",
        "",
        "2 projects, with glpat-1",
        "I found 2 projects, with glpat-1",
    ];
    assert_eq!(run(server, || Arc::new(script())).await.unwrap(), expected);
}

#[tokio::test]
async fn an_agent_searches_the_web_with_exas_mcp_server() {
    use react_exa::{Server, run, script};

    let key_variable = "EXA_API_KEY";
    let (program, args) = in_a_shell("web_search_exa", "3 pages", key_variable);
    let server = Server { name: "exa", program, args, key_variable, key: Some("exa-1".into()) };
    let expected =
        ["tool web_search_exa", "What is new in Rust?", "", "3 pages, with exa-1", "I found 3 pages, with exa-1"];
    assert_eq!(run(server, || Arc::new(script())).await.unwrap(), expected);
}

#[tokio::test]
async fn without_a_key_or_a_program_the_servers_are_skipped() {
    let nobody = || -> Arc<dyn ChatModel> { unreachable!("no model is needed") };
    let gitlab = |key: Option<&str>| react_mcp_gitlab::Server {
        name: "gitlab",
        program: "superstep-no-such-program".into(),
        args: Vec::new(),
        key_variable: "GITLAB_PERSONAL_ACCESS_TOKEN",
        key: key.map(str::to_owned),
    };
    for key in [None, Some("")] {
        let said = react_mcp_gitlab::run(gitlab(key), nobody).await.unwrap();
        assert_eq!(said, ["Skipped: `GITLAB_PERSONAL_ACCESS_TOKEN` is not set."]);
    }
    let said = react_mcp_gitlab::run(gitlab(Some("glpat-1")), nobody).await.unwrap();
    let cannot =
        "Skipped: MCP server `gitlab` cannot be reached (tried 1 times): cannot start `superstep-no-such-program`";
    assert!(said.len() == 1 && said[0].starts_with(cannot), "{said:?}");

    let exa = |program: &str, key: Option<&str>| react_exa::Server {
        name: "exa",
        program: program.into(),
        args: Vec::new(),
        key_variable: "EXA_API_KEY",
        key: key.map(str::to_owned),
    };
    let said = react_exa::run(exa("superstep-no-such-program", None), nobody).await.unwrap();
    assert_eq!(said, ["Skipped: `EXA_API_KEY` is not set."]);
    let said = react_exa::run(exa("superstep-no-such-program", Some("exa-1")), nobody).await.unwrap();
    assert!(said.len() == 1 && said[0].starts_with("Skipped: MCP server `exa` cannot be reached"), "{said:?}");
}
