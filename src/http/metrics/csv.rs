//! Tables of the history, as CSV (RFC 4180).

use std::collections::HashMap;
use std::io::Write;

use signalbox_history::frame::Column;
use signalbox_history::metric::Field;
use signalbox_protocol::Timestamp;

use crate::metrics::query::reader::Point;
use crate::metrics::query::wanted::column_name;
use crate::metrics::series::Series;

/// The columns of a table of snapshots. A value that a snapshot lacks is an empty field.
pub struct Table {
    names: Vec<String>,
    places: HashMap<Column, usize>,
}

impl Table {
    pub fn new(columns: Vec<Column>) -> Self {
        let mut names: Vec<String> = Vec::with_capacity(columns.len());
        let mut by_name: HashMap<String, usize> = HashMap::new();
        let mut places = HashMap::with_capacity(columns.len());
        for column in columns {
            // A column of another version.
            let Some(name) = column_name(&column) else { continue };
            // A container that was recreated keeps its name, and so its column.
            let place = *by_name.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            });
            places.insert(column, place);
        }
        Self { names, places }
    }

    pub fn header(&self) -> Vec<u8> {
        let mut line = b"timestamp".to_vec();
        for name in &self.names {
            line.push(b',');
            field(name, &mut line);
        }
        line.extend_from_slice(b"\r\n");
        line
    }

    pub fn write(&self, point: &Point, out: &mut Vec<u8>) {
        let mut fields: Vec<Option<(Field, i64)>> = vec![None; self.names.len()];
        for (column, kept) in point.values() {
            if let Some(field) = self.places.get(&column).and_then(|place| fields.get_mut(*place)) {
                *field = Some((column.field, kept));
            }
        }
        // Writing to memory does not fail.
        _ = write!(out, "{}", point.at());
        for field in fields {
            out.push(b',');
            match field {
                // Bytes and counts are exact even where a floating-point number is not.
                Some((field, kept)) if field.is_whole() => _ = write!(out, "{}", kept.cast_unsigned()),
                Some((field, kept)) => number(Some(field.value(kept)), out),
                None => {}
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Points in a piece of a table: some megabyte of text.
const POINTS_AT_ONCE: usize = 20_000;

/// The columns of series as a table, with the mean, minimum and maximum of each: the header, then some lines at a time.
pub fn series(series: Series) -> impl Iterator<Item = Vec<u8>> {
    let mut header = b"timestamp".to_vec();
    for name in series.columns.keys() {
        for kind in ["avg", "min", "max"] {
            header.push(b',');
            field(&format!("{name} {kind}"), &mut header);
        }
    }
    header.extend_from_slice(b"\r\n");
    let lines = (POINTS_AT_ONCE / series.columns.len().max(1)).max(1);
    let pieces = (0..series.timestamps.len()).step_by(lines).map(move |first| {
        // All of it, so that its place is kept until the last piece.
        let whole = &series;
        let mut out = Vec::new();
        for (place, seconds) in whole.timestamps.iter().enumerate().skip(first).take(lines) {
            _ = write!(out, "{}", Timestamp::from_millis(seconds.saturating_mul(1000)));
            for points in whole.columns.values() {
                let shown = points.get(place);
                for value in [shown.map(|it| it.avg), shown.map(|it| it.min), shown.map(|it| it.max)] {
                    out.push(b',');
                    number(value, &mut out);
                }
            }
            out.extend_from_slice(b"\r\n");
        }
        out
    });
    std::iter::once(header).chain(pieces)
}

/// A table of lines, each with several columns.
pub struct Lines(Vec<u8>);

impl Lines {
    /// A table whose lines have these names, each with a column of every kind.
    pub fn new(names: &[String], kinds: &[&str]) -> Self {
        let mut out = b"timestamp".to_vec();
        for name in names {
            for kind in kinds {
                out.push(b',');
                field(&format!("{name} {kind}"), &mut out);
            }
        }
        out.extend_from_slice(b"\r\n");
        Self(out)
    }

    /// Adds the values of all columns at a time, in seconds since the epoch.
    pub fn add(&mut self, seconds: i64, values: impl Iterator<Item = Option<f64>>) {
        _ = write!(self.0, "{}", Timestamp::from_millis(seconds.saturating_mul(1000)));
        for value in values {
            self.0.push(b',');
            number(value, &mut self.0);
        }
        self.0.extend_from_slice(b"\r\n");
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

fn number(value: Option<f64>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        _ = write!(out, "{value}");
    }
}

/// Writes a text: quoted if a comma, a quote or a line break would be misread, and with an apostrophe in front if a
/// spreadsheet would take it for a formula.
fn field(text: &str, out: &mut Vec<u8>) {
    let text = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) {
        out.push(b'"');
        out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::series::Points;

    #[test]
    fn a_long_table_is_written_line_by_line_in_pieces() {
        let count = 2 * POINTS_AT_ONCE as i64 + 1;
        let columns = ["a", "b"].map(|name| (name.to_owned(), Points::default())).into();
        let series = Series { timestamps: (0..count).collect(), columns, ..Series::default() };

        let pieces: Vec<Vec<u8>> = super::series(series).collect();

        assert_eq!(pieces.len(), 1 + 5, "a header, and as many points in each piece");
        let text = String::from_utf8(pieces.concat()).unwrap();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines[0], "timestamp,a avg,a min,a max,b avg,b min,b max");
        let expected = |second: &i64| format!("{},,,,,,", Timestamp::from_millis(second * 1_000));
        assert_eq!(lines[1..], (0..count).collect::<Vec<i64>>().iter().map(expected).collect::<Vec<String>>());
    }

    #[test]
    fn names_that_would_be_misread_are_quoted() {
        let written = |text: &str| {
            let mut out = Vec::new();
            field(text, &mut out);
            String::from_utf8(out).unwrap()
        };

        assert_eq!(written("disk_percent:/"), "disk_percent:/");
        assert_eq!(written("temperature:a,\"b\""), "\"temperature:a,\"\"b\"\"\"");
        assert_eq!(written("=1+1"), "'=1+1");
    }
}
