//! Compare and set: when a put is applied, and what a refused one leaves behind.

use serde_json::json;
use superstep::{MemoryStore, NewItem, PutIf, PutOutcome, SearchQuery, Store, StoreError, StoreOp};

use super::{Done, find, message};

fn put_if(key: &str, value: u64, condition: PutIf) -> StoreOp {
    StoreOp::Put(NewItem::new(["n"], key, json!(value)).only_if(condition))
}

#[tokio::test]
async fn absent_is_applied_once() -> Done {
    let store = MemoryStore::new();
    assert!(store.put_if(["n"], "k", 1, PutIf::Absent).await?.is_applied());
    assert_eq!(store.put_if(["n"], "k", 2, PutIf::Absent).await?, PutOutcome::Refused { found: Some(1) });
    assert_eq!(store.get_as::<u8>(["n"], "k").await?, Some(1));
    Ok(())
}

#[tokio::test]
async fn a_version_is_applied_once() -> Done {
    let store = MemoryStore::new();
    let first = store.put_item(NewItem::new(["n"], "k", json!(1))).await?;
    let PutOutcome::Applied { version } = store.put_if(["n"], "k", 2, PutIf::Version(first)).await? else {
        panic!("nobody else wrote");
    };
    assert!(version > first);
    assert_eq!(store.put_if(["n"], "k", 3, PutIf::Version(first)).await?, PutOutcome::Refused { found: Some(version) });
    assert_eq!(store.get(["n"], "k").await?.map(|item| (item.version, item.value)), Some((version, json!(2))));
    Ok(())
}

/// A count per key would start over after a delete, and an old version would fit the new item.
#[tokio::test]
async fn a_version_does_not_come_back_after_a_delete() -> Done {
    let store = MemoryStore::new();
    let first = store.put_item(NewItem::new(["n"], "k", json!(1))).await?;
    store.delete(["n"], "k").await?;
    assert_eq!(store.put_if(["n"], "k", 2, PutIf::Version(first)).await?, PutOutcome::Refused { found: None });
    store.put(["n"], "k", 3).await?;
    assert!(!store.put_if(["n"], "k", 4, PutIf::Version(first)).await?.is_applied());
    Ok(())
}

#[tokio::test]
async fn a_refused_put_refuses_its_whole_batch() -> Done {
    let store = MemoryStore::new();
    store.put(["n"], "old", 1).await?;
    let ops = || {
        vec![
            put_if("new", 1, PutIf::Absent),
            StoreOp::delete(["n"], "old"),
            put_if("old", 2, PutIf::Version(7)),
            put_if("last", 2, PutIf::Always),
        ]
    };
    let expected = "put of key `old` in namespace `n` was refused: it was to have version 7 and has version 1; \
                    read it again";
    assert_eq!(message(store.batch(ops()).await), expected);
    assert_eq!(find(&store, SearchQuery::default()).await?, "n/old");
    assert_eq!(store.get_as::<u8>(["n"], "old").await?, Some(1));
    Ok(())
}

#[tokio::test]
async fn a_condition_looks_at_the_state_before_its_batch() -> Done {
    let store = MemoryStore::new();
    store.batch(vec![put_if("k", 1, PutIf::Absent), put_if("k", 2, PutIf::Absent)]).await?;
    assert_eq!(store.get_as::<u8>(["n"], "k").await?, Some(2));
    let refused = store.batch(vec![StoreOp::delete(["n"], "k"), put_if("k", 3, PutIf::Absent)]).await;
    assert!(matches!(refused, Err(StoreError::Conflict { wanted: None, found: Some(2), .. })));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_expired_item_is_absent() -> Done {
    let store = MemoryStore::new();
    store.put_with(["n"], "k", 1, super::MINUTE).await?;
    tokio::time::advance(super::MINUTE).await;
    assert!(store.put_if(["n"], "k", 2, PutIf::Absent).await?.is_applied());
    Ok(())
}
