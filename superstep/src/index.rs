//! Indices with types: a node is not taken for a task, nor for a channel.

use std::fmt;
use std::ops::{Index, IndexMut};

/// The place of a node in its graph's plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeIx(u32);

impl NodeIx {
    /// The first node of a plan. In a graph with an input channel it is the start node, which is not shown.
    pub(crate) const FIRST: Self = Self(0);

    pub(crate) fn new(place: usize) -> Self {
        Self(u32::try_from(place).expect("a graph has fewer nodes than fit into memory"))
    }

    #[inline]
    pub(crate) fn get(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeIx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What there is one of for every node.
pub(crate) struct ByNode<T>(Vec<T>);

impl<T> ByNode<T> {
    /// Adds what belongs to the next node.
    pub(crate) fn push(&mut self, item: T) -> NodeIx {
        self.0.push(item);
        NodeIx::new(self.0.len() - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// The places of all nodes, in order.
    pub(crate) fn places(&self) -> impl DoubleEndedIterator<Item = NodeIx> + use<T> {
        (0..self.0.len()).map(NodeIx::new)
    }

    /// What there is, with the places of its nodes, in order.
    pub(crate) fn enumerated(&self) -> impl Iterator<Item = (NodeIx, &T)> {
        self.places().zip(&self.0)
    }

    /// The same, to change it.
    pub(crate) fn enumerated_mut(&mut self) -> impl Iterator<Item = (NodeIx, &mut T)> {
        self.places().zip(&mut self.0)
    }
}

impl<T> Default for ByNode<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Index<NodeIx> for ByNode<T> {
    type Output = T;

    #[inline]
    fn index(&self, node: NodeIx) -> &T {
        &self.0[node.get()]
    }
}

impl<T> IndexMut<NodeIx> for ByNode<T> {
    #[inline]
    fn index_mut(&mut self, node: NodeIx) -> &mut T {
        &mut self.0[node.get()]
    }
}
