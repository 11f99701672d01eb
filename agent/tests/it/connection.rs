//! How a connection begins and ends, and how the agent reacts.

use std::time::Duration;

use futures_util::SinkExt;
use signalbox_agent::{Exit, Interval, Timing};
use signalbox_protocol::PROTOCOL_VERSION;
use signalbox_protocol::agent::{AuthResponse, ServiceMessage};
use tokio::net::TcpSocket;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use crate::agent::{AT_ONCE, Agent, KEY, config, info};
use crate::service::{Service, accepted, refused};

#[tokio::test]
async fn the_first_message_shows_key_machine_and_clock() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));

    let auth = service.accept().await.auth().await;

    assert_eq!((auth.api_key.as_str(), auth.protocol, auth.agent), (KEY, PROTOCOL_VERSION, info()));
    assert!(auth.sent_at.is_some());
    agent.stop().await;
}

#[tokio::test]
async fn a_key_that_the_answer_refuses_ends_the_agent() {
    for code in ["unauthorized", "revoked"] {
        let service = Service::start().await;
        let agent = Agent::start(config(&service.url()));

        let mut peer = service.accept().await;
        peer.auth().await;
        peer.send(&refused(code, "no such key")).await;

        let exit = agent.ended().await;
        assert_eq!((exit.code(), exit), (3, Exit::KeyRefused("no such key".into())));
    }
}

#[tokio::test]
async fn a_close_code_says_whether_to_come_back() {
    let for_good = [(4401, Exit::KeyRefused("over".into()), 3), (4404, Exit::ServerDeleted, 3)];

    for (close, expected, code) in for_good {
        let service = Service::start().await;
        let agent = Agent::start(config(&service.url()));
        service.accept_authenticated().await.close(close, "over").await;

        let exit = agent.ended().await;
        assert_eq!((exit.code(), exit), (code, expected));
    }

    for close in [1000, 1012, 1013, 4400, 4408, 1009, 1011] {
        let service = Service::start().await;
        let agent = Agent::start(config(&service.url()));
        service.accept_authenticated().await.close(close, "later").await;

        service.accept_authenticated().await;
        assert_eq!(agent.stop().await, Exit::Stopped);
    }
}

#[tokio::test]
async fn a_replaced_agent_reconnects_when_its_hour_is_over() {
    let service = Service::start().await;
    let replaced = Duration::from_secs(1);
    let timing = Timing { replaced, ..config(&service.url()).timing };
    let agent = Agent::start(signalbox_agent::Config { timing, ..config(&service.url()) });
    let mut peer = service.accept_authenticated().await;
    let before = peer.metrics().await;
    peer.close(4409, "replaced").await;
    let began = Instant::now();

    let mut peer = service.accept_authenticated().await;

    assert!(began.elapsed() >= replaced, "{:?}", began.elapsed());
    let after = peer.metrics().await;
    let oldest = after.samples.iter().map(|sample| sample.timestamp).min();
    assert!(oldest <= before.samples.iter().map(|sample| sample.timestamp).min(), "it kept what was not acknowledged");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_agent_that_waits_for_its_hour_to_be_over_can_be_stopped() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;
    peer.close(4409, "replaced").await;
    // It hangs up when it begins to wait.
    peer.gone().await;

    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_close_code_before_the_answer_to_the_key_counts_too() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));

    let mut peer = service.accept().await;
    peer.auth().await;
    peer.close(4404, "").await;

    assert_eq!(agent.ended().await, Exit::ServerDeleted);
}

#[tokio::test]
async fn a_temporary_refusal_is_waited_out() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));

    let mut peer = service.accept().await;
    peer.auth().await;
    peer.send(&refused("overloaded", "too many agents")).await;
    peer.close(1013, "").await;

    service.accept_authenticated().await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_service_that_hangs_at_any_step_is_left() {
    let service = Service::start().await;
    // Enough for the attempt that succeeds, on a machine under load.
    let step = Duration::from_secs(10);
    let timing = Timing { handshake_step: step, ..config(&service.url()).timing };
    let agent = Agent::start(signalbox_agent::Config { timing, ..config(&service.url()) });

    let _hangs_before_the_upgrade = service.accept_tcp().await;
    let mut hangs_before_the_answer = service.accept().await;
    hangs_before_the_answer.auth().await;

    service.accept_authenticated().await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_service_that_falls_silent_is_left() {
    let service = Service::start().await;
    let timing = Timing { silence: Duration::from_millis(200), ..config(&service.url()).timing };
    let agent = Agent::start(signalbox_agent::Config { timing, ..config(&service.url()) });

    let _silent = service.accept_authenticated().await;

    service.accept_authenticated().await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn pings_alone_keep_a_connection() {
    let service = Service::start().await;
    let timing = Timing { silence: Duration::from_secs(10), ..config(&service.url()).timing };
    let agent = Agent::start(signalbox_agent::Config { timing, ..config(&service.url()) });
    let mut peer = service.accept_authenticated().await;

    let began = Instant::now();
    let mut pings = tokio::time::interval(Duration::from_millis(50));
    while began.elapsed() < Duration::from_secs(15) {
        pings.tick().await;
        peer.socket.send(Message::Ping("".into())).await.unwrap();
    }

    assert_eq!(agent.stop().await, Exit::Stopped);
    while let Some(frame) = peer.frame().await {
        if let Message::Close(frame) = frame {
            assert_eq!(frame.map(|frame| u16::from(frame.code)), Some(1000));
            return;
        }
    }
    panic!("the connection lasted until the agent closed it");
}

/// An agent that soon doubts a service that acknowledges nothing.
fn doubtful(service: &Service) -> signalbox_agent::Config {
    let unacknowledged = Duration::from_millis(50);
    let timing = Timing { unacknowledged, doubt: Duration::from_millis(20), ..config(&service.url()).timing };
    signalbox_agent::Config { timing, ..config(&service.url()) }
}

#[tokio::test]
async fn a_service_that_stores_nothing_is_left_when_another_connection_would_do_better() {
    let service = Service::start().await;
    let agent = Agent::start(doubtful(&service));

    let mut never_acks = service.accept_authenticated().await;
    service.answer_readiness(200).await;
    never_acks.gone().await;

    service.accept_authenticated().await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_service_that_stores_nothing_is_kept_while_none_could() {
    let service = Service::start().await;
    let agent = Agent::start(doubtful(&service));

    let mut never_acks = service.accept_authenticated().await;
    service.answer_readiness(503).await;
    drop(service.accept_tcp().await);
    service.answer_readiness(404).await;
    service.answer_readiness(503).await;

    assert_eq!(agent.stop().await, Exit::Stopped);
    while let Some(frame) = never_acks.frame().await {
        if let Message::Close(frame) = frame {
            return assert_eq!(frame.map(|frame| u16::from(frame.code)), Some(1000));
        }
    }
    panic!("the connection lasted until the agent closed it");
}

#[tokio::test]
async fn a_stop_says_goodbye() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;
    peer.metrics().await;

    let began = Instant::now();
    let (exit, code) = tokio::join!(agent.stop(), async {
        loop {
            match peer.frame().await {
                Some(Message::Close(frame)) => return frame.map(|frame| u16::from(frame.code)),
                Some(_) => {}
                None => return None,
            }
        }
    });

    assert_eq!((exit, code), (Exit::Stopped, Some(1000)));
    assert!(began.elapsed() < AT_ONCE);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_service_that_does_not_answer() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut hangs = service.accept_authenticated().await;
    // An agent that has not been accepted yet has no goodbye to wait for.
    hangs.metrics().await;

    let began = Instant::now();
    let exit = agent.stop().await;

    assert_eq!(exit, Exit::Stopped);
    assert!(began.elapsed() < AT_ONCE);
}

#[tokio::test]
async fn the_services_interval_replaces_the_agents() {
    let service = Service::start().await;
    let slow = Interval::from_seconds(3600.0).unwrap();
    let mut agent = Agent::start(signalbox_agent::Config { interval: slow, ..config(&service.url()) });

    let mut peer = service.accept().await;
    peer.auth().await;
    peer.send(&accepted(Some(0.5))).await;

    agent.has_taken(3).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_interval_that_makes_no_sense_is_ignored() {
    let service = Service::start().await;
    let mut agent = Agent::start(config(&service.url()));

    for nonsense in [0.0, -1.0, 1e300] {
        let mut peer = service.accept().await;
        peer.auth().await;
        peer.send(&accepted(Some(nonsense))).await;
        peer.metrics().await;
    }

    let taken = agent.taken();
    agent.has_taken(taken + 3).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_service_that_answers_in_json_is_understood() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));

    let mut peer = service.accept().await;
    peer.auth().await;
    let response = AuthResponse::refused("revoked", "taken back");
    let text = serde_json::to_string(&ServiceMessage::AuthResponse(response)).unwrap();
    peer.socket.send(Message::Text(text.into())).await.unwrap();

    assert_eq!(agent.ended().await, Exit::KeyRefused("taken back".into()));
}

#[tokio::test]
async fn a_name_is_looked_up_and_each_of_its_addresses_tried() {
    let service = Service::start().await;
    // `localhost` is often ::1 first, where nothing listens.
    let agent = Agent::start(config(&format!("http://localhost:{}", service.port())));

    service.accept_authenticated().await;

    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_agent_without_a_service_keeps_sampling_and_stops_at_once() {
    let nobody = TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut agent = Agent::start(config(&format!("http://{}", nobody.local_addr().unwrap())));

    agent.has_taken(5).await;
    let began = Instant::now();

    assert_eq!(agent.stop().await, Exit::Stopped);
    assert!(began.elapsed() < AT_ONCE);
}
