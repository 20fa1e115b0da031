//! The graph inside a node, as the one around it sees it.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::checkpoint::Checkpointer;
use crate::draw::Drawing;
use crate::error::Error;
use crate::snapshot::AnySnapshot;

pub(crate) type Looked = (Option<Arc<dyn AnySnapshot>>, Arc<dyn Any + Send + Sync>);

/// A graph inside a node, with its state's type erased: for looking at it and drawing it.
pub trait Subgraph: Send + Sync {
    /// Its state in a thread, under a namespace.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn look(
        self: Arc<Self>,
        checkpointer: Arc<dyn Checkpointer>,
        thread: Arc<str>,
        namespace: String,
        deep: bool,
    ) -> Pin<Box<dyn Future<Output = Result<Looked, Error>> + Send>>;

    /// Its drawing, subgraphs expanded so many levels deep.
    fn drawing(&self, depth: usize) -> Drawing;
}
