//! One page of a search, filled with items in order.

use serde_json::Value;

use super::{Cursor, Item, SearchPage, SearchQuery};

/// Takes items in the order of a search until the page is full and it is known whether there is more.
#[derive(Debug)]
pub(crate) struct PageInWork<'a> {
    query: &'a SearchQuery,
    skipped: usize,
    last: Option<Cursor>,
    page: SearchPage,
}

/// What to do with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Take,
    /// The page is full, and there is more.
    Stop,
}

impl<'a> PageInWork<'a> {
    pub(crate) fn new(query: &'a SearchQuery) -> Self {
        Self { query, skipped: 0, last: None, page: SearchPage::default() }
    }

    /// Judges the next item by its value.
    pub(crate) fn judge(&mut self, value: &Value) -> Verdict {
        if !self.query.filter.accepts(value) {
            return Verdict::Pass;
        }
        if self.skipped < self.query.offset {
            self.skipped += 1;
            return Verdict::Pass;
        }
        if self.page.items.len() == self.query.limit {
            self.page.next = self.last;
            return Verdict::Stop;
        }
        Verdict::Take
    }

    /// Takes an item that is to be taken.
    pub(crate) fn take(&mut self, cursor: Cursor, mut item: Item) {
        item.score = cursor.score.map(super::rank::shown);
        self.last = Some(cursor);
        self.page.items.push(item);
    }

    pub(crate) fn finish(self) -> SearchPage {
        self.page
    }
}
