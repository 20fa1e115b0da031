use super::*;
use crate::checkpoint::{FORMAT, Few, FieldRecord, FieldValue, Interrupt, SharedMap, WriteRecord};
use crate::error::{ErrorKind, TaskError};
use crate::id::TaskId;
use crate::value::Blob;

/// More bytes than lie among others.
const LONG: [u8; 100] = [7; 100];

fn id(number: u128) -> CheckpointId {
    CheckpointId::from_u128(number)
}

/// A checkpoint that adds a write to the field `log`.
fn record(number: u128, base: Option<u128>, head: Option<u128>, write: &[u8]) -> CheckpointRecord {
    let value = FieldValue::Tail(vec![write.into()]);
    CheckpointRecord {
        format: FORMAT,
        id: id(number),
        parent: base.map(id),
        base: base.map(id),
        head: head.map(id),
        run: None,
        source: Source::Loop,
        step: number as i64,
        created_at: id(number).created_at(),
        metadata: SharedMap::default(),
        parents: SharedMap::default(),
        shape: Blob::default().into(),
        control: Blob::default(),
        fields: Few::from(vec![FieldRecord { name: "log".into(), value }]),
        writes: Vec::new(),
    }
}

fn task(number: u128, path: &str) -> TaskRecord {
    TaskRecord::new(TaskId(number), path.into())
}

/// A thread that was claimed.
struct Writer {
    saver: MemorySaver,
    epoch: Epoch,
}

impl Writer {
    async fn new() -> Self {
        let saver = MemorySaver::new();
        let epoch = saver.claim("t", "", None).await.unwrap().epoch;
        Self { saver, epoch }
    }

    async fn put(&self, record: CheckpointRecord) -> Result<(), CheckpointError> {
        self.saver.put(Lease::new("t", "", self.epoch), &record).await
    }

    async fn put_writes(&self, at: u128, task: TaskRecord) -> Result<(), CheckpointError> {
        self.saver.put_writes(Lease::new("t", "", self.epoch), id(at), task).await
    }

    /// Puts checkpoints one after another.
    async fn put_all(&self, numbers: std::ops::RangeInclusive<u128>) {
        for number in numbers {
            let before = (number > 1).then(|| number - 1);
            self.put(record(number, before, before, &number.to_le_bytes())).await.unwrap();
        }
    }

    async fn get(&self, number: u128) -> SavedCheckpoint {
        self.saver.get("t", "", Some(id(number))).await.unwrap().expect("it is there")
    }

    async fn log(&self, number: u128) -> Vec<Blob> {
        self.get(number).await.fields.remove(0).tail
    }

    async fn prune(&self, keep: usize) {
        self.saver.prune("t", &Prune::keep_last(keep)).await.unwrap();
    }

    fn with<T>(&self, look: impl FnOnce(&Namespace) -> T) -> T {
        self.saver.read("t", |thread| look(&thread.root)).unwrap()
    }
}

#[tokio::test]
async fn a_task_that_fails_again_and_again_takes_no_more_memory() {
    let writer = Writer::new().await;
    writer.put_all(1..=1).await;
    let attempt = async |number: u32| {
        let mut failed = task(1, "path");
        failed.error = Some(TaskError::new(ErrorKind::Node, format!("attempt {number}")));
        writer.put_writes(1, failed).await.unwrap();
        writer.with(|space| space.packed.size())
    };
    let mut sizes = Vec::new();
    for number in 0..1000 {
        sizes.push(attempt(number).await);
    }
    let most = |sizes: &[usize]| sizes.iter().copied().max().unwrap_or_default();
    assert!(
        most(&sizes[500..]) <= most(&sizes[..500]),
        "{} bytes, {} before",
        most(&sizes[500..]),
        most(&sizes[..500])
    );
    let tasks = writer.get(1).await.writes;
    assert_eq!(tasks.len(), 1);
    assert!(tasks[0].error.as_ref().is_some_and(|error| error.to_string().contains("attempt 999")));
}

#[tokio::test]
async fn what_many_tasks_wrote_is_kept_for_each() {
    let writer = Writer::new().await;
    writer.put_all(1..=1).await;
    // They ask, finish, and are told twice more, by somebody who did not know.
    for round in 0..4 {
        for number in 1..=1024_u128 {
            let mut next = task(number, &format!("path {number:04}"));
            if round == 0 {
                next.interrupts = Some(vec![Interrupt::new("id", "sure?")]);
            } else {
                let value = Blob::from(format!("{number} in round {round}").as_bytes());
                next.writes.push(WriteRecord { channel: "log".into(), value, overwrite: false });
            }
            writer.put_writes(1, next).await.unwrap();
        }
    }
    assert!(writer.with(|space| space.packed.records(space.checkpoints[0])) < 3 * 1024, "they were put together");
    let tasks = writer.get(1).await.writes;
    let ids: Vec<_> = tasks.iter().map(|task| task.task.as_u128()).collect();
    assert_eq!(ids, (1..=1024).collect::<Vec<_>>());
    for task in tasks {
        let wrote = format!("{} in round 1", task.task.as_u128());
        assert_eq!((task.writes.len(), &*task.writes[0].value), (1, wrote.as_bytes()), "what came first stays");
        assert!(task.interrupts.is_some());
    }
}

#[tokio::test]
async fn pruning_gives_large_values_back() {
    let writer = Writer::new().await;
    for number in 1..=50_u128 {
        let before = (number > 1).then(|| number - 1);
        let mut whole = record(number, before, before, b"");
        whole.fields[0].value = FieldValue::Whole(vec![7; 100_000].into());
        writer.put(whole).await.unwrap();
    }
    writer.prune(1).await;
    assert!(writer.with(|space| space.packed.size()) < 200_000);
}

#[tokio::test]
async fn a_full_namespace_is_refused_whole_and_goes_on_after_pruning() {
    let writer = Writer::new().await;
    let mut last = 0;
    let refused = loop {
        let before = (last > 0).then_some(last);
        match writer.put(record(last + 1, before, before, &last.to_le_bytes())).await {
            Ok(()) => last += 1,
            Err(refused) => break refused,
        }
    };
    assert!(refused.to_string().contains("prune the thread"), "{refused}");
    assert!(writer.put_writes(last, task(1, "path")).await.is_err());
    assert_eq!(writer.get(last).await.writes.len(), 0);
    assert_eq!(writer.log(last).await.len() as u128, last);
    writer.prune(3).await;
    writer.put(record(last + 1, Some(last), Some(last), b"on")).await.unwrap();
    assert_eq!(writer.log(last + 1).await.len() as u128, last + 1);
}

#[tokio::test]
async fn pruning_a_little_is_little_work_and_pruning_much_gives_memory_back() {
    let writer = Writer::new().await;
    writer.put_all(1..=300).await;
    let size = || writer.with(|space| space.packed.size());
    let whole = size();
    writer.prune(299).await;
    assert_eq!(size(), whole, "nothing was packed anew");
    writer.prune(10).await;
    assert!(size() < whole / 2, "{} of {whole} bytes", size());
    let numbers = |log: Vec<Blob>| log.iter().map(|b| u128::from(b[0])).collect::<Vec<_>>();
    assert_eq!(numbers(writer.log(300).await), (1..=300).map(|n| n % 256).collect::<Vec<_>>());
}

#[tokio::test]
async fn packing_anew_leaves_forks_their_values_and_tasks_their_errors() {
    let writer = Writer::new().await;
    writer.put_all(1..=200).await;
    writer.put(record(201, Some(199), Some(200), &LONG)).await.unwrap();
    let mut failed = task(1, "path");
    failed.error = Some(TaskError::new(ErrorKind::Node, "broken"));
    failed.interrupts = Some(vec![Interrupt::new("id", "sure?")]);
    writer.put_writes(200, failed).await.unwrap();
    let before = (writer.log(200).await, writer.log(201).await);
    writer.prune(2).await;
    assert_eq!((writer.log(200).await, writer.log(201).await), before);
    assert_eq!(before.1.last().map(|last| &**last), Some(LONG.as_slice()));
    let task = &writer.get(200).await.writes[0];
    assert!(task.error.is_some() && task.interrupts.as_ref().is_some_and(|asked| asked.len() == 1));
    let shared = writer.with(|space| space.packed.size());
    assert!(shared < 2 * 200 * 21, "what both have in common is there once: {shared} bytes");
    writer.put(record(202, Some(201), Some(201), b"on")).await.unwrap();
    assert_eq!(writer.log(202).await.len(), 201);
}

#[tokio::test]
async fn what_a_forgotten_run_wrote_gives_way_to_what_comes_after() {
    let writer = Writer::new().await;
    writer.put_all(1..=1).await;
    let mut made = record(2, Some(1), Some(1), b"two");
    made.run = Some("r".into());
    made.writes = vec![task(1, "path")];
    writer.put(made).await.unwrap();
    assert_eq!(writer.get(1).await.writes.len(), 1);
    assert_eq!(writer.saver.delete_run("r").await.unwrap(), 1);
    assert!(writer.get(1).await.writes.is_empty());
    writer.put_writes(1, task(2, "path")).await.unwrap();
    assert_eq!(writer.get(1).await.writes[0].task.as_u128(), 2);
}
