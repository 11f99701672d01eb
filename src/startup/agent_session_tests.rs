//! Sessions of agents over streams of bytes, without a socket: with a service around them that has all but the network.

use std::collections::VecDeque;
use std::pin::Pin;

use actix_web::error::PayloadError;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth, LogLine, LogLines, LogsStart, Metrics, Response};
use signalbox_protocol::sample::Sample;
use signalbox_protocol::{Encoding, PROTOCOL_VERSION, Timestamp, close};
use tokio::sync::mpsc;

use super::*;
use crate::audit::Actor;
use crate::auth::api_key;
use crate::registry::{AgentStream, CallError, HeldSession, Question, SessionEnd};
use crate::store::{NewApiKey, NewServer, NewUser, Registration};
use crate::ws::agent_session;

const SOON: Duration = Duration::from_secs(30);
const BOOT_ID: &str = "5e0f3c7a-93a2-4d11-8f0b-0f5f5f5c6c6d";

struct Scene {
    state: State,
    server_id: Uuid,
    key: String,
    _directory: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
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
            digest: fresh.digest,
            expires_at: None,
        };
        state.store.create_api_key(key, Actor::command_line()).await.unwrap();
        let key = fresh.key.expose_secret().to_owned();
        Self { state, server_id: server.record.id, key, _directory: directory }
    }

    fn connect(&self) -> Agent {
        let (outgoing, mut incoming) = mpsc::channel(16);
        let incoming = stream::poll_fn(move |cx| incoming.poll_recv(cx));
        let said = agent_session::without_socket(&self.state, "127.0.0.1", incoming);
        Agent { outgoing, said: Box::pin(said), buffer: BytesMut::new(), heard: VecDeque::new() }
    }

    /// An agent that was let in.
    async fn agent(&self) -> Agent {
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

    fn auth(&self, key: &str) -> AgentMessage {
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
            commands: None,
        })
    }

    /// A log that may send `credit` bytes, and its id as the agent knows it.
    async fn log(&self, credit: u64, agent: &mut Agent) -> (AgentStream, Uuid) {
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

    async fn session(&self) -> HeldSession {
        self.state.registry.holder(self.server_id).await.unwrap()
    }

    async fn call(&self, deadline: Duration) -> Result<Value, CallError> {
        let question = Question { method: "docker.list", params: json!({}), deadline, by: None };
        self.state.registry.call(self.server_id, question).await
    }
}

/// A sample, as the seventh message.
fn sample() -> AgentMessage {
    let sample = Sample { timestamp: Timestamp::now(), cpu_percent: 12.5, ..Sample::default() };
    AgentMessage::Metrics(Metrics { seq: 7, samples: vec![sample], sent_at: None })
}

/// A line of a log.
fn line(stream_id: Uuid, message: &str) -> AgentMessage {
    let line = LogLine { timestamp: None, stream: None, message: message.to_owned() };
    AgentMessage::LogLines(LogLines { stream_id, lines: vec![line], dropped: 0 })
}

/// What the service says.
#[derive(Debug)]
enum Said {
    Message(Value),
    Close(u16),
}

/// The agent's end.
struct Agent {
    outgoing: mpsc::Sender<Result<Bytes, PayloadError>>,
    said: Pin<Box<dyn Stream<Item = Result<Bytes, actix_web::Error>>>>,
    buffer: BytesMut,
    heard: VecDeque<Said>,
}

impl Agent {
    async fn say(&self, message: &AgentMessage) {
        self.text(&Encoding::Json.encode(message).unwrap()).await;
    }

    /// One masked frame of text (RFC 6455, 5.2). A mask of zeros leaves the text as it is.
    async fn text(&self, text: &[u8]) {
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

    /// What the service says next, pings aside.
    async fn hear(&mut self) -> Said {
        loop {
            if let Some(said) = self.heard.pop_front() {
                return said;
            }
            let bytes = tokio::time::timeout(SOON, self.said.next()).await.expect("the service says nothing");
            self.buffer.extend(bytes.expect("the session has ended without a word").unwrap());
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

    /// The next message.
    async fn next(&mut self) -> Value {
        match self.hear().await {
            Said::Message(message) => message,
            Said::Close(code) => panic!("closed with {code}"),
        }
    }

    /// The code that the service closes with, whatever it says before.
    async fn close_code(&mut self) -> u16 {
        loop {
            if let Said::Close(code) = self.hear().await {
                return code;
            }
        }
    }
}

#[actix::test]
async fn a_key_opens_its_server() {
    let scene = Scene::new().await;
    let mut agent = scene.connect();

    agent.say(&scene.auth(&scene.key)).await;

    let response = &agent.next().await["data"];
    assert_eq!((&response["success"], &response["server_id"]), (&json!(true), &json!(scene.server_id)));
    assert!(scene.state.fleet.is_here(scene.server_id));
    let holder = scene.state.registry.holder(scene.server_id).await.unwrap();
    assert_eq!(response["session_id"], json!(holder.session_id));
}

#[actix::test]
async fn a_wrong_key_opens_nothing() {
    let scene = Scene::new().await;
    let mut agent = scene.connect();

    agent.say(&scene.auth("sbx_0123456789abcdef_wrong")).await;

    assert_eq!(agent.next().await["data"]["code"], "unauthorized");
    assert_eq!(agent.close_code().await, close::UNAUTHORIZED);
    assert!(!scene.state.fleet.is_here(scene.server_id));
}

#[actix::test]
async fn who_says_something_else_first_is_sent_away() {
    let scene = Scene::new().await;
    let mut agent = scene.connect();

    agent.say(&AgentMessage::Metrics(Metrics { seq: 1, samples: Vec::new(), sent_at: None })).await;

    assert_eq!(agent.close_code().await, close::UNAUTHORIZED);
}

#[actix::test]
async fn a_sample_is_acknowledged_when_it_is_committed() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    agent.say(&sample()).await;

    assert_eq!(agent.next().await, json!({ "type": "ack", "data": { "seq": 7 } }));
    assert_eq!(scene.state.store.journal_after(0, 10).await.unwrap().len(), 1);
    assert_eq!(scene.state.fleet.acknowledged(scene.server_id, BOOT_ID), 7);
}

#[actix::test]
async fn a_message_of_a_later_version_is_passed_over_and_one_that_is_none_ends_the_session() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    agent.text(br#"{"type":"weather","data":{"degrees":21}}"#).await;
    agent.say(&sample()).await;
    assert_eq!(agent.next().await["type"], "ack");
    agent.text(b"{").await;

    assert_eq!(agent.close_code().await, close::MALFORMED);
    assert_eq!(scene.call(SOON).await, Err(CallError::Offline));
}

#[actix::test]
async fn a_second_key_in_one_session_ends_it() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    agent.say(&scene.auth(&scene.key)).await;

    assert_eq!(agent.close_code().await, close::MALFORMED);
}

#[actix::test]
async fn a_newer_session_takes_over() {
    let scene = Scene::new().await;
    let mut older = scene.agent().await;

    let mut newer = scene.agent().await;

    assert_eq!(older.close_code().await, close::REPLACED);
    let answering = async {
        let request = newer.next().await;
        let request_id = serde_json::from_value(request["data"]["request_id"].clone()).unwrap();
        newer.say(&AgentMessage::Response(Response::new(request_id, Ok(json!("newer"))))).await;
        // The session reads as long as its agent takes what it says.
        newer.hear().await
    };
    tokio::select! {
        answer = scene.call(SOON) => assert_eq!(answer, Ok(json!("newer"))),
        said = answering => panic!("told {said:?}"),
    }
}

#[actix::test]
async fn an_agent_that_does_not_answer_in_time_is_told_that_nobody_waits() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    let waiting = scene.call(Duration::from_millis(50));
    let asked = async {
        let request = agent.next().await;
        (request["data"]["request_id"].clone(), agent.next().await)
    };
    let (answer, (request_id, cancelled)) = tokio::join!(waiting, asked);

    assert_eq!(answer, Err(CallError::Timeout));
    assert_eq!(cancelled, json!({ "type": "request_cancel", "data": { "request_id": request_id } }));
}

#[actix::test]
async fn who_waits_for_an_agent_that_hangs_up_hears_so_and_the_next_that_it_is_offline() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let hanging_up = async move {
        agent.next().await;
        drop(agent);
    };

    let (answer, ()) = tokio::join!(scene.call(SOON), hanging_up);

    assert_eq!(answer, Err(CallError::Disconnected));
    while scene.state.fleet.is_here(scene.server_id) {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.call(SOON).await, Err(CallError::Offline));
}

#[actix::test]
async fn a_stream_flows_to_its_reader_until_the_agent_ends_it() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let (mut stream, stream_id) = scene.log(4_096, &mut agent).await;

    agent.say(&line(stream_id, "one")).await;
    agent.say(&line(Uuid::now_v7(), "of a stream that nobody opened")).await;
    agent.say(&line(stream_id, "two")).await;
    agent.say(&AgentMessage::Response(Response::new(stream_id, Ok(json!({ "lines": 2 }))))).await;
    // The session takes what its agent says as long as somebody takes what it says itself.
    agent.say(&sample()).await;
    assert_eq!(agent.next().await["type"], "ack");

    assert_eq!(stream.next().await, Some(line(stream_id, "one")));
    assert_eq!(stream.next().await, Some(line(stream_id, "two")));
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.outcome().await, Ok(json!({ "lines": 2 })));
}

#[actix::test]
async fn a_stream_that_sends_more_than_it_may_is_stopped() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let (mut stream, stream_id) = scene.log(10, &mut agent).await;

    agent.say(&line(stream_id, "longer than ten bytes")).await;
    agent.say(&line(stream_id, "too much")).await;

    assert_eq!(agent.next().await, json!({ "type": "logs_stop", "data": { "stream_id": stream_id } }));
    assert_eq!(stream.next().await, Some(line(stream_id, "longer than ten bytes")));
    assert_eq!(stream.next().await, None);
    assert!(matches!(stream.outcome().await, Err(CallError::Agent(error)) if error.code == "stream_overrun"));
}

#[actix::test]
async fn a_stream_that_nobody_reads_any_more_is_stopped_at_once() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;
    let (stream, stream_id) = scene.log(4_096, &mut agent).await;

    drop(stream);

    assert_eq!(agent.next().await, json!({ "type": "logs_stop", "data": { "stream_id": stream_id } }));
}

#[actix::test]
async fn one_agent_is_asked_only_so_much_at_a_time() {
    let scene = Scene::new().await;
    let mut agent = scene.agent().await;

    let calls = futures_util::future::join_all((0..65).map(|_| scene.call(SOON)));
    let asked = async move {
        for _ in 0..64 {
            assert_eq!(agent.next().await["type"], "request");
        }
        // Those that wait are told when it goes.
    };
    let (answers, ()) = tokio::join!(calls, asked);

    let count = |error: CallError| answers.iter().filter(|answer| **answer == Err(error.clone())).count();
    assert_eq!((count(CallError::Disconnected), count(CallError::Busy)), (64, 1));
}

#[actix::test]
async fn each_end_has_its_code() {
    let ends = [
        (SessionEnd::KeyRevoked, close::UNAUTHORIZED),
        (SessionEnd::ServerDeleted, close::SERVER_DELETED),
        (SessionEnd::Restarting, close::RESTARTING),
        (SessionEnd::Silent, 1001),
    ];
    let scene = Scene::new().await;
    for (end, code) in ends {
        let mut agent = scene.agent().await;

        scene.state.registry.end_session(scene.session().await, end).await;

        assert_eq!(agent.close_code().await, code, "{end:?}");
    }
}
