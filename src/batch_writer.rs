//! Group commit: writes all waiting changes in one transaction. A thousand changes at once take a few transactions, and a
//! single change does not wait. Changes that nobody waits for gather for a moment, so that they share a transaction, and hold up
//! none of those that somebody waits for.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::store::{Store, StoreError};

/// Changes in one transaction.
const AT_ONCE: usize = 128;

/// Changes that may wait; the caller of a further one waits for a place.
const MAX_WAITING: usize = 1_024;

/// A change that is written together with others of its type.
pub trait Change: Sized + Send + 'static {
    /// The outcome of one change.
    type Outcome: Send;

    /// Makes all of these changes or none. Returns the outcome of each.
    fn write(store: &Store, changes: &[Self]) -> impl Future<Output = Result<Vec<Self::Outcome>, StoreError>> + Send;

    /// Returns how soon it has to be made.
    fn haste(&self) -> Haste {
        Haste::Usual
    }
}

/// How soon a change has to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Somebody waits for it, and it does not depend on earlier changes.
    Urgent,
    Usual,
    /// Nobody waits for it, and no urgent change depends on it.
    Patient,
}

/// How long a patient change waits for others. Each transaction is a sync of the disk, which others wait for, too.
const PATIENCE: Duration = Duration::from_millis(25);

/// Up to this many changes, urgent ones get a transaction of their own. With more, saving a transaction is worth more.
const FEW: usize = 8;

/// Accepts changes; cheap to clone.
pub struct BatchWriter<C: Change>(mpsc::Sender<Waiting<C>>);

impl<C: Change> Clone for BatchWriter<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Waiting<C: Change> {
    change: C,
    done: oneshot::Sender<Result<C::Outcome, BatchWriterError>>,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum BatchWriterError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the service is stopping")]
    Stopped,
}

impl<C: Change> BatchWriter<C> {
    /// Starts the writer on the calling thread. It ends with the last handle.
    pub fn start(store: Store) -> Self {
        let (sender, changes) = mpsc::channel(MAX_WAITING);
        tokio::spawn(write_all(store, changes));
        Self(sender)
    }

    /// Resolves when the change is durable.
    pub async fn write(&self, change: C) -> Result<C::Outcome, BatchWriterError> {
        let (done, is_done) = oneshot::channel();
        self.0.send(Waiting { change, done }).await.map_err(|_| BatchWriterError::Stopped)?;
        is_done.await.map_err(|_| BatchWriterError::Stopped)?
    }
}

async fn write_all<C: Change>(store: Store, mut changes: mpsc::Receiver<Waiting<C>>) {
    let mut patient = Patient { waiting: Vec::new(), until: None };
    loop {
        let mut some = Vec::new();
        let received = match patient.until {
            None => Some(changes.recv_many(&mut some, AT_ONCE).await),
            Some(until) => timeout_at(until, changes.recv_many(&mut some, AT_ONCE)).await.ok(),
        };
        let now = patient.admit(some);
        write_together(&store, now).await;
        if received == Some(0) || patient.until.is_some_and(|until| until <= Instant::now()) {
            write_together(&store, patient.take()).await;
        }
        if received == Some(0) {
            return;
        }
    }
}

/// The patient changes that wait for others.
struct Patient<C: Change> {
    waiting: Vec<Waiting<C>>,
    /// When they are written.
    until: Option<Instant>,
}

impl<C: Change> Patient<C> {
    /// Returns which changes are written now.
    fn admit(&mut self, some: Vec<Waiting<C>>) -> Vec<Waiting<C>> {
        // A usual change may depend on any other, so the order is kept.
        let is_usual = some.iter().any(|one| one.change.haste() == Haste::Usual);
        if is_usual || self.waiting.len() + some.len() > FEW {
            let mut all = self.take();
            all.extend(some);
            return all;
        }
        let (patient, urgent): (Vec<_>, Vec<_>) =
            some.into_iter().partition(|one| one.change.haste() == Haste::Patient);
        self.waiting.extend(patient);
        if !self.waiting.is_empty() {
            self.until.get_or_insert_with(|| Instant::now() + PATIENCE);
        }
        urgent
    }

    fn take(&mut self) -> Vec<Waiting<C>> {
        self.until = None;
        std::mem::take(&mut self.waiting)
    }
}

async fn write_together<C: Change>(store: &Store, some: Vec<Waiting<C>>) {
    if some.is_empty() {
        return;
    }
    let (together, waiting): (Vec<C>, Vec<_>) = some.into_iter().map(|one| (one.change, one.done)).unzip();
    let mut of_all = match C::write(store, &together).await {
        Ok(outcomes) => {
            for (done, outcome) in waiting.into_iter().zip(outcomes) {
                _ = done.send(Ok(outcome));
            }
            return;
        }
        Err(error) => error.for_another(),
    };
    for (change, done) in together.into_iter().zip(waiting) {
        let written = match of_all.take() {
            // Each attempt would wait for the database as long as the first, one after the other.
            Some(error) => Err(error),
            // One of them may be the cause (such as a server that is being deleted), so each is tried alone.
            None => C::write(store, &[change]).await,
        };
        of_all = written.as_ref().err().and_then(StoreError::for_another);
        let outcome =
            written.map_err(BatchWriterError::from).and_then(|mut all| all.pop().ok_or(BatchWriterError::Stopped));
        _ = done.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::store::DatabaseSettings;

    impl Change for Haste {
        type Outcome = ();

        async fn write(_: &Store, changes: &[Self]) -> Result<Vec<()>, StoreError> {
            Ok(vec![(); changes.len()])
        }

        fn haste(&self) -> Haste {
            *self
        }
    }

    fn waiting(of: &[Haste]) -> Vec<Waiting<Haste>> {
        of.iter().map(|change| Waiting { change: *change, done: oneshot::channel().0 }).collect()
    }

    fn hastes(some: Vec<Waiting<Haste>>) -> Vec<Haste> {
        some.into_iter().map(|one| one.change).collect()
    }

    /// Returns which of these are written now, and which wait.
    fn order(of: &[Haste]) -> (Vec<Haste>, Vec<Haste>) {
        let mut patient = Patient { waiting: Vec::new(), until: None };
        let now = patient.admit(waiting(of));
        assert_eq!(patient.until.is_some(), !patient.waiting.is_empty());
        (hastes(now), hastes(patient.take()))
    }

    #[test]
    fn urgent_changes_are_written_and_patient_ones_wait() {
        use Haste::{Patient, Urgent};

        assert_eq!(order(&[Patient, Urgent, Patient, Urgent]), (vec![Urgent, Urgent], vec![Patient, Patient]));
        assert_eq!(order(&[Patient]), (vec![], vec![Patient]));
        assert_eq!(order(&[Urgent]), (vec![Urgent], vec![]));
        assert_eq!(order(&[]), (vec![], vec![]));
    }

    #[test]
    fn no_change_overtakes_a_usual_one_and_it_overtakes_none() {
        use Haste::{Patient as Later, Urgent, Usual};

        for all in [vec![Later, Usual, Urgent], vec![Usual, Later], vec![Usual]] {
            assert_eq!(order(&all), (all.clone(), Vec::new()));
        }
        let mut patient = Patient { waiting: waiting(&[Later, Later]), until: Some(Instant::now()) };
        assert_eq!(hastes(patient.admit(waiting(&[Urgent, Usual]))), [Later, Later, Urgent, Usual]);
        assert!(patient.until.is_none() && patient.waiting.is_empty());
    }

    #[test]
    fn many_changes_share_one_transaction_with_those_that_waited() {
        use Haste::{Patient as Later, Urgent};

        let mut patient = Patient { waiting: waiting(&[Later; 3]), until: Some(Instant::now()) };
        assert_eq!(hastes(patient.admit(waiting(&[Later; FEW - 3]))), []);
        let now = hastes(patient.admit(waiting(&[Urgent])));

        assert_eq!((now.len(), now.last()), (FEW + 1, Some(&Urgent)));
        assert!(patient.until.is_none() && patient.waiting.is_empty());
    }

    async fn store() -> (Store, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("test.db").display());
        (Store::open(&url, DatabaseSettings::default()).await.unwrap(), directory)
    }

    #[tokio::test]
    async fn a_patient_change_that_stays_alone_is_written_too() {
        let (store, _directory) = store().await;
        let writer = BatchWriter::start(store);

        writer.write(Haste::Patient).await.unwrap();
    }

    #[tokio::test]
    async fn the_last_changes_are_written_when_the_service_stops() {
        let (store, _directory) = store().await;
        let (sender, changes) = mpsc::channel(8);
        let (done, is_done) = oneshot::channel();
        sender.send(Waiting { change: Haste::Patient, done }).await.unwrap();
        drop(sender);

        write_all(store, changes).await;

        is_done.await.unwrap().unwrap();
    }

    /// A change that needs the database, and counts the attempts.
    struct Counted(Arc<AtomicUsize>);

    impl Change for Counted {
        type Outcome = ();

        async fn write(store: &Store, changes: &[Self]) -> Result<Vec<()>, StoreError> {
            if let Some(Self(attempts)) = changes.first() {
                attempts.fetch_add(1, Ordering::Relaxed);
            }
            store.ping().await?;
            Ok(vec![(); changes.len()])
        }
    }

    #[tokio::test]
    async fn changes_that_find_no_database_are_answered_after_one_attempt() {
        let (store, _directory) = store().await;
        store.clone().close().await;
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = || {
            let (done, is_done) = oneshot::channel();
            (Waiting { change: Counted(attempts.clone()), done }, is_done)
        };
        let (some, answers): (Vec<_>, Vec<_>) = (0..20).map(|_| counted()).unzip();

        write_together(&store, some).await;

        for answer in answers {
            let error = answer.await.unwrap().unwrap_err();
            assert!(matches!(&error, BatchWriterError::Store(error) if error.is_busy()), "{error}");
        }
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
    }
}
