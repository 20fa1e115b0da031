//! What callers change about a graph that is not built yet.

use superstep::{State, StateGraph};

/// Changes that are made in their order, once the graph is there.
pub(crate) struct Changes<S: State>(Vec<Box<dyn FnOnce(&mut StateGraph<S>) -> &mut StateGraph<S>>>);

impl<S: State> Changes<S> {
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn add(&mut self, change: impl FnOnce(&mut StateGraph<S>) -> &mut StateGraph<S> + 'static) {
        self.0.push(Box::new(change));
    }

    pub(crate) fn make(self, graph: &mut StateGraph<S>) {
        for change in self.0 {
            change(graph);
        }
    }
}
