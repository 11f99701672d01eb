//! A service without a network, and agents that are streams of bytes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use actix_web::error::PayloadError;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth, LogLine, LogLines, LogsStart, Metrics};
use signalbox_protocol::sample::Sample;
use signalbox_protocol::{Encoding, PROTOCOL_VERSION, Timestamp};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::audit::Actor;
use crate::auth::api_key;
use crate::config::Config;
use crate::registry::{AgentStream, CallError, HeldSession, Question};
use crate::startup::wire;
use crate::state::State;
use crate::store::{NewApiKey, NewServer, NewUser, Registration};
use crate::ws::agent_session;

pub const SOON: Duration = Duration::from_secs(30);
pub const BOOT_ID: &str = "5e0f3c7a-93a2-4d11-8f0b-0f5f5f5c6c6d";

pub struct Scene {
    pub state: State,
    pub server_id: Uuid,
    pub owner_id: Uuid,
    pub key: String,
    _directory: tempfile::TempDir,
}

impl Scene {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = wire(Config::new(directory.path())).await.unwrap();
        let owner = NewUser {
            id: Uuid::now_v7(),
            email: "ada@example.com".to_owned(),
            username: "ada".to_owned(),
            full_name: String::new(),
            password_hash: String::new(),
        };
        let owner = state.store.create_user(owner, Registration::Open, "", None).await.unwrap();
        let server = NewServer {
            owner_id: owner.id,
            name: "web-1".to_owned(),
            host: "web-1.example".to_owned(),
            port: 22,
            description: String::new(),
            tags: Vec::new(),
        };
        let server = state.store.create_server(server, Actor::command_line()).await.unwrap();
        let fresh = api_key::generate().unwrap();
        let key = NewApiKey {
            owner_id: owner.id,
            server_id: server.record.id,
            name: "key".to_owned(),
            prefix: fresh.prefix,
            digest: fresh.digest.to_vec(),
            expires_at: None,
        };
        state.store.create_api_key(key, Actor::command_line()).await.unwrap();
        let key = fresh.token.expose_secret().to_owned();
        Self { state, server_id: server.record.id, owner_id: owner.id, key, _directory: directory }
    }

    pub fn connect(&self) -> Agent {
        let (outgoing, mut incoming) = mpsc::channel(16);
        let incoming = stream::poll_fn(move |cx| incoming.poll_recv(cx));
        let said = agent_session::without_socket(&self.state, "127.0.0.1", incoming);
        Agent { outgoing, said: Box::pin(said), buffer: BytesMut::new(), heard: VecDeque::new() }
    }

    /// An admitted agent.
    pub async fn agent(&self) -> Agent {
        let mut agent = self.connect();
        agent.say(&self.auth(&self.key)).await;
        let response = agent.next().await;
        assert_eq!(
            (&response["type"], &response["data"]["success"]),
            (&json!("auth_response"), &json!(true)),
            "{response}"
        );
        agent
    }

    pub fn auth(&self, key: &str) -> AgentMessage {
        AgentMessage::Auth(Auth {
            api_key: key.to_owned(),
            protocol: PROTOCOL_VERSION,
            agent: AgentInfo {
                version: "1.2.3".to_owned(),
                hostname: "web-1.example".to_owned(),
                cpu_count: 4,
                boot_id: BOOT_ID.to_owned(),
                ..AgentInfo::default()
            },
            sent_at: Some(Timestamp::now()),
            sample_interval_seconds: None,
            live_interval_seconds: None,
            commands: None,
        })
    }

    /// A log that may send `credit` bytes, and its id as the agent knows it.
    pub async fn log(&self, credit: u64, agent: &mut Agent) -> (AgentStream, Uuid) {
        let start = LogsStart {
            stream_id: Uuid::now_v7(),
            source: "system".to_owned(),
            container_id: None,
            path: None,
            tail: None,
            credit: Some(credit),
            by: None,
        };
        let stream_id = start.stream_id;
        let stream = self.state.registry.open_log(self.server_id, start).unwrap();
        let started = agent.next().await;
        assert_eq!(
            (&started["type"], &started["data"]["stream_id"]),
            (&json!("logs_start"), &json!(stream_id)),
            "{started}"
        );
        (stream, stream_id)
    }

    pub async fn session(&self) -> HeldSession {
        self.state.registry.holder(self.server_id).await.unwrap()
    }

    pub async fn call(&self, deadline: Duration) -> Result<Value, CallError> {
        let question = Question { method: "docker.list", params: json!({}), deadline, by: None };
        self.state.registry.call(self.server_id, question).await
    }
}

/// A sample, as the seventh message.
pub fn sample() -> AgentMessage {
    let sample = Sample { timestamp: Timestamp::now(), cpu_percent: 12.5, ..Sample::default() };
    AgentMessage::Metrics(Metrics { seq: 7, samples: vec![sample], sent_at: None })
}

/// A line of a log.
pub fn line(stream_id: Uuid, message: &str) -> AgentMessage {
    let line = LogLine { timestamp: None, stream: None, message: message.to_owned() };
    AgentMessage::LogLines(LogLines { stream_id, lines: vec![line], dropped: 0 })
}

/// What the service sends.
#[derive(Debug)]
pub enum Said {
    Message(Value),
    Close(u16),
}

/// The agent's end of the connection.
pub struct Agent {
    outgoing: mpsc::Sender<Result<Bytes, PayloadError>>,
    said: Pin<Box<dyn Stream<Item = Result<Bytes, actix_web::Error>>>>,
    buffer: BytesMut,
    heard: VecDeque<Said>,
}

impl Agent {
    pub async fn say(&self, message: &AgentMessage) {
        self.text(&Encoding::Json.encode(message).unwrap()).await;
    }

    /// Sends one masked text frame (RFC 6455, 5.2). A mask of zeros leaves the text as it is.
    pub async fn text(&self, text: &[u8]) {
        let mut frame = vec![0x81];
        match u8::try_from(text.len()).ok().filter(|length| *length < 126) {
            Some(length) => frame.push(0x80 | length),
            None => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text);
        self.outgoing.send(Ok(frame.into())).await.unwrap();
    }

    /// Returns what the service sends next, except pings.
    pub async fn hear(&mut self) -> Said {
        loop {
            if let Some(said) = self.heard.pop_front() {
                return said;
            }
            let bytes = tokio::time::timeout(SOON, self.said.next()).await.expect("the service sends nothing");
            self.buffer.extend(bytes.expect("the session has ended without a message").unwrap());
            self.read();
        }
    }

    fn read(&mut self) {
        while let [first, length, ..] = self.buffer[..] {
            let (header, length) = match length {
                126 => (4, usize::from(u16::from_be_bytes([self.buffer[2], self.buffer[3]]))),
                length => (2, usize::from(length)),
            };
            if self.buffer.len() < header + length {
                return;
            }
            self.buffer.advance(header);
            let payload = self.buffer.split_to(length);
            match first & 0x0f {
                1 => self.heard.push_back(Said::Message(serde_json::from_slice(&payload).unwrap())),
                8 => self.heard.push_back(Said::Close(u16::from_be_bytes([payload[0], payload[1]]))),
                _ => {}
            }
        }
    }

    /// Returns the next message.
    pub async fn next(&mut self) -> Value {
        match self.hear().await {
            Said::Message(message) => message,
            Said::Close(code) => panic!("closed with {code}"),
        }
    }

    /// Returns the code that the service closes with, whatever it sends before.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            if let Said::Close(code) = self.hear().await {
                return code;
            }
        }
    }
}
