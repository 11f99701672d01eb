//! Releases of the agent on their way to the servers of an account, wave by wave ([`members`] has the servers).
//!
//! An account has one rollout at a time that has not ended: an index sees to that. Every change names the state that it was
//! decided from, so that of two instances, or of a step and a request, one decides.

mod members;

use entity::{Millis, update_rollout, update_rollout_server};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

pub use self::members::{MemberKey, OpenMember, RolloutServer};
use super::advisory_lock::lock_owner;
use super::audit_log::record_in;
use super::commands::ROWS_AT_ONCE;
use super::server_events::hold;
use super::{Page, PageRequest, Store, StoreError};
use crate::audit::Entry;
pub use entity::update_rollout::Model as UpdateRollout;
pub use entity::update_rollout_server::Model as UpdateRolloutServer;

/// The rollouts that an account keeps: more than a release a week for a year would need.
pub const KEPT_ROLLOUTS: u64 = 50;

/// The words of the status of a rollout, and of the state of its servers.
pub mod rollout {
    /// Servers are offered the release.
    pub const RUNNING: &str = "running";
    /// No server is offered anything until somebody resumes it.
    pub const PAUSED: &str = "paused";
    /// It went through all waves.
    pub const DONE: &str = "done";
    /// Too many servers failed, or the release is not there any more.
    pub const STOPPED: &str = "stopped";
    /// Somebody ended it.
    pub const CANCELLED: &str = "cancelled";

    /// The server was not offered the release yet, or is offline.
    pub const WAITING: &str = "waiting";
    /// The server was offered the release, and has not connected with it yet.
    pub const OFFERED: &str = "offered";
    /// The server's agent has the version.
    pub const UPDATED: &str = "updated";
    /// The server's agent did not work with it.
    pub const FAILED: &str = "failed";
    /// The server's agent does not take it.
    pub const REFUSED: &str = "refused";
}

/// A change of the status that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutStep {
    /// A running one offers nothing more.
    Pause,
    /// A paused one continues.
    Resume,
    /// It ends.
    Cancel,
}

/// How a rollout ends where nobody cancels it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutEnd {
    /// All its servers have been through it, or have had the time.
    Done,
    /// For this reason, for people.
    Stopped(String),
}

impl Store {
    /// Stores a rollout for those of the servers that still exist. Returns whether the account had none that has not ended.
    pub async fn create_rollout(
        &self,
        new: &UpdateRollout,
        servers: &[UpdateRolloutServer],
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let row = new.clone().into_active_model().reset_all();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock_owner(&transaction, new.owner_id).await?;
            let owned = update_rollout::Entity::find().filter(update_rollout::Column::OwnerId.eq(new.owner_id));
            if owned.filter(is_open()).count(&transaction).await? > 0 {
                return Ok(false);
            }
            update_rollout::Entity::insert(row.clone()).exec_without_returning(&transaction).await?;
            for some in servers.chunks(ROWS_AT_ONCE) {
                let held = hold(&transaction, some.iter().map(|server| server.server_id)).await?;
                let there = some.iter().filter(|server| held.contains(&server.server_id));
                let rows: Vec<_> = there.map(|server| server.clone().into_active_model().reset_all()).collect();
                if !rows.is_empty() {
                    update_rollout_server::Entity::insert_many(rows).exec_without_returning(&transaction).await?;
                }
            }
            forget_oldest(&transaction, new.owner_id).await?;
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Lists the rollouts of an owner, newest first.
    pub async fn list_rollouts(&self, owner_id: Uuid, page: PageRequest) -> Result<Page<UpdateRollout>, StoreError> {
        let query = update_rollout::Entity::find().filter(update_rollout::Column::OwnerId.eq(owner_id));
        let total = query.clone().count(&self.read).await?;
        let query = newest_first(query).limit(page.limit).offset(page.offset);
        Ok(Page { items: query.all(&self.read).await?, total })
    }

    /// Finds a rollout of an owner.
    pub async fn find_rollout(&self, owner_id: Uuid, id: Uuid) -> Result<Option<UpdateRollout>, StoreError> {
        Ok(update_rollout::Entity::find().filter(of_owner(owner_id, id)).one(&self.read).await?)
    }

    /// The rollouts of all accounts that have not ended.
    pub async fn open_rollouts(&self) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
        let open = update_rollout::Entity::find()
            .select_only()
            .columns([update_rollout::Column::OwnerId, update_rollout::Column::Id])
            .filter(is_open())
            .order_by_asc(update_rollout::Column::CreatedAt);
        Ok(open.into_tuple().all(&self.read).await?)
    }

    /// Pauses, resumes or cancels a rollout of an owner. Returns whether that changed it.
    pub async fn step_rollout(
        &self,
        owner_id: Uuid,
        id: Uuid,
        step: RolloutStep,
        now: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let (from, to) = match step {
            RolloutStep::Pause => (update_rollout::Column::Status.eq(rollout::RUNNING), rollout::PAUSED),
            RolloutStep::Resume => (update_rollout::Column::Status.eq(rollout::PAUSED), rollout::RUNNING),
            RolloutStep::Cancel => (update_rollout::Column::EndedAt.is_null(), rollout::CANCELLED),
        };
        let mut update = update_rollout::Entity::update_many()
            .col_expr(update_rollout::Column::Status, Expr::value(to))
            .filter(of_owner(owner_id, id))
            .filter(from);
        if step == RolloutStep::Cancel {
            update = update.col_expr(update_rollout::Column::EndedAt, Millis::from(now).into());
        }
        self.noted(update, entry).await
    }

    /// Begins the next wave of a running rollout at `since`. Returns whether nobody else has.
    pub async fn advance_rollout(
        &self,
        before: &UpdateRollout,
        wave: i32,
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = update_rollout::Entity::update_many()
            .col_expr(update_rollout::Column::Wave, Expr::value(wave))
            .col_expr(update_rollout::Column::WaveSince, Millis::from(since).into())
            .filter(update_rollout::Column::Id.eq(before.id))
            .filter(update_rollout::Column::Status.eq(rollout::RUNNING))
            .filter(update_rollout::Column::Wave.eq(before.wave));
        Ok(update.exec(&self.write).await?.rows_affected > 0)
    }

    /// Ends a rollout that has not ended. Returns whether nobody else has.
    pub async fn end_rollout(
        &self,
        id: Uuid,
        end: RolloutEnd,
        now: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let (status, reason) = match end {
            RolloutEnd::Done => (rollout::DONE, None),
            RolloutEnd::Stopped(reason) => (rollout::STOPPED, Some(reason)),
        };
        let update = update_rollout::Entity::update_many()
            .col_expr(update_rollout::Column::Status, Expr::value(status))
            .col_expr(update_rollout::Column::StoppedReason, Expr::value(reason))
            .col_expr(update_rollout::Column::EndedAt, Millis::from(now).into())
            .filter(update_rollout::Column::Id.eq(id))
            .filter(is_open());
        self.noted(update, entry).await
    }

    /// Runs an update, and writes the entry if it changed anything. Returns whether it did.
    async fn noted(
        &self,
        update: sea_orm::UpdateMany<update_rollout::Entity>,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if update.clone().exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// Whether it has not ended.
fn is_open() -> Condition {
    Condition::all().add(update_rollout::Column::EndedAt.is_null())
}

fn of_owner(owner_id: Uuid, id: Uuid) -> Condition {
    Condition::all().add(update_rollout::Column::Id.eq(id)).add(update_rollout::Column::OwnerId.eq(owner_id))
}

fn newest_first(query: sea_orm::Select<update_rollout::Entity>) -> sea_orm::Select<update_rollout::Entity> {
    query.order_by_desc(update_rollout::Column::CreatedAt).order_by_desc(update_rollout::Column::Id)
}

/// Deletes what an account has beyond [`KEPT_ROLLOUTS`].
async fn forget_oldest(connection: &impl ConnectionTrait, owner_id: Uuid) -> Result<(), StoreError> {
    let owned = update_rollout::Entity::find().filter(update_rollout::Column::OwnerId.eq(owner_id));
    let ids = newest_first(owned).select_only().column(update_rollout::Column::Id).offset(KEPT_ROLLOUTS);
    // SQLite takes no offset without a limit.
    let ids: Vec<Uuid> = ids.limit(KEPT_ROLLOUTS).into_tuple().all(connection).await?;
    if !ids.is_empty() {
        let oldest = update_rollout::Entity::delete_many().filter(update_rollout::Column::Id.is_in(ids));
        oldest.filter(update_rollout::Column::EndedAt.is_not_null()).exec(connection).await?;
    }
    Ok(())
}
