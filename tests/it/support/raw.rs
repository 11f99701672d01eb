//! A client that implements WebSocket by hand, to send what no correct client would.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::in_time;

/// First bytes of frames (RFC 6455, 5.2).
pub const FIN: u8 = 0x80;
pub const CONTINUATION: u8 = 0x0;
pub const TEXT: u8 = 0x1;
pub const BINARY: u8 = 0x2;
pub const CLOSE: u8 = 0x8;
pub const PING: u8 = 0x9;
pub const PONG: u8 = 0xA;

const MASKED: u8 = 0x80;
const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

/// More than any answer to an upgrade takes.
const MAX_HEADER_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct RawSocket {
    stream: TcpStream,
    received: Vec<u8>,
}

/// A frame of the service.
#[derive(Debug, PartialEq, Eq)]
pub struct SocketFrame {
    pub opcode: u8,
    pub payload: Vec<u8>,
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// With a close frame of this code.
    Closed(u16),
    /// Without a close frame: closed, or reset because it had sent more than the service wanted to read.
    Cut,
}

impl RawSocket {
    /// A TCP connection, and nothing said yet.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(in_time("connecting", TcpStream::connect(address)).await.unwrap())
    }

    /// The same on an existing connection.
    pub fn over(stream: TcpStream) -> Self {
        Self { stream, received: Vec::new() }
    }

    /// An upgraded connection. Returns the status of the answer when the service refuses.
    pub async fn upgrade(address: SocketAddr, path: &str, token: Option<&str>) -> Result<Self, u16> {
        let mut socket = Self::connect(address).await;
        let request = upgrade_request(path, token);
        in_time("asking for the upgrade", socket.write(request.as_bytes())).await.map_err(|_| 0_u16)?;
        match in_time("the answer to the upgrade", socket.status()).await {
            101 => Ok(socket),
            status => Err(status),
        }
    }

    /// An upgraded connection of an agent that has said nothing yet.
    pub async fn agent(address: SocketAddr) -> Self {
        Self::upgrade(address, super::agent::AGENT_PATH, None)
            .await
            .unwrap_or_else(|status| panic!("the upgrade was refused: {status}"))
    }

    /// An upgraded connection of an agent whose key was accepted, in JSON.
    pub async fn authenticated_agent(address: SocketAddr, key: &str) -> Self {
        let mut socket = Self::agent(address).await;
        let auth = super::agent::encode(signalbox_protocol::Encoding::Json, &super::agent::auth(key));
        socket.write(&frame(FIN | TEXT, &auth.into_data())).await.unwrap();
        let answer = socket.next_message().await.expect("an auth_response");
        let text = String::from_utf8(answer.payload).unwrap();
        assert!(text.contains(r#""success":true"#), "{text}");
        socket
    }

    /// An upgraded connection of a dashboard that watches a server.
    pub async fn dashboard(address: SocketAddr, server_id: uuid::Uuid, token: &str) -> Self {
        Self::upgrade(address, &super::dashboard::metrics_path(server_id), Some(token))
            .await
            .unwrap_or_else(|status| panic!("the upgrade was refused: {status}"))
    }

    /// Writes all of the bytes, or fails when the service has ended the connection.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next frame of any kind; `None` at the end of the connection.
    pub async fn next_frame(&mut self) -> Option<SocketFrame> {
        in_time("the next frame", self.next_frame_untimed()).await
    }

    /// The next frame that is no ping.
    pub async fn next_message(&mut self) -> Option<SocketFrame> {
        loop {
            let frame = self.next_frame().await?;
            if frame.opcode != PING {
                return Some(frame);
            }
        }
    }

    /// How the service ends the connection; earlier messages are skipped.
    pub async fn end(&mut self) -> End {
        let ending = async {
            loop {
                match self.next_frame_untimed().await {
                    None => return End::Cut,
                    Some(SocketFrame { opcode: CLOSE, payload }) => return End::Closed(close_code(&payload)),
                    Some(_) => {}
                }
            }
        };
        in_time("the end of the connection", ending).await
    }

    pub async fn expect_close(&mut self, code: u16) {
        assert_eq!(self.end().await, End::Closed(code));
    }

    /// Asserts that the service ended it, with one of these codes if it could still say so.
    pub async fn expect_end(&mut self, codes: &[u16]) {
        match self.end().await {
            End::Closed(code) => assert!(codes.contains(&code), "closed with {code}, not one of {codes:?}"),
            End::Cut => {}
        }
    }

    /// Everything up to the end of the connection.
    pub async fn read_to_end(&mut self) -> Vec<u8> {
        let reading = async { while self.read_more().await {} };
        in_time("the end of the connection", reading).await;
        std::mem::take(&mut self.received)
    }

    /// Whether the other end of the connection is still open, according to the kernel: the service cannot inform a peer that
    /// reads nothing.
    pub fn is_held_by_peer(&self) -> bool {
        const ESTABLISHED: &str = "01";
        let (own, peer) = (self.stream.local_addr().unwrap().port(), self.stream.peer_addr().unwrap().port());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().skip(1).any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[1].ends_with(&format!(":{peer:04X}"))
                && fields[2].ends_with(&format!(":{own:04X}"))
                && fields[3] == ESTABLISHED
        })
    }

    /// The status of the answer whose head arrives next; 0 when there is none.
    pub async fn status(&mut self) -> u16 {
        loop {
            if let Some(end) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.received[..end]).into_owned();
                self.received.drain(..end + 4);
                return head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            }
            assert!(self.received.len() < MAX_HEADER_BYTES, "an endless answer");
            if !self.read_more().await {
                return 0;
            }
        }
    }

    /// Passes over a short answer's body, which has come with its head.
    pub async fn pass_over_body(&mut self) {
        while !self.received.ends_with(b"}") {
            assert!(self.read_more().await, "the connection ended");
        }
        self.received.clear();
    }

    async fn next_frame_untimed(&mut self) -> Option<SocketFrame> {
        loop {
            if let Some((frame, length)) = parse(&self.received) {
                self.received.drain(..length);
                return Some(frame);
            }
            if !self.read_more().await {
                return None;
            }
        }
    }

    /// Reads what is available; false at the end of the connection.
    async fn read_more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.received).await, Ok(length) if length > 0)
    }
}

/// The request that upgrades to a WebSocket.
pub fn upgrade_request(path: &str, token: Option<&str>) -> String {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{authorization}\r\n"
    )
}

/// A masked frame, as clients send them; `first` is FIN, reserved bits and opcode.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(first, payload.len() as u64);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// The header of a masked frame that declares this many bytes.
pub fn header(first: u8, declared: u64) -> Vec<u8> {
    let mut bytes = vec![first];
    match declared {
        0..126 => bytes.push(MASKED | declared as u8),
        126..=0xFFFF => {
            bytes.push(MASKED | 126);
            bytes.extend((declared as u16).to_be_bytes());
        }
        _ => {
            bytes.push(MASKED | 127);
            bytes.extend(declared.to_be_bytes());
        }
    }
    bytes.extend(MASK);
    bytes
}

/// The first frame of `bytes` and its length, once it is complete.
fn parse(bytes: &[u8]) -> Option<(SocketFrame, usize)> {
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    assert_eq!(second & MASKED, 0, "a service never masks");
    let (start, length) = match second {
        126 => (4, u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap()))),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap())),
        length => (2, u64::from(length)),
    };
    let end = start + usize::try_from(length).unwrap();
    let payload = bytes.get(start..end)?.to_vec();
    Some((SocketFrame { opcode: first & 0x0F, payload }, end))
}

/// 1005 where the frame names no code (RFC 6455, 7.1.5).
fn close_code(payload: &[u8]) -> u16 {
    payload.get(..2).map_or(1005, |code| u16::from_be_bytes(code.try_into().unwrap()))
}
