//! Draws a graph as a picture of vectors.
//!
//! The picture needs nothing from outside and has no background. Text always stands on a fill of its own, and lines are
//! of a middle grey, so it can be read on a light page and on a dark one.

use std::fmt::Write as _;

use super::layout::{Arrow, Frame, Heading, Label, Metrics, NodeBox, Point, Rect, Scene, Wire, lay_out};
use super::{Drawing, END, START, terminal};

/// The size of the letters of a node.
const FONT: f64 = 14.0;
/// The width of one letter as a part of its size, in the usual fixed-width fonts.
const ADVANCE: f64 = 0.602;
const ARROW: f64 = 9.0;
const CORNER: f64 = 8.0;
/// The space around the drawing.
const BORDER: i32 = 12;

const INK: &str = "#221f35";
const LINE: &str = "#85839a";

const METRICS: Metrics = Metrics {
    text_width,
    line: 20,
    pad_x: 14,
    pad_y: 9,
    outline: 0,
    box_gap: 30,
    wire_gap: 16,
    track: 14,
    stem: 13,
    arrow: 12,
    side_port: 18,
    inset: 12,
    frame_pad: 20,
    frame_head: 30,
    frame_foot: 10,
};

impl Drawing {
    /// The graph as a self-contained SVG picture, readable on light and dark pages.
    ///
    /// ```
    /// use superstep::{DrawnEdge, DrawnNode, Drawing};
    ///
    /// let drawing = Drawing::new([DrawnNode::new("a"), DrawnNode::new("b")], [DrawnEdge::new("a", "b")]);
    /// assert!(drawing.to_svg().starts_with("<svg xmlns="));
    /// ```
    pub fn to_svg(&self) -> String {
        picture(self, Background::None, &letters).svg
    }
}

/// An SVG document and its size.
pub(super) struct Picture {
    pub(super) svg: String,
    #[cfg_attr(not(feature = "png"), expect(dead_code, reason = "only pixels need the size"))]
    pub(super) size: (i32, i32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Background {
    None,
    #[cfg(feature = "png")]
    White,
}

/// A line of text, centred on a point.
pub(super) struct Text<'a> {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) color: &'a str,
    pub(super) bold: bool,
    pub(super) content: &'a str,
}

#[cfg(feature = "png")]
impl Text<'_> {
    /// The width of one cell of the text.
    pub(super) fn advance(&self) -> f64 {
        self.size * ADVANCE
    }
}

/// How text is put into the picture: as letters, or as lines where no font can be relied on.
pub(super) type WriteText<'a> = &'a dyn Fn(&mut String, &Text<'_>);

/// Draws the graph, on white or on nothing, writing text with `write_text`.
pub(super) fn picture(drawing: &Drawing, background: Background, write_text: WriteText<'_>) -> Picture {
    let scene = lay_out(drawing, &METRICS);
    let (width, height) = (scene.width + 2 * BORDER, scene.height + 2 * BORDER);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"-{BORDER} -{BORDER} {width} {height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">\n"
    );
    if background != Background::None {
        let _ = writeln!(svg, "<path d=\"M-{BORDER} -{BORDER}h{width}v{height}h-{width}z\" fill=\"#ffffff\"/>");
    }
    Painter { svg: &mut svg, write_text }.scene(&scene);
    svg.push_str("</svg>\n");
    Picture { svg, size: (width, height) }
}

/// Text as letters, in the fixed-width font of the viewer.
fn letters(svg: &mut String, text: &Text<'_>) {
    let weight = if text.bold { " font-weight=\"600\"" } else { "" };
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{}\" fill=\"{}\"{weight} text-anchor=\"middle\" dominant-baseline=\"central\" xml:space=\"preserve\">{}</text>",
        text.x,
        text.y,
        text.size,
        text.color,
        escaped(text.content)
    );
}

fn text_width(text: &str) -> i32 {
    (f64::from(terminal::text_width(text)) * FONT * ADVANCE).ceil() as i32
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

struct Painter<'a> {
    svg: &'a mut String,
    write_text: WriteText<'a>,
}

impl Painter<'_> {
    fn scene(&mut self, scene: &Scene) {
        scene.frames.iter().for_each(|frame| self.frame(frame));
        scene.wires.iter().for_each(|wire| self.wire(wire));
        scene.labels.iter().for_each(|label| self.label(label));
        scene.boxes.iter().for_each(|node| self.node(node));
    }

    fn rect(&mut self, rect: Rect, radius: i32, paint: &str) {
        let Rect { x, y, w, h } = rect;
        let _ = writeln!(self.svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{radius}\" {paint}/>");
    }

    fn frame(&mut self, frame: &Frame) {
        self.rect(
            frame.rect,
            10,
            &format!("fill=\"{LINE}\" fill-opacity=\"0.09\" stroke=\"{LINE}\" stroke-opacity=\"0.7\""),
        );
        let width = text_width(&frame.title);
        let (x, y) = (f64::from(frame.title_x) + f64::from(width) / 2.0, f64::from(frame.rect.y) + 15.0);
        (self.write_text)(self.svg, &Text { x, y, size: FONT - 1.0, color: LINE, bold: true, content: &frame.title });
    }

    fn node(&mut self, node: &NodeBox) {
        let (fill, stroke, radius) = match &*node.id {
            START => ("#e3f4e8", "#58a274", node.rect.h / 2),
            END => ("#d9d4fd", "#8478d8", node.rect.h / 2),
            _ => ("#f2f0ff", "#8478d8", 8),
        };
        self.rect(node.rect, radius, &format!("fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.4\""));
        let x = f64::from(node.rect.x) + f64::from(node.rect.w) / 2.0;
        let middle = f64::from(node.rect.y) + f64::from(node.rect.h) / 2.0;
        for (ix, content) in node.lines.iter().enumerate() {
            let y = middle + f64::from((2 * ix as i32 + 1 - node.lines.len() as i32) * METRICS.line) / 2.0;
            let (size, color) = if ix == 0 { (FONT, INK) } else { (FONT - 2.0, "#6a6780") };
            (self.write_text)(self.svg, &Text { x, y, size, color, bold: ix == 0, content });
        }
    }

    fn label(&mut self, label: &Label) {
        let Rect { x, y, w, h } = label.rect;
        self.rect(
            Rect { x: x - 3, y: y + 1, w: w + 6, h: h - 2 },
            9,
            "fill=\"#fdf3d7\" stroke=\"#cfae55\" stroke-width=\"0.8\"",
        );
        let (x, y) = (f64::from(x) + f64::from(w) / 2.0, f64::from(y) + f64::from(h) / 2.0);
        (self.write_text)(
            self.svg,
            &Text { x, y, size: FONT - 2.0, color: "#5b4609", bold: false, content: &label.text },
        );
    }

    fn wire(&mut self, wire: &Wire) {
        let dash = if wire.conditional { " stroke-dasharray=\"5 4\"" } else { "" };
        let path: String = wire.lines.iter().map(|line| rounded(line, &wire.arrows)).collect();
        let _ = writeln!(
            self.svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"1.6\"{dash}/>",
            path.trim_end()
        );
        for branch in branches(wire) {
            let _ = writeln!(self.svg, "<circle cx=\"{}\" cy=\"{}\" r=\"2.6\" fill=\"{LINE}\"/>", branch.x, branch.y);
        }
        for arrow in &wire.arrows {
            self.arrow(*arrow);
        }
    }

    fn arrow(&mut self, arrow: Arrow) {
        let Point { x, y } = arrow.tip;
        let _ = match arrow.heading {
            Heading::Down => writeln!(self.svg, "<path d=\"M{x} {y}l-4.5 -{ARROW}h9z\" fill=\"{LINE}\"/>"),
            Heading::Left => writeln!(self.svg, "<path d=\"M{x} {y}l{ARROW} -4.5v9z\" fill=\"{LINE}\"/>"),
        };
    }
}

/// The points where a wire branches: a dot tells a branch from a mere crossing.
fn branches(wire: &Wire) -> Vec<Point> {
    let mut ends: Vec<Point> =
        wire.lines.iter().flat_map(|line| [line.first(), line.last()]).flatten().copied().collect();
    ends.sort_unstable();
    ends.chunk_by(|a, b| a == b).filter(|same| same.len() > 2).map(|same| same[0]).collect()
}

/// The path of a line with round corners. It stops short of an arrow, lest it show at the tip.
fn rounded(line: &[Point], arrows: &[Arrow]) -> String {
    let mut points: Vec<(f64, f64)> = line.iter().map(|point| (f64::from(point.x), f64::from(point.y))).collect();
    for (ix, point) in line.iter().enumerate() {
        if let Some(arrow) = arrows.iter().find(|arrow| arrow.tip == *point) {
            match arrow.heading {
                Heading::Down => points[ix].1 -= ARROW - 1.0,
                Heading::Left => points[ix].0 += ARROW - 1.0,
            }
        }
    }
    let mut path = format!("M{} {}", points[0].0, points[0].1);
    for corner in points.windows(3) {
        let (before, after) = (toward(corner[1], corner[0]), toward(corner[1], corner[2]));
        let _ = write!(path, "L{} {}Q{} {} {} {}", before.0, before.1, corner[1].0, corner[1].1, after.0, after.1);
    }
    let last = points[points.len() - 1];
    let _ = write!(path, "L{} {} ", last.0, last.1);
    path
}

/// The point on the way to `to` where a round corner at `from` begins.
fn toward(from: (f64, f64), to: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.abs().max(dy.abs());
    let part = if length > 0.0 { CORNER.min(length / 2.0) / length } else { 0.0 };
    (from.0 + dx * part, from.1 + dy * part)
}
