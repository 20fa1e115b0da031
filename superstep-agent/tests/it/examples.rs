//! The examples, run.

#[cfg(all(feature = "mcp", unix))]
mod mcp_servers;
#[cfg(all(feature = "openai", feature = "anthropic", feature = "gemini"))]
mod zhipu;

#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/agent_simulation.rs"]
mod agent_simulation;
#[expect(dead_code, reason = "`main` is for `cargo run --example`, and a terminal for those who have one")]
#[path = "../../examples/approval.rs"]
mod approval;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/chat_memory.rs"]
mod chat_memory;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/hierarchical_teams.rs"]
mod hierarchical_teams;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/lats.rs"]
mod lats;
#[cfg(feature = "mcp")]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/mcp.rs"]
mod mcp;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/memory_persistence.rs"]
mod memory_persistence;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/plan_and_execute.rs"]
mod plan_and_execute;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/rag.rs"]
mod rag;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/react_linear.rs"]
mod react_linear;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/reflexion.rs"]
mod reflexion;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/research.rs"]
mod research;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/rewoo.rs"]
mod rewoo;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/self_rag.rs"]
mod self_rag;
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
#[path = "../../examples/state_graph_echo.rs"]
mod state_graph_echo;
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
async fn what_a_plan_names_is_found_and_filled_in() {
    let (found, answer) = rewoo::run().await.unwrap();
    let expected = ["#E1 Jannik Sinner won in 2024", "#E2 Jannik Sinner", "#E3 he grew up in Sexten, in South Tyrol"];
    assert_eq!((found, &*answer), (expected.map(String::from).to_vec(), "Sexten"));
}

#[tokio::test]
async fn a_plan_is_made_carried_out_and_made_anew() {
    let (done, response) = plan_and_execute::run().await.unwrap();
    let steps: Vec<_> = done.iter().map(|(step, result)| (step.as_str(), result.as_str())).collect();
    let expected = [
        ("find the winner of the Australian Open 2024", "Jannik Sinner won."),
        ("find the hometown of Jannik Sinner", "He is from Sexten."),
    ];
    assert_eq!((steps, &*response), (expected.to_vec(), "Jannik Sinner is from Sexten."));
}

#[tokio::test]
async fn a_customer_who_is_played_talks_to_the_bot_until_he_is_finished() {
    let expected = [
        "Hi! How can I help you?",
        "I want a refund for Alaska.",
        "After five years there is no refund.",
        "I want ALL of it.",
        "I am sorry, no.",
        "FINISHED",
    ];
    assert_eq!(agent_simulation::run().await.unwrap(), expected);
}

#[tokio::test]
async fn an_answer_is_revised_by_what_was_looked_up() {
    let (findings, last) = reflexion::run().await.unwrap();
    let topics: Vec<_> = findings.iter().filter_map(|finding| Some(finding.split_once(": ")?.0)).collect();
    assert_eq!(topics, ["carbon in trees", "cost of trees", "area for trees"]);
    assert_eq!(last.text, "Trees bind carbon [1], if there is room [2].");
    assert_eq!(last.references, ["https://example.com/carbon-in-trees"]);
}

#[tokio::test]
async fn documents_and_answers_are_graded() {
    let expected = [
        "search: What do they remember, degrees aside?",
        "0 of 1 are relevant",
        "search: What memory do agents have?",
        "2 of 2 are relevant",
        "answer: As elephants do.",
        "answer: Short-term and long-term memory.",
    ];
    assert_eq!(self_rag::run().await.unwrap(), expected);
}

#[tokio::test]
async fn a_tree_of_answers_is_searched_where_it_promises_most() {
    let (answers, best) = lats::run().await.unwrap();
    assert_eq!((answers, best.as_deref()), (7, Some("red green blue")));
}

#[tokio::test]
async fn teams_of_teams_report_to_who_leads_them() {
    let (said, paper) = hierarchical_teams::run().await.unwrap();
    assert_eq!(said, ["research: Cats sleep 15 hours a day.", "writing: The poem is written."]);
    assert_eq!(paper, "Cats sleep, 15 hours.");
}

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

#[tokio::test]
async fn an_echo_is_the_smallest_graph() {
    assert_eq!(state_graph_echo::run("hello").await.unwrap(), ["hello", "hello"]);
}

#[tokio::test]
async fn a_straight_line_acts_once_or_not_at_all() {
    let said = react_linear::run(react_linear::script()).await.unwrap();
    let expected = [
        "Which is larger, Oslo or Atlantis?",
        "I need two numbers.",
        "717000",
        "nobody has counted Atlantis",
        "Oslo is larger than what nobody has counted.",
    ];
    assert_eq!(said, expected);
    let knows = react_linear::run(superstep_agent::ScriptedModel::new(["Oslo: Atlantis is under water."])).await;
    assert_eq!(knows.unwrap(), ["Which is larger, Oslo or Atlantis?", "Oslo: Atlantis is under water."]);
}

#[tokio::test]
async fn a_chat_in_a_file_goes_on_in_another_process() {
    let folder = std::env::temp_dir().join(format!("superstep-memory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("chat.db");
    assert_eq!(memory_persistence::run(&file, "I am Ada.").await.unwrap(), "Nice to meet you.");
    let answer = memory_persistence::run(&file, "I like tea.").await.unwrap();
    assert_eq!(answer, "You told me before: I am Ada.");

    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "examples::the_other_process"]).env("SUPERSTEP_MEMORY", &file);
    let output = other.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Started by the test above; by itself it has nothing to do.
#[tokio::test]
async fn the_other_process() {
    let Some(file) = std::env::var_os("SUPERSTEP_MEMORY") else { return };
    let answer = memory_persistence::run(file.as_ref(), "Who am I?").await.unwrap();
    assert_eq!(answer, "You told me before: I am Ada. I like tea.");
}
