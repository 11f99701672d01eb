//! Hostile or broken agents lose their own connection, and no other client notices.

mod crowd;
mod floods;
mod silence;

use std::net::SocketAddr;

use serde_json::json;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{AgentMessage, Metrics};
use signalbox_protocol::close::{MALFORMED, TOO_LARGE};
use signalbox_protocol::series::{MAX_SERIES, SeriesDescription, SeriesKind, Unit};
use tokio_tungstenite::tungstenite::Message;

use crate::support::agent::{FakeAgent, encode, sample_aged};
use crate::support::attacks::{self, INVALID_TEXT, broken_frames};
use crate::support::eventually;
use crate::support::raw::{BINARY, CLOSE, CONTINUATION, FIN, PING, PONG, RawSocket, SocketFrame, TEXT, frame, header};
use crate::support::site::Site;

/// An agent of another server, which must not be affected by an attack.
struct Bystander {
    agent: FakeAgent,
    seq: u64,
}

impl Bystander {
    async fn at(site: &Site) -> Self {
        let (_, key) = site.other_server().await;
        Self { agent: FakeAgent::online(site.service.address, &key).await, seq: 0 }
    }

    async fn expect_unharmed(&mut self) {
        self.seq += 1;
        self.agent.store(self.seq, vec![sample_aged(1)]).await;
    }
}

/// A connection that has not shown its key, and one that has.
async fn strangers_and_agents(site: &Site) -> [(&'static str, RawSocket); 2] {
    let address: SocketAddr = site.service.address;
    [
        ("before auth", RawSocket::agent(address).await),
        ("after auth", RawSocket::authenticated_agent(address, &site.key).await),
    ]
}

#[actix_web::test]
async fn a_frame_of_a_declared_gibibyte_is_refused_at_its_header() {
    let site = Site::start().await;
    let mut bystander = Bystander::at(&site).await;

    for (_, socket) in strangers_and_agents(&site).await {
        attacks::declare_a_huge_frame(socket).await;
        bystander.expect_unharmed().await;
    }
}

#[actix_web::test]
async fn an_agent_without_a_key_gets_no_room_for_a_large_message() {
    let site = Site::start().await;
    let mut stranger = RawSocket::agent(site.service.address).await;

    stranger.write(&header(FIN | TEXT, 1024 * 1024)).await.unwrap();

    stranger.expect_close(TOO_LARGE).await;
}

#[actix_web::test]
async fn broken_frames_end_the_connection() {
    let site = Site::start().await;
    let mut bystander = Bystander::at(&site).await;

    for (what, bytes) in broken_frames() {
        for (when, socket) in strangers_and_agents(&site).await {
            attacks::send_broken_frame(socket, &format!("{what} {when}"), &bytes).await;
            bystander.expect_unharmed().await;
        }
    }
}

#[actix_web::test]
async fn text_that_is_not_utf8_ends_the_connection() {
    let site = Site::start().await;
    let mut bystander = Bystander::at(&site).await;

    for (_, mut socket) in strangers_and_agents(&site).await {
        socket.write(&frame(FIN | TEXT, b"{\"type\": \"\xff\xfe\"}")).await.unwrap();

        socket.expect_end(&[MALFORMED, INVALID_TEXT]).await;
        bystander.expect_unharmed().await;
    }
}

/// Messages that are invalid JSON or invalid MessagePack.
fn garbage() -> Vec<Message> {
    let deep = "[".repeat(100_000);
    let texts = ["", " ", "garbage", "{", "null", "[]", "{}", "1e999", r#"{"type": 5}"#, r#"{"type": "metrics"}"#];
    let datas: [&[u8]; 7] =
        [b"", &[0xc1], &[0xff], &[0x91; 50_000], &[0x81, 0xa4], &[0xdf, 0xff, 0xff, 0xff, 0xff], &[0xdd; 5]];
    let texts = texts.into_iter().map(str::to_owned).chain([deep]).map(Message::text);
    texts.chain(datas.map(|bytes| Message::binary(bytes.to_vec()))).collect()
}

#[actix_web::test]
async fn garbage_closes_its_session_and_no_other() {
    let site = Site::start().await;
    let mut bystander = Bystander::at(&site).await;

    for message in garbage() {
        let mut agent = site.agent().await;
        let shown = format!("{message:.60?}");
        agent.socket.send(message).await;

        assert_eq!(agent.socket.close_code().await, MALFORMED, "{shown}");
        bystander.expect_unharmed().await;
    }
}

#[actix_web::test]
async fn garbage_in_place_of_the_key_closes_the_connection() {
    let site = Site::start().await;
    let mut bystander = Bystander::at(&site).await;

    for message in garbage() {
        let mut stranger = FakeAgent::connect(site.service.address, Encoding::Json).await;
        let shown = format!("{message:.60?}");
        let length = message.len();
        stranger.socket.send(message).await;

        let code = stranger.socket.close_code().await;
        let too_large = code == TOO_LARGE && length > 16 * 1024;
        assert!([4400, 4401].contains(&code) || too_large, "{shown} closed with {code}");
        bystander.expect_unharmed().await;
    }
}

#[actix_web::test]
async fn an_agent_whose_session_was_closed_for_garbage_can_reconnect() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.socket.send(Message::text("garbage")).await;
    agent.expect_close(MALFORMED).await;

    let mut agent = site.agent().await;

    agent.store(1, vec![sample_aged(1)]).await;
    assert_eq!(site.server().await["status"], "online");
}

#[actix_web::test]
async fn a_message_in_fragments_is_joined_or_refused_cleanly() {
    let site = Site::start().await;
    let mut bystander = Bystander::at(&site).await;

    for (encoding, opcode) in [(Encoding::Json, TEXT), (Encoding::MessagePack, BINARY)] {
        let mut socket = RawSocket::authenticated_agent(site.service.address, &site.key).await;
        let metrics = AgentMessage::Metrics(Metrics { seq: 1, samples: vec![sample_aged(1)], sent_at: None });
        let message = encode(encoding, &metrics).into_data();
        let (first, rest) = message.split_at(message.len() / 3);
        let (second, third) = rest.split_at(rest.len() / 2);
        let ping = frame(FIN | PING, b"between");
        let fragments = [
            frame(opcode, first),
            ping,
            frame(CONTINUATION, second),
            frame(CONTINUATION, b""),
            frame(FIN | CONTINUATION, third),
        ];

        // The service may refuse it at the first fragment.
        let _ = socket.write(&fragments.concat()).await;

        expect_ack_or_clean_close(&mut socket).await;
        bystander.expect_unharmed().await;
    }
}

async fn expect_ack_or_clean_close(socket: &mut RawSocket) {
    loop {
        match socket.next_message().await.expect("an ack or a close frame") {
            SocketFrame { opcode: PONG, payload } => assert_eq!(payload, b"between"),
            SocketFrame { opcode: CLOSE, payload } => {
                let code = u16::from_be_bytes([payload[0], payload[1]]);
                return assert!([1002, 1003, TOO_LARGE, MALFORMED].contains(&code), "closed with {code}");
            }
            SocketFrame { payload, .. } => {
                let ack: serde_json::Value = serde_json::from_slice(&payload).unwrap();
                return assert_eq!(ack, json!({"type": "ack", "data": {"seq": 1}}));
            }
        }
    }
}

#[actix_web::test]
async fn a_ping_is_answered_with_its_payload() {
    let site = Site::start().await;

    for (_, mut socket) in strangers_and_agents(&site).await {
        for payload in [b"".as_slice(), b"hello", &[0xff; 125]] {
            socket.write(&frame(FIN | PING, payload)).await.unwrap();

            let answer = socket.next_message().await;
            assert_eq!(answer, Some(SocketFrame { opcode: PONG, payload: payload.to_vec() }));
        }
    }
}

#[actix_web::test]
async fn a_close_frame_is_answered_with_one() {
    let site = Site::start().await;

    for (when, mut socket) in strangers_and_agents(&site).await {
        socket.write(&frame(FIN | CLOSE, &1000_u16.to_be_bytes())).await.unwrap();

        let answer = socket.next_message().await.unwrap_or_else(|| panic!("no close frame {when}"));
        assert_eq!(answer.opcode, CLOSE, "{when}");
    }
}

/// Counts in the server's port how often the number of its dropped series is written.
const COUNTED: &str = "CREATE TRIGGER counted AFTER UPDATE OF series_dropped ON servers \
    BEGIN UPDATE servers SET port = port + 1 WHERE id = NEW.id; END";

/// One series more than an agent may have.
fn one_too_many() -> AgentMessage {
    let series = |id| SeriesDescription {
        id,
        name: "queue".to_owned(),
        unit: Unit::Count,
        kind: SeriesKind::Gauge,
        target: Some(id.to_string()),
        help: String::new(),
    };
    AgentMessage::Series { series: (0..=MAX_SERIES as u16).map(series).collect() }
}

#[actix_web::test]
async fn messages_with_and_without_samples_do_not_rewrite_the_number_of_dropped_series() {
    let site = Site::start().await;
    site.service.storage().execute(&[COUNTED]).await;
    let port = site.server().await["port"].as_u64().unwrap();
    let mut bystander = Bystander::at(&site).await;
    let mut agent = site.agent().await;
    agent.send(&one_too_many()).await;

    for flip in 1..=100 {
        agent.send_metrics(2 * flip - 1, Vec::new()).await;
        agent.store(2 * flip, vec![sample_aged(1_000 - flip as i64)]).await;
    }
    bystander.expect_unharmed().await;

    let counted = eventually("the number of dropped series is stored", || async {
        let server = site.server().await;
        (server["series_dropped"] == 1).then(|| server["port"].as_u64().unwrap())
    });
    assert_eq!(counted.await, port + 1);
}
