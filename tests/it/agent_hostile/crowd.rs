//! A crowd of connections that show no key.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::raw::{End, RawSocket};
use crate::support::site::Site;
use crate::support::{PATIENCE, eventually, in_time};

/// More than a service may hold that have shown no key.
const CROWD: usize = 1_500;

/// Longer than the test, so that only the gate can send somebody away.
const NO_DEADLINE: Duration = Duration::from_secs(600);

/// What became of one of the crowd: held, or the HTTP status or close code of its refusal.
type Fate = Result<RawSocket, u16>;

/// Joins the crowd: refused at the upgrade, closed soon after it, or held.
async fn join_crowd(address: SocketAddr) -> Fate {
    let mut socket = RawSocket::upgrade(address, "/agents/ws", None).await?;
    match tokio::time::timeout(Duration::from_millis(500), socket.end()).await {
        Ok(End::Closed(code)) => Err(code),
        Ok(End::Cut) => Err(0),
        Err(_) => Ok(socket),
    }
}

#[actix_web::test]
async fn a_crowd_without_keys_is_bounded_and_keeps_no_agent_out() {
    let site = Site::start_with(|config| config.timing.auth_deadline = NO_DEADLINE).await;
    let mut agent = site.agent().await;

    let crowd = in_time("the crowd", join_all((0..CROWD).map(|_| join_crowd(site.service.address)))).await;

    let refusals: Vec<u16> = crowd.iter().filter_map(|fate| fate.as_ref().err().copied()).collect();
    assert!(!refusals.is_empty(), "all {CROWD} are held");
    let undocumented: Vec<_> = refusals.iter().filter(|code| ![503, 1013].contains(*code)).collect();
    assert!(undocumented.is_empty(), "refused with {undocumented:?}");
    agent.store(1, vec![sample_aged(1)]).await;
    assert_eq!(site.server().await["status"], "online");

    drop(crowd);
    let mut newcomer = eventually("the gate is open again", || newcomer(&site)).await;
    newcomer.store(2, vec![sample_aged(0)]).await;
}

/// A new session of the server's agent, once one is let in.
async fn newcomer(site: &Site) -> Option<FakeAgent> {
    let _held = join_crowd(site.service.address).await.ok()?;
    Some(in_time("the newcomer", site.agent()).await)
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
