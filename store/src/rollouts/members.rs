//! The servers of rollouts.
//!
//! A row counts as it was read until somebody changes it: an offer and each outcome are updates with that condition, so that a
//! server is offered a release by one instance at a time.

use std::collections::HashMap;

use entity::{Millis, server, update_rollout, update_rollout_server};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, FromQueryResult, JoinType, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    RelationTrait,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{UpdateRollout, rollout};
use crate::audit::Entry;
use crate::audit_log::record_in;
use crate::{Store, StoreError};

/// A server of a rollout, for its owner.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
pub struct RolloutServer {
    /// The server.
    pub server_id: Uuid,
    /// Its name.
    pub name: String,
    /// Its wave, from 0.
    pub wave: i32,
    /// One of the words of [`rollout`].
    pub state: String,
    /// Why it failed or was refused.
    pub reason: Option<String>,
    /// The version that its agent had when the rollout began.
    pub from_version: String,
    /// When the state changed.
    pub changed_at: Millis,
}

/// A row that was read, and counts as long as it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberKey {
    /// The rollout.
    pub rollout_id: Uuid,
    /// The server.
    pub server_id: Uuid,
    /// How often it was offered.
    pub offers: i32,
    /// When its state changed.
    pub changed_at: Timestamp,
}

/// A server of a rollout whose outcome is open.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
pub struct OpenMember {
    /// The server.
    pub server_id: Uuid,
    /// Its wave, from 0.
    pub wave: i32,
    /// `waiting` or `offered`.
    pub state: String,
    /// The version that its agent had when the rollout began.
    pub from_version: String,
    /// The session at the last offer.
    pub offered_session: Option<Uuid>,
    /// How often it was offered.
    pub offers: i32,
    /// When its state changed.
    pub changed_at: Millis,
    /// The session that holds the server; none while it is offline.
    pub session_id: Option<Uuid>,
    /// When its agent connected or last sent samples; written once a minute and when it leaves.
    pub last_seen_at: Option<Millis>,
    /// What its agent said of itself, as JSON.
    pub agent: Option<String>,
}

impl OpenMember {
    /// The row as it was read.
    pub fn key(&self, rollout_id: Uuid) -> MemberKey {
        let Self { server_id, offers, changed_at, .. } = self;
        MemberKey { rollout_id, server_id: *server_id, offers: *offers, changed_at: (*changed_at).into() }
    }
}

impl Store {
    /// The servers of a rollout that still belong to its owner, by wave and name.
    pub async fn rollout_servers(&self, row: &UpdateRollout) -> Result<Vec<RolloutServer>, StoreError> {
        use update_rollout_server::Column as C;
        let servers = update_rollout_server::Entity::find()
            .select_only()
            .columns([C::ServerId, C::Wave, C::State, C::Reason, C::FromVersion, C::ChangedAt])
            .column(server::Column::Name)
            .join(JoinType::InnerJoin, update_rollout_server::Relation::Server.def())
            .filter(C::RolloutId.eq(row.id))
            .filter(server::Column::OwnerId.eq(row.owner_id))
            .order_by_asc(C::Wave)
            .order_by_asc(server::Column::Name)
            .order_by_asc(C::ServerId);
        Ok(servers.into_model().all(&self.read).await?)
    }

    /// How many servers of each of these rollouts are in each state of each wave.
    pub async fn rollout_counts(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, Vec<(i32, String, i64)>>, StoreError> {
        use update_rollout_server::Column as C;
        let counted = update_rollout_server::Entity::find()
            .select_only()
            .columns([C::RolloutId, C::Wave, C::State])
            .column_as(C::ServerId.count(), "servers")
            .filter(C::RolloutId.is_in(ids.iter().copied()))
            .group_by(C::RolloutId)
            .group_by(C::Wave)
            .group_by(C::State);
        let rows: Vec<(Uuid, i32, String, i64)> = counted.into_tuple().all(&self.read).await?;
        let mut counts: HashMap<Uuid, Vec<(i32, String, i64)>> = HashMap::new();
        for (id, wave, state, count) in rows {
            counts.entry(id).or_default().push((wave, state, count));
        }
        Ok(counts)
    }

    /// Removes the servers that have another owner now.
    pub async fn release_transferred(&self, row: &UpdateRollout) -> Result<(), StoreError> {
        let owned = server::Entity::find()
            .select_only()
            .column(server::Column::Id)
            .filter(server::Column::OwnerId.eq(row.owner_id));
        let transferred = Condition::all()
            .add(update_rollout_server::Column::RolloutId.eq(row.id))
            .add(update_rollout_server::Column::ServerId.not_in_subquery(owned.into_query()));
        // Asked first: a write waits for all others on SQLite.
        let found = update_rollout_server::Entity::find().filter(transferred.clone()).one(&self.read).await?;
        if found.is_some() {
            update_rollout_server::Entity::delete_many().filter(transferred).exec(&self.write).await?;
        }
        Ok(())
    }

    /// The servers of the waves up to `wave` with an open outcome: those that were offered the release, and while the rollout runs
    /// those that are online.
    pub async fn open_members(&self, row: &UpdateRollout, wave: i32) -> Result<Vec<OpenMember>, StoreError> {
        use update_rollout_server::Column as C;
        let is_offered = C::State.eq(rollout::OFFERED);
        let is_online = C::State.eq(rollout::WAITING).and(server::Column::SessionId.is_not_null());
        let open = Condition::any().add(is_offered);
        let open = if row.status == rollout::RUNNING { open.add(is_online) } else { open };
        let members = update_rollout_server::Entity::find()
            .select_only()
            .columns([C::ServerId, C::Wave, C::State, C::FromVersion, C::Offers, C::ChangedAt])
            .column_as(C::SessionId, "offered_session")
            .columns([server::Column::SessionId, server::Column::LastSeenAt, server::Column::Agent])
            .join(JoinType::InnerJoin, update_rollout_server::Relation::Server.def())
            .filter(C::RolloutId.eq(row.id))
            .filter(C::Wave.lte(wave))
            .filter(server::Column::OwnerId.eq(row.owner_id))
            .filter(open)
            .order_by_asc(C::Wave)
            .order_by_asc(C::ServerId);
        Ok(members.into_model().all(&self.read).await?)
    }

    /// Notes that a server is about to be offered the release. Returns the row, or none if somebody else has noted it or the
    /// rollout does not run any more.
    pub async fn claim_offer(
        &self,
        key: MemberKey,
        session_id: Uuid,
        now: Timestamp,
    ) -> Result<Option<MemberKey>, StoreError> {
        let offers = key.offers.saturating_add(1);
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Locked, so that nothing is offered after the answer to a pause.
            let running = update_rollout::Entity::find_by_id(key.rollout_id)
                .filter(update_rollout::Column::Status.eq(rollout::RUNNING))
                .lock_shared()
                .one(&transaction)
                .await?;
            let Some(running) = running else { return Ok(None) };
            // The server may have been given away since it was read.
            let own = server::Entity::find_by_id(key.server_id)
                .select_only()
                .column(server::Column::Id)
                .filter(server::Column::OwnerId.eq(running.owner_id));
            let claimed = update_rollout_server::Entity::update_many()
                .col_expr(update_rollout_server::Column::State, Expr::value(rollout::OFFERED))
                .col_expr(update_rollout_server::Column::SessionId, Expr::value(session_id))
                .col_expr(update_rollout_server::Column::Offers, Expr::value(offers))
                .col_expr(update_rollout_server::Column::ChangedAt, Millis::from(now).into())
                .filter(is(key))
                .filter(update_rollout_server::Column::ServerId.in_subquery(own.into_query()))
                .exec(&transaction)
                .await?;
            if claimed.rows_affected == 0 {
                return Ok(None);
            }
            transaction.commit().await?;
            Ok(Some(MemberKey { offers, changed_at: now, ..key }))
        })
        .await
    }

    /// Takes back an offer that did not reach its agent, with the number of offers before it.
    pub async fn take_back_offer(&self, key: MemberKey, now: Timestamp) -> Result<(), StoreError> {
        let update = update_rollout_server::Entity::update_many()
            .col_expr(update_rollout_server::Column::State, Expr::value(rollout::WAITING))
            .col_expr(update_rollout_server::Column::Offers, Expr::value(key.offers.saturating_sub(1)))
            .col_expr(update_rollout_server::Column::ChangedAt, Millis::from(now).into())
            .filter(is(key));
        update.exec(&self.write).await?;
        Ok(())
    }

    /// Notes the outcome of a server: `updated`, `failed` or `refused`. Returns whether nobody else has noted one.
    pub async fn settle_member(
        &self,
        key: MemberKey,
        state: &'static str,
        reason: Option<&str>,
        now: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let settled = update_rollout_server::Entity::update_many()
                .col_expr(update_rollout_server::Column::State, Expr::value(state))
                .col_expr(update_rollout_server::Column::Reason, Expr::value(reason))
                .col_expr(update_rollout_server::Column::ChangedAt, Millis::from(now).into())
                .filter(is(key))
                .exec(&transaction)
                .await?;
            if settled.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// The row, if it is as it was read and its outcome is open.
fn is(key: MemberKey) -> Condition {
    use update_rollout_server::Column as C;
    Condition::all()
        .add(C::RolloutId.eq(key.rollout_id))
        .add(C::ServerId.eq(key.server_id))
        .add(C::State.is_in([rollout::WAITING, rollout::OFFERED]))
        .add(C::Offers.eq(key.offers))
        .add(C::ChangedAt.eq(Millis::from(key.changed_at)))
}
