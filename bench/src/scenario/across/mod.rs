//! Three instances: the cost of asking another instance than the agent's, the traffic over NATS, and the fate of the agents of
//! an instance that is killed.

mod loss;
mod round_trips;
mod traffic;

use std::time::Duration;

use clap::Args;

use super::seconds;
use crate::cluster::Cluster;
use crate::limits::check_connections;
use crate::real_agent::AgentOptions;
use crate::report::{Report, in_one_line, progress};
use crate::service::ServiceOptions;

/// Most of it needs two: the agent's, and another one. A third one shows that it is not involved.
const INSTANCES: usize = 3;

#[derive(Debug, Args)]
pub struct AcrossArgs {
    #[command(flatten)]
    pub agent: AgentOptions,
    /// Commands and calls of each kind, at the agent's instance and at another one each.
    #[arg(long, default_value_t = 500)]
    pub turns: usize,
    /// Clients that call at the same time.
    #[arg(long, default_value_t = 16)]
    pub clients: usize,
    /// How often calls are counted in each way.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds of each time.
    #[arg(long, default_value = "3", value_parser = seconds)]
    pub call_duration: Duration,
    /// Servers that send while what goes over NATS is counted.
    #[arg(long, default_value_t = 100)]
    pub senders: usize,
    /// Seconds between two samples of these.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// Seconds that are counted each time.
    #[arg(long, default_value = "15", value_parser = seconds)]
    pub duration: Duration,
    /// Agents, a third of them at the instance that is killed.
    #[arg(long, default_value_t = 90)]
    pub spread: usize,
}

pub async fn run(options: &ServiceOptions, args: &AcrossArgs) -> anyhow::Result<()> {
    let answering = round_trips::AGENTS;
    check_connections(args.senders + args.spread + answering)?;
    let mut cluster = Cluster::start(options, answering + args.senders + args.spread).await?;
    cluster.resize(INSTANCES).await?;
    let mut report = Report::new("across: three instances on one PostgreSQL and one NATS server");
    // First, while nothing else happens.
    progress("counting what goes over NATS");
    let measured = traffic::measure(&cluster, args, answering, &mut report).await;
    note_part(&mut report, "what goes over NATS", measured);
    progress("commands and calls, at the agent's instance and at another one in turns");
    let measured = round_trips::measure(&cluster, args, &mut report).await;
    note_part(&mut report, "commands and calls", measured);
    progress("killing an instance");
    let measured = loss::measure(&mut cluster, args, answering + args.senders, &mut report).await;
    note_part(&mut report, "an instance that is killed", measured);
    report.finish()
}

/// A part that failed is a fault, and the others are measured all the same.
fn note_part(report: &mut Report, part: &str, measured: anyhow::Result<()>) {
    report.must_be_zero(format!("{part}: failed"), u64::from(measured.is_err()));
    if let Err(error) = measured {
        report.note(format!("{part}: why"), in_one_line(&error));
    }
}
