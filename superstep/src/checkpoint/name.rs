//! The names in records: texts of the graph that a run shares with all it saves.
//!
//! A name counts its owners once for each run, not once for each graph: runs on other cores
//! do not fight over the count.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use crate::value::Blob;

/// A name in a record: of a field, a trigger or a place in the order of writes. It reads as text.
///
/// ```
/// use superstep::Name;
/// let name = Name::from("messages");
/// assert_eq!(&*name, "messages");
/// assert_eq!(name.to_uppercase(), "MESSAGES");
/// ```
#[derive(Clone)]
pub struct Name(Text);

/// Records hold many names, most of them of the graph: a text of its own is one step further away, to keep them small.
#[derive(Clone)]
enum Text {
    Own(Arc<Box<str>>),
    Of(Arc<Labels>, u32),
}

/// The texts of a frozen graph.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) texts: Vec<Box<str>>,
    /// The names that the numbers in a checkpoint's control part stand for, encoded.
    pub(crate) shape: Blob,
}

/// The texts of a graph as one run knows them.
#[derive(Debug)]
pub(crate) struct Labels(Arc<Texts>);

impl Labels {
    pub(crate) fn new(texts: Arc<Texts>) -> Arc<Self> {
        Arc::new(Self(texts))
    }

    pub(crate) fn name(self: &Arc<Self>, place: usize) -> Name {
        Name(Text::Of(self.clone(), place as u32))
    }

    pub(crate) fn shape(self: &Arc<Self>) -> Shape {
        Shape(self.clone())
    }
}

impl Name {
    /// Makes it another name of a graph.
    pub(crate) fn point_to(&mut self, labels: &Arc<Labels>, place: usize) {
        match &mut self.0 {
            Text::Of(own, at) if Arc::ptr_eq(own, labels) => *at = place as u32,
            _ => *self = labels.name(place),
        }
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        match &self.0 {
            Text::Own(text) => text,
            Text::Of(labels, place) => &labels.0.texts[*place as usize],
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(Text::Own(Arc::new(text.into())))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(Text::Own(Arc::new(text.into())))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Text::Of(own, at), Text::Of(others, place)) if Arc::ptr_eq(own, others) => at == place,
            _ => **self == **other,
        }
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The names that the numbers in the control part of a checkpoint stand for; the same bytes for all
/// checkpoints of a graph.
///
/// ```
/// use superstep::Shape;
/// let shape = Shape::from(superstep::Blob::from(b"as it was saved".to_vec()));
/// assert_eq!(&*shape, b"as it was saved");
/// ```
#[derive(Clone)]
pub struct Shape(Arc<Labels>);

impl Shape {
    /// The place of a name among those of the graph.
    #[inline]
    pub(crate) fn place_of(&self, name: &Name) -> Option<usize> {
        match &name.0 {
            Text::Of(labels, place) if Arc::ptr_eq(labels, &self.0) => Some(*place as usize),
            Text::Of(_, place) => Some(*place as usize).filter(|place| self.has(*place, name)),
            Text::Own(_) => None,
        }
    }

    fn has(&self, place: usize, name: &str) -> bool {
        self.0.0.texts.get(place).is_some_and(|text| **text == *name)
    }

    pub(crate) fn text(&self, place: usize) -> &str {
        &self.0.0.texts[place]
    }

    /// The name at a place.
    pub(crate) fn name(&self, place: usize) -> Name {
        self.0.name(place)
    }

    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Shape {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0.0.shape
    }
}

impl From<Blob> for Shape {
    fn from(shape: Blob) -> Self {
        Self(Labels::new(Arc::new(Texts { texts: Vec::new(), shape })))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({} bytes)", self.len())
    }
}
