//! Starts workers, kills them, and stops them while others take over.

use std::fmt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::log::Log;
use crate::told::Told;
use crate::{Options, Result, check, worker};

/// How long a worker may take to get past a stopped one.
const PATIENCE: Duration = Duration::from_mins(1);

/// Bytes that an undisturbed worker adds to the log, about, before it has done most of its work.
const MOST_OF_A_BATCH: u64 = 150_000;

/// Where everything of one trial is.
pub(crate) struct Trial {
    pub(crate) backend: String,
    /// The file or the address of the database.
    pub(crate) place: String,
    pub(crate) log: PathBuf,
    folder: PathBuf,
    beside: Beside,
    runtime: Runtime,
    random: Random,
}

/// What became of workers that took over from one that stayed stopped.
#[derive(Default)]
struct Beside {
    through: usize,
    /// The stopped one held the lock of the file.
    locked: usize,
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} went through beside a stopped worker, {} found its file locked", self.through, self.locked)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut trial = Trial::new(options, runtime)?;
    let batches = [trial.kill_all(options.kills)?, trial.overtake_all(options.zombies)?].concat();
    for batch in &batches {
        trial.worker(batch)?.wait().map_err(Into::into).and_then(ended_well)?;
    }
    let found = trial.runtime.block_on(check::check(&trial, &batches))?;
    println!("{}: {} kills, {} zombies; {}; {found}", options.backend, options.kills, options.zombies, trial.beside);
    std::fs::remove_dir_all(&trial.folder)?;
    verdict(&found.told, options)
}

fn verdict(told: &Told, options: &Options) -> Result<()> {
    if !told.violations.is_empty() {
        let some: Vec<&str> = told.violations.iter().take(10).map(String::as_str).collect();
        return Err(format!("{} violations, among them:\n{}", told.violations.len(), some.join("\n")).into());
    }
    // A test in which nobody was ever refused, or caught at work, has shown nothing.
    if options.zombies >= 5 && told.fenced == 0 {
        return Err("no zombie was fenced; the trial was blind".into());
    }
    if options.kills >= 20 && told.hit_tasks == 0 {
        return Err("no kill hit a running task; the trial was blind".into());
    }
    if options.kills >= 20 && told.events == 0 {
        return Err("nobody was shown anything; the trial was blind".into());
    }
    Ok(())
}

fn ended_well(status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { Err(format!("a worker that nobody disturbed ended with {status}").into()) }
}

impl Trial {
    fn new(options: &Options, runtime: Runtime) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("superstep-crash-{}-{}", std::process::id(), options.seed));
        std::fs::create_dir_all(&folder)?;
        Log::open(&folder.join("log"))?;
        let place = match options.backend.as_str() {
            "postgres" => {
                let address = std::env::var("SUPERSTEP_TEST_POSTGRES");
                let address = address.map_err(|_| "SUPERSTEP_TEST_POSTGRES is not set; use `cargo xtask crash`")?;
                format!("{address} crash_{}", std::process::id())
            }
            _ => folder.join("crash.db").display().to_string(),
        };
        let (backend, log) = (options.backend.clone(), folder.join("log"));
        let beside = Beside::default();
        Ok(Self { backend, place, log, folder, beside, runtime, random: Random(options.seed) })
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

    fn length(&self) -> Result<u64> {
        Ok(std::fs::metadata(&self.log)?.len())
    }

    /// Waits until the log is longer than this, or the worker that writes to it has ended.
    fn logged(&self, worker: &mut Child, length: u64) -> Result<()> {
        while self.length()? <= length && worker.try_wait()?.is_none() {
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Kills workers at random moments, most of them at work; a batch that came to its end is followed by the next.
    fn kill_all(&mut self, kills: u32) -> Result<Vec<String>> {
        let mut batches = vec![self.seed("kill0".to_owned())?];
        let (log, mut killed) = (Log::open(&self.log)?, 0);
        while killed < kills {
            let batch = &batches[batches.len() - 1];
            let (length, mut worker) = (self.length()?, self.worker(batch)?);
            if killed.is_multiple_of(4) {
                sleep(self.random.pause(1, 120));
            } else {
                self.logged(&mut worker, length)?;
                sleep(self.random.pause(0, 80));
            }
            if worker.try_wait()?.is_some() {
                batches.push(self.seed(format!("kill{}", batches.len()))?);
                continue;
            }
            worker.kill()?;
            worker.wait()?;
            log.add(&format!("killed {batch}"));
            killed += 1;
        }
        Ok(batches)
    }

    /// Stops workers at random points of their work, and lets others take over their threads. Every other one is woken
    /// while its successor runs, the rest when the successor has ended.
    fn overtake_all(&mut self, zombies: u32) -> Result<Vec<String>> {
        let mut batches = Vec::new();
        for number in 0..zombies {
            let batch = self.seed(format!("zombie{number}"))?;
            let enough = self.length()? + self.random.number(0, MOST_OF_A_BATCH);
            let mut zombie = self.worker(&batch)?;
            self.logged(&mut zombie, enough)?;
            sleep(self.random.pause(0, 20));
            signal(&zombie, "STOP")?;
            let mut other = self.worker(&batch)?;
            if number.is_multiple_of(2) {
                sleep(self.random.pause(20, 200));
                signal(&zombie, "CONT")?;
                other.wait().map_err(Into::into).and_then(ended_well)?;
            } else {
                self.pass(&mut other, &mut zombie)?;
                signal(&zombie, "CONT")?;
            }
            zombie.wait()?;
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Waits for a worker to come to its end while another one is stopped.
    fn pass(&mut self, worker: &mut Child, stopped: &mut Child) -> Result<()> {
        let ended = ended_within(worker, PATIENCE)?;
        match ended {
            Some(status) if status.success() => self.beside.through += 1,
            // SQLite's lock is the stopped process's, and nobody can take it away: it is enough to say so in time.
            Some(status) if self.backend == "sqlite" && status.code() == Some(i32::from(worker::BUSY)) => {
                self.beside.locked += 1;
            }
            _ => {
                worker.kill()?;
                stopped.kill()?;
                let how = ended.map_or_else(|| format!("did not end in {PATIENCE:?}"), |status| status.to_string());
                return Err(format!("a worker that took over from a stopped one: {how}").into());
            }
        }
        Ok(())
    }
}

/// How a process ended, if it does so in time.
fn ended_within(child: &mut Child, time: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        match child.try_wait()? {
            None if start.elapsed() < time => sleep(Duration::from_millis(10)),
            ended => return Ok(ended),
        }
    }
}

fn signal(child: &Child, name: &str) -> Result<()> {
    // A worker that has ended already needs no signal.
    Command::new("kill").args([format!("-{name}"), child.id().to_string()]).stderr(Stdio::null()).status()?;
    Ok(())
}

/// A small generator: the same seed, the same numbers.
struct Random(u64);

impl Random {
    /// A time between so many milliseconds.
    fn pause(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_micros(self.number(from * 1000, to * 1000))
    }

    fn number(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        from + (mixed ^ (mixed >> 31)) % (to - from)
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, Told, verdict};

    #[track_caller]
    fn check(kills: u32, zombies: u32, log: &str, expected: Result<(), &str>) {
        let options = Options { backend: "sqlite".to_owned(), kills, zombies, seed: 1 };
        let result = verdict(&Told::read(log).expect("a log"), &options).map_err(|error| error.to_string());
        assert_eq!(result, expected.map_err(ToOwned::to_owned));
    }

    #[test]
    fn a_trial_whose_kills_hit_no_task_fails() {
        check(20, 0, "claimed k-0 1\nkilled k", Err("no kill hit a running task; the trial was blind"));
        check(20, 0, "start k-0 a 1 0\nshown k-0 state 0 1\nkilled k", Ok(()));
    }

    #[test]
    fn a_trial_in_which_nobody_was_shown_anything_fails() {
        check(20, 0, "start k-0 a 1 0\nkilled k", Err("nobody was shown anything; the trial was blind"));
    }

    #[test]
    fn a_trial_in_which_nobody_was_fenced_fails() {
        check(0, 5, "claimed z-0 1", Err("no zombie was fenced; the trial was blind"));
        check(0, 5, "fenced z-0 a 1", Ok(()));
    }
}
