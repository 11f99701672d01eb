//! A machine makes itself a server with the token of an enrolment.
//!
//! One transaction takes a use, and makes the server, its key and its grants, or none of them. Transactions of one owner follow each
//! other ([`lock_owner`]), on every instance, so that names are unique and quotas hold; the use is taken by a statement with a
//! condition all the same, so that the last one is given out once, whatever else writes the row.

use std::collections::HashSet;

use entity::{Millis, api_key, enrolled_server, enrolment, server};
use sea_orm::sea_query::{Expr, ExprTrait, LikeExpr};
use sea_orm::{ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::advisory_lock::lock_owner;
use super::audit_log::record_in;
use super::enrolments::{EnrolmentGrant, entry};
use super::grants::subject_of;
use super::server_filter::escape_like;
use super::{Enrolment, Grant, GrantScope, NewServer, Quota, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// The longest name of a server.
const MAX_NAME: usize = 100;

/// Characters that a number behind a name takes at most.
const MAX_NUMBER: usize = 6;

/// The port of a server whose machine names none: SSH's.
const PORT: u16 = 22;

/// A machine that shows the token of an enrolment.
#[derive(Debug, Clone)]
pub struct Newcomer {
    /// The enrolment.
    pub enrolment_id: Uuid,
    /// The account that gets the server.
    pub owner_id: Uuid,
    /// The machine's host name, which names the server.
    pub hostname: String,
    /// The digest of the machine's request id.
    pub request: Option<Vec<u8>>,
    /// The public part of the server's key.
    pub key_prefix: String,
    /// The digest of the whole key.
    pub key_digest: Vec<u8>,
    /// Where the machine connects from.
    pub address: String,
    /// The present time.
    pub now: Timestamp,
}

/// The server that a machine became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolled {
    /// The server.
    pub server_id: Uuid,
    /// Its name.
    pub name: String,
    /// The text of its agent's policy.
    pub policy: Option<String>,
    /// Whether others may do something to it.
    pub is_shared: bool,
    /// The key that an earlier answer to the same request had. It is revoked.
    pub revoked_key: Option<Uuid>,
}

/// What became of the request of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enrolling {
    /// It is a server.
    Done(Enrolled),
    /// The enrolment has ended.
    Ended,
    /// The enrolment has made all its servers.
    UsedUp,
    /// The request was answered before, and the answer was used.
    Answered,
}

impl Store {
    /// Makes a machine a server. The same request again gets the same server with another key, as long as no agent has connected.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many servers, keys, grants or evaluations.
    pub async fn enrol(&self, newcomer: Newcomer, actor: Actor) -> Result<Enrolling, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock_owner(&transaction, newcomer.owner_id).await?;
            let found = enrolment::Entity::find_by_id(newcomer.enrolment_id)
                .filter(enrolment::Column::OwnerId.eq(newcomer.owner_id))
                .filter(enrolment::Column::ExpiresAt.gt(Millis::from(newcomer.now)))
                .one(&transaction)
                .await?;
            let Some(row) = found else { return Ok(Enrolling::Ended) };
            let outcome = match earlier(&transaction, &newcomer).await? {
                Some(earlier) => self.answer_again(&transaction, &newcomer, &row, earlier, &actor).await?,
                None => self.make_enrolled(&transaction, &newcomer, &row, &actor).await?,
            };
            if matches!(outcome, Enrolling::Done(_)) {
                transaction.commit().await?;
            }
            Ok(outcome)
        })
        .await
    }

    async fn make_enrolled(
        &self,
        transaction: &impl ConnectionTrait,
        newcomer: &Newcomer,
        row: &enrolment::Model,
        actor: &Actor,
    ) -> Result<Enrolling, StoreError> {
        let Some(enrolment) = Enrolment::of_row(row.clone()) else { return Ok(Enrolling::Ended) };
        if !take_use(transaction, newcomer).await? {
            return Ok(Enrolling::UsedUp);
        }
        let new = NewServer {
            owner_id: newcomer.owner_id,
            name: free_name(transaction, newcomer.owner_id, &newcomer.hostname).await?,
            host: newcomer.hostname.clone(),
            port: PORT,
            description: String::new(),
            tags: enrolment.terms.tags,
        };
        let record = self.create_server_in(transaction, &new, actor).await?;
        self.expect_room(transaction, newcomer.owner_id, Quota::ApiKeys).await?;
        let key_id = insert_key(transaction, newcomer, record.id, &row.name, actor).await?;
        let mut is_shared = false;
        for grant in &enrolment.terms.grants {
            is_shared |= self.share(transaction, newcomer.owner_id, record.id, grant, actor).await?;
        }
        if let Some(request) = &newcomer.request {
            let (server_id, enrolment_id, request) = (record.id, row.id, request.clone());
            let made = enrolled_server::Model { server_id, enrolment_id, request, key_id };
            let made = made.into_active_model().reset_all();
            enrolled_server::Entity::insert(made).exec_without_returning(transaction).await?;
        }
        record_use(transaction, newcomer, row, &record, actor).await?;
        let policy = enrolment.terms.policy;
        Ok(Enrolling::Done(Enrolled { server_id: record.id, name: record.name, policy, is_shared, revoked_key: None }))
    }

    /// Grants somebody a role on the new server. Returns whether there still is such a user or team.
    async fn share(
        &self,
        transaction: &impl ConnectionTrait,
        owner_id: Uuid,
        server_id: Uuid,
        grant: &EnrolmentGrant,
        actor: &Actor,
    ) -> Result<bool, StoreError> {
        let Some(subject) = subject_of(transaction, grant.subject).await? else {
            tracing::warn!(user.id = %owner_id, "an enrolment has a grant for a user or team that was deleted");
            return Ok(false);
        };
        self.expect_room(transaction, owner_id, Quota::Grants).await?;
        let grant = Grant {
            id: Uuid::now_v7(),
            owner_id,
            giver_id: Some(owner_id),
            subject: grant.subject,
            scope: GrantScope::Server(server_id),
            role: grant.role,
            rights: grant.rights,
            created_at: Timestamp::now(),
        };
        grant.insert(transaction).await?;
        record_in(transaction, grant.entry(action::GRANT_CREATE, subject, actor.clone())).await?;
        Ok(true)
    }

    /// Replaces the key of a machine that lost its answer. The earlier key opens nothing any more.
    async fn answer_again(
        &self,
        transaction: &impl ConnectionTrait,
        newcomer: &Newcomer,
        row: &enrolment::Model,
        earlier: enrolled_server::Model,
        actor: &Actor,
    ) -> Result<Enrolling, StoreError> {
        // Locked before its keys, as when an agent connects.
        let owned = server::Entity::find_by_id(earlier.server_id)
            .filter(server::Column::OwnerId.eq(newcomer.owner_id))
            .filter(server::Column::Agent.is_null());
        let Some(record) = owned.lock_exclusive().one(transaction).await? else { return Ok(Enrolling::Answered) };
        let Some(old) = api_key::Entity::find_by_id(earlier.key_id).one(transaction).await? else {
            // Somebody revoked it on purpose.
            return Ok(Enrolling::Answered);
        };
        api_key::Entity::delete_by_id(old.id).exec(transaction).await?;
        let revoked = Entry::new(action::API_KEY_REVOKE, newcomer.owner_id, actor.clone()).target(old.id);
        let detail = json!({ "name": old.name, "prefix": old.prefix });
        record_in(transaction, revoked.on_server(record.id).detail(detail)).await?;
        let key_id = insert_key(transaction, newcomer, record.id, &row.name, actor).await?;
        enrolled_server::Entity::update_many()
            .col_expr(enrolled_server::Column::KeyId, Expr::value(key_id))
            .filter(enrolled_server::Column::ServerId.eq(record.id))
            .exec(transaction)
            .await?;
        record_use(transaction, newcomer, row, &record, actor).await?;
        Ok(Enrolling::Done(Enrolled {
            server_id: record.id,
            name: record.name,
            policy: row.policy.clone(),
            is_shared: false,
            revoked_key: Some(old.id),
        }))
    }
}

/// The server that was made for the same request.
async fn earlier(
    transaction: &impl ConnectionTrait,
    newcomer: &Newcomer,
) -> Result<Option<enrolled_server::Model>, StoreError> {
    let Some(request) = &newcomer.request else { return Ok(None) };
    let same = enrolled_server::Entity::find()
        .filter(enrolled_server::Column::EnrolmentId.eq(newcomer.enrolment_id))
        .filter(enrolled_server::Column::Request.eq(request.clone()));
    Ok(same.one(transaction).await?)
}

/// Takes a use. Returns whether there was one left.
async fn take_use(transaction: &impl ConnectionTrait, newcomer: &Newcomer) -> Result<bool, StoreError> {
    use enrolment::Column;
    let taken = enrolment::Entity::update_many()
        .col_expr(Column::UsesLeft, Expr::col(Column::UsesLeft).sub(1))
        .col_expr(Column::LastUsedAt, Millis::from(newcomer.now).into())
        .col_expr(Column::LastUsedAddress, Expr::value(newcomer.address.clone()))
        .filter(Column::Id.eq(newcomer.enrolment_id))
        .filter(Column::UsesLeft.gt(0))
        .exec(transaction)
        .await?;
    Ok(taken.rows_affected == 1)
}

async fn insert_key(
    transaction: &impl ConnectionTrait,
    newcomer: &Newcomer,
    server_id: Uuid,
    name: &str,
    actor: &Actor,
) -> Result<Uuid, StoreError> {
    let key = api_key::Model {
        id: Uuid::now_v7(),
        server_id,
        name: name.to_owned(),
        prefix: newcomer.key_prefix.clone(),
        digest: newcomer.key_digest.clone(),
        created_at: Timestamp::now().into(),
        last_used_at: None,
        expires_at: None,
    };
    let id = key.id;
    let entry = Entry::new(action::API_KEY_CREATE, newcomer.owner_id, actor.clone()).on_server(server_id).target(id);
    let entry = entry.detail(json!({ "name": key.name, "prefix": key.prefix, "expires_at": null }));
    api_key::Entity::insert(key.into_active_model().reset_all()).exec_without_returning(transaction).await?;
    record_in(transaction, entry).await?;
    Ok(id)
}

async fn record_use(
    transaction: &impl ConnectionTrait,
    newcomer: &Newcomer,
    row: &enrolment::Model,
    record: &server::Model,
    actor: &Actor,
) -> Result<(), StoreError> {
    let entry = entry(action::ENROLMENT_USE, row, actor.clone()).on_server_named(record.id, &record.name);
    let detail = json!({ "name": row.name, "prefix": row.prefix, "hostname": newcomer.hostname });
    record_in(transaction, entry.detail(detail)).await
}

/// A name that no server of this owner has: the host name, or one with the next free number behind it.
async fn free_name(transaction: &impl ConnectionTrait, owner_id: Uuid, hostname: &str) -> Result<String, StoreError> {
    let beginning: String = hostname.chars().take(MAX_NAME - MAX_NUMBER).collect();
    let similar =
        Expr::col(server::Column::Name).like(LikeExpr::new(format!("{}%", escape_like(&beginning))).escape('\\'));
    let taken: HashSet<String> = server::Entity::find()
        .select_only()
        .column(server::Column::Name)
        .filter(server::Column::OwnerId.eq(owner_id))
        .filter(similar)
        .into_tuple()
        .all(transaction)
        .await?
        .into_iter()
        .collect();
    let names = std::iter::once(numbered(hostname, None)).chain((2..).map(|number| numbered(hostname, Some(number))));
    Ok(names.into_iter().find(|name| !taken.contains(name)).unwrap_or_default())
}

/// A host name with this number behind it, cut to the length of a name.
fn numbered(hostname: &str, number: Option<u32>) -> String {
    let end = number.map(|number| format!("-{number}")).unwrap_or_default();
    let beginning: String = hostname.chars().take(MAX_NAME - end.len()).collect();
    beginning + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_behind_the_name_and_within_its_length() {
        assert_eq!(numbered("web-1", None), "web-1");
        assert_eq!(numbered("web-1", Some(2)), "web-1-2");
        let long = numbered(&"a".repeat(253), Some(12));
        assert_eq!((long.len(), &long[MAX_NAME - 4..]), (MAX_NAME, "a-12"));
        assert_eq!(numbered(&"a".repeat(253), None).len(), MAX_NAME);
    }
}
