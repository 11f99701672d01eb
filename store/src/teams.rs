//! Teams of users. A team is managed by who created it, and by administrators.

use std::collections::{HashMap, HashSet};

use entity::{Millis, grant, team, team_member, user};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, Set, SqlErr,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::{changed, record_in};
use super::grants::entries_of_ended;
use super::{Page, PageRequest, Quota, Store, StoreError, Team};
use crate::audit::{Actor, Entry, action};

/// Members of one team.
pub const MAX_MEMBERS: u64 = 200;

/// A team with its members.
#[derive(Debug, Clone, PartialEq)]
pub struct TeamWithMembers {
    /// The row.
    pub team: Team,
    /// The members, by name.
    pub members: Vec<TeamMember>,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMember {
    /// The user.
    pub user_id: Uuid,
    /// The user's name.
    pub username: String,
    /// When they joined.
    pub added_at: Timestamp,
}

/// The result of adding somebody to a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// They are a member now.
    Added,
    /// They already were.
    Already,
    /// There is no such team or user any more.
    Gone,
    /// The team has as many members as one may have.
    Full,
    /// The groups of an identity provider decide who is in the team.
    Provider,
}

/// The result of removing somebody from a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// They are no member now.
    Removed,
    /// They were none.
    NotAMember,
    /// The groups of an identity provider decide who is in the team.
    Provider,
}

/// The result of renaming a team.
#[derive(Debug, Clone, PartialEq)]
pub enum Renamed {
    /// The team with its name.
    Done(Team),
    /// There is no such team.
    Gone,
    /// It is named after the group of an identity provider.
    Provider,
}

impl Store {
    /// Inserts a team without members.
    ///
    /// # Errors
    ///
    /// [`StoreError::TeamNameTaken`], and [`StoreError::QuotaExceeded`] when the account has created too many.
    pub async fn create_team(&self, name: &str, creator: Uuid, actor: Actor) -> Result<Team, StoreError> {
        let team = Team {
            id: Uuid::now_v7(),
            name: name.to_owned(),
            name_key: name.to_lowercase(),
            created_by: Some(creator),
            issuer: None,
            created_at: Timestamp::now().into(),
        };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, creator, Quota::Teams).await?;
            let row = team.clone().into_active_model().reset_all();
            team::Entity::insert(row).exec_without_returning(&transaction).await.map_err(name_taken)?;
            let entry = entry(action::TEAM_CREATE, &team, actor.clone()).detail(json!({ "name": team.name }));
            record_in(&transaction, entry).await?;
            transaction.commit().await?;
            Ok(team.clone())
        })
        .await
    }

    /// Finds a team.
    pub async fn find_team(&self, id: Uuid) -> Result<Option<TeamWithMembers>, StoreError> {
        let Some(team) = team::Entity::find_by_id(id).one(&self.read).await? else { return Ok(None) };
        let mut members = self.members_of(&[team.id]).await?;
        Ok(Some(TeamWithMembers { members: members.remove(&team.id).unwrap_or_default(), team }))
    }

    /// Lists teams by name: those that a user created or is in, or all for none.
    pub async fn list_teams(&self, of: Option<Uuid>, page: PageRequest) -> Result<Page<TeamWithMembers>, StoreError> {
        let concerned = of.map(|user_id| {
            let joined = team_member::Entity::find()
                .select_only()
                .column(team_member::Column::TeamId)
                .filter(team_member::Column::UserId.eq(user_id));
            Condition::any()
                .add(team::Column::CreatedBy.eq(user_id))
                .add(team::Column::Id.in_subquery(sea_orm::QueryTrait::into_query(joined)))
        });
        let query = team::Entity::find().filter(Condition::all().add_option(concerned));
        let total = query.clone().count(&self.read).await?;
        let by_name = query.order_by_asc(team::Column::NameKey).limit(page.limit).offset(page.offset);
        let teams = by_name.all(&self.read).await?;
        let ids: Vec<Uuid> = teams.iter().map(|team| team.id).collect();
        let mut members = self.members_of(&ids).await?;
        let with = |team: Team| TeamWithMembers { members: members.remove(&team.id).unwrap_or_default(), team };
        Ok(Page { items: teams.into_iter().map(with).collect(), total })
    }

    async fn members_of(&self, teams: &[Uuid]) -> Result<HashMap<Uuid, Vec<TeamMember>>, StoreError> {
        let mut members: HashMap<Uuid, Vec<TeamMember>> = HashMap::new();
        if teams.is_empty() {
            return Ok(members);
        }
        let of_teams = team_member::Column::TeamId.is_in(teams.iter().copied());
        let rows = team_member::Entity::find().filter(of_teams).all(&self.read).await?;
        let ids: HashSet<Uuid> = rows.iter().map(|row| row.user_id).collect();
        let names = self.usernames(&ids.into_iter().collect::<Vec<_>>()).await?;
        for row in rows {
            let Some(username) = names.get(&row.user_id).cloned() else { continue };
            let member = TeamMember { user_id: row.user_id, username, added_at: row.added_at.into() };
            members.entry(row.team_id).or_default().push(member);
        }
        members.values_mut().for_each(|members| members.sort_by_cached_key(|member| member.username.to_lowercase()));
        Ok(members)
    }

    /// Renames a team.
    ///
    /// # Errors
    ///
    /// [`StoreError::TeamNameTaken`].
    pub async fn rename_team(&self, id: Uuid, name: &str, actor: Actor) -> Result<Renamed, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = team::Entity::find_by_id(id).lock_exclusive().one(&transaction).await?;
            let Some(team) = found else { return Ok(Renamed::Gone) };
            if team.issuer.is_some() {
                return Ok(Renamed::Provider);
            }
            let detail = json!({ "name": changed(&team.name, Some(&name.to_owned())) });
            let row = team::ActiveModel {
                id: Set(id),
                name: Set(name.to_owned()),
                name_key: Set(name.to_lowercase()),
                ..Default::default()
            };
            let team = row.update(&transaction).await.map_err(name_taken)?;
            record_in(&transaction, entry(action::TEAM_UPDATE, &team, actor.clone()).detail(detail)).await?;
            transaction.commit().await?;
            Ok(Renamed::Done(team))
        })
        .await
    }

    /// Deletes a team with its memberships and grants. Returns whether it existed.
    pub async fn delete_team(&self, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = team::Entity::find_by_id(id).lock_exclusive().one(&transaction).await?;
            let Some(team) = found else { return Ok(false) };
            let ended = entries_of_ended(&transaction, grant::Column::SubjectTeamId.eq(id), &actor).await?;
            // Another request was faster, and has written the entry.
            if team::Entity::delete_by_id(id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            let entry = entry(action::TEAM_DELETE, &team, actor.clone()).detail(json!({ "name": team.name }));
            for entry in ended.into_iter().chain([entry]) {
                record_in(&transaction, entry).await?;
            }
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Adds a user to a team.
    pub async fn add_team_member(&self, team_id: Uuid, user_id: Uuid, actor: Actor) -> Result<Joined, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = team::Entity::find_by_id(team_id).lock_exclusive().one(&transaction).await?;
            let Some(team) = found else { return Ok(Joined::Gone) };
            if team.issuer.is_some() {
                return Ok(Joined::Provider);
            }
            let found = user::Entity::find_by_id(user_id).lock_shared().one(&transaction).await?;
            let Some(user) = found else { return Ok(Joined::Gone) };
            if member(&transaction, team_id, user_id).await?.is_some() {
                return Ok(Joined::Already);
            }
            let members = team_member::Entity::find().filter(team_member::Column::TeamId.eq(team_id));
            if members.count(&transaction).await? >= MAX_MEMBERS {
                return Ok(Joined::Full);
            }
            let row = team_member::Model { team_id, user_id, added_at: Millis::from(Timestamp::now()) };
            let row = row.into_active_model().reset_all();
            team_member::Entity::insert(row).exec_without_returning(&transaction).await?;
            let entry = entry(action::TEAM_MEMBER_ADD, &team, actor.clone());
            record_in(&transaction, entry.detail(membership(&team, &user))).await?;
            transaction.commit().await?;
            Ok(Joined::Added)
        })
        .await
    }

    /// Removes a user from a team.
    pub async fn remove_team_member(&self, team_id: Uuid, user_id: Uuid, actor: Actor) -> Result<Left, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = team::Entity::find_by_id(team_id).lock_exclusive().one(&transaction).await?;
            let Some(team) = found else { return Ok(Left::NotAMember) };
            if team.issuer.is_some() {
                return Ok(Left::Provider);
            }
            let user = user::Entity::find_by_id(user_id).one(&transaction).await?;
            let Some(user) = user else { return Ok(Left::NotAMember) };
            let removed = team_member::Entity::delete_by_id((team_id, user_id)).exec(&transaction).await?;
            if removed.rows_affected == 0 {
                return Ok(Left::NotAMember);
            }
            let entry = entry(action::TEAM_MEMBER_REMOVE, &team, actor.clone());
            record_in(&transaction, entry.detail(membership(&team, &user))).await?;
            transaction.commit().await?;
            Ok(Left::Removed)
        })
        .await
    }
}

async fn member(
    transaction: &impl ConnectionTrait,
    team_id: Uuid,
    user_id: Uuid,
) -> Result<Option<team_member::Model>, StoreError> {
    Ok(team_member::Entity::find_by_id((team_id, user_id)).one(transaction).await?)
}

/// The creator may read the entry; once they are gone, the account that acts.
fn entry(action: &'static str, team: &Team, actor: Actor) -> Entry {
    let owner_id = team.created_by.or(actor.user_id).unwrap_or_default();
    Entry::new(action, owner_id, actor).target(team.id)
}

fn membership(team: &Team, user: &user::Model) -> serde_json::Value {
    json!({ "name": team.name, "user": user.username, "user_id": user.id })
}

fn name_taken(error: sea_orm::DbErr) -> StoreError {
    match error.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(_)) => StoreError::TeamNameTaken,
        _ => StoreError::Database(error),
    }
}
