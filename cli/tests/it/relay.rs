//! A way to the service that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

/// Passes on what comes to its address, until it is dropped.
pub struct Relay {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// To the service at `target`, from a free port of the loopback.
    pub async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::<Mutex<Vec<AbortHandle>>>::default();
        let (target, open) = (target.to_owned(), Arc::clone(&connections));
        let accepting = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let target = target.clone();
                let task = tokio::spawn(async move {
                    let Ok(mut service) = TcpStream::connect(target).await else { return };
                    // How it ends is for both sides to see.
                    let _ = copy_bidirectional(&mut client, &mut service).await;
                });
                open.lock().push(task.abort_handle());
            }
        });
        Self { address, connections, accepting }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends all connections. New ones are accepted.
    pub fn cut(&self) {
        self.connections.lock().drain(..).for_each(|connection| connection.abort());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}
