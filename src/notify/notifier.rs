//! Reaches whoever sends, and what everybody may use of it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, Addr};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use signalbox_protocol::Timestamp;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use super::channel::Settings;
use super::courier::{Courier, Progress, Stop, Wake};
use super::deliver::Deliver;
use super::desk::{Desk, doubt};
use super::on_the_way::OnTheWay;
use super::pace::Pace;
use super::seal::{SealError, Sealer};
use super::sender::{Receipt, Refused};
use super::senders::Senders;
use crate::audit::{Actor as Who, Outcome};
use crate::clock::Clock;
use crate::shards::Shards;
use crate::store::{AlertToNotify, Attempt, Channel, Store, StoreError};

/// Tests that run at the same time, of all users together.
const MOST_TESTS: usize = 32;

/// From here on, channels that may be tested again are forgotten.
const REMEMBERED_TESTS: usize = 1_024;

/// Says whether somebody has asked for silence.
pub trait Silences: Send + Sync + 'static {
    /// Until when nobody is to be told of this alert; none where a silence does not hold now.
    fn held_until<'a>(&'a self, alert: &'a AlertToNotify, now: Timestamp) -> Holding<'a>;
}

/// An answer of [`Silences`].
pub type Holding<'a> = Pin<Box<dyn Future<Output = Result<Option<Timestamp>, StoreError>> + 'a>>;

/// What a notifier is made of.
pub struct Parts {
    pub store: Store,
    pub sealer: Sealer,
    pub deliver: Arc<dyn Deliver>,
    pub silences: Arc<dyn Silences>,
    pub pace: Pace,
    pub clock: Clock,
    /// Which channels are this instance's.
    pub shards: Shards,
    pub senders: Box<dyn Senders>,
}

/// Reaches the courier, behind cheap clones.
#[derive(Clone)]
pub struct Notifier {
    /// One address for all: each clone of it would add a place to the mailbox.
    address: Arc<Addr<Courier>>,
    bell: Bell,
    desk: Arc<Desk>,
    tests: Arc<Tests>,
    /// Somebody here has nudged: what is due may be another instance's.
    nudged: Arc<Notify>,
}

/// Rings once for however many have pressed it.
#[derive(Clone, Default)]
pub(super) struct Bell(Arc<AtomicBool>);

impl Bell {
    /// Gives whether nobody has rung yet.
    fn ring(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Whoever rings from now on is heard again.
    pub(super) fn heard(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Who tests which channel.
struct Tests {
    places: Semaphore,
    /// Until when a channel cannot be tested again.
    until: DashMap<Uuid, Instant>,
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    pub is_delivered: bool,
    /// For the one who tests the channel: the same as in the delivery log.
    pub detail: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TestError {
    #[error("the channel is being tested, or was a moment ago")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Notifier {
    /// Starts a courier on the arbiter of the calling thread.
    pub fn start(parts: Parts) -> Self {
        let Parts { store, sealer, deliver, silences, pace, clock, shards, senders } = parts;
        let (desk, bell) = (Desk { store, sealer, deliver, pace, clock: clock.clone() }, Bell::default());
        let courier = Courier {
            desk: desk.clone(),
            silences,
            clock,
            shards,
            senders,
            bell: bell.clone(),
            on_the_way: OnTheWay::default(),
            gathering: HashMap::new(),
            progress: Progress::default(),
        };
        let tests = Tests { places: Semaphore::new(MOST_TESTS), until: DashMap::new() };
        let address = Arc::new(courier.start());
        Self { address, bell, desk: Arc::new(desk), tests: Arc::new(tests), nudged: Arc::default() }
    }

    /// Gives up what was not delivered in time, and shortens the delivery log.
    pub async fn tidy(&self) {
        self.desk.tidy().await;
    }

    /// Something may lie in the outbox, or there is another time to look at an alert. To be called after the
    /// transaction that says so.
    pub fn nudge(&self) {
        self.nudge_here();
        self.nudged.notify_one();
    }

    /// Comes back when somebody here has nudged since the last time: for the one who tells other instances.
    pub async fn nudged(&self) {
        self.nudged.notified().await;
    }

    /// The same for what another instance says: nobody else is told.
    pub fn nudge_here(&self) {
        if self.bell.ring() && self.address.try_send(Wake).is_err() {
            // At most one is on its way, so this can only be the end of the process.
            self.bell.heard();
            tracing::warn!("the notifier has stopped");
        }
    }

    /// Takes nothing new, and comes back when the last message on its way has ended.
    pub async fn stop(&self) {
        // One that has stopped already has nothing on its way.
        _ = self.address.send(Stop).await;
    }

    /// Whether this may be the address of a channel; why not, for a person.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        self.desk.deliver.check_url(url)
    }

    /// The settings of a channel, encrypted for it alone.
    pub fn seal(&self, channel_id: Uuid, settings: &Settings) -> Result<Vec<u8>, SealError> {
        self.desk.sealer.seal(channel_id, settings)
    }

    /// The settings of a channel as they are.
    pub fn open(&self, channel: &Channel) -> Result<Settings, SealError> {
        self.desk.sealer.open(channel.id, &channel.settings)
    }

    /// Sends a message to a channel now, once, whether the channel is switched on or not; on whichever instance this is
    /// asked. Each of them counts for itself when a channel was tested last.
    pub async fn test(&self, channel: Channel, actor: Who) -> Result<Tested, TestError> {
        let channel_id = channel.id;
        let _place = self.tests.places.try_acquire().map_err(|_| TestError::Busy)?;
        let pause = self.desk.pace.test_pause;
        if !self.tests.begin(channel_id, self.desk.pace.test + pause) {
            return Err(TestError::Busy);
        }
        let claim = self.desk.store.begin_test(channel, self.desk.clock.now(), actor.clone()).await?;
        let sent = self.desk.attempt(&claim, Some(self.desk.pace.test)).await;
        self.tests.end(channel_id, pause);
        let (attempt, progress, outcome, tested) = match sent {
            Ok(Receipt { detail, progress }) => {
                let doubt = doubt(detail, &progress);
                let detail = doubt.clone().unwrap_or_else(|| "the destination took the message".to_owned());
                (Attempt::Sent { error: doubt }, progress, Outcome::Ok, Tested { is_delivered: true, detail })
            }
            Err(Refused { kind, detail, progress, .. }) => {
                let tested = Tested { is_delivered: false, detail: detail.clone() };
                let attempt = if progress.has_begun() {
                    Attempt::Sent { error: Some(detail) }
                } else {
                    Attempt::GivenUp { error: detail }
                };
                (attempt, progress, Outcome::Failed(kind.word().into()), tested)
            }
        };
        self.desk.store.end_test(&claim, &attempt, &progress, outcome, actor).await?;
        Ok(tested)
    }
}

impl Tests {
    /// Gives whether the channel may be tested, and takes it for so long, should nobody end it.
    fn begin(&self, channel_id: Uuid, most: Duration) -> bool {
        let now = Instant::now();
        if self.until.len() >= REMEMBERED_TESTS {
            self.until.retain(|_, until| *until > now);
        }
        match self.until.entry(channel_id) {
            Entry::Occupied(entry) if *entry.get() > now => false,
            entry => {
                entry.insert(now + most);
                true
            }
        }
    }

    fn end(&self, channel_id: Uuid, pause: Duration) {
        self.until.insert(channel_id, Instant::now() + pause);
    }
}
