//! A private PostgreSQL server for tests: made in a temporary folder, gone when it is dropped.

mod programs;

use crate::command;
use crate::{Result, USAGE};
use programs::Programs;
use std::env;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that tells tests where the server is.
pub(crate) const VARIABLE: &str = "SUPERSTEP_TEST_POSTGRES";

/// PostgreSQL does not run as root; this is who it runs as then.
const NOBODY: u32 = 65_534;
const PATIENCE: Duration = Duration::from_mins(1);

/// Starts a server, runs until the other end of its input is closed, then stops it and removes its folder: whatever
/// becomes of us, nothing is left behind.
const GUARD: &str = r#"
trap '' INT TERM HUP
folder=$1
shift
"$@" >"$folder/log" 2>&1 </dev/null &
server=$!
read -r _
kill -INT $server
wait $server
rm -rf "$folder"
"#;

/// `cargo xtask postgres [--fsync] -- COMMAND...`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (options, words) = arguments.split_at(arguments.iter().position(|word| word == "--").unwrap_or(0));
    let [_, program, words @ ..] = words else {
        return Err(format!("`postgres` needs a command after `--`\n\n{USAGE}").into());
    };
    let server = Server::start(Sync::parse(options)?)?;
    command::run(Command::new(program).args(words).env(VARIABLE, server.address()))
}

/// Whether what is committed reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    Off,
    /// For tests that kill the server.
    On,
}

impl Sync {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        match arguments {
            [] => Ok(Self::Off),
            [flag] if flag == "--fsync" => Ok(Self::On),
            [.., other] => Err(format!("no option `{other}`\n\n{USAGE}").into()),
        }
    }
}

/// A running server.
pub(crate) struct Server {
    guard: Child,
    port: u16,
}

impl Server {
    pub(crate) fn start(sync: Sync) -> Result<Self> {
        let mut place = Place::new()?;
        let programs = place.reachable(Programs::find()?)?;
        eprintln!("# {}", programs.description());
        place.make_cluster(&programs)?;
        let port = free_port()?;
        let guard = place.guard(&programs, port, sync).stdin(Stdio::piped()).spawn()?;
        let server = Self { guard, port };
        place.is_guarded = true;
        place.await_ready()?;
        Ok(server)
    }

    /// For `tokio-postgres`, psql and everything else.
    pub(crate) fn address(&self) -> String {
        format!("postgres://superstep@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        if let Err(error) = self.guard.wait() {
            eprintln!("# the private PostgreSQL was not stopped: {error}");
        }
    }
}

/// A temporary folder that belongs to who runs the server.
struct Place {
    folder: PathBuf,
    /// Set if we are root, who may not run it.
    user: Option<u32>,
    /// Whether the guard removes the folder.
    is_guarded: bool,
}

impl Place {
    fn new() -> Result<Self> {
        let folder = env::temp_dir().join(format!("superstep-postgres-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let user = (fs::metadata(&folder)?.uid() == 0).then_some(NOBODY);
        chown(&folder, user, user)?;
        Ok(Self { folder, user, is_guarded: false })
    }

    /// A command as the user that runs the server.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// The programs, copied here if their folder is closed to who runs the server.
    fn reachable(&self, programs: Programs) -> Result<Programs> {
        let mut probe = self.command(&programs.program("initdb"));
        let is_reachable = probe.arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
        if is_reachable {
            return Ok(programs);
        }
        let folder = self.folder.join("programs");
        let programs = programs.copied_to(&folder)?;
        if let Some(user) = self.user {
            command::output(Command::new("chown").arg("-R").arg(format!("{user}:{user}")).arg(&folder))?;
        }
        Ok(programs)
    }

    fn make_cluster(&self, programs: &Programs) -> Result<()> {
        let mut initdb = self.command(&programs.program("initdb"));
        initdb.arg("--pgdata").arg(self.data());
        initdb.args(["--username=superstep", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        command::output(&mut initdb).map(drop)
    }

    fn guard(&self, programs: &Programs, port: u16, sync: Sync) -> Command {
        let mut guard = self.command(Path::new("/bin/sh"));
        guard.args(["-c", GUARD, "guard"]).arg(&self.folder).arg(programs.program("postgres"));
        guard.arg("-D").arg(self.data()).arg("-k").arg(&self.folder).args(["-p", &port.to_string()]);
        guard.args(["-h", "127.0.0.1", "-c", "max_connections=200"]);
        if sync == Sync::Off {
            guard.args(["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]);
        }
        guard
    }

    fn await_ready(&self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            // The last line of this file is the state of the server.
            let state = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            if state.lines().next_back().is_some_and(|line| line.trim() == "ready") {
                return Ok(());
            }
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if log.contains("FATAL") {
                return Err(format!("the private PostgreSQL does not start:\n{log}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(format!("the private PostgreSQL did not start in {PATIENCE:?}").into())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_guarded {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
