//! A port of the loopback for one test.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// A port that the system gives to no other program, even while the program that listens on it is away. Connections to it are
/// refused then.
///
/// It is bound here and never listened on: a program that sets `SO_REUSEADDR`, as servers do, can bind it, too, and listen.
#[derive(Debug)]
pub struct Port {
    pub address: SocketAddr,
    _bound: TcpSocket,
}

impl Port {
    pub fn reserve() -> Self {
        let bound = TcpSocket::new_v4().unwrap();
        bound.set_reuseaddr(true).unwrap();
        bound.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self { address: bound.local_addr().unwrap(), _bound: bound }
    }
}
