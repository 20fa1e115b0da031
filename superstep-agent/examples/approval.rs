//! A human's word before tools are called: approve a call, edit it, or reject it.
//!
//! `cargo run -p superstep-agent --example approval` asks on a terminal; without one it answers by itself.

use std::io::{self, IsTerminal, Write};

use superstep::{BoxError, MemorySaver, Message, Resume, ToolCall};
use superstep_agent::middleware::{
    ActionRequest, Approval, ApprovalAnswer, ApprovalRequest, Decision, DecisionKind, Decisions,
};
use superstep_agent::{ScriptedModel, create_react_agent, tool};

/// Sends a mail.
#[tool]
fn send_mail(to: String, text: String) -> String {
    format!("sent to {to}: {text}")
}

/// Stands for a model that wants to write three mails.
fn model() -> ScriptedModel {
    let mail = |to: &str| {
        let args = serde_json::json!({ "to": to, "text": "Tea at four?" });
        ToolCall::new(format!("mail to {to}"), "send_mail", args)
    };
    let mails = Message::calls("", [mail("ann"), mail("bob"), mail("everybody")]);
    ScriptedModel::new([mails, Message::assistant("The invitations are done.")])
}

/// Answers that need nobody.
pub(crate) fn by_itself(action: &ActionRequest) -> io::Result<Decision> {
    Ok(match action.args["to"].as_str() {
        Some("ann") => Decision::approve(),
        Some("bob") => Decision::edit("send_mail", serde_json::json!({ "to": "bob", "text": "Tea at five?" })),
        _ => Decision::reject("Not to everybody, please."),
    })
}

/// Asks on the terminal until the answer is one of three.
fn at_the_terminal(action: &ActionRequest) -> io::Result<Decision> {
    loop {
        match line(&format!("{} approve, edit or reject? ", action.description))?.as_str() {
            "approve" | "a" => return Ok(Decision::approve()),
            "edit" | "e" => {
                let mut args = action.args.clone();
                args["text"] = line("the text instead: ")?.into();
                return Ok(Decision::edit(&*action.name, args));
            }
            "reject" | "r" => return Ok(Decision::reject(line("why: ")?)),
            _ => {}
        }
    }
}

fn line(question: &str) -> io::Result<String> {
    print!("{question}");
    io::stdout().flush()?;
    let mut line = String::new();
    match io::stdin().read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim().to_owned()),
    }
}

/// What the tool, the human and the model said.
pub(crate) async fn run(human: fn(&ActionRequest) -> io::Result<Decision>) -> Result<Vec<String>, BoxError> {
    let decisions = Decisions::of([DecisionKind::Approve, DecisionKind::Edit, DecisionKind::Reject]);
    let approval = Approval::new()
        .tool("send_mail", decisions)
        .describe(|call| format!("May I write {} to {}?", call.args["text"], call.args["to"]));
    let agent = create_react_agent(model(), [send_mail]).middleware(approval).checkpointer(MemorySaver::new());
    let agent = agent.compile()?;

    let mut out = agent.invoke("Invite everybody to tea.").thread("t1").await?;
    while let Some(question) = out.interrupts.first() {
        let request: ApprovalRequest = question.value_as()?;
        let decisions = request.action_requests.iter().map(human).collect::<Result<Vec<_>, _>>()?;
        out = agent.invoke(Resume::value(ApprovalAnswer::new(decisions))).thread("t1").await?;
    }
    let said: Vec<_> = out.state.messages.iter().skip(2).map(|message| message.text().into_owned()).collect();
    said.iter().for_each(|words| println!("{words}"));
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run(if io::stdin().is_terminal() { at_the_terminal } else { by_itself }).await.map(drop)
}
