//! An agent that the test controls, in JSON or MessagePack.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use signalbox_protocol::agent::{
    AgentInfo, AgentMessage, Auth, AuthResponse, Metrics, Request, RequestError, Response, ServiceMessage,
};
use signalbox_protocol::codec::Message as _;
use signalbox_protocol::sample::{DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Decoded, Encoding, PROTOCOL_VERSION, Sample, Timestamp};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::eventually;
use super::socket::{Received, Socket, connect_from};

pub const AGENT_PATH: &str = "/api/v1/agents/ws";

pub struct FakeAgent {
    pub socket: Socket,
    /// The server that its key opened.
    pub server_id: Option<Uuid>,
    encoding: Encoding,
}

impl FakeAgent {
    /// Connected, and nothing said yet.
    pub async fn connect(address: SocketAddr, encoding: Encoding) -> Self {
        Self::connect_at(address, AGENT_PATH, encoding).await
    }

    pub async fn connect_at(address: SocketAddr, path: &str, encoding: Encoding) -> Self {
        let socket = Socket::connect(address, path, &[]).await.unwrap_or_else(|status| panic!("refused: {status}"));
        Self { socket, server_id: None, encoding }
    }

    /// Connected and authenticated, in JSON.
    pub async fn online(address: SocketAddr, key: &str) -> Self {
        Self::online_in(address, key, Encoding::Json).await
    }

    pub async fn online_in(address: SocketAddr, key: &str, encoding: Encoding) -> Self {
        eventually("the agent is let in", async || {
            let mut agent = Self::connect(address, encoding).await;
            let answer = agent.authenticate(key).await;
            Self::is_let_in(&answer).then_some(agent)
        })
        .await
    }

    /// Authenticated, with an offer of live samples at this interval or a longer one.
    pub async fn with_live_samples(address: SocketAddr, key: &str, seconds: f64) -> Self {
        eventually("the agent is let in", async || {
            let mut agent = Self::connect(address, Encoding::Json).await;
            let AgentMessage::Auth(greeting) = auth(key) else { unreachable!() };
            agent.send(&AgentMessage::Auth(Auth { live_interval_seconds: Some(seconds), ..greeting })).await;
            let ServiceMessage::AuthResponse(answer) = agent.next().await else { panic!("expected an auth_response") };
            Self::is_let_in(&answer).then_some(agent)
        })
        .await
    }

    /// Whether it was accepted. If not it is to try again, as the service says where everything is slow.
    pub fn is_let_in(answer: &AuthResponse) -> bool {
        let comes_back = matches!(answer.code.as_deref(), Some("restarting" | "overloaded"));
        assert!(answer.success || comes_back, "the key was refused: {answer:?}");
        answer.success
    }

    /// Connected from this address of the loopback and authenticated; none where it was sent away.
    pub async fn attempt_from(from: Ipv4Addr, address: SocketAddr, key: &str) -> Option<Self> {
        Self::attempt(connect_from(from, address).await, address, key, &[]).await
    }

    /// Upgraded on this connection with these headers and authenticated; none where it was sent away.
    pub async fn attempt(tcp: TcpStream, address: SocketAddr, key: &str, headers: &[(&str, &str)]) -> Option<Self> {
        let socket = Socket::upgrade(tcp, address, AGENT_PATH, headers).await.ok()?;
        let mut agent = Self { socket, server_id: None, encoding: Encoding::Json };
        // It may have been sent away before.
        agent.socket.try_send(encode(Encoding::Json, &auth(key))).await.ok()?;
        let Received::Message(message) = agent.socket.receive().await else { return None };
        match agent.decode(&message) {
            ServiceMessage::AuthResponse(answer) => answer.success.then_some(agent),
            other => panic!("expected an auth_response, got {other:?}"),
        }
    }

    /// Shows the key. Returns the answer, whatever it is.
    pub async fn authenticate(&mut self, key: &str) -> AuthResponse {
        self.send(&auth(key)).await;
        match self.next().await {
            ServiceMessage::AuthResponse(answer) => {
                self.server_id = answer.server_id;
                answer
            }
            other => panic!("expected an auth_response, got {other:?}"),
        }
    }

    pub async fn send(&mut self, message: &AgentMessage) {
        let message = encode(self.encoding, message);
        self.socket.send(message).await;
    }

    /// Any value as a message in the agent's encoding, whether the protocol knows it or not.
    pub async fn send_value(&mut self, value: &Value) {
        let message = match self.encoding {
            Encoding::Json => Message::text(value.to_string()),
            Encoding::MessagePack => Message::binary(rmp_serde::to_vec_named(value).unwrap()),
        };
        self.socket.send(message).await;
    }

    pub async fn send_metrics(&mut self, seq: u64, samples: Vec<Sample>) {
        self.send(&AgentMessage::Metrics(Metrics { seq, samples, sent_at: None })).await;
    }

    /// Sends the samples and waits until they are durable.
    pub async fn store(&mut self, seq: u64, samples: Vec<Sample>) {
        self.send_metrics(seq, samples).await;
        self.expect_ack(seq).await;
    }

    /// The next message of the service.
    pub async fn next(&mut self) -> ServiceMessage {
        match self.socket.receive().await {
            Received::Message(message) => self.decode(&message),
            end => panic!("expected a message, but the socket ended: {end:?}"),
        }
    }

    /// The next message as it is on the wire.
    pub async fn next_value(&mut self) -> Value {
        match self.socket.receive().await {
            Received::Message(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            Received::Message(message) => rmp_serde::from_slice(&message.into_data()).unwrap(),
            end => panic!("expected a message, but the socket ended: {end:?}"),
        }
    }

    /// Waits for the acknowledgement of `seq`; those of earlier batches may come before it.
    pub async fn expect_ack(&mut self, seq: u64) {
        loop {
            match self.next().await {
                ServiceMessage::Ack { seq: acknowledged } if acknowledged < seq => {}
                other => return assert_eq!(other, ServiceMessage::Ack { seq }),
            }
        }
    }

    pub async fn expect_close(&mut self, code: u16) {
        self.socket.expect_close(code).await;
    }

    /// The code with which the connection is closed, skipping any messages before.
    pub async fn close_code(&mut self) -> u16 {
        self.socket.close_code().await
    }

    /// The next message, which must be a request.
    pub async fn expect_request(&mut self) -> Request {
        match self.next().await {
            ServiceMessage::Request(request) => request,
            other => panic!("expected a request, got {other:?}"),
        }
    }

    pub async fn answer(&mut self, request: &Request, outcome: Result<Value, RequestError>) {
        self.send(&AgentMessage::Response(Response::new(request.request_id, outcome))).await;
    }

    fn decode(&self, message: &Message) -> ServiceMessage {
        let arrived_in = if message.is_text() { Encoding::Json } else { Encoding::MessagePack };
        assert_eq!(arrived_in, self.encoding, "the service answers in the agent's encoding");
        let bytes = message.clone().into_data();
        match self.encoding.decode(&bytes).unwrap() {
            Decoded::Known(message) => message,
            Decoded::Unknown => panic!("not one of {:?}: {message:?}", ServiceMessage::TYPES),
        }
    }
}

pub fn encode(encoding: Encoding, message: &AgentMessage) -> Message {
    let bytes = encoding.encode(message).unwrap();
    match encoding {
        Encoding::Json => Message::text(String::from_utf8(bytes.to_vec()).unwrap()),
        Encoding::MessagePack => Message::binary(bytes),
    }
}

/// The first message of an agent.
pub fn auth(key: &str) -> AgentMessage {
    AgentMessage::Auth(Auth {
        api_key: key.to_owned(),
        protocol: PROTOCOL_VERSION,
        agent: agent_info(),
        sent_at: Some(Timestamp::now()),
        sample_interval_seconds: None,
        live_interval_seconds: None,
        commands: None,
    })
}

/// The fake agent's description of itself.
pub fn agent_info() -> AgentInfo {
    AgentInfo {
        version: "1.2.3".to_owned(),
        hostname: "web-1.example".to_owned(),
        os: "Debian GNU/Linux 12".to_owned(),
        kernel: "6.1.0-18-amd64".to_owned(),
        arch: "x86_64".to_owned(),
        cpu_count: 4,
        boot_id: "5e0f3c7a-93a2-4d11-8f0b-0f5f5f5c6c6d".to_owned(),
        machine_id: String::new(),
        capabilities: vec!["metrics".to_owned(), "docker".to_owned()],
        signing: None,
        failed_update: None,
    }
}

/// An ordinary sample of that moment.
pub fn sample_at(timestamp: Timestamp) -> Sample {
    Sample {
        timestamp,
        cpu_percent: 12.5,
        cpu_per_core: vec![10.0, 15.0],
        memory_percent: 50.0,
        memory_total: 8_000_000_000,
        memory_used: 4_000_000_000,
        disk_usage: vec![DiskUsage { path: "/".to_owned(), total: 1000, used: 400, free: 600, percent: 40.0 }],
        network: vec![NetworkUsage { interface: "eth0".to_owned(), bytes_sent: 100, bytes_recv: 200, in_total: None }],
        ..Sample::default()
    }
}

/// An ordinary sample that is this many seconds old.
pub fn sample_aged(seconds: i64) -> Sample {
    sample_at(Timestamp::now().plus_millis(-1000 * seconds))
}

/// A sample whose snapshot is about 250 KB long, so that few fill every buffer on the way.
pub fn large_sample(age: i64) -> Sample {
    let sensor = |index| Temperature { label: format!("{index:0>200}"), celsius: 40.0 };
    Sample { temperatures: (0..1_000).map(sensor).collect(), ..sample_aged(age) }
}
