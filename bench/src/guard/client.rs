//! Clients that cost next to nothing, so that the figures are the service's: they block, and their sockets hold no memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use uuid::Uuid;

/// Far longer than anything takes, on a machine under load and in callgrind.
const PATIENCE: Duration = Duration::from_secs(300);

/// The longest answer.
const BUFFER_BYTES: usize = 1 << 20;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A request to the API, as bytes.
pub fn request(method: &str, path: &str, token: Option<&str>, body: &str) -> Vec<u8> {
    let mut head = format!("{method} /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    if let Some(token) = token {
        head.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    format!("{head}\r\n{body}").into_bytes()
}

/// A connection for requests, one after the other.
pub struct Http {
    stream: TcpStream,
    buffer: Vec<u8>,
}

pub struct Answer {
    pub body: Vec<u8>,
    /// Of head and body.
    pub bytes: usize,
}

impl Http {
    pub fn connect(address: SocketAddr) -> Self {
        Self { stream: connect(address), buffer: vec![0; BUFFER_BYTES] }
    }

    /// Asks, and expects that all is well.
    pub fn ask(&mut self, request: &[u8]) -> Answer {
        self.send(request);
        self.answer()
    }

    pub fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).unwrap();
    }

    pub fn answer(&mut self) -> Answer {
        let mut received = Vec::new();
        loop {
            let count = self.stream.read(&mut self.buffer).unwrap();
            assert!(count > 0, "the service hung up");
            received.extend_from_slice(&self.buffer[..count]);
            let Some(end) = received.windows(END_OF_HEAD.len()).position(|four| four == END_OF_HEAD) else { continue };
            let body = end + END_OF_HEAD.len();
            let head = std::str::from_utf8(&received[..end]).unwrap();
            if received.len() >= body + content_length(head) {
                assert!(head.starts_with("HTTP/1.1 2"), "{}", String::from_utf8_lossy(&received));
                return Answer { bytes: received.len(), body: received.split_off(body) };
            }
        }
    }

    /// Reads an answer of this many bytes and ignores it.
    pub fn pass_over(&mut self, bytes: usize) {
        self.stream.read_exact(&mut self.buffer[..bytes]).unwrap();
    }
}

fn content_length(head: &str) -> usize {
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
    length.expect("an answer in one piece").parse().unwrap()
}

/// A WebSocket, of an agent or a dashboard.
pub struct Socket {
    stream: TcpStream,
}

impl Socket {
    pub fn open(address: SocketAddr, path: &str, token: Option<&str>) -> Self {
        let mut stream = connect(address);
        let plain = String::from_utf8(request("GET", path, token, "")).unwrap();
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(format!("{}\r\n{upgrade}", plain.trim_end()).as_bytes()).unwrap();
        // Byte by byte, because frames follow.
        let (mut head, mut byte) = (Vec::new(), [0_u8]);
        while !head.ends_with(END_OF_HEAD) {
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self { stream }
    }

    /// One masked frame of text (RFC 6455, 5.2). A mask of zeros leaves the text as it is.
    pub fn say(&mut self, text: &[u8]) {
        let length = u16::try_from(text.len()).unwrap();
        let mut frame = vec![0x81];
        match u8::try_from(length).ok().filter(|short| *short < 126) {
            Some(short) => frame.push(0x80 | short),
            None => {
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text);
        self.stream.write_all(&frame).unwrap();
    }

    /// Reads until a frame is the expected one. Returns its length; the frame is at the beginning of `buffer`.
    pub fn until(&mut self, buffer: &mut Vec<u8>, is_it: impl Fn(&[u8]) -> bool) -> usize {
        loop {
            let length = self.frame(buffer);
            if is_it(&buffer[..length]) {
                return length;
            }
        }
    }

    fn frame(&mut self, buffer: &mut Vec<u8>) -> usize {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.stream.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            127 => panic!("a frame of more than 64 KiB"),
            length => usize::from(length),
        };
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        self.stream.read_exact(&mut buffer[..length]).unwrap();
        assert!(head[0] & 0x0f != 8, "closed: {}", String::from_utf8_lossy(&buffer[..length]));
        length
    }
}

/// Whether a frame is text with this in it.
pub fn says(mark: &str) -> impl Fn(&[u8]) -> bool {
    move |frame| std::str::from_utf8(frame).is_ok_and(|text| text.contains(mark))
}

/// The first id after a key of a message in JSON.
pub fn id_in(message: &[u8], key: &str) -> Uuid {
    let text = std::str::from_utf8(message).unwrap();
    let (_, rest) = text.split_once(&format!("\"{key}\":\"")).unwrap();
    rest[..36].parse().unwrap()
}
