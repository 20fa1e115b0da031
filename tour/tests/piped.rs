//! The tour as a file or a pipe sees it: complete, plain, and no wider than eighty columns.

use std::process::{Command, Stdio};

#[test]
fn plays_to_the_end_without_a_terminal() {
    let tour = Command::new(env!("CARGO_BIN_EXE_tour")).stdin(Stdio::null()).output().expect("the tour starts");
    let text = String::from_utf8(tour.stdout).expect("the tour is text");
    assert!(tour.status.success(), "{}", String::from_utf8_lossy(&tour.stderr));
    assert!(!text.contains('\u{1b}'), "a pipe gets no escapes");
    let too_wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(too_wide.is_empty(), "{too_wide:#?}");
    let said = |words: &str| assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    said("Found: step 6, 1 of 3 tasks done.");
    said("ending        fast again, 4.2 is off   fast again, 4.2 stays on");
    said("Called once for two processes and two endings: logs, metrics, releases.");
}
