//! Time to live.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{StoreMaker, StoreSetup, find, plain};
use crate::conformance::claims::{holds, same};
use crate::conformance::{Broken, Checked};
use crate::{NamespaceQuery, NewItem, PutIf, SearchQuery, Store, StoreOp, Ttl, TtlConfig};

const ALMOST_A_MINUTE: Duration = Duration::from_millis(59_999);
const MINUTE: Duration = Duration::from_mins(1);

async fn expiring(maker: &dyn StoreMaker, default: Option<Duration>, refresh_on_read: bool) -> Arc<dyn Store> {
    let ttl = TtlConfig { default, refresh_on_read };
    maker.make(StoreSetup { ttl, ..StoreSetup::default() }).await
}

/// Looks without prolonging.
async fn is_there(store: &Arc<dyn Store>, key: &str) -> Result<bool, Broken> {
    let look = StoreOp::Get { namespace: ["n"].into(), key: key.into(), refresh_ttl: Some(false) };
    let reply = store.batch(vec![look]).await?.pop().ok_or_else(|| Broken("a reply is missing".into()))?;
    Ok(reply.into_item()?.is_some())
}

pub(super) async fn an_item_lives_until_its_ttl(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put_with(["n"], "k", 1, MINUTE).await?;
    store.put(["n"], "stays", 1).await?;
    store.put_with(["n"], "no time", 1, Duration::ZERO).await?;
    holds("it has no time at all", !is_there(&store, "no time").await?)?;
    maker.advance(ALMOST_A_MINUTE).await;
    holds("it lives", is_there(&store, "k").await?)?;
    maker.advance(Duration::from_millis(1)).await;
    holds("it has expired", !is_there(&store, "k").await?)?;
    holds("what has no ttl stays", is_there(&store, "stays").await?)
}

pub(super) async fn the_default_ttl_is_for_puts_that_do_not_say(maker: &dyn StoreMaker) -> Checked {
    let store = expiring(maker, Some(MINUTE), true).await;
    store.put(["n"], "default", 1).await?;
    store.put_with(["n"], "never", 1, Ttl::Never).await?;
    store.put_with(["n"], "longer", 1, 3 * MINUTE).await?;
    maker.advance(2 * MINUTE).await;
    let look = SearchQuery::new(["n"]).refresh_ttl(false);
    same("after two minutes", find(&store, look.clone()).await?, "n/never n/longer".to_owned())?;
    maker.advance(MINUTE).await;
    same("after three minutes", find(&store, look).await?, "n/never".to_owned())
}

pub(super) async fn reads_refresh_as_the_setup_or_they_say(maker: &dyn StoreMaker) -> Checked {
    for (setup, asked) in [(true, None), (false, None), (true, Some(false)), (false, Some(true))] {
        let store = expiring(maker, Some(MINUTE), setup).await;
        for key in ["got", "found", "cut"] {
            store.put(["n"], key, 1).await?;
        }
        maker.advance(MINUTE / 2).await;
        let mut search = SearchQuery::new(["n"]).limit(1).offset(1);
        search.refresh_ttl = asked;
        let get = StoreOp::Get { namespace: ["n"].into(), key: "got".into(), refresh_ttl: asked };
        store.batch(vec![get, StoreOp::Search(search)]).await?;
        maker.advance(MINUTE / 2).await;
        let refreshes = asked.unwrap_or(setup);
        same("what was got lives", is_there(&store, "got").await?, refreshes)?;
        same("what was found lives", is_there(&store, "found").await?, refreshes)?;
        holds("what was not returned has expired", !is_there(&store, "cut").await?)?;
        maker.advance(MINUTE / 2).await;
        holds("all has expired", !is_there(&store, "got").await? && !is_there(&store, "found").await?)?;
    }
    Ok(())
}

pub(super) async fn a_new_put_replaces_the_ttl(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put_with(["n"], "freed", 1, MINUTE).await?;
    store.put(["n"], "bound", 1).await?;
    store.put(["n"], "freed", 2).await?;
    store.put_with(["n"], "bound", 2, MINUTE).await?;
    maker.advance(MINUTE).await;
    holds("`freed` stays", is_there(&store, "freed").await?)?;
    holds("`bound` has expired", !is_there(&store, "bound").await?)?;
    store.put_with(["n"], "again", 1, MINUTE).await?;
    store.delete(["n"], "again").await?;
    store.put(["n"], "again", 2).await?;
    maker.advance(MINUTE).await;
    holds("a deleted item leaves no deadline behind", is_there(&store, "again").await?)
}

pub(super) async fn an_expired_item_is_gone_everywhere(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put_with(["gone"], "k", "tea", MINUTE).await?;
    store.put(["n"], "second", "tea").await?;
    maker.advance(MINUTE).await;
    same("search", find(&store, SearchQuery::default()).await?, "n/second".to_owned())?;
    same("ranked search", find(&store, SearchQuery::default().words("tea")).await?, "n/second".to_owned())?;
    same("namespaces", store.list_namespaces(NamespaceQuery::new()).await?.len(), 1)?;
    let again = NewItem::new(["gone"], "k", json!("tea")).only_if(PutIf::Absent);
    store.put_item(again).await?;
    let item = store.get(["gone"], "k").await?.ok_or_else(|| Broken("it was put again".into()))?;
    holds("it is a new item", item.created_at == item.updated_at)?;
    same("order", find(&store, SearchQuery::default()).await?, "n/second gone/k".to_owned())
}

pub(super) async fn a_ttl_past_the_end_of_time_never_ends(maker: &dyn StoreMaker) -> Checked {
    let store = plain(maker).await;
    store.put_with(["n"], "k", 1, Duration::MAX).await?;
    store.get(["n"], "k").await?;
    maker.advance(MINUTE).await;
    holds("it lives", is_there(&store, "k").await?)
}
