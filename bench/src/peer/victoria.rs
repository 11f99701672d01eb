//! VictoriaMetrics, single node, from Debian's package `victoria-metrics`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use signalbox_protocol::Timestamp;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until};

use super::daemon::{Daemon, fresh_folder};
use super::lines::Lines;
use super::promql;
use crate::data::{Dataset, produce, server_name};
use crate::process::Cpu;
use crate::question::{Mode, Question};
use crate::service::folder_bytes;
use crate::stop::Stop;
use crate::store::{Checked, Fed, Note, OLD_SAMPLES_A_MESSAGE, Store, Stored};

/// Samples in one request: each series' line then carries as many values, which costs the least a value.
const SAMPLES_A_REQUEST: u64 = 2048;
/// Requests at a time: one a core of the smallest machine.
const FEEDERS: usize = 2;
/// How long merging may take, and how often it is checked.
const MERGE_TIMEOUT: Duration = Duration::from_secs(900);
const MERGE_POLL: Duration = Duration::from_millis(500);
/// Its own metrics of running merges, and of the remaining parts.
const MERGES: [&str; 2] = ["vm_active_merges{", "vm_active_force_merges "];
const PARTS: [&str; 1] = ["vm_parts{type=\"storage/"];

/// A running VictoriaMetrics.
#[derive(Debug)]
pub struct Victoria {
    daemon: Daemon,
    /// Samples a second of the server that hands over old ones under load.
    backfill_rate: f64,
}

fn command(folder: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("victoria-metrics");
    command
        .arg(format!("-httpListenAddr={address}"))
        .arg(format!("-storageDataPath={}", folder.join("data").display()))
        // The default of a month would drop a year's data.
        .args(["-retentionPeriod=5y", "-loggerLevel=WARN", "-search.maxSamplesPerQuery=4000000000"]);
    command
}

impl Victoria {
    pub async fn start(work_dir: &Path, backfill_rate: f64) -> anyhow::Result<Self> {
        let daemon = Daemon::start(command, Vec::new(), "/health", fresh_folder(work_dir, "victoria")?).await?;
        Ok(Self { daemon, backfill_rate })
    }

    /// Hands over all samples of every `FEEDERS`th server.
    async fn feed_some(&self, data: &Dataset, feeder: usize) -> anyhow::Result<()> {
        let (data, sender) = (data.clone(), self.sender());
        let mut servers = (feeder..data.servers).step_by(FEEDERS);
        let mut lines: Option<Lines> = None;
        let mut bodies = produce(move || {
            loop {
                if let Some(body) = lines.as_mut().and_then(|lines| lines.body(SAMPLES_A_REQUEST)) {
                    return Ok(Some(body));
                }
                let Some(server) = servers.next() else { return Ok(None) };
                lines = Some(Lines::new(data.machine(server), &server_name(server), data.samples));
            }
        });
        while let Some(body) = bodies.recv().await {
            sender.send(body?).await?;
        }
        Ok(())
    }

    fn sender(&self) -> Sender {
        Sender { client: self.daemon.client().clone(), url: self.daemon.url("/api/v1/import") }
    }

    async fn call(&self, path: &str) -> anyhow::Result<String> {
        let answer = self.daemon.client().get(self.daemon.url(path)).send().await?.error_for_status()?;
        Ok(answer.text().await?)
    }

    /// Its own metrics that begin so, summed up.
    async fn own_metrics(&self, beginnings: &[&str]) -> anyhow::Result<f64> {
        let text = self.call("/metrics").await?;
        let wanted = text.lines().filter(|line| beginnings.iter().any(|beginning| line.starts_with(beginning)));
        Ok(wanted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}

impl Store for Victoria {
    const NAME: &'static str = "VictoriaMetrics";
    const KEEPS_ANSWERS: bool = true;

    async fn feed(&mut self, data: &Dataset) -> anyhow::Result<Fed> {
        let (start, cpu, generator) = (Instant::now(), self.daemon.cpu()?, Cpu::of(std::process::id())?);
        tokio::try_join!(self.feed_some(data, 0), self.feed_some(data, 1))?;
        self.call("/internal/force_flush").await?;
        Ok(Fed {
            samples: data.all_samples(),
            first: data.first,
            elapsed: start.elapsed(),
            cpu: Some(self.daemon.cpu()?.since(cpu)),
            generator: Cpu::of(std::process::id())?.since(generator),
            peak_rss: Some(self.daemon.peak_rss()?),
        })
    }

    async fn settle(&mut self) -> anyhow::Result<Vec<Note>> {
        let parts = self.own_metrics(&PARTS).await?;
        let (start, cpu) = (Instant::now(), self.daemon.cpu()?);
        self.call("/internal/force_merge").await?;
        // It begins in the background.
        sleep(MERGE_POLL * 2).await;
        while self.own_metrics(&MERGES).await? > 0.0 {
            anyhow::ensure!(start.elapsed() < MERGE_TIMEOUT, "VictoriaMetrics still merges");
            sleep(MERGE_POLL).await;
        }
        let seconds = start.elapsed().as_secs_f64();
        let cpu = self.daemon.cpu()?.since(cpu).total().as_secs_f64();
        let left = self.own_metrics(&PARTS).await?;
        let note = format!("{parts} parts to {left} in {seconds:.1} s, {cpu:.1} CPU s");
        Ok(vec![("forced merge".to_owned(), note)])
    }

    async fn stored(&mut self) -> anyhow::Result<Stored> {
        self.daemon.stop().await?;
        let data = self.daemon.folder().join("data");
        // Of its contents `data` are the samples, `indexdb` the names, and `cache` can be rebuilt.
        let samples = folder_bytes(&data.join("data"));
        let index = folder_bytes(&data.join("indexdb"));
        let stored = Stored { bytes: samples + index, raw_bytes: Some(samples), notes: Vec::new() };
        self.daemon.start_again().await?;
        Ok(stored)
    }

    async fn check(&mut self, data: &Dataset, fed: &Fed) -> anyhow::Result<Checked> {
        promql::check(self.daemon.client(), &self.daemon.url(""), data, fed).await
    }

    async fn restart(&mut self) -> anyhow::Result<()> {
        self.daemon.stop().await?;
        self.daemon.start_again().await
    }

    fn request(&self, question: &Question, mode: Mode) -> anyhow::Result<RequestBuilder> {
        let request = promql::request(self.daemon.client(), &self.daemon.url(""), question);
        Ok(match mode {
            Mode::Kept => request,
            Mode::Warm | Mode::Cold | Mode::Fed => request.query(&[("nocache", "1")]),
        })
    }

    async fn start_load(&self, data: &Dataset, stop: &Stop) -> anyhow::Result<Option<JoinSet<anyhow::Result<u64>>>> {
        let mut tasks = JoinSet::new();
        for number in 0..data.servers {
            let lines = Lines::new(data.machine(number), &server_name(number), u64::MAX);
            let every = Duration::from_millis(data.interval_ms.unsigned_abs());
            tasks.spawn(send_live(self.sender(), lines, every, stop.clone()));
        }
        let old = data.old();
        let lines = Lines::new(old.machine(0), "old", old.samples);
        tasks.spawn(send_old(self.sender(), lines, self.backfill_rate, stop.clone()));
        Ok(Some(tasks))
    }
}

/// Hands over lines.
#[derive(Debug, Clone)]
struct Sender {
    client: Client,
    url: String,
}

impl Sender {
    async fn send(&self, body: String) -> anyhow::Result<()> {
        let answer = self.client.post(&self.url).body(body).send().await?;
        let status = answer.status();
        anyhow::ensure!(status.is_success(), "import answered {status}: {}", answer.text().await?);
        Ok(())
    }
}

/// One sample an interval, from a random phase of it on.
async fn send_live(sender: Sender, mut lines: Lines, every: Duration, mut stop: Stop) -> anyhow::Result<u64> {
    let mut ticks = interval_at(Instant::now() + every.mul_f64(fastrand::f64()), every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent = 0;
    loop {
        tokio::select! {
            () = stop.requested() => return Ok(sent),
            _ = ticks.tick() => {
                sender.send(lines.body_at(Timestamp::now())).await?;
                sent += 1;
            }
        }
    }
}

async fn send_old(sender: Sender, mut lines: Lines, rate: f64, stop: Stop) -> anyhow::Result<u64> {
    let start = Instant::now();
    let mut sent = 0;
    while !stop.is_requested() {
        let Some(body) = lines.body(OLD_SAMPLES_A_MESSAGE) else { break };
        sleep_until(start + Duration::from_secs_f64(sent as f64 / rate)).await;
        sender.send(body).await?;
        sent += OLD_SAMPLES_A_MESSAGE;
    }
    Ok(sent)
}
