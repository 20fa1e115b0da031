//! The checkpoints of a query, found page by page.

use superstep::{CheckpointError, ListQuery, SavedCheckpoint};

use super::{Found, RowCodec};

/// A query whose pages are read until it has enough. The database knows nothing of metadata.
#[derive(Debug)]
pub struct Listing {
    /// What the next page is to be of.
    pub query: ListQuery,
    wanted: usize,
    page: usize,
    all: Vec<SavedCheckpoint>,
}

impl Listing {
    /// Nothing of it is read yet.
    pub fn new(query: &ListQuery) -> Self {
        /// So many are read at once when only some of them are wanted.
        const PAGE: usize = 256;
        let wanted = query.limit.unwrap_or(usize::MAX);
        let page = if query.metadata.is_empty() { wanted } else { PAGE };
        Self { query: query.clone(), wanted, page, all: Vec::new() }
    }

    /// How many checkpoints the next page has, if there are so many.
    pub fn limit(&self) -> i64 {
        i64::try_from(self.page).unwrap_or(i64::MAX)
    }

    /// Takes in a page; all that was asked for, if it was the last one.
    pub fn take(
        &mut self,
        codec: RowCodec<'_>,
        found: &Found,
    ) -> Result<Option<Vec<SavedCheckpoint>>, CheckpointError> {
        for id in &found.listed {
            let row = found.read_rows.row(*id).map_err(|missing| codec.damaged(*id, missing))?;
            if self.query.matches(&row.record) && self.all.len() < self.wanted {
                self.all.push(found.saved(codec, *id)?);
            }
        }
        self.query.before = found.listed.last().copied();
        let is_last = found.listed.len() < self.page || self.all.len() >= self.wanted;
        Ok(is_last.then(|| std::mem::take(&mut self.all)))
    }
}
