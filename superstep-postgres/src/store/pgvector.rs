//! Nearness found by pgvector, the extension of PostgreSQL.
//!
//! pgvector computes in 32 bits, so its order is not ours. What it gives as nearest is measured again here; an item is
//! taken only if no vector that was not given can be as near, however far off pgvector may be. So the results are those
//! of a scan, and with an HNSW index they are those of a scan of what the index gives.

use superstep::store::backend::{PageBuilder, Ranking, Scores, StoreSetup, millionths};
use superstep::{Metric, SearchQuery, StoreError};
use superstep_storage::items::range_of;
use tokio_postgres::types::Type;

use super::read::{Reads, Values, run};
use crate::database::{Client, InDatabase, PostgresDatabase};
use crate::sql::database::Schema;
use crate::sql::store::{self as sql, PgvectorMetric};

/// More than a cosine in 32 bits is ever off by.
const SLACK: f64 = 2e-3;

/// The fewest vectors that are asked for.
const FEWEST: usize = 64;

/// How a [`PostgresStore`](crate::PostgresStore) finds what is near.
///
/// ```no_run
/// # async fn example(store: superstep_postgres::PostgresStore) -> Result<(), superstep::StoreError> {
/// use superstep_postgres::VectorSearch;
///
/// let store = store.with_vector_search(VectorSearch::Pgvector).await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorSearch {
    /// All vectors of the namespace are read and compared in this process.
    #[default]
    Scan,
    /// The extension pgvector compares them, for searches by nearness alone and the cosine; others are a scan. The
    /// results are the same.
    Pgvector,
    /// The extension pgvector compares those that an HNSW index gives, for searches by nearness alone. It is the way
    /// for many vectors, and may miss some.
    Hnsw,
}

/// pgvector in a database.
#[derive(Debug, Clone)]
pub(super) struct Pgvector {
    /// Where the extension is.
    schema: String,
    by_index: bool,
}

impl Pgvector {
    /// Looks for the extension, and creates the index if there is to be one.
    pub(super) async fn set_up(
        client: &Client,
        database: &PostgresDatabase,
        how: VectorSearch,
        setup: &StoreSetup,
    ) -> Result<Option<Self>, StoreError> {
        let by_index = match how {
            VectorSearch::Scan => return Ok(None),
            VectorSearch::Pgvector => false,
            VectorSearch::Hnsw => true,
        };
        let rows = run(client, database, sql::PGVECTOR_SCHEMA, &[]).await?;
        let missing =
            || StoreError::backend("the database has no pgvector; let an administrator run `CREATE EXTENSION vector`");
        let name: String = rows.first().ok_or_else(missing)?.try_get(0).in_database(database)?;
        let schema = Schema::new(&name).map_err(StoreError::backend)?;
        let pgvector = Self { schema: schema.fill("{schema}"), by_index };
        if by_index {
            let dimensions = setup.dimensions().ok_or(StoreError::NoEmbedder)?;
            let create = sql::create_hnsw(dimensions, names(setup.metric()));
            run(client, database, &pgvector.fill(&create), &[]).await?;
        }
        Ok(Some(pgvector))
    }

    /// Whether it can find what this ranks by.
    pub(super) fn is_for(&self, ranking: &Ranking) -> bool {
        let is_bounded = ranking.metric == Metric::Cosine;
        ranking.words.is_none() && ranking.vector.is_some() && (self.by_index || is_bounded)
    }

    /// Fills the page with the nearest items. Asks for more vectors until it is sure of all that it takes.
    pub(super) async fn nearest<'q>(
        &self,
        reads: &Reads<'_>,
        query: &'q SearchQuery,
        ranking: &Ranking,
        page: &mut PageBuilder<'q>,
    ) -> Result<Vec<u64>, StoreError> {
        if self.by_index {
            reads.run(sql::SCAN_ON, &[]).await?;
        }
        let needed = query.limit.saturating_add(query.offset).saturating_add(1);
        let mut count = needed.saturating_mul(4).max(FEWEST);
        loop {
            let mut scores = Scores::new(ranking);
            let unseen = self.measure_nearest(reads, query, ranking, count, &mut scores).await?;
            let mut order = scores.in_order(query.after);
            if let Some(unseen) = unseen {
                order.retain(|ranked| ranked.score > unseen);
            }
            let mut work = PageBuilder::new(query);
            let mut expiring = Vec::new();
            let is_full = reads.fill(&order, &mut work, &mut expiring).await?;
            if is_full || unseen.is_none() {
                *page = work;
                return Ok(expiring);
            }
            count = count.saturating_mul(4);
        }
    }

    /// Measures the nearest vectors. Gives the best score in millionths that any other may have, if there are others.
    async fn measure_nearest(
        &self,
        reads: &Reads<'_>,
        query: &SearchQuery,
        ranking: &Ranking,
        count: usize,
        scores: &mut Scores<'_>,
    ) -> Result<Option<i64>, StoreError> {
        let Some(target) = &ranking.vector else { return Ok(None) };
        let text = format!("[{}]", target.iter().map(f32::to_string).collect::<Vec<_>>().join(","));
        let write = if self.by_index { sql::nearest_by_hnsw } else { sql::nearest };
        let (start, end) = range_of(&query.prefix);
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let values: Values<'_> = &[
            (&reads.now, Type::INT8),
            (&start, Type::BYTEA),
            (&end, Type::BYTEA),
            (&text, Type::TEXT),
            (&limit, Type::INT8),
        ];
        let rows = reads.run(&self.fill(&write(target.len(), names(ranking.metric))), values).await?;
        let mut farthest = 0.0;
        for row in &rows {
            let place: i64 = row.try_get(0).in_database(reads.database)?;
            let vector: Vec<f32> = row.try_get(1).in_database(reads.database)?;
            farthest = row.try_get(2).in_database(reads.database)?;
            scores.add_vector(place as u64, &vector);
        }
        // An index gives an order of its own, and what it gives is all there is.
        let is_all = self.by_index || rows.len() < count;
        Ok((!is_all).then(|| millionths(1.0 - farthest + SLACK)))
    }

    /// The text with the extension's schema in place of `{vector}`.
    fn fill(&self, sql: &str) -> String {
        sql.replace("{vector}", &self.schema)
    }
}

fn names(metric: Metric) -> PgvectorMetric {
    match metric {
        Metric::Cosine => PgvectorMetric { operator: "<=>", class: "vector_cosine_ops" },
        Metric::Dot => PgvectorMetric { operator: "<#>", class: "vector_ip_ops" },
        Metric::L2 => PgvectorMetric { operator: "<->", class: "vector_l2_ops" },
    }
}
