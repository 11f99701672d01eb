//! A machine makes itself a server with the token of an enrolment.
//!
//! One transaction takes a use, and makes the server, its key and its grants, or none of them. Transactions of one owner follow each
//! other ([`lock_owner`]), on every instance, so that names are unique and quotas hold; the use is taken by a statement with a
//! condition all the same, so that the last one is given out once, whatever else writes the row.
//!
//! All that may wait for somebody else comes first: the owner's row, then those whom the grants name, who may be adding something
//! of their own. The entries of the audit log come last, because every other append waits from the first one on.

use std::collections::HashSet;

use entity::{Millis, api_key, enrolled_server, enrolment, server};
use sea_orm::sea_query::{Expr, ExprTrait, LikeExpr};
use sea_orm::{ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::advisory_lock::lock_owner;
use super::audit_log::record_in;
use super::enrolments::entry;
use super::grants::subject_of;
use super::server_filter::escape_like;
use super::servers::DEFAULT_PORT;
use super::{Enrolment, NewServer, Quota, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// The longest name of a server.
const MAX_NAME: usize = 100;

/// Characters that a number behind a name takes at most.
const MAX_NUMBER: usize = 6;

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
    /// The enrolment has expired since its token was read.
    Expired,
    /// The enrolment has been revoked since then.
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
                .one(&transaction)
                .await?;
            let Some(row) = found else { return Ok(Enrolling::Ended) };
            if row.expires_at <= Millis::from(newcomer.now) {
                return Ok(Enrolling::Expired);
            }
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
        let subjects = subjects_of(transaction, &enrolment).await?;
        if !take_use(transaction, newcomer).await? {
            return Ok(Enrolling::UsedUp);
        }
        let new = NewServer {
            owner_id: newcomer.owner_id,
            name: free_name(transaction, newcomer.owner_id, &newcomer.hostname).await?,
            host: newcomer.hostname.clone(),
            port: DEFAULT_PORT,
            description: String::new(),
            tags: enrolment.terms.tags,
        };
        let (record, created) = self.create_server_in(transaction, &new, actor).await?;
        self.expect_room(transaction, newcomer.owner_id, Quota::ApiKeys).await?;
        let (key_id, key_created) = insert_key(transaction, newcomer, record.id, &row.name, actor).await?;
        let mut entries = vec![created, key_created];
        let granted = enrolment.terms.grants.into_iter().zip(subjects);
        let granted: Vec<_> = granted.filter_map(|(grant, subject)| Some((grant, subject?))).collect();
        self.expect_room_for(transaction, newcomer.owner_id, Quota::Grants, granted.len()).await?;
        let is_shared = !granted.is_empty();
        for (grant, subject) in granted {
            let grant = grant.on_server(newcomer.owner_id, record.id);
            grant.insert(transaction).await?;
            entries.push(grant.entry(action::GRANT_CREATE, subject, actor.clone()));
        }
        if let Some(request) = &newcomer.request {
            let (server_id, enrolment_id, request) = (record.id, row.id, request.clone());
            let made = enrolled_server::Model { server_id, enrolment_id, request, key_id };
            let made = made.into_active_model().reset_all();
            enrolled_server::Entity::insert(made).exec_without_returning(transaction).await?;
        }
        entries.push(use_of(newcomer, row, &record, actor));
        for entry in entries {
            record_in(transaction, entry).await?;
        }
        let policy = enrolment.terms.policy;
        Ok(Enrolling::Done(Enrolled { server_id: record.id, name: record.name, policy, is_shared, revoked_key: None }))
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
        let revoked = revoked.on_server(record.id).detail(detail);
        let (key_id, key_created) = insert_key(transaction, newcomer, record.id, &row.name, actor).await?;
        enrolled_server::Entity::update_many()
            .col_expr(enrolled_server::Column::KeyId, Expr::value(key_id))
            .filter(enrolled_server::Column::ServerId.eq(record.id))
            .exec(transaction)
            .await?;
        for entry in [revoked, key_created, use_of(newcomer, row, &record, actor)] {
            record_in(transaction, entry).await?;
        }
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

/// The users and teams of the grants, which stay until the transaction ends; none in place of one that was deleted.
async fn subjects_of(
    transaction: &impl ConnectionTrait,
    enrolment: &Enrolment,
) -> Result<Vec<Option<Value>>, StoreError> {
    let mut subjects = Vec::with_capacity(enrolment.terms.grants.len());
    for grant in &enrolment.terms.grants {
        let subject = subject_of(transaction, grant.subject).await?;
        if subject.is_none() {
            tracing::warn!(enrolment.id = %enrolment.id, "an enrolment has a grant for a user or team that was deleted");
        }
        subjects.push(subject);
    }
    Ok(subjects)
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
) -> Result<(Uuid, Entry), StoreError> {
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
    Ok((id, entry))
}

fn use_of(newcomer: &Newcomer, row: &enrolment::Model, record: &server::Model, actor: &Actor) -> Entry {
    let entry = entry(action::ENROLMENT_USE, row, actor.clone()).on_server_named(record.id, &record.name);
    let detail = json!({ "name": row.name, "prefix": row.prefix, "hostname": newcomer.hostname });
    entry.detail(detail)
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
    let mut names =
        std::iter::once(numbered(hostname, None)).chain((2..).map(|number| numbered(hostname, Some(number))));
    Ok(names.find(|name| !taken.contains(name)).unwrap_or_default())
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
