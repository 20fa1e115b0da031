//! Playing a sequence of calls on a checkpointer and on the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::{Checked, ensure, equal};
use super::super::difference::{same, same_list};
use super::super::draft::{Draft, id_at, task};
use super::naive::{Ending, Naive, Thread};
use super::op::{At, Lease, Op, Put, Query, THREADS, Task, Value};
use crate::checkpoint::{
    CheckpointError, CheckpointRecord, Checkpointer, Epoch, Lease as Right, ListQuery, Prune, Source, Swept, TaskRecord,
};
use crate::id::CheckpointId;

/// Plays all calls, then reads everything, then deletes everything.
pub(super) async fn play(saver: Arc<dyn Checkpointer>, ops: Vec<Op>) -> Checked {
    let mut game = Game { saver, naive: Naive::default(), tick: 0, leases: BTreeMap::new(), last: BTreeMap::new() };
    for op in ops {
        game.step(op).await?;
    }
    game.read_everything().await?;
    for thread in THREADS {
        game.saver.delete_thread(thread).await?;
    }
    game.naive = Naive::default();
    // Whoever plays next has the same names, and finds what else may be left.
    game.names().await
}

struct Game {
    saver: Arc<dyn Checkpointer>,
    naive: Naive,
    tick: u64,
    /// All claims that a thread has seen, also before it was deleted.
    leases: BTreeMap<&'static str, Vec<Epoch>>,
    last: BTreeMap<&'static str, (&'static str, CheckpointRecord)>,
}

impl Game {
    async fn step(&mut self, op: Op) -> Checked {
        match op {
            Op::Claim { thread, space, at } => self.claim(thread, space, at).await,
            Op::Put { by, space, put } => self.put(by, space, put).await,
            Op::PutAgain { by } => match self.last.get(by.thread).cloned() {
                Some((space, record)) => self.save(by, space, record).await,
                None => Ok(()),
            },
            Op::Write { by, space, at, run, task } => self.write(by, space, at, run, &task).await,
            Op::Get { thread, space, at } => self.get(thread, space, self.find(thread, space, at)).await,
            Op::List { thread, space, query } => self.list(thread, space, &self.query(thread, space, &query)).await,
            Op::Namespaces { thread } => self.namespaces(thread).await,
            Op::Threads { after, limit } => self.threads(after, limit).await,
            Op::KeepLast { thread, count } => {
                let forgotten = self.saver.prune(thread, &Prune::keep_last(count)).await?;
                equal("how many were pruned", &forgotten, &self.naive.keep_last(thread, count))
            }
            Op::ForgetBefore { thread, tick } => {
                let moment = id_at(tick).created_at();
                let forgotten = self.saver.prune(thread, &Prune::before(moment)).await?;
                equal("how many were pruned", &forgotten, &self.naive.forget_before(thread, moment))
            }
            Op::Copy { from, to } => ends("a copy", &self.saver.copy_thread(from, to).await, self.naive.copy(from, to)),
            Op::DeleteThread { thread } => {
                self.naive.threads.remove(thread);
                Ok(self.saver.delete_thread(thread).await?)
            }
            Op::DeleteRun { run } => {
                let forgotten = self.saver.delete_run(run).await?;
                equal("how many of the run were deleted", &forgotten, &self.naive.delete_run(run))
            }
            Op::Sweep => equal("what was swept", &self.saver.sweep().await?, &Swept::default()),
        }
    }

    /// The checkpoint that a call means; `None` is the latest.
    fn find(&self, thread: &str, space: &str, at: At) -> Option<CheckpointId> {
        let all = self.naive.all(thread, space);
        match at {
            At::Latest => None,
            At::Known(number) if !all.is_empty() => Some(all[number % all.len()].record.id),
            At::Known(_) | At::Unknown => Some(id_at(1 << 20)),
        }
    }

    /// The same with the latest by its id.
    fn find_id(&self, thread: &str, space: &str, at: At) -> Option<CheckpointId> {
        self.find(thread, space, at).or_else(|| Some(self.naive.all(thread, space).last()?.record.id))
    }

    async fn claim(&mut self, thread: &'static str, space: &str, at: At) -> Checked {
        let at = self.find(thread, space, at);
        let claim = self.saver.claim(thread, space, at).await?;
        let known = self.leases.entry(thread).or_default();
        ensure!(!known.contains(&claim.epoch), "epoch {} of thread `{thread}` was given twice", claim.epoch);
        let held: &mut Thread = self.naive.threads.entry(thread.to_owned()).or_default();
        ensure!(held.lease < Some(claim.epoch), "epoch {} came after {:?}", claim.epoch, held.lease);
        held.lease = Some(claim.epoch);
        known.push(claim.epoch);
        equal("the head that a claim gave", &claim.head, &self.find_id(thread, space, At::Latest))?;
        same("found by a claim", claim.found.as_ref(), self.naive.get(thread, space, at).as_ref())
    }

    fn epoch(&self, by: Lease) -> Epoch {
        let all = self.leases.get(by.thread).map_or(&[][..], Vec::as_slice);
        let place = all.len().saturating_sub(1 + by.stale.map_or(0, |back| back + 1));
        all.get(place).copied().unwrap_or(Epoch::from_u64(0))
    }

    async fn put(&mut self, by: Lease, space: &'static str, put: Put) -> Checked {
        self.tick += 1;
        let id = id_at(if put.early { 0 } else { self.tick });
        let base = put.base.and_then(|base| self.find_id(by.thread, space, base));
        let mut draft = Draft::new(id).after(base).source(put.source).step(put.step);
        draft = put.run.into_iter().fold(draft, Draft::run);
        draft = put.metadata.into_iter().fold(draft, |draft, number| draft.metadata("k", number));
        let under = put.under.and_then(|under| self.find_id(by.thread, "", under));
        draft = under.into_iter().fold(draft, Draft::under);
        for (name, value) in put.fields {
            draft = match value {
                Value::Whole(byte) => draft.whole(name, long_or_short(byte)),
                Value::Tail(bytes) => draft.tail(name, bytes.into_iter().map(long_or_short)),
                Value::Absent => draft.absent(name),
            };
        }
        if put.source == Source::Input {
            draft.0.control = [LONG[0], LONG[1]].concat().into();
        }
        if base.is_some() {
            draft = put.tasks.iter().fold(draft, |draft, task| draft.with(record(task)));
        }
        draft.0.head = self.find_id(by.thread, space, put.head);
        self.save(by, space, draft.0).await
    }

    async fn save(&mut self, by: Lease, space: &'static str, record: CheckpointRecord) -> Checked {
        let epoch = self.epoch(by);
        let expected = self.naive.put(by.thread, space, epoch, &record);
        let ended = self.saver.put(Right::new(by.thread, space, epoch), record.clone()).await;
        if ended.is_ok() {
            self.last.insert(by.thread, (space, record));
        }
        ends("a checkpoint", &ended, expected)
    }

    async fn write(&mut self, by: Lease, space: &str, at: At, run: Option<&str>, task: &Task) -> Checked {
        let epoch = self.epoch(by);
        let at = self.find_id(by.thread, space, at).unwrap_or(id_at(1 << 20));
        let record = run.into_iter().fold(record(task), TaskRecord::of);
        let expected = self.naive.write(by.thread, space, epoch, at, &record);
        let ended = self.saver.put_writes(Right::new(by.thread, space, epoch), at, record).await;
        ends("writes", &ended, expected)
    }

    async fn get(&self, thread: &str, space: &str, at: Option<CheckpointId>) -> Checked {
        let found = self.saver.get(thread, space, at).await?;
        same("read", found.as_ref(), self.naive.get(thread, space, at).as_ref())
    }

    async fn list(&self, thread: &str, space: &str, query: &ListQuery) -> Checked {
        let found = self.saver.list(thread, space, query).await?;
        same_list("listed", &found, &self.naive.list(thread, space, query))
    }

    fn query(&self, thread: &str, space: &str, query: &Query) -> ListQuery {
        let listed = ListQuery {
            before: query.before.and_then(|before| self.find_id(thread, space, before)),
            only: query.only.and_then(|only| self.find_id(thread, space, only)),
            limit: query.limit,
            source: query.source,
            step: query.step,
            run: query.run.map(str::to_owned),
            ..ListQuery::new()
        };
        query.metadata.into_iter().fold(listed, |listed, number| listed.metadata("k", number))
    }

    async fn namespaces(&self, thread: &str) -> Checked {
        equal("the namespaces", &self.saver.namespaces(thread).await?, &self.naive.namespaces(thread))
    }

    async fn threads(&self, after: Option<&str>, limit: usize) -> Checked {
        equal("the threads", &self.saver.threads(after, limit).await?, &self.naive.threads(after, limit))
    }

    async fn names(&self) -> Checked {
        self.threads(None, usize::MAX).await?;
        for thread in THREADS {
            self.namespaces(thread).await?;
        }
        Ok(())
    }

    /// All that is there in lists; of each namespace the latest checkpoint and some other alone. The rest is left to the
    /// calls of the sequences: on a server each call has its price.
    async fn read_everything(&self) -> Checked {
        self.names().await?;
        for (thread, held) in &self.naive.threads {
            for (space, all) in held.spaces.iter().filter(|(_, all)| !all.is_empty()) {
                self.list(thread, space, &ListQuery::new()).await?;
                self.get(thread, space, None).await?;
                let some = all[self.tick as usize % all.len()].record.id;
                self.get(thread, space, Some(some)).await?;
            }
        }
        Ok(())
    }
}

/// Long values that come again and again, as what a task wrote comes again in a tail, and an input in the first step: a
/// checkpointer may keep them once.
const LONG: [&[u8]; 3] = [&[7; 40], &[8; 40], &[9; 40]];

/// A short value, or one of the long ones.
fn long_or_short(byte: u8) -> Vec<u8> {
    if byte % 4 == 1 { LONG[usize::from(byte) % LONG.len()].to_vec() } else { vec![byte] }
}

fn record(made: &Task) -> TaskRecord {
    let path = format!("path {}", 9 - made.number);
    let mut record = made.writes.iter().fold(task(made.number, &path), |task, byte| match byte % 4 {
        0 => task.overwrote("a", long_or_short(*byte)),
        _ => task.wrote("log", long_or_short(*byte)),
    });
    record = made.error.into_iter().fold(record, |task, byte| task.failed(&byte.to_string()));
    record = made.question.into_iter().fold(record, |task, byte| task.asked(&[&byte.to_string()]));
    record = made.answer.into_iter().fold(record, TaskRecord::answered);
    if made.handled { record.handled() } else { record }
}

fn ends<T>(what: &str, result: &Result<T, CheckpointError>, expected: Ending) -> Checked {
    let ending = match result {
        Ok(_) => Ending::Done,
        Err(error) if error.is_fenced() => Ending::Fenced,
        Err(_) => Ending::Refused,
    };
    let words = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
    ensure!(ending == expected, "{what}: it was {ending:?} instead of {expected:?} ({words})");
    Ok(())
}
