//! Compare and set.

use std::sync::Arc;

use serde_json::json;

use super::{StoreMaker, find, plain, refusal};
use crate::conformance::claims::{holds, same};
use crate::conformance::{Broken, Checked};
use crate::{NewItem, PutIf, PutOutcome, SearchQuery, Store, StoreOp};

fn put_if(key: &str, value: u64, condition: PutIf) -> StoreOp {
    StoreOp::Put(NewItem::new(["n"], key, json!(value)).only_if(condition))
}

pub(super) async fn absent_is_applied_once(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let PutOutcome::Applied { version } = store.put_if(["n"], "k", 1, PutIf::Absent).await? else {
        return Err(Broken("nothing is there, and the put was refused".into()));
    };
    let refused = PutOutcome::Refused { found: Some(version) };
    same("second put", store.put_if(["n"], "k", 2, PutIf::Absent).await?, refused)?;
    same("value", store.get_as::<u8>(["n"], "k").await?, Some(1))
}

pub(super) async fn a_version_is_applied_once(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let first = store.put_item(NewItem::new(["n"], "k", json!(1))).await?;
    let PutOutcome::Applied { version } = store.put_if(["n"], "k", 2, PutIf::Version(first)).await? else {
        return Err(Broken("the version fits, and the put was refused".into()));
    };
    let spent = store.put_if(["n"], "k", 3, PutIf::Version(first)).await?;
    same("a put with a spent version", spent, PutOutcome::Refused { found: Some(version) })?;
    same("value", store.get_as::<u8>(["n"], "k").await?, Some(2))?;
    same("nothing", store.put_if(["n"], "x", 1, PutIf::Version(1)).await?, PutOutcome::Refused { found: None })
}

pub(super) async fn versions_grow(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    let mut last = 0;
    for key in ["a", "b", "a", "a"] {
        let version = store.put_item(NewItem::new(["n"], key, json!(1))).await?;
        holds("a later put has a greater version", version > last)?;
        same("version of the item", store.get(["n"], key).await?.map(|item| item.version), Some(version))?;
        last = version;
    }
    store.delete(["n"], "a").await?;
    let again = store.put_item(NewItem::new(["n"], "a", json!(1))).await?;
    holds("versions go on after a delete", again > last)?;
    holds(
        "an old version does not fit the new item",
        !store.put_if(["n"], "a", 2, PutIf::Version(last)).await?.is_applied(),
    )
}

pub(super) async fn a_refused_put_refuses_its_batch(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put(["n"], "old", 1).await?;
    let ops = vec![
        put_if("new", 1, PutIf::Absent),
        StoreOp::delete(["n"], "old"),
        put_if("old", 2, PutIf::Version(999)),
        put_if("last", 2, PutIf::Always),
    ];
    let words = refusal("a put with another version", store.batch(ops).await)?;
    holds("key and namespace are named", words.contains("key `old` in namespace `n`"))?;
    same("what is there", find(&store, SearchQuery::default()).await?, "n/old".to_owned())?;
    same("value", store.get_as::<u8>(["n"], "old").await?, Some(1))
}

pub(super) async fn conditions_look_at_the_state_before_the_batch(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.batch(vec![put_if("k", 1, PutIf::Absent), put_if("k", 2, PutIf::Absent)]).await?;
    same("value", store.get_as::<u8>(["n"], "k").await?, Some(2))?;
    let ops = vec![StoreOp::delete(["n"], "k"), put_if("k", 3, PutIf::Absent)];
    refusal("a put of what is absent only inside the batch", store.batch(ops).await)?;
    same("value", store.get_as::<u8>(["n"], "k").await?, Some(2))
}

pub(super) async fn no_update_is_lost_under_contention(maker: &dyn StoreMaker) -> Checked {
    const TASKS: u64 = 6;
    const TIMES: u64 = 8;
    let store = plain(maker).await;
    store.put(["n"], "count", 0).await?;
    let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(count_up(store.clone(), TIMES))).collect();
    for task in tasks {
        task.await.map_err(|error| Broken(error.to_string()))??;
    }
    same("count", store.get_as::<u64>(["n"], "count").await?, Some(TASKS * TIMES))
}

async fn count_up(store: Arc<dyn Store>, times: u64) -> Checked {
    let (mut done, mut tries) = (0, 0);
    while done < times {
        tries += 1;
        holds("someone gets on", tries < 10_000)?;
        let item = store.get(["n"], "count").await?.ok_or_else(|| Broken("the counter is gone".into()))?;
        let next = item.value_as::<u64>()? + 1;
        if store.put_if(["n"], "count", next, PutIf::Version(item.version)).await?.is_applied() {
            done += 1;
        }
    }
    Ok(())
}

pub(super) async fn one_of_many_creates_an_item(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    for round in 0..5 {
        let create = |task: u32| {
            let store = store.clone();
            async move { store.put_if(["n"], round.to_string(), task, PutIf::Absent).await }
        };
        let tasks: Vec<_> = (0..6).map(|task| tokio::spawn(create(task))).collect();
        let mut applied = 0;
        for task in tasks {
            applied += u32::from(task.await.map_err(|error| Broken(error.to_string()))??.is_applied());
        }
        same("how many created it", applied, 1)?;
    }
    Ok(())
}
