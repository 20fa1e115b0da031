//! Draws a graph with box-drawing characters.
//!
//! A branching line is drawn as a junction, `┬` or `┼`; where one line merely crosses another, the upright one is drawn
//! through and the other is interrupted. So a line can be followed without knowing the graph.

use unicode_width::UnicodeWidthChar;

use super::layout::{Arrow, Frame, Heading, Label, Metrics, NodeBox, Point, Scene, Wire, lay_out};
use super::{Drawing, END, START};

const METRICS: Metrics = Metrics {
    text_width,
    line: 1,
    pad_x: 2,
    pad_y: 1,
    outline: 1,
    box_gap: 3,
    wire_gap: 2,
    track: 1,
    stem: 0,
    arrow: 1,
    side_port: 1,
    inset: 1,
    frame_pad: 3,
    frame_head: 1,
    frame_foot: 1,
};

impl Drawing {
    /// The graph drawn with Unicode box characters, to be shown in a fixed-width font.
    ///
    /// Solid lines are edges always taken, dashed ones are conditional. Edges that go back run up at the right.
    ///
    /// ```
    /// use superstep::{DrawnEdge, DrawnNode, Drawing};
    ///
    /// let drawing = Drawing::new(
    ///     [DrawnNode::new("agent"), DrawnNode::new("tools")],
    ///     [DrawnEdge::new("agent", "tools").conditional(), DrawnEdge::new("tools", "agent")],
    /// );
    /// let expected = [
    ///     "╭───────╮",
    ///     "│ agent │◀─╮",
    ///     "╰───┬───╯  │",
    ///     "    ┆      │",
    ///     "    ▼      │",
    ///     "╭───────╮  │",
    ///     "│ tools ├──╯",
    ///     "╰───────╯",
    /// ];
    /// assert_eq!(drawing.to_terminal().lines().collect::<Vec<_>>(), expected);
    /// ```
    pub fn to_terminal(&self) -> String {
        Canvas::paint(&lay_out(self, &METRICS)).text(|_| "")
    }

    /// The same drawing as [`to_terminal`](Self::to_terminal), coloured with ANSI escapes.
    ///
    /// ```
    /// use superstep::{DrawnNode, Drawing};
    ///
    /// let drawing = Drawing::new([DrawnNode::new("agent")], []);
    /// assert!(drawing.to_terminal_colored().contains("\u{1b}["));
    /// ```
    pub fn to_terminal_colored(&self) -> String {
        Canvas::paint(&lay_out(self, &METRICS)).text(|ink| match ink {
            Ink::None => "",
            Ink::Name => "\u{1b}[1m",
            Ink::Terminus => "\u{1b}[32m",
            Ink::Outline => "\u{1b}[36m",
            Ink::Fact | Ink::Frame => "\u{1b}[2m",
            Ink::Wire => "\u{1b}[90m",
            Ink::Label => "\u{1b}[33m",
        })
    }
}

/// The number of cells a text takes: two for wide characters, none for those that combine.
pub(super) fn text_width(text: &str) -> i32 {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> i32 {
    c.width().map_or(1, |width| width as i32)
}

/// What a cell shows, which decides its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ink {
    None,
    Name,
    Terminus,
    Outline,
    Fact,
    Frame,
    Wire,
    Label,
}

#[derive(Clone, Debug)]
struct Cell {
    /// Usually one character; empty behind a wide one.
    text: String,
    ink: Ink,
    /// The arms of the lines that meet here.
    arms: u8,
}

const NORTH: u8 = 1;
const EAST: u8 = 2;
const SOUTH: u8 = 4;
const WEST: u8 = 8;

/// A grid of cells. Later strokes join those already there.
struct Canvas {
    width: usize,
    cells: Vec<Cell>,
}

impl Canvas {
    fn paint(scene: &Scene) -> Self {
        let (width, height) = (scene.width.max(0) as usize, scene.height.max(0) as usize);
        let blank = Cell { text: " ".to_owned(), ink: Ink::None, arms: 0 };
        let mut canvas = Self { width, cells: vec![blank; width * height] };
        scene.frames.iter().for_each(|frame| canvas.frame(frame));
        scene.boxes.iter().for_each(|it| canvas.node(it));
        scene.wires.iter().for_each(|wire| canvas.wire(wire));
        scene.wires.iter().flat_map(|wire| &wire.arrows).for_each(|&arrow| canvas.arrow(arrow));
        scene.labels.iter().for_each(|label| canvas.label(label));
        canvas
    }

    fn cell(&mut self, x: i32, y: i32) -> &mut Cell {
        &mut self.cells[y as usize * self.width + x as usize]
    }

    fn put(&mut self, x: i32, y: i32, text: char, ink: Ink) {
        let cell = self.cell(x, y);
        (cell.text, cell.ink) = (text.to_string(), ink);
    }

    fn write(&mut self, mut x: i32, y: i32, text: &str, ink: Ink) {
        for c in text.chars() {
            match char_width(c) {
                0 => self.cell(x - 1, y).text.push(c),
                width => {
                    self.put(x, y, c, ink);
                    if width == 2 {
                        self.cell(x + 1, y).text.clear();
                    }
                    x += width;
                }
            }
        }
    }

    fn outline(&mut self, rect: super::layout::Rect, glyphs: [char; 6], ink: Ink) {
        let [top_left, top_right, bottom_left, bottom_right, across, upright] = glyphs;
        let (left, right, top, bottom) = (rect.x, rect.x + rect.w - 1, rect.y, rect.y + rect.h - 1);
        for x in left + 1..right {
            self.put(x, top, across, ink);
            self.put(x, bottom, across, ink);
        }
        for y in top + 1..bottom {
            self.put(left, y, upright, ink);
            self.put(right, y, upright, ink);
        }
        self.put(left, top, top_left, ink);
        self.put(right, top, top_right, ink);
        self.put(left, bottom, bottom_left, ink);
        self.put(right, bottom, bottom_right, ink);
    }

    fn frame(&mut self, frame: &Frame) {
        self.outline(frame.rect, ['┏', '┓', '┗', '┛', '━', '┃'], Ink::Frame);
        self.write(frame.title_x - 1, frame.rect.y, &format!(" {} ", frame.title), Ink::Frame);
    }

    fn node(&mut self, node: &NodeBox) {
        let is_terminus = node.id == START || node.id == END;
        self.outline(node.rect, ['╭', '╮', '╰', '╯', '─', '│'], if is_terminus { Ink::Terminus } else { Ink::Outline });
        let first = node.rect.y + (node.rect.h - node.lines.len() as i32) / 2;
        for (ix, line) in node.lines.iter().enumerate() {
            let x = node.rect.x + (node.rect.w - text_width(line)) / 2;
            let ink = if ix > 0 {
                Ink::Fact
            } else if is_terminus {
                Ink::Terminus
            } else {
                Ink::Name
            };
            self.write(x, first + ix as i32, line, ink);
        }
    }

    fn wire(&mut self, wire: &Wire) {
        let mut arms: std::collections::BTreeMap<Point, u8> = std::collections::BTreeMap::new();
        for stretch in wire.lines.iter().flat_map(|line| line.windows(2)) {
            let (a, b) = (stretch[0].min(stretch[1]), stretch[0].max(stretch[1]));
            let (forth, back) = if a.y == b.y { (EAST, WEST) } else { (SOUTH, NORTH) };
            let (dx, dy) = ((b.x - a.x).signum(), (b.y - a.y).signum());
            let mut at = a;
            while at != b {
                *arms.entry(at).or_default() |= forth;
                at = Point { x: at.x + dx, y: at.y + dy };
                *arms.entry(at).or_default() |= back;
            }
        }
        for (at, arms) in arms {
            self.stroke(at, arms, wire.conditional);
        }
    }

    fn stroke(&mut self, at: Point, arms: u8, conditional: bool) {
        let cell = self.cell(at.x, at.y);
        let (upright, across) = (NORTH | SOUTH, EAST | WEST);
        let old = cell.arms;
        if old == upright && arms == across {
            return;
        }
        let arms = if old == across && arms == upright { upright } else { old | arms };
        cell.arms = arms;
        let text = match (cell.ink, arms) {
            (Ink::Outline | Ink::Terminus, SOUTH) => '┬',
            (Ink::Outline | Ink::Terminus, EAST) => '├',
            (Ink::Frame, _) => '┿',
            _ => glyph(arms, conditional),
        };
        let ink = if cell.ink == Ink::None { Ink::Wire } else { cell.ink };
        self.put(at.x, at.y, text, ink);
    }

    fn arrow(&mut self, arrow: Arrow) {
        let head = match arrow.heading {
            Heading::Down => '▼',
            Heading::Left => '◀',
        };
        self.put(arrow.tip.x, arrow.tip.y, head, Ink::Wire);
    }

    fn label(&mut self, label: &Label) {
        self.write(label.rect.x, label.rect.y, &label.text, Ink::Label);
    }

    fn text(&self, style: fn(Ink) -> &'static str) -> String {
        let mut text = String::new();
        for row in self.cells.chunks(self.width.max(1)) {
            let end = row.iter().rposition(|cell| cell.text != " ").map_or(0, |last| last + 1);
            let mut style_now = "";
            for cell in &row[..end] {
                let wanted = style(cell.ink);
                if wanted != style_now {
                    text.push_str(if style_now.is_empty() { "" } else { "\u{1b}[0m" });
                    text.push_str(wanted);
                    style_now = wanted;
                }
                text.push_str(&cell.text);
            }
            text.push_str(if style_now.is_empty() { "" } else { "\u{1b}[0m" });
            text.push('\n');
        }
        text
    }
}

fn glyph(arms: u8, conditional: bool) -> char {
    const UPRIGHT: u8 = NORTH | SOUTH;
    const ACROSS: u8 = EAST | WEST;
    const NE: u8 = NORTH | EAST;
    const SE: u8 = SOUTH | EAST;
    const NW: u8 = NORTH | WEST;
    const SW: u8 = SOUTH | WEST;
    const NSE: u8 = UPRIGHT | EAST;
    const NSW: u8 = UPRIGHT | WEST;
    const SEW: u8 = ACROSS | SOUTH;
    const NEW: u8 = ACROSS | NORTH;
    match arms {
        NORTH | SOUTH | UPRIGHT => {
            if conditional {
                '┆'
            } else {
                '│'
            }
        }
        EAST | WEST | ACROSS => {
            if conditional {
                '╌'
            } else {
                '─'
            }
        }
        NE => '╰',
        SE => '╭',
        NW => '╯',
        SW => '╮',
        NSE => '├',
        NSW => '┤',
        SEW => '┬',
        NEW => '┴',
        _ => '┼',
    }
}
