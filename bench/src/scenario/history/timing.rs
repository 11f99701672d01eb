//! Runs one query after the other and measures the answers.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::RequestBuilder;
use rustix::fs::sync;

use crate::data::Dataset;
use crate::question::{Kind, Mode, Question};
use crate::stats::{Latencies, Summary};
use crate::store::{Fed, Store};

/// The times of one kind of query in one mode.
#[derive(Debug, Clone)]
pub struct Asked {
    pub kind: Kind,
    pub mode: Mode,
    pub latency: Summary,
    /// Of an answer, on average.
    pub bytes: u64,
}

/// Asks `count` questions, one at a time over a connection that is kept alive; each answer is read to its end.
pub async fn ask<S: Store>(
    store: &mut S,
    kind: Kind,
    mode: Mode,
    count: usize,
    (data, fed): (&Dataset, &Fed),
) -> anyhow::Result<Asked> {
    let question = |turn| Question::of(kind, mode, turn, data, fed.first);
    if matches!(mode, Mode::Warm | Mode::Kept) {
        for turn in 0..data.servers.min(count) {
            one(store.request(&question(turn), mode)?).await?;
        }
    }
    let mut latencies = Latencies::default();
    let mut bytes = 0;
    for turn in 0..count {
        if mode == Mode::Cold {
            if turn % data.servers == 0 {
                store.restart().await?;
            }
            tokio::task::spawn_blocking(drop_page_cache).await??;
        }
        let (took, length) = one(store.request(&question(turn), mode)?).await?;
        latencies.record(took);
        bytes += length;
    }
    let latency = latencies.summary().context("nothing was asked")?;
    Ok(Asked { kind, mode, latency, bytes: bytes / count as u64 })
}

async fn one(request: RequestBuilder) -> anyhow::Result<(Duration, u64)> {
    let start = Instant::now();
    let answer = request.send().await?;
    let status = answer.status();
    let body = answer.bytes().await?;
    let took = start.elapsed();
    anyhow::ensure!(status.is_success(), "a question was answered with {status}: {}", String::from_utf8_lossy(&body));
    Ok((took, body.len() as u64))
}

/// Whether this user may empty the page cache.
pub fn may_drop_page_cache() -> bool {
    drop_page_cache().is_ok()
}

/// Takes every file out of memory that is not in use. Blocks.
fn drop_page_cache() -> anyhow::Result<()> {
    // Only written pages can be dropped.
    sync();
    fs::write("/proc/sys/vm/drop_caches", "3").context("the page cache cannot be dropped")
}
