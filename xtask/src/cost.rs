//! `cargo xtask cost`: what a program over superstep weighs and takes to compile, and what each further type of state adds.
//!
//! Two programs are made and built as a user would, with a checkpointer in memory: one with one type of state, one with eleven.
//! Each type has three fields, two nodes, a conditional edge, a run and a look at its thread.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::table::{Table, number};
use crate::{Result, command};

/// How many types of state the larger program has more.
const FURTHER: u32 = 10;

/// A build is repeated so often, and the quickest counts: other work on the machine only adds.
const ROUNDS: usize = 3;

struct Built {
    kilobytes: u32,
    /// Of the compiler and the linker, for the program alone.
    cpu: Duration,
}

pub(crate) fn run() -> Result<()> {
    let folder = command::root().join("target/cost");
    let small = Program::write(&folder, 1)?;
    let large = Program::write(&folder, 1 + FURTHER)?;
    let (one, eleven) = (small.release()?, large.release()?);
    let rebuild = large.debug_rebuild()?;

    let mut table = Table::new(["what", "measured", "at most"]);
    let each = |all: f64| all / f64::from(FURTHER);
    let kilobytes_each = each(f64::from(eleven.kilobytes.saturating_sub(one.kilobytes)));
    let cpu_each = each(eleven.cpu.saturating_sub(one.cpu).as_secs_f64());
    table.add(["first program, KB".to_owned(), one.kilobytes.to_string(), "2500".to_owned()]);
    table.add(["further type of state, KB".to_owned(), number(kilobytes_each), "100".to_owned()]);
    table.add(["first program, s of CPU".to_owned(), number(one.cpu.as_secs_f64()), String::new()]);
    table.add(["further type of state, s of CPU".to_owned(), number(cpu_each), "1".to_owned()]);
    table.add(["debug build after a change, eleven types, s".to_owned(), number(rebuild), "1.5".to_owned()]);
    println!("{table}");
    let met = one.kilobytes <= 2_500 && kilobytes_each <= 100.0 && cpu_each <= 1.0 && rebuild < 1.5;
    if met { Ok(()) } else { Err("a program over superstep costs more than it should".into()) }
}

/// A program of its own, outside of the workspace.
struct Program {
    folder: PathBuf,
    target: PathBuf,
}

impl Program {
    fn write(cost: &Path, states: u32) -> Result<Self> {
        let folder = cost.join(format!("states-{states}"));
        fs::create_dir_all(folder.join("src"))?;
        let superstep = command::root().join("superstep");
        fs::write(folder.join("Cargo.toml"), manifest(states, &superstep))?;
        fs::write(folder.join("src/main.rs"), source(states))?;
        Ok(Self { folder, target: cost.join("target") })
    }

    fn build(&self, options: &[&str]) -> Result<PathBuf> {
        let manifest = self.folder.join("Cargo.toml");
        let mut cargo = command::cargo();
        cargo.args(["build", "--quiet"]).args(options).arg("--manifest-path").arg(manifest);
        command::build_program(cargo.arg("--target-dir").arg(&self.target))
    }

    /// Says that the program has changed.
    fn touch(&self) -> Result<()> {
        let main = self.folder.join("src/main.rs");
        let source = fs::read(&main)?;
        Ok(fs::write(main, source)?)
    }

    fn release(&self) -> Result<Built> {
        let kilobytes = u32::try_from(fs::metadata(self.build(&["--release"])?)?.len() / 1_000)?;
        let mut cpu = Duration::MAX;
        for _ in 0..ROUNDS {
            self.touch()?;
            let before = cpu_of_children()?;
            self.build(&["--release"])?;
            cpu = cpu.min(cpu_of_children()?.saturating_sub(before));
        }
        Ok(Built { kilobytes, cpu })
    }

    /// Seconds that a debug build takes after a change of the program.
    fn debug_rebuild(&self) -> Result<f64> {
        self.build(&[])?;
        let mut quickest = f64::INFINITY;
        for round in 0..ROUNDS {
            let main = self.folder.join("src/main.rs");
            let changed = fs::read_to_string(&main)?.replace("steps += ", &format!("steps += {round} + "));
            fs::write(&main, changed)?;
            let start = Instant::now();
            self.build(&[])?;
            quickest = quickest.min(start.elapsed().as_secs_f64());
        }
        Ok(quickest)
    }
}

/// The processor time of all processes that this one started and waited for, theirs included.
fn cpu_of_children() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    // After the name: `cutime` and `cstime` are the 14th and 15th field, in hundredths of a second.
    let ticks: u64 = after_name.split(' ').skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

fn manifest(states: u32, superstep: &Path) -> String {
    let superstep = superstep.display();
    format!(
        "[package]\nname = \"states-{states}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\nsuperstep = {{ path = \"{superstep}\" }}\nserde = {{ version = \"1\", features = [\"derive\"] }}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\n[workspace]\n"
    )
}

fn source(states: u32) -> String {
    let mut source = String::from(
        "use serde::{Deserialize, Serialize};\nuse superstep::{BoxError, END, MemorySaver, START, State, StateGraph};\n",
    );
    for ix in 0..states {
        source.push_str(&STATE.replace('@', &ix.to_string()));
    }
    source.push_str("\n#[tokio::main]\nasync fn main() -> Result<(), BoxError> {\n    let mut steps = 0;\n");
    for ix in 0..states {
        let _ = writeln!(source, "    steps += run_{ix}().await?;");
    }
    source.push_str("    println!(\"{steps}\");\n    Ok(())\n}\n");
    source
}

/// One type of state and its graph; `@` is its number.
const STATE: &str = r#"
#[derive(State, Clone, Default, Debug, Serialize, Deserialize)]
struct Draft@ {
    topic: String,
    #[state(append)]
    lines: Vec<String>,
    #[state(sum)]
    words: u64,
}

async fn write_@(draft: Draft@) -> Draft@Update {
    let line = format!("line {} about {}", draft.lines.len() + 1, draft.topic);
    Draft@::update().words(line.len() as u64).lines([line])
}

async fn check_@(draft: Draft@) -> Result<Draft@Update, BoxError> {
    if draft.words > 1_000 {
        return Err("too long".into());
    }
    Ok(Draft@::update().topic(draft.topic + "!"))
}

async fn run_@() -> Result<usize, BoxError> {
    let app = StateGraph::<Draft@>::new()
        .add_node("write", write_@)
        .add_node("check", check_@)
        .add_edge(START, "write")
        .add_edge("write", "check")
        .add_conditional_edges("check", |draft: &Draft@| if draft.lines.len() < 3 { "write" } else { END })
        .checkpointer(MemorySaver::new())
        .compile()?;
    let out = app.invoke(Draft@::update().topic("tea")).thread("t").await?;
    let history = app.thread("t").history().await?;
    Ok(out.state.lines.len() + history.len())
}
"#;
