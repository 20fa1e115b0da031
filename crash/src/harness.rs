//! Starts workers, kills them, and stops them while others take over.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::check::{self, Found};
use crate::{Options, Result, worker};

/// Where everything of one trial is.
pub(crate) struct Trial {
    pub(crate) backend: String,
    /// The file or the address of the database.
    pub(crate) place: String,
    pub(crate) log: PathBuf,
    folder: PathBuf,
    runtime: Runtime,
    random: Random,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut trial = Trial::new(options, runtime)?;
    let batches = [trial.kill_all(options.kills)?, trial.overtake_all(options.zombies)?].concat();
    for batch in &batches {
        trial.worker(batch)?.wait().map_err(Into::into).and_then(ended_well)?;
    }
    let found = trial.runtime.block_on(check::check(&trial, &batches))?;
    println!("{}: {} kills, {} zombies; {found}", options.backend, options.kills, options.zombies);
    std::fs::remove_dir_all(&trial.folder)?;
    verdict(&found, options.zombies)
}

fn verdict(found: &Found, zombies: u32) -> Result<()> {
    if !found.violations.is_empty() {
        let some: Vec<&str> = found.violations.iter().take(10).map(String::as_str).collect();
        return Err(format!("{} violations, among them:\n{}", found.violations.len(), some.join("\n")).into());
    }
    // A test in which nobody was ever refused has shown nothing.
    if zombies >= 5 && found.fenced == 0 {
        return Err("no zombie was fenced; the trial was blind".into());
    }
    Ok(())
}

fn ended_well(status: std::process::ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { Err(format!("an undisturbed worker ended with {status}").into()) }
}

impl Trial {
    fn new(options: &Options, runtime: Runtime) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("superstep-crash-{}-{}", std::process::id(), options.seed));
        std::fs::create_dir_all(&folder)?;
        let place = match options.backend.as_str() {
            "postgres" => {
                let address = std::env::var("SUPERSTEP_TEST_POSTGRES");
                let address = address.map_err(|_| "SUPERSTEP_TEST_POSTGRES is not set; use `cargo xtask crash`")?;
                format!("{address} crash_{}", std::process::id())
            }
            _ => folder.join("crash.db").display().to_string(),
        };
        let (backend, log) = (options.backend.clone(), folder.join("log"));
        Ok(Self { backend, place, log, folder, runtime, random: Random(options.seed) })
    }

    /// Gives the threads of a batch their input, before anyone is disturbed.
    fn seed(&self, batch: String) -> Result<String> {
        self.runtime.block_on(worker::seed(&self.backend, &self.place, &batch))?;
        Ok(batch)
    }

    fn worker(&self, batch: &str) -> Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.args(["worker", &self.backend, &self.place]).arg(&self.log).arg(batch);
        Ok(command.stdin(Stdio::null()).spawn()?)
    }

    /// Kills workers at random moments; a batch that came to its end is followed by the next.
    fn kill_all(&mut self, kills: u32) -> Result<Vec<String>> {
        let mut batches = vec![self.seed("kill0".to_owned())?];
        let mut killed = 0;
        while killed < kills {
            let mut worker = self.worker(&batches[batches.len() - 1])?;
            sleep(self.random.pause(1, 120));
            if worker.try_wait()?.is_some() {
                batches.push(self.seed(format!("kill{}", batches.len()))?);
                continue;
            }
            worker.kill()?;
            worker.wait()?;
            killed += 1;
        }
        Ok(batches)
    }

    /// Stops workers at random moments, lets others take over their threads, and wakes them again.
    fn overtake_all(&mut self, zombies: u32) -> Result<Vec<String>> {
        let mut batches = Vec::new();
        for number in 0..zombies {
            let batch = self.seed(format!("zombie{number}"))?;
            let mut zombie = self.worker(&batch)?;
            sleep(self.random.pause(10, 80));
            signal(&zombie, "STOP")?;
            let mut other = self.worker(&batch)?;
            sleep(self.random.pause(20, 200));
            signal(&zombie, "CONT")?;
            other.wait()?;
            zombie.wait()?;
            batches.push(batch);
        }
        Ok(batches)
    }
}

fn signal(child: &Child, name: &str) -> Result<()> {
    // A worker that has ended already needs no signal.
    Command::new("kill").args([format!("-{name}"), child.id().to_string()]).stderr(Stdio::null()).status()?;
    Ok(())
}

/// A small generator: the same seed, the same pauses.
struct Random(u64);

impl Random {
    fn pause(&mut self, from: u64, to: u64) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Duration::from_micros((from * 1000) + (mixed ^ (mixed >> 31)) % ((to - from) * 1000))
    }
}
