//! From a sample that crosses a threshold to the notified clients, compared with Prometheus and Alertmanager in the same run.

mod ours;
mod peers;

use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;

use self::ours::{Measured, Site};
use self::peers::{Missed, Peer};
use super::{join_all, seconds};
use crate::agent::{Outcome, Regular, RegularPlan, Source, connect_all};
use crate::figures::Row;
use crate::fixture::{Enrolled, Fixture};
use crate::limits::check_connections;
use crate::peer::Setting;
use crate::report::{Report, progress};
use crate::service::ServiceOptions;
use crate::stats::Summary;
use crate::stop::{Stop, StopSource};
use crate::template::Template;
use crate::usage::{Stretch, Usage};

/// The most channels of a user.
const CHANNELS: u64 = 50;

#[derive(Debug, Args)]
pub struct AlertArgs {
    /// Samples that cross, one after the other.
    #[arg(long, default_value_t = 400)]
    pub crossings: usize,
    /// Servers that they come from in turns, each with a channel of its own: a channel that has sent an alert collects the
    /// next ones for 5 s.
    #[arg(long, default_value_t = CHANNELS, value_parser = clap::value_parser!(u64).range(1..=CHANNELS))]
    pub servers: u64,
    /// Seconds between two crossings, on average.
    #[arg(long, default_value = "0.2", value_parser = seconds)]
    pub spacing: Duration,
    /// Agents that send a sample per second during that time.
    #[arg(long, default_value_t = 200)]
    pub background: usize,
    /// Series that cross before Prometheus and Alertmanager at their defaults; 0 leaves them out.
    #[arg(long, default_value_t = 6)]
    pub peer_crossings: usize,
    /// Series that cross before them looking every 5 s; 0 leaves them out.
    #[arg(long, default_value_t = 20)]
    pub tuned_crossings: usize,
}

pub async fn run(options: &ServiceOptions, args: &AlertArgs) -> anyhow::Result<()> {
    let servers = usize::try_from(args.servers)?;
    // Of each server that crosses an agent and a dashboard, and the service's own calls.
    check_connections(servers * 3 + args.background)?;
    let fixture =
        Fixture::start_tagged(&options.with_webhooks(), servers + args.background, |number| tags(number, servers))
            .await?;
    let (crossing, background) = fixture.fleet.split_at(servers);
    let (source, stop) = StopSource::new();
    let agents = start_background(&fixture, background, &stop).await?;
    let mut site = Site::open(&fixture, crossing, &stop).await?;
    let (defaults, tuned, ours) = tokio::join!(
        peers::measure(options, Setting::DEFAULTS, args.peer_crossings),
        peers::measure(options, Setting::TUNED, args.tuned_crossings),
        measure(&fixture, &mut site, args),
    );
    source.stop();
    let mut outcome = Outcome::default();
    join_all(agents).await?.into_iter().for_each(|one| outcome.merge(one));
    let (measured, usage) = ours?;
    let failure = outcome.failure.take().or(site.close().await?);
    let mut report = Report::new(format!(
        "alert: {} crossings one after the other, {} agents beside it at a sample a second",
        args.crossings, args.background
    ));
    report_ours(&mut report, args, measured, &usage);
    report_peer(&mut report, &Setting::DEFAULTS, defaults);
    report_peer(&mut report, &Setting::TUNED, tuned);
    report.must_be_zero("samples not acknowledged", outcome.samples_sent - outcome.samples_acknowledged);
    if let Some(failure) = failure {
        report.note("a connection failed", failure);
    }
    report.finish()
}

/// The tag that the threshold watches, and one for the server's own channel.
fn tags(number: usize, servers: usize) -> Vec<String> {
    if number < servers { vec![ours::WATCHED.to_owned(), ours::channel(number)] } else { Vec::new() }
}

async fn start_background(fixture: &Fixture, fleet: &[Enrolled], stop: &Stop) -> anyhow::Result<JoinSet<Outcome>> {
    progress(format_args!("connecting {} agents", fleet.len()));
    let plan = RegularPlan { interval: Duration::from_secs(1), acknowledged: std::sync::Arc::default() };
    let template = Template::new(1)?;
    let mut agents = JoinSet::new();
    for socket in connect_all(fixture.service.address(), fleet).await? {
        let source = Source::Template(template.clone());
        agents.spawn(Regular { plan: plan.clone(), source, socket, sent_times: None }.run(stop.clone()));
    }
    Ok(agents)
}

async fn measure(fixture: &Fixture, site: &mut Site, args: &AlertArgs) -> anyhow::Result<(Measured, Usage)> {
    progress(format_args!("{} crossings", args.crossings));
    let stretch = Stretch::begin(&fixture.service)?;
    let mut measured = site.cross(args.crossings, args.spacing).await?;
    let usage = stretch.end(&fixture.service)?;
    measured.unexpected += fixture.rest.alert_count().await?.abs_diff(args.crossings as u64);
    Ok((measured, usage))
}

fn report_ours(report: &mut Report, args: &AlertArgs, measured: Measured, usage: &Usage) {
    let Measured { server, all, webhook, recovered, missing, unexpected } = measured;
    let p99 = |summary: Summary| summary.p99.as_secs_f64() * 1e3;
    for (name, latencies, row) in [
        ("/ws/metrics/{id}", server, Row::AlertServer),
        ("/ws/alerts", all, Row::AlertAll),
        ("a webhook", webhook, Row::AlertWebhook),
    ] {
        let Some(summary) = latencies.summary() else { continue };
        report.note(format!("crossing sample sent to alert at {name}"), summary);
        report.key_figure(format!("the same, p99, ms, at {name}"), row, p99(summary));
    }
    if let Some(summary) = recovered.summary() {
        report.note("recovering sample sent to both sockets told", summary);
    }
    report.note("service CPU, % of one core", format!("{:.1}", usage.cpu_percent()));
    usage.note(report);
    report.note("servers and channels in turns", args.servers);
    report.must_be_zero("alerts that a client did not receive", missing);
    report.must_be_zero("alerts too many or too few", unexpected);
}

fn report_peer(report: &mut Report, setting: &Setting, peer: anyhow::Result<Option<Peer>>) {
    let name = format!("Prometheus and Alertmanager, {}", setting.name);
    match peer {
        Ok(Some(Peer { fired, called, missed })) => {
            if let Some(summary) = fired.summary() {
                report.note(format!("{name}: crossed to firing"), in_seconds(summary));
            }
            if let Some(summary) = called.summary() {
                report.note(format!("{name}: crossed to a webhook"), in_seconds(summary));
            }
            if let Missed(count @ 1..) = missed {
                report.note(format!("{name}: never reported"), count);
            }
        }
        Ok(None) => report.note(name, "left out"),
        Err(error) => report.note(name, format!("absent: {}", error.root_cause())),
    }
}

fn in_seconds(summary: Summary) -> String {
    let Summary { count, p50, p99, max, .. } = summary;
    let [p50, p99, max] = [p50, p99, max].map(|latency| format!("{:.1}", latency.as_secs_f64()));
    format!("p50 {p50} s, p99 {p99} s, max {max} s of {count}")
}
