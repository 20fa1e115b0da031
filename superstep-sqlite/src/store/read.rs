//! What the reads of a batch find.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};
use superstep::store::backend::{NamespaceList, PageBuilder, PreparedOp, PreparedSearch, Ranking, Scores};
use superstep::{Cursor, Item, Namespace, NamespaceQuery, SearchPage, SearchQuery, StoreError, StoreReply};
use superstep_storage::items::{Row, bytes_of, namespace_of, offer, range_of, read_vector};

use crate::database::InDatabase;
use crate::sql::store as sql;

/// Reads at one time, on one snapshot.
pub(super) struct Reads<'a> {
    connection: &'a Connection,
    now: i64,
    /// The places of items whose time to live is to be restarted.
    pub(super) refreshed: Vec<u64>,
}

impl<'a> Reads<'a> {
    pub(super) fn new(connection: &'a Connection, now: i64) -> Self {
        Self { connection, now, refreshed: Vec::new() }
    }

    /// A reply for each op; writes are answered with [`StoreReply::Done`].
    pub(super) fn answer(&mut self, ops: &[PreparedOp]) -> Result<Vec<StoreReply>, StoreError> {
        ops.iter().map(|op| self.answer_one(op)).collect()
    }

    fn answer_one(&mut self, op: &PreparedOp) -> Result<StoreReply, StoreError> {
        Ok(match op {
            PreparedOp::Get { namespace, key, refresh } => StoreReply::Item(self.get(namespace, key, *refresh)?),
            PreparedOp::Search(search) => StoreReply::Page(self.search(search)?),
            PreparedOp::ListNamespaces(query) => StoreReply::Namespaces(self.namespaces(query)?),
            PreparedOp::Put(_) | PreparedOp::Delete { .. } => StoreReply::Done,
        })
    }

    fn get(&mut self, namespace: &Namespace, key: &str, refresh: bool) -> Result<Option<Item>, StoreError> {
        let bytes = bytes_of(namespace);
        let Some(row) = self.row(sql::GET, params![self.now, bytes, key])? else { return Ok(None) };
        if refresh && row.expires {
            self.refreshed.push(row.place);
        }
        let value = row.value()?;
        row.into_item(value).map(Some)
    }

    fn search(&mut self, search: &PreparedSearch) -> Result<SearchPage, StoreError> {
        let mut page = PageBuilder::new(&search.query);
        let expiring = match &search.ranking {
            None => self.in_order_of_puts(&search.query, &mut page)?,
            Some(ranking) => self.by_rank(&search.query, ranking, &mut page)?,
        };
        if search.refresh {
            self.refreshed.extend(expiring);
        }
        Ok(page.finish())
    }

    /// Steps through the items until the page is full.
    fn in_order_of_puts(&self, query: &SearchQuery, page: &mut PageBuilder<'_>) -> Result<Vec<u64>, StoreError> {
        let after = query.after.map_or(0, |cursor| cursor.place() as i64);
        let scope = bytes_of(&query.prefix);
        let mut statement = self.prepare(if scope.is_empty() { sql::ALL_AFTER } else { sql::SCOPE_AFTER })?;
        let rows = if scope.is_empty() {
            statement.query(params![self.now, after])
        } else {
            statement.query(params![self.now, after, scope])
        };
        let mut rows = rows.in_database(self.connection)?;
        let mut expiring = Vec::new();
        while let Some(row) = rows.next().in_database(self.connection)? {
            let row = to_row(row).in_database(self.connection)?;
            let cursor = Cursor::new(row.place, None);
            if !offer(page, row, cursor, &mut expiring)? {
                break;
            }
        }
        Ok(expiring)
    }

    fn by_rank(
        &self,
        query: &SearchQuery,
        ranking: &Ranking,
        page: &mut PageBuilder<'_>,
    ) -> Result<Vec<u64>, StoreError> {
        let mut scores = Scores::new(ranking);
        self.count_words(query, ranking, &mut scores)?;
        self.measure(query, ranking, &mut scores)?;
        let mut expiring = Vec::new();
        for ranked in scores.in_order(query.after) {
            let row = self.row(sql::GET_PLACE, params![self.now, ranked.place as i64])?;
            let Some(row) = row else { continue };
            if !offer(page, row, ranked.cursor(), &mut expiring)? {
                break;
            }
        }
        Ok(expiring)
    }

    fn count_words(&self, query: &SearchQuery, ranking: &Ranking, scores: &mut Scores<'_>) -> Result<(), StoreError> {
        let Some(words) = ranking.words.as_ref().filter(|words| !words.is_empty()) else { return Ok(()) };
        let words = serde_json::to_string(words).map_err(StoreError::backend)?;
        let (start, end) = range_of(&query.prefix);
        let mut statement = self.prepare(sql::COUNT_WORDS)?;
        let rows = statement.query_map(params![self.now, words, start, end], |row| Ok((row.get(0)?, row.get(1)?)));
        for row in rows.in_database(self.connection)? {
            let (place, count): (i64, i64) = row.in_database(self.connection)?;
            scores.add_words(place as u64, count as usize);
        }
        Ok(())
    }

    /// An exact scan: there is no index that could be nearer to the truth.
    fn measure(&self, query: &SearchQuery, ranking: &Ranking, scores: &mut Scores<'_>) -> Result<(), StoreError> {
        if ranking.vector.is_none() {
            return Ok(());
        }
        let (start, end) = range_of(&query.prefix);
        let mut statement = self.prepare(sql::VECTORS)?;
        let mut rows = statement.query(params![self.now, start, end]).in_database(self.connection)?;
        let mut vector = Vec::new();
        while let Some(row) = rows.next().in_database(self.connection)? {
            let place: i64 = row.get(0).in_database(self.connection)?;
            let bytes = row.get_ref(1).in_database(self.connection)?;
            read_vector(bytes.as_blob().map_err(StoreError::backend)?, &mut vector);
            scores.add_vector(place as u64, &vector);
        }
        Ok(())
    }

    fn namespaces(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        let (start, end) = range_of(&query.literal_prefix());
        let mut statement = self.prepare(sql::NAMESPACES)?;
        let mut rows = statement.query(params![self.now, start, end]).in_database(self.connection)?;
        let mut picked = NamespaceList::new(query);
        while let Some(row) = rows.next().in_database(self.connection)? {
            let bytes = row.get_ref(0).in_database(self.connection)?;
            let namespace = namespace_of(bytes.as_blob().map_err(StoreError::backend)?)?;
            if !picked.offer(&namespace) {
                break;
            }
        }
        Ok(picked.finish())
    }

    fn row(&self, sql: &str, params: impl Params) -> Result<Option<Row>, StoreError> {
        let found = self.prepare(sql)?.query_row(params, to_row).optional();
        Ok(found.in_database(self.connection)?)
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'a>, StoreError> {
        Ok(self.connection.prepare_cached(sql).in_database(self.connection)?)
    }
}

fn to_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        place: row.get::<_, i64>(0)? as u64,
        namespace: row.get(1)?,
        key: row.get(2)?,
        value: row.get(3)?,
        version: row.get::<_, i64>(4)? as u64,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
        expires: row.get(7)?,
    })
}
