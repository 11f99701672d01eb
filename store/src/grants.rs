//! Grants: what users and teams may do to servers of another account.

use std::collections::{HashMap, HashSet};

use entity::{grant, server, team, team_member, user};
use sea_orm::sea_query::{IntoCondition, LockType};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::Owner as AlertOwner;
use uuid::Uuid;

use super::audit_log::record_in;
use super::failure::no_server_of;
use super::roles::{Rights, Role};
use super::{Page, PageRequest, Quota, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// The user or team that a grant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantSubject {
    /// A user.
    User(Uuid),
    /// The members of a team.
    Team(Uuid),
}

/// Which of an owner's servers are granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GrantScope {
    /// One server.
    Server(Uuid),
    /// Those with a tag, future ones too.
    Tag(String),
    /// All, future ones too.
    All,
}

/// A grant to insert. The caller has checked that the giver may give it.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// The account whose servers are meant.
    pub owner_id: Uuid,
    /// Who gives it.
    pub giver_id: Uuid,
    /// The user or team.
    pub subject: GrantSubject,
    /// To which servers.
    pub scope: GrantScope,
    /// Up to which role.
    pub role: Role,
    /// The rights of an operator.
    pub rights: Rights,
}

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The grant.
    pub id: Uuid,
    /// The account whose servers are meant.
    pub owner_id: Uuid,
    /// Who gave it; none once that account is deleted.
    pub giver_id: Option<Uuid>,
    /// The user or team.
    pub subject: GrantSubject,
    /// To which servers.
    pub scope: GrantScope,
    /// Up to which role.
    pub role: Role,
    /// The rights of an operator.
    pub rights: Rights,
    /// When it was given.
    pub created_at: Timestamp,
}

/// All grants, all members of teams, and the accounts that can do nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantsAndMembers {
    /// The grants, oldest first.
    pub grants: Vec<Grant>,
    /// The members of each team.
    pub members: HashMap<Uuid, Vec<Uuid>>,
    /// The name of each team.
    pub team_names: HashMap<Uuid, String>,
    /// The accounts that are disabled.
    pub disabled: HashSet<Uuid>,
}

/// The names of what grants refer to, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantNames {
    /// Of users.
    pub users: HashMap<Uuid, String>,
    /// Of teams.
    pub teams: HashMap<Uuid, String>,
    /// Of servers.
    pub servers: HashMap<Uuid, String>,
}

impl Grant {
    /// None for a row that only a later version understands: it grants nothing.
    fn of_row(row: grant::Model) -> Option<Self> {
        let subject = match (row.subject_user_id, row.subject_team_id) {
            (Some(id), None) => GrantSubject::User(id),
            (None, Some(id)) => GrantSubject::Team(id),
            _ => return None,
        };
        let scope = match (row.server_id, row.tag) {
            (Some(id), None) => GrantScope::Server(id),
            (None, Some(tag)) => GrantScope::Tag(tag),
            (None, None) => GrantScope::All,
            _ => return None,
        };
        Some(Self {
            id: row.id,
            owner_id: row.owner_id,
            giver_id: row.giver_id,
            subject,
            scope,
            role: Role::of_word(&row.role).filter(|role| Role::GRANTED.contains(role))?,
            rights: Rights::of_joined(&row.rights),
            created_at: row.created_at.into(),
        })
    }

    pub(super) fn row(&self) -> grant::Model {
        let (subject_user_id, subject_team_id) = match self.subject {
            GrantSubject::User(id) => (Some(id), None),
            GrantSubject::Team(id) => (None, Some(id)),
        };
        let (server_id, tag) = match &self.scope {
            GrantScope::Server(id) => (Some(*id), None),
            GrantScope::Tag(tag) => (None, Some(tag.clone())),
            GrantScope::All => (None, None),
        };
        grant::Model {
            id: self.id,
            owner_id: self.owner_id,
            giver_id: self.giver_id,
            subject_user_id,
            subject_team_id,
            server_id,
            tag,
            role: self.role.word().to_owned(),
            rights: self.rights.joined(),
            created_at: self.created_at.into(),
        }
    }

    pub(super) async fn insert(&self, transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
        let row = self.row();
        let no_server = no_server_of(row.server_id);
        let row = row.into_active_model().reset_all();
        grant::Entity::insert(row).exec_without_returning(transaction).await.map_err(no_server)?;
        Ok(())
    }

    pub(super) fn entry(&self, action: &'static str, subject: Value, actor: Actor) -> Entry {
        let entry = Entry::new(action, self.owner_id, actor).target(self.id);
        let (role, rights) = (self.role.word(), self.rights.words());
        let scope = match &self.scope {
            GrantScope::Server(id) => {
                let detail = json!({ "subject": subject, "role": role, "rights": rights });
                return entry.on_server(*id).detail(detail);
            }
            GrantScope::Tag(tag) => json!({ "tag": tag }),
            GrantScope::All => json!({ "all": true }),
        };
        entry.detail(json!({ "subject": subject, "role": role, "rights": rights, "scope": scope }))
    }
}

impl Store {
    /// Inserts a grant. None when there is no such user or team any more.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the giver has given too many, and [`StoreError::NoServer`] when the server was deleted.
    pub async fn create_grant(&self, new: NewGrant, actor: Actor) -> Result<Option<Grant>, StoreError> {
        let grant = Grant {
            id: Uuid::now_v7(),
            owner_id: new.owner_id,
            giver_id: Some(new.giver_id),
            subject: new.subject,
            scope: new.scope,
            role: new.role,
            rights: new.rights,
            created_at: Timestamp::now(),
        };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, new.giver_id, Quota::Grants).await?;
            let Some(subject) = subject_of(&transaction, grant.subject).await? else { return Ok(None) };
            grant.insert(&transaction).await?;
            record_in(&transaction, grant.entry(action::GRANT_CREATE, subject, actor.clone())).await?;
            transaction.commit().await?;
            Ok(Some(grant.clone()))
        })
        .await
    }

    /// Finds a grant, of any owner.
    pub async fn find_grant(&self, id: Uuid) -> Result<Option<Grant>, StoreError> {
        Ok(grant::Entity::find_by_id(id).one(&self.read).await?.and_then(Grant::of_row))
    }

    /// Deletes a grant. Returns whether it existed.
    pub async fn delete_grant(&self, grant: &Grant, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let subject = subject_of(&transaction, grant.subject).await?.unwrap_or_default();
            // Another request was faster, and has written the entry.
            if grant::Entity::delete_by_id(grant.id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, grant.entry(action::GRANT_DELETE, subject, actor.clone())).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Lists the grants on a user's servers, those that they gave, and those that reach them, newest first.
    pub async fn list_grants(&self, user_id: Uuid, page: PageRequest) -> Result<Page<Grant>, StoreError> {
        use grant::Column;
        let teams = team_member::Entity::find()
            .select_only()
            .column(team_member::Column::TeamId)
            .filter(team_member::Column::UserId.eq(user_id));
        let concerned = Condition::any()
            .add(Column::OwnerId.eq(user_id))
            .add(Column::GiverId.eq(user_id))
            .add(Column::SubjectUserId.eq(user_id))
            .add(Column::SubjectTeamId.in_subquery(teams.into_query()));
        let query = grant::Entity::find().filter(concerned);
        let total = query.clone().count(&self.read).await?;
        let rows = query.order_by_desc(Column::Id).limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items: rows.into_iter().filter_map(Grant::of_row).collect(), total })
    }

    /// Reads all grants, all members of teams, and which accounts are disabled.
    pub async fn grants_and_members(&self) -> Result<GrantsAndMembers, StoreError> {
        let rows = grant::Entity::find().order_by_asc(grant::Column::Id).all(&self.read).await?;
        let mut all =
            GrantsAndMembers { grants: rows.into_iter().filter_map(Grant::of_row).collect(), ..Default::default() };
        for row in team_member::Entity::find().all(&self.read).await? {
            all.members.entry(row.team_id).or_default().push(row.user_id);
        }
        let teams = team::Entity::find().select_only().columns([team::Column::Id, team::Column::Name]);
        all.team_names = teams.into_tuple::<(Uuid, String)>().all(&self.read).await?.into_iter().collect();
        let disabled = user::Entity::find().select_only().column(user::Column::Id);
        let disabled = disabled.filter(user::Column::DisabledAt.is_not_null()).into_tuple::<Uuid>();
        all.disabled = disabled.all(&self.read).await?.into_iter().collect();
        Ok(all)
    }

    /// The names of these users, teams and servers. Those that are gone have none.
    pub async fn names_for_grants(
        &self,
        users: &[Uuid],
        teams: &[Uuid],
        servers: &[Uuid],
    ) -> Result<GrantNames, StoreError> {
        let mut names = GrantNames { users: self.usernames(users).await?, ..GrantNames::default() };
        if !teams.is_empty() {
            let found = team::Entity::find().select_only().columns([team::Column::Id, team::Column::Name]);
            let found = found.filter(team::Column::Id.is_in(teams.iter().copied()));
            names.teams = found.into_tuple::<(Uuid, String)>().all(&self.read).await?.into_iter().collect();
        }
        if !servers.is_empty() {
            let found = server::Entity::find().select_only().columns([server::Column::Id, server::Column::Name]);
            let found = found.filter(server::Column::Id.is_in(servers.iter().copied()));
            names.servers = found.into_tuple::<(Uuid, String)>().all(&self.read).await?.into_iter().collect();
        }
        Ok(names)
    }

    /// The names of these users. Those that are gone have none.
    pub async fn usernames(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, String>, StoreError> {
        let mut names = HashMap::with_capacity(ids.len());
        for some in ids.chunks(5_000) {
            let found = user::Entity::find().select_only().columns([user::Column::Id, user::Column::Username]);
            let found = found.filter(user::Column::Id.is_in(some.iter().copied()));
            names.extend(found.into_tuple::<(Uuid, String)>().all(&self.read).await?);
        }
        Ok(names)
    }

    /// Whether the account exists and is not disabled.
    pub async fn is_active_account(&self, id: Uuid) -> Result<bool, StoreError> {
        let active = user::Entity::find_by_id(id).filter(user::Column::DisabledAt.is_null());
        Ok(active.select_only().column(user::Column::Id).into_tuple::<Uuid>().one(&self.read).await?.is_some())
    }

    /// The owner of alerts, with the name; none if the account is gone.
    pub async fn alert_owner(&self, owner_id: Uuid) -> Result<Option<AlertOwner>, StoreError> {
        let username = self.usernames(&[owner_id]).await?.remove(&owner_id);
        Ok(username.map(|username| AlertOwner { id: owner_id, username }))
    }

    /// The id of the user with this name, in any case.
    pub async fn user_named(&self, username: &str) -> Result<Option<Uuid>, StoreError> {
        let named = user::Entity::find().filter(user::Column::UsernameKey.eq(username.to_lowercase()));
        Ok(named.select_only().column(user::Column::Id).into_tuple().one(&self.read).await?)
    }
}

/// The subject for the audit log, which stays until the transaction ends; none when there is none any more.
pub(super) async fn subject_of(
    transaction: &impl ConnectionTrait,
    subject: GrantSubject,
) -> Result<Option<Value>, StoreError> {
    named(transaction, subject, true).await
}

/// The entries of the audit log for the grants that end with a team, a server or an account, while these still have their names. Foreign
/// keys delete the grants.
pub(super) async fn entries_of_ended(
    transaction: &impl ConnectionTrait,
    which: impl IntoCondition,
    actor: &Actor,
) -> Result<Vec<Entry>, StoreError> {
    let rows = grant::Entity::find().filter(which.into_condition()).order_by_asc(grant::Column::Id);
    let mut subjects: HashMap<GrantSubject, Value> = HashMap::new();
    let mut entries = Vec::new();
    for grant in rows.all(transaction).await?.into_iter().filter_map(Grant::of_row) {
        let subject = match subjects.get(&grant.subject) {
            Some(known) => known.clone(),
            None => named(transaction, grant.subject, false).await?.unwrap_or_default(),
        };
        subjects.insert(grant.subject, subject.clone());
        entries.push(grant.entry(action::GRANT_DELETE, subject, actor.clone()));
    }
    Ok(entries)
}

/// The subject for the audit log; none when there is none any more.
async fn named(
    transaction: &impl ConnectionTrait,
    subject: GrantSubject,
    is_locked: bool,
) -> Result<Option<Value>, StoreError> {
    let lock = is_locked.then_some(LockType::Share);
    Ok(match subject {
        GrantSubject::User(id) => {
            let found = user::Entity::find_by_id(id).apply_if(lock, QuerySelect::lock).one(transaction).await?;
            found.map(|user| json!({ "user": user.username, "user_id": id }))
        }
        GrantSubject::Team(id) => {
            let found = team::Entity::find_by_id(id).apply_if(lock, QuerySelect::lock).one(transaction).await?;
            found.map(|team| json!({ "team": team.name, "team_id": id }))
        }
    })
}

#[cfg(test)]
mod tests {
    use entity::Millis;

    use super::*;

    fn row() -> grant::Model {
        grant::Model {
            id: Uuid::from_u128(1),
            owner_id: Uuid::from_u128(2),
            giver_id: None,
            subject_user_id: Some(Uuid::from_u128(3)),
            subject_team_id: None,
            server_id: None,
            tag: Some("db".to_owned()),
            role: "operator".to_owned(),
            rights: "commands,logs".to_owned(),
            created_at: Millis::from(Timestamp::from_millis(1)),
        }
    }

    #[test]
    fn a_grant_is_read_as_it_was_written() {
        let grant = Grant::of_row(row()).unwrap();

        assert_eq!((grant.scope.clone(), grant.role), (GrantScope::Tag("db".to_owned()), Role::Operator));
        assert_eq!(grant.row(), row());
    }

    #[test]
    fn a_row_that_is_not_understood_grants_nothing() {
        let both = Some(Uuid::from_u128(4));
        let strange = [
            grant::Model { role: "root".to_owned(), ..row() },
            grant::Model { role: "owner".to_owned(), ..row() },
            grant::Model { subject_team_id: both, ..row() },
            grant::Model { subject_user_id: None, ..row() },
            grant::Model { server_id: both, ..row() },
        ];

        assert!(strange.into_iter().all(|row| Grant::of_row(row).is_none()));
    }
}
