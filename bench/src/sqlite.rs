//! The contents of an SQLite file, read by the `sqlite3` program while no other process has it open.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio::process::Command;

/// The largest SQLite file directly in `folder`.
pub fn largest_database(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let sizes = entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.len(), entry.path())));
    let databases = sizes.filter(|(_, path)| is_database(path));
    databases.max().map(|(_, path)| path).context("there is no SQLite file in the data folder")
}

fn is_database(path: &Path) -> bool {
    use std::io::Read as _;

    let mut magic = [0; 16];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && &magic == b"SQLite format 3\0"
}

/// The rows of a query, each a list of columns as text.
pub async fn rows(file: &Path, sql: &str) -> anyhow::Result<Vec<Vec<String>>> {
    let output = Command::new("sqlite3")
        .args(["-readonly", "-batch", "-noheader", "-separator", "\t"])
        .arg(file)
        .arg(sql)
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run sqlite3; it is in the package `sqlite3`")?;
    anyhow::ensure!(output.status.success(), "sqlite3: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}
