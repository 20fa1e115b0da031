//! The tour itself: six chapters over one thread.

use std::time::{Instant, SystemTime};

use superstep::{BoxError, GoOn, MemorySaver, Resume, StateSnapshot, Streaming, Thread, Update};

use crate::graph::{self, App, Incident, Proposal, Verdict};
use crate::live::{Until, Went, follow};
use crate::screen::{Ink, Screen, clip};
use crate::script;
use crate::world::{Fate, World};

/// The thread that everything happens on.
const THREAD: &str = "night-shift";

/// What outlives the graph: the screen, the saver, and the world that counts calls.
struct Tour {
    screen: Screen,
    saver: MemorySaver,
    world: World,
}

/// Plays the tour.
pub(crate) async fn play() -> Result<(), BoxError> {
    let began = Instant::now();
    let tour = Tour { screen: Screen::new(), saver: MemorySaver::new(), world: World::default() };
    let app = graph::build(tour.saver.clone())?;
    tour.open(&app);
    let (step, proposal) = tour.run(&app).await?;
    let verdict = tour.ask(step, &proposal);
    tour.go_on(&app, step, verdict).await?;
    drop(app);
    let app = tour.come_back().await?;
    let thread = app.thread(THREAD);
    let (last, picked) = tour.look_back(&thread).await?;
    tour.fork(&app, &thread, &picked).await?;
    tour.compare(&thread, &last).await?;
    tour.close(&picked.state, began);
    Ok(())
}

impl Tour {
    /// A run on the thread, with the world around it.
    fn on_thread(&self, run: Streaming<Incident>) -> Streaming<Incident> {
        run.thread(THREAD).context(self.world.clone())
    }

    /// Chapter 1: the drawing, and the code that it is of.
    fn open(&self, app: &App) {
        self.screen.title("superstep", "An on-call agent with a scripted model. No network, no keys, eight seconds.");
        let why = "Three nodes. The drawing comes from the graph, the code from its source.";
        self.screen.chapter(1, "It draws itself", "app.draw().to_terminal()", why);
        let drawing = app.draw();
        self.screen.beside(&drawing.to_terminal(), &drawing.to_terminal_colored(), &graph::source());
    }

    /// Chapter 2: the first run, up to the question.
    async fn run(&self, app: &App) -> Result<(i64, Proposal), BoxError> {
        let why = "Words and progress arrive as they happen. At the left: the step.";
        self.screen.chapter(2, "It streams, three tools at once", "app.stream(alert).thread(..)", why);
        let alert = Incident::update().alert(script::ALERT);
        match follow(&self.screen, self.on_thread(app.stream(alert)), 0, Until::Pause).await? {
            Went::Asks(step, proposal) => Ok((step, proposal)),
            _ => Err("the agent did not ask".into()),
        }
    }

    /// Chapter 3: the question.
    fn ask(&self, step: i64, proposal: &Proposal) -> Verdict {
        let screen = &self.screen;
        let why = "The run is saved and over. Whoever has the saver can answer, at any time.";
        screen.chapter(3, "It asks before it acts", "cx.interrupt(proposal)?", why);
        let question = screen.ink(Ink::Human, &format!("{}?", proposal.fix));
        screen.line(&format!("{}{question}", screen.lead(Some(step), "approve", Ink::Strong)));
        let keys = format!("{:10}{}", "", screen.ink(Ink::Faint, "y yes   n no   e edit"));
        let Some(key) = screen.ask(&keys, read_key) else {
            screen.note("          Nobody is at the terminal, so the tour answers: yes.");
            return Verdict::Yes;
        };
        let edit =
            || screen.ask("          instead", |text| (!text.is_empty()).then(|| Verdict::Edit(text.to_owned())));
        match key {
            Key::Yes => Verdict::Yes,
            Key::No => Verdict::No,
            Key::Edit => edit().unwrap_or(Verdict::Yes),
        }
    }

    /// Still chapter 3: the answer, and the end of the process.
    async fn go_on(&self, app: &App, step: i64, verdict: Verdict) -> Result<(), BoxError> {
        self.screen.note(&format!("{:10}app.stream(Resume::value(answer))", ""));
        let resumed = self.on_thread(app.stream(Resume::value(verdict)));
        match follow(&self.screen, resumed, step, Until::HalfDone).await? {
            Went::Lost => Ok(()),
            _ => Err("the process was not lost in time".into()),
        }
    }

    /// Chapter 4: another process, the same saver.
    async fn come_back(&self) -> Result<App, BoxError> {
        let why = "Played here: run and graph are dropped in mid-step. Only the saver is left.";
        self.screen.chapter(4, "The process dies, the thread does not", "build(saver)?.stream(GoOn)", why);
        self.world.next_process();
        let app = graph::build(self.saver.clone())?;
        let found = app.thread(THREAD).state().await?;
        let step = found.step.unwrap_or_default();
        let done = found.tasks.iter().filter(|task| task.result().is_some()).count();
        self.screen.note(&format!("{:10}Found: step {}, {done} of {} tasks done.", "", step + 1, found.tasks.len()));
        follow(&self.screen, self.on_thread(app.stream(GoOn)), step, Until::Pause).await?;
        self.screen.line("");
        self.show_calls();
        Ok(app)
    }

    /// What the world counted: which process called what.
    fn show_calls(&self) {
        let tools = self.world.tools();
        let head: Vec<&str> = ["calls"].into_iter().chain(tools.iter().map(String::as_str)).collect();
        let row = |(process, name): (usize, &str)| {
            let cells = tools.iter().map(|tool| match self.world.fate(process, tool) {
                Fate::Finished => (Ink::Good, "✓".to_owned()),
                Fate::CutOff => (Ink::Bad, "✗".to_owned()),
                Fate::NotCalled => (Ink::Faint, "·".to_owned()),
            });
            [(Ink::Plain, name.to_owned())].into_iter().chain(cells).collect()
        };
        let rows: Vec<_> = [(0, "first process"), (1, "second process")].map(row).into();
        self.screen.table(&head, &rows);
        self.screen.note("✓ finished   ✗ cut off   · not called");
    }

    /// Chapter 5: the history; gives its end, and the checkpoint to go back to.
    async fn look_back(&self, thread: &Thread<Incident>) -> Result<(Snapshot, Snapshot), BoxError> {
        let why = "Every step of both processes is kept, and any of them can be run again.";
        self.screen.chapter(5, "It can be rewound", "thread.history()", why);
        let history = thread.history().await?;
        let ready = |s: &&Snapshot| s.state.proposal.is_none() && !s.state.results.is_empty();
        let picked = history.iter().find(ready).ok_or("no checkpoint with findings")?;
        let began = history.last().and_then(|s| s.created_at);
        let rows: Vec<_> = history.iter().map(|s| history_row(s, began, s.step == picked.step)).collect();
        self.screen.table(&["  step", "saved at", "made by", "next", "state"], &rows);
        Ok((history[0].clone(), picked.clone()))
    }

    /// Chapter 6: the same step with another finding.
    async fn fork(&self, app: &App, thread: &Thread<Incident>, picked: &Snapshot) -> Result<(), BoxError> {
        let why = "What if nothing was released? One finding is changed, two are kept.";
        self.screen.chapter(6, "It can be forked", "thread.at(step_2).update(edit)", why);
        self.world.next_process();
        let edited = self.edit(&picked.state);
        let at = picked.checkpoint.as_ref().ok_or("the step was not saved")?.id;
        let update = Update::<Incident>::new().overwrite(Incident::RESULTS, edited);
        let fork = thread.at(at).update(update).as_node("tool").await?;
        let again = app.stream(GoOn).checkpoint(fork.id);
        if let Went::Asks(step, proposal) = follow(&self.screen, self.on_thread(again), 0, Until::Pause).await? {
            let lead = self.screen.lead(Some(step), "approve", Ink::Strong);
            let question = self.screen.ink(Ink::Human, &format!("{}?", proposal.fix));
            self.screen.line(&format!("{lead}{question}{}", self.screen.ink(Ink::Faint, "   The tour answers: yes.")));
        }
        let resumed = self.on_thread(app.stream(Resume::value(Verdict::Yes)));
        follow(&self.screen, resumed, 0, Until::Pause).await?;
        Ok(())
    }

    /// Shows the edit and gives the edited findings.
    fn edit(&self, state: &Incident) -> Vec<graph::Finding> {
        let mut edited = state.results.clone();
        for finding in edited.iter_mut().filter(|f| f.tool == script::DOUBTED) {
            let lead = self.screen.lead(None, &finding.tool, Ink::Strong);
            self.screen.line(&format!("{lead}{}", self.screen.ink(Ink::Bad, &format!("- {}", finding.text))));
            script::EDITED.clone_into(&mut finding.text);
            let lead = self.screen.lead(None, "", Ink::Plain);
            self.screen.line(&format!("{lead}{}", self.screen.ink(Ink::Good, &format!("+ {}", finding.text))));
        }
        edited
    }

    /// Both endings, side by side; both are still in the thread.
    async fn compare(&self, thread: &Thread<Incident>, last: &Snapshot) -> Result<(), BoxError> {
        let at = last.checkpoint.as_ref().ok_or("the end was not saved")?.id;
        let (first, second) = (thread.at(at).state().await?, thread.state().await?);
        let row = |name: &str, of: fn(&Incident) -> Option<String>| {
            let [left, right] = [&first, &second].map(|ending| of(&ending.state).unwrap_or_default());
            let ink = if left == right { Ink::Plain } else { Ink::Strong };
            vec![(Ink::Faint, name.to_owned()), (ink, left), (ink, right)]
        };
        let rows = [
            row(script::DOUBTED, |s| Some(s.results.iter().find(|f| f.tool == script::DOUBTED)?.text.clone())),
            row("cause", |s| Some(s.proposal.as_ref()?.cause.clone())),
            row("proposal", |s| Some(s.proposal.as_ref()?.fix.clone())),
            row("human", |s| s.verdict.as_ref().map(verdict_text)),
            row("ending", |s| s.ending.clone()),
        ];
        self.screen.line("");
        self.screen.table(&["two endings", "as it happened", "the fork"], &rows);
        Ok(())
    }

    /// The last lines.
    fn close(&self, shared: &Incident, began: Instant) {
        let tools = shared.results.iter().map(|finding| finding.tool.as_str());
        let once: Vec<&str> = tools.filter(|tool| self.world.count(tool) == 1).collect();
        self.screen.line("");
        self.screen.note(&format!("Called once for two processes and two endings: {}.", once.join(", ")));
        self.screen.note(&format!("{:.1} s. The whole graph is in tour/src/graph.rs.", began.elapsed().as_secs_f64()));
        self.screen.line("");
    }
}

type Snapshot = StateSnapshot<Incident>;

enum Key {
    Yes,
    No,
    Edit,
}

fn read_key(line: &str) -> Option<Key> {
    match line.to_lowercase().as_str() {
        "y" | "yes" | "" => Some(Key::Yes),
        "n" | "no" => Some(Key::No),
        "e" | "edit" => Some(Key::Edit),
        _ => None,
    }
}

fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Yes => "yes".to_owned(),
        Verdict::No => "no".to_owned(),
        Verdict::Edit(text) => clip(&format!("instead: {text}"), 28),
    }
}

fn history_row(snapshot: &Snapshot, began: Option<SystemTime>, picked: bool) -> Vec<(Ink, String)> {
    let mark = if picked { "▸" } else { " " };
    let step = snapshot.step.map(|s| format!("{mark} {s:>4}")).unwrap_or_default();
    let since =
        snapshot.created_at.zip(began).and_then(|(at, began)| at.duration_since(began).ok()).unwrap_or_default();
    let source = snapshot.source.map(|s| format!("{s:?}").to_lowercase()).unwrap_or_default();
    let ink = if picked { Ink::Busy } else { Ink::Plain };
    let at = format!("{:>6.2} s", since.as_secs_f64());
    let cells = [step, at, source, next_text(&snapshot.next), state_text(&snapshot.state)];
    cells.map(|cell| (ink, cell)).into()
}

fn next_text(next: &[String]) -> String {
    match next {
        [] => "end".to_owned(),
        [one] => one.trim_matches('_').to_owned(),
        [first, ..] => format!("{first} × {}", next.len()),
    }
}

fn state_text(state: &Incident) -> String {
    let results = (!state.results.is_empty()).then(|| format!("{} results", state.results.len()));
    let parts = [
        results,
        state.proposal.as_ref().map(|_| "proposal".to_owned()),
        state.verdict.as_ref().map(|_| "answer".to_owned()),
        state.ending.as_ref().map(|_| "ending".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
