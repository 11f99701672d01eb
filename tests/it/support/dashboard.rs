//! A dashboard: watches a server over a WebSocket.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::socket::{Received, Socket};

/// How a dashboard shows its token.
#[derive(Debug, Clone, Copy)]
pub enum Pass<'a> {
    /// `Authorization: Bearer`.
    Header(&'a str),
    /// The subprotocols `bearer` and the token, as a browser can send them.
    Subprotocol(&'a str),
    /// `?token=`.
    Query(&'a str),
    Nothing,
}

impl<'a> Pass<'a> {
    /// All the ways to show a token.
    pub fn three_ways(token: &'a str) -> [Self; 3] {
        [Self::Header(token), Self::Subprotocol(token), Self::Query(token)]
    }
}

#[derive(Debug)]
pub struct Dashboard {
    pub socket: Socket,
}

impl Dashboard {
    /// Watches a server's metrics, with the token in the header.
    pub async fn watch(address: SocketAddr, server_id: Uuid, token: &str) -> Self {
        Self::open(address, &metrics_path(server_id), Pass::Header(token), &[])
            .await
            .unwrap_or_else(|status| panic!("the dashboard was refused: {status}"))
    }

    /// Upgrades at `path`. Returns the status of the answer when the service refuses.
    pub async fn open(address: SocketAddr, path: &str, pass: Pass<'_>, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let bearer;
        let offered;
        let mut all = headers.to_vec();
        let mut target = path.to_owned();
        match pass {
            Pass::Header(token) => {
                bearer = format!("Bearer {token}");
                all.push(("Authorization", &bearer));
            }
            Pass::Subprotocol(token) => {
                offered = format!("bearer, {token}");
                all.push(("Sec-WebSocket-Protocol", &offered));
            }
            Pass::Query(token) => target.push_str(&format!("?token={token}")),
            Pass::Nothing => {}
        }
        Ok(Self { socket: Socket::connect(address, &target, &all).await? })
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        match self.socket.receive().await {
            Received::Message(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("expected a text message, got {other:?}"),
        }
    }

    /// The next message, if one comes within a moment, for tests that keep doing something until it comes.
    pub async fn next_if_any(&mut self) -> Option<Value> {
        tokio::time::timeout(Duration::from_millis(100), self.next()).await.ok()
    }

    /// The data of the next message, which must be of this type.
    pub async fn expect(&mut self, kind: &str) -> Value {
        let mut message = self.next().await;
        assert_eq!(message["type"], kind, "{message}");
        message["data"].take()
    }

    /// The data of the next message of this type, whatever comes before it.
    pub async fn until(&mut self, kind: &str) -> Value {
        loop {
            let mut message = self.next().await;
            if message["type"] == kind {
                return message["data"].take();
            }
        }
    }

    pub async fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await;
    }

    pub async fn expect_close(&mut self, code: u16) {
        self.socket.expect_close(code).await;
    }
}

pub fn metrics_path(server_id: Uuid) -> String {
    format!("/api/v1/ws/metrics/{server_id}")
}
