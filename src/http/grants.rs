//! `/grants`: who besides the owner may do what to which servers.

mod access;
mod out;

use deserr::Deserr;
use paperclip::actix::web::{Resource, delete as remove, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, Part};
use super::extract::field::{Reference, Username};
use super::extract::param::PageQuery;
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::grants_in::{self, ScopeIn};
use super::path::at;
use super::people_out::{RightIn, RoleIn};
use super::reply::{Done, Listed, fault_of};
use super::task::run_detached;
use super::teams;
use crate::auth::Caller;
use crate::auth::access::{AccessError, Action};
use crate::change::Change;
use crate::effects;
use crate::state::State;
use crate::store::{Grant, GrantScope, GrantSubject, NewGrant};
use out::GrantOut;
pub use out::SubjectOut;

/// The user or team that something is granted to: exactly one of the fields.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct SubjectIn {
    #[deserr(default)]
    user_id: Option<Reference>,
    /// A user's name, in place of the id.
    #[deserr(default)]
    username: Option<Username>,
    /// A team that you created or are a member of.
    #[deserr(default)]
    team_id: Option<Reference>,
}

impl CrossCheck for SubjectIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let named = ["user_id", "username", "team_id"].into_iter().filter(|name| fields.is_given(name));
        if named.count() == 1 {
            return Ok(());
        }
        Err(Faults::at(fields.location, "value_error.subject", "name exactly one of user_id, username and team_id"))
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct GrantIn {
    subject: CrossChecked<SubjectIn>,
    scope: CrossChecked<ScopeIn>,
    role: RoleIn,
    /// For the role `operator`, some of the rights. Defaults to all of them.
    #[deserr(default)]
    rights: Option<Vec<RightIn>>,
}

impl CrossCheck for GrantIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        grants_in::check_rights(fields.sound("role"), fields)
    }
}

/// List grants
///
/// Those on your servers, those that you gave, and those that reach you, newest first. `GET /servers/{id}/access` lists all
/// that concern one server.
#[api_v2_operation(tags(Sharing), operation_id = "list_grants")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<GrantOut>, ApiError> {
    let found = ask.state.store.list_grants(ask.subject.caller.user_id, ask.query.into()).await?;
    Ok(Listed { items: out::shown(&ask.state.store, found.items).await?, total: found.total })
}

/// Grant a role on servers
///
/// To a user or a team, on one server, on your servers with a tag, or on all of them. Somebody with several grants has the
/// highest role, and the rights of all of them. It takes effect at once.
#[api_v2_operation(tags(Sharing), operation_id = "create_grant")]
pub async fn create(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<CrossChecked<GrantIn>>>,
) -> Result<CreatedJson<GrantOut>, ApiError> {
    let (Recent(SignedIn { caller, actor }), extract::Json(CrossChecked(input))) = (ask.subject, ask.body);
    run_detached(async move {
        let (owner_id, scope) = scope_of(&ask.state, &caller, input.scope.0).await?;
        let (subject, field) = subject_of(&ask.state, &caller, input.subject.0).await?;
        if subject == GrantSubject::User(owner_id) {
            return Err(faulty(field, "value_error.owner", "this account owns the servers"));
        }
        let rights = grants_in::rights_of(input.role, input.rights);
        let new = NewGrant { owner_id, giver_id: caller.user_id, subject, scope, role: input.role.0, rights };
        let created = ask.state.store.create_grant(new, actor).await;
        // Even after an error: a change may be stored although its answer was lost.
        effects::commit(&ask.state, Change::AccessChanged).await;
        let grant = created?.ok_or_else(|| unknown(field))?;
        let shown = out::shown(&ask.state.store, vec![grant]).await?.pop();
        shown.map(CreatedJson).ok_or_else(not_found)
    })
    .await
}

/// The owner of the servers and which of them, if the caller may give roles on them.
async fn scope_of(state: &State, caller: &Caller, scope: ScopeIn) -> Result<(Uuid, GrantScope), ApiError> {
    match GrantScope::try_from(scope)? {
        GrantScope::Server(id) => {
            let access = state.accounts.access.server(caller, id, Action::Manage).await?;
            Ok((access.owner_id(), GrantScope::Server(id)))
        }
        scope @ (GrantScope::Tag(_) | GrantScope::All) => Ok((caller.user_id, scope)),
    }
}

/// The subject, and the field that names it.
pub async fn subject_of(
    state: &State,
    caller: &Caller,
    subject: SubjectIn,
) -> Result<(GrantSubject, &'static str), ApiError> {
    if let Some(Reference(id)) = subject.user_id {
        return Ok((GrantSubject::User(id), "subject.user_id"));
    }
    if let Some(Reference(id)) = subject.team_id {
        let field = "subject.team_id";
        return match teams::visible(state, caller, id).await {
            Ok(_) => Ok((GrantSubject::Team(id), field)),
            Err(ApiError::Refused { code: ErrorCode::NotFound, .. }) => Err(unknown(field)),
            Err(error) => Err(error),
        };
    }
    let field = "subject.username";
    let name = subject.username.map(|Username(name)| name).unwrap_or_default();
    let found = state.store.user_named(&name).await?.ok_or_else(|| unknown(field))?;
    Ok((GrantSubject::User(found), field))
}

/// End a grant
///
/// Who gave it, the owner of the servers, who manages the server, and the user or the creator of the team that it was given
/// to may. Sockets that depend on it close at once.
#[api_v2_operation(tags(Sharing), operation_id = "delete_grant")]
pub async fn delete(ask: Checked<Recent<CallerAt<IdPath>>>) -> Result<Done, ApiError> {
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    let deleted = run_detached(async move {
        let grant = ask.state.store.find_grant(path.id.0).await?.ok_or_else(not_found)?;
        may_end(&ask.state, &caller, &grant).await?;
        let deleted = ask.state.store.delete_grant(&grant, actor).await;
        effects::commit(&ask.state, Change::AccessChanged).await;
        Ok(deleted?)
    });
    if deleted.await? { Ok(Done("Grant ended")) } else { Err(not_found()) }
}

/// Checks that the caller may end a grant. If they may not, it is 403 where a list shows them the grant, and 404 otherwise.
async fn may_end(state: &State, caller: &Caller, grant: &Grant) -> Result<(), ApiError> {
    let is_theirs = grant.giver_id == Some(caller.user_id)
        || grant.owner_id == caller.user_id
        || grant.subject == GrantSubject::User(caller.user_id);
    if is_theirs {
        return Ok(());
    }
    let access = &state.accounts.access;
    if let GrantScope::Server(id) = grant.scope {
        match access.server(caller, id, Action::Manage).await {
            Ok(_) => return Ok(()),
            Err(AccessError::NotFound | AccessError::Forbidden) => {}
            Err(error @ (AccessError::TokenNotAllowed | AccessError::Store(_))) => return Err(error.into()),
        }
    }
    if let GrantSubject::Team(id) = grant.subject {
        match teams::managed(state, caller, id).await {
            Ok(_) => return Ok(()),
            Err(ApiError::Refused { code: ErrorCode::NotFound, .. }) => {}
            // Members are forbidden: their own list shows the grants of the team.
            Err(error) => return Err(error),
        }
    }
    if access.shows(caller, grant).await? { Err(ApiError::code(ErrorCode::Forbidden)) } else { Err(not_found()) }
}

fn not_found() -> ApiError {
    ApiError::not_found("Grant not found")
}

fn unknown(field: &'static str) -> ApiError {
    faulty(field, "value_error.unknown_subject", "there is no such user or team")
}

fn faulty(field: &str, kind: &str, msg: &str) -> ApiError {
    ApiError::Invalid(fault_of(field, kind, msg).within(Part::Body))
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/grants").route(get().to(list)).route(post().to(create)),
        at("/grants/{id}").route(remove().to(delete)),
        at("/servers/{id}/access").route(get().to(access::list)),
    ]
}
