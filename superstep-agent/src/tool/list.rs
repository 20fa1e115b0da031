//! The tools of a node or an agent.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Tool, ToolSpec};

/// Tools by their names, in the order in which the model is told about them.
#[derive(Clone, Default)]
pub(crate) struct Tools {
    list: Vec<Arc<dyn Tool>>,
    places: HashMap<String, usize>,
    /// Names that two tools have, neither of which gives way.
    clashes: Vec<String>,
}

impl Tools {
    pub(crate) fn add(&mut self, tool: Arc<dyn Tool>) {
        let name = tool.spec().name;
        let Some(place) = self.places.get(&name).copied() else {
            self.places.insert(name, self.list.len());
            self.list.push(tool);
            return;
        };
        let aside = match tool.giving_way() {
            Some(aside) => Some(aside),
            None => std::mem::replace(&mut self.list[place], tool).giving_way(),
        };
        match aside {
            Some(aside) if !self.places.contains_key(&aside.spec().name) => self.add(aside),
            Some(_) => tracing::warn!(tool = name, "a tool is left out, because all its names are taken"),
            None => self.clashes.push(name),
        }
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.list.iter().map(|tool| tool.spec()).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.places.get(name).map(|place| &self.list[*place])
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.list.iter().map(|tool| tool.spec().name).collect()
    }

    /// The names that no tool of somebody else can have.
    pub(crate) fn own_names(&self) -> Vec<String> {
        self.list.iter().filter(|tool| tool.giving_way().is_none()).map(|tool| tool.spec().name).collect()
    }

    /// Names that two tools have.
    pub(crate) fn clashes(&self) -> &[String] {
        &self.clashes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The tools that hand the conversation to somebody else.
    pub(crate) fn leaving(&self) -> Vec<String> {
        self.list.iter().filter(|tool| tool.hands_over()).map(|tool| tool.spec().name).collect()
    }

    /// The tools whose results are answers.
    pub(crate) fn direct(&self) -> Vec<String> {
        self.list.iter().filter(|tool| tool.returns_directly()).map(|tool| tool.spec().name).collect()
    }
}
