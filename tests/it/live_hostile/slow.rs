//! A dashboard that stops to read while samples flow.

use std::ops::RangeInclusive;
use std::time::Duration;

use signalbox_protocol::Encoding;
use tempfile::TempDir;

use crate::support::agent::{FakeAgent, large_sample, sample_aged};
use crate::support::attacks::MAX_GROWTH_MEBIBYTES;
use crate::support::dashboard::Dashboard;
use crate::support::eventually;
use crate::support::process::ServiceProcess;
use crate::support::raw::RawSocket;
use crate::support::site::Site;

/// 25 MB: more than the kernel keeps for the two ends of a socket.
const ENOUGH_TO_BLOCK: u64 = 100;

/// 100 MB: far more than the service's memory may grow by.
const ENOUGH_TO_HURT: u64 = 400;

/// 25 MB: everything that the store and the allocator keep of such samples, with or without dashboards, is allocated before
/// memory is measured.
const ENOUGH_TO_WARM: u64 = 100;

/// Streams large samples with these numbers, and asserts that the reader gets every one of them.
async fn stream(seqs: RangeInclusive<u64>, agent: &mut FakeAgent, reader: &mut Dashboard) {
    let last = *seqs.end();
    for seq in seqs {
        let sample = large_sample((ENOUGH_TO_WARM + ENOUGH_TO_HURT - seq) as i64);
        let time = sample.timestamp.to_string();

        agent.send_metrics(seq, vec![sample]).await;

        assert_eq!(reader.until("metrics").await["timestamp"], time);
    }
    agent.expect_ack(last).await;
}

#[actix_web::test]
async fn a_dashboard_that_never_reads_costs_no_memory_and_harms_nobody() {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let mut agent = FakeAgent::online_in(service.address, &prepared.key, Encoding::MessagePack).await;
    let mut reader = Dashboard::watch(service.address, prepared.server_id, &prepared.token).await;
    stream(1..=ENOUGH_TO_WARM, &mut agent, &mut reader).await;
    let memory = service.watch_memory();
    let stuck = RawSocket::dashboard(service.address, prepared.server_id, &prepared.token).await;

    stream(ENOUGH_TO_WARM + 1..=ENOUGH_TO_WARM + ENOUGH_TO_HURT, &mut agent, &mut reader).await;

    memory.expect_growth_below(MAX_GROWTH_MEBIBYTES);
    drop(stuck);
}

#[actix_web::test]
async fn a_dashboard_that_never_reads_is_dropped_in_the_end() {
    let site = Site::start_with(|config| {
        config.timing.ping_interval = Duration::from_millis(500);
        // A socket that is read answers its pings, but not while the test waits for the other.
        config.timing.silence_limit = Duration::from_secs(8);
    })
    .await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let mut reader = site.dashboard().await;
    let stuck = RawSocket::dashboard(site.service.address, site.server_id, &site.owner.token).await;
    assert!(stuck.is_held_by_peer(), "the service holds its end at first");

    stream(1..=ENOUGH_TO_BLOCK, &mut agent, &mut reader).await;

    let dropped =
        eventually("the service drops the reader that is stuck", async || (!stuck.is_held_by_peer()).then_some(()));
    // To read is to answer pings; there is nothing else to read.
    tokio::select! {
        () = dropped => {}
        message = reader.next() => panic!("unexpected: {message}"),
        message = agent.next() => panic!("unexpected: {message:?}"),
    }
    agent.store(ENOUGH_TO_BLOCK + 1, vec![sample_aged(0)]).await;
    reader.until("metrics").await;
}
