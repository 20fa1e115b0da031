//! The slots of a run that limits how many tasks run at once.
//!
//! Nodes and calls of functional tasks take one each. A task that waits while its own calls are under way gives its slot
//! up: its calls have slots in its stead. It needs one again when they have ended. So callers never keep those from
//! running that they wait for, and can give them up at any time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::lock;

/// The slot of one task among those of its step.
pub(crate) struct Slot {
    all: Arc<Semaphore>,
    held: Mutex<Held>,
}

struct Held {
    permit: Option<OwnedSemaphorePermit>,
    /// The task is at work right now.
    is_polled: bool,
    /// How many of its calls are under way.
    calls: usize,
}

impl Slot {
    /// Waits for a slot.
    pub(crate) async fn take(all: &Arc<Semaphore>) -> Taken {
        let permit = all.clone().acquire_owned().await.ok();
        let held = Mutex::new(Held { permit, is_polled: false, calls: 0 });
        Taken(Arc::new(Self { all: all.clone(), held }))
    }

    /// Notes that the task made a call. If it is not at work itself, it waits.
    pub(crate) fn begin_call(self: &Arc<Self>) -> UnderWay {
        let mut held = lock(&self.held);
        held.calls += 1;
        if !held.is_polled {
            held.permit = None;
        }
        UnderWay(self.clone())
    }

    /// Whether the task may work; then it is at work.
    fn enter(&self) -> bool {
        let mut held = lock(&self.held);
        held.is_polled = held.permit.is_some() || held.calls > 0;
        held.is_polled
    }

    fn keep(&self, permit: Option<OwnedSemaphorePermit>) {
        lock(&self.held).permit = permit;
    }

    fn leave(&self, waits: bool) {
        let mut held = lock(&self.held);
        held.is_polled = false;
        if waits && held.calls > 0 {
            held.permit = None;
        }
    }

    /// The task's future, which works only while it has its slot or calls that are under way.
    pub(crate) fn hold<'a, T>(
        self: Arc<Self>,
        inner: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    ) -> Pin<Box<dyn Future<Output = T> + Send + 'a>>
    where
        T: 'a,
    {
        Box::pin(InSlot { slot: self, inner, waiting: None })
    }
}

/// A slot that is given back when this is dropped, whoever still knows it.
pub(crate) struct Taken(pub(crate) Arc<Slot>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.keep(None);
    }
}

/// A call that has not ended.
pub(crate) struct UnderWay(Arc<Slot>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.0.held).calls -= 1;
    }
}

type Acquiring = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

struct InSlot<'a, T> {
    slot: Arc<Slot>,
    inner: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    waiting: Option<Acquiring>,
}

impl<T> Future for InSlot<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<T> {
        let this = self.get_mut();
        while !this.slot.enter() {
            let all = &this.slot.all;
            let waiting = this.waiting.get_or_insert_with(|| Box::pin(all.clone().acquire_owned()));
            let permit = std::task::ready!(waiting.as_mut().poll(cx));
            this.waiting = None;
            this.slot.keep(permit.ok());
        }
        let polled = this.inner.as_mut().poll(cx);
        this.slot.leave(polled.is_pending());
        polled
    }
}
