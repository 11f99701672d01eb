//! One real agent that follows a file, and the dashboards that watch it.

mod tally;
mod watcher;
mod writer;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::watcher::{WatchReport, Watcher};
use self::writer::Pace;
use super::{join_all, seconds};
use crate::delay::{DelayWatch, Delays};
use crate::figures::Row;
use crate::fixture::{Enrolled, Fixture};
use crate::process::Cpu;
use crate::real_agent::{AgentOptions, RealAgent, flag};
use crate::report::{Report, megabytes, progress};
use crate::service::ServiceOptions;
use crate::stats::Summary;
use crate::stop::StopSource;

#[derive(Debug, Args)]
pub struct LogsArgs {
    #[command(flatten)]
    pub agent: AgentOptions,
    /// Lines of the first stretch.
    #[arg(long, default_value_t = 1_000_000)]
    pub lines: u64,
    /// Lines a second of the second stretch: more than anybody can read.
    #[arg(long, default_value_t = 500_000)]
    pub flood_rate: u64,
    /// Seconds of the second stretch.
    #[arg(long, default_value_t = 20)]
    pub flood: u64,
    #[arg(long, default_value_t = 120)]
    pub line_bytes: usize,
    #[arg(long, default_value_t = 10)]
    pub dashboards: usize,
    /// How many KiB the writer may be ahead of the slowest dashboard in the first period. An agent that is more than 8 MiB
    /// behind skips.
    #[arg(long, default_value_t = 4096)]
    pub ahead_kib: u64,
    /// Seconds between two samples.
    #[arg(long, default_value_t = 0.5)]
    pub interval: f64,
    /// Seconds without any log before the first stretch, for the delay of samples.
    #[arg(long, default_value = "60", value_parser = seconds)]
    pub quiet: Duration,
    /// Seconds that a stretch may take.
    #[arg(long, default_value = "300", value_parser = seconds)]
    pub patience: Duration,
}

/// The subject of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    /// The writer waits for the readers: nothing needs to be lost.
    Followed,
    /// The writer waits for nobody.
    Flooded,
}

impl Stretch {
    /// The row of the samples' delay during it.
    fn delay(self) -> Row {
        match self {
            Self::Followed => Row::LogsFollowed,
            Self::Flooded => Row::LogsFlooded,
        }
    }

    /// The number of its last line.
    fn lines(self, args: &LogsArgs) -> u64 {
        match self {
            Self::Followed => args.lines,
            Self::Flooded => args.flood_rate * args.flood,
        }
    }
}

/// How a stretch went.
struct Measured {
    /// From the first line written.
    elapsed: Vec<Duration>,
    writing: Duration,
    watched: Vec<WatchReport>,
    delays: Delays,
    service: Cpu,
    agent: Cpu,
    generator: Cpu,
}

/// A service, its agent, and the requests.
struct Site<'a> {
    args: &'a LogsArgs,
    fixture: &'a Fixture,
    enrolled: &'a Enrolled,
    agent: &'a RealAgent,
    folder: &'a Path,
}

pub async fn run(options: &ServiceOptions, args: &LogsArgs) -> anyhow::Result<()> {
    let fixture = Fixture::start(options, 1).await?;
    let enrolled = fixture.fleet.first().context("there is no server")?;
    let throw_away = tempfile::Builder::new().prefix("logs-").tempdir_in(fixture.service.work_dir())?;
    let folder = std::path::absolute(throw_away.path())?;
    let flags = [flag("--logs", "on"), flag("--log-path", &folder), flag("--interval", args.interval.to_string())];
    let agent = RealAgent::start(&args.agent, &fixture, enrolled, &flags.concat()).await?;
    let site = Site { args, fixture: &fixture, enrolled, agent: &agent, folder: &folder };

    progress(format_args!("no logs for {} s", args.quiet.as_secs()));
    let quiet = site.delays_during(sleep(args.quiet)).await?.0;
    report_quiet(&site, quiet)?.finish()?;
    let mut result = Ok(());
    for stretch in [Stretch::Followed, Stretch::Flooded] {
        // A fault of one period does not hide the figures of the next.
        let measured = site.measure(stretch).await?;
        result = result.and(report(&site, stretch, measured)?.finish());
    }
    result
}

impl Site<'_> {
    async fn measure(&self, stretch: Stretch) -> anyhow::Result<Measured> {
        let Self { args, fixture, enrolled, .. } = self;
        let path = self.folder.join(format!("{stretch:?}.log"));
        let file = writer::create(&path, args.line_bytes).await?;
        let mut watchers = Vec::new();
        for _ in 0..args.dashboards {
            watchers.push(Watcher::open(fixture, enrolled, &path.to_string_lossy()).await?);
        }
        let pace = match stretch {
            Stretch::Followed => Pace::Ahead {
                lines: args.ahead_kib * 1024 / args.line_bytes.max(1) as u64,
                readers: watchers.iter().map(Watcher::seen).collect(),
            },
            Stretch::Flooded => Pace::Rate(args.flood_rate),
        };
        let lines = stretch.lines(args);
        progress(format_args!("{lines} lines to {} dashboards, {stretch:?}", args.dashboards));
        let this = std::process::id();
        let before = (fixture.service.cpu()?, self.agent.cpu()?, Cpu::of(this)?);
        let (start, deadline) = (Instant::now(), Instant::now() + args.patience);
        let mut reading = JoinSet::new();
        for watcher in watchers {
            reading.spawn(watcher.run(lines, deadline));
        }
        let writing = tokio::spawn(writer::write(file, lines, args.line_bytes, pace, deadline));
        let (delays, watched) = self.delays_during(join_all(reading)).await?;
        let watched = watched?;
        Ok(Measured {
            elapsed: watched.iter().filter_map(|one| Some(one.ended?.duration_since(start))).collect(),
            writing: writing.await??,
            watched,
            delays,
            service: fixture.service.cpu()?.since(before.0),
            agent: self.agent.cpu()?.since(before.1),
            generator: Cpu::of(this)?.since(before.2),
        })
    }

    /// The delay of samples during `what`.
    async fn delays_during<T>(&self, what: impl Future<Output = T>) -> anyhow::Result<(Delays, T)> {
        let (address, token) = (self.fixture.service.address(), self.fixture.rest.token());
        let watch = DelayWatch::open(address, self.enrolled.server_id, token).await?;
        let (source, stop) = StopSource::new();
        let watching = tokio::spawn(watch.run(stop));
        let outcome = what.await;
        source.stop();
        Ok((watching.await?, outcome))
    }
}

fn report_quiet(site: &Site<'_>, quiet: Delays) -> anyhow::Result<Report> {
    let mut report = Report::new("logs: before, nobody watches a log");
    note_delays(&mut report, quiet, |report, summary| report.note("sample taken to dashboard received", summary));
    note_memory(&mut report, site)?;
    Ok(report)
}

fn report(site: &Site<'_>, stretch: Stretch, measured: Measured) -> anyhow::Result<Report> {
    let LogsArgs { line_bytes, dashboards, flood_rate, .. } = site.args;
    let lines = stretch.lines(site.args);
    let how = match stretch {
        Stretch::Followed => "as fast as they are read".to_owned(),
        Stretch::Flooded => format!("{flood_rate} a second whether or not anybody reads"),
    };
    let mut report =
        Report::new(format!("logs: {lines} lines of {line_bytes} bytes to {dashboards} dashboards, written {how}"));
    let slowest = measured.elapsed.iter().max().copied().unwrap_or(site.args.patience).as_secs_f64();
    let received: Vec<u64> = measured.watched.iter().map(|one| one.tally.received).collect();
    let (least, sum) = (received.iter().min().copied().unwrap_or_default(), received.iter().sum::<u64>());
    let title = "lines/s delivered to each dashboard (the slowest)";
    match stretch {
        Stretch::Followed => report.key_figure(title, Row::LogsLines, least as f64 / slowest),
        Stretch::Flooded => report.note(title, format!("{:.0}", least as f64 / slowest)),
    }
    report.note("lines/s delivered in all", format!("{:.0}", sum as f64 / slowest));
    report.note(
        "written and read to the end within, s",
        format!("{:.2} and {slowest:.2}", measured.writing.as_secs_f64()),
    );
    let told = || measured.watched.iter().map(|one| one.tally.told);
    let (fewest, most) = (told().min().unwrap_or_default(), told().max().unwrap_or_default());
    report.note("lines dropped and told, fewest and most", format!("{fewest} and {most}"));
    note_usage(&mut report, &measured, sum);
    note_delays(&mut report, measured.delays, |report, summary| {
        report.note("sample taken to dashboard received", summary);
        report.key_figure("sample to dashboard p99, ms", stretch.delay(), summary.p99.as_secs_f64() * 1e3);
    });
    note_memory(&mut report, site)?;
    note_faults(&mut report, stretch, &measured.watched);
    Ok(report)
}

fn note_usage(report: &mut Report, measured: &Measured, deliveries: u64) {
    let seconds = |cpu: Cpu| cpu.total().as_secs_f64();
    let Measured { service, agent, generator, .. } = measured;
    let all = [service, agent, generator].map(|cpu| format!("{:.1}", seconds(*cpu))).join(", ");
    report.note("CPU seconds of service, agent and generator", all);
    let per_million = seconds(*service) / (deliveries as f64 / 1e6).max(f64::EPSILON);
    report.note("service CPU seconds per million deliveries", format!("{per_million:.1}"));
}

fn note_delays(report: &mut Report, delays: Delays, note: impl FnOnce(&mut Report, Summary)) {
    match delays.latencies.summary() {
        Some(summary) => note(report, summary),
        None => report.note("sample taken to dashboard received", "none came"),
    }
    if let Some(failure) = delays.failure {
        report.note("the dashboard of samples failed", failure);
    }
}

fn note_memory(report: &mut Report, site: &Site<'_>) -> anyhow::Result<()> {
    let (service, agent) = (&site.fixture.service, site.agent);
    for (name, rss, peak) in [
        ("RSS of the service and its peak so far, MB", service.memory()?.rss, service.peak_rss()?),
        ("RSS of the agent and its peak so far, MB", agent.memory()?.rss, agent.peak_rss()?),
    ] {
        report.note(name, format!("{:.1}, {:.1}", megabytes(rss), megabytes(peak)));
    }
    Ok(())
}

fn note_faults(report: &mut Report, stretch: Stretch, watched: &[WatchReport]) {
    let untold = watched.iter().map(|one| one.tally.missing().abs_diff(one.tally.told)).sum::<u64>();
    match stretch {
        Stretch::Followed => report.must_be_zero("lines missing and not reported, or the reverse", untold),
        // Beyond 64 MiB the agent estimates how many lines it skips.
        Stretch::Flooded => report.note("lines missing and not reported, or the reverse", untold),
    }
    report.must_be_zero("lines doubled or out of order", watched.iter().map(|one| one.tally.disordered).sum());
    report.must_be_zero(
        "dashboards without the last line",
        watched.iter().filter(|one| one.ended.is_none()).count() as u64,
    );
    if let Some(failure) = watched.iter().find_map(|one| one.failure.as_ref()) {
        report.note("a dashboard failed", failure);
    }
}
