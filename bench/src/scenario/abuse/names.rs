//! An agent with a huge number of names, users who request all of them at once, and a neighbour's agent whose acknowledgements
//! are measured at the same time.

use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::join_all;
use signalbox_protocol::agent::{AgentMessage, Metrics};
use signalbox_protocol::sample::ContainerUsage;
use signalbox_protocol::{Encoding, Sample, Timestamp};
use tokio::task::JoinHandle;

use super::AbuseArgs;
use crate::agent::AgentSocket;
use crate::fixture::{Enrolled, Fixture};
use crate::report::{Aim, Report, megabytes, progress};
use crate::rest::Rest;
use crate::stats::{Latencies, Summary};
use crate::stop::{Stop, StopSource};
use crate::template::busy_message;

const CONTAINERS: u64 = 1_024;
const SPACING_MS: i64 = 10;
/// The slowest acknowledgement of the neighbour, in seconds.
const SLOWEST: f64 = 0.5;
const MAX_MEGABYTES: f64 = 800.0;

pub async fn attack(fixture: &Fixture, args: &AbuseArgs) -> anyhow::Result<Report> {
    let address = fixture.service.address();
    let enrolled = fixture.fleet.first().context("no server")?;
    let theirs = neighbour(fixture).await?;

    let calm = beside(sending(&theirs, fixture), tokio::time::sleep(args.span)).await?.1;
    progress(format_args!("{} samples of {CONTAINERS} new containers each", args.names));
    let agent = AgentSocket::connect(address, enrolled).await?;
    let (sent, fed) = beside(sending(&theirs, fixture), send_names(agent, args.names)).await?;
    sent?;
    progress(format_args!("{} who ask for all names", args.readers));
    let path = format!("/metrics/{}/names", enrolled.server_id);
    let began = Instant::now();
    let asked = join_all((0..args.readers).map(|_| ask(&fixture.rest, &path)));
    let (answers, asked) = beside(sending(&theirs, fixture), asked).await?;
    let took = began.elapsed();

    let mut report = Report::new(format!("abuse: {} who ask for the names of {} samples", args.readers, args.names));
    report.note("acknowledgements of a neighbour, calm", calm);
    report.note("acknowledgements of a neighbour, while the names come in", fed);
    report.note("acknowledgements of a neighbour, while they are asked for", asked);
    let slowest = fed.max.max(asked.max).as_secs_f64();
    report.figure("slowest acknowledgement beside the attack, s", slowest, Aim::AtMost(SLOWEST));
    report.figure("RSS at most, MB", megabytes(fixture.service.peak_rss()?), Aim::AtMost(MAX_MEGABYTES));
    report.note("all answers took, s", format!("{:.2}", took.as_secs_f64()));
    let failed = answers.iter().filter(|answer| answer.is_err()).count();
    let bytes = answers.iter().flatten().max().copied().unwrap_or_default();
    report.note("largest answer, MB", format!("{:.2}", megabytes(bytes as u64)));
    report.must_be_zero("answers that failed", failed as u64);
    Ok(report)
}

/// A server of another account.
async fn neighbour(fixture: &Fixture) -> anyhow::Result<Enrolled> {
    let rest = Rest::register_as(fixture.service.address(), "neighbour").await?;
    let server_id = rest.create_server("theirs", &[]).await?;
    Ok(Enrolled { server_id, key: rest.create_key(server_id).await?.into() })
}

/// Starts the neighbour's agent, which sends a sample as soon as the last one is acknowledged.
fn sending(theirs: &Enrolled, fixture: &Fixture) -> (StopSource, JoinHandle<anyhow::Result<Summary>>) {
    let (source, stop) = StopSource::new();
    let (address, theirs) = (fixture.service.address(), theirs.clone());
    let sending = tokio::spawn(async move { send_on(AgentSocket::connect(address, &theirs).await?, stop).await });
    (source, sending)
}

/// The result of `attack`, and the neighbour's latencies during it.
async fn beside<T>(
    (source, sending): (StopSource, JoinHandle<anyhow::Result<Summary>>),
    attack: impl Future<Output = T>,
) -> anyhow::Result<(T, Summary)> {
    let outcome = attack.await;
    source.stop();
    Ok((outcome, sending.await??))
}

async fn send_on(mut agent: AgentSocket, stop: Stop) -> anyhow::Result<Summary> {
    let (mut latencies, mut last) = (Latencies::default(), Timestamp::default());
    for seq in 1.. {
        last = Timestamp::now().max(last.plus_millis(1));
        let began = Instant::now();
        agent.send(busy_message(seq, last, 50.0)?).await?;
        agent.next_ack().await?;
        latencies.record(began.elapsed());
        if stop.is_requested() {
            break;
        }
        // As frequent as an agent that is watched.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    agent.close().await;
    latencies.summary().context("nothing was sent")
}

async fn send_names(mut agent: AgentSocket, samples: u64) -> anyhow::Result<()> {
    let first = Timestamp::now().plus_millis(-SPACING_MS * i64::try_from(samples)?);
    for number in 0..samples {
        let at = first.plus_millis(SPACING_MS * i64::try_from(number)?);
        let metrics = Metrics { seq: number + 1, samples: vec![sample_of_new_containers(number, at)], sent_at: None };
        agent.send(Encoding::MessagePack.encode(&AgentMessage::Metrics(metrics))?).await?;
        agent.next_ack().await?;
    }
    agent.close().await;
    Ok(())
}

/// A sample whose containers were in none before.
fn sample_of_new_containers(number: u64, at: Timestamp) -> Sample {
    let container = |nth: u64| ContainerUsage {
        id: format!("{number:032x}{nth:032x}"),
        name: format!("build-{number}-{nth}"),
        cpu_percent: 1.5,
        memory_bytes: 1_000_000,
        ..ContainerUsage::default()
    };
    Sample { timestamp: at, containers: (0..CONTAINERS).map(container).collect(), ..Sample::default() }
}

/// Returns the length of the answer in bytes.
async fn ask(rest: &Rest, path: &str) -> anyhow::Result<usize> {
    Ok(rest.request(path).send().await?.error_for_status()?.bytes().await?.len())
}
