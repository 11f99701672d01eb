//! `/teams`: users who get grants together.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::web::{Resource, delete as remove, get, post, put};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::{Name, Username, described, string};
use super::extract::param::{Id as IdParam, PageQuery};
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::people_out::PersonOut;
use super::reply::{Done, Listed};
use super::task::run_detached;
use crate::auth::Caller;
use crate::change::Change;
use crate::effects;
use crate::state::State;
use crate::store::{Joined, Left, MAX_MEMBERS, Renamed, TeamMember, TeamWithMembers};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct TeamIn {
    /// No other team of this service may have it.
    name: Name,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct TeamPatchIn {
    /// No other team of this service may have it.
    #[deserr(default)]
    name: Option<Name>,
}

/// A team with its members.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct TeamOut {
    id: Id,
    name: String,
    /// The identity provider whose group it is, with the same members. Null for a team that a person made.
    issuer: Option<String>,
    /// Who manages it, besides administrators; null if that account was deleted, and for a group of the provider.
    created_by: Option<PersonOut>,
    created_at: TimeOut,
    /// The members, by name.
    members: Vec<MemberOut>,
}

/// A member of a team.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct MemberOut {
    id: Id,
    username: String,
    added_at: TimeOut,
}

impl From<TeamMember> for MemberOut {
    fn from(member: TeamMember) -> Self {
        Self { id: Id(member.user_id), username: member.username, added_at: TimeOut(member.added_at) }
    }
}

impl TeamOut {
    fn new(found: TeamWithMembers, creator: Option<&String>) -> Self {
        let TeamWithMembers { team, members } = found;
        let created_by = team.created_by.zip(creator).map(|(id, name)| PersonOut::new(id, name.clone()));
        Self {
            id: Id(team.id),
            name: team.name,
            issuer: team.issuer,
            created_by,
            created_at: TimeOut(team.created_at.into()),
            members: members.into_iter().map(MemberOut::from).collect(),
        }
    }
}

/// A user: their id, or their name, because only administrators list users.
#[derive(Debug, Clone)]
pub enum UserRef {
    Id(Uuid),
    Name(String),
}

impl Deserr<Faults> for UserRef {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = string(value, location)?;
        match Uuid::try_parse(&text) {
            Ok(id) if text.len() == 36 => Ok(Self::Id(id)),
            _ => Username::deserialize_from_value(Value::<V>::String(text), location)
                .map(|Username(name)| Self::Name(name)),
        }
    }
}

described!(
    UserRef,
    json!({ "type": "string", "minLength": 3, "maxLength": 64, "pattern": "^[A-Za-z0-9_.-]+$", "example": "ada" })
);

/// The path `/teams/{id}/members/{user_id}`.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct MemberPath {
    id: IdParam,
    /// The user's id or name.
    user_id: UserRef,
}

/// List your teams
///
/// Those that you created or are a member of, sorted by name; all of them for administrators.
#[api_v2_operation(tags(Sharing), operation_id = "list_teams")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<TeamOut>, ApiError> {
    let caller = ask.subject.caller;
    let of = (!caller.is_admin).then_some(caller.user_id);
    let found = ask.state.store.list_teams(of, ask.query.into()).await?;
    let creators: Vec<Uuid> = found.items.iter().filter_map(|found| found.team.created_by).collect();
    let names = ask.state.store.usernames(&creators).await?;
    let out = |found: TeamWithMembers| {
        let creator = found.team.created_by.and_then(|id| names.get(&id));
        TeamOut::new(found, creator)
    };
    Ok(Listed { items: found.items.into_iter().map(out).collect(), total: found.total })
}

/// Create a team
///
/// It has no members yet. You manage it; administrators may, too.
#[api_v2_operation(tags(Sharing), operation_id = "create_team")]
pub async fn create(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<TeamIn>>,
) -> Result<CreatedJson<TeamOut>, ApiError> {
    let (Recent(SignedIn { caller, actor }), extract::Json(TeamIn { name: Name(name) })) = (ask.subject, ask.body);
    run_detached(async move {
        let created = ask.state.store.create_team(&name, caller.user_id, actor).await;
        effects::commit(&ask.state, Change::AccessChanged).await;
        let found = TeamWithMembers { team: created?, members: Vec::new() };
        Ok(CreatedJson(TeamOut::new(found, Some(&caller.username.to_string()))))
    })
    .await
}

/// Change a team
///
/// Its creator and administrators may. A group of the identity provider keeps its name (400 `bad_request`).
#[api_v2_operation(tags(Sharing), operation_id = "update_team")]
pub async fn update(
    ask: Checked<Recent<CallerAt<IdPath>>, NoQuery, extract::Json<TeamPatchIn>>,
) -> Result<actix_web::web::Json<TeamOut>, ApiError> {
    let (Recent(CallerAt { caller, actor, path }), extract::Json(patch)) = (ask.subject, ask.body);
    run_detached(async move {
        let id = path.id.0;
        managed(&ask.state, &caller, id).await?;
        if let Some(Name(name)) = patch.name {
            match ask.state.store.rename_team(id, &name, actor).await? {
                Renamed::Done(_) => {}
                Renamed::Gone => return Err(not_found()),
                Renamed::Provider => return Err(of_provider()),
            }
            effects::commit(&ask.state, Change::AccessChanged).await;
        }
        shown(&ask.state, id).await
    })
    .await
}

/// Delete a team
///
/// Ends all grants to it. Its creator and administrators may. A group of the identity provider is created again, without grants,
/// when somebody in it signs in.
#[api_v2_operation(tags(Sharing), operation_id = "delete_team")]
pub async fn delete(ask: Checked<Recent<CallerAt<IdPath>>>) -> Result<Done, ApiError> {
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    let deleted = run_detached(async move {
        managed(&ask.state, &caller, path.id.0).await?;
        let deleted = ask.state.store.delete_team(path.id.0, actor).await;
        // Even after an error: a change may be stored although its answer was lost.
        effects::commit(&ask.state, Change::AccessChanged).await;
        Ok(deleted?)
    });
    if deleted.await? { Ok(Done("Team deleted")) } else { Err(not_found()) }
}

/// Add a member to a team
///
/// Names the user by id or name. The member may at once do what is granted to the team. Its creator and administrators may. Nobody
/// is added to a group of the identity provider (400 `bad_request`).
#[api_v2_operation(tags(Sharing), operation_id = "add_team_member")]
pub async fn add_member(ask: Checked<Recent<CallerAt<MemberPath>>>) -> Result<actix_web::web::Json<TeamOut>, ApiError> {
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    run_detached(async move {
        let id = path.id.0;
        managed(&ask.state, &caller, id).await?;
        let user_id = user_of(&ask.state, &path.user_id).await?.ok_or_else(unknown_user)?;
        let joined = ask.state.store.add_team_member(id, user_id, actor).await;
        effects::commit(&ask.state, Change::AccessChanged).await;
        match joined? {
            Joined::Added | Joined::Already => shown(&ask.state, id).await,
            Joined::Gone => Err(unknown_user()),
            Joined::Provider => Err(of_provider()),
            Joined::Full => {
                let detail = format!("A team has at most {MAX_MEMBERS} members: make another one");
                Err(ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() })
            }
        }
    })
    .await
}

/// Remove a member from a team
///
/// The team's creator, administrators and the member may. Nobody is removed from a group of the identity provider (400
/// `bad_request`).
#[api_v2_operation(tags(Sharing), operation_id = "remove_team_member")]
pub async fn remove_member(ask: Checked<Recent<CallerAt<MemberPath>>>) -> Result<Done, ApiError> {
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    let not_a_member = || ApiError::not_found("Member not found");
    let removed = run_detached(async move {
        let team = visible(&ask.state, &caller, path.id.0).await?;
        let user_id = user_of(&ask.state, &path.user_id).await?.ok_or_else(not_a_member)?;
        if !may_manage(&caller, &team) && user_id != caller.user_id {
            return Err(ApiError::code(ErrorCode::Forbidden));
        }
        let removed = ask.state.store.remove_team_member(path.id.0, user_id, actor).await;
        effects::commit(&ask.state, Change::AccessChanged).await;
        Ok(removed?)
    });
    match removed.await? {
        Left::Removed => Ok(Done("Member removed")),
        Left::NotAMember => Err(not_a_member()),
        Left::Provider => Err(of_provider()),
    }
}

async fn user_of(state: &State, named: &UserRef) -> Result<Option<Uuid>, ApiError> {
    Ok(match named {
        UserRef::Id(id) => state.store.usernames(&[*id]).await?.contains_key(id).then_some(*id),
        UserRef::Name(name) => state.store.user_named(name).await?,
    })
}

fn may_manage(caller: &Caller, found: &TeamWithMembers) -> bool {
    caller.is_admin || found.team.created_by == Some(caller.user_id)
}

/// A team that the caller may know of: as its manager or a member.
pub async fn visible(state: &State, caller: &Caller, id: Uuid) -> Result<TeamWithMembers, ApiError> {
    let found = state.store.find_team(id).await?.ok_or_else(not_found)?;
    let is_member = found.members.iter().any(|member| member.user_id == caller.user_id);
    if is_member || may_manage(caller, &found) { Ok(found) } else { Err(not_found()) }
}

/// A team that the caller may change.
pub async fn managed(state: &State, caller: &Caller, id: Uuid) -> Result<TeamWithMembers, ApiError> {
    let found = visible(state, caller, id).await?;
    if may_manage(caller, &found) { Ok(found) } else { Err(ApiError::code(ErrorCode::Forbidden)) }
}

async fn shown(state: &State, id: Uuid) -> Result<actix_web::web::Json<TeamOut>, ApiError> {
    let found = state.store.find_team(id).await?.ok_or_else(not_found)?;
    let creators: Vec<Uuid> = found.team.created_by.into_iter().collect();
    let names = state.store.usernames(&creators).await?;
    Ok(actix_web::web::Json(TeamOut::new(found, names.values().next())))
}

/// A team whose name and members are those of a group of the identity provider.
fn of_provider() -> ApiError {
    let detail = "The team is a group of the identity provider: change the group there. It applies at the next sign-in";
    ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() }
}

fn not_found() -> ApiError {
    ApiError::not_found("Team not found")
}

fn unknown_user() -> ApiError {
    ApiError::not_found("User not found")
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/teams").route(get().to(list)).route(post().to(create)),
        at("/teams/{id}").route(put().to(update)).route(remove().to(delete)),
        at("/teams/{id}/members/{user_id}").route(put().to(add_member)).route(remove().to(remove_member)),
    ]
}
