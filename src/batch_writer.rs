//! Group commit: writes all waiting changes in one transaction. A thousand changes at once take a few transactions, and a
//! single change does not wait. If there are few, those that somebody waits for are written first.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

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

/// How long patient changes wait for an urgent one, which would otherwise have to wait for their transaction.
const PATIENCE: Duration = Duration::from_millis(3);

/// Up to this many changes, urgent ones get their own transaction first. With more, saving a transaction is worth more.
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
    let mut some = Vec::new();
    while changes.recv_many(&mut some, AT_ONCE).await > 0 {
        if some.iter().all(|one| one.change.haste() == Haste::Patient) {
            _ = tokio::time::timeout(PATIENCE, changes.recv_many(&mut some, AT_ONCE)).await;
        }
        let later = make_way(&mut some);
        write_together(&store, std::mem::take(&mut some)).await;
        write_together(&store, later).await;
    }
}

/// Removes and returns the patient changes if urgent ones should be written first.
fn make_way<C: Change>(some: &mut Vec<Waiting<C>>) -> Vec<Waiting<C>> {
    let has = |haste: Haste| some.iter().any(|one| one.change.haste() == haste);
    // A usual change may depend on any other, so the order is kept.
    if some.len() > FEW || !has(Haste::Urgent) || has(Haste::Usual) {
        return Vec::new();
    }
    some.extract_if(.., |one| one.change.haste() == Haste::Patient).collect()
}

async fn write_together<C: Change>(store: &Store, some: Vec<Waiting<C>>) {
    if some.is_empty() {
        return;
    }
    let (together, waiting): (Vec<C>, Vec<_>) = some.into_iter().map(|one| (one.change, one.done)).unzip();
    if let Ok(outcomes) = C::write(store, &together).await {
        for (done, outcome) in waiting.into_iter().zip(outcomes) {
            _ = done.send(Ok(outcome));
        }
        return;
    }
    // One of them may be the cause (such as a server that is being deleted), so each is tried alone.
    for (change, done) in together.into_iter().zip(waiting) {
        let written = C::write(store, &[change]).await;
        let outcome =
            written.map_err(BatchWriterError::from).and_then(|mut all| all.pop().ok_or(BatchWriterError::Stopped));
        _ = done.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Change for Haste {
        type Outcome = ();

        async fn write(_: &Store, changes: &[Self]) -> Result<Vec<()>, StoreError> {
            Ok(vec![(); changes.len()])
        }

        fn haste(&self) -> Haste {
            *self
        }
    }

    /// Returns which of these are written first, and which after them.
    fn order(of: &[Haste]) -> (Vec<Haste>, Vec<Haste>) {
        let waiting = |change: &Haste| Waiting { change: *change, done: oneshot::channel().0 };
        let mut first: Vec<Waiting<Haste>> = of.iter().map(waiting).collect();
        let later = make_way(&mut first);
        let hastes = |some: Vec<Waiting<Haste>>| some.into_iter().map(|one| one.change).collect();
        (hastes(first), hastes(later))
    }

    #[test]
    fn urgent_changes_are_written_before_patient_ones() {
        use Haste::{Patient, Urgent};

        let (first, later) = order(&[Patient, Urgent, Patient, Urgent]);

        assert_eq!((first, later), (vec![Urgent, Urgent], vec![Patient, Patient]));
    }

    #[test]
    fn no_change_overtakes_a_usual_one() {
        use Haste::{Patient, Urgent, Usual};

        for all in [vec![Patient, Usual, Urgent], vec![Usual, Patient], vec![Patient, Patient], vec![Urgent]] {
            assert_eq!(order(&all), (all.clone(), Vec::new()));
        }
    }

    #[test]
    fn many_changes_share_one_transaction() {
        let mut many = vec![Haste::Patient; FEW];
        many.push(Haste::Urgent);

        assert_eq!(order(&many), (many.clone(), Vec::new()));
    }
}
