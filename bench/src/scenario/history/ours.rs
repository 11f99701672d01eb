//! The service as a store among others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::RequestBuilder;
use signalbox_protocol::agent::MAX_SAMPLES;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::check;
use super::tables;
use crate::agent::{Backfill, BackfillPlan, Outcome, Regular, RegularPlan, Source, connect_all};
use crate::data::{Batches, Dataset};
use crate::fixture::Fixture;
use crate::process::Cpu;
use crate::question::{Kind, Mode, POINTS, Question};
use crate::report::{megabytes, progress};
use crate::rest::Rest;
use crate::scenario::join_all;
use crate::service::ServiceOptions;
use crate::stop::{Stop, StopSource};
use crate::store::{Checked, Fed, Note, OLD_SAMPLES_A_MESSAGE, Store, Stored};

/// Messages an agent may have unacknowledged while it catches up, as the real one does.
const WINDOW: usize = 2;
/// How often to ask the service whether it is done, and for how long it must have been.
const SETTLE_POLL: Duration = Duration::from_millis(500);
/// The service's own metrics that reach 0 when every full hour is sealed and every full day compacted.
const WAITED_FOR: [&str; 2] = ["signalbox_history_unsealed_hours", "signalbox_history_uncompacted_days"];

/// A running service with a server more than the data has.
#[derive(Debug)]
pub struct Signalbox {
    fixture: Fixture,
    settle_timeout: Duration,
    backfill_rate: f64,
}

impl Signalbox {
    pub async fn start(
        options: &ServiceOptions,
        servers: usize,
        settle_timeout: Duration,
        backfill_rate: f64,
    ) -> anyhow::Result<Self> {
        let fixture = Fixture::start(options, servers + 1).await?;
        Ok(Self { fixture, settle_timeout, backfill_rate })
    }

    /// A run is longer than a token lasts.
    async fn renew(&mut self) -> anyhow::Result<&Rest> {
        self.fixture.rest.renew().await?;
        Ok(&self.fixture.rest)
    }
}

impl Store for Signalbox {
    const NAME: &'static str = "signalbox";

    async fn feed(&mut self, data: &Dataset) -> anyhow::Result<Fed> {
        let service = &self.fixture.service;
        let sockets =
            connect_all(service.address(), self.fixture.fleet.get(..data.servers).unwrap_or_default()).await?;
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (_source, stop) = StopSource::new();
        let plan = BackfillPlan {
            batch: MAX_SAMPLES as u64,
            window: WINDOW,
            samples_a_second: None,
            acknowledged: acknowledged.clone(),
        };
        let (start, cpu, generator) = (Instant::now(), service.cpu()?, Cpu::of(std::process::id())?);
        let mut agents = JoinSet::new();
        for (number, socket) in sockets.into_iter().enumerate() {
            let machine = data.machine(number);
            let agent = Backfill { plan: plan.clone(), machine, samples: data.samples, socket };
            agents.spawn(agent.run(stop.clone()));
        }
        let mut outcome = Outcome::default();
        join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
        if let Some(failure) = outcome.failure {
            anyhow::bail!("an agent failed after {} samples: {failure}", acknowledged.load(Ordering::Relaxed));
        }
        Ok(Fed {
            samples: outcome.samples_acknowledged,
            first: data.first,
            elapsed: start.elapsed(),
            cpu: Some(service.cpu()?.since(cpu)),
            generator: Cpu::of(std::process::id())?.since(generator),
            peak_rss: Some(service.peak_rss()?),
        })
    }

    async fn settle(&mut self) -> anyhow::Result<Vec<Note>> {
        let service = &self.fixture.service;
        let (start, cpu) = (Instant::now(), service.cpu()?);
        let settled = wait_until_settled(&self.fixture.rest, self.settle_timeout).await?;
        let rss = megabytes(service.memory()?.rss);
        let cpu = service.cpu()?.since(cpu).total().as_secs_f64();
        let waited = format!("{:.1} s, {cpu:.1} CPU s, RSS then {rss:.0} MB", start.elapsed().as_secs_f64());
        Ok(vec![("sealing and compacting after the last ack".to_owned(), format!("{settled}: {waited}"))])
    }

    async fn stored(&mut self) -> anyhow::Result<Stored> {
        let start = Instant::now();
        let backup = self.fixture.service.backup().await?;
        let took = start.elapsed().as_secs_f64();
        let stopping = self.fixture.service.terminate().await?.as_secs_f64();
        let folder = self.fixture.service.data_folder();
        let mut stored = Stored { bytes: self.fixture.service.data_bytes(), ..Stored::default() };
        match tables::look(&folder).await {
            Ok(found) => {
                stored.raw_bytes = found.raw_bytes;
                stored.notes = found.notes;
            }
            // The sizes of the files are reported anyway.
            Err(error) => stored.notes.push(("what fills the database is not known".to_owned(), format!("{error:#}"))),
        }
        stored.notes.push(("backup while it runs".to_owned(), format!("{:.1} MB in {took:.1} s", megabytes(backup))));
        stored.notes.push(("clean stop".to_owned(), format!("{stopping:.2} s")));
        self.restart_stopped().await?;
        Ok(stored)
    }

    async fn check(&mut self, data: &Dataset, _: &Fed) -> anyhow::Result<Checked> {
        self.renew().await?;
        check::run(&self.fixture, data).await
    }

    async fn restart(&mut self) -> anyhow::Result<()> {
        self.fixture.service.terminate().await?;
        self.restart_stopped().await
    }

    fn request(&self, question: &Question, _: Mode) -> anyhow::Result<RequestBuilder> {
        let enrolled = self.fixture.fleet.get(question.server).context("no such server")?;
        let request = self.fixture.rest.request(&format!("/metrics/{}/series", enrolled.server_id));
        let request = request.query(&[("start", question.start.to_string()), ("end", question.end.to_string())]);
        let points = ("max_points", POINTS.to_string());
        let minutes = ("resolution", "1m".to_owned());
        Ok(match question.kind {
            Kind::OneSeries => request.query(&[minutes, ("names", "cpu_percent".to_owned())]),
            Kind::TenSeries => request.query(&[minutes, ("names", ten_names())]),
            Kind::EverySeries | Kind::EverySeriesOverAll => request.query(&[points]),
            Kind::OneSeriesOverAll => request.query(&[points, ("names", "cpu_percent".to_owned())]),
        })
    }

    async fn start_load(&self, data: &Dataset, stop: &Stop) -> anyhow::Result<Option<JoinSet<anyhow::Result<u64>>>> {
        let Fixture { service, fleet, .. } = &self.fixture;
        let mut sockets = connect_all(service.address(), fleet).await?;
        let mut tasks = JoinSet::new();
        let old = data.old();
        if let Some(socket) = sockets.pop() {
            let plan = BackfillPlan {
                batch: OLD_SAMPLES_A_MESSAGE,
                window: 1,
                samples_a_second: Some(self.backfill_rate),
                acknowledged: Arc::default(),
            };
            let agent = Backfill { plan, machine: old.machine(0), samples: old.samples, socket };
            let stop = stop.clone();
            tasks.spawn(async move { acknowledged(agent.run(stop).await) });
        }
        let interval = Duration::from_millis(data.interval_ms.unsigned_abs());
        let plan = RegularPlan { interval, acknowledged: Arc::default() };
        for (number, socket) in sockets.into_iter().enumerate() {
            let source = Source::Machine(Box::new(Batches::new(data.machine(number))));
            let agent = Regular { plan: plan.clone(), source, socket, sent_times: None };
            let stop = stop.clone();
            tasks.spawn(async move { acknowledged(agent.run(stop).await) });
        }
        Ok(Some(tasks))
    }
}

impl Signalbox {
    async fn restart_stopped(&mut self) -> anyhow::Result<()> {
        self.fixture.service.restart().await?;
        self.renew().await?;
        Ok(())
    }
}

/// Cores and sensors: ten of the series.
fn ten_names() -> String {
    let mut names: Vec<String> = (0..8).map(|core| format!("cpu_core:{core}")).collect();
    names.extend(["temperature:Package id 0".to_owned(), "temperature:Composite".to_owned()]);
    names.join(",")
}

fn acknowledged(outcome: Outcome) -> anyhow::Result<u64> {
    match outcome.failure {
        Some(failure) => anyhow::bail!("an agent failed: {failure}"),
        None => Ok(outcome.samples_acknowledged),
    }
}

/// Waits until the service reports that nothing is left to seal and compact, and returns its report.
pub async fn wait_until_settled(rest: &Rest, patience: Duration) -> anyhow::Result<&'static str> {
    let start = Instant::now();
    loop {
        let mut left = Vec::new();
        for name in WAITED_FOR {
            left.push(rest.own_metric(name).await?);
        }
        if left.iter().all(Option::is_none) {
            return Ok("this build tells nothing of it");
        }
        if left.iter().flatten().all(|left| *left == 0.0) {
            return Ok("done");
        }
        anyhow::ensure!(start.elapsed() < patience, "the history did not settle in time; left: {left:?}");
        if start.elapsed().as_secs().is_multiple_of(10) {
            progress(format_args!("hours and days that are left: {left:?}"));
        }
        sleep(SETTLE_POLL).await;
    }
}
