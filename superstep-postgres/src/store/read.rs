//! What the reads of a batch find.

use std::collections::HashMap;

use superstep::store::backend::{NamespaceList, PageBuilder, PreparedOp, PreparedSearch, Ranked, Ranking, Scores};
use superstep::{Cursor, Item, Namespace, NamespaceQuery, SearchPage, SearchQuery, StoreError, StoreReply};
use superstep_storage::DatabaseError;
use superstep_storage::items::{Row, bytes_of, namespace_of, offer, range_of};
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::{ToSql, Type};

use super::facts;
use super::pgvector::Pgvector;
use crate::database::{Client, InDatabase, PostgresDatabase};
use crate::sql::store as sql;

/// How many rows are asked for at once where it is not known how many are needed.
const SOME: usize = 256;
const MANY_VECTORS: i64 = 2000;

/// Values with their types: nothing is asked of the database to find these out.
pub(super) type Values<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// Runs a statement with the schema's name filled in.
pub(super) async fn run(
    client: &Client,
    database: &PostgresDatabase,
    sql: &str,
    values: Values<'_>,
) -> Result<Vec<SqlRow>, DatabaseError> {
    client.query_typed(&database.schema().fill(sql), values).await.in_database(database)
}

/// Reads at one time, on one snapshot.
pub(super) struct Reads<'a> {
    client: &'a Client,
    pub(super) database: &'a PostgresDatabase,
    pub(super) now: i64,
    pgvector: Option<&'a Pgvector>,
    /// The places of items whose time to live is to be restarted.
    pub(super) refreshed: Vec<u64>,
}

impl<'a> Reads<'a> {
    pub(super) fn new(client: &'a Client, database: &'a PostgresDatabase, now: i64) -> Self {
        Self { client, database, now, pgvector: None, refreshed: Vec::new() }
    }

    /// Lets pgvector find what is near.
    pub(super) fn with(mut self, pgvector: Option<&'a Pgvector>) -> Self {
        self.pgvector = pgvector;
        self
    }

    /// A reply for each op; writes are answered with [`StoreReply::Done`].
    pub(super) async fn answer(&mut self, ops: &[PreparedOp]) -> Result<Vec<StoreReply>, StoreError> {
        let mut replies = Vec::with_capacity(ops.len());
        for op in ops {
            replies.push(match op {
                PreparedOp::Get { namespace, key, refresh } => {
                    StoreReply::Item(self.get(namespace, key, *refresh).await?)
                }
                PreparedOp::Search(search) => StoreReply::Page(self.search(search).await?),
                PreparedOp::ListNamespaces(query) => StoreReply::Namespaces(self.namespaces(query).await?),
                PreparedOp::Put(_) | PreparedOp::Delete { .. } => StoreReply::Done,
            });
        }
        Ok(replies)
    }

    async fn get(&mut self, namespace: &Namespace, key: &str, refresh: bool) -> Result<Option<Item>, StoreError> {
        let bytes = bytes_of(namespace);
        let values: Values<'_> = &[(&self.now, Type::INT8), (&bytes, Type::BYTEA), (&key, Type::TEXT)];
        let Some(row) = self.run(sql::GET, values).await?.pop() else { return Ok(None) };
        let row = self.to_row(&row)?;
        if refresh && row.expires {
            self.refreshed.push(row.place);
        }
        let value = row.value()?;
        row.into_item(value).map(Some)
    }

    async fn search(&mut self, search: &PreparedSearch) -> Result<SearchPage, StoreError> {
        let mut page = PageBuilder::new(&search.query);
        let expiring = match (&search.ranking, self.pgvector) {
            (None, _) => self.in_order_of_puts(&search.query, &mut page).await?,
            (Some(ranking), Some(pgvector)) if pgvector.is_for(ranking) => {
                pgvector.nearest(self, &search.query, ranking, &mut page).await?
            }
            (Some(ranking), _) => self.by_rank(&search.query, ranking, &mut page).await?,
        };
        if search.refresh {
            self.refreshed.extend(expiring);
        }
        Ok(page.finish())
    }

    /// Reads some items after others until the page is full; without a filter, no more than it needs.
    async fn in_order_of_puts(&self, query: &SearchQuery, page: &mut PageBuilder<'_>) -> Result<Vec<u64>, StoreError> {
        let wanted = facts::wanted(&query.filter);
        let needed = query.limit.saturating_add(query.offset).saturating_add(1);
        let count = if query.filter.is_empty() { needed.min(SOME) } else { SOME };
        let mut after = query.after.map_or(0, |cursor| cursor.place() as i64);
        let mut expiring = Vec::new();
        loop {
            let rows = self.some_after(query, after, count as i64, wanted.as_ref()).await?;
            for row in &rows {
                let row = self.to_row(row)?;
                after = row.place as i64;
                let cursor = Cursor::new(row.place, None);
                if !offer(page, row, cursor, &mut expiring)? {
                    return Ok(expiring);
                }
            }
            if rows.len() < count {
                return Ok(expiring);
            }
        }
    }

    async fn some_after(
        &self,
        query: &SearchQuery,
        after: i64,
        count: i64,
        wanted: Option<&String>,
    ) -> Result<Vec<SqlRow>, StoreError> {
        let scope = bytes_of(&query.prefix);
        let all: [(&(dyn ToSql + Sync), Type); 5] = [
            (&self.now, Type::INT8),
            (&after, Type::INT8),
            (&count, Type::INT8),
            (&wanted, Type::TEXT),
            (&scope, Type::BYTEA),
        ];
        let (sql, values) = if scope.is_empty() { (sql::ALL_AFTER, &all[..4]) } else { (sql::SCOPE_AFTER, &all[..]) };
        Ok(self.run(sql, values).await?)
    }

    async fn by_rank(
        &self,
        query: &SearchQuery,
        ranking: &Ranking,
        page: &mut PageBuilder<'_>,
    ) -> Result<Vec<u64>, StoreError> {
        let mut scores = Scores::new(ranking);
        self.count_words(query, ranking, &mut scores).await?;
        self.measure(query, ranking, &mut scores).await?;
        let mut expiring = Vec::new();
        self.fill(&scores.in_order(query.after), page, &mut expiring).await?;
        Ok(expiring)
    }

    /// Offers items in this order until the page is full; whether it is, and there is more.
    pub(super) async fn fill(
        &self,
        order: &[Ranked],
        page: &mut PageBuilder<'_>,
        expiring: &mut Vec<u64>,
    ) -> Result<bool, StoreError> {
        for some in order.chunks(SOME) {
            let places: Vec<i64> = some.iter().map(|ranked| ranked.place as i64).collect();
            let values: Values<'_> = &[(&self.now, Type::INT8), (&places, Type::INT8_ARRAY)];
            let mut rows = HashMap::new();
            for row in self.run(sql::GET_PLACES, values).await? {
                let row = self.to_row(&row)?;
                rows.insert(row.place, row);
            }
            for ranked in some {
                let Some(row) = rows.remove(&ranked.place) else { continue };
                if !offer(page, row, ranked.cursor(), expiring)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn count_words(
        &self,
        query: &SearchQuery,
        ranking: &Ranking,
        scores: &mut Scores<'_>,
    ) -> Result<(), StoreError> {
        let Some(words) = ranking.words.as_ref().filter(|words| !words.is_empty()) else { return Ok(()) };
        let (start, end) = range_of(&query.prefix);
        let values: Values<'_> =
            &[(&self.now, Type::INT8), (words, Type::TEXT_ARRAY), (&start, Type::BYTEA), (&end, Type::BYTEA)];
        for row in self.run(sql::COUNT_WORDS, values).await? {
            let place: i64 = row.try_get(0).in_database(self.database)?;
            let count: i64 = row.try_get(1).in_database(self.database)?;
            scores.add_words(place as u64, count as usize);
        }
        Ok(())
    }

    /// Compares all vectors here: what another comes to in other precision would have another order.
    async fn measure(&self, query: &SearchQuery, ranking: &Ranking, scores: &mut Scores<'_>) -> Result<(), StoreError> {
        if ranking.vector.is_none() {
            return Ok(());
        }
        let (start, end) = range_of(&query.prefix);
        let (mut place, mut ordinal) = (0i64, -1i64);
        loop {
            let values: Values<'_> = &[
                (&self.now, Type::INT8),
                (&start, Type::BYTEA),
                (&end, Type::BYTEA),
                (&place, Type::INT8),
                (&ordinal, Type::INT8),
                (&MANY_VECTORS, Type::INT8),
            ];
            let rows = self.run(sql::VECTORS, values).await?;
            for row in &rows {
                place = row.try_get(0).in_database(self.database)?;
                ordinal = row.try_get(1).in_database(self.database)?;
                let vector: Vec<f32> = row.try_get(2).in_database(self.database)?;
                scores.add_vector(place as u64, &vector);
            }
            if (rows.len() as i64) < MANY_VECTORS {
                return Ok(());
            }
        }
    }

    async fn namespaces(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        let (start, end) = range_of(&query.literal_prefix());
        let count = SOME as i64;
        let mut last: Option<Vec<u8>> = None;
        let mut picked = NamespaceList::new(query);
        loop {
            let values: Values<'_> = &[
                (&self.now, Type::INT8),
                (&start, Type::BYTEA),
                (&end, Type::BYTEA),
                (&last, Type::BYTEA),
                (&count, Type::INT8),
            ];
            let rows = self.run(sql::NAMESPACES, values).await?;
            for row in &rows {
                let bytes: &[u8] = row.try_get(0).in_database(self.database)?;
                if !picked.offer(&namespace_of(bytes)?) {
                    return Ok(picked.finish());
                }
                last = Some(bytes.to_vec());
            }
            if rows.len() < SOME {
                return Ok(picked.finish());
            }
        }
    }

    pub(super) async fn run(&self, sql: &str, values: Values<'_>) -> Result<Vec<SqlRow>, DatabaseError> {
        run(self.client, self.database, sql, values).await
    }

    fn to_row(&self, row: &SqlRow) -> Result<Row, DatabaseError> {
        let read = || {
            Ok::<_, tokio_postgres::Error>(Row {
                place: row.try_get::<_, i64>(0)? as u64,
                namespace: row.try_get(1)?,
                key: row.try_get(2)?,
                value: row.try_get(3)?,
                version: row.try_get::<_, i64>(4)? as u64,
                created_at: row.try_get(5)?,
                updated_at: row.try_get(6)?,
                expires: row.try_get(7)?,
            })
        };
        read().in_database(self.database)
    }
}
