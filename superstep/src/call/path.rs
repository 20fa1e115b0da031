//! Paths without their types: what decides where a conditional edge leads.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Call, Goto};
use crate::error::BoxError;
use crate::state::erased::Snapshot;

/// Where a path leads: any number of nodes and sends.
pub type Routes = SmallVec<[Goto; 1]>;

pub(crate) type RouteFuture = Pin<Box<dyn Future<Output = Result<Routes, BoxError>> + std::marker::Send>>;
pub(crate) type SyncPath = Arc<dyn Fn(&Snapshot) -> Result<Routes, BoxError> + std::marker::Send + Sync>;
pub(crate) type AsyncPath = Arc<dyn for<'a> Fn(Call<'a>) -> RouteFuture + std::marker::Send + Sync>;

/// A path with its types erased.
#[derive(Clone)]
pub struct Path {
    pub(crate) run: PathFn,
    /// Where it may lead, if its return type says so.
    pub(crate) targets: Option<&'static [&'static str]>,
    pub(crate) name: Option<String>,
}

crate::debug::debug_parts!([] Path, "Path", this => { name: this.name, targets: this.targets });

#[derive(Clone)]
pub(crate) enum PathFn {
    Sync(SyncPath),
    Async {
        run: AsyncPath,
        /// Whether it asks for anything besides the state.
        asks: bool,
    },
}
