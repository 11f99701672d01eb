//! Notes that people add to the timelines of alerts.

use entity::{alert, alert_event};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::alerts::tell;
use super::audit_log::record_in;
use super::{Alert, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// The most notes of one alert: its page shows all of them.
pub const MAX_NOTES: u64 = 100;

/// The kind of a note in a timeline.
const NOTE: &str = "note";

/// What became of a note.
#[derive(Debug, Clone, PartialEq)]
pub enum Noted {
    /// It was added to this alert.
    Added(Box<Alert>),
    /// The owner has no such alert.
    NoAlert,
    /// The alert has [`MAX_NOTES`] notes.
    Full,
}

impl Store {
    /// Adds a note to an alert's timeline. Open and resolved alerts can have notes.
    pub async fn note_alert(&self, owner_id: Uuid, id: Uuid, actor: &Actor, text: &str) -> Result<Noted, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let owned = alert::Entity::find_by_id(id).filter(alert::Column::OwnerId.eq(owner_id));
            // Two notes at the same time are counted one after the other.
            let Some(found) = owned.lock_exclusive().one(&transaction).await? else { return Ok(Noted::NoAlert) };
            let notes = alert_event::Entity::find()
                .filter(alert_event::Column::AlertId.eq(id))
                .filter(alert_event::Column::Kind.eq(NOTE))
                .count(&transaction)
                .await?;
            if notes >= MAX_NOTES {
                return Ok(Noted::Full);
            }
            tell(&transaction, id, NOTE, Timestamp::now(), Some(actor), Some(text.to_owned())).await?;
            let entry = Entry::new(action::ALERT_NOTE, owner_id, actor.clone());
            record_in(&transaction, entry.on_server(found.server_id).target(id)).await?;
            transaction.commit().await?;
            Ok(Noted::Added(Box::new(found)))
        })
        .await
    }
}
