//! Clauses on listing checkpoints.

use serde_json::{Value, json};

use super::super::{Checked, equal};
use super::draft::{task, whole};
use super::stage::Stage;
use crate::checkpoint::{ListQuery, Source};
use crate::id::CheckpointId;

/// The checkpoints that a query finds are these.
async fn finds(stage: &Stage, what: &str, query: ListQuery, expected: &[CheckpointId]) -> Checked {
    equal(what, &stage.ids_of("t", "", &query).await?, &expected.to_vec())
}

pub(super) async fn the_newest_comes_first(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let mut expected = Vec::new();
    for number in 0..20 {
        expected.insert(0, author.add(&number.to_string()).await?);
    }
    author.holds(&expected).await
}

pub(super) async fn a_limit_and_a_place_to_begin_page_through_all(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let before_all = stage.id();
    for number in 0..10 {
        author.add(&number.to_string()).await?;
    }
    let all = stage.ids("t", "").await?;
    for limit in [1, 3, 10, 11] {
        let mut pages: Vec<CheckpointId> = Vec::new();
        loop {
            let from = pages.last().copied();
            let query = ListQuery { before: from, ..ListQuery::new().limit(limit) };
            let page = stage.ids_of("t", "", &query).await?;
            equal("the size of a page", &page.len(), &limit.min(all.len() - pages.len()))?;
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        equal("all pages together", &pages, &all)?;
    }
    finds(&stage, "limited to none", ListQuery::new().limit(0), &[]).await?;
    finds(&stage, "before all", ListQuery::new().before(before_all), &[]).await?;
    finds(&stage, "before one that is not there yet", ListQuery::new().before(stage.id()), &all).await?;
    finds(&stage, "as many as can be asked for", ListQuery::new().limit(usize::MAX), &all).await
}

pub(super) async fn every_filter_is_honoured(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let sources = [Source::Input, Source::Loop, Source::Update, Source::Fork];
    let mut ids = Vec::new();
    for (number, source) in sources.into_iter().enumerate() {
        let draft = author.draft().source(source).step(number as i64 - 1).metadata("n", number % 2);
        ids.push(author.put(&draft).await?);
    }
    for (number, source) in sources.into_iter().enumerate() {
        let id = ids[number];
        finds(&stage, "by source", ListQuery::new().source(source), &[id]).await?;
        finds(&stage, "by step", ListQuery::new().step(number as i64 - 1), &[id]).await?;
        finds(&stage, "by id", ListQuery { only: Some(id), ..ListQuery::new() }, &[id]).await?;
    }
    finds(&stage, "by metadata", ListQuery::new().metadata("n", 1), &[ids[3], ids[1]]).await?;
    finds(&stage, "by a step that is not there", ListQuery::new().step(4), &[]).await?;
    finds(&stage, "by an id that is not there", ListQuery { only: Some(stage.id()), ..ListQuery::new() }, &[]).await
}

pub(super) async fn filters_hold_together(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let mut ids = Vec::new();
    for number in 0..12 {
        let source = if number % 2 == 0 { Source::Loop } else { Source::Update };
        let draft = author.draft().source(source).step(number / 4).metadata("a", number % 3).metadata("b", "x");
        ids.push(author.put(&draft).await?);
    }
    let query = ListQuery::new().source(Source::Loop).metadata("a", 0);
    finds(&stage, "two filters", query.clone(), &[ids[6], ids[0]]).await?;
    finds(&stage, "two filters and a limit", query.clone().limit(1), &[ids[6]]).await?;
    finds(&stage, "two filters and a place to begin", query.clone().before(ids[6]), &[ids[0]]).await?;
    finds(&stage, "three filters", query.clone().step(1), &[ids[6]]).await?;
    finds(&stage, "two entries", query.clone().metadata("b", "x"), &[ids[6], ids[0]]).await?;
    finds(&stage, "two entries, one of which differs", query.metadata("b", "y"), &[]).await?;
    let only = ListQuery { only: Some(ids[3]), ..ListQuery::new().before(ids[3]) };
    finds(&stage, "one that is not before itself", only, &[]).await
}

pub(super) async fn metadata_is_compared_literally(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let values = [
        json!(1),
        json!(1.0),
        json!("1"),
        json!(true),
        json!("true"),
        Value::Null,
        json!("null"),
        json!(""),
        json!([1]),
        json!({ "k": 1, "l": 2 }),
        json!({ "k": 1 }),
        json!({ "k": { "k": 1 } }),
    ];
    let none = author.draft();
    author.put(&none).await?;
    let mut ids = Vec::new();
    for value in &values {
        let draft = author.draft().metadata("k", value.clone());
        ids.push(author.put(&draft).await?);
    }
    for (value, id) in values.iter().zip(&ids) {
        finds(&stage, &format!("by the value {value}"), ListQuery::new().metadata("k", value.clone()), &[*id]).await?;
    }
    for key in ["", "K", "k.k", "$.k", "\"k\"", "%", "_", "k "] {
        finds(&stage, &format!("by the key {key:?}"), ListQuery::new().metadata(key, 1), &[]).await?;
    }
    Ok(())
}

pub(super) async fn a_listed_checkpoint_is_whole(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let mut first = author.add("first").await?;
    let draft = author.draft().whole("other", b"second");
    author.put(&draft).await?;
    first.writes = vec![task(1, "a").wrote("value", b"1")];
    author.write(first.record.id, first.writes[0].clone()).await?;
    let second = draft.saved([whole("value", b"first"), whole("other", b"second")]);
    let listed = stage.list("t", "", &ListQuery::new().limit(1)).await?;
    super::difference::same_list("the latest", &listed, std::slice::from_ref(&second))?;
    let listed = stage.list("t", "", &ListQuery::new().before(second.record.id)).await?;
    super::difference::same_list("the one before", &listed, &[first])
}
