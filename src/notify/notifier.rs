//! The handle to the dispatcher, for the rest of the service.

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
use super::deliver::Deliver;
use super::delivery::{DeliveryContext, doubt, gone};
use super::dispatcher::{Dispatcher, Progress, Stop, Wake};
use super::gathering::Gathering;
use super::on_the_way::OnTheWay;
use super::pace::Pace;
use super::seal::{SealError, Sealer};
use super::sender::{Receipt, Refusal, Refused};
use super::senders::Senders;
use crate::audit::{Actor as Who, Outcome};
use crate::auth::access::Access;
use crate::clock::Clock;
use crate::shards::Shards;
use crate::store::{AlertToNotify, Attempt, Channel, Store, StoreError};

/// Channel tests that run at the same time, for all users together.
const MAX_TESTS: usize = 32;

/// From this many entries on, channels that may be tested again are removed from the map.
const REMEMBERED_TESTS: usize = 1_024;

/// Looks up silences.
pub trait Silences: Send + Sync + 'static {
    /// Returns until when this alert is silenced; `None` if no silence holds now.
    fn held_until<'a>(&'a self, alert: &'a AlertToNotify, now: Timestamp) -> Holding<'a>;
}

/// The future of [`Silences::held_until`].
pub type Holding<'a> = Pin<Box<dyn Future<Output = Result<Option<Timestamp>, StoreError>> + 'a>>;

/// The parts of a notifier.
pub struct Parts {
    pub store: Store,
    /// Says who may see the servers of alerts.
    pub access: Access,
    pub sealer: Sealer,
    pub deliver: Arc<dyn Deliver>,
    pub silences: Arc<dyn Silences>,
    pub pace: Pace,
    pub clock: Clock,
    /// Decides which channels belong to this instance.
    pub shards: Shards,
    pub senders: Box<dyn Senders>,
}

/// A handle to the dispatcher; cheap to clone.
#[derive(Clone)]
pub struct Notifier {
    /// Shared, because each clone of an address would add a slot to the mailbox.
    address: Arc<Addr<Dispatcher>>,
    wake_flag: WakeFlag,
    context: Arc<DeliveryContext>,
    tests: Arc<Tests>,
    /// Notified by [`Notifier::nudge`], because the due message may belong to another instance.
    nudged: Arc<Notify>,
}

/// Ensures that at most one `Wake` is in the dispatcher's mailbox.
#[derive(Clone, Default)]
pub(super) struct WakeFlag(Arc<AtomicBool>);

impl WakeFlag {
    /// Returns whether this call is the first since [`Self::heard`], and has to send a `Wake`.
    fn ring(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// From now on the next `ring` sends a `Wake` again.
    pub(super) fn heard(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The channels that are being tested.
struct Tests {
    places: Semaphore,
    /// When each channel may be tested again.
    until: DashMap<Uuid, Instant>,
}

/// The outcome of a channel test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    pub is_delivered: bool,
    /// For the user who tests the channel; the same text as in the delivery log.
    pub detail: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TestError {
    #[error("the channel is being tested or was tested a moment ago, try again in a few seconds")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Notifier {
    /// Starts a dispatcher on the arbiter of the calling thread.
    pub fn start(parts: Parts) -> Self {
        let Parts { store, access, sealer, deliver, silences, pace, clock, shards, senders } = parts;
        let (sizes, wake_flag) = (Arc::default(), WakeFlag::default());
        let gathering = Gathering::new(&pace);
        let context = DeliveryContext { store, access, sealer, deliver, pace, clock: clock.clone(), sizes };
        let dispatcher = Dispatcher {
            context: context.clone(),
            silences,
            clock,
            shards,
            senders,
            wake_flag: wake_flag.clone(),
            on_the_way: OnTheWay::default(),
            gathering,
            progress: Progress::default(),
        };
        let tests = Tests { places: Semaphore::new(MAX_TESTS), until: DashMap::new() };
        let address = Arc::new(dispatcher.start());
        Self { address, wake_flag, context: Arc::new(context), tests: Arc::new(tests), nudged: Arc::default() }
    }

    /// Gives up messages that were not delivered in time, and removes old entries of the delivery log.
    pub async fn tidy(&self) {
        self.context.tidy().await;
    }

    /// Wakes the dispatcher of this instance and the task that informs other instances. Called after the transaction that wrote
    /// to the outbox or changed when an alert has to be notified.
    pub fn nudge(&self) {
        self.nudge_here();
        self.nudged.notify_one();
    }

    /// Completes when [`Self::nudge`] was called since the last time, for the task that informs other instances.
    pub async fn nudged(&self) {
        self.nudged.notified().await;
    }

    /// Wakes this instance's dispatcher only; called when another instance has nudged.
    pub fn nudge_here(&self) {
        if self.wake_flag.ring() && self.address.try_send(Wake).is_err() {
            // The mailbox holds at most one `Wake`, so this fails only when the process ends.
            self.wake_flag.heard();
            tracing::warn!("the notifier has stopped");
        }
    }

    /// Stops sending. Returns when the last message on its way has ended.
    pub async fn stop(&self) {
        // If the dispatcher has stopped already, no message is on its way.
        _ = self.address.send(Stop).await;
    }

    /// Returns the public key for the subscriptions of browsers, if the service can send to them.
    pub fn push_key(&self) -> Option<&str> {
        self.context.deliver.push_key()
    }

    /// Checks whether a channel may have this URL. The error says why not, for people to read.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        self.context.deliver.check_url(url)
    }

    /// Returns the settings, encrypted for this channel only.
    pub fn seal(&self, channel_id: Uuid, settings: &Settings) -> Result<Vec<u8>, SealError> {
        self.context.sealer.seal(channel_id, settings)
    }

    /// Returns the decrypted settings of a channel.
    pub fn open(&self, channel: &Channel) -> Result<Settings, SealError> {
        self.context.sealer.open(channel.id, &channel.settings)
    }

    /// Sends a test message to a channel once, now, even if the channel is disabled. It runs on the instance that gets the
    /// request; each instance limits tests of a channel separately.
    pub async fn test(&self, channel: Channel, actor: Who) -> Result<Tested, TestError> {
        let channel_id = channel.id;
        let _place = self.tests.places.try_acquire().map_err(|_| TestError::Busy)?;
        let pause = self.context.pace.test_pause;
        if !self.tests.begin(channel_id, self.context.pace.test + pause) {
            return Err(TestError::Busy);
        }
        let claim = self.context.store.begin_test(channel, self.context.clock.now(), actor.clone()).await?;
        let sent = self.context.attempt(&claim, Some(self.context.pace.test)).await;
        self.tests.end(channel_id, pause);
        let (attempt, progress, outcome, tested) = match sent {
            Ok(Receipt { detail, progress }) => {
                let doubt = doubt(detail, &progress);
                let detail = doubt.clone().unwrap_or_else(|| "the destination accepted the message".to_owned());
                (Attempt::Sent { error: doubt }, progress, Outcome::Ok, Tested { is_delivered: true, detail })
            }
            Err(Refused { kind: kind @ Refusal::Gone, detail, progress, .. }) => {
                let detail = gone(&detail);
                let tested = Tested { is_delivered: false, detail: detail.clone() };
                (Attempt::Ended { error: detail }, progress, Outcome::Failed(kind.word().into()), tested)
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
        self.context.store.end_test(&claim, &attempt, &progress, outcome, actor).await?;
        Ok(tested)
    }
}

impl Tests {
    /// Returns whether the channel may be tested, and if so blocks further tests for at most `most`, in case
    /// [`Self::end`] is never called.
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
