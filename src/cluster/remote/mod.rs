//! Servers whose agents other instances hold: asking for them ([`away`]), and listening for what others ask of those that
//! are here, which [`Answer`] does.
//!
//! The home of a server listens on the server's subject for as long as the session lasts. A question that takes longer
//! is accompanied by another one, whether the home is still there; so an instance that is killed leaves nobody waiting.

pub mod away;
mod looks;
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

use crate::bus::post::Post;
use crate::bus::{BusError, Delivery, Subscription, post};
use crate::registry::{CallError, Elsewhere, Order, Place};
use looks::Looks;

/// Questions of other instances that are looked after at a time.
const MOST_ATTENDED: usize = 4_096;

/// How long an agent that connects waits until other instances can reach it.
const HELD_WITHIN: Duration = Duration::from_secs(2);

/// How long a home may take for what it does not wait for its agent for.
const PROMPT: Duration = Duration::from_secs(5);

/// How long whoever reads a stream may take for one message of it.
pub const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// Does what another instance asks of a server here, and answers.
pub trait Answer: Send + Sync + 'static {
    fn answer(&self, server_id: Uuid, asked: Delivery) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The way to the servers of other instances, behind cheap clones.
#[derive(Clone)]
pub struct Remote {
    post: Post,
    /// What answers for the servers that are here; set when it is made, before anybody connects.
    home: Arc<OnceLock<Arc<dyn Answer>>>,
    /// Calls on their way to other instances, by request.
    calls: Arc<DashMap<Uuid, AbortHandle>>,
    /// Streams of other instances that are being opened: closed when they are, so that nothing overtakes that.
    openings: Arc<DashMap<Uuid, watch::Receiver<()>>>,
    /// Homes that somebody waits for.
    looks: Arc<DashMap<Uuid, Looks>>,
    places: Arc<Semaphore>,
}

impl Remote {
    pub fn new(post: Post) -> Self {
        let places = Arc::new(Semaphore::new(MOST_ATTENDED));
        Self {
            post,
            home: Arc::default(),
            calls: Arc::default(),
            openings: Arc::default(),
            looks: Arc::default(),
            places,
        }
    }

    /// Answers for servers that are here, from now on.
    pub fn open(&self, home: Arc<dyn Answer>) {
        _ = self.home.set(home);
    }

    /// What carries it.
    pub fn post(&self) -> &Post {
        &self.post
    }
}

impl Elsewhere for Remote {
    fn take(&self, server_id: Uuid, order: Order) {
        self.send(server_id, order);
    }

    fn hold(&self, server_id: Uuid) -> std::pin::Pin<Box<dyn Future<Output = Place> + Send + '_>> {
        Box::pin(async move {
            let (ready, is_ready) = oneshot::channel();
            let task = tokio::spawn(self.clone().listen_for(server_id, ready));
            // Who connects does not wait for a bus that is away: the way leads here when it is back.
            if self.post.is_up() {
                _ = tokio::time::timeout(HELD_WITHIN, is_ready).await;
            }
            Place::kept_by(task.abort_handle())
        })
    }
}

impl Remote {
    /// Answers for a server until the task ends.
    async fn listen_for(self, server_id: Uuid, ready: oneshot::Sender<()>) {
        let (remote, mut ready) = (&self, Some(ready));
        let answer = |asked: Subscription| {
            _ = ready.take().map(|ready| ready.send(()));
            post::attend(asked, remote.places.clone(), move |delivery| {
                let remote = remote.clone();
                async move {
                    if let Some(home) = remote.home.get() {
                        home.answer(server_id, delivery).await;
                    }
                }
            })
        };
        self.post.serve(self.post.subjects.agent(server_id), answer).await;
    }
}

/// What a message that was not carried means for whoever waits.
fn failed(error: BusError) -> CallError {
    match error {
        BusError::NoResponder => CallError::Offline,
        BusError::Timeout => CallError::Timeout,
        BusError::Away | BusError::TooLarge | BusError::Malformed => CallError::Unreachable,
    }
}
