//! The scenario file: graphs, options and calls, as they are written there.

use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Statements, run in order.
pub(crate) type Program = Arc<Vec<Value>>;

#[derive(Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    #[serde(default = "yes")]
    pub(crate) checkpointer: bool,
    pub(crate) graph: Option<Graph>,
    pub(crate) functional: Option<Functional>,
    #[serde(default)]
    pub(crate) subgraphs: Ordered<Graph>,
    pub(crate) script: Vec<Value>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
pub(crate) struct Graph {
    pub(crate) state: Ordered<Field>,
    pub(crate) input: Option<Vec<String>>,
    pub(crate) output: Option<Vec<String>>,
    pub(crate) nodes: Ordered<Node>,
    #[serde(default)]
    pub(crate) edges: Vec<(Names, String)>,
    #[serde(default)]
    pub(crate) branches: Vec<Branch>,
    #[serde(default)]
    pub(crate) defaults: Defaults,
    pub(crate) interrupt_before: Option<Names>,
    pub(crate) interrupt_after: Option<Names>,
    pub(crate) checkpointer: Option<bool>,
}

#[derive(Deserialize, Clone)]
pub(crate) struct Field {
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) reducer: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Node {
    #[serde(default)]
    pub(crate) program: Program,
    pub(crate) subgraph: Option<String>,
    pub(crate) duplicate_of: Option<String>,
    #[serde(default)]
    pub(crate) defer: bool,
    pub(crate) input: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) private: Ordered<Field>,
    pub(crate) retry: Option<Retry>,
    pub(crate) timeout: Option<Timeout>,
    pub(crate) cache: Option<Cache>,
    pub(crate) error_handler: Option<Program>,
    pub(crate) destinations: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
pub(crate) struct Defaults {
    pub(crate) retry: Option<Retry>,
    pub(crate) timeout: Option<Timeout>,
    pub(crate) error_handler: Option<Program>,
}

#[derive(Deserialize)]
pub(crate) struct Retry {
    pub(crate) max_attempts: Option<u32>,
    pub(crate) initial_ms: Option<f64>,
    pub(crate) backoff: Option<f64>,
}

#[derive(Deserialize)]
pub(crate) struct Timeout {
    pub(crate) run_ms: Option<f64>,
    pub(crate) idle_ms: Option<f64>,
    pub(crate) refresh_on: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Cache {
    pub(crate) ttl: Option<f64>,
    pub(crate) key: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Branch {
    pub(crate) from: String,
    pub(crate) program: Program,
    pub(crate) map: Option<RouteTable>,
    pub(crate) name: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum RouteTable {
    Labels(Ordered<String>),
    Nodes(Vec<String>),
}

#[derive(Deserialize)]
pub(crate) struct Functional {
    #[serde(default)]
    pub(crate) tasks: Ordered<Task>,
    pub(crate) entrypoint: Program,
}

#[derive(Deserialize)]
pub(crate) struct Task {
    pub(crate) program: Program,
    pub(crate) retry: Option<Retry>,
    pub(crate) cache: Option<Cache>,
}

/// One name or several.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub(crate) enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    pub(crate) fn into_list(self) -> Vec<String> {
        match self {
            Names::One(name) => vec![name],
            Names::Many(names) => names,
        }
    }
}

/// A node's name as superstep spells it.
pub(crate) fn node_name(name: &str) -> String {
    match name {
        "START" => superstep::START.to_owned(),
        "END" => superstep::END.to_owned(),
        name => name.to_owned(),
    }
}

/// A JSON object in the order of the file: nodes count in the order in which they are added.
pub(crate) struct Ordered<T>(pub(crate) Vec<(String, T)>);

impl<T> Ordered<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(InOrder(std::marker::PhantomData))
    }
}
