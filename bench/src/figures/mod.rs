//! Key figures for the table of `bench/run --all`: JSON lines in a file, in addition to the tables for people.

mod line;
mod row;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;

#[cfg(test)]
pub use self::line::Figure;
pub use self::line::{Line, Machine, NotMeasured, Run};
pub use self::row::{Better, Facts, Row};

/// The file. A run without it only prints its tables.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// From here on, figures are appended to this file.
pub fn write_to(file: PathBuf) {
    // One command line names one file.
    FILE.set(file).ok();
}

/// Appends lines to the file of this run, if it has one.
pub fn append(lines: impl IntoIterator<Item = Line>) -> anyhow::Result<()> {
    let Some(path) = FILE.get() else { return Ok(()) };
    append_to(path, lines)
}

fn append_to(path: &Path, lines: impl IntoIterator<Item = Line>) -> anyhow::Result<()> {
    let text = in_lines(lines)?;
    // Other programs append to the file, too, so related lines are written at once.
    let written = File::options().create(true).append(true).open(path);
    written
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write figures to {}", path.display()))
}

/// As lines of a file.
pub fn in_lines(lines: impl IntoIterator<Item = Line>) -> anyhow::Result<String> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    Ok(text)
}

pub fn read(path: &Path) -> anyhow::Result<Vec<Line>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("{}, line {}: {line}", path.display(), number + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_read_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures.jsonl");
        let first = Line::not_measured("rest", "cannot run wrk");
        let second = Line::figure(Row::Burst, 1.0).unwrap();

        append_to(&file, [first.clone()]).unwrap();
        append_to(&file, [second.clone()]).unwrap();

        assert_eq!(read(&file).unwrap(), [first, second]);
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures.jsonl");
        std::fs::write(&file, "\n{\"row\":\n").unwrap();

        let error = format!("{:#}", read(&file).unwrap_err());

        assert!(error.contains("line 2"), "{error}");
    }
}
