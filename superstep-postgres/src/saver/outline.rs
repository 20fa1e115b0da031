//! Outlines, so that reading need not go far down.

use superstep::{CheckpointError, CheckpointErrorKind, CheckpointId, Lease};
use superstep_storage::rows::{NewOutline, RowCodec};

use super::PostgresSaver;
use super::work::{Param, Work, bytes, params};
use crate::database::Client;
use crate::sql::checkpoints as sql;

impl PostgresSaver {
    /// Gives a row an outline. The row is saved already: if the database fails now, the next row gets one.
    pub(super) async fn outline(
        &self,
        client: &mut Client,
        lease: Lease<'_>,
        space: i64,
        id: CheckpointId,
    ) -> Result<(), CheckpointError> {
        match self.add_outline(client, self.codec(lease.thread, lease.namespace), space, id).await {
            Err(error) if error.kind() == CheckpointErrorKind::Backend => {
                tracing::warn!(thread = lease.thread, checkpoint = %id, %error, "a checkpoint got no outline");
                Ok(())
            }
            done => done,
        }
    }

    async fn add_outline(
        &self,
        client: &mut Client,
        codec: RowCodec<'_>,
        space: i64,
        id: CheckpointId,
    ) -> Result<(), CheckpointError> {
        let transaction = self.begin(client).await?;
        let work = self.work(transaction.client());
        if work.row(sql::SHARE, params![space => INT8]).await?.is_none() {
            return Ok(());
        }
        let chain: &[Param<'_>] = params![space => INT8, vec![bytes(id)] => BYTEA_ARRAY];
        let mut read_rows = work.found(codec, sql::CHAINS, chain).await?.read_rows;
        if !read_rows.has(id) {
            return Ok(());
        }
        work.fetch(codec, space, codec.to_gather(&read_rows, id, self.interval)?, &mut read_rows).await?;
        work.set_outline(space, &codec.new_outline(&read_rows, id, self.interval)?).await?;
        Ok(transaction.commit().await?)
    }
}

impl Work<'_> {
    pub(super) async fn set_outline(&self, space: i64, outline: &NewOutline) -> Result<(), CheckpointError> {
        let owners: Vec<_> = outline.owners.iter().copied().map(bytes).collect();
        let (id, sealed) = (bytes(outline.id), &outline.sealed);
        let params: &[Param<'_>] = params![space => INT8, id => BYTEA, owners => BYTEA_ARRAY, sealed => BYTEA];
        self.run(sql::SET_OUTLINE, params).await.map(drop)
    }
}
