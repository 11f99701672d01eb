//! Writes changes, as many in one transaction as there are: a thousand that come at once are a few transactions, and
//! one that comes alone does not wait.

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

    /// Whether it may wait a moment for company, because nobody waits for it.
    fn is_patient(&self) -> bool {
        false
    }
}

/// How long what is patient waits: one synced transaction less is worth more than it costs.
const PATIENCE: Duration = Duration::from_millis(3);

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
    let mut some = Vec::with_capacity(AT_ONCE);
    while changes.recv_many(&mut some, AT_ONCE).await > 0 {
        if some.iter().all(|one| one.change.is_patient()) {
            _ = tokio::time::timeout(PATIENCE, changes.recv_many(&mut some, AT_ONCE)).await;
        }
        let (together, waiting): (Vec<C>, Vec<_>) = some.drain(..).map(|one| (one.change, one.done)).unzip();
        if let Ok(outcomes) = C::write(&store, &together).await {
            for (done, outcome) in waiting.into_iter().zip(outcomes) {
                _ = done.send(Ok(outcome));
            }
            continue;
        }
        // One of them may be at fault (a server that is being deleted): the others must not suffer for it.
        for (change, done) in together.into_iter().zip(waiting) {
            let written = C::write(&store, &[change]).await;
            let outcome = written.map_err(LedgerError::from).and_then(|mut all| all.pop().ok_or(LedgerError::Stopped));
            _ = done.send(outcome);
        }
    }
}
