//! Servers whose agents are connected to other instances: [`forward`] sends orders to them, and [`Answer`] handles the
//! requests of other instances for servers that are here.
//!
//! The home of a server listens on the server's subject for as long as the session lasts. A request that takes longer
//! is accompanied by checks whether the home is still there, so an instance that is killed leaves no caller waiting.

pub mod forward;
mod liveness;
pub mod message;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dashmap::DashMap;
use futures_util::future::AbortHandle;
use tokio::sync::{Semaphore, oneshot, watch};
use uuid::Uuid;

use crate::bus::client::BusClient;
use crate::bus::{BusError, Delivery, Subscription, client};
use crate::registry::{Advertisement, CallError, Order, RemoteRouter};
use liveness::HomeChecks;

/// Requests of other instances that are handled at the same time.
const MAX_ATTENDED: usize = 4_096;

/// How long an agent that connects waits until other instances can reach it.
const HELD_WITHIN: Duration = Duration::from_secs(2);

/// How long a home may take for an answer that does not involve its agent.
pub const PROMPT: Duration = Duration::from_secs(5);

/// How long the reader of a stream may take for one message of it.
pub const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// Handles the request of another instance for a server here, and answers it.
pub trait Answer: Send + Sync + 'static {
    fn answer(&self, server_id: Uuid, asked: Delivery) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The way to the servers of other instances. Clones are cheap.
#[derive(Clone)]
pub struct Remote {
    bus_client: BusClient,
    /// Handles requests for the servers that are here; set before any agent connects.
    home: Arc<OnceLock<Arc<dyn Answer>>>,
    /// Calls on their way to other instances, by request.
    calls: Arc<DashMap<Uuid, AbortHandle>>,
    /// Streams being opened on other instances. A receiver closes once its stream is open, so that no message overtakes
    /// the opening.
    openings: Arc<DashMap<Uuid, watch::Receiver<()>>>,
    /// Homes that callers wait for.
    looks: Arc<DashMap<Uuid, HomeChecks>>,
    places: Arc<Semaphore>,
}

impl Remote {
    pub fn new(bus_client: BusClient) -> Self {
        let places = Arc::new(Semaphore::new(MAX_ATTENDED));
        Self {
            bus_client,
            home: Arc::default(),
            calls: Arc::default(),
            openings: Arc::default(),
            looks: Arc::default(),
            places,
        }
    }

    /// Handles requests for servers that are here from now on.
    pub fn open(&self, home: Arc<dyn Answer>) {
        _ = self.home.set(home);
    }

    /// The bus client.
    pub fn bus_client(&self) -> &BusClient {
        &self.bus_client
    }
}

impl RemoteRouter for Remote {
    fn take(&self, server_id: Uuid, order: Order) {
        self.send(server_id, order);
    }

    fn hold(&self, server_id: Uuid) -> std::pin::Pin<Box<dyn Future<Output = Advertisement> + Send + '_>> {
        Box::pin(async move {
            let (ready, is_ready) = oneshot::channel();
            let task = tokio::spawn(self.clone().listen_for(server_id, ready));
            // A connecting agent does not wait for a bus that is away: the subscription follows when the bus is back.
            if self.bus_client.is_up() {
                _ = tokio::time::timeout(HELD_WITHIN, is_ready).await;
            }
            Advertisement::kept_by(task.abort_handle())
        })
    }
}

impl Remote {
    /// Handles the requests for a server until the task ends.
    async fn listen_for(self, server_id: Uuid, ready: oneshot::Sender<()>) {
        let (remote, mut ready) = (&self, Some(ready));
        let answer = |asked: Subscription| {
            _ = ready.take().map(|ready| ready.send(()));
            client::attend(asked, remote.places.clone(), move |delivery| {
                let remote = remote.clone();
                async move {
                    if let Some(home) = remote.home.get() {
                        home.answer(server_id, delivery).await;
                    }
                }
            })
        };
        self.bus_client.serve(self.bus_client.subjects.agent(server_id), answer).await;
    }
}

/// The error for the caller when a message was not carried.
fn failed(error: BusError) -> CallError {
    match error {
        BusError::NoResponder => CallError::Offline,
        BusError::Timeout => CallError::Timeout,
        BusError::Away | BusError::TooLarge | BusError::Malformed => CallError::Unreachable,
    }
}
