//! Teams that are groups of an identity provider.
//!
//! Such a team belongs to one group of one provider, by the group's exact name. Nobody edits its members: at each sign-in, and
//! when an account is linked or unlinked, the account's memberships become what the provider says. A team that a person made is
//! never one of these, whatever its name is: its creator would decide about what the group is granted, or the group would get
//! what is granted to the team.

use std::collections::BTreeSet;

use entity::{Millis, external_identity, team, team_member, user};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, TryInsertResult,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::{StoreError, Team, User};
use crate::audit::{Actor, Entry, action};

/// Teams of providers. All teams and members are in memory on every instance; a provider may have very many groups.
pub const MAX_PROVIDER_TEAMS: u64 = 500;

/// Members of one team of a provider. With the number of teams it bounds the memory to some 16 MB.
pub const MAX_PROVIDER_MEMBERS: u64 = 2_000;

/// The longest name of a team. A group with a longer one has no team.
const MAX_NAME: usize = 100;

/// Whether the rights of an account may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TeamsChange {
    /// The account is in the same teams as before.
    Same,
    /// The account joined or left teams.
    Changed,
}

/// Makes an account's memberships in the teams of a provider those of its groups there, inside the transaction of a sign-in. An
/// account may have several identities at one provider; the groups of all of them count. `address` is where the request came
/// from.
pub(super) async fn sync(
    connection: &impl ConnectionTrait,
    user: &User,
    issuer: &str,
    address: &str,
    now: Timestamp,
) -> Result<TeamsChange, StoreError> {
    let groups = groups_of(connection, user.id, issuer).await?;
    let current = teams_of(connection, user.id, issuer).await?;
    let actor = Actor::service(address);
    let mut change = TeamsChange::Same;
    for team in current.iter().filter(|team| !groups.contains(&team.name)) {
        let removed = team_member::Entity::delete_by_id((team.id, user.id)).exec(connection).await?;
        if removed.rows_affected > 0 {
            record_in(connection, member_entry(action::TEAM_MEMBER_REMOVE, team, user, &actor)).await?;
            change = TeamsChange::Changed;
        }
    }
    // In the order of names, so that two sign-ins lock teams in the same order.
    for group in groups.iter().filter(|group| !current.iter().any(|team| team.name == **group)) {
        let Some(team) = team_for(connection, user, issuer, group, (&actor, now)).await? else { continue };
        let members = team_member::Entity::find().filter(team_member::Column::TeamId.eq(team.id));
        if members.count(connection).await? >= MAX_PROVIDER_MEMBERS {
            tracing::warn!(team.id = %team.id, user.id = %user.id, "a team of the identity provider is full: the user does not join");
            continue;
        }
        let row = team_member::Model { team_id: team.id, user_id: user.id, added_at: Millis::from(now) };
        let row = row.into_active_model().reset_all();
        team_member::Entity::insert(row).exec_without_returning(connection).await?;
        record_in(connection, member_entry(action::TEAM_MEMBER_ADD, &team, user, &actor)).await?;
        change = TeamsChange::Changed;
    }
    Ok(change)
}

/// The groups of all identities of an account at a provider that can be names of teams.
async fn groups_of(
    connection: &impl ConnectionTrait,
    user_id: Uuid,
    issuer: &str,
) -> Result<BTreeSet<String>, StoreError> {
    let identities = external_identity::Entity::find()
        .filter(external_identity::Column::UserId.eq(user_id))
        .filter(external_identity::Column::Issuer.eq(issuer))
        .select_only()
        .column(external_identity::Column::Groups);
    let groups: Vec<String> = identities.into_tuple().all(connection).await?;
    // The store wrote them.
    let groups = groups.iter().flat_map(|text| serde_json::from_str::<Vec<String>>(text).unwrap_or_default());
    Ok(groups.filter(|name| is_team_name(name)).collect())
}

/// Whether a group's name can be that of a team, which the API accepts for any team.
fn is_team_name(name: &str) -> bool {
    let length = name.chars().count();
    (1..=MAX_NAME).contains(&length) && name.trim() == name && !name.chars().any(char::is_control)
}

/// The teams of a provider that an account is in.
async fn teams_of(connection: &impl ConnectionTrait, user_id: Uuid, issuer: &str) -> Result<Vec<Team>, StoreError> {
    let joined = team_member::Entity::find()
        .select_only()
        .column(team_member::Column::TeamId)
        .filter(team_member::Column::UserId.eq(user_id));
    let teams = team::Entity::find()
        .filter(team::Column::Issuer.eq(issuer))
        .filter(team::Column::Id.in_subquery(sea_orm::QueryTrait::into_query(joined)))
        .order_by_asc(team::Column::Name);
    Ok(teams.all(connection).await?)
}

/// The team of a group, locked; created if there is none. None where the name belongs to another team, or there are too many.
async fn team_for(
    connection: &impl ConnectionTrait,
    user: &User,
    issuer: &str,
    group: &str,
    (actor, now): (&Actor, Timestamp),
) -> Result<Option<Team>, StoreError> {
    let find = || team::Entity::find().filter(team::Column::NameKey.eq(group.to_lowercase())).lock_exclusive();
    if find().one(connection).await?.is_none() {
        let teams = team::Entity::find().filter(team::Column::Issuer.is_not_null());
        if teams.count(connection).await? >= MAX_PROVIDER_TEAMS {
            tracing::warn!(
                group,
                "a group of the identity provider has no team: there are {MAX_PROVIDER_TEAMS} already"
            );
            return Ok(None);
        }
        let team = Team {
            id: Uuid::now_v7(),
            name: group.to_owned(),
            name_key: group.to_lowercase(),
            created_by: None,
            issuer: Some(issuer.to_owned()),
            created_at: now.into(),
        };
        let row = team.clone().into_active_model().reset_all();
        let inserted = team::Entity::insert(row)
            .on_conflict_do_nothing_on([team::Column::NameKey])
            .exec_without_returning(connection)
            .await?;
        if matches!(inserted, TryInsertResult::Inserted(1..)) {
            let entry = Entry::new(action::TEAM_CREATE, user.id, actor.clone()).target(team.id);
            record_in(connection, entry.detail(json!({ "name": team.name, "by": "oidc", "issuer": issuer }))).await?;
        }
    }
    // Another sign-in may have made it a moment ago.
    let found = find().one(connection).await?;
    let ours = found.filter(|team| team.issuer.as_deref() == Some(issuer) && team.name == group);
    if ours.is_none() {
        tracing::warn!(group, "a group of the identity provider has no team: another team has its name");
    }
    Ok(ours)
}

fn member_entry(action: &'static str, team: &Team, user: &user::Model, actor: &Actor) -> Entry {
    let detail = json!({ "name": team.name, "user": user.username, "user_id": user.id, "by": "oidc" });
    Entry::new(action, user.id, actor.clone()).target(team.id).detail(detail)
}
