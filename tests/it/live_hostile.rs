//! Hostile or broken dashboards lose their own connection, and no other client notices.

mod floods;
mod slow;

use std::time::Duration;

use signalbox_protocol::Encoding;
use tokio_tungstenite::tungstenite::Message;

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::attacks::{self, INVALID_TEXT, MALFORMED, broken_frames};
use crate::support::dashboard::Dashboard;
use crate::support::raw::{CLOSE, FIN, PING, PONG, RawSocket, SocketFrame, TEXT, frame};
use crate::support::site::Site;

/// A server's agent and another dashboard of it, which must not be affected by an attack.
struct Bystanders {
    agent: FakeAgent,
    dashboard: Dashboard,
    seq: u64,
}

impl Bystanders {
    async fn at(site: &Site) -> Self {
        let agent = site.agent_in(Encoding::MessagePack).await;
        let mut dashboard = site.dashboard().await;
        dashboard.expect("status").await;
        Self { agent, dashboard, seq: 0 }
    }

    async fn expect_unharmed(&mut self) {
        self.seq += 1;
        let sample = sample_aged(10_000 - self.seq as i64);
        let time = sample.timestamp.to_string();

        self.agent.store(self.seq, vec![sample]).await;

        assert_eq!(self.dashboard.expect("metrics").await["timestamp"], time);
    }
}

async fn hostile(site: &Site) -> RawSocket {
    RawSocket::dashboard(site.service.address, site.server_id, &site.owner.token).await
}

#[actix_web::test]
async fn a_frame_of_a_declared_gibibyte_is_refused_at_its_header() {
    let site = Site::start().await;
    let mut bystanders = Bystanders::at(&site).await;

    attacks::declare_a_huge_frame(hostile(&site).await).await;

    bystanders.expect_unharmed().await;
}

#[actix_web::test]
async fn broken_frames_end_the_connection() {
    let site = Site::start().await;
    let mut bystanders = Bystanders::at(&site).await;

    for (what, bytes) in broken_frames() {
        attacks::send_broken_frame(hostile(&site).await, what, &bytes).await;
        bystanders.expect_unharmed().await;
    }
}

#[actix_web::test]
async fn text_that_is_not_utf8_ends_the_connection() {
    let site = Site::start().await;
    let mut bystanders = Bystanders::at(&site).await;
    let mut socket = hostile(&site).await;

    socket.write(&frame(FIN | TEXT, b"{\"type\": \"\xff\xfe\"}")).await.unwrap();

    socket.expect_end(&[MALFORMED, INVALID_TEXT]).await;
    bystanders.expect_unharmed().await;
}

#[actix_web::test]
async fn garbage_harms_nobody_else() {
    let site = Site::start().await;
    let mut bystanders = Bystanders::at(&site).await;
    let deep = "[".repeat(2_000);
    let texts = ["", "garbage", "{", "null", "[]", r#"{"type": 5}"#, r#"{"type": "auth"}"#, deep.as_str()];

    for text in texts {
        let mut dashboard = site.dashboard().await;
        // The first may close it, so that the second finds no connection.
        let _ = dashboard.socket.try_send(Message::text(text)).await;
        let _ = dashboard.socket.try_send(Message::binary(vec![0xc1, 0xff])).await;

        bystanders.expect_unharmed().await;
    }
}

#[actix_web::test]
async fn a_ping_is_answered_with_its_payload() {
    let site = Site::start().await;
    let mut socket = hostile(&site).await;

    socket.write(&frame(FIN | PING, b"hello")).await.unwrap();

    let answer = loop {
        let frame = socket.next_message().await.expect("a pong");
        if frame.opcode != TEXT {
            break frame;
        }
    };
    assert_eq!(answer, SocketFrame { opcode: PONG, payload: b"hello".to_vec() });
}

#[actix_web::test]
async fn a_close_frame_is_answered_with_one() {
    let site = Site::start().await;
    let mut socket = hostile(&site).await;
    assert_eq!(socket.next_message().await.map(|status| status.opcode), Some(TEXT));

    socket.write(&frame(FIN | CLOSE, &1000_u16.to_be_bytes())).await.unwrap();

    assert_eq!(socket.next_message().await.map(|answer| answer.opcode), Some(CLOSE));
}

#[actix_web::test]
async fn a_dashboard_that_answers_no_ping_is_dropped() {
    let site = Site::start_with(|config| {
        config.timing.ping_interval = Duration::from_millis(300);
        // Long, so that a pause of the machine does not make the reader late, but less than a pause that the service excuses.
        config.timing.silence_limit = Duration::from_millis(9_500);
    })
    .await;
    let mut reader = site.dashboard().await;
    reader.expect("status").await;
    let mut silent = hostile(&site).await;

    // The reader answers pings while it waits, the silent one does not. Without that, the reader would be dropped first.
    tokio::select! {
        _ = silent.end() => {}
        message = reader.next() => panic!("unexpected: {message}"),
    }

    let _agent = site.agent().await;
    reader.expect("status").await;
}
