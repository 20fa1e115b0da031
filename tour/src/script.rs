//! The scripted model: what a language model would say and want, without one.

use crate::graph::{Call, Finding, Incident, Proposal, Verdict};

/// What wakes the agent.
pub(crate) const ALERT: &str = "checkout is slow";
/// The tool whose finding the fork changes.
pub(crate) const DOUBTED: &str = "releases";
/// What the fork says that it found.
pub(crate) const EDITED: &str = "no release today";

/// What helps against a bad release.
const ROLL_BACK: &str = "roll back to 4.1";
/// What helps against too few connections.
const RAISE_POOL: &str = "raise the pool to 60";

/// What the model wants.
pub(crate) enum Turn {
    /// Tools called.
    Call(Vec<Call>),
    /// A human asked.
    Propose(Proposal),
    /// Nothing more.
    End(String),
}

/// The model's words and wish, as a function of what it knows.
pub(crate) fn reply(incident: &Incident) -> (String, Turn) {
    match (&incident.proposal, &incident.verdict) {
        (None, _) if incident.results.is_empty() => look(&incident.alert),
        (None, _) => propose(&incident.results),
        (Some(_), _) if incident.results.len() > READS.len() => end(incident),
        (Some(proposal), verdict) => act(fix(proposal, verdict.as_ref())),
    }
}

/// The fix that the human allowed, if any.
fn fix<'a>(proposal: &'a Proposal, verdict: Option<&'a Verdict>) -> Option<&'a str> {
    match verdict? {
        Verdict::Yes => Some(&proposal.fix),
        Verdict::Edit(other) => Some(other),
        Verdict::No => None,
    }
}

type Tool = (&'static str, u64, &'static str);
const READS: [Tool; 3] = [
    ("logs", 700, "418 × pool timeout since 10:02"),
    ("metrics", 1200, "p99 2.9 s, pool 20 of 20 in use"),
    (DOUBTED, 1800, "4.2 went out at 10:01"),
];
const ROLLOUT: [Tool; 3] = [("eu", 600, ""), ("us", 1300, ""), ("ap", 1500, "")];
const CALL_HUMANS: [Tool; 3] =
    [("page", 600, "on-call was paged"), ("ticket", 1300, "ticket is open"), ("status", 1500, "status page says so")];

fn calls(tools: [Tool; 3], answer: Option<&str>) -> Vec<Call> {
    let call =
        |(tool, millis, own): Tool| Call { tool: tool.to_owned(), millis, answer: answer.unwrap_or(own).to_owned() };
    tools.map(call).into()
}

fn look(alert: &str) -> (String, Turn) {
    (format!("Alert: {alert}. I look in three places at once."), Turn::Call(calls(READS, None)))
}

fn propose(found: &[Finding]) -> (String, Turn) {
    let released = found.iter().any(|f| f.tool == DOUBTED && f.text != EDITED);
    let (cause, fix) = if released { ("release 4.2", ROLL_BACK) } else { ("the pool is too small", RAISE_POOL) };
    (
        format!("Cause: {cause}. I would {fix}."),
        Turn::Propose(Proposal { cause: cause.to_owned(), fix: fix.to_owned() }),
    )
}

fn act(fix: Option<&str>) -> (String, Turn) {
    match fix {
        Some(fix) => ("Allowed. Three regions at once.".to_owned(), Turn::Call(calls(ROLLOUT, Some(fix)))),
        None => ("Not allowed. I call the humans.".to_owned(), Turn::Call(calls(CALL_HUMANS, None))),
    }
}

fn end(incident: &Incident) -> (String, Turn) {
    let proposal = incident.proposal.clone().unwrap_or_default();
    let ending = match fix(&proposal, incident.verdict.as_ref()) {
        Some(ROLL_BACK) => "fast again, 4.2 is off",
        Some(RAISE_POOL) => "fast again, 4.2 stays on",
        Some(_) => "as you said, in all regions",
        None => "still slow, humans are on it",
    };
    (format!("Done: {ending}."), Turn::End(ending.to_owned()))
}
