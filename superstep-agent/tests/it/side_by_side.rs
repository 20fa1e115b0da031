//! Conversations that LangGraph's `create_react_agent` had too: `tests/react/NAME.trace.json` is what came of them there.

use std::path::Path;

use serde_json::Value;

#[path = "../../examples/react_trace/player.rs"]
mod player;

#[tokio::test]
async fn conversations_go_as_in_langgraph() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/react");
    let mut played = 0;
    let mut different = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some((name, "json")) = name.split_once('.') else { continue };
        let read = |file: String| std::fs::read_to_string(folder.join(file)).unwrap();
        let ours = player::play(serde_json::from_str(&read(format!("{name}.json"))).unwrap()).await.unwrap();
        let theirs: Value = serde_json::from_str(&read(format!("{name}.trace.json"))).unwrap();
        played += 1;
        if ours != theirs {
            different.push(format!("{name}\nours: {ours}\ntheirs: {theirs}"));
        }
    }
    assert!(played > 30, "{played}");
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}
