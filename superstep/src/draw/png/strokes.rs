//! A small font of strokes.
//!
//! A glyph is a list of lines on a grid: each pair of digits is a column from 0 to 4 and a row from 0 to 8, where
//! capitals reach from row 0 to row 6, small letters from row 2, and tails down to row 8.

use std::fmt::Write as _;

use crate::draw::svg::Text;
use crate::draw::terminal;

/// Writes the text as a path of strokes.
pub(super) fn write(svg: &mut String, text: &Text<'_>) {
    let unit = text.size / 9.0;
    let mut x = text.x - f64::from(terminal::text_width(text.content)) * text.advance() / 2.0;
    let mut path = String::new();
    for c in text.content.chars() {
        let cells = terminal::text_width(c.encode_utf8(&mut [0; 4]));
        let width = f64::from(cells) * text.advance();
        let pen = Pen { x: x + (width - 4.0 * unit) / 2.0, y: text.y - 3.2 * unit, unit };
        if !pen.letter(&mut path, c) {
            code_box(&mut path, c, (x + width / 2.0, text.y), width - 1.6, text.size * 0.96);
        }
        x += width;
    }
    let width = if text.bold { 1.5 } else { 1.1 } * text.size / 14.0;
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width:.2}\" stroke-linecap=\"round\" stroke-linejoin=\"round\"/>",
        text.color
    );
}

/// Where the grid of a glyph is, and how large.
#[derive(Clone, Copy)]
struct Pen {
    x: f64,
    y: f64,
    unit: f64,
}

impl Pen {
    /// Draws a letter if there is a glyph for it.
    fn letter(self, path: &mut String, c: char) -> bool {
        if let Some(glyph) = glyph(c) {
            self.glyph(path, glyph);
            return true;
        }
        let Some((base, mark)) = accented(c) else { return false };
        self.glyph(path, glyph(base).unwrap_or_default());
        let lift = if base.is_uppercase() { 1.8 } else { 0.0 };
        Pen { y: self.y - lift * self.unit, ..self }.glyph(path, mark);
        true
    }

    fn glyph(self, path: &mut String, glyph: &str) {
        for line in glyph.split(' ').filter(|line| !line.is_empty()) {
            for (ix, point) in line.as_bytes().chunks(2).enumerate() {
                let at = |digit: u8| f64::from(digit - b'0') * self.unit;
                let (x, y) = (self.x + at(point[0]), self.y + at(point[1]));
                let _ = write!(path, "{}{x:.2} {y:.2}", if ix == 0 { 'M' } else { 'L' });
            }
            // A dot is a line too short to see but for its round ends.
            if line.len() == 2 {
                path.push_str("h0.01");
            }
        }
    }
}

/// A box with the code of a character there is no glyph for, around a point.
fn code_box(path: &mut String, unknown: char, center: (f64, f64), width: f64, height: f64) {
    let (left, top) = (center.0 - width / 2.0, center.1 - height / 2.0);
    let _ = write!(path, "M{left:.2} {top:.2}h{width:.2}v{height:.2}h-{width:.2}z");
    let code = format!("{:04X}", u32::from(unknown));
    let per_row = code.len().div_ceil(2) as u32;
    let step = width / f64::from(per_row);
    let unit = (step / 6.5).min(height / 18.0);
    for (ix, digit) in (0..).zip(code.chars()) {
        let (column, row) = (f64::from(ix % per_row), f64::from(ix / per_row));
        let (x, y) = (left + step * (column + 0.5), top + height * (0.27 + 0.46 * row));
        Pen { x: x - 2.0 * unit, y: y - 3.0 * unit, unit }.letter(path, digit);
    }
}

/// The base letter and the mark of an accented one.
fn accented(c: char) -> Option<(char, &'static str)> {
    const MARKED: [(&str, &str, &str); 7] = [
        ("àèìòùÀÈÌÒÙ", "aeıouAEIOU", "1021"),
        ("áéíóúýÁÉÍÓÚÝ", "aeıouyAEIOUY", "3021"),
        ("âêîôûÂÊÎÔÛ", "aeıouAEIOU", "112031"),
        ("ãñõÃÑÕ", "anoANO", "01102140"),
        ("äëïöüÿÄËÏÖÜ", "aeıouyAEIOU", "10 30"),
        ("åÅ", "aA", "2010112120"),
        ("çÇ", "cC", "262718"),
    ];
    MARKED.iter().find_map(|(letters, bases, mark)| {
        let place = letters.chars().position(|it| it == c)?;
        Some((bases.chars().nth(place)?, *mark))
    })
}

#[expect(clippy::too_many_lines, reason = "it is one table")]
fn glyph(c: char) -> Option<&'static str> {
    Some(match c {
        ' ' | '\u{a0}' => "",
        '!' => "2024 26",
        '"' => "1012 3032",
        '#' => "1016 3036 0242 0444",
        '$' => "413010010213334445361605 2026",
        '%' => "0010110100 3545463635 4006",
        '&' => "460201102031320405162644",
        '\'' | '’' => "2022",
        '(' => "30121436",
        ')' => "10323416",
        '*' => "2125 0244 4204",
        '+' => "2125 0343",
        ',' => "252617",
        '-' | '–' | '—' => "0343",
        '.' => "26",
        '/' => "4006",
        '0' => "100105163645413010 1432",
        '1' => "012026 0646",
        '2' => "01103041420646",
        '3' => "0110304142334445361605 2333",
        '4' => "36300444",
        '5' => "400002324345361605",
        '6' => "413010010516364544331304",
        '7' => "004016",
        '8' => "100102133344453616050413 3342413010",
        '9' => "051636454130100102133342",
        ':' => "23 26",
        ';' => "23 252617",
        '<' => "410345",
        '=' => "0242 0444",
        '>' => "014305",
        '?' => "01103041422324 26",
        '@' => "343222131424344441301001051646",
        'A' => "062046 1434",
        'B' => "0006364544330333424130 0030",
        'C' => "4130100105163645",
        'D' => "00063645413000",
        'E' => "40000646 0333",
        'F' => "400006 0333",
        'G' => "41301001051636454323",
        'H' => "0006 4046 0343",
        'I' => "1030 2026 1636",
        'J' => "4045361605",
        'K' => "0006 400346",
        'L' => "000646",
        'M' => "0600234046",
        'N' => "06004640",
        'O' => "100105163645413010",
        'P' => "06003041423303",
        'Q' => "100105163645413010 2446",
        'R' => "06003041423303 2346",
        'S' => "413010010213334445361605",
        'T' => "0040 2026",
        'U' => "000516364540",
        'V' => "002640",
        'W' => "0016233640",
        'X' => "0046 4006",
        'Y' => "002340 2326",
        'Z' => "00400646",
        '[' => "30101636",
        '\\' => "0046",
        ']' => "10303616",
        '^' => "022042",
        '_' => "0747",
        '`' => "1021",
        'a' => "12324346 441405163645",
        'b' => "0006 0312324345361605",
        'c' => "4332120305163645",
        'd' => "4046 4332120305163645",
        'e' => "04444332120305163645",
        'f' => "40302126 1242",
        'g' => "4247381807 4332120305163645",
        'h' => "0006 0312324346",
        'i' => "122226 1636 20",
        'j' => "1232372808 30",
        'k' => "0006 420446",
        'l' => "102026 1636",
        'm' => "0206 03122326 23324346",
        'n' => "0206 0312324346",
        'o' => "120305163645433212",
        'p' => "0208 0312324345361605",
        'q' => "4248 4332120305163645",
        'r' => "1216 143242",
        's' => "43321203143445361605",
        't' => "1015263645 0232",
        'u' => "0205163645 4246",
        'v' => "022642",
        'w' => "0216243642",
        'x' => "0246 4206",
        'y' => "0226 421808",
        'z' => "02420646",
        '{' => "30202213242636",
        '|' => "2027",
        '}' => "10202233242616",
        '~' => "03123342",
        'ı' => "122226 1636",
        '·' => "23",
        '…' => "06 26 46",
        '→' => "0343 214325",
        '×' => "0145 4105",
        _ => return None,
    })
}
