//! The servers of one tag as another account with a grant of the tag sees them, beside their owner, in turns.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::report::{Aim, Report, progress};
use crate::rest::{Rest, TAG};
use crate::service::{Service, ServiceOptions};
use crate::socket::{ATTEMPT_TIMEOUT, Socket};
use crate::stats::Latencies;

/// Requests at a time while servers are made.
const CONCURRENT_REQUESTS: usize = 16;

/// How much longer somebody waits who is not the owner.
const SLOWEST_RATIO: f64 = 1.3;

#[derive(Debug, Args)]
pub struct SharedArgs {
    /// Servers with the tag.
    #[arg(long, default_value_t = 10_000)]
    pub servers: usize,
    /// Grants to the other account: one of the tag, and the others of one server each.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub grants: u32,
    /// How often each of the two lists them.
    #[arg(long, default_value_t = 1_000)]
    pub turns: usize,
    /// How often each of the two opens the socket of all servers.
    #[arg(long, default_value_t = 100)]
    pub sockets: usize,
}

/// The latencies of both.
#[derive(Default)]
struct Both {
    owner: Latencies,
    viewer: Latencies,
}

pub async fn run(options: &ServiceOptions, args: &SharedArgs) -> anyhow::Result<()> {
    let service = Service::start(options).await?;
    let owner = Rest::register(service.address()).await?;
    let viewer = Rest::register_as(service.address(), "viewer").await?;
    progress(format_args!("making {} servers", args.servers));
    let tags = [TAG.to_owned()];
    let made: Vec<Uuid> = stream::iter(0..args.servers)
        .map(|number| {
            let (owner, tags) = (owner.clone(), &tags);
            async move { owner.create_server(&format!("server-{number:05}"), tags).await }
        })
        .buffer_unordered(CONCURRENT_REQUESTS)
        .try_collect()
        .await?;
    owner.grant("viewer", &json!({ "tag": TAG })).await?;
    for server_id in made.iter().take(args.grants.saturating_sub(1) as usize) {
        owner.grant("viewer", &json!({ "server_id": server_id })).await?;
    }

    let mut report = Report::new(format!("shared: {} servers, {} grants", args.servers, args.grants));
    progress(format_args!("{} turns of GET /servers", args.turns));
    let mut lists = Both::default();
    for _ in 0..args.turns {
        lists.owner.record(list(&owner, args.servers).await?);
        lists.viewer.record(list(&viewer, args.servers).await?);
    }
    tell(&mut report, "GET /servers", lists)?;
    progress(format_args!("{} turns of /ws/fleet", args.sockets));
    let mut walls = Both::default();
    for _ in 0..args.sockets {
        walls.owner.record(wall(&service, &owner, args.servers).await?);
        walls.viewer.record(wall(&service, &viewer, args.servers).await?);
    }
    tell(&mut report, "/ws/fleet, until all are there", walls)?;
    report.finish()
}

fn tell(report: &mut Report, what: &str, both: Both) -> anyhow::Result<()> {
    let owner = both.owner.summary().context("the owner was not measured")?;
    let viewer = both.viewer.summary().context("the viewer was not measured")?;
    let ratio = viewer.p99.as_secs_f64() / owner.p99.as_secs_f64();
    report.figure(format!("{what}, p99 of a viewer by that of the owner"), ratio, Aim::AtMost(SLOWEST_RATIO));
    report.note(format!("{what}, owner"), owner);
    report.note(format!("{what}, viewer"), viewer);
    Ok(())
}

/// The first page.
async fn list(rest: &Rest, servers: usize) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let answer = rest.request("/servers").send().await?.error_for_status()?;
    let total = answer.headers().get("x-total-count").and_then(|total| total.to_str().ok()?.parse().ok());
    answer.bytes().await?;
    let took = began.elapsed();
    anyhow::ensure!(total == Some(servers), "the list has {total:?} servers");
    Ok(took)
}

/// The part of a message that is read.
#[derive(Deserialize)]
struct FleetMessage {
    #[serde(default)]
    data: Fleet,
}

#[derive(Deserialize, Default)]
struct Fleet {
    #[serde(default)]
    servers: Vec<IgnoredAny>,
}

/// From the beginning of the connection until every server was shown.
async fn wall(service: &Service, rest: &Rest, servers: usize) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let mut socket = Socket::connect(service.address(), "/api/v1/ws/fleet", Some(rest.token())).await?;
    let all = async {
        let mut shown = 0;
        while shown < servers {
            if let Message::Text(text) = socket.next().await? {
                shown += serde_json::from_str::<FleetMessage>(&text)?.data.servers.len();
            }
        }
        anyhow::Ok(())
    };
    timeout(ATTEMPT_TIMEOUT, all).await.context("the servers were not shown in time")??;
    let took = began.elapsed();
    socket.close().await;
    Ok(took)
}
