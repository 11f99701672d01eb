//! The way between an agent and a service, which can be cut.

use std::net::SocketAddr;

use actix_web::rt;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Wire {
    pub address: SocketAddr,
    whole: watch::Sender<bool>,
}

impl Wire {
    pub async fn to(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (whole, state) = watch::channel(true);
        rt::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                rt::spawn(carry(client, service, state.clone()));
            }
        });
        Self { address, whole }
    }

    /// Breaks all connections, and every new one at once.
    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn carry(mut client: TcpStream, service: SocketAddr, mut whole: watch::Receiver<bool>) {
    let through = async {
        let mut service = TcpStream::connect(service).await?;
        copy_bidirectional(&mut client, &mut service).await
    };
    tokio::select! {
        biased;
        _ = whole.wait_for(|whole| !whole) => {}
        _ = through => {}
    }
}
