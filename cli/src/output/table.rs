//! Rows for people and for spreadsheets.

use super::text::{clean, width};
use super::{Out, Paint};

/// Rows of text under headings.
#[derive(Debug)]
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One field of a row.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    paint: Paint,
    /// For numbers.
    is_right: bool,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), paint: Paint::Plain, is_right: false }
    }

    /// Coloured by what the word means.
    pub fn word(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { paint: Paint::of_word(&text), text, is_right: false }
    }

    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), paint: Paint::Plain, is_right: true }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl Table {
    pub fn new(headings: impl IntoIterator<Item = &'static str>) -> Self {
        Self { headings: headings.into_iter().collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Columns as wide as their widest field, without a line if there are no rows.
    pub fn text(&self, out: &Out) -> String {
        let headings = self.headings.iter().map(|heading| Cell { paint: Paint::Bold, ..Cell::new(*heading) });
        let rows: Vec<Vec<Cell>> = [headings.collect()].into_iter().chain(self.cleaned().rows).collect();
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                rows.iter().filter_map(|row| row.get(column)).map(|cell| width(&cell.text)).max().unwrap_or(0)
            })
            .collect();
        let is_right = |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.is_right));
        let mut text = String::new();
        for row in &rows {
            let last = row.len().saturating_sub(1);
            for (column, (cell, widest)) in row.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(widest.saturating_sub(width(&cell.text)));
                let painted = out.paint(cell.paint, &cell.text);
                match (is_right(column), column == last) {
                    (true, _) => text.extend([padding.as_str(), painted.as_str()]),
                    (false, true) => text.push_str(&painted),
                    (false, false) => text.extend([painted.as_str(), padding.as_str()]),
                }
                if column < last {
                    text.push_str("  ");
                }
            }
            // An empty last field leaves the space before it.
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        if self.rows.is_empty() { String::new() } else { text }
    }

    /// Without anything that changes a terminal.
    pub fn cleaned(&self) -> Self {
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::cleaned).collect());
        Self { headings: self.headings.clone(), rows: rows.collect() }
    }

    /// As in RFC 4180. A field that a spreadsheet would calculate begins with an apostrophe.
    pub fn csv(&self) -> String {
        let headings = self.headings.iter().map(|heading| heading.to_lowercase().replace(' ', "_")).collect::<Vec<_>>();
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::csv).collect::<Vec<_>>());
        [headings].into_iter().chain(rows).map(|fields| fields.join(",") + "\r\n").collect()
    }
}

impl Cell {
    fn cleaned(&self) -> Self {
        Self { text: clean(&self.text), ..self.clone() }
    }

    fn csv(&self) -> String {
        let is_formula = !self.is_right && self.text.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let text = if is_formula { format!("'{}", self.text) } else { self.text.clone() };
        let needs_quotes = text.contains(['"', ',', '\r', '\n']);
        if needs_quotes { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["NAME", "LOAD"]);
        table.row([Cell::new("日本"), Cell::number("1.5")]);
        table.row([Cell::new("a,\x1b[1m\"b\""), Cell::number("12.25")]);
        table
    }

    #[test]
    fn columns_line_up_whatever_the_names_are() {
        let out = Out { format: Format::Table, colours: false, is_terminal: true };

        let text = table().text(&out);

        assert_eq!(text, "NAME        LOAD\n日本         1.5\na,�[1m\"b\"  12.25\n");
    }

    #[test]
    fn fields_of_a_spreadsheet_are_quoted_and_never_calculated() {
        let mut table = Table::new(["NAME", "LAST SEEN"]);
        table.row([Cell::new("a,\"b\""), Cell::new("=1+1")]);

        assert_eq!(table.csv(), "name,last_seen\r\n\"a,\"\"b\"\"\",'=1+1\r\n");
    }

    #[test]
    fn nothing_is_printed_of_no_rows() {
        let out = Out { format: Format::Table, colours: true, is_terminal: true };

        assert_eq!(Table::new(["NAME"]).text(&out), "");
    }
}
