//! A server that refuses what is written, as if its disk were full or it were a read-only copy.

use std::sync::Arc;

use superstep::Durability;

use super::Place;
use crate::trouble::{Switch, check};

/// Every row that comes is refused with this code, until the trouble ends.
async fn refusing(place: &Place, code: &'static str) -> Switch {
    let admin = Arc::new(place.admin().await);
    Arc::new(move |begins| {
        let admin = admin.clone();
        Box::pin(async move {
            if begins {
                let refuse = format!(
                    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                        AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$"
                );
                admin.run(&refuse).await;
            }
            for table in ["superstep_checkpoints", "superstep_pending"] {
                let change = if begins {
                    format!(
                        "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table}
                            FOR EACH ROW EXECUTE FUNCTION refuse()"
                    )
                } else {
                    format!("DROP TRIGGER refuse ON {table}")
                };
                admin.run(&change).await;
            }
        })
    })
}

async fn plays(code: &'static str, words: &str) {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let place = Place::new();
        let saver = place.saver().await;
        let switch = refusing(&place, code).await;
        check(saver, async || place.saver().await, switch, words, durability).await;
    }
}

#[tokio::test]
async fn a_full_disk_of_the_server_ends_the_run_and_nothing_else() {
    plays("53100", "has no space left; free some on its disk").await;
}

#[tokio::test]
async fn a_server_that_became_read_only_ends_the_run_and_nothing_else() {
    plays("25006", "cannot be written to; check the permissions").await;
}
