//! A service that a test controls.

use futures_util::{SinkExt, StreamExt};
use signalbox_protocol::agent::{AgentMessage, Auth, AuthResponse, Metrics, Response, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use uuid::Uuid;

use crate::agent::PATIENCE;

pub struct Service {
    listener: TcpListener,
}

impl Service {
    pub async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// The next connection, before anything was sent on it.
    pub async fn accept_tcp(&self) -> TcpStream {
        timeout(PATIENCE, self.listener.accept()).await.expect("the agent connects").unwrap().0
    }

    /// Answers the next connection, which asks whether the service is ready.
    pub async fn answer_readiness(&self, status: u16) {
        let mut stream = BufReader::new(self.accept_tcp().await);
        let mut asked = String::new();
        while !asked.ends_with("\r\n\r\n") {
            stream.read_line(&mut asked).await.unwrap();
        }
        assert!(asked.starts_with("GET /readyz HTTP/1.1\r\n"), "{asked}");
        let answer = format!("HTTP/1.1 {status} as it is\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    /// The next connection, as a WebSocket.
    pub async fn accept(&self) -> Peer<TcpStream> {
        Peer::upgrade(self.accept_tcp().await).await
    }

    /// The next connection, however long it takes: for tests that drive the clock.
    pub async fn accept_sometime(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// Closes every connection, while it is polled.
    pub async fn refuse_everybody(&self) {
        loop {
            drop(self.accept_sometime().await);
        }
    }

    /// The next connection, whose key it accepts.
    pub async fn accept_authenticated(&self) -> Peer<TcpStream> {
        let mut peer = self.accept().await;
        peer.auth().await;
        peer.send(&accepted(None)).await;
        peer
    }
}

pub fn accepted(sample_interval_seconds: Option<f64>) -> ServiceMessage {
    let accepted = AuthResponse::accepted(Uuid::from_u128(1), Uuid::from_u128(2), 0.0, 0);
    ServiceMessage::AuthResponse(AuthResponse { sample_interval_seconds, ..accepted })
}

pub fn refused(code: &str, detail: &str) -> ServiceMessage {
    ServiceMessage::AuthResponse(AuthResponse::refused(code, detail))
}

/// The service's end of one connection.
pub struct Peer<S> {
    pub socket: WebSocketStream<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub async fn upgrade(stream: S) -> Self {
        let upgraded = timeout(PATIENCE, tokio_tungstenite::accept_async(stream)).await;
        Self { socket: upgraded.expect("the agent asks for a WebSocket").unwrap() }
    }

    /// The next frame that is neither ping nor pong. None when the connection is gone.
    pub async fn frame(&mut self) -> Option<Message> {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("the agent says something") {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                frame => return frame.and_then(Result::ok),
            }
        }
    }

    pub async fn message(&mut self) -> AgentMessage {
        let frame = self.frame().await.expect("the connection is open");
        let Message::Binary(bytes) = frame else { panic!("agents speak MessagePack, not {frame:?}") };
        match Encoding::MessagePack.decode(&bytes).unwrap() {
            Decoded::Known(message) => message,
            Decoded::Unknown => panic!("a message of the protocol"),
        }
    }

    pub async fn auth(&mut self) -> Auth {
        match self.message().await {
            AgentMessage::Auth(auth) => auth,
            other => panic!("the first message is auth, not {other:?}"),
        }
    }

    /// The next samples; descriptions of their series are skipped.
    pub async fn metrics(&mut self) -> Metrics {
        loop {
            match self.message().await {
                AgentMessage::Metrics(metrics) => return metrics,
                AgentMessage::Series { .. } => {}
                other => panic!("metrics, not {other:?}"),
            }
        }
    }

    /// The next message that is neither samples nor their descriptions.
    pub async fn next(&mut self) -> AgentMessage {
        loop {
            match self.message().await {
                AgentMessage::Metrics(_) | AgentMessage::Series { .. } => {}
                other => return other,
            }
        }
    }

    /// The next response, after any metrics in transit.
    pub async fn response(&mut self) -> Response {
        loop {
            match self.message().await {
                AgentMessage::Response(response) => return response,
                AgentMessage::Metrics(_) | AgentMessage::Series { .. } => {}
                other => panic!("a response, not {other:?}"),
            }
        }
    }

    pub async fn send(&mut self, message: &ServiceMessage) {
        let bytes = Encoding::MessagePack.encode(message).unwrap();
        self.socket.send(Message::Binary(bytes)).await.unwrap();
    }

    pub async fn ack(&mut self, seq: u64) {
        self.send(&ServiceMessage::Ack { seq }).await;
    }

    pub async fn close(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        self.socket.close(Some(frame)).await.unwrap();
    }

    /// Reads until the agent says goodbye, and does not answer yet.
    pub async fn goodbye(&mut self) {
        while !matches!(self.frame().await.expect("the agent says goodbye"), Message::Close(_)) {}
    }

    /// Reads until the agent hangs up.
    pub async fn gone(&mut self) {
        while self.frame().await.is_some() {}
    }
}

impl Peer<TcpStream> {
    /// Sends a message as if it had been on its way when the agent said goodbye: a WebSocket sends none after that.
    pub async fn send_late(&mut self, message: &ServiceMessage) {
        let bytes = Encoding::MessagePack.encode(message).unwrap();
        assert!(bytes.len() >= 126, "a shorter message has a shorter head");
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        // A final binary frame, with a length of 16 bits.
        let frame = [&[0x82, 126][..], &length[..], &bytes[..]].concat();
        self.socket.get_mut().write_all(&frame).await.unwrap();
    }
}
