//! A checkpointer on redb, as anyone may write one: by the public API alone. `checkpointer_suite.rs` and `model.rs` try it.

use std::collections::BTreeSet;
use std::sync::Arc;

use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use superstep::checkpoint::backend::{
    Decision, Facts, KeptCheckpoint, assemble, decode_record, encode_record, merge_runs, merge_tasks,
};
use superstep::{
    BoxError, CheckpointError, CheckpointId, CheckpointRecord, Checkpointer, Claim, Deletion, Epoch, Lease, ListQuery,
    SavedCheckpoint, TaskRecord, async_trait,
};

/// Thread and namespace.
type Place<'a> = (&'a str, &'a str);
/// The same with a checkpoint.
type Id = (&'static str, &'static str, u128);
type Bytes = &'static [u8];
/// Fails with an error of redb or of ours.
type Work<T> = Result<T, BoxError>;
type Answer<T> = Result<T, CheckpointError>;
type Found = (Option<CheckpointId>, Option<SavedCheckpoint>);

trait Rows: ReadableTable<Id, Bytes> {}
impl<T: ReadableTable<Id, Bytes>> Rows for T {}

/// The epochs of threads; under no thread, the last one that was given out.
const EPOCHS: TableDefinition<Option<&str>, u64> = TableDefinition::new("epochs");
/// The latest checkpoints.
const HEADS: TableDefinition<(&str, &str), u128> = TableDefinition::new("heads");
const CHECKPOINTS: TableDefinition<Id, Bytes> = TableDefinition::new("checkpoints");
/// What tasks wrote under a checkpoint.
const WRITES: TableDefinition<Id, Bytes> = TableDefinition::new("writes");

#[derive(Clone)]
pub(crate) struct RedbSaver(Arc<Database>);

fn answer<T>(work: Work<T>) -> Answer<T> {
    work.map_err(|error| match error.downcast() {
        Ok(ours) => *ours,
        Err(other) => CheckpointError::backend(other),
    })
}

impl RedbSaver {
    pub(crate) fn memory() -> Work<Self> {
        let saver = Self(Arc::new(Database::builder().create_with_backend(InMemoryBackend::new())?));
        saver.change(|_| Ok(()))?;
        Ok(saver)
    }

    fn change<T>(&self, job: impl FnOnce(&mut Tables<'_>) -> Work<T>) -> Answer<T> {
        let in_transaction = || {
            let transaction = self.0.begin_write()?;
            let result = job(&mut Tables::open(&transaction)?)?;
            transaction.commit()?;
            Ok(result)
        };
        answer(in_transaction())
    }

    /// A checkpoint, this one or the latest; with the latest.
    fn look_up(&self, place: Place<'_>, id: Option<CheckpointId>) -> Work<Found> {
        let transaction = self.0.begin_read()?;
        let head = transaction.open_table(HEADS)?.get(place)?.map(|head| CheckpointId::from_u128(head.value()));
        let (checkpoints, writes) = (transaction.open_table(CHECKPOINTS)?, transaction.open_table(WRITES)?);
        let found = id.or(head).map_or(Ok(None), |id| read(&checkpoints, &writes, place, id))?;
        Ok((head, found))
    }

    fn select(&self, place: Place<'_>, query: &ListQuery) -> Work<Vec<SavedCheckpoint>> {
        let transaction = self.0.begin_read()?;
        let (checkpoints, writes) = (transaction.open_table(CHECKPOINTS)?, transaction.open_table(WRITES)?);
        let all = all(&checkpoints, place)?;
        let ids = all.iter().rev().filter(|kept| query.matches(kept.record())).map(|kept| kept.record().id());
        let ids = ids.take(query.limit.unwrap_or(usize::MAX));
        ids.filter_map(|id| read(&checkpoints, &writes, place, id).transpose()).collect()
    }

    /// Threads with their namespaces, beginning with this thread.
    fn places(&self, from: &str) -> Work<Vec<(String, String)>> {
        let heads = self.0.begin_read()?.open_table(HEADS)?;
        let place = |(thread, namespace): Place<'_>| (thread.to_owned(), namespace.to_owned());
        heads.range((from, "")..)?.map(|found| Ok(place(found?.0.value()))).collect()
    }
}

struct Tables<'t> {
    epochs: Table<'t, Option<&'static str>, u64>,
    heads: Table<'t, (&'static str, &'static str), u128>,
    checkpoints: Table<'t, Id, Bytes>,
    writes: Table<'t, Id, Bytes>,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Work<Self> {
        let (epochs, heads) = (transaction.open_table(EPOCHS)?, transaction.open_table(HEADS)?);
        let (checkpoints, writes) = (transaction.open_table(CHECKPOINTS)?, transaction.open_table(WRITES)?);
        Ok(Self { epochs, heads, checkpoints, writes })
    }

    fn claim(&mut self, thread: &str) -> Work<Epoch> {
        let epoch = 1 + self.epochs.get(None)?.map_or(0, |last| last.value());
        self.epochs.insert(None, epoch)?;
        self.epochs.insert(Some(thread), epoch)?;
        Ok(Epoch::from_u64(epoch))
    }

    /// What whoever has a lease finds, if it still holds.
    fn find(&self, lease: Lease<'_>, base: Option<CheckpointId>) -> Work<(Facts, Option<KeptCheckpoint>)> {
        lease.check(self.epochs.get(Some(lease.thread))?.map(|epoch| Epoch::from_u64(epoch.value())))?;
        let place = (lease.thread, lease.namespace);
        let base = base.map_or(Ok(None), |base| get::<KeptCheckpoint>(&self.checkpoints, place, base))?;
        let head = self.heads.get(place)?.map(|head| CheckpointId::from_u128(head.value()));
        Ok((Facts { head, has_base: base.is_some() }, base))
    }

    fn put(&mut self, lease: Lease<'_>, record: CheckpointRecord) -> Work<()> {
        /// After so many checkpoints one is whole, so that reading need not go further.
        const DISTANCE: u32 = 32;
        let (facts, base) = self.find(lease, record.base())?;
        if facts.decide_put(lease, (&record).into())? == Decision::Known {
            return Ok(());
        }
        let (place, id) = ((lease.thread, lease.namespace), record.id());
        record.base().map_or(Ok(()), |base| self.write(place, base, record.writes()))?;
        let kept = KeptCheckpoint::new(record, base.as_ref());
        self.keep(place, &kept)?;
        if kept.distance() > DISTANCE {
            self.make_whole(place, kept)?;
        }
        self.heads.insert(place, id.as_u128())?;
        Ok(())
    }

    fn keep(&mut self, place: Place<'_>, kept: &KeptCheckpoint) -> Work<()> {
        self.checkpoints.insert(row(place, kept.record().id()), &*encode_record(kept)?)?;
        Ok(())
    }

    fn make_whole(&mut self, place: Place<'_>, mut kept: KeptCheckpoint) -> Work<()> {
        let saved = read(&self.checkpoints, &self.writes, place, kept.record().id())?;
        saved.iter().for_each(|saved| kept.make_whole(saved));
        self.keep(place, &kept)
    }

    fn write(&mut self, place: Place<'_>, under: CheckpointId, tasks: &[TaskRecord]) -> Work<()> {
        let mut all: Vec<TaskRecord> = get(&self.writes, place, under)?.unwrap_or_default();
        all.extend_from_slice(tasks);
        self.writes.insert(row(place, under), &*encode_record(&merge_runs(all))?)?;
        Ok(())
    }

    fn delete(&mut self, place: Place<'_>, deletion: &Deletion) -> Work<usize> {
        let all = all(&self.checkpoints, place)?;
        let (gone, stay): (Vec<_>, Vec<_>) = all.into_iter().partition(|kept| deletion.takes(kept.record().id()));
        for kept in stay.iter().filter(|kept| kept.next().is_some_and(|base| deletion.takes(base))) {
            self.make_whole(place, kept.clone())?;
        }
        for id in stay.iter().map(|kept| kept.record().id()) {
            let mut left: Vec<TaskRecord> = get(&self.writes, place, id)?.unwrap_or_default();
            left.retain(|task| !deletion.takes_writes(task));
            self.writes.insert(row(place, id), &*encode_record(&left)?)?;
        }
        for id in gone.iter().map(|kept| row(place, kept.record().id())) {
            self.checkpoints.remove(id)?;
            self.writes.remove(id)?;
        }
        match stay.last() {
            Some(latest) => self.heads.insert(place, latest.record().id().as_u128())?,
            None => self.heads.remove(place)?,
        };
        let next = self.heads.range((place.0, "")..)?.next().transpose()?;
        if !gone.is_empty() && next.is_none_or(|(next, _)| next.value().0 != place.0) {
            self.epochs.remove(Some(place.0))?;
        }
        Ok(gone.len())
    }
}

fn row(place: Place<'_>, id: CheckpointId) -> (&str, &str, u128) {
    (place.0, place.1, id.as_u128())
}

fn get<T: DeserializeOwned + Send>(table: &impl Rows, place: Place<'_>, id: CheckpointId) -> Work<Option<T>> {
    Ok(table.get(row(place, id))?.map(|bytes| decode_record(bytes.value())).transpose()?)
}

/// The checkpoints of a namespace, oldest first.
fn all(table: &impl Rows, place: Place<'_>) -> Work<Vec<KeptCheckpoint>> {
    let found = table.range((place.0, place.1, 0)..=(place.0, place.1, u128::MAX))?;
    found.map(|found| Ok(decode_record(found?.1.value())?)).collect()
}

fn read(kept: &impl Rows, writes: &impl Rows, place: Place<'_>, id: CheckpointId) -> Work<Option<SavedCheckpoint>> {
    let (mut chain, mut next) = (Vec::<KeptCheckpoint>::new(), Some(id));
    while let Some(found) = next.map_or(Ok(None), |id| get(kept, place, id))? {
        next = KeptCheckpoint::next(&found);
        chain.push(found);
    }
    let writes: Vec<TaskRecord> = get(writes, place, id)?.unwrap_or_default();
    Ok((!chain.is_empty()).then(|| assemble(chain, merge_tasks(writes))))
}

#[async_trait]
impl Checkpointer for RedbSaver {
    async fn claim(&self, thread: &str, namespace: &str, checkpoint: Option<CheckpointId>) -> Answer<Claim> {
        let epoch = self.change(|tables| tables.claim(thread))?;
        let (head, found) = answer(self.look_up((thread, namespace), checkpoint))?;
        Ok(Claim::new(epoch, head, found))
    }
    async fn put(&self, lease: Lease<'_>, checkpoint: CheckpointRecord) -> Answer<()> {
        self.change(|tables| tables.put(lease, checkpoint))
    }
    async fn put_writes(&self, lease: Lease<'_>, checkpoint: CheckpointId, task: TaskRecord) -> Answer<()> {
        self.change(|tables| {
            tables.find(lease, Some(checkpoint))?.0.decide_writes(checkpoint)?;
            tables.write((lease.thread, lease.namespace), checkpoint, &[task])
        })
    }
    async fn get(&self, thread: &str, namespace: &str, id: Option<CheckpointId>) -> Answer<Option<SavedCheckpoint>> {
        Ok(answer(self.look_up((thread, namespace), id))?.1)
    }
    async fn list(&self, thread: &str, namespace: &str, query: &ListQuery) -> Answer<Vec<SavedCheckpoint>> {
        answer(self.select((thread, namespace), query))
    }
    async fn namespaces(&self, thread: &str) -> Answer<Vec<String>> {
        let places = answer(self.places(thread))?.into_iter();
        Ok(places.take_while(|(of, _)| of == thread).map(|(_, namespace)| namespace).collect())
    }
    async fn threads(&self, after: Option<&str>, limit: usize) -> Answer<Vec<String>> {
        let places = answer(self.places(after.unwrap_or_default()))?.into_iter();
        let threads: BTreeSet<String> = places.map(|(thread, _)| thread).collect();
        Ok(threads.into_iter().filter(|thread| Some(&**thread) != after).take(limit).collect())
    }
    async fn delete_thread(&self, thread: &str) -> Answer<()> {
        for namespace in self.namespaces(thread).await? {
            let all = self.list(thread, &namespace, &ListQuery::new()).await?;
            let all = Deletion::of(all.iter().map(|saved| saved.record().id()));
            self.delete_checkpoints(thread, &namespace, &all).await?;
        }
        self.change(|tables| tables.epochs.remove(Some(thread)).map(drop).map_err(BoxError::from))
    }
    async fn delete_checkpoints(&self, thread: &str, namespace: &str, deletion: &Deletion) -> Answer<usize> {
        self.change(|tables| tables.delete((thread, namespace), deletion))
    }
}
