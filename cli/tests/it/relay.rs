//! A way to the service that can be cut.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

/// Passes on what comes to its address, until it is dropped.
pub struct Relay {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    /// The beginning of the request whose answer gets lost.
    losing: Arc<Mutex<Option<&'static str>>>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// To the service at `target`, from a free port of the loopback.
    pub async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::<Mutex<Vec<AbortHandle>>>::default();
        let losing = Arc::<Mutex<Option<&'static str>>>::default();
        let (target, open, to_lose) = (target.to_owned(), Arc::clone(&connections), Arc::clone(&losing));
        let accepting = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (target, to_lose) = (target.clone(), Arc::clone(&to_lose));
                let task = tokio::spawn(async move {
                    let Ok(mut service) = TcpStream::connect(target).await else { return };
                    if to_lose.lock().is_some() {
                        let _ = until_lost(&mut client, &mut service, &to_lose).await;
                        return;
                    }
                    // How it ends is for both sides to see.
                    let _ = copy_bidirectional(&mut client, &mut service).await;
                });
                open.lock().push(task.abort_handle());
            }
        });
        Self { address, connections, losing, accepting }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on new connections are watched: the answer to the first request that begins like this gets lost, and its connection
    /// ends.
    pub fn lose_answer(&self, request: &'static str) {
        *self.losing.lock() = Some(request);
    }

    /// Whether the answer was lost.
    pub fn has_lost_answer(&self) -> bool {
        self.losing.lock().is_none()
    }

    /// Ends all connections. New ones are accepted.
    pub fn cut(&self) {
        self.connections.lock().drain(..).for_each(|connection| connection.abort());
    }
}

/// Passes on what both say, until there is an answer to a request that begins with what is to be lost.
async fn until_lost(
    client: &mut TcpStream,
    service: &mut TcpStream,
    to_lose: &Mutex<Option<&'static str>>,
) -> io::Result<()> {
    let (mut request, mut answer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut is_lost = false;
    loop {
        tokio::select! {
            count = client.read(&mut request) => {
                let bytes = &request[..count?];
                is_lost |= to_lose.lock().take_if(|head| bytes.starts_with(head.as_bytes())).is_some();
                if bytes.is_empty() {
                    return Ok(());
                }
                service.write_all(bytes).await?;
            }
            count = service.read(&mut answer) => {
                let bytes = &answer[..count?];
                if is_lost || bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}
