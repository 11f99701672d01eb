//! A crowd of connections that show no key.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use crate::support::agent::sample_aged;
use crate::support::raw::{End, RawSocket};
use crate::support::site::Site;
use crate::support::{PATIENCE, in_time};

/// Those that may be there without having shown a key, and more.
const SEATS: usize = 1_024;
const CROWD: usize = 1_500;

/// Longer than the test, so that only the gate can close a connection.
const NO_DEADLINE: Duration = Duration::from_secs(600);

#[actix_web::test]
async fn a_crowd_without_keys_is_bounded_and_keeps_no_agent_out() {
    let site = Site::start_with(|config| {
        config.timing.auth_deadline = NO_DEADLINE;
        config.shares.silent_agents = SEATS;
    })
    .await;
    let mut agent = site.agent().await;

    let crowd = (0..CROWD).map(|_| RawSocket::upgrade(site.service.address, "/agents/ws", None));
    let crowd = in_time("the crowd", join_all(crowd)).await;

    let end = |socket: Result<RawSocket, u16>| async move { socket.expect("it is upgraded").end().await };
    let mut ends: FuturesUnordered<_> = crowd.into_iter().map(end).collect();
    for _ in SEATS..CROWD {
        assert_eq!(in_time("one gives way", ends.next()).await, Some(End::Closed(1013)));
    }
    agent.store(1, vec![sample_aged(1)]).await;
    assert_eq!(site.server().await["status"], "online");

    drop(ends);
    let mut newcomer = in_time("the newcomer", site.agent()).await;
    newcomer.store(2, vec![sample_aged(0)]).await;
}

#[actix_web::test]
async fn strangers_who_leave_in_turn_never_fill_the_gate() {
    let site = Site::start_with(|config| config.timing.auth_deadline = NO_DEADLINE).await;

    for _ in 0..CROWD / 10 {
        let batch = (0..10).map(|_| RawSocket::upgrade(site.service.address, "/agents/ws", None));
        let batch = tokio::time::timeout(PATIENCE, join_all(batch)).await.unwrap();
        assert!(batch.iter().all(Result::is_ok), "{:?}", batch.iter().filter_map(|one| one.as_ref().err()).next());
    }

    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(1)]).await;
}
