//! Clauses on values: exactly what was given comes back, inherited from the base and from nowhere else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Checked, ensure, equal};
use super::difference::same;
use super::draft::{Draft, tail, whole};
use super::stage::{Stage, refused};
use crate::checkpoint::{ListQuery, SavedCheckpoint, SavedField, Source};
use crate::value::Blob;

pub(super) async fn a_thread_that_nobody_wrote_to_is_empty(stage: Stage) -> Checked {
    let id = stage.id();
    for at in [None, Some(id)] {
        ensure!(stage.saver.get("t", "", at).await?.is_none(), "there is a checkpoint that nobody saved");
    }
    ensure!(stage.list("t", "", &ListQuery::new()).await?.is_empty(), "a checkpoint is listed that nobody saved");
    ensure!(stage.saver.namespaces("t").await?.is_empty(), "there is a namespace that nobody made");
    let claim = stage.saver.claim("t", "", Some(id)).await?;
    ensure!(claim.head.is_none() && claim.found.is_none(), "a claim found a checkpoint that nobody saved");
    stage.holds("t", "", &[]).await
}

pub(super) async fn a_checkpoint_is_given_back_as_it_was_saved(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let large: Vec<u8> = (0..1 << 20).map(|byte: u32| (byte % 251) as u8).collect();
    let every_byte: Vec<u8> = (0..=255).collect();
    let first = author.draft().source(Source::Input).run("run-1").whole("empty", b"").whole("large", &large);
    let first = first.whole("every byte", &every_byte).whole("größe \u{1f980}", b"crab").tail("log", [&b""[..], b"x"]);
    author.put(&first).await?;
    let first = first.saved([
        whole("empty", b""),
        whole("large", &large),
        whole("every byte", &every_byte),
        whole("größe \u{1f980}", b"crab"),
        tail("log", None, [&b""[..], b"x"]),
    ]);
    let mut second = author.draft().source(Source::Update).step(i64::from(i32::MAX) + 7).under(stage.id());
    (second.0.shape, second.0.control) = (Blob::from(large.clone()), every_byte.into());
    second.0.format = 0;
    author.put(&second).await?;
    let second = second.saved(first.fields.clone());
    let mut third = author.draft().source(Source::Fork).parent(None).step(-1);
    (third.0.shape, third.0.control) = (Blob::default(), Blob::default());
    author.put(&third).await?;
    let third = third.saved(first.fields.clone());
    author.holds(&[third, second, first]).await
}

pub(super) async fn every_kind_of_metadata_is_given_back(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let values = [
        Value::Null,
        json!(false),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.0),
        json!(0.1),
        json!(""),
        json!("größe \u{1f980} \\ \" ' \n"),
        json!([]),
        json!({}),
        json!([1, [2, { "three": [null] }]]),
        json!({ "b": 1, "a": { "": "empty key", "\u{1f980}": true } }),
    ];
    let mut draft = author.draft();
    for (number, value) in values.into_iter().enumerate() {
        draft = draft.metadata(&format!("key {number}"), value);
    }
    let parents = [("", stage.id()), ("outer:1", stage.id()), ("outer:1|größe:2", stage.id())];
    draft.0.parents = BTreeMap::from(parents.map(|(name, id)| (name.to_owned(), id))).into();
    author.put(&draft).await?;
    author.holds(&[draft.saved([])]).await
}

pub(super) async fn namespaces_of_a_thread_do_not_mix(stage: Stage) -> Checked {
    let root = stage.claim("t").await?;
    let names = ["", "child", "child:1", "child:1|grandchild:2", "Child", "child "];
    let mut spaces = Vec::new();
    for name in names {
        let mut author = root.inside(name);
        let (older, newer) = (author.add(&format!("older of {name}")).await?, author.add(name).await?);
        spaces.push((author, [newer, older]));
    }
    for (author, expected) in &spaces {
        author.holds(expected).await?;
    }
    let mut sorted = names.map(str::to_owned);
    sorted.sort_unstable();
    equal("the namespaces", &stage.saver.namespaces("t").await?, &sorted.to_vec())
}

pub(super) async fn threads_with_the_same_checkpoint_ids_do_not_mix(stage: Stage) -> Checked {
    let (mut one, mut other) = (stage.claim("one").await?, stage.claim("other").await?);
    let first = one.draft();
    let (mine, yours) = (first.clone().whole("value", b"mine"), first.whole("value", b"yours"));
    one.put(&mine).await?;
    other.put(&yours).await?;
    let mut inner = one.inside("inner");
    let inside = Draft::new(mine.id()).whole("value", b"inside");
    inner.put(&inside).await?;
    one.holds(&[mine.saved([whole("value", b"mine")])]).await?;
    other.holds(&[yours.saved([whole("value", b"yours")])]).await?;
    inner.holds(&[inside.saved([whole("value", b"inside")])]).await
}

pub(super) async fn a_checkpoint_inherits_the_fields_that_it_does_not_hold(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let first = author.draft().whole("kept", b"1").whole("changed", b"1").tail("log", [b"1"]);
    author.put(&first).await?;
    let second = author.draft().whole("changed", b"2").whole("new", b"2");
    author.put(&second).await?;
    let third = author.draft().tail("log", [b"3"]);
    author.put(&third).await?;
    let kept = || whole("kept", b"1");
    author
        .holds(&[
            third.saved([kept(), whole("changed", b"2"), whole("new", b"2"), tail("log", None, [b"1", b"3"])]),
            second.saved([kept(), whole("changed", b"2"), whole("new", b"2"), tail("log", None, [b"1"])]),
            first.saved([kept(), whole("changed", b"1"), tail("log", None, [b"1"])]),
        ])
        .await
}

pub(super) async fn an_absent_field_stays_absent_until_it_is_written_again(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let mut expected = Vec::new();
    let steps: [(fn(Draft) -> Draft, Vec<SavedField>); 6] = [
        (|d| d.whole("a", b"1").tail("b", [b"1"]), vec![whole("a", b"1"), tail("b", None, [b"1"])]),
        (|d| d.absent("a").absent("b"), vec![]),
        (|d| d.absent("a").absent("never there"), vec![]),
        (|d| d, vec![]),
        (|d| d.tail("b", [b"2"]), vec![tail("b", None, [b"2"])]),
        (|d| d.whole("a", b"2"), vec![whole("a", b"2"), tail("b", None, [b"2"])]),
    ];
    for (change, fields) in steps {
        let draft = change(author.draft());
        author.put(&draft).await?;
        expected.insert(0, draft.saved(fields));
    }
    author.holds(&expected).await
}

pub(super) async fn tails_grow_over_hundreds_of_steps(stage: Stage) -> Checked {
    const STEPS: usize = 300;
    let mut author = stage.claim("t").await?;
    let mut ids = Vec::new();
    for step in 0..STEPS {
        let draft = author.draft().tail("log", [format!("{step} a"), format!("{step} b")]);
        ids.push(author.put(&draft).await?);
    }
    for step in [0, 1, STEPS / 2, STEPS - 1] {
        let writes = (0..=step).flat_map(|step| [format!("{step} a"), format!("{step} b")]);
        let expected = tail("log", None, writes.collect::<Vec<_>>());
        let found = stage.get("t", ids[step]).await?;
        let expected = SavedCheckpoint::new(found.record.clone(), vec![expected], Vec::new());
        same("a long tail", Some(&found), Some(&expected))?;
    }
    equal("how many are listed", &stage.ids("t", "").await?.len(), &STEPS)
}

pub(super) async fn a_whole_value_ends_a_tail(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let first = author.draft().tail("log", [b"1", b"2"]);
    author.put(&first).await?;
    let second = author.draft().whole("log", b"[1,2]");
    author.put(&second).await?;
    let third = author.draft().tail("log", [b"3"]);
    author.put(&third).await?;
    author
        .holds(&[
            third.saved([tail("log", Some(b"[1,2]"), [b"3"])]),
            second.saved([whole("log", b"[1,2]")]),
            first.saved([tail("log", None, [b"1", b"2"])]),
        ])
        .await
}

pub(super) async fn forks_never_see_values_of_each_other(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let root = author.draft().whole("value", b"root").tail("log", [b"root"]);
    author.put(&root).await?;
    let mut expected = vec![root.saved([whole("value", b"root"), tail("log", None, [b"root"])])];
    for branch in ["left", "right", "middle"] {
        let fork = author.draft().after(Some(root.id())).source(Source::Fork).tail("log", [branch]);
        author.put(&fork).await?;
        expected.insert(0, fork.saved([whole("value", b"root"), tail("log", None, ["root", branch])]));
        let next = author.draft().whole("value", branch).tail("log", ["next"]).whole(branch, b"own");
        author.put(&next).await?;
        let fields = [whole("value", branch), tail("log", None, ["root", branch, "next"]), whole(branch, b"own")];
        expected.insert(0, next.saved(fields));
    }
    author.holds(&expected).await
}

pub(super) async fn a_claim_gives_the_checkpoint_that_was_asked_for(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let (older, newer) = (author.add("older").await?, author.add("newer").await?);
    let inner = author.inside("inner").add("inner").await?;
    let unknown = stage.id();
    for (namespace, at, found) in [
        ("", None, Some(&newer)),
        ("", Some(newer.record.id), Some(&newer)),
        ("", Some(older.record.id), Some(&older)),
        ("", Some(unknown), None),
        ("inner", None, Some(&inner)),
        ("inner", Some(older.record.id), None),
    ] {
        let claim = stage.saver.claim("t", namespace, at).await?;
        let head = if namespace.is_empty() { newer.record.id } else { inner.record.id };
        equal("the head that a claim gave", &claim.head, &Some(head))?;
        same("found by a claim", claim.found.as_ref(), found)?;
    }
    Ok(())
}

pub(super) async fn a_checkpoint_without_its_base_is_refused(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let orphan = author.draft().after(Some(stage.id()));
    refused("a first checkpoint whose base is not there", author.put(&orphan).await)?;
    author.holds(&[]).await?;
    let first = author.add("first").await?;
    let orphan = author.draft().after(Some(stage.id()));
    refused("a checkpoint whose base is not there", author.put(&orphan).await)?;
    author.holds(&[first]).await
}

pub(super) async fn a_checkpoint_saved_again_changes_nothing(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let first = author.add("first").await?;
    let task = super::draft::task(1, "a").wrote("value", b"second");
    let draft = author.draft().whole("value", b"second").tail("log", [b"x"]).with(task.clone());
    let mut late = author.clone();
    author.put(&draft).await?;
    late.put(&draft).await?;
    late.put(&draft).await?;
    let mut first = first;
    first.writes = vec![task];
    author.holds(&[draft.saved([whole("value", b"second"), tail("log", None, [b"x"])]), first]).await
}
