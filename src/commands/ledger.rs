//! What happens to commands is written many at a time.

use crate::ledger::Change;
use crate::store::{CommandChange, CommandWrite, Store, StoreError};

impl Change for CommandChange {
    type Outcome = ();

    async fn write(store: &Store, changes: &[Self]) -> Result<Vec<()>, StoreError> {
        store.write_commands(changes).await?;
        Ok(vec![(); changes.len()])
    }

    /// Whoever waits for a command has been answered when its end is written, and often sends the next one.
    fn is_patient(&self) -> bool {
        matches!(self.write, CommandWrite::Ended(_))
    }
}
