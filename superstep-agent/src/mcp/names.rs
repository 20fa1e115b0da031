//! By which names a model knows the tools of servers.
//!
//! All names are fit for providers, and no two tools have one.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

/// What providers take.
const LONGEST: usize = 64;
/// The hash that tells names apart, with its line.
const HASH: usize = 9;

/// How the tools of several servers are called.
///
/// ```
/// use superstep_agent::mcp::{McpServers, ToolNames};
/// let servers = McpServers::new().names(ToolNames::Prefixed);
/// # let _ = servers;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolNames {
    /// As they are, as far as providers take them; those that several servers have, `server_tool`.
    #[default]
    PrefixedIfNeeded,
    /// All of them `server_tool`.
    Prefixed,
    /// As they are; it is an error if several servers have one.
    AsTheyAre,
}

/// A tool: its server and its name there.
pub(super) type Offered<'a> = (&'a str, &'a str);

impl ToolNames {
    /// The names of the tools, in their order.
    ///
    /// # Errors
    /// The place of the first that has the name of another, if names are to stay as they are.
    pub(super) fn of(self, tools: &[Offered<'_>]) -> Result<Vec<String>, usize> {
        let plain: Vec<String> = tools.iter().map(|(_, tool)| fit(tool)).collect();
        let is_taken = taken(&plain);
        if self == ToolNames::AsTheyAre {
            return is_taken.iter().position(|taken| *taken).map_or(Ok(plain), Err);
        }
        let named = tools.iter().zip(plain).zip(is_taken).map(|(((server, tool), plain), is_taken)| {
            if is_taken || self == ToolNames::Prefixed { prefixed(server, tool) } else { plain }
        });
        let named: Vec<String> = named.collect();
        let is_taken = taken(&named);
        let apart = named.into_iter().zip(tools).zip(is_taken);
        Ok(apart.map(|((name, tool), is_taken)| if is_taken { hashed(&name, *tool) } else { name }).collect())
    }
}

/// The name of a tool with its server's.
pub(super) fn prefixed(server: &str, tool: &str) -> String {
    fit(&format!("{server}_{tool}"))
}

/// Only letters, digits, `_` and `-`, and not too many; what is cut off leaves its hash.
fn fit(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let fit: String = name.chars().map(letter).collect();
    if fit.len() <= LONGEST { fit } else { hashed(&fit, ("", name)) }
}

fn hashed(name: &str, (server, tool): Offered<'_>) -> String {
    let hash = xxh3_64(format!("{server}\0{tool}").as_bytes()) as u32;
    format!("{}_{hash:08x}", &name[..name.len().min(LONGEST - HASH)])
}

/// Which names others have too.
fn taken(names: &[String]) -> Vec<bool> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *times.entry(name).or_default() += 1);
    names.iter().map(|name| times[&**name] > 1).collect()
}
