//! A bad line between a machine and its service: it damages or truncates what it carries, or leads to two services.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What happens to the answer to one request.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// The byte at this place of the answer, headers included, becomes another.
    Damaged(usize),
    /// It ends after this many bytes.
    Cut(usize),
}

pub struct BadLine {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl BadLine {
    /// To `service`; only the answer to a GET of `path` suffers.
    pub async fn to(service: SocketAddr, path: &str, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let suffers = format!("GET {path} ");
        let task = tokio::spawn(async move {
            let mut lines = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                lines.spawn(pass(client, service, suffers.clone(), fault));
            }
        });
        Self { address, task }
    }

    /// To two services in turn, as behind a load balancer.
    pub async fn in_turn(services: [SocketAddr; 2]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut lines = JoinSet::new();
            for service in services.into_iter().cycle() {
                let (mut client, _) = listener.accept().await.unwrap();
                lines.spawn(async move {
                    let mut server = TcpStream::connect(service).await.unwrap();
                    tokio::io::copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        Self { address, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for BadLine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection, on which curl sends one request. None when either side has hung up.
async fn pass(mut client: TcpStream, service: SocketAddr, suffers: String, fault: Fault) -> Option<()> {
    let mut server = TcpStream::connect(service).await.ok()?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        client.read_buf(&mut request).await.ok().filter(|length| *length > 0)?;
    }
    server.write_all(&request).await.ok()?;
    if !request.starts_with(suffers.as_bytes()) {
        tokio::io::copy_bidirectional(&mut client, &mut server).await.ok()?;
        return Some(());
    }
    let mut passed = 0;
    loop {
        let mut piece = Vec::new();
        server.read_buf(&mut piece).await.ok().filter(|length| *length > 0)?;
        match fault {
            Fault::Damaged(place) => {
                if let Some(byte) = place.checked_sub(passed).and_then(|place| piece.get_mut(place)) {
                    *byte ^= 1;
                }
            }
            Fault::Cut(length) => piece.truncate(length.saturating_sub(passed)),
        }
        passed += piece.len();
        client.write_all(&piece).await.ok().filter(|()| !piece.is_empty())?;
    }
}
