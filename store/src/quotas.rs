//! Quotas: how much of everything one account may have.
//!
//! The check runs in the transaction that adds something, one at a time for each owner, so that concurrent requests cannot
//! exceed a quota together. Ended commands never cause a refusal: the oldest are deleted instead ([`super::command_storage`]).

use std::collections::HashMap;

use entity::{
    alert_threshold, api_key, command_batch, enrolment, grant, notification_channel, program_token, server, server_tag,
    silence, team, view,
};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, JoinType, PaginatorTrait, QueryFilter, QuerySelect,
    RelationTrait,
};
use uuid::Uuid;

use super::advisory_lock::lock_owner;
use super::{Store, StoreError};

/// What a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// Servers.
    Servers,
    /// API keys, over all servers.
    ApiKeys,
    /// Thresholds.
    Thresholds,
    /// Enabled thresholds, each counted once for every server that it applies to.
    Evaluations,
    /// Silences.
    Silences,
    /// Notification channels.
    Channels,
    /// Saved views and dashboards.
    Views,
    /// Grants that the account gave.
    Grants,
    /// Teams that the account created.
    Teams,
    /// Tokens for programs.
    Tokens,
    /// Enrolments.
    Enrolments,
    /// Batches that have not ended.
    Batches,
    /// Bytes of commands and their output.
    CommandStorage,
}

impl Quota {
    /// Every quota.
    pub const ALL: [Self; 13] = [
        Self::Servers,
        Self::ApiKeys,
        Self::Thresholds,
        Self::Evaluations,
        Self::Silences,
        Self::Channels,
        Self::Views,
        Self::Grants,
        Self::Teams,
        Self::Tokens,
        Self::Enrolments,
        Self::Batches,
        Self::CommandStorage,
    ];

    /// The quota's name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::ApiKeys => "api_keys",
            Self::Thresholds => "thresholds",
            Self::Evaluations => "evaluations",
            Self::Silences => "silences",
            Self::Channels => "channels",
            Self::Views => "views",
            Self::Grants => "grants",
            Self::Teams => "teams",
            Self::Tokens => "tokens",
            Self::Enrolments => "enrolments",
            Self::Batches => "batches",
            Self::CommandStorage => "command_bytes",
        }
    }
}

/// The limits of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Servers.
    pub servers: u64,
    /// API keys, over all servers.
    pub api_keys: u64,
    /// Thresholds.
    pub thresholds: u64,
    /// Enabled thresholds, each counted once for every server that it applies to.
    pub evaluations: u64,
    /// Silences.
    pub silences: u64,
    /// Notification channels.
    pub channels: u64,
    /// Saved views and dashboards.
    pub views: u64,
    /// Grants that the account gave.
    pub grants: u64,
    /// Teams that the account created.
    pub teams: u64,
    /// Tokens for programs.
    pub tokens: u64,
    /// Enrolments.
    pub enrolments: u64,
    /// Batches that have not ended.
    pub batches: u64,
    /// Bytes of commands and their output.
    pub command_bytes: u64,
}

/// More than any operator of servers needs, and so little that a hundred strangers with an account each do not fill a small
/// machine: an evaluation takes some 4 KB of memory, a server some 10 KB.
impl Default for Quotas {
    fn default() -> Self {
        Self {
            servers: 10_000,
            api_keys: 20_000,
            thresholds: 1_000,
            evaluations: 100_000,
            silences: 1_000,
            channels: 50,
            views: 500,
            grants: 1_000,
            teams: 100,
            tokens: 100,
            enrolments: 100,
            batches: 100,
            command_bytes: 1024 * 1024 * 1024,
        }
    }
}

impl Quotas {
    /// The limit of one quota.
    pub fn limit(&self, quota: Quota) -> u64 {
        match quota {
            Quota::Servers => self.servers,
            Quota::ApiKeys => self.api_keys,
            Quota::Thresholds => self.thresholds,
            Quota::Evaluations => self.evaluations,
            Quota::Silences => self.silences,
            Quota::Channels => self.channels,
            Quota::Views => self.views,
            Quota::Grants => self.grants,
            Quota::Teams => self.teams,
            Quota::Tokens => self.tokens,
            Quota::Enrolments => self.enrolments,
            Quota::Batches => self.batches,
            Quota::CommandStorage => self.command_bytes,
        }
    }
}

/// How much of a quota is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The quota.
    pub quota: Quota,
    /// How much is used.
    pub used: u64,
    /// Its limit.
    pub limit: u64,
}

impl Store {
    /// The same store with other quotas.
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// The limits of each account.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// What an account uses of every quota.
    pub async fn usage(&self, owner_id: Uuid) -> Result<Vec<Usage>, StoreError> {
        let mut all = Vec::with_capacity(Quota::ALL.len());
        for quota in Quota::ALL {
            let used = match quota {
                Quota::CommandStorage => self.stored_command_bytes(owner_id).await?,
                quota => count(&self.read, owner_id, quota).await?,
            };
            all.push(Usage { quota, used, limit: self.quotas.limit(quota) });
        }
        Ok(all)
    }

    /// Checks that an owner may have one more. Until the transaction ends, no other one gets past this for the owner.
    pub(super) async fn expect_room(
        &self,
        transaction: &impl ConnectionTrait,
        owner_id: Uuid,
        quota: Quota,
    ) -> Result<(), StoreError> {
        self.expect_room_for(transaction, owner_id, quota, 1).await
    }

    /// As [`Self::expect_room`], for several at once. There is always room for none, even after the quota was lowered.
    pub(super) async fn expect_room_for(
        &self,
        transaction: &impl ConnectionTrait,
        owner_id: Uuid,
        quota: Quota,
        more: usize,
    ) -> Result<(), StoreError> {
        if more == 0 {
            return Ok(());
        }
        lock_owner(transaction, owner_id).await?;
        let limit = self.quotas.limit(quota);
        let wanted = count(transaction, owner_id, quota).await?.saturating_add(more as u64);
        if wanted <= limit { Ok(()) } else { Err(StoreError::QuotaExceeded { quota, limit }) }
    }

    /// How many evaluations an owner has before a change of servers or thresholds. Until the transaction ends, no other one
    /// gets past this for the owner.
    pub(super) async fn evaluations_before(
        &self,
        transaction: &impl ConnectionTrait,
        owner_id: Uuid,
    ) -> Result<UsageBefore, StoreError> {
        lock_owner(transaction, owner_id).await?;
        Ok(UsageBefore { owner_id, evaluations: evaluations(transaction, owner_id).await? })
    }

    /// Checks that a change leaves an owner within the quota of evaluations. A change that leads to fewer is always allowed.
    pub(super) async fn expect_few_evaluations(
        &self,
        transaction: &impl ConnectionTrait,
        before: UsageBefore,
    ) -> Result<(), StoreError> {
        let limit = self.quotas.evaluations;
        let after = evaluations(transaction, before.owner_id).await?;
        let is_fine = after <= limit || after <= before.evaluations;
        if is_fine { Ok(()) } else { Err(StoreError::QuotaExceeded { quota: Quota::Evaluations, limit }) }
    }
}

/// The owner's number before a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct UsageBefore {
    owner_id: Uuid,
    evaluations: u64,
}

async fn count(connection: &impl ConnectionTrait, owner_id: Uuid, quota: Quota) -> Result<u64, StoreError> {
    let servers = || server::Entity::find().filter(server::Column::OwnerId.eq(owner_id));
    let thresholds = || alert_threshold::Entity::find().filter(alert_threshold::Column::OwnerId.eq(owner_id));
    Ok(match quota {
        Quota::Servers => servers().count(connection).await?,
        Quota::ApiKeys => {
            let keys = api_key::Entity::find().join(JoinType::InnerJoin, api_key::Relation::Server.def());
            keys.filter(server::Column::OwnerId.eq(owner_id)).count(connection).await?
        }
        Quota::Thresholds => thresholds().count(connection).await?,
        Quota::Evaluations => evaluations(connection, owner_id).await?,
        Quota::Silences => {
            silence::Entity::find().filter(silence::Column::OwnerId.eq(owner_id)).count(connection).await?
        }
        Quota::Channels => {
            let owned = notification_channel::Column::OwnerId.eq(owner_id);
            notification_channel::Entity::find().filter(owned).count(connection).await?
        }
        Quota::Views => view::Entity::find().filter(view::Column::OwnerId.eq(owner_id)).count(connection).await?,
        Quota::Grants => grant::Entity::find().filter(grant::Column::GiverId.eq(owner_id)).count(connection).await?,
        Quota::Teams => team::Entity::find().filter(team::Column::CreatedBy.eq(owner_id)).count(connection).await?,
        Quota::Tokens => {
            let owned = program_token::Entity::find().filter(program_token::Column::UserId.eq(owner_id));
            owned.count(connection).await?
        }
        Quota::Enrolments => {
            enrolment::Entity::find().filter(enrolment::Column::OwnerId.eq(owner_id)).count(connection).await?
        }
        Quota::Batches => {
            let owned = command_batch::Entity::find().filter(command_batch::Column::OwnerId.eq(owner_id));
            owned.filter(command_batch::Column::FinishedAt.is_null()).count(connection).await?
        }
        // Counted in bytes by `expect_command_room`.
        Quota::CommandStorage => 0,
    })
}

/// Enabled thresholds, times the servers that each applies to.
async fn evaluations(connection: &impl ConnectionTrait, owner_id: Uuid) -> Result<u64, StoreError> {
    use alert_threshold::Column;
    let enabled = Condition::all().add(Column::OwnerId.eq(owner_id)).add(Column::IsEnabled.eq(true));
    let enabled = || alert_threshold::Entity::find().filter(enabled.clone());
    let of_one = enabled().filter(Column::ServerId.is_not_null()).count(connection).await?;
    let of_all = enabled().filter(Column::ServerId.is_null()).filter(Column::Tag.is_null());
    let of_all = of_all.count(connection).await?;
    let of_tags: Vec<(String, i64)> = enabled()
        .filter(Column::Tag.is_not_null())
        .select_only()
        .column(Column::Tag)
        .column_as(Column::Id.count(), "thresholds")
        .group_by(Column::Tag)
        .into_tuple()
        .all(connection)
        .await?;
    let servers = match of_all {
        0 => 0,
        _ => server::Entity::find().filter(server::Column::OwnerId.eq(owner_id)).count(connection).await?,
    };
    let tagged = servers_by_tag(connection, owner_id, of_tags.iter().map(|(tag, _)| tag.as_str())).await?;
    let of_tags = of_tags.iter().map(|(tag, thresholds)| thresholds.unsigned_abs() * tagged.get(tag).unwrap_or(&0));
    Ok(of_one + of_all * servers + of_tags.sum::<u64>())
}

/// How many servers of an owner have each of these tags.
async fn servers_by_tag<'a>(
    connection: &impl ConnectionTrait,
    owner_id: Uuid,
    tags: impl ExactSizeIterator<Item = &'a str>,
) -> Result<HashMap<String, u64>, StoreError> {
    if tags.len() == 0 {
        return Ok(HashMap::new());
    }
    let counted: Vec<(String, i64)> = server_tag::Entity::find()
        .select_only()
        .column(server_tag::Column::Tag)
        .column_as(server_tag::Column::ServerId.count(), "servers")
        .filter(server_tag::Column::Tag.is_in(tags))
        .filter(
            server_tag::Column::ServerId.in_subquery(sea_orm::QueryTrait::into_query(
                server::Entity::find()
                    .select_only()
                    .column(server::Column::Id)
                    .filter(server::Column::OwnerId.eq(owner_id)),
            )),
        )
        .group_by(server_tag::Column::Tag)
        .into_tuple()
        .all(connection)
        .await?;
    Ok(counted.into_iter().map(|(tag, servers)| (tag, servers.unsigned_abs())).collect())
}
