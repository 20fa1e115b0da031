//! Typography: columns, colours, and the difference between a terminal and a file.

use std::env;
use std::io::{self, BufRead, IsTerminal, Write};

/// Everything is set in this many columns.
const WIDTH: usize = 80;
/// How many chapters there are.
const CHAPTERS: usize = 6;
/// The width of the column of step numbers, and of all other first columns.
const GUTTER: usize = 4;
/// The width of the column of names.
const NAMES: usize = 10;

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy)]
pub(crate) enum Ink {
    Plain,
    Strong,
    Faint,
    Busy,
    Good,
    Bad,
    Human,
}

/// Where the tour is shown.
pub(crate) struct Screen {
    /// Whether lines can be drawn again in place.
    pub(crate) live: bool,
    colours: bool,
    asks: bool,
    out: io::Stdout,
}

impl Screen {
    /// What stdout and stdin are good for.
    pub(crate) fn new() -> Self {
        let out = io::stdout();
        let live = out.is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb");
        let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { live, colours: live && !no_color, asks: io::stdin().is_terminal(), out }
    }

    /// Writes text at once; if nobody reads any more, there is nothing left to do.
    pub(crate) fn put(&self, text: &str) {
        let mut out = self.out.lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            std::process::exit(0);
        }
    }

    /// Writes a line.
    pub(crate) fn line(&self, text: &str) {
        self.put(&format!("{}\n", text.trim_end()));
    }

    /// Text in the colour of what it is.
    pub(crate) fn ink(&self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Plain => return text.to_owned(),
            Ink::Strong => "1",
            Ink::Faint => "2",
            Ink::Busy => "36",
            Ink::Good => "32",
            Ink::Bad => "31",
            Ink::Human => "33",
        };
        if self.colours && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// The name of the whole, and what it is about.
    pub(crate) fn title(&self, name: &str, about: &str) {
        let rule = "━".repeat(WIDTH - 4 - name.chars().count() - 1);
        self.line(&format!("\n  {} {}", self.ink(Ink::Strong, name), self.ink(Ink::Busy, &rule)));
        self.line(&format!("  {about}"));
    }

    /// A chapter: its number and title, the call that does it, and why it matters.
    pub(crate) fn chapter(&self, number: usize, title: &str, code: &str, why: &str) {
        let gap = " ".repeat((WIDTH - GUTTER - 2).saturating_sub(title.chars().count() + code.chars().count()));
        let number = self.ink(Ink::Busy, &format!("{number}/{CHAPTERS}"));
        self.line(&format!("\n{number} {}{gap}{}", self.ink(Ink::Strong, title), self.ink(Ink::Faint, code)));
        self.note(why);
        self.line("");
    }

    /// A remark.
    pub(crate) fn note(&self, text: &str) {
        self.line(&format!("{:GUTTER$}{}", "", self.ink(Ink::Faint, text)));
    }

    /// The beginning of a line: the step, if there is one, and who acts in it.
    pub(crate) fn lead(&self, step: Option<i64>, name: &str, ink: Ink) -> String {
        let step = step.map(|s| s.to_string()).unwrap_or_default();
        format!("{}  {}", self.ink(Ink::Faint, &format!("{step:>2}")), self.ink(ink, &pad(name, NAMES)))
    }

    /// Two texts side by side. `coloured` is `plain` with colours, so that `plain` tells its width.
    pub(crate) fn beside(&self, plain: &str, coloured: &str, right: &[String]) {
        let widest = plain.lines().map(|l| l.chars().count()).max().unwrap_or(0);
        let shown = if self.colours { coloured } else { plain };
        let height = plain.lines().count().max(right.len());
        let above = height.saturating_sub(right.len()) / 2;
        for row in 0..height {
            let (bare, left) = (plain.lines().nth(row).unwrap_or(""), shown.lines().nth(row).unwrap_or(""));
            let gap = " ".repeat(widest - bare.chars().count() + 4);
            let beside = row.checked_sub(above).and_then(|row| right.get(row)).map_or("", String::as_str);
            self.line(&format!("{:GUTTER$}{left}{gap}{}", "", self.ink(Ink::Faint, beside)));
        }
    }

    /// A table: its head and rows, columns as wide as their widest cells.
    pub(crate) fn table(&self, head: &[&str], rows: &[Vec<(Ink, String)>]) {
        let width = |(at, head): (usize, &&str)| {
            let cells = rows.iter().map(|row| row[at].1.chars().count());
            cells.max().unwrap_or(0).max(head.chars().count())
        };
        let widths: Vec<usize> = head.iter().enumerate().map(width).collect();
        let head: Vec<_> = head.iter().map(|cell| (Ink::Faint, (*cell).to_owned())).collect();
        for row in [&head].into_iter().chain(rows) {
            let cells = row.iter().zip(&widths).map(|((ink, text), width)| self.ink(*ink, &pad(text, *width)));
            self.line(&format!("{:GUTTER$}{}", "", cells.collect::<Vec<_>>().join("   ")));
        }
    }

    /// Asks until `read` understands; `None` if nobody is there to be asked.
    pub(crate) fn ask<T>(&self, question: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        if !self.asks {
            return None;
        }
        loop {
            self.put(&format!("{:GUTTER$}{question} {} ", "", self.ink(Ink::Human, "›")));
            let mut line = String::new();
            match io::stdin().lock().read_line(&mut line) {
                Ok(0) | Err(_) => {
                    self.line("");
                    return None;
                }
                Ok(_) => {}
            }
            if let Some(answer) = read(line.trim()) {
                return Some(answer);
            }
        }
    }
}

/// Text in a column: cut or filled up with spaces.
pub(crate) fn pad(text: &str, width: usize) -> String {
    format!("{:<width$}", clip(text, width))
}

/// Text that takes at most `width` columns, without what would move the cursor.
pub(crate) fn clip(text: &str, width: usize) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::{clip, pad};

    #[test]
    fn cuts_and_fills() {
        assert_eq!(clip("0123456789", 4), "012…");
        assert_eq!(clip("a\u{1b}[1mb", 9), "a[1mb");
        assert_eq!(pad("ab", 4), "ab  ");
    }
}
