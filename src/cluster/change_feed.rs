//! Follows the audit log for changes made by other instances.
//!
//! Every change that matters to other instances is an entry of the log, which has no gaps and is in commit order. So
//! each instance reads on from where it stopped: once a second, and at once when another instance rings. A ring carries
//! no data, so it can neither forge a change nor lose one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::audit::chain::{Head, Record};
use crate::bus::Subscription;
use crate::bus::client::BusClient;
use crate::change::Change;
use crate::periodic::ticks;
use crate::store::{AuditChanges, Store, StoreError};

/// How often the log is read even if no other instance rings.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long changes are gathered before the next ring: a thousand changes ring only a few times.
const RING_EVERY: Duration = Duration::from_millis(20);

/// Entries read in one query.
const AT_ONCE: u64 = 500;

/// Signals the other instances that the log has new entries. Clones are cheap.
#[derive(Clone, Default)]
pub struct ChangeSignal(Arc<Notify>);

impl ChangeSignal {
    /// Notes that something changed here.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Rings at the others for as long as this instance lives.
    pub async fn keep(self, bus_client: BusClient) {
        loop {
            self.0.notified().await;
            // Lost while the bus is away: the others read the log every second anyway.
            _ = bus_client.tell(bus_client.subjects.notice(), &()).await;
            sleep(RING_EVERY).await;
        }
    }
}

/// Reads the log on from one entry.
pub struct AuditTailer {
    store: Store,
    /// All entries up to this one were handed on.
    last: Head,
}

impl AuditTailer {
    /// Follows the log after the entry `last`.
    pub fn from(store: Store, last: Head) -> Self {
        Self { store, last }
    }

    /// Hands on new changes for as long as this instance lives. `apply` must not wait: a blocked evaluator would
    /// otherwise delay, for example, the revocation of a key.
    pub async fn keep(mut self, bus_client: BusClient, apply: impl Fn(Change)) {
        let rung = Arc::new(Notify::new());
        tokio::spawn(listen(bus_client, rung.clone()));
        let mut ticks = ticks(LOOK_EVERY);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = rung.notified() => {}
            }
            if let Err(error) = self.read(&apply).await {
                tracing::warn!(%error, "cannot read the changes of other instances, will retry");
            }
        }
    }

    /// Hands on changes by the operator's commands beside a lone instance, until the store is closed.
    pub async fn keep_beside(mut self, apply: impl Fn(Change)) {
        let mut ticks = ticks(LOOK_EVERY);
        let mut was_read = true;
        loop {
            ticks.tick().await;
            let read = self.read_if(Record::is_of_command_line, &apply).await;
            if read.as_ref().is_err_and(StoreError::is_closed) {
                return;
            }
            // Once for each time that the database is away.
            if let (Err(error), true) = (&read, was_read) {
                tracing::warn!(%error, "cannot read the changes of the operator's commands, will retry");
            }
            was_read = read.is_ok();
        }
    }

    async fn read(&mut self, apply: &impl Fn(Change)) -> Result<(), StoreError> {
        self.read_if(|_| true, apply).await
    }

    /// Hands on new changes page by page: a page that was handed on is not lost when the next one cannot be read.
    async fn read_if(&mut self, concerns: impl Fn(&Record) -> bool, apply: &impl Fn(Change)) -> Result<(), StoreError> {
        loop {
            let changes = self.store.audit_changes(&self.last, &Change::ACTIONS, AT_ONCE).await?;
            let AuditChanges { records, up_to, is_rewound } = changes;
            if is_rewound {
                tracing::warn!("the database has lost changes, as after a failover: everything is read again");
                apply(Change::Rewound);
            }
            records.iter().filter(|record| concerns(record)).filter_map(Change::of).for_each(apply);
            self.last = up_to;
            if (records.len() as u64) < AT_ONCE {
                return Ok(());
            }
        }
    }
}

async fn listen(bus_client: BusClient, rung: Arc<Notify>) {
    let rung = &rung;
    let hear = |mut notices: Subscription| async move {
        while notices.next().await.is_some() {
            rung.notify_one();
        }
    };
    bus_client.serve(bus_client.subjects.notice(), hear).await;
}
