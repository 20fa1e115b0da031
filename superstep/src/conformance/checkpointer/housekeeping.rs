//! Clauses on whole threads: listed, copied, deleted and expired.

use std::time::Duration;

use tokio::time::Instant;

use super::super::{Checked, ensure, equal};
use super::draft::{task, whole};
use super::stage::{Author, Stage, fenced, refused};
use crate::checkpoint::{SavedCheckpoint, Source, Swept};

/// Long enough to be kept once, whether as what a task wrote or in the checkpoint that took it in.
const LONG: &[u8] = &[7; 40];

async fn threads(stage: &Stage) -> Checked<Vec<String>> {
    Ok(stage.saver.threads(None, usize::MAX).await?)
}

/// A thread with two checkpoints, newest first, and one in a namespace.
async fn filled(stage: &Stage, thread: &str) -> Checked<(Author, [SavedCheckpoint; 2], SavedCheckpoint)> {
    let mut author = stage.claim(thread).await?;
    let mut older = author.add("older").await?;
    older.writes = vec![task(1, "a").wrote("value", b"pending")];
    author.write(older.record.id, older.writes[0].clone()).await?;
    let newer = author.add("newer").await?;
    let inner = author.inside("inner:1").add("inner").await?;
    Ok((author, [newer, older], inner))
}

/// The thread is as [`filled`] left it.
async fn holds(stage: &Stage, thread: &str, root: &[SavedCheckpoint], inner: &SavedCheckpoint) -> Checked {
    stage.holds(thread, "", root).await?;
    stage.holds(thread, "inner:1", std::slice::from_ref(inner)).await
}

pub(super) async fn threads_are_listed_by_name_and_in_pages(stage: Stage) -> Checked {
    let mut names: Vec<String> =
        ["b", "a", "B", "ä", "a b", "10", "9", "\u{1f980}", "zz", "z"].map(str::to_owned).into();
    for name in &names {
        stage.claim(name).await?.add("value").await?;
    }
    names.sort_unstable();
    equal("all threads", &threads(&stage).await?, &names)?;
    for limit in [1, 3, names.len(), names.len() + 1] {
        let mut pages: Vec<String> = Vec::new();
        loop {
            let page = stage.saver.threads(pages.last().map(String::as_str), limit).await?;
            equal("the size of a page", &page.len(), &limit.min(names.len() - pages.len()))?;
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        equal("all pages together", &pages, &names)?;
    }
    equal(
        "threads after a name that no thread has",
        &stage.saver.threads(Some("a a"), 1).await?,
        &vec!["a b".to_owned()],
    )?;
    equal("none of the threads", &stage.saver.threads(None, 0).await?, &Vec::new())
}

pub(super) async fn only_threads_with_checkpoints_are_listed(stage: Stage) -> Checked {
    stage.claim("claimed").await?;
    let mut inner = stage.claim_in("inner only", "inner").await?;
    inner.add("value").await?;
    let mut gone = stage.claim("gone").await?;
    gone.add("value").await?;
    stage.saver.delete_thread("gone").await?;
    let mut emptied = stage.claim("emptied").await?;
    let draft = emptied.draft().run("run");
    emptied.put(&draft).await?;
    equal("the checkpoints of a run", &stage.saver.delete_run("run").await?, &1)?;
    equal("all threads", &threads(&stage).await?, &vec!["inner only".to_owned()])
}

pub(super) async fn a_copy_is_equal_and_independent(stage: Stage) -> Checked {
    let (mut author, root, inner) = filled(&stage, "from").await?;
    stage.saver.copy_thread("from", "to").await?;
    holds(&stage, "to", &root, &inner).await?;
    equal(
        "the namespaces of a copy",
        &stage.saver.namespaces("to").await?,
        &vec![String::new(), "inner:1".to_owned()],
    )?;
    let here = author.add("only in the original").await?;
    author.write(root[0].record.id, task(9, "z").wrote("value", b"here")).await?;
    holds(&stage, "to", &root, &inner).await?;
    let mut copied = stage.claim("to").await?;
    let there = copied.add("only in the copy").await?;
    let mut newest = root[0].clone();
    newest.writes = vec![task(9, "z").wrote("value", b"here")];
    author.holds(&[here, newest, root[1].clone()]).await?;
    stage.saver.delete_thread("from").await?;
    copied.holds(&[there, root[0].clone(), root[1].clone()]).await
}

pub(super) async fn a_copy_needs_a_free_name_and_something_to_copy(stage: Stage) -> Checked {
    let (_, root, inner) = filled(&stage, "from").await?;
    let (_, other_root, other_inner) = filled(&stage, "other").await?;
    refused("a copy over another thread", stage.saver.copy_thread("from", "other").await)?;
    refused("a copy over itself", stage.saver.copy_thread("from", "from").await)?;
    refused("a copy of nothing", stage.saver.copy_thread("missing", "new").await)?;
    stage.claim("claimed").await?;
    refused("a copy of a thread without checkpoints", stage.saver.copy_thread("claimed", "new").await)?;
    holds(&stage, "from", &root, &inner).await?;
    holds(&stage, "other", &other_root, &other_inner).await?;
    equal("all threads", &threads(&stage).await?, &vec!["from".to_owned(), "other".to_owned()])
}

pub(super) async fn a_copy_fences_who_claimed_its_name_before(stage: Stage) -> Checked {
    let (mut author, root, inner) = filled(&stage, "from").await?;
    let mut early = stage.claim("to").await?;
    stage.saver.copy_thread("from", "to").await?;
    fenced("a first checkpoint by who claimed the empty thread", early.put(&early.draft()).await)?;
    early.head = Some(root[0].record.id);
    fenced("a checkpoint behind the copied ones", early.put(&early.draft()).await)?;
    holds(&stage, "to", &root, &inner).await?;
    author.add("the original is not fenced").await?;
    Ok(())
}

pub(super) async fn a_deleted_thread_is_gone_and_others_stay(stage: Stage) -> Checked {
    let (author, root, _) = filled(&stage, "t").await?;
    let (_, other_root, other_inner) = filled(&stage, "other").await?;
    for _ in 0..2 {
        stage.saver.delete_thread("t").await?;
        stage.holds("t", "", &[]).await?;
        stage.holds("t", "inner:1", &[]).await?;
    }
    ensure!(stage.saver.get("t", "", Some(root[0].record.id)).await?.is_none(), "a deleted checkpoint can be read");
    equal("the namespaces", &stage.saver.namespaces("t").await?, &Vec::new())?;
    equal("all threads", &threads(&stage).await?, &vec!["other".to_owned()])?;
    holds(&stage, "other", &other_root, &other_inner).await?;
    let mut again = stage.claim(&author.thread).await?;
    let saved = again.add("again").await?;
    again.holds(&[saved]).await?;
    stage.holds("t", "inner:1", &[]).await
}

pub(super) async fn a_deleted_run_takes_only_its_checkpoints(stage: Stage) -> Checked {
    let mut kept = Vec::new();
    for thread in ["one", "two"] {
        let root = stage.claim(thread).await?;
        for namespace in ["", "inner:1"] {
            let mut author = root.inside(namespace);
            let mut stay = Vec::new();
            for run in ["run", "RUN", "ru", "run ", "%", "run"] {
                let draft = author.draft().run(run).whole(run, run);
                author.put(&draft).await?;
                stay.extend((run != "run").then(|| draft.id()));
            }
            let draft = author.draft();
            author.put(&draft).await?;
            stay.push(draft.id());
            stay.reverse();
            kept.push((thread, namespace, stay));
        }
    }
    equal("the checkpoints of a run that never was", &stage.saver.delete_run("no such run").await?, &0)?;
    equal("the checkpoints of the run", &stage.saver.delete_run("run").await?, &8)?;
    for (thread, namespace, stay) in &kept {
        equal("what stays", &stage.ids(thread, namespace).await?, stay)?;
    }
    equal("the checkpoints of the run that are left", &stage.saver.delete_run("run").await?, &0)
}

pub(super) async fn values_outlive_the_run_that_wrote_them(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let first = author.draft().run("gone").whole("a", b"1").tail("log", [b"1"]);
    author.put(&first).await?;
    let second = author.draft().run("gone").whole("b", b"2").tail("log", [b"2"]);
    author.put(&second).await?;
    let third = author.draft().whole("a", b"3").tail("log", [b"3"]);
    author.put(&third).await?;
    equal("the checkpoints of the run", &stage.saver.delete_run("gone").await?, &2)?;
    let log = super::draft::tail("log", None, [b"1", b"2", b"3"]);
    let third = third.saved([whole("a", b"3"), whole("b", b"2"), log.clone()]);
    author.holds(std::slice::from_ref(&third)).await?;
    let fourth = author.draft();
    author.put(&fourth).await?;
    author.holds(&[fourth.saved(third.fields.clone()), third]).await
}

/// Nobody can write to what is left of a thread, because nothing is.
pub(super) async fn a_thread_goes_with_its_last_run(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    for run in ["first", "second"] {
        author.put(&author.draft().run(run)).await?;
    }
    author.inside("inner:1").put(&author.draft().after(None).run("second")).await?;
    equal("the checkpoints of a run", &stage.saver.delete_run("second").await?, &2)?;
    author.head = stage.ids("t", "").await?.first().copied();
    author.put(&author.draft().run("third")).await?;
    for run in ["first", "third"] {
        equal("the checkpoints of a run", &stage.saver.delete_run(run).await?, &1)?;
    }
    author.head = None;
    fenced("a checkpoint by who had claimed the thread", author.put(&author.draft()).await)
}

/// What the tasks of a run had written under the checkpoint of an earlier run stayed there, and whoever went on from that
/// checkpoint took it over.
pub(super) async fn what_a_deleted_run_wrote_is_not_taken_up_again(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let asked = author.draft().run("first").tail("log", [b"1"]);
    author.put(&asked).await?;
    let before = [task(1, "a").asked(&["sure?"]).of("first"), task(2, "b").wrote("log", LONG).of("first")];
    for record in &before {
        author.write(asked.id(), record.clone()).await?;
    }
    author.write(asked.id(), task(1, "a").answered("yes").of("second")).await?;
    author.write(asked.id(), task(1, "a").wrote("log", LONG).of("second")).await?;
    let brought = task(3, "c").wrote("log", LONG).of("second");
    author.put(&author.draft().run("second").tail("log", [LONG, b"3"]).with(brought)).await?;
    equal("the checkpoints of the run", &stage.saver.delete_run("second").await?, &1)?;
    let mut asked = asked.saved([super::draft::tail("log", None, [b"1"])]);
    asked.writes = before.into();
    author.holds(&[asked]).await
}

/// A run that was answered, and asked again before it saved a checkpoint, left its answer behind.
pub(super) async fn answers_go_with_the_run_that_was_given_them(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let mut saved = author.add("value").await?;
    let first = task(1, "a").asked(&["sure?"]).of("first");
    author.write(saved.record.id, first.clone()).await?;
    author.write(saved.record.id, task(1, "a").answered("yes").asked(&["really?"]).of("second")).await?;
    author.write(saved.record.id, task(0, "").answered("yes").of("second")).await?;
    author.write(saved.record.id, task(2, "b").asked(&["and you?"]).of("third")).await?;
    let asked_again = task(1, "a").asked(&["really?"]).answered("yes").of("first");
    let (given, third) = (task(0, "").answered("yes").of("second"), task(2, "b").asked(&["and you?"]).of("third"));
    saved.writes = vec![given, asked_again, third.clone()];
    author.holds(std::slice::from_ref(&saved)).await?;
    equal("the checkpoints of the run", &stage.saver.delete_run("second").await?, &0)?;
    saved.writes = vec![first, third];
    author.holds(&[saved]).await
}

/// A run that began with an input of its own took up nothing of what was pending.
pub(super) async fn writes_that_a_deleted_run_did_not_take_up_stay(stage: Stage) -> Checked {
    let mut author = stage.claim("t").await?;
    let asked = author.draft().run("first").tail("log", [b"1"]);
    author.put(&asked).await?;
    author.write(asked.id(), task(1, "a").asked(&["sure?"])).await?;
    let input = author.draft().run("second").source(Source::Input);
    author.put(&input).await?;
    let late = author.draft().run("third").after(Some(asked.id())).step(7).tail("log", [b"4"]);
    author.put(&late).await?;
    for run in ["second", "third"] {
        equal("the checkpoints of the run", &stage.saver.delete_run(run).await?, &1)?;
    }
    let mut asked = asked.saved([super::draft::tail("log", None, [b"1"])]);
    asked.writes = vec![task(1, "a").asked(&["sure?"])];
    author.holds(&[asked]).await
}

pub(super) async fn a_sound_checkpointer_has_nothing_to_sweep(stage: Stage) -> Checked {
    equal("what was swept from an empty one", &stage.saver.sweep().await?, &Swept::default())?;
    let (_, root, inner) = filled(&stage, "t").await?;
    filled(&stage, "gone").await?;
    stage.saver.delete_thread("gone").await?;
    let swept = stage.saver.sweep().await?;
    equal("the threads that expired without a time to live", &swept.expired, &0)?;
    equal("what belongs to no thread", &swept.orphans, &0)?;
    holds(&stage, "t", &root, &inner).await
}

/// Waits until a thread has expired.
async fn expired(stage: &Stage, thread: &str) -> Checked {
    for _ in 0..500 {
        if stage.saver.get(thread, "", None).await?.is_none() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ensure!(false, "thread `{thread}` has not expired, though its time to live passed long ago");
    Ok(())
}

pub(super) async fn a_thread_expires(stage: Stage) -> Checked {
    let (_, root, _) = filled(&stage, "t").await?;
    expired(&stage, "t").await?;
    stage.holds("t", "", &[]).await?;
    stage.holds("t", "inner:1", &[]).await?;
    ensure!(stage.saver.get("t", "", Some(root[0].record.id)).await?.is_none(), "an expired checkpoint can be read");
    equal("the threads that are left", &threads(&stage).await?, &Vec::new())?;
    equal("the namespaces that are left", &stage.saver.namespaces("t").await?, &Vec::new())?;
    refused("a copy of an expired thread", stage.saver.copy_thread("t", "copy").await)?;
    equal("how many threads the sweep forgot", &stage.saver.sweep().await?.expired, &1)?;
    equal("how many the next sweep forgot", &stage.saver.sweep().await?, &Swept::default())
}

pub(super) async fn an_expired_thread_can_be_made_again(stage: Stage) -> Checked {
    let (mut late, root, _) = filled(&stage, "t").await?;
    expired(&stage, "t").await?;
    let claim = stage.saver.claim("t", "", Some(root[0].record.id)).await?;
    ensure!(claim.head.is_none() && claim.found.is_none(), "a claim found a checkpoint of an expired thread");
    fenced("a checkpoint by someone who claimed the thread before it expired", late.put(&late.draft()).await)?;
    late.head = None;
    fenced("a first checkpoint by them", late.put(&late.draft().after(None)).await)
}

pub(super) async fn a_claim_without_checkpoints_expires(stage: Stage) -> Checked {
    let mut late = stage.claim("t").await?;
    tokio::time::sleep(super::MOMENT * 3).await;
    equal("the threads and records that were swept", &stage.saver.sweep().await?, &Swept::default())?;
    fenced("a first checkpoint by who claimed it", late.put(&late.draft()).await)
}

/// How long the threads of the next clause live.
pub(super) const WHILE: Duration = Duration::from_millis(300);

/// A thread that was claimed in time is there when its last checkpoint is too old. A machine that is too slow to be in
/// time tries again.
pub(super) async fn a_claim_is_a_use(stage: Stage) -> Checked {
    for attempt in 0..20 {
        let thread = format!("t {attempt}");
        stage.claim(&thread).await?.add("value").await?;
        let saved = Instant::now();
        tokio::time::sleep(WHILE / 2).await;
        let claimed = Instant::now();
        let claim = stage.saver.claim(&thread, "", None).await?;
        let is_in_time = saved.elapsed() < WHILE * 3 / 4;
        tokio::time::sleep(WHILE.saturating_sub(saved.elapsed()) + Duration::from_millis(5)).await;
        let found = stage.saver.get(&thread, "", None).await?;
        if is_in_time && claimed.elapsed() < WHILE {
            ensure!(
                claim.found.is_some() && found.is_some(),
                "thread `{thread}` expired, though it was claimed in time"
            );
            return Ok(());
        }
    }
    Ok(())
}

pub(super) async fn a_thread_that_is_used_stays(stage: Stage) -> Checked {
    let (_, root, inner) = filled(&stage, "t").await?;
    equal("what was swept", &stage.saver.sweep().await?, &Swept::default())?;
    holds(&stage, "t", &root, &inner).await
}
