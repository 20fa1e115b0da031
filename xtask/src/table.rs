//! A table in Markdown, padded so that it also reads well in a terminal.

use std::fmt;

pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Self {
        Table { rows: vec![header.into_iter().map(Into::into).collect()] }
    }

    pub(crate) fn add<T: Into<String>>(&mut self, row: impl IntoIterator<Item = T>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Whether there is nothing below its header.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if index == 0 {
                for width in &widths {
                    write!(f, "|{:-<1$}", "", width + 2)?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Three significant digits, without a power of ten.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else if magnitude >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, number};

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["case", "µs"]);
        table.add(["w1", "0.25"]);
        table.add(["w6mem", "3"]);
        let text = "| case  | µs   |\n|-------|------|\n| w1    | 0.25 |\n| w6mem | 3    |\n";
        assert_eq!(table.to_string(), text);
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!([123.4, 12.34, 1.234, 0.1234].map(number), ["123", "12.3", "1.23", "0.123"]);
    }
}
