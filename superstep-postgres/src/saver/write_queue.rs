//! Saves of one namespace, one after another.
//!
//! Whoever comes first does the work. Those that come meanwhile wait, and go together next: a run that does not wait for
//! its saves has many of them in one statement and one commit.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use superstep::{CheckpointError, CheckpointId, Epoch, Lease, TaskId};
use superstep_storage::rows::{NewRow, PendingRow};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::PostgresSaver;

/// Something to save.
pub(super) enum Save {
    Checkpoint(NewRow),
    Writes(PendingRow),
}

impl Save {
    pub(super) fn checkpoint(&self) -> Option<&NewRow> {
        match self {
            Self::Checkpoint(row) => Some(row),
            Self::Writes(_) => None,
        }
    }

    /// What tasks wrote.
    pub(super) fn pending(&self) -> &[PendingRow] {
        match self {
            Self::Checkpoint(row) => &row.pending,
            Self::Writes(row) => std::slice::from_ref(row),
        }
    }

    /// The checkpoint that it goes on from.
    pub(super) fn built_on(&self) -> Option<CheckpointId> {
        match self {
            Self::Checkpoint(row) => row.base,
            Self::Writes(row) => Some(row.checkpoint),
        }
    }
}

/// Where it is saved, and with what right.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    thread: String,
    namespace: String,
    epoch: Epoch,
}

/// The places that someone saves to at present, and what waits there.
#[derive(Clone, Default)]
pub(super) struct WriteQueues(Arc<Mutex<HashMap<Place, WriteQueue>>>);

type WriteQueue = VecDeque<Waiting>;

struct Waiting {
    save: Save,
    answer: oneshot::Sender<Result<(), CheckpointError>>,
}

impl Place {
    fn of(lease: Lease<'_>) -> Self {
        Self { thread: lease.thread.to_owned(), namespace: lease.namespace.to_owned(), epoch: lease.epoch }
    }

    fn lease(&self) -> Lease<'_> {
        Lease::new(&self.thread, &self.namespace, self.epoch)
    }
}

impl WriteQueues {
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, WriteQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for WriteQueues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

/// Saves it after all that was given for this place before, even if nobody waits for the answer. The work is done by
/// whoever waits, or else by a task of its own.
pub(super) fn save(saver: &PostgresSaver, lease: Lease<'_>, save: Save) -> Underway {
    let (answer, result) = oneshot::channel();
    let (place, waiting) = (Place::of(lease), Waiting { save, answer });
    let mut queues = saver.queues.lock();
    if let Some(queue) = queues.get_mut(&place) {
        queue.push_back(waiting);
        return Underway { work: None, result };
    }
    queues.insert(place.clone(), WriteQueue::from([waiting]));
    let worker = Worker { saver: saver.clone(), place, is_done: false };
    let mut underway = Underway { work: Some(Box::pin(worker.work())), result };
    if !lease.is_awaited {
        underway.hand_over();
    }
    underway
}

/// A save, and the work for it if nobody else does it.
pub(super) struct Underway {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    result: oneshot::Receiver<Result<(), CheckpointError>>,
}

impl Future for Underway {
    type Output = Result<(), CheckpointError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.work.as_mut().is_some_and(|work| work.as_mut().poll(cx).is_ready()) {
            self.work = None;
        }
        let given_up = |_| Err(CheckpointError::backend("a save was given up, because its runtime has ended"));
        Pin::new(&mut self.result).poll(cx).map(|result| result.unwrap_or_else(given_up))
    }
}

impl Underway {
    /// Lets a task of its own do the work, if there is a runtime.
    fn hand_over(&mut self) {
        if let Ok(runtime) = Handle::try_current()
            && let Some(work) = self.work.take()
        {
            runtime.spawn(work);
        }
    }
}

impl Drop for Underway {
    /// Others may wait for this work too: it goes on without whoever gives up.
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// Who saves to a place.
struct Worker {
    saver: PostgresSaver,
    place: Place,
    is_done: bool,
}

impl Worker {
    /// Saves what waits now. What comes meanwhile is saved by a task of its own: the first answer does not wait for it.
    async fn work(mut self) {
        self.save_next().await;
        if !self.is_done {
            tokio::spawn(async move {
                while !self.is_done {
                    self.save_next().await;
                }
            });
        }
    }

    async fn save_next(&mut self) {
        let (saves, answers): (Vec<_>, Vec<_>) = self.next().map(|one| (one.save, one.answer)).unzip();
        let results = self.saver.save_all(self.place.lease(), &saves).await;
        self.end_if_idle();
        for (answer, result) in answers.into_iter().zip(results) {
            // Nobody needs to wait for it.
            let _ = answer.send(result);
        }
    }

    /// What goes together next.
    fn next(&self) -> impl Iterator<Item = Waiting> + use<> {
        let mut queues = self.saver.queues.lock();
        let queue = queues.get_mut(&self.place).map(|queue| {
            let mut chain = Chain::default();
            let together = queue.iter().take_while(|waiting| chain.takes(&waiting.save)).count();
            queue.drain(..together).collect::<Vec<_>>()
        });
        queue.into_iter().flatten()
    }

    fn end_if_idle(&mut self) {
        let mut queues = self.saver.queues.lock();
        if queues.get(&self.place).is_none_or(WriteQueue::is_empty) {
            queues.remove(&self.place);
            self.is_done = true;
        }
    }
}

impl Drop for Worker {
    /// If it ends early, nobody would ever answer those who wait.
    fn drop(&mut self) {
        if !self.is_done {
            self.saver.queues.lock().remove(&self.place);
        }
    }
}

/// Saves that one statement can do: each goes on from the one before.
#[derive(Default)]
struct Chain {
    /// The last checkpoint; none before the first save.
    tip: Option<CheckpointId>,
    has_checkpoints: bool,
    /// The tasks that wrote under the last checkpoint: what a task wrote twice is merged, and that takes more.
    tasks: HashSet<TaskId>,
    saves: usize,
    bytes: usize,
}

impl Chain {
    const MOST_SAVES: usize = 64;
    const MOST_BYTES: usize = 1 << 20;

    /// Whether it goes along. The first one always does.
    fn takes(&mut self, save: &Save) -> bool {
        let goes_along = self.saves == 0
            || self.saves < Self::MOST_SAVES && self.bytes < Self::MOST_BYTES && self.is_continued_by(save);
        if goes_along {
            self.add(save);
        }
        goes_along
    }

    fn is_continued_by(&self, save: &Save) -> bool {
        let is_next = save
            .checkpoint()
            .is_none_or(|row| Some(row.id) > self.tip && (!self.has_checkpoints || row.head == self.tip));
        is_next && save.built_on() == self.tip && !save.pending().iter().any(|row| self.tasks.contains(&row.task))
    }

    fn add(&mut self, save: &Save) {
        self.saves += 1;
        self.bytes += save.pending().iter().map(|row| row.body.len()).sum::<usize>();
        match save.checkpoint() {
            Some(row) => {
                self.bytes += row.body.len();
                self.tip = Some(row.id);
                self.has_checkpoints = true;
                self.tasks.clear();
            }
            None => {
                self.tip = save.built_on();
                self.tasks.extend(save.pending().iter().map(|row| row.task));
            }
        }
    }
}
