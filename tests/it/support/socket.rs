//! A client WebSocket, which agents and dashboards both use: every wait has an end, and the way it closed is recorded.

use std::net::{Ipv4Addr, SocketAddr};

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::in_time;

/// The code of a close without one (RFC 6455, 7.1.5).
const NO_CODE: u16 = 1005;

/// A TCP connection from this address of the loopback, to be distinguishable by it.
pub async fn connect_from(from: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    in_time("connecting", socket.connect(address)).await.unwrap()
}

/// A socket that answers pings whenever it is read.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
    /// The service's answer to the upgrade.
    pub headers: HeaderMap,
}

/// The next event on a socket.
#[derive(Debug)]
pub enum Received {
    /// A text or binary message.
    Message(Message),
    /// A close frame with this code.
    Closed(u16),
    /// The connection ended without a close frame.
    Broken,
}

impl Socket {
    /// Upgrades at `path`. Returns the status of the answer when the service refuses.
    pub async fn connect(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let tcp = in_time("connecting", TcpStream::connect(address)).await.unwrap();
        Self::upgrade(tcp, address, path, headers).await
    }

    /// The same on an existing connection.
    pub async fn upgrade(
        tcp: TcpStream,
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, u16> {
        let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
        }

        match in_time("the upgrade", client_async(request, tcp)).await {
            Ok((stream, answer)) => Ok(Self { stream, headers: answer.headers().clone() }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("the upgrade of {path} failed: {error}"),
        }
    }

    /// The same where the service may be away; none when it did not work out.
    pub async fn attempt(address: SocketAddr, path: &str) -> Option<Self> {
        let request = format!("ws://{address}{path}").into_client_request().unwrap();
        let upgrade = async {
            let tcp = TcpStream::connect(address).await.ok()?;
            client_async(request, tcp).await.ok()
        };
        let (stream, answer) = in_time("an attempt to connect", upgrade).await?;
        Some(Self { stream, headers: answer.headers().clone() })
    }

    pub async fn send(&mut self, message: Message) {
        self.try_send(message).await.unwrap_or_else(|error| panic!("could not send: {error}"));
    }

    /// Sends on a socket that the service may have closed already.
    pub async fn try_send(&mut self, message: Message) -> Result<(), Error> {
        in_time("sending", self.stream.send(message)).await
    }

    /// The next message or the end, whichever comes first.
    pub async fn receive(&mut self) -> Received {
        in_time("the next message", self.receive_untimed()).await
    }

    /// The code with which the service closes; messages before that are passed over.
    pub async fn close_code(&mut self) -> u16 {
        let closing = async {
            loop {
                match self.receive_untimed().await {
                    Received::Message(_) => {}
                    Received::Closed(code) => return code,
                    Received::Broken => panic!("the connection ended without a close frame"),
                }
            }
        };
        in_time("the close of the socket", closing).await
    }

    pub async fn expect_close(&mut self, code: u16) {
        assert_eq!(self.close_code().await, code, "close code");
    }

    /// Ends the connection at once, as a crash does.
    pub fn abort(self) {
        let tcp = self.stream.get_ref();
        tcp.set_zero_linger().unwrap();
    }

    /// Closes in the orderly way.
    pub async fn close(mut self) {
        // The service may have closed first, which is fine.
        let _ = in_time("closing", self.stream.close(None)).await;
    }

    async fn receive_untimed(&mut self) -> Received {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(frame))) => {
                    return Received::Closed(frame.map_or(NO_CODE, |frame| frame.code.into()));
                }
                Some(Ok(message)) => return Received::Message(message),
                Some(Err(_)) | None => return Received::Broken,
            }
        }
    }
}
