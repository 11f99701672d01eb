//! Sockets of agents that send nothing, and agents that do.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use signalbox::config::Config;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{FORWARDED_FOR, HONEST, HONEST_BEHIND, STRANGER, STRANGER_BEHIND};
use crate::support::agent::{AGENT_PATH, FakeAgent, sample_aged};
use crate::support::raw::upgrade_request;
use crate::support::site::Site;
use crate::support::socket::connect_from;
use crate::support::{behind_a_proxy, eventually, in_time};

const SEATS: usize = 1_024;
const SILENT: usize = 1_030;
const AGENTS: usize = 25;

fn crowded(config: &mut Config) {
    // Longer than the test, so that no silent socket is closed for its silence.
    config.timing.auth_deadline = Duration::from_secs(600);
    config.shares.silent_agents = SEATS;
}

/// An upgraded socket that says nothing, whether it is kept or not.
async fn silent(from: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let mut socket = connect_from(from, address).await;
    socket.write_all(upgrade_request(AGENT_PATH, None).as_bytes()).await.unwrap();
    socket
}

/// Silent sockets of one address, as many as there are seats for; and some more.
async fn crowd(site: &Site) -> Vec<TcpStream> {
    let sockets = (0..SILENT).map(|_| silent(STRANGER, site.service.address));
    let sockets = in_time("the crowd", join_all(sockets)).await;
    let seats = site.service.state.limits.shares.silent_agents.clone();
    eventually("all seats are taken", || async { (seats.taken() == SEATS).then_some(()) }).await;
    sockets
}

#[actix_web::test]
async fn silent_sockets_of_one_address_keep_no_agent_out() {
    let site = Site::start_with(crowded).await;
    let mut keys = Vec::new();
    for number in 0..AGENTS {
        keys.push(site.service.server_with_key(&site.owner, &format!("server-{number}")).await.1);
    }
    let _crowd = crowd(&site).await;
    let (elsewhere, beside) = keys.split_at(15);

    let mut agents = Vec::new();
    for key in elsewhere {
        let agent = FakeAgent::attempt_from(HONEST, site.service.address, key).await;
        agents.push(agent.expect("an agent of another address is let in at once"));
    }
    for key in beside {
        // A connection that has just arrived may be about to send something, so these may have to try again, as agents do.
        let attempt = || FakeAgent::attempt_from(STRANGER, site.service.address, key);
        agents.push(eventually("an agent of the same address is let in", attempt).await);
    }

    assert_eq!(agents.len(), AGENTS);
    for agent in &mut agents {
        agent.store(1, vec![sample_aged(1)]).await;
    }
    let metrics = site.service.root.get("/metrics").send().await.text;
    assert!(metrics.contains("signalbox_shares_evicted_total{pool=\"silent_agents\"}"), "{metrics}");
}

#[actix_web::test]
async fn behind_a_proxy_silent_sockets_of_one_client_keep_no_agent_out() {
    let site = Site::start_with(|config| {
        crowded(config);
        behind_a_proxy(config);
        config.shares.silent_agents = 64;
    })
    .await;
    let mut keys = Vec::new();
    for number in 0..AGENTS {
        keys.push(site.service.server_with_key(&site.owner, &format!("server-{number}")).await.1);
    }
    let address = site.service.address;
    let request = upgrade_request(AGENT_PATH, None);
    let request = request.replacen("\r\n", &format!("\r\n{FORWARDED_FOR}: {STRANGER_BEHIND}\r\n"), 1);
    let mut crowd = Vec::new();
    for _ in 0..70 {
        let mut socket = connect_from(HONEST, address).await;
        socket.write_all(request.as_bytes()).await.unwrap();
        crowd.push(socket);
    }
    let seats = site.service.state.limits.shares.silent_agents.clone();
    eventually("all seats are taken", || async { (seats.taken() == 64).then_some(()) }).await;

    for key in &keys {
        let tcp = connect_from(HONEST, address).await;
        let agent = FakeAgent::attempt(tcp, address, key, &[(FORWARDED_FOR, HONEST_BEHIND)]).await;
        let mut agent = agent.expect("an agent that another client of the proxy is is let in at once");
        agent.store(1, vec![sample_aged(1)]).await;
    }
}

#[actix_web::test]
async fn one_that_gives_way_learns_that_it_is_crowded() {
    let site = Site::start_with(|config| {
        crowded(config);
        config.shares.silent_agents = 1;
    })
    .await;
    let mut silent = FakeAgent::connect(site.service.address, signalbox_protocol::Encoding::Json).await;
    let seats = site.service.state.limits.shares.silent_agents.clone();
    eventually("the seat is taken", || async { (seats.taken() == 1).then_some(()) }).await;

    let attempt = || FakeAgent::attempt_from(STRANGER, site.service.address, &site.key);
    let _agent = eventually("the agent is let in", attempt).await;

    silent.expect_close(1013).await;
    assert_eq!(seats.taken(), 0);
}
