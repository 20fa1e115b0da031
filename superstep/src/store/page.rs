//! One page of a search, filled with items in order.

use serde_json::Value;

use super::{Cursor, Item, SearchPage, SearchQuery};

/// Takes items in the order of a search until the page is full and it is known whether there is more.
///
/// ```
/// use superstep::store::backend::{PageBuilder, Verdict};
/// use superstep::{Cursor, Filter, Item, SearchQuery};
///
/// let query = SearchQuery::new(["n"]).filter(Filter::gt("n", 1)).limit(1);
/// let mut page = PageBuilder::new(&query);
/// for n in 1..5 {
///     let value = serde_json::json!({ "n": n });
///     match page.judge(&value) {
///         Verdict::Pass => {}
///         Verdict::Take => {
///             let item = Item::new(["n"], n.to_string(), value, std::time::SystemTime::now());
///             page.take(Cursor::new(n, None), item);
///         }
///         Verdict::Stop => break,
///     }
/// }
/// let page = page.finish();
/// assert_eq!((&*page.items[0].key, page.next), ("2", Some(Cursor::new(2, None))));
/// ```
#[derive(Debug)]
pub struct PageBuilder<'a> {
    query: &'a SearchQuery,
    skipped: usize,
    last: Option<Cursor>,
    page: SearchPage,
}

/// What to do with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is not on the page.
    Pass,
    /// It is to be [taken](PageBuilder::take).
    Take,
    /// The page is full, and there is more.
    Stop,
}

impl<'a> PageBuilder<'a> {
    /// An empty page of this search.
    pub fn new(query: &'a SearchQuery) -> Self {
        Self { query, skipped: 0, last: None, page: SearchPage::default() }
    }

    /// Judges the next item by its value.
    pub fn judge(&mut self, value: &Value) -> Verdict {
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
    pub fn take(&mut self, cursor: Cursor, mut item: Item) {
        item.score = cursor.score.map(super::rank::shown);
        self.last = Some(cursor);
        self.page.items.push(item);
    }

    /// The page, with the cursor to the next if there is more.
    pub fn finish(self) -> SearchPage {
        self.page
    }
}
