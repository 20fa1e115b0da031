//! Several agents on one conversation.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use superstep::{
    BoxError, CompiledStateGraph, Context, EventData, Interrupt, MemorySaver, Message, Mode, Output, Resume, START,
    State, StateGraph, ToolCall, Usage,
};
use superstep_agent::middleware::{
    Approval, ApprovalAnswer, Decision, Decisions, HistoryLimit, Limits, Per, Summarize,
};
use superstep_agent::team::{Handoff, OutputMode, Supervisor, Swarm, TeamMistake, agent_as_tool, handoff_tool};
use superstep_agent::{
    ReactAgent, ReactState, Reply, ScriptedModel, Tool, ToolContext, ToolError, ToolNode, ToolOutput, ToolSpec,
    create_react_agent, tool,
};

use crate::middleware::{Noting, call, calls, texts, using};

type Graph = CompiledStateGraph<ReactState>;

fn says<R: Into<Reply>>(name: &str, replies: impl IntoIterator<Item = R>) -> Graph {
    create_react_agent(ScriptedModel::new(replies), ()).name(name).compile().unwrap()
}

fn hands_to(agent: &str) -> Message {
    calls([call(&format!("to-{agent}"), &format!("transfer_to_{agent}"), json!({}))])
}

/// Who says what.
fn trace(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|m| format!("{}: {}", m.name().unwrap_or("-"), m.text())).collect()
}

fn all_calls_are_answered(messages: &[Message]) -> bool {
    let answered: BTreeSet<&str> = messages.iter().filter_map(Message::answers).collect();
    messages.iter().flat_map(Message::tool_calls).all(|call| answered.contains(&*call.id))
}

#[tokio::test]
async fn a_handoff_gives_the_other_agent_all_that_was_said() {
    let bob = ScriptedModel::new(["Bob here."]);
    let alice = create_react_agent(ScriptedModel::new([hands_to("bob")]), [handoff_tool("bob")]).name("alice");
    let team = Swarm::new()
        .agent(alice.compile().unwrap())
        .agent(create_react_agent(bob.clone(), ()).name("bob").compile().unwrap())
        .compile()
        .unwrap();
    let out = team.invoke("Bob, please.").await.unwrap();
    let expected =
        ["-: Bob, please.", "alice: ", "transfer_to_bob: The conversation is with `bob` now.", "bob: Bob here."];
    assert_eq!(trace(&out.state.messages), expected);
    assert_eq!(trace(&bob.requests()[0].messages), expected[..3]);
    assert!(all_calls_are_answered(&out.state.messages));
}

#[tokio::test]
async fn the_thread_remembers_who_has_the_conversation_also_in_its_past() {
    let alice =
        create_react_agent(ScriptedModel::new([hands_to("bob"), Message::assistant("Alice.")]), [handoff_tool("bob")]);
    let bob = create_react_agent(
        ScriptedModel::new([Message::assistant("Bob."), Message::assistant("Bob again."), hands_to("alice")]),
        [handoff_tool("alice")],
    );
    let team = Swarm::new()
        .agent(bob.name("bob").compile().unwrap())
        .agent(alice.name("alice").compile().unwrap())
        .begin_with("alice")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let mut last = Vec::new();
    for question in ["1", "2", "3"] {
        let out = team.invoke(question).thread("t").await.unwrap();
        last.push(trace(&out.state.messages).pop().unwrap());
    }
    assert_eq!(last, ["bob: Bob.", "bob: Bob again.", "alice: Alice."]);
}

#[tokio::test]
async fn who_spoke_last_has_the_conversation_if_the_handoff_is_not_remembered_any_more() {
    let team = Swarm::new().agent(says("alice", ["A"])).agent(says("bob", ["B"])).compile().unwrap();
    let history = vec![Message::assistant("hm").with_name("bob"), Message::user("go on")];
    assert_eq!(team.invoke(history).await.unwrap().state.messages[2].text(), "B");
}

/// Handing over ends the agent's turn, so nobody would hear of what else it called.
#[tokio::test]
async fn nothing_else_is_called_in_the_message_that_hands_over() {
    let (mail, bob) = (Noting::new("mail"), ScriptedModel::new(["Bob."]));
    let wishes = calls([
        call("m", "mail", json!({})),
        call("h1", "transfer_to_bob", json!({})),
        call("h2", "transfer_to_carl", json!({})),
    ]);
    let tools: Vec<Arc<dyn Tool>> =
        vec![Arc::new(mail.clone()), Arc::new(handoff_tool("bob")), Arc::new(handoff_tool("carl"))];
    let alice = create_react_agent(ScriptedModel::new([wishes]), tools).name("alice").compile().unwrap();
    let team = Swarm::new()
        .agent(alice)
        .agent(create_react_agent(bob.clone(), ()).name("bob").compile().unwrap())
        .agent(says("carl", ["never"]))
        .compile()
        .unwrap();
    let out = team.invoke("Go!").await.unwrap();
    assert_eq!(mail.calls(), [] as [Value; 0]);
    assert_eq!(out.state.messages.last().unwrap().text(), "Bob.");
    let read = &bob.requests()[0].messages;
    let not_called = "Not called, because the conversation was handed to `bob`. Call it again if needed.";
    assert_eq!(texts(&read[2..]), [not_called, "The conversation is with `bob` now.", not_called]);
    assert_eq!(read[2..].iter().map(Message::is_error).collect::<Vec<_>>(), [true, false, true]);
}

#[tokio::test]
async fn a_handoff_works_from_a_tool_node_of_a_graph_of_ones_own() {
    let mut inner = StateGraph::<ReactState>::new();
    inner
        .add_node("model", |_: ReactState| async {
            let wishes = calls([call("h", "to_bob", json!({})), call("x", "other", json!({}))]);
            superstep::Update::<ReactState>::new().set(ReactState::MESSAGES, vec![wishes])
        })
        .add_node("tools", ToolNode::new([handoff_tool("bob").named("to_bob").description("To Bob.")]))
        .add_sequence(["model", "tools"])
        .name("alice");
    let team = Swarm::new().agent(inner.compile().unwrap()).agent(says("bob", ["Bob."])).compile().unwrap();
    let out = team.invoke("Go!").await.unwrap();
    assert_eq!(out.state.messages.last().unwrap().text(), "Bob.");
    assert!(all_calls_are_answered(&out.state.messages));
}

#[derive(State, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Case {
    #[state(messages)]
    messages: Vec<Message>,
    customer: Option<String>,
    #[state(append)]
    log: Vec<String>,
}

/// Finds out who it is.
#[tool]
fn identify(#[inject] call: ToolCall) -> superstep::Command<Case> {
    let answer = vec![Message::tool_result(call.id, "It is Ann.")];
    superstep::Command::new().update(Case::update().customer("Ann").log(["identified"]).messages(answer))
}

#[tokio::test]
async fn agents_over_a_state_of_ones_own_share_its_last_values_and_keep_what_they_collect() {
    let desk = ScriptedModel::new([calls([call("i", "identify", json!({}))]), hands_to("bills")]);
    let desk = ReactAgent::<Case>::new(desk).tool(identify).tool(Handoff::<Case>::to("bills")).name("desk");
    let bills = ReactAgent::<Case>::new(ScriptedModel::new(["Paid."]))
        .prompt_with(|case: &Case| format!("You talk to {:?}.", case.customer))
        .name("bills");
    let team = Swarm::new().agent(desk.compile().unwrap()).agent(bills.compile().unwrap()).compile().unwrap();
    let input = Case { messages: vec![Message::user("My bill?")], customer: None, log: vec!["began".into()] };
    let out = team.invoke(input).await.unwrap();
    assert_eq!(out.state.customer.as_deref(), Some("Ann"));
    assert_eq!(out.state.log, ["began"]);
    assert_eq!(out.state.messages.last().unwrap().text(), "Paid.");
}

/// A supervisor that lets `math` add, and then answers.
fn sums(output: OutputMode, hand_back: bool) -> (ScriptedModel, Graph) {
    let lead = ScriptedModel::new([hands_to("math"), Message::assistant("It is 3.")]);
    let add =
        ScriptedModel::new([calls([call("a", "add", json!({ "a": 1, "b": 2 }))]), Message::assistant("1 + 2 = 3")]);
    let math = create_react_agent(add, [Noting::new("add")]).name("math").compile().unwrap();
    let team = Supervisor::new(lead.clone())
        .prompt("You lead.")
        .agent(math, "Adds numbers.")
        .output(output)
        .hand_back_messages(hand_back)
        .compile()
        .unwrap();
    (lead, team)
}

#[tokio::test]
async fn a_supervisor_hands_work_out_and_answers_itself() {
    let (lead, team) = sums(OutputMode::LastMessage, true);
    let out = team.invoke("1 + 2?").await.unwrap();
    let expected = [
        "-: 1 + 2?",
        "supervisor: ",
        "transfer_to_math: The conversation is with `math` now.",
        "math: 1 + 2 = 3",
        "math: I give the conversation back to `supervisor`.",
        "transfer_back_to_supervisor: The conversation is back with `supervisor`.",
        "supervisor: It is 3.",
    ];
    assert_eq!(trace(&out.state.messages), expected);
    assert!(all_calls_are_answered(&out.state.messages));
    let told = &lead.requests()[0];
    assert_eq!(told.messages[0], Message::system("You lead."));
    assert!(told.tools[0].name == "transfer_to_math" && told.tools[0].description.contains("Adds numbers."));
    assert_eq!(team.name(), "supervisor");
}

#[tokio::test]
async fn the_others_see_all_of_an_agents_work_or_its_answer_with_or_without_messages_of_giving_back() {
    let (_, team) = sums(OutputMode::FullHistory, false);
    let out = team.invoke("1 + 2?").await.unwrap();
    let names: Vec<_> = out.state.messages.iter().map(|m| m.name().unwrap_or("-")).collect();
    assert_eq!(names, ["-", "supervisor", "transfer_to_math", "math", "add", "math", "supervisor"]);
    let (_, team) = sums(OutputMode::LastMessage, false);
    assert_eq!(team.invoke("1 + 2?").await.unwrap().state.messages.len(), 5);
}

#[tokio::test]
async fn the_messages_of_giving_back_use_up_nothing() {
    let lead = ScriptedModel::new([hands_to("math"), hands_to("math"), Message::assistant("Done.")]);
    let team = Supervisor::new(lead)
        .agent(says("math", ["1", "2"]), "Adds numbers.")
        .lead(|lead| lead.middleware(Limits::new().model_calls(Per::Run, 5)))
        .compile()
        .unwrap();
    assert_eq!(team.invoke("Go!").await.unwrap().state.messages.last().unwrap().text(), "Done.");
}

#[tokio::test]
async fn teams_can_be_members_of_teams_and_graphs_can_be_configured() {
    let (_, inner) = sums(OutputMode::LastMessage, true);
    let outer = Supervisor::new(ScriptedModel::new([hands_to("supervisor"), Message::assistant("Top says 3.")]))
        .name("top")
        .agent(inner, "Leads the sums.")
        .configure(|graph| graph.checkpointer(MemorySaver::new()))
        .compile()
        .unwrap();
    let out = outer.invoke("1 + 2?").thread("t").await.unwrap();
    let trace = trace(&out.state.messages);
    assert!(trace.contains(&"supervisor: It is 3.".to_owned()), "{trace:?}");
    assert_eq!(trace.last().unwrap(), "top: Top says 3.");
}

#[test]
fn all_mistakes_of_a_team_are_told_at_once() {
    let nameless = create_react_agent(ScriptedModel::new(["x"]), ()).compile().unwrap();
    let team = Swarm::new().agent(nameless).agent(says("bob", ["x"])).agent(says("bob", ["x"])).begin_with("ann");
    let error = team.compile().err().unwrap();
    let expected = "an agent of the team has no name; give it one with `name` before it is compiled; \
        two agents of the team are called `bob`, or nearly so; give one of them another name; \
        no agent of the team is called `ann`, which is to begin; there are [\"graph\", \"bob\", \"bob\"]";
    assert_eq!(error.to_string(), expected);
    assert_eq!(format!("{error:?}"), expected, "`main` shows the same words");
    let own_name = Supervisor::new(ScriptedModel::new(["x"])).agent(says("supervisor", ["x"]), "").compile();
    assert!(matches!(own_name.err().unwrap().mistakes(), [TeamMistake::SameName { .. }]));
    let nobody = Supervisor::<ReactState>::new(ScriptedModel::new(["x"])).compile();
    assert!(matches!(nobody.err().unwrap().mistakes(), [TeamMistake::Empty]));
    let broken = Swarm::new().agent(says("bob", ["x"])).configure(|graph| graph.add_edge("bob", "nowhere")).compile();
    assert!(matches!(broken.err().unwrap().mistakes(), [TeamMistake::Graph(_)]));
}

#[tokio::test]
async fn handing_over_to_somebody_who_is_not_there_fails_with_names_and_the_thread_goes_on() {
    let model = ScriptedModel::new([hands_to("nobody"), Message::assistant("Then I do it.")]);
    let alice = create_react_agent(model, [handoff_tool("nobody")]).name("alice").compile().unwrap();
    let team = Swarm::new().agent(alice).checkpointer(MemorySaver::new()).compile().unwrap();
    let error = team.invoke("Go!").thread("t").await.unwrap_err();
    let words = "the conversation was handed to `nobody`, who is not in the team; there are [\"alice\"]";
    assert!(error.to_string().contains(words), "{error}");
    let out = team.invoke("And now?").thread("t").await.unwrap();
    assert_eq!(trace(&out.state.messages), ["-: Go!", "-: And now?", "alice: Then I do it."]);
}

#[tokio::test]
async fn a_member_may_hand_on_to_another_who_then_gives_back() {
    let ann = create_react_agent(ScriptedModel::new([hands_to("bob")]), [handoff_tool("bob")]).name("ann");
    let lead = ScriptedModel::new([hands_to("ann"), Message::assistant("Done.")]);
    let team = Supervisor::new(lead.clone())
        .agent(ann.compile().unwrap(), "First.")
        .agent(says("bob", ["Bob did it."]), "Second.")
        .hand_back_messages(false)
        .compile()
        .unwrap();
    let out = team.invoke("Go!").await.unwrap();
    let spoke: Vec<_> = out.state.messages.iter().map(|m| m.name().unwrap_or("-")).collect();
    assert_eq!(spoke, ["-", "supervisor", "transfer_to_ann", "ann", "transfer_to_bob", "bob", "supervisor"]);
    assert_eq!(lead.requests().len(), 2, "the supervisor waits for the last of them");
}

#[test]
fn a_team_knows_where_its_agents_lead() {
    let supervised =
        Supervisor::new(ScriptedModel::new(["x"])).agent(says("ann", ["x"]), "").agent(says("bob", ["x"]), "");
    let peers = Swarm::new().agent(says("ann", ["x"])).agent(says("bob", ["x"]));
    for team in [supervised.compile().unwrap(), peers.compile().unwrap()] {
        assert_eq!(team.diagnostics(), []);
    }
}

#[tokio::test]
async fn a_question_of_a_member_pauses_the_team_and_its_answer_reaches_it() {
    let pay = Noting::new("pay");
    let teller = ScriptedModel::new([calls([call("p", "pay", json!({ "sum": 3 }))]), Message::assistant("Paid.")]);
    let teller = create_react_agent(teller, [pay.clone()])
        .middleware(Approval::new().tool("pay", Decisions::all()))
        .name("teller")
        .compile()
        .unwrap();
    let team = Supervisor::new(ScriptedModel::new([hands_to("teller"), Message::assistant("All paid.")]))
        .agent(teller, "Pays.")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let asked = team.invoke("Pay 3.").thread("t").await.unwrap();
    assert_eq!(asked.interrupts[0].value["action_requests"][0]["name"], "pay");
    assert!(pay.calls().is_empty());
    let answer = ApprovalAnswer::new([Decision::edit("pay", json!({ "sum": 2 }))]);
    let out = team.invoke(Resume::value(answer)).thread("t").await.unwrap();
    assert_eq!(pay.calls(), [json!({ "sum": 2 })]);
    assert_eq!(trace(&out.state.messages).last().unwrap(), "supervisor: All paid.");
}

#[tokio::test]
async fn a_members_words_are_streamed_with_its_name_and_place() {
    let (_, team) = sums(OutputMode::LastMessage, true);
    let mut events = team.stream("1 + 2?").mode(Mode::Messages).subgraphs().start();
    let mut pieces: Vec<(Vec<String>, String, String)> = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        let path = event.path().iter().map(|&part| part.to_owned()).collect();
        let EventData::Message(said) = event.data else { panic!("only messages were asked for") };
        if said.chunk.is_some() && !said.message.text().is_empty() {
            pieces.push((path, said.message.name().unwrap_or("-").to_owned(), said.message.text().into_owned()));
        }
    }
    let words_of = |name: &str| {
        let own = pieces.iter().filter(|(path, speaker, _)| *path == [name] && speaker == name);
        own.map(|(_, _, text)| text.as_str()).collect::<String>()
    };
    assert_eq!(words_of("math"), "1 + 2 = 3");
    assert_eq!(words_of("supervisor"), "It is 3.");
    assert_eq!(pieces.len(), 8, "nobody else speaks: {pieces:?}");
}

/// The team has the messages itself; a member's summary of them would stand beside them.
#[tokio::test]
async fn a_members_summary_stays_with_the_member() {
    let short = Summarize::new(ScriptedModel::new(["notes"]), HistoryLimit::Messages(2)).keep(1);
    let model = ScriptedModel::new(["ok"]);
    let bob = create_react_agent(model.clone(), ()).middleware(short).name("bob").compile().unwrap();
    let team = Swarm::new().agent(bob).compile().unwrap();
    let history: Vec<Message> = ["a", "b", "c"].map(Message::user).to_vec();
    let out = team.invoke(history).await.unwrap();
    assert_eq!(texts(&out.state.messages), ["a", "b", "c", "ok"]);
    assert_eq!(model.requests()[0].messages.len(), 2);
}

fn asks_expert(words: &str) -> Message {
    calls([call("e", "expert", json!({ "request": words }))])
}

#[tokio::test]
async fn an_agent_as_a_tool_gives_its_last_message_and_keeps_the_rest_to_itself() {
    let expert = ScriptedModel::new([
        calls([call("n", "note", json!({}))]),
        using(Message::assistant("Oolong."), Usage::new(1, 1)),
    ]);
    let inner = create_react_agent(expert.clone(), [Noting::new("note")]).name("expert").compile().unwrap();
    let tool = agent_as_tool(inner, "expert", "Knows tea.");
    assert_eq!((&*tool.spec().description, &tool.spec().parameters["required"]), ("Knows tea.", &json!(["request"])));
    let model = ScriptedModel::new([
        asks_expert("Which tea?"),
        calls([call("b", "expert", json!({}))]),
        Message::assistant("Drink."),
    ]);
    let agent = create_react_agent(model, [tool]).compile().unwrap();
    let out = agent.invoke("What shall I drink?").await.unwrap();
    let said = texts(&out.state.messages);
    assert_eq!((said.len(), &*said[2], &*said[5]), (6, "Oolong.", "Drink."));
    assert!(out.state.messages[4].is_error() && said[4].contains("missing field `request`"), "{}", said[4]);
    assert_eq!(texts(&expert.requests()[0].messages), ["Which tea?"]);
}

/// An agent that asks a human about whatever it is told.
fn asker() -> Graph {
    /// Asks.
    #[tool]
    async fn ask(what: String, #[inject] cx: Context) -> Result<String, BoxError> {
        Ok(format!("{what}: {}", cx.interrupt::<String>(&*what)?))
    }
    let model = ScriptedModel::thinking(|request| {
        let last = request.messages.last().unwrap();
        match last.answers() {
            Some(_) => Message::assistant(last.text()),
            None => calls([call("q", "ask", json!({ "what": last.text() }))]),
        }
    });
    create_react_agent(model, [ask]).name("asker").compile().unwrap()
}

#[tokio::test]
async fn questions_of_agents_as_tools_pause_the_outer_run_each_by_itself() {
    let wishes = ["tea", "milk"].map(|what| call(what, "asker", json!({ "request": what })));
    let agent = create_react_agent(
        ScriptedModel::new([calls(wishes), Message::assistant("Noted.")]),
        [agent_as_tool(asker(), "asker", "Asks.")],
    );
    let agent = agent.checkpointer(MemorySaver::new()).compile().unwrap();
    let asked = agent.invoke("Order!").thread("t").await.unwrap();
    assert_eq!(asked.interrupts.iter().map(|i| i.value.clone()).collect::<Vec<_>>(), [json!("tea"), json!("milk")]);
    let answers = asked.interrupts.iter().map(|i| (i.id.clone(), format!("yes, {}", i.value.as_str().unwrap())));
    let out = agent.invoke(Resume::by_id(answers)).thread("t").await.unwrap();
    assert_eq!(texts(&out.state.messages[2..]), ["tea: yes, tea", "milk: yes, milk", "Noted."]);
}

/// In one node that was reached by an edge, the question of one agent must not hide that of another.
#[tokio::test]
async fn questions_of_agents_as_tools_in_one_task_are_open_at_once() {
    let app = StateGraph::<ReactState>::new()
        .add_node("tools", ToolNode::new([agent_as_tool(asker(), "asker", "Asks.")]))
        .add_edge(START, "tools")
        .checkpointer(MemorySaver::new())
        .compile()
        .unwrap();
    let wishes = || calls(["tea", "milk", "sugar"].map(|what| call(what, "asker", json!({ "request": what }))));
    let values = |out: &Output<ReactState>| out.interrupts.iter().map(|i| i.value.clone()).collect::<Vec<_>>();
    let yes = |i: &Interrupt| (i.id.clone(), format!("yes, {}", i.value.as_str().unwrap()));
    let expected = ["tea: yes, tea", "milk: yes, milk", "sugar: yes, sugar"];

    let asked = app.invoke(wishes()).thread("all at once").await.unwrap();
    assert_eq!(values(&asked), ["tea", "milk", "sugar"]);
    let out = app.invoke(Resume::by_id(asked.interrupts.iter().map(yes))).thread("all at once").await.unwrap();
    assert_eq!(texts(&out.state.messages[1..]), expected);

    let asked = app.invoke(wishes()).thread("one by one").await.unwrap();
    let asked = app.invoke(Resume::by_id([yes(&asked.interrupts[1])])).thread("one by one").await.unwrap();
    assert_eq!(values(&asked), ["tea", "sugar"]);
    let asked = app.invoke(Resume::by_id([yes(&asked.interrupts[0])])).thread("one by one").await.unwrap();
    assert_eq!(values(&asked), ["sugar"]);
    let out = app.invoke(Resume::value("yes, sugar")).thread("one by one").await.unwrap();
    assert_eq!(texts(&out.state.messages[1..]), expected);
}

#[tokio::test]
async fn the_words_of_an_agent_as_a_tool_are_streamed_under_its_namespace_with_its_name() {
    let inner = says("expert", ["Oolong of course."]);
    let model = ScriptedModel::new([asks_expert("Which tea?"), Message::assistant("Drink it.")]);
    let agent = create_react_agent(model, [agent_as_tool(inner, "expert", "Knows tea.")]).name("waiter");
    let agent = agent.compile().unwrap();
    let mut events = agent.stream("Tea!").mode(Mode::Messages).subgraphs().start();
    let (mut expert, mut waiter) = (String::new(), String::new());
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        let path: Vec<String> = event.path().iter().map(|&part| part.to_owned()).collect();
        let EventData::Message(said) = event.data else { panic!("only messages were asked for") };
        if said.chunk.is_none() {
            continue;
        }
        match said.message.name() {
            Some("expert") => {
                assert_eq!(path, ["tools"]);
                expert += &said.message.text();
            }
            Some("waiter") => {
                assert!(path.is_empty());
                waiter += &said.message.text();
            }
            other => panic!("{other:?} speaks"),
        }
    }
    assert_eq!((&*expert, &*waiter), ("Oolong of course.", "Drink it."));
}

#[tokio::test]
async fn an_agent_as_a_tool_that_fails_is_a_tool_that_failed() {
    struct Broken;
    #[async_trait]
    impl Tool for Broken {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("broken", "Fails.")
        }
        async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
            Err(ToolError::failed("the cable is cut"))
        }
    }
    let inner = create_react_agent(ScriptedModel::new([calls([call("x", "broken", json!({}))])]), [Broken]);
    let inner = inner.name("expert").compile().unwrap();
    let agent = create_react_agent(ScriptedModel::new([asks_expert("go")]), [agent_as_tool(inner, "expert", "Fails.")]);
    let error = agent.compile().unwrap().invoke("Go!").await.unwrap_err();
    assert!(error.to_string().contains("the cable is cut"), "{error}");
}
