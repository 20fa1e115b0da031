//! A frozen graph and what it keeps its work in, without the type of its state: all that the engine needs of a graph.

use std::sync::Arc;

use serde_json::Value;

use super::Plan;
use crate::cache::Cache;
use crate::call::ContextType;
use crate::checkpoint::Checkpointer;
use crate::error::InvalidUpdate;
use crate::index::NodeIx;
use crate::state::erased::AnyUpdate;
use crate::store::Store;

/// A frozen graph without the type of its state.
#[derive(Clone)]
pub(crate) struct GraphCore {
    pub(crate) plan: Arc<Plan>,
    pub(crate) persistence: Persistence,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) cache: Option<Arc<dyn Cache>>,
    pub(crate) debug: bool,
    /// What context JSON is read as.
    pub(crate) context: Option<ContextType>,
}

/// Where a graph keeps its checkpoints.
#[derive(Clone, Default)]
pub(crate) enum Persistence {
    /// In the parent's checkpointer, anew in every call; nowhere at the root.
    #[default]
    Inherit,
    /// In the parent's checkpointer, one history for all calls.
    Own,
    /// Nowhere.
    Never,
    /// Here; inside a parent, the parent's is used.
    In(Arc<dyn Checkpointer>),
}

impl GraphCore {
    /// What JSON writes; see [`StateType::update_from_json`](crate::state::erased::StateType).
    pub(crate) fn update_from_json(&self, value: &Value) -> Result<Option<AnyUpdate>, InvalidUpdate> {
        self.plan.ty.update_from_json(value, self.plan.ignores_unknown)
    }

    /// The graph inside one of its nodes, if the node is one that may be saved.
    pub(crate) fn inside(&self, node: NodeIx) -> Option<&GraphCore> {
        self.plan.nodes[node].run.subgraph.as_deref()?.downcast_ref()
    }

    /// Where a graph that keeps one history for all calls has it: the namespace without task ids.
    pub(crate) fn history_namespace(&self, namespace: &str) -> String {
        match self.persistence {
            Persistence::Own => {
                let parts = namespace.split('|').map(|part| part.split(':').next().unwrap_or(part));
                parts.collect::<Vec<_>>().join("|")
            }
            _ => namespace.to_owned(),
        }
    }

    /// The graph that has its checkpoints under a namespace, below this one.
    pub(crate) fn at(&self, namespace: &str) -> Option<&GraphCore> {
        namespace.split('|').try_fold(self, |graph, part| {
            // A graph that a node calls more than once has a number for its further calls.
            let name = part.split(':').next().unwrap_or(part);
            graph.inside(graph.plan.node(name)?)
        })
    }
}
