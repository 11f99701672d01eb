//! Writes changes, as many in one transaction as there are: a thousand that come at once are a few transactions, and
//! one that comes alone does not wait. Where there are few, those that somebody waits for go first.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::store::{Store, StoreError};

/// Changes in one transaction.
const AT_ONCE: usize = 128;

/// Changes that may wait; whoever comes then waits for a place.
const MOST_WAITING: usize = 1_024;

/// Something that is written together with others like it.
pub trait Change: Sized + Send + 'static {
    /// What came of it.
    type Outcome: Send;

    /// Makes all of these changes or none, and gives what came of each.
    fn write(store: &Store, changes: &[Self]) -> impl Future<Output = Result<Vec<Self::Outcome>, StoreError>> + Send;

    /// How soon it has to be made.
    fn haste(&self) -> Haste {
        Haste::Usual
    }
}

/// How soon a change has to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Somebody waits for it, and it needs nothing that came before it.
    Urgent,
    Usual,
    /// Nobody waits for it, and nothing that is urgent needs it.
    Patient,
}

/// How long what is patient waits for what is urgent, which would otherwise wait for its transaction.
const PATIENCE: Duration = Duration::from_millis(3);

/// So many changes are few. Of more a transaction less is worth more than to go first.
const FEW: usize = 8;

/// Takes changes, behind cheap clones.
pub struct Ledger<C: Change>(mpsc::Sender<Waiting<C>>);

impl<C: Change> Clone for Ledger<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Waiting<C: Change> {
    change: C,
    done: oneshot::Sender<Result<C::Outcome, LedgerError>>,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the service is stopping")]
    Stopped,
}

impl<C: Change> Ledger<C> {
    /// Starts the writer on the calling thread. It ends with the last handle.
    pub fn start(store: Store) -> Self {
        let (sender, changes) = mpsc::channel(MOST_WAITING);
        tokio::spawn(write_all(store, changes));
        Self(sender)
    }

    /// Resolves when the change is durable.
    pub async fn write(&self, change: C) -> Result<C::Outcome, LedgerError> {
        let (done, is_done) = oneshot::channel();
        self.0.send(Waiting { change, done }).await.map_err(|_| LedgerError::Stopped)?;
        is_done.await.map_err(|_| LedgerError::Stopped)?
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

/// Takes out those that make way for others.
fn make_way<C: Change>(some: &mut Vec<Waiting<C>>) -> Vec<Waiting<C>> {
    let has = |haste: Haste| some.iter().any(|one| one.change.haste() == haste);
    // What is usual keeps its place among the others.
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
    // One of them may be at fault (a server that is being deleted): the others must not suffer for it.
    for (change, done) in together.into_iter().zip(waiting) {
        let written = C::write(store, &[change]).await;
        let outcome = written.map_err(LedgerError::from).and_then(|mut all| all.pop().ok_or(LedgerError::Stopped));
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

    /// Which of these are written first, and which after them.
    fn order(of: &[Haste]) -> (Vec<Haste>, Vec<Haste>) {
        let waiting = |change: &Haste| Waiting { change: *change, done: oneshot::channel().0 };
        let mut first: Vec<Waiting<Haste>> = of.iter().map(waiting).collect();
        let later = make_way(&mut first);
        let hastes = |some: Vec<Waiting<Haste>>| some.into_iter().map(|one| one.change).collect();
        (hastes(first), hastes(later))
    }

    #[test]
    fn what_somebody_waits_for_goes_before_what_nobody_waits_for() {
        use Haste::{Patient, Urgent};

        let (first, later) = order(&[Patient, Urgent, Patient, Urgent]);

        assert_eq!((first, later), (vec![Urgent, Urgent], vec![Patient, Patient]));
    }

    #[test]
    fn what_is_usual_is_overtaken_by_nobody() {
        use Haste::{Patient, Urgent, Usual};

        for all in [vec![Patient, Usual, Urgent], vec![Usual, Patient], vec![Patient, Patient], vec![Urgent]] {
            assert_eq!(order(&all), (all.clone(), Vec::new()));
        }
    }

    #[test]
    fn of_many_none_goes_first() {
        let mut many = vec![Haste::Patient; FEW];
        many.push(Haste::Urgent);

        assert_eq!(order(&many), (many.clone(), Vec::new()));
    }
}
