//! The wall between the engine and the code of its users: a panic there is an error, and the thread lives on.
//!
//! Every run, every step of one and every task is polled behind a wall, so that no panic goes further. Walls around single
//! calls are there for their words: they know what panicked.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A panic, carried as an error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Panicked(pub(crate) String);

impl Panicked {
    #[cold]
    pub(crate) fn of(panic: Box<dyn Any + Send>) -> Self {
        let text =
            panic.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
        // What was thrown is the user's too, and may panic when it is dropped.
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(another);
        }
        Self(text.unwrap_or_else(|| "it gave no reason".to_owned()))
    }
}

/// Calls code that is not the engine's own.
#[inline]
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(Panicked::of)
}

/// An error in its own words, if it has any.
pub(crate) fn words_of(error: &dyn std::error::Error) -> String {
    caught(|| error.to_string()).unwrap_or_else(|panic| format!("an error whose `Display` panicked: {panic}"))
}

/// Drops values one by one: two that panic while they are dropped together would end the process. The first panic goes on
/// when all are dropped, unless another is under way.
#[derive(Default)]
pub(crate) struct Drops(Option<Box<dyn Any + Send>>);

impl Drops {
    pub(crate) fn one<T>(&mut self, value: T) {
        self.each(std::iter::once(value));
    }

    pub(crate) fn each<T>(&mut self, values: impl IntoIterator<Item = T>) {
        let mut values = values.into_iter();
        loop {
            match catch_unwind(AssertUnwindSafe(|| values.next().map(drop))) {
                Ok(None) => return,
                Ok(Some(())) => {}
                Err(panic) if self.0.is_none() => self.0 = Some(panic),
                Err(another) => drop(Panicked::of(another)),
            }
        }
    }

    pub(crate) fn end(self) {
        match self.0 {
            Some(panic) if !std::thread::panicking() => resume_unwind(panic),
            Some(panic) => drop(Panicked::of(panic)),
            None => {}
        }
    }
}

/// Drops the values of a list one by one.
pub(crate) fn drop_each<T>(values: impl IntoIterator<Item = T>) {
    let mut drops = Drops::default();
    drops.each(values);
    drops.end();
}

/// Drops what is left of an iterator with [`drop_each`].
pub(crate) struct DropEach<I: Iterator>(pub(crate) I);

impl<I: Iterator> Drop for DropEach<I> {
    fn drop(&mut self) {
        drop_each(&mut self.0);
    }
}

thread_local! {
    /// How deep the graph is inside others that this thread is driving; 0 if it drives none.
    static LEVEL: Cell<usize> = const { Cell::new(0) };
}

/// How deep the graph is inside others that this thread is driving; 0 if it drives none.
pub(crate) fn level() -> usize {
    LEVEL.get()
}

/// Puts a future into a box, in a frame of its own. Whoever polls it keeps no place for it on the stack, where graphs
/// inside graphs stand on top of each other.
#[inline(never)]
pub(crate) fn boxed<'a, T, F>(make: impl FnOnce() -> F) -> Pin<Box<dyn Future<Output = T> + Send + 'a>>
where
    F: Future<Output = T> + Send + 'a,
{
    Box::pin(make())
}

/// A future behind a wall: whether it panics when it is polled or when it is dropped, that is its result. If it is
/// dropped before its end, nobody waits for a result, and a panic is logged.
pub(crate) struct Walled<'a, T> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    /// The level of the graph that it drives.
    level: Option<usize>,
}

impl<'a, T> Walled<'a, T> {
    pub(crate) fn new(future: Pin<Box<dyn Future<Output = T> + Send + 'a>>) -> Self {
        Self { future: Some(future), level: None }
    }

    /// The same for what drives a graph, or one of its tasks, at this level.
    pub(crate) fn at_level(level: usize, future: Pin<Box<dyn Future<Output = T> + Send + 'a>>) -> Self {
        Self { future: Some(future), level: Some(level) }
    }

    fn let_go(&mut self) -> Result<(), Panicked> {
        let future = self.future.take();
        caught(|| drop(future))
    }
}

impl<T> Future for Walled<'_, T> {
    type Output = Result<T, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(future) = &mut this.future else { return Poll::Pending };
        let outer = LEVEL.get();
        LEVEL.set(this.level.unwrap_or(outer));
        let polled = caught(|| future.as_mut().poll(cx));
        LEVEL.set(outer);
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => Ok(result),
            Err(panicked) => Err(panicked),
        };
        Poll::Ready(this.let_go().and(result))
    }
}

impl<T> Drop for Walled<'_, T> {
    fn drop(&mut self) {
        if let Err(panicked) = self.let_go() {
            tracing::error!(%panicked, "what was left of a run panicked when it was dropped");
        }
    }
}
