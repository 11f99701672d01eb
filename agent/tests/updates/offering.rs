//! The service's side: accepts agents, and sends whatever a test wants as their program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use signalbox_protocol::agent::Auth;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::agent::PATIENCE;
use crate::service::{Peer, accepted};

/// How the service answers to who fetches a program.
#[derive(Debug, Clone)]
pub enum Sending {
    Whole(Arc<Vec<u8>>),
    /// Announces the whole, and sends the first half of it.
    Cut(Arc<Vec<u8>>),
    /// Announces no length, and sends more after the end.
    Endless(Arc<Vec<u8>>),
    Nothing,
    Later,
}

/// A connection whose key the service has accepted.
pub struct Session {
    pub peer: Peer<TcpStream>,
    pub auth: Auth,
}

/// A service on a port of its own.
pub struct Offering {
    pub url: String,
    shared: Arc<Shared>,
    sessions: mpsc::Receiver<Session>,
}

struct Shared {
    sending: Mutex<Sending>,
    /// Whether it hangs up on agents.
    is_deaf: AtomicBool,
    /// How many fetches it puts off.
    busy: AtomicUsize,
    /// The code with which it refuses the next key.
    refusal: Mutex<Option<u16>>,
    fetched: AtomicUsize,
}

impl Offering {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            sending: Mutex::new(Sending::Nothing),
            is_deaf: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
            refusal: Mutex::default(),
            fetched: AtomicUsize::new(0),
        });
        let (sender, sessions) = mpsc::channel(8);
        let serving = shared.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, serving.clone(), sender.clone()));
            }
        });
        Self { url, shared, sessions }
    }

    pub fn send_programs_as(&self, sending: Sending) {
        *self.shared.sending.lock() = sending;
    }

    /// From now on it hangs up on agents, or does not.
    pub fn hang_up(&self, is_deaf: bool) {
        self.shared.is_deaf.store(is_deaf, Ordering::SeqCst);
    }

    /// It answers the next fetches with 503.
    pub fn be_busy(&self, fetches: usize) {
        self.shared.busy.store(fetches, Ordering::SeqCst);
    }

    /// It refuses the key of the next agent with this code.
    pub fn refuse_next(&self, code: u16) {
        *self.shared.refusal.lock() = Some(code);
    }

    /// How often somebody has fetched a program.
    pub fn fetched(&self) -> usize {
        self.shared.fetched.load(Ordering::SeqCst)
    }

    /// The next agent that it accepts.
    pub async fn session(&mut self) -> Session {
        timeout(PATIENCE, self.sessions.recv()).await.expect("an agent connects").unwrap()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, sessions: mpsc::Sender<Session>) {
    const INSTALL: &[u8] = b"GET /install/";
    let mut beginning = [0; INSTALL.len()];
    while stream.peek(&mut beginning).await.unwrap_or_default() < beginning.len() {
        if stream.peek(&mut beginning[..1]).await.unwrap_or_default() == 0 {
            return;
        }
    }
    if beginning == INSTALL {
        shared.fetched.fetch_add(1, Ordering::SeqCst);
        let is_busy = shared.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let sending = if is_busy { Sending::Later } else { shared.sending.lock().clone() };
        // The agent may hang up in between.
        _ = send_program(&mut stream, sending).await;
        return;
    }
    if shared.is_deaf.load(Ordering::SeqCst) {
        return;
    }
    let mut peer = Peer::upgrade(stream).await;
    let auth = peer.auth().await;
    let refusal = shared.refusal.lock().take();
    if let Some(code) = refusal {
        peer.close(code, "refused").await;
        return;
    }
    peer.send(&accepted(None)).await;
    _ = sessions.send(Session { peer, auth }).await;
}

async fn send_program(stream: &mut TcpStream, sending: Sending) -> std::io::Result<()> {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        asked.push(stream.read_u8().await?);
    }
    let name = format!("GET /install/signalbox-agent-linux-{} HTTP/1.1\r\n", std::env::consts::ARCH);
    assert!(asked.starts_with(name.as_bytes()), "{}", String::from_utf8_lossy(&asked));
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    match sending {
        Sending::Whole(bytes) => {
            stream.write_all(head(bytes.len()).as_bytes()).await?;
            stream.write_all(&bytes).await
        }
        Sending::Cut(bytes) => {
            stream.write_all(head(bytes.len()).as_bytes()).await?;
            stream.write_all(&bytes[..bytes.len() / 2]).await
        }
        Sending::Endless(bytes) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await?;
            loop {
                stream.write_all(&bytes).await?;
            }
        }
        Sending::Later => stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").await,
        Sending::Nothing => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await,
    }
}
