//! A service in an attacker's hands: it has the key, and sends an agent whatever it likes.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, Auth, AuthResponse, Event, RequestError, Response, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::in_time;

pub struct Hostile {
    listener: TcpListener,
}

impl Hostile {
    pub async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// The next agent, with its description of itself. Any key is accepted.
    pub async fn accept(&self) -> (Captive, Auth) {
        let (stream, _) = in_time("the agent connects", self.listener.accept()).await.unwrap();
        let socket = in_time("the upgrade", tokio_tungstenite::accept_async(stream)).await.unwrap();
        let mut captive = Captive { socket };
        let AgentMessage::Auth(auth) = captive.next().await else { panic!("an agent begins with auth") };
        let accepted = AuthResponse::accepted(Uuid::now_v7(), Uuid::now_v7(), 0.5, 0);
        captive.say(Encoding::MessagePack, &ServiceMessage::AuthResponse(accepted)).await;
        (captive, auth)
    }
}

/// An agent on a hostile service.
pub struct Captive {
    socket: WebSocketStream<TcpStream>,
}

impl Captive {
    pub async fn say(&mut self, encoding: Encoding, message: &ServiceMessage) {
        let bytes = encoding.encode(message).unwrap();
        self.send(match encoding {
            Encoding::Json => Message::text(String::from_utf8(bytes.to_vec()).unwrap()),
            Encoding::MessagePack => Message::binary(bytes),
        })
        .await;
    }

    /// Sends a value that may be no message of the protocol.
    pub async fn say_value(&mut self, encoding: Encoding, value: &Value) {
        self.send(match encoding {
            Encoding::Json => Message::text(value.to_string()),
            Encoding::MessagePack => Message::binary(rmp_serde::to_vec_named(value).unwrap()),
        })
        .await;
    }

    /// Sends it, and returns the answer to this id.
    pub async fn ask(&mut self, encoding: Encoding, message: &ServiceMessage, id: Uuid) -> Result<Value, RequestError> {
        self.say(encoding, message).await;
        self.answer(id).await
    }

    /// The answer to this id.
    pub async fn answer(&mut self, id: Uuid) -> Result<Value, RequestError> {
        let AgentMessage::Response(response) = self.until(|message| is_answer(message, id)).await else {
            unreachable!()
        };
        response.into_outcome()
    }

    /// The next sample.
    pub async fn sample(&mut self) {
        self.until(|message| matches!(message, AgentMessage::Metrics(_))).await;
    }

    /// The next event of this kind.
    pub async fn event(&mut self, kind: &str) -> Event {
        match self.until(|message| matches!(message, AgentMessage::Event(event) if event.kind == kind)).await {
            AgentMessage::Event(event) => event,
            _ => unreachable!(),
        }
    }

    /// The next sample, which must come before any event.
    pub async fn sample_and_no_event(&mut self) {
        let is_wanted =
            |message: &AgentMessage| !matches!(message, AgentMessage::Response(_) | AgentMessage::Series { .. });
        let message = self.until(is_wanted).await;
        assert!(matches!(message, AgentMessage::Metrics(_)), "nothing else is sent: {message:?}");
    }

    async fn until(&mut self, is_wanted: impl Fn(&AgentMessage) -> bool) -> AgentMessage {
        loop {
            let message = self.next().await;
            let is_answer = matches!(message, AgentMessage::Response(_));
            let is_told =
                matches!(message, AgentMessage::Metrics(_) | AgentMessage::Series { .. } | AgentMessage::Event(_));
            let is_harmless = is_answer || is_told;
            assert!(is_harmless, "it obeyed: {message:?}");
            if is_wanted(&message) {
                return message;
            }
        }
    }

    /// The next message; samples are acknowledged.
    async fn next(&mut self) -> AgentMessage {
        let message = loop {
            match in_time("the agent's next message", self.socket.next()).await {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(text))) => break Encoding::Json.decode(text.as_bytes()),
                Some(Ok(Message::Binary(bytes))) => break Encoding::MessagePack.decode(&bytes),
                end => panic!("the agent has gone: {end:?}"),
            }
        };
        let Ok(Decoded::Known(message)) = message else { panic!("not a message of the protocol: {message:?}") };
        if let AgentMessage::Metrics(metrics) = &message {
            self.say(Encoding::MessagePack, &ServiceMessage::Ack { seq: metrics.seq }).await;
        }
        message
    }

    async fn send(&mut self, message: Message) {
        in_time("sending", self.socket.send(message)).await.unwrap();
    }
}

fn is_answer(message: &AgentMessage, id: Uuid) -> bool {
    matches!(message, AgentMessage::Response(Response { request_id, .. }) if *request_id == id)
}
