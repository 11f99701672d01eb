//! A line that can be cut and restored: a TCP proxy between a service and its database, or its bus.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// More connections than any test opens; further ones are reset.
const MAX_CONNECTIONS: usize = 512;

/// Bytes that a direction holds while the line is silent.
const HELD: usize = 16 * 1024;

/// The fate of bytes on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Whole,
    /// New connections are reset at once. The port stays ours, unlike one that nobody listens on.
    Refusing,
    /// Connections stay, new ones are accepted, and nothing passes. Bytes that were sent arrive when the line is restored, as
    /// after lost packets.
    Silent,
}

#[derive(Debug, Clone, Copy)]
struct State {
    line: Line,
    /// Connections that began under a lower number are reset.
    generation: u64,
}

/// A proxy in a thread of its own: it keeps working while a test's thread waits for a service to end.
pub struct Proxy {
    /// Where to connect to instead of the target.
    pub address: SocketAddr,
    state: watch::Sender<State>,
    open: watch::Receiver<usize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Proxy {
    pub async fn to(target: SocketAddr) -> Self {
        let (state, watched) = watch::channel(State { line: Line::Whole, generation: 0 });
        let (count, open) = watch::channel(0);
        let (stop, stopped) = oneshot::channel();
        let (ready, address) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    () = accept(listener, target, watched, count) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address: address.await.unwrap(), state, open, stop: Some(stop), thread: Some(thread) }
    }

    /// Resets open and new connections.
    pub fn refuse(&self) {
        self.state.send_modify(|state| *state = State { line: Line::Refusing, generation: state.generation + 1 });
    }

    /// Stops passing anything on, without any sign.
    pub fn silence(&self) {
        self.state.send_modify(|state| state.line = Line::Silent);
    }

    /// Resets open connections; new ones pass as before.
    pub fn reset(&self) {
        self.state.send_modify(|state| state.generation += 1);
    }

    /// Passes everything on again.
    pub fn heal(&self) {
        self.state.send_modify(|state| state.line = Line::Whole);
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        *self.open.borrow()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the proxy failed");
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    watched: watch::Receiver<State>,
    count: watch::Sender<usize>,
) {
    let mut connections = JoinSet::new();
    loop {
        count.send_replace(connections.len());
        tokio::select! {
            accepted = listener.accept() => {
                let (client, _) = accepted.unwrap();
                if watched.borrow().line == Line::Refusing || connections.len() >= MAX_CONNECTIONS {
                    reset(&client);
                } else {
                    connections.spawn(connection(client, target, watched.clone()));
                }
            }
            Some(ended) = connections.join_next() => ended.unwrap(),
        }
    }
}

/// Carries one connection until an end closes it or the line resets it.
async fn connection(mut client: TcpStream, target: SocketAddr, watched: watch::Receiver<State>) {
    let began = watched.borrow().generation;
    // Nothing answers on a silent line; the connection to the target is made when it is restored, or not at all.
    let began_whole = watched.clone().wait_for(|state| state.line != Line::Silent).await.is_ok();
    if !began_whole || watched.borrow().generation > began {
        return reset(&client);
    }
    let Ok(mut server) = TcpStream::connect(target).await else { return reset(&client) };
    _ = (client.set_nodelay(true), server.set_nodelay(true));
    let is_reset = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let both = async {
            tokio::join!(carry(from_client, to_server, watched.clone()), carry(from_server, to_client, watched.clone()))
        };
        let mut watched = watched.clone();
        let cut = async move { watched.wait_for(|state| state.generation > began).await.is_ok() };
        tokio::select! {
            _ = both => false,
            is_cut = cut => is_cut,
        }
    };
    if is_reset {
        reset(&client);
        reset(&server);
    }
}

/// One direction. Its end closes the same direction on the other side.
async fn carry(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, mut watched: watch::Receiver<State>) {
    let mut bytes = vec![0; HELD];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        if watched.wait_for(|state| state.line != Line::Silent).await.is_err() {
            return;
        }
        if read == 0 || to.write_all(&bytes[..read]).await.is_err() {
            _ = to.shutdown().await;
            return;
        }
    }
}

/// The connection ends with a reset when it is dropped.
fn reset(stream: &TcpStream) {
    _ = stream.set_zero_linger();
}
