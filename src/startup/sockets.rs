//! Connections as they come, before anything was asked.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::dev::Extensions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::oneshot;

use crate::config::Config;
use crate::networks;
use crate::shares::{Connection, Share, Sizes};
use crate::state::{Sockets, State};
use crate::ws::handover::Loan;

/// Files that are no connections: the database's, logs, timers, what is asked of others.
const OTHER_FILES: u64 = 512;

/// Fewer would keep out people from a service whose limit of open files is too low to serve any.
const LEAST_CONNECTIONS: usize = 64;

/// Connections that the kernel keeps until they are taken: those of a fleet that comes back while the service starts. Of
/// one more the kernel says nothing, and its peer tries again after one, three and seven seconds. (The standard library
/// asks for 128; the system may allow fewer than this, mostly 4,096.)
const BACKLOG: i32 = 4_096;

/// How often it is looked whether all are closed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Takes the port.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // Listening once more changes nothing but the backlog.
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    Ok(listener)
}

/// The sizes of the pools, with as many connections as this process may have open and its workers take.
pub fn sizes(config: &Config) -> Sizes {
    let mut sizes = config.shares.clone();
    let workers = config.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()));
    let taken = sizes.connections.places.saturating_mul(workers);
    let open = open_files().saturating_sub(OTHER_FILES);
    sizes.connections.places = taken.min(usize::try_from(open).unwrap_or(usize::MAX)).max(LEAST_CONNECTIONS);
    sizes
}

/// Raises the limit of open files to what the system lets this process have; gives it.
fn open_files() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::debug!(%error, "the limit of open files stays as it is");
            current.unwrap_or(u64::MAX)
        }
    }
}

/// Resolves when none of these is open.
pub async fn all_closed(sockets: &Sockets) {
    while sockets.count() > 0 {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Resolves when the server was told to end and no connection is left. Its workers look for that only once a second, and
/// agents find nobody meanwhile.
pub async fn all_closed_at_the_end(is_ending: oneshot::Receiver<()>, connections: &Sockets) {
    if is_ending.await.is_err() {
        // It ends by itself.
        return std::future::pending().await;
    }
    all_closed(connections).await;
}

/// What is done with a connection that has come.
pub fn on_connect(state: &State) -> impl Fn(&Loan, &mut Extensions) + Clone + Send + Sync + 'static {
    let (config, connections) = (state.config.clone(), state.limits.shares.connections.clone());
    move |loan, data| {
        _ = data.insert(loan.wire());
        let stream = loan.stream();
        let socket = socket2::SockRef::from(&*stream);
        // Both only make it better: a socket without them still works.
        _ = socket.set_tcp_nodelay(true);
        // A peer that acknowledges nothing for as long as a silent one is gone, even if its actor stands still.
        _ = socket.set_tcp_user_timeout(Some(config.timing.silence_limit));
        let peer = stream.peer_addr().ok().map(|peer| peer.ip());
        // A proxy brings everybody, and bounds them itself.
        if peer.is_some_and(|peer| networks::any_has(&config.trusted_proxies, peer)) {
            return;
        }
        match connections.try_enter(Share::of_address(peer)) {
            Ok(permit) => _ = data.insert(Connection::new(permit)),
            // It is read to its end at once, and closed.
            Err(_) => _ = socket.shutdown(Shutdown::Both),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[actix_web::test]
    async fn the_end_waits_for_the_last_connection() {
        let (ending, is_ending) = oneshot::channel();
        let connections = Sockets::default();
        let mut closed = pin!(all_closed_at_the_end(is_ending, &connections));
        let mut context = Context::from_waker(Waker::noop());

        assert!(closed.as_mut().poll(&mut context).is_pending(), "it is not the end");
        let connection = connections.opened();
        ending.send(()).unwrap();
        assert!(closed.as_mut().poll(&mut context).is_pending(), "one is left");
        drop(connection);

        closed.await;
    }
}
