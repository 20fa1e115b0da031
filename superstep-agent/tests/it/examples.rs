//! The examples, run.

#[expect(dead_code, reason = "`main` is for `cargo run --example`, and a terminal for those who have one")]
#[path = "../../examples/approval.rs"]
mod approval;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/chat_memory.rs"]
mod chat_memory;
#[cfg(feature = "mcp")]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/mcp.rs"]
mod mcp;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/rag.rs"]
mod rag;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/research.rs"]
mod research;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/streaming.rs"]
mod streaming;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/structured_output.rs"]
mod structured_output;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/supervisor.rs"]
mod supervisor;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/think_act_observe.rs"]
mod think_act_observe;

#[tokio::test]
async fn the_loop_can_be_taken_apart() {
    let said = think_act_observe::run().await.unwrap();
    let expected = ["Which is larger, Oslo or Rome?", "I need two numbers.", "717000", "2755000", "Rome is larger."];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn the_chat_remembers_in_the_thread_and_in_the_store() {
    let said = chat_memory::run().await.unwrap();
    let expected = [
        "I will remember that I like tea.",
        "This is your message number 2 in this thread.",
        "This is your message number 1 in this thread.",
        "I like tea.",
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn documents_near_to_the_question_are_found() {
    let answer = rag::run().await.unwrap();
    assert!(answer.contains("not too hot") && answer.contains("Soft water") && !answer.contains("Coffee"), "{answer}");
}

#[tokio::test]
async fn research_gathers_the_findings_of_all_topics() {
    let report = research::run().await.unwrap();
    assert_eq!(report, "In short: soil is important. rain is important. sun is important.");
}

#[tokio::test(start_paused = true)]
async fn words_and_progress_are_seen_as_they_come() {
    let seen = streaming::run().await.unwrap();
    assert!(seen.starts_with("Let me put the kettle on. \n  \"40 degrees\""), "{seen}");
    assert!(seen.ends_with("[tools: 0.5 l of water boil]\nThe water boils; now let the tea draw for three minutes."));
}

#[tokio::test]
async fn answers_are_values() {
    let (alone, order) = structured_output::run().await.unwrap();
    assert_eq!((alone.pieces, order.pieces), (2, 3));
}

#[tokio::test]
async fn a_human_approves_edits_and_rejects() {
    let said = approval::run(approval::by_itself).await.unwrap();
    let expected = [
        "Not to everybody, please.",
        "sent to ann: Tea at four?",
        "sent to bob: Tea at five?",
        "The invitations are done.",
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_supervisor_lets_two_agents_work() {
    let said = supervisor::run().await.unwrap();
    let expected = [
        "supervisor: First the temperatures.",
        "weather: It is 7 degrees in Oslo and 24 in Rome.",
        "supervisor: Now the difference.",
        "sums: 24 - 7 = 17.",
        "supervisor: Rome is 17 degrees warmer than Oslo.",
    ];
    assert_eq!(said, expected);
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn an_agent_calls_the_tool_of_an_mcp_server() {
    let said = mcp::run(&[]).await.unwrap();
    let expected = [
        "tool haiku",
        "A haiku about tea, please.",
        "",
        "Leaves in the hot rain, / a cup of morning.",
        "Here you are.",
    ];
    assert_eq!(said, expected);
}
