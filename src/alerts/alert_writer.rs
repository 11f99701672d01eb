//! What all evaluators share: writing changes of alerts, publishing them, and reading the past after a restart.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytestring::ByteString;
use dashmap::DashMap;
use signalbox_history::open::Measured;
use signalbox_protocol::alert::Alert as AlertView;
use signalbox_protocol::frontend::FeedMessage;
use signalbox_protocol::{Encoding, Timestamp};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::Parts;
use super::assignment::Assignment;
use super::inbox::Inbox;
use super::patience::Patience;
use super::sample_budget::SampleBudget;
use super::silence;
use super::watch::Server;
use crate::auth::access::Access;
use crate::batch_writer::{BatchWriter, BatchWriterError, Change};
use crate::feeds::{FeedFrame, Feeds, Text, Topic};
use crate::fleet::Fleet;
use crate::metrics::query::reader::Point;
use crate::metrics::query::wanted::Selection;
use crate::metrics::query::{History, HistoryError, Resolution, TimeRange};
use crate::notify::Notifier;
use crate::store::{Alert, AlertAudience, AlertChange, AlertChanges, Silence, Store, StoreError, alert_view};

/// The pause after a database error.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The longest pause of an evaluator that cannot write: it doubles, because thousands may wait for the same database.
const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(4);

/// How soon after an alert was opened under a silence the silences are looked up again.
const LOOK_AGAIN_MS: i64 = 3600 * 1000;

/// How old a recorded reboot may be for its alert to be opened later, because the service ended before it wrote the alert.
/// A day covers any restart of the service.
const REBOOT_IS_NEWS_FOR_MS: i64 = 24 * 3600 * 1000;

/// Evaluators that read history at the same time after a restart.
const READERS: usize = 4;

/// Samples that each reads, newest first: more than a day at one every five seconds. A crossing that has lasted longer
/// counts from the oldest of them.
const MAX_SAMPLES: usize = 20_000;

/// Disks, devices, interfaces, sensors and containers in all of them together: about 200 MB. With a thousand containers
/// this is more than an hour of samples.
const MAX_ENTRIES: usize = 1_000_000;

/// The changes of one evaluator, written together or not at all. Those of several evaluators share a transaction.
impl Change for AlertChanges {
    /// `None` if another instance evaluates the server now.
    type Outcome = Option<Vec<Option<Alert>>>;

    async fn write(store: &Store, changes: &[Self]) -> Result<Vec<Self::Outcome>, StoreError> {
        store.change_alerts_of(changes).await
    }
}

/// The outcome of an evaluator's changes.
pub(super) enum WriteOutcome {
    /// Written: each change with the alert that it made or changed.
    Done(Vec<(AlertChange, Option<Alert>)>),
    /// Not needed any more: the server was deleted, or the service is stopping.
    Pointless,
    /// Another instance evaluates the server now, and will find the same.
    Refused,
}

#[derive(Clone)]
pub(super) struct AlertWriter {
    pub store: Store,
    pub fleet: Fleet,
    pub inboxes: Arc<DashMap<Uuid, Arc<Inbox>>>,
    sample_budget: Arc<SampleBudget>,
    /// Decides when an absent agent does not count as offline yet.
    pub patience: Patience,
    /// The service is stopping, and has closed the sessions of its agents.
    pub is_stopping: Arc<AtomicBool>,
    /// Sessions of this instance that the database did not contain, and their servers.
    pub lost: Arc<DashMap<Uuid, Uuid>>,
    batch_writer: BatchWriter<AlertChanges>,
    feeds: Feeds,
    history: History,
    pub notifier: Notifier,
    access: Access,
    readers: Arc<Semaphore>,
}

/// What was recorded before the evaluator began, as before the service restarted.
#[derive(Default)]
pub(super) struct Past {
    /// Oldest first.
    pub samples: Vec<Measured>,
    /// The time of the last sample that each threshold is known to have evaluated.
    pub settled: HashMap<Uuid, Timestamp>,
    /// The last reboot of the machine.
    pub reboot: Option<Reboot>,
}

/// The last recorded reboot of a machine. Its alert may be missing, because the service may have ended in between.
pub(super) struct Reboot {
    pub at: Timestamp,
    /// The last reboot that each threshold is known to have evaluated; only thresholds whose alerts have ended.
    pub settled: HashMap<Uuid, Timestamp>,
}

impl AlertWriter {
    pub fn new(parts: Parts, patience: Patience) -> Self {
        let Parts { store, fleet, feeds, history, notifier, access, .. } = parts;
        let batch_writer = BatchWriter::start(store.clone());
        let readers = Arc::new(Semaphore::new(READERS));
        Self {
            store,
            fleet,
            inboxes: Arc::default(),
            sample_budget: Arc::default(),
            patience,
            is_stopping: Arc::default(),
            lost: Arc::default(),
            batch_writer,
            feeds,
            history,
            notifier,
            access,
            readers,
        }
    }

    /// Returns an inbox for an evaluator, which accepts late samples up to `late_window_ms` old.
    pub fn new_inbox(&self, assignment: Assignment, late_window_ms: i64) -> Arc<Inbox> {
        Arc::new(Inbox::new(assignment, late_window_ms, self.sample_budget.clone()))
    }

    /// Writes changes, then publishes them and wakes the notifier. Retries until the database accepts them, which delays
    /// this server's alerts; gives up only if the server was deleted or another instance evaluates it.
    pub async fn write(&self, server: &Server, assignment: Assignment, mut changes: Vec<AlertChange>) -> WriteOutcome {
        let mut pause = RETRY_AFTER;
        let outcomes = loop {
            match self.attempt(server, assignment, &mut changes).await {
                Ok(Some(outcomes)) => break outcomes,
                Ok(None) => return WriteOutcome::Refused,
                Err(BatchWriterError::Stopped) => return WriteOutcome::Pointless,
                Err(BatchWriterError::Store(error)) if error.is_closed() => return WriteOutcome::Pointless,
                Err(BatchWriterError::Store(error)) => {
                    if matches!(self.store.owner_of_server(server.id).await, Ok(None)) {
                        return WriteOutcome::Pointless;
                    }
                    metrics::counter!("signalbox_alert_writes_failed_total").increment(1);
                    // Thousands may try again while the database is away, which the log says already.
                    if error.is_busy() && pause > RETRY_AFTER {
                        tracing::debug!(%error, server.id = %server.id, "alerts could still not be written");
                    } else {
                        tracing::error!(%error, server.id = %server.id, "alerts could not be written, will try again");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_AFTER_AT_MOST);
                }
            }
        };
        for (change, outcome) in changes.iter().zip(&outcomes) {
            match outcome {
                Some(alert) => self.tell(alert).await,
                None => self.tell_resolved(change).await,
            }
        }
        self.notifier.nudge();
        WriteOutcome::Done(changes.into_iter().zip(outcomes).collect())
    }

    async fn attempt(
        &self,
        server: &Server,
        assignment: Assignment,
        changes: &mut [AlertChange],
    ) -> Result<Option<Vec<Option<Alert>>>, BatchWriterError> {
        let is_opening = changes.iter().any(|change| matches!(change, AlertChange::Opened { .. }));
        if is_opening {
            let silences = self.store.silences_of(server.owner_id, self.patience.clock.now()).await?;
            for change in changes.iter_mut() {
                if let AlertChange::Opened { alert, audience } = change {
                    *audience = self.prepare(alert, &silences, std::mem::take(&mut audience.tags));
                }
            }
        }
        self.batch_writer
            .write(AlertChanges { server_id: server.id, fence: assignment.fence(), changes: changes.to_vec() })
            .await
    }

    /// Completes an alert that is about to be opened on a server with these tags: whether one of its owner's silences applies.
    /// Returns whom it concerns.
    pub fn prepare(&self, alert: &mut Alert, silences: &[Silence], tags: Vec<String>) -> AlertAudience {
        let at = Timestamp::from(alert.triggered_at);
        let until = silence::held_until(silences.iter(), alert.server_id, &tags, at);
        // Ending a silence releases the alerts that wait for it, but not this one, which is not written yet.
        let look_at = until.map(|until| until.min(at.plus_millis(LOOK_AGAIN_MS)));
        (alert.is_silenced, alert.notify_at) = (until.is_some(), look_at.map(Into::into));
        let viewers = self.access.viewers(alert.owner_id, alert.server_id, &tags);
        AlertAudience { tags, viewers }
    }

    /// Publishes a changed alert to the dashboards of its server and of everybody who may see it.
    pub async fn tell(&self, alert: &Alert) {
        let viewers = self.access.viewers_of(alert.server_id).await.unwrap_or_else(|error| {
            tracing::warn!(%error, server.id = %alert.server_id, "an alert reaches only the dashboards of its owner");
            vec![alert.owner_id]
        });
        let topics = viewers.into_iter().map(Topic::Alerts).chain([Topic::Server(alert.server_id)]);
        let watched: Vec<Topic> = topics.filter(|topic| self.feeds.is_watched(*topic)).collect();
        if watched.is_empty() {
            return;
        }
        let owner = self.store.alert_owner(alert.owner_id).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "an alert is published without the name of its owner");
            None
        });
        let view = AlertView { owner, ..alert_view(alert) };
        match Encoding::Json.encode(&FeedMessage::Alert(Box::new(view))) {
            Ok(bytes) => {
                let text = Text::from(ByteString::try_from(bytes).unwrap_or_default());
                watched.into_iter().for_each(|topic| self.feeds.publish(topic, FeedFrame::Event(text.clone())));
            }
            Err(error) => tracing::error!(%error, "an alert could not be encoded for dashboards"),
        }
    }

    /// Publishes an alert that was resolved already. An earlier attempt may have done so, and its answer was lost.
    async fn tell_resolved(&self, change: &AlertChange) {
        let AlertChange::Resolved { id, .. } = change else { return };
        match self.store.find_alert(*id).await {
            Ok(Some(alert)) => self.tell(&alert).await,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, alert.id = %id, "a resolved alert cannot be read for dashboards"),
        }
    }

    /// Publishes a changed alert to dashboards, and wakes the notifier.
    pub async fn tell_and_notify(&self, alert: &Alert) {
        self.tell(alert).await;
        self.notifier.nudge();
    }

    /// Reads the last `window_ms` milliseconds of samples.
    pub async fn past(&self, server_id: Uuid, window_ms: i64) -> Past {
        let Ok(_place) = self.readers.acquire().await else { return Past::default() };
        let now = self.patience.clock.now();
        let start = Timestamp::from_millis(now.as_millis().saturating_sub(window_ms));
        loop {
            match self.read_past(server_id, TimeRange { start, end: now }).await {
                Ok(past) => return past,
                Err(error @ (HistoryError::Store(_) | HistoryError::Busy)) => {
                    tracing::error!(%error, server.id = %server_id, "the history for thresholds could not be read, will try again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Err(error) => {
                    // Pending crossings start again then; open alerts are known from their rows.
                    tracing::error!(%error, server.id = %server_id, "the history for thresholds could not be read");
                    return Past::default();
                }
            }
        }
    }

    /// Returns the last reboot, if it is recent enough for an alert.
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
        let mut reader = self.history.open(server_id, range, Resolution::Raw, Selection::everything()).await?;
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

    /// Ends an evaluator whose writes were refused, because the database says that another instance evaluates the server.
    pub fn refused(&self, server_id: Uuid, inbox: &Arc<Inbox>) {
        tracing::info!(server.id = %server_id, "another instance evaluates the server now");
        self.ended(server_id, inbox);
        if let Assignment::SessionHolder(session_id) = inbox.assignment {
            self.lost.insert(session_id, server_id);
        }
    }

    /// Removes the inbox of an evaluator that has ended.
    pub fn ended(&self, server_id: Uuid, inbox: &Arc<Inbox>) {
        self.inboxes.remove_if(&server_id, |_, current| Arc::ptr_eq(current, inbox));
    }
}

/// Returns how many of the oldest samples exceed the limits.
fn too_many(samples: &[Measured]) -> usize {
    let entries = |Measured { sample, open }: &Measured| {
        let disks = sample.disk_usage.len() + sample.disk_io.len();
        disks + sample.network.len() + sample.temperatures.len() + sample.containers.len() + open.len()
    };
    let mut held = 0;
    let kept = samples.iter().rev().take(MAX_SAMPLES).take_while(|sample| {
        held += entries(sample);
        held <= MAX_ENTRIES
    });
    samples.len() - kept.count()
}
