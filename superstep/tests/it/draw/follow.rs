//! Reads a terminal drawing back into edges, as an eye would: by following the lines.

use std::collections::BTreeSet;

type Cell = (usize, usize);
/// One step across and one step down.
type Step = (i32, i32);

const LEFT: Step = (-1, 0);
const RIGHT: Step = (1, 0);
const UP: Step = (0, -1);
const DOWN: Step = (0, 1);

struct Sheet {
    cells: Vec<Vec<char>>,
    boxes: Vec<NamedBox>,
}

struct NamedBox {
    name: String,
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

/// The edges of the drawing, as pairs of names; or what a reader would stumble over.
pub(super) fn edges(text: &str, names: &[String]) -> Result<BTreeSet<(String, String)>, String> {
    let cells: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mut sheet = Sheet { cells, boxes: Vec::new() };
    for name in names {
        let found = sheet.find_box(name).ok_or_else(|| format!("no box for {name}"))?;
        sheet.boxes.push(found);
    }
    let mut edges = BTreeSet::new();
    for it in &sheet.boxes {
        let below = (it.left + 1..it.right).map(|x| ((x, it.bottom), '┬', DOWN));
        let beside = (it.top + 1..it.bottom).map(|y| ((it.right, y), '├', RIGHT));
        for (port, _, step) in below.chain(beside).filter(|&(port, mark, _)| sheet.at(port) == mark) {
            edges.extend(sheet.follow(port, step)?.into_iter().map(|to| (it.name.clone(), to)));
        }
    }
    Ok(edges)
}

impl Sheet {
    fn at(&self, (x, y): Cell) -> char {
        self.cells.get(y).and_then(|row| row.get(x)).copied().unwrap_or(' ')
    }

    fn find_box(&self, name: &str) -> Option<NamedBox> {
        let wanted: Vec<char> = format!(" {name} ").chars().collect();
        let in_row = |row: &Vec<char>| row.windows(wanted.len()).position(|it| it == wanted);
        let (y, x) = self.cells.iter().enumerate().find_map(|(y, row)| Some((y, in_row(row)?)))?;
        let row = &self.cells[y];
        let left = (0..x).rev().find(|&x| row[x] == '│')?;
        let right = (x + 1..row.len()).find(|&x| "│├".contains(row[x]))?;
        let top = (0..y).rev().find(|&y| self.at((left, y)) == '╭')?;
        let bottom = (y..self.cells.len()).find(|&y| self.at((left, y)) == '╰')?;
        let is_closed = self.at((right, top)) == '╮' && self.at((right, bottom)) == '╯';
        is_closed.then(|| NamedBox { name: name.to_owned(), left, top, right, bottom })
    }

    fn box_at(&self, (x, y): Cell) -> Option<&str> {
        let hit = |it: &&NamedBox| it.left <= x && x <= it.right && it.top <= y && y <= it.bottom;
        self.boxes.iter().find(hit).map(|it| &*it.name)
    }

    /// The boxes whose arrows can be reached from a port.
    fn follow(&self, port: Cell, step: Step) -> Result<BTreeSet<String>, String> {
        let mut targets = BTreeSet::new();
        let mut sources = BTreeSet::from([port]);
        let mut seen = BTreeSet::new();
        let mut open = vec![(port, step)];
        while let Some((from, step)) = open.pop() {
            let at = onward(from, step);
            if !seen.insert((at, step)) {
                continue;
            }
            if self.box_at(at).is_some() {
                if !"┬├".contains(self.at(at)) {
                    return Err(format!("the line from {port:?} runs into a box at {at:?}"));
                }
                sources.insert(at);
            } else if matches!((self.at(at), step), ('▼', DOWN) | ('◀', LEFT)) {
                targets.insert(self.box_at(onward(at, step)).ok_or("an arrow to nowhere")?.to_owned());
            } else {
                let arms =
                    arms(self.at(at), step).ok_or_else(|| format!("the line from {port:?} is lost at {at:?}"))?;
                open.extend(arms.into_iter().map(|arm| (at, arm)));
            }
        }
        match (sources.len(), targets.len()) {
            (_, 0) => Err(format!("the line from {port:?} ends nowhere")),
            (1, _) | (_, 1) => Ok(targets),
            _ => Err(format!("the line from {port:?} joins {sources:?} to {targets:?}")),
        }
    }
}

fn onward((x, y): Cell, (dx, dy): Step) -> Cell {
    (x.wrapping_add_signed(dx as isize), y.wrapping_add_signed(dy as isize))
}

/// Where a line goes on that enters a cell with this step; nothing if the cell does not connect to it.
fn arms(glyph: char, step: Step) -> Option<Vec<Step>> {
    let is_upright = step.0 == 0;
    let arms: &[Step] = match glyph {
        // An upright line is drawn over one it crosses.
        '│' | '┆' => return Some(vec![step]),
        '─' | '╌' if !is_upright => return Some(vec![step]),
        // Through the frame of a group, or through a label.
        '┿' if is_upright => return Some(vec![step]),
        c if c.is_alphanumeric() && is_upright => return Some(vec![step]),
        '╭' => &[RIGHT, DOWN],
        '╮' => &[LEFT, DOWN],
        '╰' => &[RIGHT, UP],
        '╯' => &[LEFT, UP],
        '├' => &[RIGHT, UP, DOWN],
        '┤' => &[LEFT, UP, DOWN],
        '┬' => &[LEFT, RIGHT, DOWN],
        '┴' => &[LEFT, RIGHT, UP],
        '┼' => &[LEFT, RIGHT, UP, DOWN],
        _ => return None,
    };
    let back = (-step.0, -step.1);
    arms.contains(&back).then(|| arms.iter().copied().filter(|arm| *arm != back).collect())
}
