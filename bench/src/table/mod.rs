//! One table of all figures of a commit, next to those of the previous run.
//!
//! The last two are stored, as Markdown for people and as lines for the next comparison: `latest` and `previous`.

mod markdown;
mod measured;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use self::measured::Measured;
use crate::figures::{self, Line, Run};
use crate::report::progress;

const ENDINGS: [&str; 2] = ["jsonl", "md"];

#[derive(Debug, Args)]
pub struct TableArgs {
    /// The measured commit.
    #[arg(long)]
    pub commit: String,
    /// When.
    #[arg(long)]
    pub date: String,
    /// The run had fewer agents and seconds.
    #[arg(long)]
    pub short: bool,
    /// Where the last two tables are.
    #[arg(long, default_value = "bench/tables")]
    pub tables: PathBuf,
}

/// Makes the latest table the previous one, and that of these figures the latest. Prints it.
pub fn make(args: &TableArgs, figures: &Path) -> anyhow::Result<()> {
    let TableArgs { commit, date, short, tables } = args;
    let run = Line::Run(Run { commit: commit.clone(), date: date.clone(), short: *short });
    let mut lines = vec![run];
    lines.extend(figures::read(figures)?);
    let now = Measured::of(lines.iter().cloned());
    anyhow::ensure!(!now.is_empty(), "{} has no figure", figures.display());
    let latest = tables.join("latest.jsonl");
    let previous = if latest.exists() { Some(Measured::of(figures::read(&latest)?)) } else { None };
    let text = markdown::table(&now, previous.as_ref());

    fs::create_dir_all(tables).with_context(|| format!("cannot make {}", tables.display()))?;
    for ending in ENDINGS {
        let file = tables.join(format!("latest.{ending}"));
        if file.exists() {
            fs::rename(&file, tables.join(format!("previous.{ending}")))
                .with_context(|| format!("cannot move {}", file.display()))?;
        }
    }
    fs::write(&latest, figures::in_lines(lines)?).with_context(|| format!("cannot write {}", latest.display()))?;
    fs::write(tables.join("latest.md"), &text).context("cannot write the table")?;
    println!("{text}");
    progress(format_args!("the table is {}", tables.join("latest.md").display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Row;

    fn make_with(folder: &Path, commit: &str, burst: f64) -> anyhow::Result<()> {
        let figures = folder.join("figures.jsonl");
        let lines = Line::figure(Row::Burst, burst);
        fs::write(&figures, figures::in_lines(lines)?)?;
        let args = TableArgs {
            commit: commit.to_owned(),
            date: "2026-11-24".to_owned(),
            short: false,
            tables: folder.join("tables"),
        };
        make(&args, &figures)
    }

    #[test]
    fn the_last_two_tables_are_kept() {
        let folder = tempfile::tempdir().unwrap();

        for (commit, burst) in [("one", 100.0), ("two", 200.0), ("three", 150.0)] {
            make_with(folder.path(), commit, burst).unwrap();
        }

        let table = |name: &str| fs::read_to_string(folder.path().join("tables").join(name)).unwrap();
        let (latest, previous) = (table("latest.md"), table("previous.md"));
        assert!(latest.contains("commit three") && latest.contains("| 200 | 150 | −25 %, worse |"), "{latest}");
        assert!(previous.contains("commit two") && previous.contains("| 100 | 200 | +100 %, better |"), "{previous}");
        assert!(table("previous.jsonl").contains("\"commit\":\"two\""));
        assert_eq!(fs::read_dir(folder.path().join("tables")).unwrap().count(), 4);
    }

    #[test]
    fn a_run_without_figures_replaces_no_table() {
        let folder = tempfile::tempdir().unwrap();
        make_with(folder.path(), "one", 100.0).unwrap();

        let error = make_with(folder.path(), "two", f64::NAN).unwrap_err().to_string();

        assert!(error.ends_with("has no figure"), "{error}");
        let latest = fs::read_to_string(folder.path().join("tables/latest.md")).unwrap();
        assert!(latest.contains("commit one"), "{latest}");
    }
}
