//! What every store promises.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use async_trait::async_trait;
//! use superstep::conformance::store::{self, StoreMaker, StoreSetup};
//! use superstep::{MemoryStore, Store};
//!
//! struct Memory;
//!
//! #[async_trait]
//! impl StoreMaker for Memory {
//!     async fn make(&self, setup: StoreSetup) -> Arc<dyn Store> {
//!         Arc::new(MemoryStore::new().with_ttl(setup.ttl).with_index(setup.index))
//!     }
//!
//!     async fn advance(&self, time: Duration) {
//!         tokio::time::advance(time).await;
//!     }
//! }
//!
//! # fn main() -> Result<(), std::io::Error> {
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
//! runtime.block_on(store::check(Memory)).assert();
//! # Ok(())
//! # }
//! ```

mod batches;
mod conditions;
mod expiry;
mod filters;
mod hostile;
mod items;
mod listing;
mod pages;
mod ranked;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Broken;
use super::Report;
use super::claims::clauses;
pub use crate::store::backend::StoreSetup;
use crate::{Item, Namespace, SearchQuery, Store, StoreError};

/// Makes the stores that are checked.
#[async_trait]
pub trait StoreMaker: Send + Sync + 'static {
    /// An empty store that is set up like this.
    async fn make(&self, setup: StoreSetup) -> Arc<dyn Store>;

    /// Lets so much time pass for the stores it made.
    async fn advance(&self, time: Duration);
}

/// Checks all clauses, each on a store of its own. Some spawn tasks: call it in a tokio runtime.
pub async fn check(maker: impl StoreMaker) -> Report {
    let maker: Arc<dyn StoreMaker> = Arc::new(maker);
    let mut report = Report::default();
    clauses!(report, maker: items::a_put_value_is_got_back, items::a_missing_item_is_none,
        items::an_overwritten_item_keeps_its_creation_time, items::a_deleted_item_is_gone,
        items::any_json_value_comes_back_as_it_was, items::keys_belong_to_their_namespace);
    clauses!(report, maker: batches::replies_come_in_the_order_of_ops, batches::reads_see_the_state_before_the_batch,
        batches::the_last_write_to_a_key_wins, batches::a_wrong_op_refuses_the_batch,
        batches::reads_of_a_batch_see_one_state);
    clauses!(report, maker: conditions::absent_is_applied_once, conditions::a_version_is_applied_once,
        conditions::versions_grow, conditions::a_refused_put_refuses_its_batch,
        conditions::conditions_look_at_the_state_before_the_batch, conditions::no_update_is_lost_under_contention,
        conditions::one_of_many_creates_an_item);
    clauses!(report, maker: filters::comparisons, filters::joins, filters::paths, filters::wrong_filters_are_refused,
        filters::a_filter_comes_before_the_limit);
    clauses!(report, maker: pages::items_come_in_the_order_of_first_puts, pages::a_prefix_goes_by_whole_labels,
        pages::limits_and_offsets, pages::cursors_go_through_all_items_once,
        pages::cursors_stay_right_while_items_come_and_go, pages::cursors_stay_right_in_ranked_searches,
        pages::cursors_miss_nothing_that_is_put_meanwhile);
    clauses!(report, maker: ranked::words_rank_by_their_number, ranked::metrics_rank_by_nearness,
        ranked::words_and_nearness_together, ranked::puts_say_what_is_indexed,
        ranked::an_overwritten_item_is_found_anew, ranked::ties_go_by_the_order_of_first_puts,
        ranked::nearness_needs_an_embedder);
    clauses!(report, maker: listing::namespaces_are_sorted_and_named_once,
        listing::a_hundred_come_unless_told, listing::patterns, listing::depth,
        listing::an_empty_namespace_is_not_listed);
    clauses!(report, maker: expiry::an_item_lives_until_its_ttl, expiry::the_default_ttl_is_for_puts_that_do_not_say,
        expiry::reads_refresh_as_the_setup_or_they_say, expiry::a_new_put_replaces_the_ttl,
        expiry::an_expired_item_is_gone_everywhere, expiry::a_ttl_past_the_end_of_time_never_ends);
    clauses!(report, maker: hostile::hostile_keys_are_taken_literally, hostile::hostile_namespaces_are_taken_literally,
        hostile::hostile_filters_are_taken_literally, hostile::hostile_searches_are_taken_literally,
        hostile::what_cannot_be_kept_is_refused);
    report
}

async fn plain(maker: &dyn StoreMaker) -> Arc<dyn Store> {
    maker.make(StoreSetup::default()).await
}

/// The found items as `namespace/key`, separated by spaces.
async fn find(store: &Arc<dyn Store>, query: SearchQuery) -> Result<String, Broken> {
    Ok(names(&store.search(query).await?))
}

fn names(items: &[Item]) -> String {
    items.iter().map(|item| format!("{}/{}", item.namespace, item.key)).collect::<Vec<_>>().join(" ")
}

/// Puts items named `namespace/key`, labels joined by dots.
async fn put_all(store: &Arc<dyn Store>, names: &[&str]) -> Result<(), Broken> {
    for name in names {
        let (namespace, key) = name.split_once('/').expect("a name has a namespace and a key");
        store.put(labels(namespace), key, serde_json::json!({ "name": name })).await?;
    }
    Ok(())
}

fn labels(dotted: &str) -> Namespace {
    dotted.split('.').map(str::to_owned).collect::<Vec<_>>().into()
}

/// The words of an error that must come.
fn refusal<T>(what: &str, result: Result<T, StoreError>) -> Result<String, Broken> {
    match result {
        Ok(_) => Err(Broken(format!("{what} was not refused"))),
        Err(StoreError::Backend(error)) => Err(Broken(format!("{what} was refused by the database: {error}"))),
        Err(error) => Ok(error.to_string()),
    }
}
