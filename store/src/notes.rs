use entity::{Millis, note};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    Select,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::turn::counts_alone;
use super::{Note, Page, PageRequest, Store, StoreError};
use crate::audit::{Actor, Entry};

/// The most notes of one account.
pub const MAX_NOTES: u64 = 100;

/// What the audit log calls it when a note comes and goes.
const CREATE: &str = "note.create";
const DELETE: &str = "note.delete";

impl Store {
    /// None where the owner has as many notes as one may have.
    pub async fn create_note(&self, owner_id: Uuid, text: String, actor: Actor) -> Result<Option<Note>, StoreError> {
        let note = Note { id: Uuid::now_v7(), owner_id, text, created_at: Millis::from(Timestamp::now()) };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            counts_alone(&transaction, owner_id).await?;
            if of(owner_id).count(&transaction).await? >= MAX_NOTES {
                return Ok(None);
            }
            let row = note.clone().into_active_model().reset_all();
            note::Entity::insert(row).exec_without_returning(&transaction).await?;
            record_in(&transaction, entry(CREATE, owner_id, note.id, actor.clone())).await?;
            transaction.commit().await?;
            Ok(Some(note.clone()))
        })
        .await
    }

    /// The notes of an owner, newest first.
    pub async fn list_notes(&self, owner_id: Uuid, page: PageRequest) -> Result<Page<Note>, StoreError> {
        let total = of(owner_id).count(&self.read).await?;
        let query = of(owner_id).order_by_desc(note::Column::Id).limit(page.limit).offset(page.offset);
        Ok(Page { items: query.all(&self.read).await?, total })
    }

    pub async fn find_note(&self, owner_id: Uuid, id: Uuid) -> Result<Option<Note>, StoreError> {
        Ok(of(owner_id).filter(note::Column::Id.eq(id)).one(&self.read).await?)
    }

    /// Gives whether there was one.
    pub async fn delete_note(&self, owner_id: Uuid, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let owned =
                note::Entity::delete_many().filter(note::Column::OwnerId.eq(owner_id)).filter(note::Column::Id.eq(id));
            if owned.exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry(DELETE, owner_id, id, actor.clone())).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

fn of(owner_id: Uuid) -> Select<note::Entity> {
    note::Entity::find().filter(note::Column::OwnerId.eq(owner_id))
}

/// What the audit log is told of a note: never its text.
fn entry(action: &'static str, owner_id: Uuid, id: Uuid, actor: Actor) -> Entry {
    Entry::new(action, owner_id, actor).target(id)
}
