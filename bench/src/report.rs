//! The output of a scenario: a Markdown table of figures with their aims, and the faults that fail the run.

use std::fmt;

use crate::figures::{self, Line, Row as Key};

/// The aim of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    Below(f64),
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    pub fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::Below(limit) => value < limit,
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(limit) => write!(f, "< {limit}"),
            Self::AtMost(limit) => write!(f, "≤ {limit}"),
            Self::AtLeast(limit) => write!(f, "≥ {limit}"),
        }
    }
}

/// The result of one scenario. A missed aim is a figure like any other; a fault (something lost, something doubled)
/// makes the program end with an error.
#[derive(Debug, Default)]
pub struct Report {
    title: String,
    rows: Vec<TableRow>,
    faults: Vec<String>,
    /// The figures for the table of all figures.
    key_figures: Vec<(Key, f64)>,
}

#[derive(Debug)]
struct TableRow {
    figure: String,
    measured: String,
    aim: String,
    met: &'static str,
}

impl Report {
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A figure that has no aim, or is not a number.
    pub fn note(&mut self, figure: impl Into<String>, measured: impl fmt::Display) {
        let measured = measured.to_string();
        self.rows.push(TableRow { figure: figure.into(), measured, aim: String::new(), met: "" });
    }

    /// A figure with an aim. The unit is part of its name.
    pub fn figure(&mut self, figure: impl Into<String>, value: f64, aim: Aim) {
        let met = if aim.is_met_by(value) { "yes" } else { "no" };
        self.rows.push(TableRow { figure: figure.into(), measured: rounded(value), aim: aim.to_string(), met });
    }

    /// A row of the table of all figures, with the aim that it has there.
    pub fn key_figure(&mut self, figure: impl Into<String>, key: Key, value: f64) {
        match key.facts().aim {
            Some(aim) => self.figure(figure, value, aim),
            None => self.note(figure, rounded(value)),
        }
        self.record(key, value);
    }

    /// The same where this report shows it otherwise, or not at all. Of several values of one row the median counts.
    pub fn record(&mut self, key: Key, value: f64) {
        self.key_figures.push((key, value));
    }

    /// Counts something that must not happen: a row always, a fault when `count` is not 0.
    pub fn must_be_zero(&mut self, figure: impl Into<String>, count: u64) {
        let figure = figure.into();
        if count > 0 {
            self.faults.push(format!("{figure}: {count}"));
        }
        let met = if count == 0 { "yes" } else { "no" };
        self.rows.push(TableRow { figure, measured: count.to_string(), aim: "0".to_owned(), met });
    }

    /// Prints the table, writes the figures of the table of all, and fails when there was a fault.
    pub fn finish(self) -> anyhow::Result<()> {
        println!("{self}");
        figures::append(self.key_figures.iter().filter_map(|(key, value)| Line::figure(*key, *value)))?;
        if self.faults.is_empty() { Ok(()) } else { anyhow::bail!("{}: {}", self.title, self.faults.join("; ")) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        writeln!(f, "| figure | measured | aim | met |\n|---|---|---|---|")?;
        for TableRow { figure, measured, aim, met } in &self.rows {
            writeln!(f, "| {figure} | {measured} | {aim} | {met} |")?;
        }
        Ok(())
    }
}

/// Three significant digits below a hundred, whole numbers above.
pub fn rounded(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// An error for a row of a table, which a line's end would break.
pub fn in_one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Bytes as MB (10⁶), the unit of every memory figure here.
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Reports progress on standard error; standard output has only the tables.
pub fn progress(text: impl fmt::Display) {
    eprintln!("… {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_markdown_table() {
        let mut report = Report::new("steady");
        report.note("agents", 10_000);
        report.figure("CPU, % of one core", 12.345, Aim::Below(15.0));
        report.figure("memory, MB", 301.4, Aim::AtMost(300.0));
        report.must_be_zero("lost", 0);

        let text = report.to_string();

        let expected = "\
## steady

| figure | measured | aim | met |
|---|---|---|---|
| agents | 10000 |  |  |
| CPU, % of one core | 12.3 | < 15 | yes |
| memory, MB | 301 | ≤ 300 | no |
| lost | 0 | 0 | yes |
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_key_figure_has_the_aim_of_the_table_of_all() {
        let mut report = Report::new("storm");
        report.key_figure("back after, s", Key::StormKill, 10.5);
        report.key_figure("requests/s", Key::RestRequests, 41_500.0);

        let text = report.to_string();

        assert!(text.contains("| back after, s | 10.5 | ≤ 10 | no |\n| requests/s | 41500 |  |  |\n"), "{text}");
        assert_eq!(report.key_figures, [(Key::StormKill, 10.5), (Key::RestRequests, 41_500.0)]);
    }

    #[test]
    fn a_fault_fails_the_run_and_a_missed_aim_does_not() {
        let mut missed = Report::new("missed");
        missed.figure("ratio, %", 59.0, Aim::AtLeast(60.0));
        let mut faulty = Report::new("faulty");
        faulty.must_be_zero("samples lost", 3);

        assert!(missed.finish().is_ok());
        assert_eq!(faulty.finish().unwrap_err().to_string(), "faulty: samples lost: 3");
    }
}
