//! One server with many dashboards: the cost of a delivery.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{join_all, seconds};
use crate::agent::{AgentSocket, Outcome, Regular, RegularPlan, Source};
use crate::dashboard::{Dashboard, DashboardReport};
use crate::figures::Row;
use crate::fixture::{Enrolled, Fixture};
use crate::limits::check_connections;
use crate::report::{Aim, Report, megabytes, progress, rounded};
use crate::sent_times::SentTimes;
use crate::service::ServiceOptions;
use crate::stop::StopSource;
use crate::template::Template;
use crate::usage::{self, Usage};

/// Dashboards opened at a time.
const CONCURRENT_HANDSHAKES: usize = 32;
/// After opening them, so that no handshake is in the measured CPU time.
const SETTLE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct FanoutArgs {
    /// Dashboards and samples a second, as `500x10`; several shapes are measured one after the other.
    #[arg(long, value_delimiter = ',', default_values = ["500x10", "100x200"])]
    pub shapes: Vec<Shape>,
    /// Seconds that each shape is measured.
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub duration: Duration,
}

/// How many watch, and how much there is to see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    dashboards: usize,
    samples_per_second: f64,
}

/// The result of one shape.
struct Measured {
    usage: Usage,
    /// Samples sent in the measured time, and in all.
    sent_measured: usize,
    sent: usize,
    /// RSS under load, and how much the dashboards alone had added before it; bytes.
    memory: u64,
    grown: u64,
}

impl Shape {
    /// Of the table of all figures; other shapes have none.
    fn row(self) -> Option<Row> {
        match (self.dashboards, self.samples_per_second) {
            (500, 10.0) => Some(Row::Fanout500),
            (100, 200.0) => Some(Row::Fanout100),
            _ => None,
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            let (dashboards, rate) = text.split_once('x')?;
            let shape = Self { dashboards: dashboards.parse().ok()?, samples_per_second: rate.parse().ok()? };
            // A sample is identified by its millisecond, so there are at most a thousand a second.
            (shape.samples_per_second > 0.0 && shape.samples_per_second <= 1000.0).then_some(shape)
        };
        shape().ok_or_else(|| "not like 500x10 (at most 1000 samples a second)".to_owned())
    }
}

pub async fn run(options: &ServiceOptions, args: &FanoutArgs) -> anyhow::Result<()> {
    let mut result = Ok(());
    for shape in &args.shapes {
        check_connections(shape.dashboards)?;
        let fixture = Fixture::start(options, 1).await?;
        // A fault of one shape does not hide the figures of the next.
        result = result.and(measure(&fixture, *shape, args.duration).await);
    }
    result
}

async fn measure(fixture: &Fixture, shape: Shape, duration: Duration) -> anyhow::Result<()> {
    let enrolled = fixture.fleet.first().context("there is no server")?;
    let sent_times = Arc::new(SentTimes::default());
    let before = fixture.service.memory()?.rss;
    let (watchers_source, watchers_stop) = StopSource::new();
    let mut watchers = JoinSet::new();
    for dashboard in open_dashboards(fixture, enrolled, &sent_times, shape.dashboards).await? {
        watchers.spawn(dashboard.run(watchers_stop.clone()));
    }
    let agent = Regular {
        plan: RegularPlan {
            interval: Duration::from_secs_f64(1.0 / shape.samples_per_second),
            acknowledged: Arc::default(),
        },
        source: Source::Template(Template::new(1)?),
        socket: AgentSocket::connect(fixture.service.address(), enrolled).await?,
        sent_times: Some(sent_times.clone()),
    };
    sleep(SETTLE).await;
    let opened = fixture.service.memory()?.rss;

    progress(format_args!("{} dashboards, {} samples/s", shape.dashboards, shape.samples_per_second));
    let (agent_source, agent_stop) = StopSource::new();
    let running = tokio::spawn(agent.run(agent_stop));
    let usage = usage::watch(&fixture.service, duration).await?;
    // Every delivery costs the same, so those in flight at the end do not matter.
    let sent_measured = sent_times.count();
    let memory = fixture.service.memory()?.rss;
    agent_source.stop();
    let outcome = running.await?;
    watchers_source.stop();
    let mut seen = DashboardReport::default();
    join_all(watchers).await?.into_iter().for_each(|one| seen.merge(one));
    let measured =
        Measured { usage, sent_measured, memory, grown: opened.saturating_sub(before), sent: sent_times.count() };
    report(shape, &measured, outcome, seen).finish()
}

fn report(shape: Shape, measured: &Measured, outcome: Outcome, seen: DashboardReport) -> Report {
    let Shape { dashboards, samples_per_second } = shape;
    let Measured { usage, sent_measured, sent, memory, grown } = measured;
    let mut report =
        Report::new(format!("fanout: {dashboards} dashboards of one server, {samples_per_second} samples/s"));
    let millions = (sent_measured * dashboards) as f64 / 1e6;
    report.note("deliveries", seen.received);
    let per_million = usage.cpu_seconds() / millions.max(f64::EPSILON);
    let title = "service CPU seconds per million deliveries";
    match shape.row() {
        Some(row) => report.key_figure(title, row, per_million),
        None => report.note(title, rounded(per_million)),
    }
    usage.note(&mut report);
    report.note("RSS, MB", format!("{:.1}", megabytes(*memory)));
    let per_dashboard = *grown as f64 / dashboards.max(1) as f64 / 1e3;
    report.note("memory of one dashboard connection, KB", format!("{per_dashboard:.1}"));
    if let Some(latency) = seen.latencies.summary() {
        report.note("sample sent to dashboard received", latency);
        report.figure("sample to dashboard p99, ms", latency.p99.as_secs_f64() * 1000.0, Aim::Below(20.0));
    }
    report.note("messages that the service left out for slow readers", seen.dropped);
    report.must_be_zero("deliveries lost or doubled", ((sent * dashboards) as u64).abs_diff(seen.received));
    report.must_be_zero("samples not acknowledged", outcome.samples_sent - outcome.samples_acknowledged);
    if let Some(failure) = outcome.failure.or(seen.failure) {
        report.note("a connection failed", failure);
    }
    report
}

async fn open_dashboards(
    fixture: &Fixture,
    enrolled: &Enrolled,
    sent_times: &Arc<SentTimes>,
    count: usize,
) -> anyhow::Result<Vec<Dashboard>> {
    let (address, token) = (fixture.service.address(), fixture.rest.token());
    stream::iter(0..count)
        .map(|_| Dashboard::open(address, enrolled.server_id, token, sent_times.clone()))
        .buffer_unordered(CONCURRENT_HANDSHAKES)
        .try_collect()
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_dashboards_by_rate() {
        assert_eq!("500x10".parse(), Ok(Shape { dashboards: 500, samples_per_second: 10.0 }));
        assert_eq!("500x10".parse::<Shape>().map(Shape::row), Ok(Some(Row::Fanout500)));
        assert_eq!("500x11".parse::<Shape>().map(Shape::row), Ok(None));
        assert!("500".parse::<Shape>().is_err());
        assert!("1x0".parse::<Shape>().is_err());
        assert!("1x1001".parse::<Shape>().is_err());
    }
}
