//! A program that writes a log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::tally::line;

/// Lines written at once.
const CHUNK: u64 = 512;
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How fast it writes.
#[derive(Debug, Clone)]
pub enum Pace {
    /// At most this many lines ahead of the slowest reader.
    Ahead { lines: u64, readers: Vec<Arc<AtomicU64>> },
    /// This many lines per second, independent of the readers.
    Rate(u64),
}

impl Pace {
    /// Whether the next chunk may be written after `written` lines in `elapsed`.
    fn allows(&self, written: u64, elapsed: Duration) -> bool {
        match self {
            Self::Ahead { lines, readers } => {
                let slowest = readers.iter().map(|seen| seen.load(Ordering::Relaxed)).min().unwrap_or_default();
                written < slowest + lines
            }
            Self::Rate(rate) => (written as f64) < *rate as f64 * elapsed.as_secs_f64(),
        }
    }
}

/// Makes the file with its first line.
pub async fn create(path: &Path, line_bytes: usize) -> anyhow::Result<File> {
    let mut file = File::create(path).await.with_context(|| format!("cannot make {}", path.display()))?;
    file.write_all(line(1, line_bytes).as_bytes()).await?;
    file.flush().await?;
    Ok(file)
}

/// Writes the lines from the second to `last`, and returns how long that took. Gives up at `deadline`.
pub async fn write(
    mut file: File,
    last: u64,
    line_bytes: usize,
    pace: Pace,
    deadline: Instant,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut written = 1;
    while written < last {
        if !pace.allows(written, start.elapsed()) {
            anyhow::ensure!(Instant::now() < deadline, "nobody read on at line {written}");
            sleep(LOOK_EVERY).await;
            continue;
        }
        let upto = (written + CHUNK).min(last);
        let chunk: String = (written + 1..=upto).map(|number| line(number, line_bytes)).collect();
        file.write_all(chunk.as_bytes()).await?;
        file.flush().await?;
        written = upto;
    }
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_reader_sets_the_pace() {
        let readers = [10, 500].map(|seen| Arc::new(AtomicU64::new(seen))).to_vec();
        let pace = Pace::Ahead { lines: 100, readers };

        assert!(pace.allows(109, Duration::ZERO));
        assert!(!pace.allows(110, Duration::from_secs(3600)));
    }

    #[test]
    fn a_rate_waits_for_nobody() {
        let pace = Pace::Rate(1000);

        assert!(pace.allows(1999, Duration::from_secs(2)));
        assert!(!pace.allows(2000, Duration::from_secs(2)));
    }
}
