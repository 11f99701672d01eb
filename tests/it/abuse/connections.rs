//! Connections that ask for nothing.

use tokio::io::AsyncReadExt;

use super::{HONEST, STRANGER};
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::site::Site;
use crate::support::socket::connect_from;
use crate::support::{Client, eventually};

/// The least that a service has.
const PLACES: usize = 64;

#[actix_web::test]
async fn connections_of_one_address_leave_room_for_others() {
    let site = Site::start_with(|config| config.shares.connections.places = PLACES).await;
    let connections = site.service.state.limits.shares.connections.clone();
    let mut sockets = Vec::new();
    for _ in 0..PLACES {
        sockets.push(connect_from(STRANGER, site.service.address).await);
    }

    // Those above its share are cut; the others would have to send something first.
    let mut last = sockets.pop().unwrap();
    let read = crate::support::in_time("the last is cut", last.read(&mut [0; 16])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    let inside = connections.inside();
    let honest = Client::from_address(format!("http://{}", site.service.address), HONEST);
    honest.get("/healthz").expect(200).await;

    assert!(inside <= PLACES / 2 + 1, "{inside} of {PLACES} are taken");
    drop(sockets);
    eventually("all are free again", || async { (connections.inside() == 0).then_some(()) }).await;
}

#[actix_web::test]
async fn agents_that_were_let_in_do_not_count_as_of_their_address() {
    let site = Site::start_with(|config| config.shares.connections.places = PLACES).await;
    let mut agents = Vec::new();
    for number in 0..PLACES / 2 + 4 {
        let (_, key) = site.service.server_with_key(&site.owner, &format!("server-{number}")).await;
        let attempt = || FakeAgent::attempt_from(HONEST, site.service.address, &key);
        agents.push(attempt().await.expect("it is let in"));
    }

    for agent in &mut agents {
        agent.store(1, vec![sample_aged(1)]).await;
    }
}
