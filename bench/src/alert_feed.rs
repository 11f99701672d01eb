//! Somebody who waits for alerts at a socket.

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

/// Where the alerts of all servers are told.
pub const ALL_ALERTS: &str = "/api/v1/ws/alerts";

/// An alert was told.
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
    /// Why it ended before it was told to.
    pub failure: Option<String>,
}

/// The part of a message that is looked at.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
enum FeedMessage {
    Alert {
        id: Uuid,
        server_id: Uuid,
        status: String,
    },
    Dropped {
        count: u64,
    },
    #[serde(other)]
    Other,
}

/// Opens a feed; what it tells of goes to `seen`, with the feed's own mark.
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
        match message.and_then(|message| parse(&message)) {
            Ok(FeedMessage::Alert { id, server_id, status }) => {
                let one = Seen { server_id, alert_id: id, is_resolved: status == "resolved", at };
                if seen.send((mark, one)).await.is_err() {
                    break;
                }
            }
            Ok(FeedMessage::Dropped { count }) => ended.dropped += count,
            Ok(FeedMessage::Other) => {}
            Err(error) => {
                ended.failure = Some(format!("{error:#}"));
                break;
            }
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

    fn read(text: &str) -> FeedMessage {
        parse(&Message::text(text)).unwrap()
    }

    #[test]
    fn alerts_are_read_and_everything_else_is_passed_over() {
        let id = "00000000-0000-0000-0000-000000000001";

        let alert =
            read(&format!(r#"{{"type":"alert","data":{{"id":"{id}","server_id":"{id}","status":"active","x":1}}}}"#));
        let metrics = read(r#"{"type":"metrics","data":{"cpu_percent":1.5}}"#);
        let expiring = read(r#"{"type":"token_expiring"}"#);

        assert!(matches!(alert, FeedMessage::Alert { id, status, .. } if id.as_u128() == 1 && status == "active"));
        assert!(matches!(metrics, FeedMessage::Other));
        assert!(matches!(expiring, FeedMessage::Other));
    }
}
