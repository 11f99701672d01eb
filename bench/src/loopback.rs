//! Small HTTP servers on loopback, to receive or to answer requests.

use std::net::SocketAddr;

use actix_web::dev::ServerHandle;
use actix_web::web::ServiceConfig;
use actix_web::{App, HttpServer};
use anyhow::Context;

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct Loopback {
    address: SocketAddr,
    handle: ServerHandle,
}

impl Loopback {
    /// Listens on a free port, with one thread: two would only take time from the measured program.
    pub fn start(configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static) -> anyhow::Result<Self> {
        let server = HttpServer::new(move || App::new().configure(configure.clone()))
            .workers(1)
            .disable_signals()
            .bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = server.addrs().first().copied().context("it listens nowhere")?;
        let server = server.run();
        let handle = server.handle();
        tokio::spawn(server);
        Ok(Self { address, handle })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        // This already stops it, without waiting for its end.
        drop(self.handle.stop(false));
    }
}
