//! The suite finds what is wrong with a store: each of these breaks one promise, and is found out by name.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use superstep::conformance::store::{self, StoreMaker, StoreSetup};
use superstep::{Filter, MemoryStore, PutIf, Store, StoreError, StoreOp, StoreReply};

/// What a store does wrong.
#[derive(Clone, Copy)]
enum Fault {
    IgnoresConditions,
    IgnoresFilters,
    IgnoresCursors,
    RunsOpsOneByOne,
    ForgetsScores,
    KeepsEverything,
    AnswersBackwards,
}

struct Broken {
    fault: Fault,
    inner: MemoryStore,
}

#[async_trait]
impl Store for Broken {
    async fn batch(&self, mut ops: Vec<StoreOp>) -> Result<Vec<StoreReply>, StoreError> {
        if matches!(self.fault, Fault::RunsOpsOneByOne) {
            let mut replies = Vec::new();
            for op in ops {
                replies.extend(self.inner.batch(vec![op]).await?);
            }
            return Ok(replies);
        }
        ops.iter_mut().for_each(|op| self.spoil_op(op));
        let mut replies = self.inner.batch(ops).await?;
        replies.iter_mut().for_each(|reply| self.spoil_reply(reply));
        Ok(replies)
    }
}

impl Broken {
    fn spoil_op(&self, op: &mut StoreOp) {
        match (self.fault, op) {
            (Fault::IgnoresConditions, StoreOp::Put(item)) => item.only_if = PutIf::Always,
            (Fault::IgnoresFilters, StoreOp::Search(query)) => query.filter = Filter::default(),
            (Fault::IgnoresCursors, StoreOp::Search(query)) => query.after = None,
            (Fault::KeepsEverything, StoreOp::Put(item)) => item.ttl = superstep::Ttl::Never,
            _ => {}
        }
    }

    fn spoil_reply(&self, reply: &mut StoreReply) {
        match (self.fault, reply) {
            (Fault::ForgetsScores, StoreReply::Page(page)) => page.items.iter_mut().for_each(|item| item.score = None),
            (Fault::AnswersBackwards, StoreReply::Page(page)) => page.items.reverse(),
            _ => {}
        }
    }
}

struct Maker(Fault);

#[async_trait]
impl StoreMaker for Maker {
    async fn make(&self, setup: StoreSetup) -> Arc<dyn Store> {
        let inner = MemoryStore::new().with_ttl(setup.ttl).with_index(setup.index);
        Arc::new(Broken { fault: self.0, inner })
    }

    async fn advance(&self, time: Duration) {
        tokio::time::advance(time).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_suite_names_the_promise_that_a_store_breaks() {
    let cases = [
        (Fault::IgnoresConditions, "absent is applied once"),
        (Fault::IgnoresFilters, "comparisons"),
        (Fault::IgnoresCursors, "cursors go through all items once"),
        (Fault::RunsOpsOneByOne, "a wrong op refuses the batch"),
        (Fault::ForgetsScores, "words rank by their number"),
        (Fault::KeepsEverything, "an item lives until its ttl"),
        (Fault::AnswersBackwards, "items come in the order of first puts"),
    ];
    for (fault, clause) in cases {
        let report = store::check(Maker(fault)).await;
        assert!(report.failed().any(|failed| failed.name == clause), "`{clause}` is not among\n{report}");
    }
}
