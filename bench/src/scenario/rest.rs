//! `GET /metrics/{id}` beside a bare hello of the same framework, in turns.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use signalbox_protocol::Timestamp;

use super::seconds;
use crate::agent::AgentSocket;
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::hello;
use crate::report::{Report, progress};
use crate::service::ServiceOptions;
use crate::stats::median;
use crate::template::Template;
use crate::wrk;

#[derive(Debug, Args)]
pub struct RestArgs {
    /// Connections that are kept alive.
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
    /// Turns; the medians of both sides are compared.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Seconds of one side's turn.
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub duration: Duration,
    /// Worker threads of the hello; by default as many as the framework starts, which is what the service has too.
    #[arg(long)]
    pub workers: Option<usize>,
}

pub async fn run(options: &ServiceOptions, args: &RestArgs) -> anyhow::Result<()> {
    let fixture = Fixture::start(options, 1).await?;
    let enrolled = fixture.fleet.first().context("there is no server")?;
    let mut agent = AgentSocket::connect(fixture.service.address(), enrolled).await?;
    let taken = Timestamp::now();
    agent.send(Template::new(1)?.message(1, taken, 0)).await?;
    agent.next_ack().await?;
    anyhow::ensure!(fixture.rest.latest(enrolled.server_id).await?.timestamp == taken, "another sample is the latest");

    let hello = hello::start(&options.work_dir, args.workers).await?;
    let hello_url = format!("http://{}/", hello.address);
    let metrics_url = fixture.rest.url(&format!("/metrics/{}", enrolled.server_id));
    let (mut hellos, mut metrics, mut errors) = (Vec::new(), Vec::new(), 0);
    for round in 1..=args.rounds.max(1) {
        progress(format_args!("round {round} of {}", args.rounds));
        for (url, rates) in [(&hello_url, &mut hellos), (&metrics_url, &mut metrics)] {
            let result = wrk::run(url, args.connections, args.duration, fixture.rest.token()).await?;
            rates.push(result.requests_per_second);
            errors += result.errors;
        }
    }

    let hello_rate = median(&hellos).context("hello was not measured")?;
    let metrics_rate = median(&metrics).context("the service was not measured")?;
    let mut report = Report::new(format!("rest: GET /metrics/{{id}} on {} connections", args.connections));
    report.note("hello, requests/s (median; all rounds)", listed(hello_rate, &hellos));
    report.note("GET /metrics/{id}, requests/s (median; all rounds)", listed(metrics_rate, &metrics));
    report.key_figure("ratio, %", Row::RestOfHello, metrics_rate / hello_rate * 100.0);
    report.record(Row::RestRequests, metrics_rate);
    report.must_be_zero("answers that were no success", errors);
    report.finish()
}

fn listed(median: f64, rates: &[f64]) -> String {
    let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    format!("{median:.0} ({})", rates.join(", "))
}
