//! Indices with types: a node is not taken for a task, nor for a channel.

use std::fmt;
use std::marker::PhantomData;
use std::ops;

/// A place in a list of one kind of thing.
pub(crate) trait Ix: Copy {
    fn new(place: usize) -> Self;
    fn get(self) -> usize;
}

macro_rules! indices {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl $name {
            pub(crate) const FIRST: Self = Self(0);
        }

        impl Ix for $name {
            fn new(place: usize) -> Self {
                Self(u32::try_from(place).expect("no list of a graph is longer than memory"))
            }

            #[inline]
            fn get(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

indices! {
    /// The place of a node in its graph's plan. The first one is the start node, if the graph has one.
    NodeIx,
    /// The place of a channel: of a control channel, or behind them of a field. The first one holds a run's input, if the
    /// graph has control channels.
    ChannelIx,
}

/// What there is one of for every node, or every channel.
#[derive(Clone)]
pub(crate) struct Indexed<I, T>(Vec<T>, PhantomData<fn(I)>);

impl<I: Ix, T> Indexed<I, T> {
    pub(crate) fn push(&mut self, item: T) -> I {
        self.0.push(item);
        I::new(self.0.len() - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn get(&self, ix: I) -> Option<&T> {
        self.0.get(ix.get())
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// All places, in order.
    pub(crate) fn places(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.0.len()).map(I::new)
    }

    /// What there is, with its places, in order.
    pub(crate) fn enumerated(&self) -> impl Iterator<Item = (I, &T)> {
        self.places().zip(&self.0)
    }

    /// The same, to change it.
    pub(crate) fn enumerated_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.places().zip(&mut self.0)
    }
}

impl<I, T> Default for Indexed<I, T> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<I, T> FromIterator<T> for Indexed<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Self(items.into_iter().collect(), PhantomData)
    }
}

impl<I: Ix, T> ops::Index<I> for Indexed<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, ix: I) -> &T {
        &self.0[ix.get()]
    }
}

impl<I: Ix, T> ops::IndexMut<I> for Indexed<I, T> {
    #[inline]
    fn index_mut(&mut self, ix: I) -> &mut T {
        &mut self.0[ix.get()]
    }
}
