//! A client of a terminal that is kept when the client is lost.

use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use uuid::Uuid;

use super::dashboard::{Dashboard, Pass};

/// What a client needs to resume its terminal.
#[derive(Debug, Clone)]
pub struct Ticket {
    pub server_id: Uuid,
    pub terminal_id: Value,
    pub secret: Value,
    /// How many bytes it has read.
    pub offset: u64,
}

/// A client with a terminal. It checks that no output is missing.
#[derive(Debug)]
pub struct Client {
    pub socket: Dashboard,
    pub ticket: Ticket,
    /// Output that was not searched yet.
    shown: String,
}

impl Client {
    /// A new terminal of 100 by 30 characters.
    pub async fn open(address: SocketAddr, token: &str, server_id: Uuid) -> Self {
        Self::open_signed(address, token, server_id, None).await
    }

    /// The same with what was signed for it.
    pub async fn open_signed(address: SocketAddr, token: &str, server_id: Uuid, signed: Option<&Value>) -> Self {
        let signed = signed.map(|signed| format!("&signed={}", BASE64_URL_SAFE_NO_PAD.encode(signed.to_string())));
        let signed = signed.unwrap_or_default();
        let path = format!("/api/v1/ws/terminal/{server_id}?columns=100&rows=30&keep=true{signed}");
        let mut socket = Dashboard::open(address, &path, Pass::Subprotocol(token), &[]).await.unwrap();
        let kept = socket.expect("kept").await;
        let ticket =
            Ticket { server_id, terminal_id: kept["terminal_id"].clone(), secret: kept["secret"].clone(), offset: 0 };
        assert!(ticket.secret.as_str().is_some_and(|secret| secret.len() == 43), "{kept}");
        Self { socket, ticket, shown: String::new() }
    }

    /// The same terminal, from the byte that the ticket names.
    pub async fn resume(address: SocketAddr, token: &str, ticket: Ticket) -> Self {
        let mut socket = ask(address, token, &ticket).await.unwrap();
        let kept = socket.expect("kept").await;
        assert_eq!((&kept["terminal_id"], &kept["secret"]), (&ticket.terminal_id, &ticket.secret));
        Self { socket, ticket, shown: String::new() }
    }

    pub async fn type_in(&mut self, text: &str) {
        self.socket.send(json!({"type": "input", "data": {"data": text}})).await;
    }

    /// Reads until this is shown. Returns all output up to there.
    pub async fn until(&mut self, wanted: &str) -> String {
        loop {
            if let Some(place) = self.shown.find(wanted) {
                return self.shown.drain(..place + wanted.len()).collect();
            }
            let output = self.socket.expect("output").await;
            assert_eq!(output["offset"], json!(self.ticket.offset), "{output}");
            let data = output["data"].as_str().unwrap();
            self.ticket.offset += data.len() as u64;
            self.shown.push_str(data);
        }
    }

    /// Loses its connection.
    pub fn lose(self) -> Ticket {
        self.socket.socket.abort();
        self.ticket
    }

    /// Closes its socket with this code.
    pub async fn close(mut self, code: u16) -> Ticket {
        let frame = CloseFrame { code: code.into(), reason: "".into() };
        self.socket.socket.send(Message::Close(Some(frame))).await;
        self.ticket
    }
}

/// Asks for a terminal that is kept. Returns the status of the answer when the socket is refused.
pub async fn ask(address: SocketAddr, token: &str, ticket: &Ticket) -> Result<Dashboard, u16> {
    let path = format!("/api/v1/ws/terminal/{}?columns=132&rows=43&resume=true", ticket.server_id);
    let mut socket = Dashboard::open(address, &path, Pass::Subprotocol(token), &[]).await?;
    let Ticket { terminal_id, secret, offset, .. } = ticket;
    let data = json!({"terminal_id": terminal_id, "secret": secret, "offset": offset});
    socket.send(json!({"type": "resume", "data": data})).await;
    Ok(socket)
}
