//! Writes what happens to commands, as many at a time as there are: a thousand results that come at once are a few
//! transactions, and one that comes alone does not wait.

use tokio::sync::{mpsc, oneshot};

use crate::audit::Entry;
use crate::store::{CommandChange, CommandWrite, Store, StoreError};

/// Changes in one transaction.
const AT_ONCE: usize = 128;

/// Changes that may wait; whoever comes then waits for a place.
const MOST_WAITING: usize = 1_024;

/// Takes changes, behind cheap clones.
#[derive(Clone)]
pub struct Ledger(mpsc::Sender<Waiting>);

struct Waiting {
    change: CommandChange,
    done: oneshot::Sender<Result<(), LedgerError>>,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the service is stopping")]
    Stopped,
}

impl Ledger {
    /// Starts the writer on the calling thread. It ends with the last handle.
    pub fn start(store: Store) -> Self {
        let (sender, entries) = mpsc::channel(MOST_WAITING);
        tokio::spawn(write_all(store, entries));
        Self(sender)
    }

    /// Resolves when the change is durable, and with it what the audit log is told of it.
    pub async fn write(&self, write: CommandWrite, entries: Vec<Entry>) -> Result<(), LedgerError> {
        let (done, is_done) = oneshot::channel();
        self.0
            .send(Waiting { change: CommandChange { write, entries }, done })
            .await
            .map_err(|_| LedgerError::Stopped)?;
        is_done.await.map_err(|_| LedgerError::Stopped)?
    }
}

async fn write_all(store: Store, mut entries: mpsc::Receiver<Waiting>) {
    let mut some = Vec::with_capacity(AT_ONCE);
    while entries.recv_many(&mut some, AT_ONCE).await > 0 {
        let (changes, waiting): (Vec<_>, Vec<_>) = some.drain(..).map(|one| (one.change, one.done)).unzip();
        if store.write_commands(&changes).await.is_ok() {
            for done in waiting {
                _ = done.send(Ok(()));
            }
            continue;
        }
        // One of them may be at fault (a server that is being deleted): the others must not suffer for it.
        for (change, done) in changes.into_iter().zip(waiting) {
            _ = done.send(store.write_commands(&[change]).await.map_err(LedgerError::from));
        }
    }
}
