//! Connections as they come, before anything was asked.

use std::any::Any;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};

use actix_web::dev::Extensions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpStream;

use crate::config::Config;
use crate::networks;
use crate::shares::{Connection, Share, Sizes};
use crate::state::State;

/// Files that are no connections: the database's, logs, timers, what is asked of others.
const OTHER_FILES: u64 = 512;

/// Fewer would keep out people from a service whose limit of open files is too low to serve any.
const LEAST_CONNECTIONS: usize = 64;

/// Connections that the kernel keeps until they are taken: those of a fleet that comes back while the service starts. Of
/// one more the kernel says nothing, and its peer tries again after one, three and seven seconds. (The standard library
/// asks for 128; the system may allow fewer than this, mostly 4,096.)
const BACKLOG: i32 = 4_096;

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

/// What is done with a connection that has come.
pub fn on_connect(state: &State) -> impl Fn(&dyn Any, &mut Extensions) + Clone + Send + Sync + 'static {
    let (config, connections) = (state.config.clone(), state.limits.shares.connections.clone());
    move |connection, data| {
        let Some(stream) = connection.downcast_ref::<TcpStream>() else { return };
        let socket = socket2::SockRef::from(stream);
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
