//! Conversations that are trimmed and filtered.

use serde_json::json;
use superstep::{Message, Role, ToolCall};
use superstep_agent::message::{MessageFilter, Trim, filter_messages, trim_messages};

/// A conversation in which the ids tell the order.
fn conversation() -> Vec<Message> {
    let call = |id: &str| ToolCall::new(id, "add", json!({}));
    let messages = [
        Message::system("s"),
        Message::user("u"),
        Message::calls("", [call("c1"), call("c2")]),
        Message::tool_result("c1", "1"),
        Message::tool_result("c2", "2"),
        Message::assistant("a"),
        Message::user("u"),
        Message::calls("", [call("c3")]),
        Message::tool_result("c3", "3"),
        Message::assistant("a"),
    ];
    messages.into_iter().enumerate().map(|(place, message)| message.with_id(place.to_string())).collect()
}

#[track_caller]
fn check(trim: &Trim, expected: &str) {
    let kept = trim_messages(&conversation(), trim);
    assert_eq!(kept.iter().map(|message| message.id.as_deref().unwrap()).collect::<Vec<_>>().join(""), expected);
}

fn to(tokens: usize) -> Trim {
    Trim::to(tokens, |_| 1)
}

#[test]
fn the_last_messages_are_kept() {
    check(&to(0), "");
    check(&to(1), "9");
    check(&to(10), "0123456789");
    check(&to(99), "0123456789");
}

#[test]
fn a_call_and_its_results_are_kept_together() {
    check(&to(2), "9");
    check(&to(3), "789");
    check(&to(6), "56789");
    check(&to(7), "56789");
    check(&to(8), "23456789");
    check(&to(3).keep_first(), "01");
    check(&to(5).keep_first(), "01234");
}

#[test]
fn the_system_is_kept_if_that_is_wished() {
    check(&to(4).keep_system(), "0789");
    check(&to(0).keep_system(), "0");
    check(&to(3).keep_system().keep_first(), "01");
}

#[test]
fn what_is_kept_begins_with_the_right_role() {
    check(&to(5).start_on([Role::User]), "6789");
    check(&to(3).start_on([Role::User]), "");
    check(&to(5).keep_system().start_on([Role::User]), "06789");
    check(&to(9).start_on([Role::Assistant]), "23456789");
}

#[test]
fn results_that_come_late_still_belong_to_their_call() {
    let call = |id: &str| Message::calls("", [ToolCall::new(id, "add", json!({}))]);
    let messages =
        [call("a"), Message::user("u"), call("b"), Message::tool_result("a", "1"), Message::tool_result("b", "2")];
    assert_eq!(trim_messages(&messages, &to(4)), []);
    assert_eq!(trim_messages(&messages, &to(5)), messages);
}

#[test]
fn messages_are_filtered_by_role_name_and_id() {
    let ids = |filter: &MessageFilter| {
        let kept = filter_messages(&conversation(), filter);
        kept.iter().map(|message| message.id.clone().unwrap()).collect::<String>()
    };
    assert_eq!(ids(&MessageFilter::new()), "0123456789");
    assert_eq!(ids(&MessageFilter::new().roles([Role::User, Role::System])), "016");
    assert_eq!(ids(&MessageFilter::new().without_roles([Role::Tool]).without_ids(["0", "9"])), "12567");
    assert_eq!(ids(&MessageFilter::new().names(["ada"])), "");
}
