//! Rows that someone changed or removed past superstep, and what is left of what was deleted.

use std::time::Duration;

use superstep::{CheckpointError, CheckpointErrorKind, Checkpointer, ListQuery, Prune, Swept};

use super::{Author, Place, THREAD, echo, says};

/// A thread of some turns whose rows are damaged; reading it fails, and says where.
async fn damaged(sql: &str) -> CheckpointError {
    let place = Place::new();
    let saver = place.saver().await;
    let app = echo(saver.clone());
    for _ in 0..3 {
        app.invoke(says(&"hello ".repeat(20))).thread(THREAD).await.unwrap();
    }
    place.admin().await.run(sql).await;
    let error = saver.get(THREAD, "", None).await.unwrap_err();
    assert_eq!(saver.claim(THREAD, "", None).await.unwrap_err().to_string(), error.to_string());
    error
}

#[tokio::test]
async fn a_row_that_was_changed_is_not_read() {
    let changes = [
        "body = set_byte(body, length(body) / 2, get_byte(body, length(body) / 2) # 1)",
        "body = substr(body, 1, length(body) / 2)",
        "step = step + 1",
        "parent = id",
        "run = 'another'",
    ];
    for change in changes {
        let latest = "id = (SELECT head FROM superstep_spaces)";
        let error = damaged(&format!("UPDATE superstep_checkpoints SET {change} WHERE {latest}")).await;
        assert_eq!((error.kind(), error.thread()), (CheckpointErrorKind::Codec, Some(THREAD)), "{change}: {error}");
        let words = error.to_string();
        assert!(words.split(", ").nth(2).is_some_and(|what| what.starts_with("checkpoint: ")), "{change}: {error}");
    }
}

#[tokio::test]
async fn a_checkpoint_whose_base_is_gone_is_not_read() {
    let error = damaged("DELETE FROM superstep_checkpoints WHERE base IS NULL").await;
    assert!(error.to_string().ends_with("it is not in the database; the database is damaged"), "{error}");
}

#[tokio::test]
async fn a_head_that_is_gone_is_not_none() {
    let error =
        damaged("DELETE FROM superstep_checkpoints WHERE id = (SELECT head FROM superstep_spaces)").await.to_string();
    assert!(error.starts_with("thread `t`, checkpoint "), "{error}");
}

/// The head says which checkpoint is the latest, and no body is sealed with it.
#[tokio::test]
async fn a_head_that_is_not_the_newest_is_not_read() {
    let error =
        damaged("UPDATE superstep_spaces SET head = (SELECT id FROM superstep_checkpoints ORDER BY id LIMIT 1)");
    let error = error.await.to_string();
    assert!(error.ends_with("head: there is a newer checkpoint; the database was changed or is damaged"), "{error}");
}

#[tokio::test]
async fn rows_of_another_namespace_or_thread_are_not_read() {
    let renamed = "UPDATE superstep_spaces SET name = '', digest = sha256('') WHERE key = 1;
        UPDATE superstep_threads SET name = 'was', digest = sha256('was') WHERE name = 't'";
    let place = Place::new();
    let saver = place.saver().await;
    for thread in ["other", THREAD] {
        echo(saver.clone()).invoke(says("hello")).thread(thread).await.unwrap();
    }
    place.admin().await.run(renamed).await;
    assert!(saver.get(THREAD, "", None).await.unwrap().is_none());
    let error = saver.get("was", "", None).await.unwrap_err().to_string();
    assert!(error.contains("it was moved, or what stands beside it was changed"), "{error}");
}

#[tokio::test]
async fn a_deleted_thread_leaves_no_row_in_any_table() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    for number in 0..70 {
        let id = author.put().await.unwrap();
        author.saver.put_writes(author.lease(), id, author.task(number)).await.unwrap();
    }
    author.saver.copy_thread(THREAD, "other").await.unwrap();
    let admin = place.admin().await;
    let rows = admin.rows().await;
    author.saver.delete_thread(THREAD).await.unwrap();
    assert_eq!(admin.rows().await, rows / 2);
    author.saver.delete_thread("other").await.unwrap();
    assert_eq!(admin.rows().await, 0);
}

#[tokio::test]
async fn a_sweep_finds_what_belongs_to_nobody() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    for _ in 0..3 {
        let id = author.put().await.unwrap();
        author.saver.put_writes(author.lease(), id, author.task(1)).await.unwrap();
    }
    author.saver.copy_thread(THREAD, "kept").await.unwrap();
    let admin = place.admin().await;
    let kept = (admin.rows().await - 2) / 2 + 1;
    admin.run("DELETE FROM superstep_threads WHERE name = 't'").await;
    let swept = author.saver.sweep().await.unwrap();
    assert_eq!((swept.expired, swept.orphans), (0, 1 + 3 + 3));
    assert_eq!(admin.rows().await, kept);
    assert_eq!(author.saver.sweep().await.unwrap(), Swept::default());
    assert_eq!(author.saver.list("kept", "", &ListQuery::new()).await.unwrap().len(), 3);

    admin.run("DELETE FROM superstep_checkpoints WHERE id = (SELECT head FROM superstep_spaces)").await;
    assert_eq!(author.saver.sweep().await.unwrap().orphans, 1, "what a task wrote to a checkpoint that is gone");
}

#[tokio::test]
async fn threads_expire_by_the_clock_of_the_database() {
    let place = Place::new();
    let saver = place.saver().await.ttl(Duration::from_hours(1));
    let mut author = Author::claim(&saver).await;
    author.put().await.unwrap();
    let admin = place.admin().await;
    for (claimed, used) in [(61, 59), (59, 61)] {
        admin.run(&format!("UPDATE superstep_threads SET claimed_at = now() - interval '{claimed} minutes'")).await;
        admin.run(&format!("UPDATE superstep_spaces SET used_at = now() - interval '{used} minutes'")).await;
        assert!(saver.get(THREAD, "", None).await.unwrap().is_some());
    }
    admin.run("UPDATE superstep_threads SET claimed_at = now() - interval '61 minutes'").await;
    assert!(saver.get(THREAD, "", None).await.unwrap().is_none());
    assert!(saver.claim(THREAD, "", None).await.unwrap().found.is_none());
    assert_eq!(admin.rows().await, 1, "the claim of a thread that was forgotten");
}

#[tokio::test]
async fn a_thread_of_thousands_is_pruned_in_batches() {
    let place = Place::new();
    let mut author = Author::claim(&place.saver().await).await;
    for _ in 0..2100 {
        author.put().await.unwrap();
    }
    let kept: Vec<_> = author.ids().await.into_iter().take(5).collect();
    let latest = author.saver.get(THREAD, "", None).await.unwrap().unwrap();
    assert_eq!(author.saver.prune(THREAD, &Prune::keep_last(5)).await.unwrap(), 2095);
    assert_eq!(author.ids().await, kept);
    let after = author.saver.get(THREAD, "", None).await.unwrap().unwrap();
    assert_eq!(format!("{:?}", after.fields()), format!("{:?}", latest.fields()));
    author.put().await.unwrap();
}
