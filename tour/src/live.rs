//! Following a run: the model's words as they come, and a bar for every tool.
//!
//! Bars share one axis of time, so that what is left when the tools are done is a timeline.

use std::time::{Duration, Instant};

use superstep::{EventData, Mode, NodeUpdate, Streaming};

use crate::graph::{Beat, Finding, Incident, Proposal};
use crate::screen::{Ink, Screen, clip, pad};

/// The width of the bars.
const CELLS: usize = 24;
/// The time that one cell stands for.
const CELL: Duration = Duration::from_millis(75);
/// The width of what tools answer.
const ANSWERS: usize = 31;
/// How far the slowest tool is when the process is lost.
const TOO_FAR: f64 = 0.6;

/// How a run went.
pub(crate) enum Went {
    /// It came to its end.
    Ended,
    /// It asks a human.
    Asks(i64, Proposal),
    /// The process was lost in the middle of a step.
    Lost,
}

/// How much of a run is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// All of it, up to its end or pause.
    Pause,
    /// Until some tools of a step are done and others are not; then the run is dropped.
    HalfDone,
}

/// Shows a run that starts after step `after`.
pub(crate) async fn follow(
    screen: &Screen,
    run: Streaming<Incident>,
    after: i64,
    until: Until,
) -> Result<Went, superstep::Error> {
    let mut events = run.modes([Mode::Custom, Mode::Updates]).start();
    let mut show = Show { screen, speaking: None, bars: None, step: after };
    let mut asked = None;
    while let Some(event) = events.next().await {
        match event?.data {
            EventData::Custom(value) => show.beat(serde_json::from_value(value).ok()),
            EventData::Updates(update) => show.update(&update),
            EventData::Interrupts(questions) => asked = questions.first().and_then(|q| q.value_as().ok()),
            _ => {}
        }
        if until == Until::HalfDone && show.bars.as_ref().is_some_and(Bars::half_done) {
            drop(events);
            show.lose();
            return Ok(Went::Lost);
        }
    }
    show.settle();
    Ok(asked.map_or(Went::Ended, |question| Went::Asks(show.step + 1, question)))
}

/// What is on the screen and not finished yet.
struct Show<'a> {
    screen: &'a Screen,
    speaking: Option<i64>,
    bars: Option<Bars>,
    step: i64,
}

impl Show<'_> {
    fn beat(&mut self, beat: Option<Beat>) {
        match beat {
            Some(Beat::Word { step, word }) => self.word(step, &word),
            Some(Beat::Progress { step, tool, share }) => {
                self.bars(step).progress(&tool, share);
                self.redraw();
            }
            None => {}
        }
    }

    fn word(&mut self, step: i64, word: &str) {
        if self.speaking == Some(step) {
            self.screen.put(" ");
        } else {
            self.settle();
            self.screen.put(&self.screen.lead(Some(step), "model", Ink::Strong));
            (self.speaking, self.step) = (Some(step), step);
        }
        self.screen.put(word);
    }

    /// The bars of the step, after what was there before them.
    fn bars(&mut self, step: i64) -> &mut Bars {
        if self.bars.is_none() {
            self.settle();
            self.step = step;
        }
        self.bars.get_or_insert_with(|| Bars::new(step))
    }

    fn update(&mut self, update: &NodeUpdate) {
        if update.node != "tool" {
            return;
        }
        let step = self.bars.as_ref().map_or(self.step + 1, |bars| bars.step);
        let Some(written) = update.update::<Incident>() else { return };
        for finding in written.get(Incident::RESULTS).into_iter().flatten() {
            self.bars(step).finish(finding, update.cached);
        }
        self.redraw();
    }

    fn redraw(&mut self) {
        if let Some(bars) = &mut self.bars {
            bars.draw(self.screen);
        }
    }

    /// Ends what is on the screen, so that something else can follow.
    fn settle(&mut self) {
        if self.speaking.take().is_some() {
            self.screen.line("");
        }
        if let Some(bars) = self.bars.take() {
            self.screen.note(&bars.sum());
        }
    }

    fn lose(&mut self) {
        if let Some(bars) = &mut self.bars {
            bars.cut_off();
        }
        self.redraw();
    }
}

/// The tools of one step.
struct Bars {
    step: i64,
    began: Instant,
    rows: Vec<Row>,
    drawn: usize,
}

struct Row {
    tool: String,
    fate: Fate,
    from: Duration,
    to: Duration,
    share: f64,
    printed: bool,
}

enum Fate {
    Runs,
    Done(String),
    /// Its answer was saved before the process began.
    Known,
    CutOff,
}

impl Bars {
    fn new(step: i64) -> Self {
        Self { step, began: Instant::now(), rows: Vec::new(), drawn: 0 }
    }

    fn row(&mut self, tool: &str) -> &mut Row {
        let now = self.began.elapsed();
        let at = self.rows.iter().position(|row| row.tool == tool).unwrap_or_else(|| {
            let row = Row { tool: tool.to_owned(), fate: Fate::Runs, from: now, to: now, share: 0.0, printed: false };
            self.rows.push(row);
            self.rows.len() - 1
        });
        self.rows[at].to = now;
        &mut self.rows[at]
    }

    fn progress(&mut self, tool: &str, share: f64) {
        self.row(tool).share = share;
    }

    fn finish(&mut self, finding: &Finding, known: bool) {
        let row = self.row(&finding.tool);
        row.share = 1.0;
        row.fate = if known { Fate::Known } else { Fate::Done(finding.text.clone()) };
    }

    fn cut_off(&mut self) {
        for row in self.rows.iter_mut().filter(|row| matches!(row.fate, Fate::Runs)) {
            row.fate = Fate::CutOff;
        }
    }

    /// Whether some tool is done and all others are well under way.
    fn half_done(&self) -> bool {
        self.rows.iter().any(|row| row.share >= 1.0) && self.rows.iter().all(|row| row.share >= TOO_FAR)
    }

    fn draw(&mut self, screen: &Screen) {
        if screen.live { self.draw_again(screen) } else { self.draw_ended(screen) }
    }

    /// All rows in place of those drawn before, as one piece of text, so that nothing flickers.
    fn draw_again(&mut self, screen: &Screen) {
        let up = if self.drawn > 0 { format!("\u{1b}[{}A", self.drawn) } else { String::new() };
        let rows: Vec<String> = self.rows.iter().map(|row| row.text(screen, self.step)).collect();
        let rows = rows.join("\n\u{1b}[2K");
        // Without wrapping: in a narrow terminal, a row still takes one line.
        screen.put(&format!("\u{1b}[?7l{up}\r\u{1b}[2K{rows}\n\u{1b}[?7h"));
        self.drawn = self.rows.len();
    }

    /// The rows that ended and were not shown yet.
    fn draw_ended(&mut self, screen: &Screen) {
        let step = self.step;
        for row in self.rows.iter_mut().filter(|row| !row.printed && !matches!(row.fate, Fate::Runs)) {
            screen.line(&row.text(screen, step));
            row.printed = true;
        }
    }

    /// How much time running at once has saved.
    fn sum(&self) -> String {
        let ran = || self.rows.iter().filter(|row| matches!(row.fate, Fate::Done(_)));
        let work: Duration = ran().map(|row| row.to.saturating_sub(row.from)).sum();
        let wall = ran().map(|row| row.to).max().unwrap_or_default();
        format!("{:10}{} of work in {}", "", seconds(work), seconds(wall))
    }
}

impl Row {
    fn text(&self, screen: &Screen, step: i64) -> String {
        let (ink, answer) = match &self.fate {
            Fate::Runs => (Ink::Busy, ""),
            Fate::Done(answer) => (Ink::Good, answer.as_str()),
            Fate::Known => (Ink::Faint, "saved before: not run again"),
            Fate::CutOff => (Ink::Bad, "✗ lost"),
        };
        let took = self.to.saturating_sub(self.from);
        let clock = if matches!(self.fate, Fate::Known) { String::new() } else { seconds(took) };
        let answer_ink = if matches!(self.fate, Fate::Done(_)) { Ink::Plain } else { ink };
        let lead = screen.lead(Some(step), &self.tool, Ink::Plain);
        format!("{lead}{}{clock:>7}   {}", self.bar(screen, ink), screen.ink(answer_ink, &clip(answer, ANSWERS)))
    }

    /// The time it took, and faintly the time it will take.
    fn bar(&self, screen: &Screen, ink: Ink) -> String {
        let took = self.to.saturating_sub(self.from);
        let known = matches!(self.fate, Fate::Known);
        let whole = if self.share > 0.0 { took.div_f64(self.share.min(1.0)) } else { took };
        let before = cells(self.from);
        let done = if known { 0 } else { cells(took).max(1) };
        let ahead = if known { 0 } else { cells(whole).saturating_sub(done) };
        let rest = CELLS.saturating_sub(before + done + ahead);
        let [before, rest] = [before, rest].map(|n| " ".repeat(n));
        let text = format!("{}{}", screen.ink(ink, &"━".repeat(done)), screen.ink(Ink::Faint, &"╌".repeat(ahead)));
        if known { pad("", CELLS) } else { format!("{before}{text}{rest}") }
    }
}

fn cells(time: Duration) -> usize {
    ((time.as_secs_f64() / CELL.as_secs_f64()).round() as usize).min(CELLS)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
