//! A receiver of webhooks: a real HTTP server that the test controls, well-behaved or not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::eventually;

/// A received request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    /// Empty if the bytes are no text.
    pub body: String,
    pub bytes: Vec<u8>,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// The receiver's reaction to a request.
#[derive(Debug, Clone)]
pub enum Reaction {
    Answer(u16),
    /// An answer with a header.
    With(u16, &'static str, String),
    /// An answer after some time.
    Late(Duration, u16),
    /// Never says anything.
    Hang,
    /// Begins to answer, and never finishes the headers.
    Trickle,
    /// Hangs up without an answer.
    Close,
    /// Answers 200 with a body that does not end.
    Endless,
    /// Answers 200 with a body that never comes.
    Bodyless,
}

impl Reaction {
    pub fn redirect(status: u16, to: impl Into<String>) -> Self {
        Self::With(status, "Location", to.into())
    }
}

type React = Arc<dyn Fn(&ReceivedRequest) -> Reaction + Send + Sync>;

/// Drops its connections with itself.
pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    react: React,
    taken: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
    ended: AtomicUsize,
}

impl Receiver {
    /// On a free port of 127.0.0.1.
    pub async fn start(react: impl Fn(&ReceivedRequest) -> Reaction + Send + Sync + 'static) -> Self {
        Self::listen("127.0.0.1:0", None, Arc::new(react)).await
    }

    /// Does the same with every request.
    pub async fn always(reaction: Reaction) -> Self {
        Self::start(move |_| reaction.clone()).await
    }

    pub async fn tls(acceptor: TlsAcceptor, reaction: Reaction) -> Self {
        Self::listen("127.0.0.1:0", Some(acceptor), Arc::new(move |_: &ReceivedRequest| reaction.clone())).await
    }

    pub async fn tls_with(
        acceptor: TlsAcceptor,
        react: impl Fn(&ReceivedRequest) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        Self::listen("127.0.0.1:0", Some(acceptor), Arc::new(react)).await
    }

    pub async fn at(address: &str, reaction: Reaction) -> Self {
        Self::listen(address, None, Arc::new(move |_: &ReceivedRequest| reaction.clone())).await
    }

    async fn listen(address: &str, acceptor: Option<TlsAcceptor>, react: React) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            react,
            taken: Mutex::new(Vec::new()),
            connections: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        });
        let task = tokio::spawn(accept(listener, acceptor, shared.clone()));
        Self { address, shared, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub fn taken(&self) -> Vec<ReceivedRequest> {
        self.shared.taken.lock().unwrap().clone()
    }

    /// The only request.
    #[track_caller]
    pub fn only(&self) -> ReceivedRequest {
        let mut taken = self.taken();
        assert_eq!(taken.len(), 1, "{taken:?}");
        taken.remove(0)
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits until nobody is connected any more.
    pub async fn left(&self) {
        eventually("nobody is connected", || async {
            (self.shared.ended.load(Ordering::SeqCst) == self.connections()).then_some(())
        })
        .await;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut serving = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        shared.connections.fetch_add(1, Ordering::SeqCst);
        let (acceptor, shared) = (acceptor.clone(), shared.clone());
        serving.spawn(async move {
            match acceptor {
                None => serve(stream, &shared).await,
                // A client that does not trust the certificate hangs up.
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => serve(stream, &shared).await,
                    Err(_) => None,
                },
            };
            shared.ended.fetch_add(1, Ordering::SeqCst);
        });
    }
}

/// One request after the other, until one side has enough.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let taken = read(&mut stream).await?;
        let reaction = (shared.react)(&taken);
        shared.taken.lock().unwrap().push(taken);
        let (status, header) = match reaction {
            Reaction::Answer(status) => (status, String::new()),
            Reaction::Late(after, status) => {
                tokio::time::sleep(after).await;
                (status, String::new())
            }
            Reaction::Trickle => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").await.ok()?;
                return until_closed(&mut stream).await;
            }
            Reaction::With(status, name, value) => (status, format!("{name}: {value}\r\n")),
            Reaction::Close => return None,
            Reaction::Hang => return until_closed(&mut stream).await,
            Reaction::Endless => return endless(&mut stream).await,
            Reaction::Bodyless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await.ok()?;
                return until_closed(&mut stream).await;
            }
        };
        let body = if matches!(status, 204 | 304) { "" } else { "Content-Length: 2\r\n" };
        let answer = format!("HTTP/1.1 {status} Said\r\n{header}{body}\r\n");
        stream.write_all(answer.as_bytes()).await.ok()?;
        if !body.is_empty() {
            stream.write_all(b"ok").await.ok()?;
        }
        stream.flush().await.ok()?;
    }
}

async fn read(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<ReceivedRequest> {
    let first = line(stream).await?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let line = line(stream).await?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut taken = ReceivedRequest { method, path, headers, body: String::new(), bytes: Vec::new() };
    let length = taken.header("Content-Length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    taken.body = String::from_utf8(body.clone()).unwrap_or_default();
    taken.bytes = body;
    Some(taken)
}

async fn line(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

async fn endless(stream: &mut (impl AsyncWrite + Unpin)) -> Option<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    loop {
        stream.write_all(&[b'x'; 4_096]).await.ok()?;
    }
}

async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> Option<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await.ok()? > 0 {}
    None
}
