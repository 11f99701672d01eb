//! New connections, before any request.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::dev::Extensions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::oneshot;

use crate::config::Config;
use crate::networks;
use crate::shares::{Connection, Share, Sizes};
use crate::state::{Counter, State};
use crate::ws::handover::Loan;

/// Open files that are no connections: the database's, logs, timers, outgoing requests.
const OTHER_FILES: u64 = 512;

/// The lower bound: a service whose limit of open files is too low cannot serve anybody anyway.
const LEAST_CONNECTIONS: usize = 64;

/// Connections that the kernel queues until they are accepted: those of a fleet that reconnects while the service
/// starts. The kernel drops further ones without an answer, and their peers retry after one, three and seven seconds.
/// (The standard library asks for 128; the system may allow fewer than this, usually 4,096.)
const BACKLOG: i32 = 4_096;

/// How often the end checks whether all connections are closed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Binds the port.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // Calling listen again changes only the backlog.
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    Ok(listener)
}

/// The sizes of the pools, with as many connections as this process may have open and its workers accept.
pub fn sizes(config: &Config) -> Sizes {
    let mut sizes = config.shares.clone();
    let workers = config.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()));
    let taken = sizes.connections.places.saturating_mul(workers);
    let open = open_files().saturating_sub(OTHER_FILES);
    sizes.connections.places = taken.min(usize::try_from(open).unwrap_or(usize::MAX)).max(LEAST_CONNECTIONS);
    sizes
}

/// Raises the limit of open files to the system's maximum, and returns it.
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
pub async fn all_closed(open: &Counter) {
    while open.count() > 0 {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Resolves when the server got its stop command and no connection is left, or the time that came with it has passed. The
/// server's workers check that only once a second, and until then agents reach no service.
pub async fn all_closed_at_the_end(is_ending: oneshot::Receiver<Duration>, connections: &Counter) {
    let Ok(limit) = is_ending.await else {
        // The server ends for another reason.
        return std::future::pending().await;
    };
    if tokio::time::timeout(limit, all_closed(connections)).await.is_err() {
        tracing::debug!(connections = connections.count(), "some requests were not answered in time");
    }
}

/// Prepares a new connection.
pub fn on_connect(state: &State) -> impl Fn(&Loan, &mut Extensions) + Clone + Send + Sync + 'static {
    let (config, connections) = (state.config.clone(), state.limits.shares.connections.clone());
    move |loan, data| {
        _ = data.insert(loan.wire());
        let stream = loan.stream();
        let socket = socket2::SockRef::from(&*stream);
        // Both options are optimizations: the socket works without them.
        _ = socket.set_tcp_nodelay(true);
        // A peer that acknowledges nothing for the silence limit is gone, even if its actor stands still.
        _ = socket.set_tcp_user_timeout(Some(config.timing.silence_limit));
        let peer = stream.peer_addr().ok().map(|peer| peer.ip());
        // A proxy brings all clients, and limits them itself.
        if peer.is_some_and(|peer| networks::any_has(&config.trusted_proxies, peer)) {
            return;
        }
        match connections.try_enter(Share::of_address(peer)) {
            Ok(permit) => _ = data.insert(Connection::new(permit)),
            // The server reads end-of-file immediately, and closes it.
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
        let connections = Counter::default();
        let mut closed = pin!(all_closed_at_the_end(is_ending, &connections));
        let mut context = Context::from_waker(Waker::noop());

        assert!(closed.as_mut().poll(&mut context).is_pending(), "it is not the end");
        let connection = connections.opened();
        ending.send(Duration::MAX).unwrap();
        assert!(closed.as_mut().poll(&mut context).is_pending(), "one is left");
        drop(connection);

        closed.await;
    }

    #[actix_web::test]
    async fn the_end_waits_no_longer_than_its_time_for_a_connection_that_stays() {
        let (ending, is_ending) = oneshot::channel();
        let connections = Counter::default();
        let _stays = connections.opened();

        ending.send(Duration::ZERO).unwrap();

        all_closed_at_the_end(is_ending, &connections).await;
    }
}
