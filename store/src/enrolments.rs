//! Enrolments: with the token of one, machines make themselves servers of its owner ([`super::enrolling`]).

use entity::{enrolment, user};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::grants::subject_of;
use super::roles::StoredRole;
use super::{Grant, GrantScope, GrantSubject, Page, PageRequest, Quota, Rights, Role, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// What somebody besides the owner may do to each server of an enrolment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrolmentGrant {
    /// The user or team.
    pub subject: GrantSubject,
    /// Up to which role.
    pub role: Role,
    /// The rights of an operator.
    pub rights: Rights,
}

/// A grant, as an enrolment stores it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredGrant {
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team_id: Option<Uuid>,
    #[serde(flatten)]
    role: StoredRole,
}

impl StoredGrant {
    /// None for a grant that only a later version understands: it grants nothing.
    fn read(self) -> Option<EnrolmentGrant> {
        let subject = match (self.user_id, self.team_id) {
            (Some(id), None) => GrantSubject::User(id),
            (None, Some(id)) => GrantSubject::Team(id),
            _ => return None,
        };
        let (role, rights) = self.role.read()?;
        Some(EnrolmentGrant { subject, role, rights })
    }
}

impl EnrolmentGrant {
    /// The grants that an enrolment stores.
    pub(super) fn all_of(stored: &str) -> Vec<Self> {
        // Malformed only if someone changed the table outside of the service.
        let all: Vec<StoredGrant> = serde_json::from_str(stored).unwrap_or_default();
        all.into_iter().filter_map(StoredGrant::read).collect()
    }

    /// The grant on a server that was made with the enrolment.
    pub(super) fn on_server(self, owner_id: Uuid, server_id: Uuid) -> Grant {
        Grant {
            id: Uuid::now_v7(),
            owner_id,
            giver_id: Some(owner_id),
            subject: self.subject,
            scope: GrantScope::Server(server_id),
            role: self.role,
            rights: self.rights,
            created_at: Timestamp::now(),
        }
    }

    fn stored(all: &[Self]) -> Value {
        let form = |grant: &Self| {
            let (user_id, team_id) = match grant.subject {
                GrantSubject::User(id) => (Some(id), None),
                GrantSubject::Team(id) => (None, Some(id)),
            };
            StoredGrant { user_id, team_id, role: StoredRole::new(grant.role, grant.rights) }
        };
        json!(all.iter().map(form).collect::<Vec<_>>())
    }
}

/// What each server of an enrolment gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnrolmentTerms {
    /// Its tags.
    pub tags: Vec<String>,
    /// What others may do to it.
    pub grants: Vec<EnrolmentGrant>,
    /// The text of its agent's policy.
    pub policy: Option<String>,
}

/// An enrolment to insert. The caller has checked that the owner may give the grants.
#[derive(Debug, Clone)]
pub struct NewEnrolment {
    /// The account that gets the servers.
    pub owner_id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// The public part of the token, by which it is found.
    pub prefix: String,
    /// The digest of the whole token.
    pub digest: Vec<u8>,
    /// What each server gets.
    pub terms: EnrolmentTerms,
    /// How many servers it makes.
    pub uses: u32,
    /// The networks that it may be used from; none for any.
    pub networks: Vec<String>,
    /// The present time.
    pub now: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// An enrolment, as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolment {
    /// The enrolment.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// The public part of its token.
    pub prefix: String,
    /// What each server gets.
    pub terms: EnrolmentTerms,
    /// How many servers it makes.
    pub uses: u32,
    /// How many of them it has not made yet.
    pub uses_left: u32,
    /// The networks that it may be used from; none for any.
    pub networks: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When it last made a server.
    pub last_used_at: Option<Timestamp>,
    /// For which address.
    pub last_used_address: Option<String>,
}

/// An enrolment whose token somebody shows.
#[derive(Debug, Clone)]
pub struct KnownEnrolment {
    /// The enrolment.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// The account that gets the servers.
    pub owner_id: Uuid,
    /// The name of that account.
    pub owner: String,
    /// The digest of the whole token.
    pub digest: Vec<u8>,
    /// The networks that it may be used from; none for any.
    pub networks: Vec<String>,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl Enrolment {
    /// None for a row that only a later version understands: it makes no servers.
    pub(super) fn of_row(row: enrolment::Model) -> Option<Self> {
        Some(Self {
            id: row.id,
            name: row.name,
            prefix: row.prefix,
            terms: EnrolmentTerms {
                tags: serde_json::from_str(&row.tags).ok()?,
                grants: EnrolmentGrant::all_of(&row.grants),
                policy: row.policy,
            },
            uses: u32::try_from(row.uses).ok()?,
            uses_left: u32::try_from(row.uses_left).ok()?,
            networks: serde_json::from_str(&row.networks).ok()?,
            created_at: row.created_at.into(),
            expires_at: row.expires_at.into(),
            last_used_at: row.last_used_at.map(Timestamp::from),
            last_used_address: row.last_used_address,
        })
    }
}

impl Store {
    /// Inserts an enrolment. None when a user or team of its grants does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many, and [`StoreError::NoAccount`] when it was disabled or
    /// deleted.
    pub async fn create_enrolment(&self, new: NewEnrolment, actor: Actor) -> Result<Option<Enrolment>, StoreError> {
        let row = row_of(&new);
        let made = Enrolment::of_row(row.clone()).ok_or(StoreError::NoAccount)?;
        let entry = entry(action::ENROLMENT_CREATE, &row, actor).detail(json!({
            "name": row.name, "prefix": row.prefix, "tags": made.terms.tags,
            "grants": EnrolmentGrant::stored(&made.terms.grants), "policy": made.terms.policy, "uses": made.uses,
            "networks": made.networks, "expires_at": made.expires_at,
        }));
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Waits for somebody who disables the account: that ends its enrolments.
            let enabled = user::Entity::find_by_id(row.owner_id).filter(user::Column::DisabledAt.is_null());
            if enabled.lock_exclusive().one(&transaction).await?.is_none() {
                return Err(StoreError::NoAccount);
            }
            self.expect_room(&transaction, row.owner_id, Quota::Enrolments).await?;
            for grant in &made.terms.grants {
                if subject_of(&transaction, grant.subject).await?.is_none() {
                    return Ok(None);
                }
            }
            let new = row.clone().into_active_model().reset_all();
            enrolment::Entity::insert(new).exec_without_returning(&transaction).await?;
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(Some(made.clone()))
        })
        .await
    }

    /// Lists the enrolments of an account, newest first.
    pub async fn list_enrolments(&self, owner_id: Uuid, page: PageRequest) -> Result<Page<Enrolment>, StoreError> {
        let query = enrolment::Entity::find().filter(enrolment::Column::OwnerId.eq(owner_id));
        let total = query.clone().count(&self.read).await?;
        let rows = query
            .order_by_desc(enrolment::Column::CreatedAt)
            .order_by_desc(enrolment::Column::Id)
            .limit(page.limit)
            .offset(page.offset)
            .all(&self.read)
            .await?;
        Ok(Page { items: rows.into_iter().filter_map(Enrolment::of_row).collect(), total })
    }

    /// Finds an enrolment of an account.
    pub async fn find_enrolment(&self, owner_id: Uuid, id: Uuid) -> Result<Option<Enrolment>, StoreError> {
        let found = enrolment::Entity::find_by_id(id).filter(enrolment::Column::OwnerId.eq(owner_id));
        Ok(found.one(&self.read).await?.and_then(Enrolment::of_row))
    }

    /// Finds the enrolment whose token has this public part, of any account that is enabled.
    pub async fn find_enrolment_by_prefix(&self, prefix: &str) -> Result<Option<KnownEnrolment>, StoreError> {
        let found = enrolment::Entity::find().filter(enrolment::Column::Prefix.eq(prefix));
        let found = found.find_also_related(user::Entity).one(&self.read).await?;
        let Some((row, Some(user))) = found else { return Ok(None) };
        if user.disabled_at.is_some() {
            return Ok(None);
        }
        let digest = row.digest.clone();
        Ok(Enrolment::of_row(row).map(|enrolment| KnownEnrolment {
            id: enrolment.id,
            name: enrolment.name,
            owner_id: user.id,
            owner: user.username,
            digest,
            networks: enrolment.networks,
            expires_at: enrolment.expires_at,
        }))
    }

    /// Removes an enrolment of this account. Returns whether it still existed.
    pub async fn revoke_enrolment(&self, owner_id: Uuid, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = enrolment::Entity::find_by_id(id).filter(enrolment::Column::OwnerId.eq(owner_id));
            let Some(row) = found.lock_exclusive().one(&transaction).await? else { return Ok(false) };
            enrolment::Entity::delete_by_id(id).exec(&transaction).await?;
            let entry = entry(action::ENROLMENT_REVOKE, &row, actor.clone());
            let detail = json!({ "name": row.name, "prefix": row.prefix, "uses_left": row.uses_left });
            record_in(&transaction, entry.detail(detail)).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// Removes all enrolments of an account.
pub(super) async fn end_enrolments(connection: &impl ConnectionTrait, owner_id: Uuid) -> Result<(), StoreError> {
    let all = enrolment::Entity::delete_many().filter(enrolment::Column::OwnerId.eq(owner_id));
    all.exec(connection).await?;
    Ok(())
}

fn row_of(new: &NewEnrolment) -> enrolment::Model {
    let uses = i32::try_from(new.uses).unwrap_or(i32::MAX);
    enrolment::Model {
        id: Uuid::now_v7(),
        owner_id: new.owner_id,
        name: new.name.clone(),
        prefix: new.prefix.clone(),
        digest: new.digest.clone(),
        tags: json!(new.terms.tags).to_string(),
        grants: EnrolmentGrant::stored(&new.terms.grants).to_string(),
        policy: new.terms.policy.clone(),
        uses,
        uses_left: uses,
        networks: json!(new.networks).to_string(),
        created_at: new.now.into(),
        expires_at: new.expires_at.into(),
        last_used_at: None,
        last_used_address: None,
    }
}

/// The audit entry about an enrolment: it contains the public part of the token, never the rest.
pub(super) fn entry(action: &'static str, row: &enrolment::Model, actor: Actor) -> Entry {
    Entry::new(action, row.owner_id, actor).target(row.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Right;

    #[test]
    fn grants_are_read_as_they_were_stored() {
        let rights: Rights = [Right::Logs, Right::Commands].into_iter().collect();
        let all = [
            EnrolmentGrant { subject: GrantSubject::User(Uuid::from_u128(1)), role: Role::Operator, rights },
            EnrolmentGrant {
                subject: GrantSubject::Team(Uuid::from_u128(2)),
                role: Role::Viewer,
                rights: Rights::NONE,
            },
        ];

        let stored = EnrolmentGrant::stored(&all);

        let text = concat!(
            r#"[{"rights":["commands","logs"],"role":"operator","user_id":"00000000-0000-0000-0000-000000000001"},"#,
            r#"{"rights":[],"role":"viewer","team_id":"00000000-0000-0000-0000-000000000002"}]"#,
        );
        assert_eq!(stored.to_string(), text);
        assert_eq!(EnrolmentGrant::all_of(text), all);
    }

    #[test]
    fn a_grant_that_is_not_understood_grants_nothing() {
        let strange = json!([
            {"user_id": Uuid::nil(), "role": "owner", "rights": []},
            {"role": "viewer", "rights": []},
            {"user_id": Uuid::nil(), "team_id": Uuid::nil(), "role": "viewer", "rights": []},
        ]);

        assert_eq!(EnrolmentGrant::all_of(&strange.to_string()), []);
        assert_eq!(EnrolmentGrant::all_of("?"), []);
    }
}
