//! Compare and set: what a refusal says. What is applied is a matter of the suite.

use serde_json::json;
use superstep::{MemoryStore, NewItem, PutIf, Store, StoreError, StoreOp};

use super::{Done, message};

fn put_if(key: &str, condition: PutIf) -> StoreOp {
    StoreOp::Put(NewItem::new(["n"], key, json!(2)).only_if(condition))
}

#[tokio::test]
async fn a_refused_put_says_what_it_wanted_and_what_is_there() -> Done {
    let store = MemoryStore::new();
    store.put(["n"], "old", 1).await?;
    let expected = "put of key `old` in namespace `n` was refused: it was to have version 7 and has version 1; \
                    read it again";
    assert_eq!(message(store.batch(vec![put_if("old", PutIf::Version(7))]).await), expected);
    let refused = store.batch(vec![put_if("old", PutIf::Absent)]).await;
    assert!(matches!(refused, Err(StoreError::Conflict { wanted: None, found: Some(1), .. })));
    Ok(())
}
