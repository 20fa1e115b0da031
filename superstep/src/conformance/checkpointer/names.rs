//! Clauses on hostile names: each is a literal, or refused in words; none reaches the data of another.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Broken, Checked, ensure, equal};
use super::draft::{Draft, tail, task, whole};
use super::stage::{Stage, refused};
use crate::checkpoint::{CheckpointError, ListQuery};
use crate::id::CheckpointId;

/// More than 500 names, all different.
fn hostile() -> Vec<String> {
    let mut names: Vec<String> = MARKS.iter().map(|mark| (*mark).to_owned()).collect();
    for mark in MARKS {
        names.extend([
            format!("x{mark}"),
            format!("{mark}x"),
            format!("x{mark}y"),
            format!("{mark}{mark}"),
            format!("{mark} {mark}"),
        ]);
    }
    let long = 64 * 1024;
    names.extend(["a", "b", "'", "\u{1f980}"].map(|mark| mark.repeat(long / mark.len())));
    names.push(format!("{}b", "a".repeat(long - 1)));
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether a name was taken; otherwise it must have been refused in words.
fn taken<T>(name: &str, result: Result<T, CheckpointError>) -> Checked<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        error => refused(&format!("the name {}", super::super::short(&name)), error).map(|()| None),
    }
}

fn value_of(number: usize) -> Draft {
    Draft::new(super::draft::id_at(1000)).whole("value", number.to_string())
}

/// What is read under the name is its own value, or nothing, or refused.
async fn reads(stage: &Stage, thread: &str, namespace: &str, expected: Option<usize>) -> Checked {
    let found = stage.saver.get(thread, namespace, None).await;
    let what = format!("read from thread {thread:.40?}, namespace {namespace:.40?}");
    match (found, expected) {
        (found, Some(number)) => {
            let expected = value_of(number).saved([whole("value", number.to_string())]);
            super::difference::same(&what, found?.as_ref(), Some(&expected))
        }
        (Ok(None), None) => Ok(()),
        (found, None) => refused(&what, found),
    }
}

pub(super) async fn hostile_thread_names_are_literal(stage: Stage) -> Checked {
    let names = hostile();
    ensure!(names.len() >= 500, "the suite has only {} names", names.len());
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, name) in names.iter().enumerate() {
        reads(&stage, name, "", None).await?;
        let Some(claim) = taken(name, stage.saver.claim(name, "", None).await)? else { continue };
        ensure!(claim.head.is_none(), "the new thread {name:.40?} has a checkpoint already");
        let lease = crate::checkpoint::Lease::new(name, "", claim.epoch);
        stage.saver.put(lease, value_of(number).0).await?;
        known.insert(name, number);
    }
    for name in &names {
        reads(&stage, name, "", known.get(name.as_str()).copied()).await?;
    }
    let listed = stage.saver.threads(None, usize::MAX).await?;
    let expected: Vec<String> = known.keys().map(|name| (*name).to_owned()).collect();
    ensure!(
        listed == expected,
        "{} threads are listed in place of {}, or in another order",
        listed.len(),
        expected.len()
    );
    for name in known.keys().copied().step_by(2).collect::<Vec<_>>() {
        stage.saver.delete_thread(name).await?;
        known.remove(name);
    }
    for name in &names {
        reads(&stage, name, "", known.get(name.as_str()).copied()).await?;
    }
    Ok(())
}

pub(super) async fn hostile_namespaces_are_literal(stage: Stage) -> Checked {
    let (names, author) = (hostile(), stage.claim("t").await?);
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, name) in names.iter().enumerate() {
        reads(&stage, "t", name, None).await?;
        if taken(name, author.inside(name).put(&value_of(number)).await)?.is_some() {
            known.insert(name, number);
        }
    }
    for name in &names {
        reads(&stage, "t", name, known.get(name.as_str()).copied()).await?;
    }
    let expected: Vec<String> = known.keys().map(|name| (*name).to_owned()).collect();
    let listed = stage.saver.namespaces("t").await?;
    ensure!(
        listed == expected,
        "{} namespaces are listed in place of {}, or in another order",
        listed.len(),
        expected.len()
    );
    Ok(())
}

pub(super) async fn hostile_run_ids_are_literal(stage: Stage) -> Checked {
    let (names, mut author) = (hostile(), stage.claim("t").await?);
    let mut known: BTreeMap<&str, CheckpointId> = BTreeMap::new();
    for name in &names {
        let draft = author.draft().run(name);
        if let Some(id) = taken(name, author.put(&draft).await)? {
            let found = stage.get("t", id).await?.record.run;
            equal("a run's id", &found.as_deref(), &Some(name.as_str()))?;
            known.insert(name, id);
        }
    }
    let mut left: Vec<CheckpointId> = stage.ids("t", "").await?;
    for name in names.iter().step_by(3) {
        let Some(deleted) = taken(name, stage.saver.delete_run(name).await)? else { continue };
        let id = known.get(name.as_str()).copied();
        equal(format!("how many checkpoints of run {name:.40?} were deleted"), &deleted, &usize::from(id.is_some()))?;
        left.retain(|kept| Some(*kept) != id);
    }
    equal("what is left", &stage.ids("t", "").await?, &left)
}

pub(super) async fn hostile_metadata_is_literal(stage: Stage) -> Checked {
    let (names, mut author) = (hostile(), stage.claim("t").await?);
    let mut known: BTreeMap<&str, CheckpointId> = BTreeMap::new();
    for name in &names {
        let draft = author.draft().metadata(name, "by key").metadata("by value", name.as_str());
        let draft = draft.metadata("inside", json!({ name.as_str(): [name] }));
        if let Some(id) = taken(name, author.put(&draft).await)? {
            known.insert(name, id);
        }
    }
    for name in names.iter().step_by(7) {
        let id: Vec<CheckpointId> = known.get(name.as_str()).copied().into_iter().collect();
        for query in [
            ListQuery::new().metadata(name, "by key"),
            ListQuery::new().metadata("by value", name.as_str()),
            ListQuery::new().metadata("inside", json!({ name.as_str(): [name] })),
        ] {
            let Some(found) = taken(name, stage.saver.list("t", "", &query).await)? else { continue };
            let found: Vec<_> = found.iter().map(|saved| saved.record.id).collect();
            // `by value` and `inside` are keys of every checkpoint.
            equal(format!("found by the metadata {name:.40?}"), &found, &id)?;
        }
        let other = stage.saver.list("t", "", &ListQuery::new().metadata(name, Value::Null)).await;
        if let Some(found) = taken(name, other)? {
            equal("found by a value that nobody has", &found.len(), &0)?;
        }
    }
    Ok(())
}

pub(super) async fn hostile_fields_and_paths_are_literal(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let mut expected = Vec::new();
    for name in hostile() {
        let draft = author.draft().after(None).whole(&name, &name).tail("log", [&name]);
        let Some(id) = taken(&name, author.put(&draft).await)? else { continue };
        let mut saved = draft.saved([whole(&name, &name), tail("log", None, [&name])]);
        let record = task(1, &name).wrote(&name, &name).failed(&name).asked(&[&name]).answered(name.as_str());
        if taken(&name, author.write(id, record.clone()).await)?.is_some() {
            saved.writes = vec![record];
        }
        expected.push(saved);
    }
    for saved in expected.iter().step_by(5) {
        let found = stage.get("t", saved.record.id).await?;
        super::difference::same("a checkpoint of hostile names", Some(&found), Some(saved))?;
    }
    ensure!(!expected.is_empty(), "every name was refused");
    stage.saver.get("t", "", None).await?.map(drop).ok_or_else(|| Broken("the thread is empty".to_owned()))
}

/// What means something to databases, file systems, shells, formats or people.
#[rustfmt::skip]
const MARKS: &[&str] = &[
    "'", "''", "\"", "\"\"", "`", "\\", "\\\\", "\\'", "%", "%%", "_", "__", "*", "?", "[a-z]", "$.", "$", "$1",
    "?1", ":a", "@a", "#", "--", "')--", "'); DROP TABLE checkpoints; --", "' OR '1'='1", "\" OR \"\"=\"", "/*",
    "*/", ";", "||", "|", "\u{0}", "a\u{0}", "a\u{0}b", "\n", "\r\n", "\t", "\u{7f}", "\u{1}", "\u{1b}[31m", " ",
    "\u{a0}", "\u{2028}", "\u{200b}", "\u{feff}", "\u{202e}", "\u{301}", "e\u{301}", "é", "ﬁ", "fi", "ß", "ss", "ẞ",
    "İ", "i", "I", "ı", "K", "\u{212a}", "\u{1f980}", "\u{1f468}\u{200d}\u{1f469}", "\u{10ffff}", "\u{fffd}",
    "../..", "/etc/passwd", "C:\\", "a/b", "a//b", "./a", "~", "null", "NULL", "None", "true", "0", "-1", "1e3",
    "NaN", "{}", "[]", "{\"a\":1}", "[1,2]", "\"a\"", "{{a}}", "${a}", "%s", "%00", "&amp;", "<b>", "a", "A", "aa",
    "a ", " a", "a:b", "a|b", "a.b", "",
];
