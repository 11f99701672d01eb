//! A WebSocket client with small buffers, so that ten thousand of them fit in memory with the service.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Longer than an agent waits for an answer before it tries again.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for a peer's answer to a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// A snapshot as JSON is below 2 KiB, an ack below 64 bytes.
const READ_BUFFER_BYTES: usize = 2048;

/// The peer closed the connection, and said why.
#[derive(Debug)]
pub struct Closed {
    pub code: u16,
    pub reason: String,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "closed with {}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Closed {}

/// One connection. Pings are answered while it is read.
#[derive(Debug)]
pub struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    /// Connects to `path`, with a bearer token if there is one.
    pub async fn connect(address: SocketAddr, path: &str, token: Option<&str>) -> anyhow::Result<Self> {
        timeout(ATTEMPT_TIMEOUT, handshake(address, path, token)).await.context("no answer to the handshake")?
    }

    pub async fn send(&mut self, message: Message) -> anyhow::Result<()> {
        self.0.send(message).await.context("cannot send")
    }

    /// The next message with content. An error when the connection is closed or broken. Cancel safe.
    pub async fn next(&mut self) -> anyhow::Result<Message> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err(Closed { code: frame.code.into(), reason: frame.reason.to_string() }.into());
                }
                Some(Ok(Message::Close(None))) | None => anyhow::bail!("closed without a code"),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(message)) => return Ok(message),
                Some(Err(error)) => return Err(error).context("connection lost"),
            }
        }
    }

    /// Says goodbye, and waits a little for the answer.
    pub async fn close(mut self) {
        let farewell = async {
            if self.0.close(None).await.is_ok() {
                while let Some(Ok(_)) = self.0.next().await {}
            }
        };
        // A peer that is already gone, or too slow, has nothing more to send.
        timeout(CLOSE_TIMEOUT, farewell).await.ok();
    }
}

async fn handshake(address: SocketAddr, path: &str, token: Option<&str>) -> anyhow::Result<Socket> {
    let mut request = format!("ws://{address}{path}").into_client_request()?;
    if let Some(token) = token {
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {token}"))?);
    }
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    // A write buffer of 0 passes every message to the socket at once.
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES).write_buffer_size(0);
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok(Socket(socket)),
        Err(Error::Http(response)) => anyhow::bail!("the handshake was answered with {}", response.status()),
        Err(error) => Err(error).context("the handshake failed"),
    }
}
