//! Writes what happens to commands, as many at a time as there are: a thousand results that come at once are a few
//! transactions, and one that comes alone does not wait.

use tokio::sync::{mpsc, oneshot};

use crate::store::{CommandWrite, Store, StoreError};

/// Changes in one transaction.
const AT_ONCE: usize = 128;

/// Changes that may wait; whoever comes then waits for a place.
const WAITING: usize = 1_024;

/// Takes changes, behind cheap clones.
#[derive(Clone)]
pub struct Ledger(mpsc::Sender<Entry>);

struct Entry {
    write: CommandWrite,
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
        let (sender, entries) = mpsc::channel(WAITING);
        tokio::spawn(write_all(store, entries));
        Self(sender)
    }

    /// Resolves when the change is durable.
    pub async fn write(&self, write: CommandWrite) -> Result<(), LedgerError> {
        let (done, is_done) = oneshot::channel();
        self.0.send(Entry { write, done }).await.map_err(|_| LedgerError::Stopped)?;
        is_done.await.map_err(|_| LedgerError::Stopped)?
    }
}

async fn write_all(store: Store, mut entries: mpsc::Receiver<Entry>) {
    let mut some = Vec::with_capacity(AT_ONCE);
    while entries.recv_many(&mut some, AT_ONCE).await > 0 {
        let (writes, waiting): (Vec<_>, Vec<_>) = some.drain(..).map(|entry| (entry.write, entry.done)).unzip();
        if store.write_commands(&writes).await.is_ok() {
            for done in waiting {
                _ = done.send(Ok(()));
            }
            continue;
        }
        // One of them may be at fault (a server that is being deleted): the others must not suffer for it.
        for (write, done) in writes.into_iter().zip(waiting) {
            _ = done.send(store.write_commands(&[write]).await.map_err(LedgerError::from));
        }
    }
}
