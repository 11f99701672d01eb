//! A client that reads a feed and counts.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::task::JoinHandle;

use crate::socket::Socket;
use crate::stop::Stop;

/// The messages of a feed.
#[derive(Debug, Default)]
pub struct Read {
    pub messages: u64,
    pub bytes: u64,
    /// Why it ended before `stop` fired.
    pub failure: Option<String>,
}

/// Opens a feed, and reads it until `stop` fires.
pub async fn open(address: SocketAddr, path: &str, token: &str, stop: Stop) -> anyhow::Result<JoinHandle<Read>> {
    let socket = Socket::connect(address, path, Some(token)).await.with_context(|| path.to_owned())?;
    Ok(tokio::spawn(read(socket, stop)))
}

async fn read(mut socket: Socket, mut stop: Stop) -> Read {
    let mut read = Read::default();
    loop {
        let message = tokio::select! {
            () = stop.requested() => break,
            message = socket.next() => message,
        };
        match message {
            Ok(message) => {
                read.messages += 1;
                read.bytes += message.len() as u64;
            }
            Err(error) => {
                read.failure = Some(format!("{error:#}"));
                break;
            }
        }
    }
    socket.close().await;
    read
}
