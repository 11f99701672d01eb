//! Prometheus, from Debian's package `prometheus`, which also contains `promtool`.
//!
//! It accepts no old samples over the network, so `promtool` makes blocks from text files. It reads a file once for each block,
//! so each block gets a file of its own.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::RequestBuilder;
use signalbox_protocol::{Sample, Timestamp};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::daemon::{Daemon, fresh_folder};
use super::promql;
use crate::data::{Dataset, Machine, Name, names, server_name, values};
use crate::process::Cpu;
use crate::question::{Mode, Question};
use crate::service::folder_bytes;
use crate::stop::Stop;
use crate::store::{Checked, Fed, Note, Store, Stored};

/// The lengths of the blocks that Prometheus creates by merging, the longest first. Blocks begin at multiples.
const BLOCK_HOURS: [i64; 3] = [162, 54, 18];
const HOUR_MS: i64 = 3_600_000;
/// Longest that `promtool` takes for a block.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(1800);

/// Blocks, and from the end of feeding on a Prometheus that runs on them.
#[derive(Debug)]
pub struct Prometheus {
    /// Where the blocks are made; the daemon's afterwards.
    folder: Option<TempDir>,
    daemon: Option<Daemon>,
    /// The part of the data that it gets: the last days.
    days: f64,
}

fn command(folder: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("prometheus");
    command
        .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        // The defaults would drop a year's data and refuse to count a week's.
        .args(["--storage.tsdb.retention.time=10y", "--query.max-samples=2000000000", "--log.level=warn"]);
    command
}

impl Prometheus {
    pub fn new(work_dir: &Path, days: f64) -> anyhow::Result<Self> {
        let folder = fresh_folder(work_dir, "prometheus")?;
        // It scrapes nothing, not even itself.
        fs::write(folder.path().join("prometheus.yml"), "scrape_configs: []\n")?;
        Ok(Self { folder: Some(folder), daemon: None, days })
    }

    fn daemon(&self) -> anyhow::Result<&Daemon> {
        self.daemon.as_ref().context("Prometheus was not fed")
    }

    fn daemon_mut(&mut self) -> anyhow::Result<&mut Daemon> {
        self.daemon.as_mut().context("Prometheus was not fed")
    }
}

impl Store for Prometheus {
    const NAME: &'static str = "Prometheus";

    async fn feed(&mut self, data: &Dataset) -> anyhow::Result<Fed> {
        let folder = self.folder.take().context("Prometheus was fed already")?;
        let skipped =
            data.samples - ((self.days * 86_400_000.0) as u64 / data.interval_ms.unsigned_abs()).min(data.samples);
        let first = data.first.plus_millis(skipped as i64 * data.interval_ms);
        let generator = Cpu::of(std::process::id())?;
        let hours = block_hours(data.end().millis_since(first));
        let all = data.clone();
        let mut writer = tokio::task::spawn_blocking(move || Writer::new(&all, skipped)).await?;
        let mut elapsed = Duration::ZERO;
        let mut begin = Timestamp::from_millis(first.as_millis().div_euclid(hours * HOUR_MS) * hours * HOUR_MS);
        while begin < data.end() {
            let end = begin.plus_millis(hours * HOUR_MS);
            let file = folder.path().join("block.txt");
            let path = file.clone();
            writer = tokio::task::spawn_blocking(move || writer.write(&path, end)).await??;
            let start = Instant::now();
            make_blocks(&file, &folder.path().join("data"), hours).await?;
            elapsed += start.elapsed();
            fs::remove_file(&file)?;
            begin = end;
        }
        // So that it leaves the blocks as they are, whatever it is asked during the run.
        let longest = format!("--storage.tsdb.max-block-duration={hours}h");
        self.daemon = Some(Daemon::start(command, vec![longest], "/-/ready", folder).await?);
        Ok(Fed {
            samples: (data.samples - skipped) * data.servers as u64,
            first,
            elapsed,
            cpu: None,
            generator: Cpu::of(std::process::id())?.since(generator),
            peak_rss: None,
        })
    }

    async fn settle(&mut self) -> anyhow::Result<Vec<Note>> {
        // The blocks have the length to which it would merge shorter ones already.
        Ok(Vec::new())
    }

    async fn stored(&mut self) -> anyhow::Result<Stored> {
        let daemon = self.daemon_mut()?;
        daemon.stop().await?;
        let data = daemon.folder().join("data");
        let mut chunks = 0;
        let mut blocks = 0;
        for entry in fs::read_dir(&data)?.flatten() {
            let folder = entry.path();
            if folder.join("meta.json").exists() {
                chunks += folder_bytes(&folder.join("chunks"));
                blocks += folder_bytes(&folder);
            }
        }
        daemon.start_again().await?;
        Ok(Stored { bytes: blocks, raw_bytes: Some(chunks), notes: Vec::new() })
    }

    async fn check(&mut self, data: &Dataset, fed: &Fed) -> anyhow::Result<Checked> {
        let daemon = self.daemon()?;
        promql::check(daemon.client(), &daemon.url(""), data, fed).await
    }

    async fn restart(&mut self) -> anyhow::Result<()> {
        let daemon = self.daemon_mut()?;
        daemon.stop().await?;
        daemon.start_again().await
    }

    fn request(&self, question: &Question, _: Mode) -> anyhow::Result<RequestBuilder> {
        let daemon = self.daemon()?;
        Ok(promql::request(daemon.client(), &daemon.url(""), question))
    }

    /// It asks for samples and is not sent any.
    async fn start_load(&self, _: &Dataset, _: &Stop) -> anyhow::Result<Option<JoinSet<anyhow::Result<u64>>>> {
        Ok(None)
    }
}

/// The rule of Prometheus: no block is longer than a tenth of the retention, which by default is 15 days.
fn block_hours(span_ms: i64) -> i64 {
    const DEFAULT_RETENTION_HOURS: i64 = 15 * 24;

    let longest = (span_ms / HOUR_MS).max(DEFAULT_RETENTION_HOURS) / 10;
    BLOCK_HOURS.into_iter().find(|hours| *hours <= longest).unwrap_or(18)
}

async fn make_blocks(file: &Path, data: &Path, hours: i64) -> anyhow::Result<()> {
    let mut command = Command::new("promtool");
    command
        .args(["tsdb", "create-blocks-from", "openmetrics", "--quiet", &format!("--max-block-duration={hours}h")])
        .args([file, data])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(BLOCK_TIMEOUT, command.output())
        .await
        .context("promtool did not end in time")?
        .context("cannot run promtool; it is in the package `prometheus`")?;
    anyhow::ensure!(output.status.success(), "promtool: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Writes every server's samples up to one time after the other.
struct Writer {
    servers: Vec<Server>,
}

struct Server {
    machine: Machine,
    /// The next sample, and how many come after it.
    sample: Sample,
    left: u64,
    /// The beginning of each line.
    series: Vec<String>,
}

impl Writer {
    /// Skips this many samples of each server. Runs for seconds.
    fn new(data: &Dataset, skipped: u64) -> Self {
        let servers = (0..data.servers).filter(|_| skipped < data.samples).map(|number| {
            let mut machine = data.machine(number);
            let mut sample = machine.blank();
            (0..=skipped).for_each(|_| machine.fill(&mut sample));
            let instance = server_name(number);
            let series = names(&sample).iter().map(|name| series(name, &instance)).collect();
            Server { series, machine, sample, left: data.samples - skipped }
        });
        Self { servers: servers.collect() }
    }

    /// Writes the samples from before `end`. Runs for seconds.
    fn write(mut self, path: &PathBuf, end: Timestamp) -> anyhow::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let mut numbers = Vec::new();
        for server in &mut self.servers {
            while server.left > 0 && server.sample.timestamp < end {
                values(&server.sample, &mut numbers);
                let at = server.sample.timestamp.as_millis();
                let (seconds, millis) = (at.div_euclid(1000), at.rem_euclid(1000));
                for (series, value) in server.series.iter().zip(numbers.drain(..)) {
                    // The half of a millisecond is cut off by the reader, which would otherwise cut off a whole one
                    // where the number is a little below it.
                    writeln!(file, "{series} {value} {seconds}.{millis:03}5")?;
                }
                server.machine.fill(&mut server.sample);
                server.left -= 1;
            }
        }
        file.write_all(b"# EOF\n")?;
        file.flush()?;
        Ok(self)
    }
}

fn series(name: &Name, instance: &str) -> String {
    let label = name.label.as_ref();
    let label = label.map_or_else(String::new, |(label, value)| format!(",{label}=\"{value}\""));
    format!("{}{{instance=\"{instance}\"{label}}}", name.metric)
}
