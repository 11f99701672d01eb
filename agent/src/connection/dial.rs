//! From an address to an open WebSocket, or to an answer, each step with its own deadline.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustls::pki_types::ServerName;
use signalbox_protocol::MAX_MESSAGE_BYTES;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::tls::TrustStore;
use super::tunnel::{self, TunnelError};
use super::words;
use crate::config::Timing;
use crate::proxy::Proxy;
use crate::url::ServiceUrl;

/// TCP, with or without TLS.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

pub type Socket = WebSocketStream<Box<dyn Transport>>;

/// Acks and pings are some ten bytes; a rare large request grows the buffer.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// A backlog batch of 128 KiB and an answer fit; more than this waits in the outbox.
const MAX_WRITE_BUFFER_BYTES: usize = 2 * MAX_MESSAGE_BYTES;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("cannot look up {host}: {source}")]
    Lookup { host: String, source: io::Error },
    #[error("{0} has no address")]
    NoAddress(String),
    #[error("cannot connect to {address}: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("the proxy {proxy} {source}")]
    Proxy { proxy: String, source: TunnelError },
    #[error("no TLS with {host}: {}", words::of_tls(.source))]
    Tls { host: String, source: io::Error },
    #[error("{0} is no name that a certificate can be for")]
    ServerName(String),
    #[error("the service did not take the WebSocket: {}", words::of_upgrade(.0))]
    Upgrade(Box<WsError>),
    #[error("the service gave no answer: {0}")]
    Http(hyper::Error),
    #[error("{0} took too long")]
    TimedOut(&'static str),
}

impl DialError {
    /// Whether the service's certificate was refused.
    pub fn is_untrusted(&self) -> bool {
        let Self::Tls { source, .. } = self else { return false };
        let fault = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        matches!(fault, Some(rustls::Error::InvalidCertificate(_)))
    }
}

/// The path to the service.
#[derive(Clone, Copy)]
pub struct Endpoint<'a> {
    pub url: &'a ServiceUrl,
    pub proxy: Option<&'a Proxy>,
    pub tls: Option<&'a TrustStore>,
    pub timing: &'a Timing,
}

impl Endpoint<'_> {
    /// Opens the agents' WebSocket. The name is looked up each time, because a service may have moved.
    pub async fn open(self) -> Result<Socket, DialError> {
        upgrade(self.url, self.reach().await?, self.timing.handshake_step).await
    }

    /// Whether a new connection would be served, by the service that answers now, which may be another instance than the one
    /// that holds the connection. No answer means no.
    pub async fn is_ready(self) -> bool {
        self.get(&self.url.readiness_path()).await.is_ok_and(|answer| answer.status().is_success())
    }

    /// Asks for a path of the service. The connection ends with the answer's body.
    pub async fn get(self, path: &str) -> Result<Response<Incoming>, DialError> {
        let transport = self.reach().await?;
        let asked = timeout(self.timing.handshake_step, get(self.url, path, transport)).await;
        asked.map_err(|_| DialError::TimedOut("the answer"))?.map_err(DialError::Http)
    }

    async fn reach(self) -> Result<Box<dyn Transport>, DialError> {
        let Self { url, proxy, tls, timing } = self;
        let step = timing.handshake_step;
        let (host, port) = proxy.map_or((&url.host, url.port), |proxy| (&proxy.host, proxy.port));
        let mut tcp = connect(host, port, step).await?;
        // Without these settings the connection works, only slower: samples are small and should leave at once, and data that
        // the peer never acknowledges should not be retried for a quarter of an hour.
        let _ = tcp.set_nodelay(true);
        let _ = set_tcp_user_timeout(&tcp, u32::try_from(timing.silence.as_millis()).unwrap_or(0));
        if let Some(proxy) = proxy {
            let opened = tunnel::open(&mut tcp, proxy, url, step).await;
            opened.map_err(|source| DialError::Proxy { proxy: proxy.to_string(), source })?;
        }
        let Some(trusted) = tls else { return Ok(Box::new(tcp)) };
        let name = ServerName::try_from(url.host.clone()).map_err(|_| DialError::ServerName(url.host.clone()))?;
        let secured = timeout(step, trusted.connector().connect(name, tcp)).await;
        let secured = secured.map_err(|_| DialError::TimedOut("TLS"))?;
        Ok(Box::new(secured.map_err(|source| DialError::Tls { host: url.host.clone(), source })?))
    }
}

async fn get(url: &ServiceUrl, path: &str, transport: Box<dyn Transport>) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(transport)).await?;
    tokio::spawn(connection);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = path.parse().unwrap_or_default();
    if let Ok(host) = HeaderValue::from_str(&url.authority()) {
        request.headers_mut().insert(HOST, host);
    }
    sender.send_request(request).await
}

/// Tries every address of the host in turn, and returns the last failure.
async fn connect(name: &str, port: u16, step: Duration) -> Result<TcpStream, DialError> {
    let host = || name.to_owned();
    let looked_up = timeout(step, lookup_host((name, port))).await;
    let addresses = looked_up
        .map_err(|_| DialError::TimedOut("the name lookup"))?
        .map_err(|source| DialError::Lookup { host: host(), source })?;
    let mut failure = DialError::NoAddress(host());
    for address in addresses {
        match timeout(step, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => return Ok(tcp),
            Ok(Err(source)) => failure = DialError::Connect { address, source },
            Err(_) => failure = DialError::Connect { address, source: io::ErrorKind::TimedOut.into() },
        }
    }
    Err(failure)
}

async fn upgrade(url: &ServiceUrl, transport: Box<dyn Transport>, step: Duration) -> Result<Socket, DialError> {
    // The scheme only tells the library what to put into the request; TLS is already set up.
    let request = url.to_string().into_client_request().map_err(|error| DialError::Upgrade(Box::new(error)))?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_WRITE_BUFFER_BYTES)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let upgraded = timeout(step, client_async_with_config(request, transport, Some(config))).await;
    let (socket, _) = upgraded
        .map_err(|_| DialError::TimedOut("the WebSocket upgrade"))?
        .map_err(|error| DialError::Upgrade(Box::new(error)))?;
    Ok(socket)
}
