//! How a graph reads what earlier versions of it saved: migrations of the state, and what became of nodes.

mod saved;

use std::collections::HashSet;
use std::sync::Arc;

pub(crate) use saved::Piece;
pub use saved::SavedFields;

use crate::error::{BoxError, BuildError, Hint};
use crate::wall::{caught, words_of};

/// What a migration came to; made of `()` or of a `Result`.
///
/// ```
/// use superstep::Migrated;
/// let fine: Migrated = ().into();
/// let failed: Migrated = Err::<(), _>("no such currency").into();
/// # let _ = (fine, failed);
/// ```
#[derive(Debug)]
pub struct Migrated(Result<(), BoxError>);

impl From<()> for Migrated {
    fn from((): ()) -> Self {
        Self(Ok(()))
    }
}

impl<E: Into<BoxError>> From<Result<(), E>> for Migrated {
    fn from(result: Result<(), E>) -> Self {
        Self(result.map_err(Into::into))
    }
}

/// What happens to work that was left for a node which is gone.
///
/// ```
/// use superstep::{AgentState, EchoAgent, StateGraph, Then, START};
/// let app = StateGraph::<AgentState>::new().add_node("answer", EchoAgent).add_edge(START, "answer")
///     .removed_node("check", Then::go_to("answer"))
///     .removed_node("log", Then::forget())
///     .compile()?;
/// # Ok::<(), superstep::CompilationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Then(Fate);

impl Then {
    /// Another node runs in its place, from its beginning.
    pub fn go_to(node: impl Into<String>) -> Self {
        Self(Fate::Replaced(node.into()))
    }

    /// It is dropped.
    pub fn forget() -> Self {
        Self(Fate::Forgotten)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Renamed(String),
    Replaced(String),
    Forgotten,
}

/// Where a node of an earlier version is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now<'a> {
    /// The same node, perhaps under another name.
    Same(&'a str),
    /// Another node, which runs in its place.
    Other(&'a str),
    Forgotten,
    /// Nobody said what became of it.
    Lost,
}

/// What was said about earlier versions of a graph.
#[derive(Clone, Default)]
pub(crate) struct Evolution {
    migrations: Vec<(u32, Arc<dyn Fn(&mut SavedFields) -> Migrated + Send + Sync>)>,
    fates: Vec<(String, Fate)>,
}

impl Evolution {
    /// Notes how states of a version become those of the next.
    pub(crate) fn add_migration<R: Into<Migrated>>(
        &mut self,
        from: u32,
        migration: impl Fn(&mut SavedFields) -> R + Send + Sync + 'static,
    ) {
        self.migrations.push((from, Arc::new(move |fields| migration(fields).into())));
    }

    /// Notes what happens to the work of a node that is gone.
    pub(crate) fn remove(&mut self, old: String, then: Then) {
        self.fates.push((old, then.0));
    }

    /// Notes another name that a node had.
    pub(crate) fn rename(&mut self, old: String, new: String) {
        self.fates.push((old, Fate::Renamed(new)));
    }

    /// The first version between these from which no migration leads on.
    pub(crate) fn missing(&self, found: u32, current: u32) -> Option<u32> {
        (found..current).find(|from| self.migration(*from).is_none())
    }

    fn migration(&self, from: u32) -> Option<&Arc<dyn Fn(&mut SavedFields) -> Migrated + Send + Sync>> {
        self.migrations.iter().find(|(version, _)| *version == from).map(|(_, migration)| migration)
    }

    /// Applies the migrations between two versions.
    pub(crate) fn migrate(&self, found: u32, current: u32, fields: &mut SavedFields) -> Result<(), String> {
        for from in found..current {
            let migration = self.migration(from).ok_or_else(|| format!("there is no migration from version {from}"))?;
            let failed = |why: String| format!("the migration from version {from}: {why}");
            let migrated =
                caught(|| migration(fields)).map_err(|panicked| failed(format!("it panicked: {panicked}")))?;
            migrated.0.map_err(|why| failed(words_of(&*why)))?;
            fields.check().map_err(failed)?;
        }
        Ok(())
    }

    /// Where a node is now that threads know by this name.
    pub(crate) fn now<'a>(&'a self, name: &'a str, is_node: impl Fn(&str) -> bool) -> Now<'a> {
        let (mut name, mut same) = (name, true);
        for _ in 0..=self.fates.len() {
            if is_node(name) {
                return if same { Now::Same(name) } else { Now::Other(name) };
            }
            match self.fates.iter().find(|(old, _)| old == name) {
                Some((_, Fate::Renamed(to))) => name = to,
                Some((_, Fate::Replaced(to))) => (name, same) = (to, false),
                Some((_, Fate::Forgotten)) => return Now::Forgotten,
                None => return Now::Lost,
            }
        }
        Now::Lost
    }

    /// What is wrong with it, for a graph of these nodes over a state of this version.
    pub(crate) fn mistakes(&self, version: u32, nodes: &[&str]) -> Vec<BuildError> {
        let mut errors = Vec::new();
        let mut wrong = |place: String, why: String| errors.push(BuildError::BadOption { place, why });
        if version == 0 {
            wrong("the state".to_owned(), "versions begin at 1".to_owned());
        }
        let mut known = HashSet::new();
        for (from, _) in &self.migrations {
            let place = format!("`migrate({from}, ..)`");
            if *from == 0 {
                wrong(place, "versions begin at 1".to_owned());
            } else if *from >= version {
                wrong(place, format!("the state has version {version}, so nothing leads on from version {from}"));
            } else if !known.insert(from) {
                wrong(place, "there are two migrations from this version".to_owned());
            }
        }
        let mut known = HashSet::new();
        for (old, fate) in &self.fates {
            let place = match fate {
                Fate::Renamed(new) => format!("`renamed_node(\"{old}\", \"{new}\")`"),
                Fate::Replaced(_) | Fate::Forgotten => format!("`removed_node(\"{old}\", ..)`"),
            };
            if nodes.contains(&old.as_str()) {
                wrong(place, format!("`{old}` is a node of the graph"));
            } else if !known.insert(old) {
                wrong(place, format!("it was said before what became of `{old}`"));
            } else if self.now(old, |name| nodes.contains(&name)) == Now::Lost {
                let (Fate::Renamed(to) | Fate::Replaced(to)) = fate else { continue };
                wrong(place, format!("there is no node `{to}`{}", Hint::near(to, nodes.iter().copied())));
            }
        }
        errors
    }
}
