//! Notes that people add to alerts.

use uuid::Uuid;

use super::Alerts;
use crate::audit::Actor as Author;
use crate::store::{Noted, StoreError};

impl Alerts {
    /// Adds a note to an alert's timeline, and tells dashboards that it changed.
    pub async fn note(&self, owner_id: Uuid, id: Uuid, author: &Author, text: &str) -> Result<Noted, StoreError> {
        let noted = self.writer.store.note_alert(owner_id, id, author, text).await?;
        if let Noted::Added(alert) = &noted {
            self.writer.tell(alert).await;
        }
        Ok(noted)
    }
}
