//! Peers that send nothing, or send it slowly.

use std::time::{Duration, Instant};

use signalbox::config::Config;
use signalbox_protocol::Encoding;
use tokio::time::interval;

use crate::support::PATIENCE;
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::raw::{End, FIN, PING, RawSocket, TEXT, frame, header, upgrade_request};
use crate::support::site::Site;

/// Far longer than the answer to a ping takes on a machine under load.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// Enough for an agent that shows its key at once.
const AUTH_DEADLINE: Duration = Duration::from_secs(6);

fn impatient(config: &mut Config) {
    config.timing.ping_interval = Duration::from_millis(300);
    config.timing.silence_limit = SILENCE_LIMIT;
}

#[actix_web::test]
async fn the_service_pings() {
    let site = Site::start_with(impatient).await;
    let mut socket = RawSocket::authenticated_agent(site.service.address, &site.key).await;

    for _ in 0..2 {
        assert_eq!(socket.next_frame().await.map(|frame| frame.opcode), Some(PING));
    }
}

#[actix_web::test]
async fn an_agent_that_answers_no_ping_is_dropped_and_offline() {
    let site = Site::start_with(impatient).await;
    let mut socket = RawSocket::authenticated_agent(site.service.address, &site.key).await;
    let began = Instant::now();
    site.until_status("online").await;

    socket.end().await;

    assert!(began.elapsed() >= SILENCE_LIMIT / 2, "dropped after {:?}", began.elapsed());
    site.until_status("offline").await;
}

#[actix_web::test]
async fn an_agent_that_answers_pings_stays() {
    let site = Site::start_with(impatient).await;
    let mut agent = site.agent().await;

    // Reading answers the pings. Two limits pass before it sends again.
    let quiet = tokio::time::timeout(SILENCE_LIMIT * 2, agent.next()).await;

    assert!(quiet.is_err(), "{quiet:?}");
    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn a_connection_that_asks_for_nothing_is_dropped() {
    let site = Site::start().await;
    let mut socket = RawSocket::connect(site.service.address).await;

    let answer = socket.read_to_end().await;

    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
}

const HALF_A_HEAD: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: local";

const OTHER_HALF: &[u8] = b"host\r\n\r\n";

/// Sends the other half of a request's head, and reads the answer.
async fn ask_on(socket: &mut RawSocket) {
    socket.write(OTHER_HALF).await.unwrap();
    assert_eq!(socket.status().await, 200);
    socket.pass_over_body().await;
}

/// A connection on which a request was answered, and half the head of the next one was sent.
async fn half_asked_again(site: &Site) -> RawSocket {
    let mut socket = RawSocket::connect(site.service.address).await;
    socket.write(HALF_A_HEAD).await.unwrap();
    ask_on(&mut socket).await;
    socket.write(HALF_A_HEAD).await.unwrap();
    socket
}

#[actix_web::test]
async fn a_connection_that_asks_again_by_half_is_dropped() {
    let site = Site::start().await;
    let mut socket = half_asked_again(&site).await;

    let answer = socket.read_to_end().await;

    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
}

#[actix_web::test]
async fn a_connection_that_asks_again_byte_by_byte_is_cut() {
    let site = Site::start().await;
    let mut slow = half_asked_again(&site).await;

    let took = trickle(&mut slow, b"x").await;

    assert!(took < PATIENCE, "it is still being heard after {took:?}");
}

#[actix_web::test]
async fn a_connection_that_asks_again_in_two_parts_is_answered() {
    let site = Site::start().await;
    let mut socket = half_asked_again(&site).await;

    for _ in 0..2 {
        ask_on(&mut socket).await;
        socket.write(HALF_A_HEAD).await.unwrap();
    }
}

/// Writes the same few bytes every 50 ms, until the service ends the connection. Returns how long that took.
async fn trickle(socket: &mut RawSocket, bytes: &[u8]) -> Duration {
    let began = Instant::now();
    let mut pace = interval(Duration::from_millis(50));
    while socket.write(bytes).await.is_ok() && began.elapsed() < PATIENCE {
        pace.tick().await;
    }
    began.elapsed()
}

#[actix_web::test]
async fn an_upgrade_that_is_asked_for_byte_by_byte_is_cut() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut slow = RawSocket::connect(site.service.address).await;
    let request = upgrade_request("/agents/ws", None);
    let endless = request.trim_end().to_owned() + "\r\nX-Padding: ";
    slow.write(endless.as_bytes()).await.unwrap();

    let took = trickle(&mut slow, b"x").await;

    assert!(took < PATIENCE, "it is still being heard after {took:?}");
    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn a_key_that_is_shown_byte_by_byte_is_not_in_time() {
    let site = Site::start_with(|config| config.timing.auth_deadline = AUTH_DEADLINE).await;
    let mut slow = RawSocket::agent(site.service.address).await;
    slow.write(&header(FIN | TEXT, 10_000)).await.unwrap();

    let took = trickle(&mut slow, b"x").await;

    assert!(took < PATIENCE, "it is still being heard after {took:?}");
    assert!([End::Closed(4408), End::Cut].contains(&slow.end().await));
}

#[actix_web::test]
async fn pings_do_not_stand_for_a_key() {
    let site = Site::start_with(|config| config.timing.auth_deadline = AUTH_DEADLINE).await;
    let mut chatty = RawSocket::agent(site.service.address).await;

    let took = trickle(&mut chatty, &frame(FIN | PING, b"")).await;

    assert!(took < PATIENCE, "it is still being heard after {took:?}");
    let mut agent = FakeAgent::online_in(site.service.address, &site.key, Encoding::MessagePack).await;
    agent.store(1, vec![sample_aged(1)]).await;
}
