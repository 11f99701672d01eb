//! A client that waits for alerts on a socket.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::Context;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::socket::Socket;
use crate::stop::Stop;

/// The feed of the alerts of all servers.
pub const ALL_ALERTS: &str = "/api/v1/ws/alerts";

/// An alert arrived.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub server_id: Uuid,
    pub alert_id: Uuid,
    pub is_resolved: bool,
    pub at: Instant,
}

/// How a feed ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Messages that the service says it left out.
    pub dropped: u64,
    /// Why it ended before `stop` fired.
    pub failure: Option<String>,
}

/// The part of a message that is read.
#[derive(Debug, Deserialize)]
struct FeedMessage {
    r#type: String,
    #[serde(default)]
    data: Data,
}

#[derive(Debug, Deserialize, Default)]
struct Data {
    id: Option<Uuid>,
    server_id: Option<Uuid>,
    status: Option<String>,
    count: Option<u64>,
}

impl FeedMessage {
    /// The message's alert, which came at `at`.
    fn alert(&self, at: Instant) -> Option<Seen> {
        let Data { id: Some(alert_id), server_id: Some(server_id), status: Some(status), .. } = &self.data else {
            return None;
        };
        let is_resolved = status == "resolved";
        (self.r#type == "alert").then_some(Seen { server_id: *server_id, alert_id: *alert_id, is_resolved, at })
    }

    fn dropped(&self) -> u64 {
        if self.r#type == "dropped" { self.data.count.unwrap_or_default() } else { 0 }
    }
}

/// Opens a feed; its alerts go to `seen`, with the feed's own mark.
pub async fn open<T: Copy + Send + 'static>(
    address: SocketAddr,
    path: &str,
    token: &str,
    mark: T,
    seen: mpsc::Sender<(T, Seen)>,
    stop: Stop,
) -> anyhow::Result<JoinHandle<Ended>> {
    let socket = Socket::connect(address, path, Some(token)).await.with_context(|| path.to_owned())?;
    Ok(tokio::spawn(read(socket, mark, seen, stop)))
}

async fn read<T: Copy>(mut socket: Socket, mark: T, seen: mpsc::Sender<(T, Seen)>, mut stop: Stop) -> Ended {
    let mut ended = Ended::default();
    loop {
        let message = tokio::select! {
            () = stop.requested() => break,
            message = socket.next() => message,
        };
        let at = Instant::now();
        let message = match message.and_then(|message| parse(&message)) {
            Ok(message) => message,
            Err(error) => {
                ended.failure = Some(format!("{error:#}"));
                break;
            }
        };
        ended.dropped += message.dropped();
        if let Some(one) = message.alert(at)
            && seen.send((mark, one)).await.is_err()
        {
            break;
        }
    }
    socket.close().await;
    ended
}

fn parse(message: &Message) -> anyhow::Result<FeedMessage> {
    let Message::Text(text) = message else { anyhow::bail!("a feed got something else than text") };
    serde_json::from_str(text).context("a feed got something else than a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(text: &str) -> Option<Seen> {
        parse(&Message::text(text)).unwrap().alert(Instant::now())
    }

    #[test]
    fn an_alert_is_read() {
        let [id, server_id] = [1, 2].map(Uuid::from_u128);
        let text = |status: &str| {
            format!(r#"{{"type":"alert","data":{{"id":"{id}","server_id":"{server_id}","status":"{status}","x":1}}}}"#)
        };

        let active = alert(&text("active")).unwrap();
        let resolved = alert(&text("resolved")).unwrap();

        assert_eq!((active.alert_id, active.server_id, active.is_resolved), (id, server_id, false));
        assert!(resolved.is_resolved);
    }

    #[test]
    fn everything_else_is_passed_over() {
        let status = r#"{"type":"status","data":{"status":"online"}}"#;
        let expiring = r#"{"type":"token_expiring"}"#;
        let dropped = parse(&Message::text(r#"{"type":"dropped","data":{"count":3}}"#)).unwrap();

        assert!(alert(status).is_none());
        assert!(alert(expiring).is_none());
        assert_eq!(dropped.dropped(), 3);
    }
}
