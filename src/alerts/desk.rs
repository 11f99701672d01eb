//! What every evaluator uses to write, to tell and to remember.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytestring::ByteString;
use dashmap::DashMap;
use signalbox_history::open::Measured;
use signalbox_protocol::frontend::FeedMessage;
use signalbox_protocol::{Encoding, Timestamp};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::Parts;
use super::inbox::Inbox;
use super::patience::Patience;
use super::seat::Seat;
use super::silence;
use super::watch::Server;
use crate::feeds::{Feeds, Frame, Text, Topic};
use crate::fleet::Fleet;
use crate::ledger::{Change, Ledger, LedgerError};
use crate::metrics::query::reader::Point;
use crate::metrics::query::wanted::Wanted;
use crate::metrics::query::{History, HistoryError, Resolution, TimeRange};
use crate::notify::Notifier;
use crate::store::{Alert, AlertChange, AlertChanges, Store, StoreError, alert_view};

/// How long to leave a database alone that has just failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How soon it is looked at whether a silence holds that held when an alert was opened.
const LOOK_AGAIN_MS: i64 = 3600 * 1000;

/// For how long the service still raises the alert of a reboot that was not written in time. A day covers any restart of the service.
const REBOOT_IS_NEWS_FOR_MS: i64 = 24 * 3600 * 1000;

/// Evaluators that read the history at a time, after a restart.
const READERS: usize = 4;

/// Samples that one of them takes in, the newest: a day at one in five seconds. What has been pending for longer counts
/// from there.
const MOST_SAMPLES: usize = 20_000;

/// Disks, devices, interfaces, sensors and containers in all of them: some 200 MB. Of a thousand containers an hour.
const MOST_ENTRIES: usize = 1_000_000;

/// What several evaluators want to be written, each all of its own or nothing.
impl Change for AlertChanges {
    /// None where somebody else watches the server now.
    type Outcome = Option<Vec<Option<Alert>>>;

    async fn write(store: &Store, changes: &[Self]) -> Result<Vec<Self::Outcome>, StoreError> {
        store.change_alerts_of(changes).await
    }
}

/// What came of the changes that an evaluator wanted.
pub(super) enum Written {
    /// Of each.
    Done(Vec<(AlertChange, Option<Alert>)>),
    /// There is nobody to write for: the server is gone, or the service ends.
    Pointless,
    /// Somebody else watches the server now, and finds all this by itself.
    Refused,
}

#[derive(Clone)]
pub(super) struct Desk {
    pub store: Store,
    pub fleet: Fleet,
    pub inboxes: Arc<DashMap<Uuid, Arc<Inbox>>>,
    /// When agents that are away are not missed yet.
    pub patience: Patience,
    /// The service ends: it has sent the agents away itself.
    pub is_stopping: Arc<AtomicBool>,
    /// Sessions here that the database knew nothing of, and their servers.
    pub lost: Arc<DashMap<Uuid, Uuid>>,
    ledger: Ledger<AlertChanges>,
    feeds: Feeds,
    history: History,
    notifier: Notifier,
    readers: Arc<Semaphore>,
}

/// What was measured before the service restarted.
#[derive(Default)]
pub(super) struct Past {
    /// Oldest first.
    pub samples: Vec<Measured>,
    /// Up to which sample a threshold is known to have been looked at.
    pub settled: HashMap<Uuid, Timestamp>,
    /// Of a machine that was started again.
    pub reboot: Option<Reboot>,
}

/// When a machine was last started again, as was written down then. Whether its alert was written, too, is not known: the
/// service may have ended in between.
pub(super) struct Reboot {
    pub at: Timestamp,
    /// Up to which reboot thresholds are known to have been looked at whose alerts have ended.
    pub settled: HashMap<Uuid, Timestamp>,
}

impl Desk {
    pub fn new(parts: Parts, patience: Patience) -> Self {
        let Parts { store, fleet, feeds, history, notifier, .. } = parts;
        let ledger = Ledger::start(store.clone());
        let readers = Arc::new(Semaphore::new(READERS));
        Self {
            store,
            fleet,
            inboxes: Arc::default(),
            patience,
            is_stopping: Arc::default(),
            lost: Arc::default(),
            ledger,
            feeds,
            history,
            notifier,
            readers,
        }
    }

    /// Writes changes until they are written, and tells whoever watches. A database that is away comes back, and until
    /// then this server's alerts stand still; only a server that is deleted is given up.
    pub async fn write(&self, server: &Server, seat: Seat, mut changes: Vec<AlertChange>) -> Written {
        let outcomes = loop {
            match self.attempt(server, seat, &mut changes).await {
                Ok(Some(outcomes)) => break outcomes,
                Ok(None) => return Written::Refused,
                Err(LedgerError::Stopped) => return Written::Pointless,
                Err(LedgerError::Store(error)) => {
                    if matches!(self.store.owner_of_server(server.id).await, Ok(None)) {
                        return Written::Pointless;
                    }
                    metrics::counter!("signalbox_alert_writes_failed_total").increment(1);
                    tracing::error!(%error, server.id = %server.id, "alerts could not be written, will try again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        };
        outcomes.iter().flatten().for_each(|alert| self.tell(alert));
        self.notifier.nudge();
        Written::Done(changes.into_iter().zip(outcomes).collect())
    }

    async fn attempt(
        &self,
        server: &Server,
        seat: Seat,
        changes: &mut [AlertChange],
    ) -> Result<Option<Vec<Option<Alert>>>, LedgerError> {
        let is_opening = changes.iter().any(|change| matches!(change, AlertChange::Opened { .. }));
        if is_opening {
            let silences = self.store.silences_of(server.owner_id, self.patience.clock.now()).await?;
            for change in changes.iter_mut() {
                if let AlertChange::Opened { alert, tags } = change {
                    let at = Timestamp::from(alert.triggered_at);
                    let until = silence::held_until(silences.iter(), server.id, tags, at);
                    // Whoever ends a silence has those looked at that wait for it; this one is not there yet.
                    let look_at = until.map(|until| until.min(at.plus_millis(LOOK_AGAIN_MS)));
                    (alert.is_silenced, alert.notify_at) = (until.is_some(), look_at.map(Into::into));
                }
            }
        }
        self.ledger.write(AlertChanges { server_id: server.id, fence: seat.fence(), changes: changes.to_vec() }).await
    }

    /// Tells dashboards of an alert that has changed.
    pub fn tell(&self, alert: &Alert) {
        let topics = [Topic::Server(alert.server_id), Topic::Alerts(alert.owner_id)];
        if !topics.iter().any(|topic| self.feeds.is_watched(*topic)) {
            return;
        }
        match Encoding::Json.encode(&FeedMessage::Alert(Box::new(alert_view(alert)))) {
            Ok(bytes) => {
                let text = Text::from(ByteString::try_from(bytes).unwrap_or_default());
                topics.iter().for_each(|topic| self.feeds.publish(*topic, Frame::Event(text.clone())));
            }
            Err(error) => tracing::error!(%error, "an alert could not be written"),
        }
    }

    /// The same, and wakes whoever tells people.
    pub fn tell_and_notify(&self, alert: &Alert) {
        self.tell(alert);
        self.notifier.nudge();
    }

    /// What was measured in so many milliseconds before now.
    pub async fn past(&self, server_id: Uuid, window_ms: i64) -> Past {
        let Ok(_place) = self.readers.acquire().await else { return Past::default() };
        let now = self.patience.clock.now();
        let start = Timestamp::from_millis(now.as_millis().saturating_sub(window_ms));
        loop {
            match self.read_past(server_id, TimeRange { start, end: now }).await {
                Ok(past) => return past,
                Err(error @ (HistoryError::Store(_) | HistoryError::Busy)) => {
                    tracing::error!(%error, server.id = %server_id, "the past could not be read, will try again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Err(error) => {
                    // What is pending begins anew then; what is open is known from its row.
                    tracing::error!(%error, server.id = %server_id, "the past could not be read");
                    return Past::default();
                }
            }
        }
    }

    /// The last reboot that is recent enough to be told.
    pub async fn last_reboot(&self, server_id: Uuid) -> Option<Reboot> {
        let Ok(_place) = self.readers.acquire().await else { return None };
        let since = self.patience.clock.now().plus_millis(-REBOOT_IS_NEWS_FOR_MS);
        loop {
            match self.read_last_reboot(server_id, since).await {
                Ok(reboot) => return reboot,
                Err(error) => {
                    tracing::error!(%error, server.id = %server_id, "the last reboot could not be read, will try again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    async fn read_last_reboot(&self, server_id: Uuid, since: Timestamp) -> Result<Option<Reboot>, StoreError> {
        let Some(at) = self.store.last_reboot(server_id, since).await? else { return Ok(None) };
        Ok(Some(Reboot { at, settled: self.store.settled_up_to(server_id, since).await? }))
    }

    async fn read_past(&self, server_id: Uuid, range: TimeRange) -> Result<Past, HistoryError> {
        let settled = self.store.settled_up_to(server_id, range.start).await?;
        let mut reader = self.history.open(server_id, range, Resolution::Raw, Wanted::everything()).await?;
        let mut samples = Vec::new();
        loop {
            let page = reader.next_page().await?;
            if page.is_empty() {
                return Ok(Past { samples, settled, reboot: None });
            }
            samples.extend(page.iter().map(Point::measured));
            let too_many = too_many(&samples);
            samples.drain(..too_many);
        }
    }

    /// Nobody here watches the server by this right any more: the database knows better.
    pub fn refused(&self, server_id: Uuid, inbox: &Arc<Inbox>) {
        tracing::info!(server.id = %server_id, "another instance watches the server");
        self.ended(server_id, inbox);
        if let Seat::Home(session_id) = inbox.seat {
            self.lost.insert(session_id, server_id);
        }
    }

    /// An evaluator has nothing to watch any more.
    pub fn ended(&self, server_id: Uuid, inbox: &Arc<Inbox>) {
        self.inboxes.remove_if(&server_id, |_, current| Arc::ptr_eq(current, inbox));
    }
}

/// How many of the oldest samples are too many.
fn too_many(samples: &[Measured]) -> usize {
    let entries = |Measured { sample, open }: &Measured| {
        let disks = sample.disk_usage.len() + sample.disk_io.len();
        disks + sample.network.len() + sample.temperatures.len() + sample.containers.len() + open.len()
    };
    let mut held = 0;
    let kept = samples.iter().rev().take(MOST_SAMPLES).take_while(|sample| {
        held += entries(sample);
        held <= MOST_ENTRIES
    });
    samples.len() - kept.count()
}
