//! All that is logged on this thread, as text.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(Clone, Default)]
pub(super) struct Log(Arc<Inner>);

#[derive(Default)]
struct Inner {
    text: Mutex<String>,
    grown: Notify,
}

impl Log {
    pub(super) fn text(&self) -> String {
        self.0.text.lock().unwrap().clone()
    }

    pub(super) async fn wait_for(&self, words: &str) {
        while !self.text().contains(words) {
            self.0.grown.notified().await;
        }
    }

    fn note(&self, write: impl FnOnce(&mut Line<'_>)) {
        let mut text = self.0.text.lock().unwrap();
        write(&mut Line(&mut text));
        text.push('\n');
        self.0.grown.notify_one();
    }
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(|line| span.record(line));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        self.note(|line| values.record(line));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        self.note(|line| event.record(line));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
