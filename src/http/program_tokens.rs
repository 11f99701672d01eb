//! `/tokens`: tokens for programs, each for some servers and up to a role.

use deserr::{Deserr, ValuePointerRef};
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use secrecy::ExposeSecret;
use serde::Serialize;

use super::error::ApiError;
use super::extract::fault::Faults;
use super::extract::field::{At, Name, References, Tag};
use super::extract::param::PageQuery;
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::field_out::{Id, TimeOut};
use super::grants_in::{check_rights, rights_of};
use super::path::at;
use super::people_out::{RightIn, RightOut, RoleIn, RoleOut};
use super::reply::{Done, Listed};
use super::task::run_detached;
use super::token_terms::{self, DAY_MS, Life, Network, check_networks};
use crate::auth::access::{Action, Role};
use crate::auth::program_token;
use crate::change::Change;
use crate::effects;
use crate::state::State;
use crate::store::{Caller, NewProgramToken, ProgramToken, TokenScope};

/// Nobody remembers what an older one was for.
const LIFE: Life = Life { usual_ms: 90 * DAY_MS, longest_ms: 366 * DAY_MS, longest: "a year" };

/// More than anybody lists by hand, and few enough for a condition of a query. A tag is for more.
const MAX_SERVERS: usize = 500;

/// Which servers the token is for: exactly one of the fields. It is never for servers that you cannot see.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = one_scope -> Faults)]
pub struct TokenScopeIn {
    /// True for all servers that you can see, future ones too.
    #[deserr(default)]
    all: Option<bool>,
    /// The servers with this tag, future ones too.
    #[deserr(default)]
    tag: Option<Tag>,
    /// These servers, at most 500.
    #[deserr(default)]
    server_ids: Option<References>,
}

fn one_scope(scope: TokenScopeIn, location: ValuePointerRef<'_>) -> Result<TokenScopeIn, Faults> {
    let named = [scope.all == Some(true), scope.tag.is_some(), scope.server_ids.is_some()];
    if named.into_iter().filter(|is_named| *is_named).count() != 1 {
        return Err(Faults::at(location, "value_error.reach", "name exactly one of all, tag and server_ids"));
    }
    if scope.server_ids.as_ref().is_some_and(|References(ids)| ids.len() > MAX_SERVERS) {
        let msg = format!("ensure this value has at most {MAX_SERVERS} items");
        return Err(Faults::at(location.push_key("server_ids"), "value_error.list.max_items", msg));
    }
    Ok(scope)
}

impl From<TokenScopeIn> for TokenScope {
    fn from(scope: TokenScopeIn) -> Self {
        match (scope.tag, scope.server_ids) {
            (Some(Tag(tag)), _) => Self::Tag(tag),
            (None, Some(References(mut ids))) => {
                ids.sort_unstable();
                ids.dedup();
                Self::ServerIds(ids)
            }
            (None, None) => Self::All,
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = is_sound -> Faults)]
pub struct TokenIn {
    /// What uses it.
    name: Name,
    /// What the program may do at most. Defaults to `viewer`.
    #[deserr(default)]
    role: Option<RoleIn>,
    /// For the role `operator`, some of the rights. Defaults to all of them.
    #[deserr(default)]
    rights: Option<Vec<RightIn>>,
    scope: TokenScopeIn,
    /// When the token stops working: at most in a year. Defaults to 90 days from now.
    #[deserr(default)]
    expires_at: Option<At>,
    /// The networks from which it may be used, at most 20. Defaults to all.
    #[deserr(default)]
    networks: Option<Vec<Network>>,
}

const USUAL_ROLE: RoleIn = RoleIn(Role::Viewer);

fn is_sound(token: TokenIn, location: ValuePointerRef<'_>) -> Result<TokenIn, Faults> {
    let mut faults = Faults::default();
    if let Err(found) = check_rights(token.role.unwrap_or(USUAL_ROLE), token.rights.as_deref(), location) {
        faults.0.extend(found.0);
    }
    if let Err(found) = check_networks(token.networks.as_deref(), location) {
        faults.0.extend(found.0);
    }
    if faults.0.is_empty() { Ok(token) } else { Err(faults) }
}

/// Which servers a token is for: the one of the fields that is there.
#[derive(Debug, Default, Serialize, Apiv2Schema)]
pub struct TokenScopeOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_ids: Option<Vec<Id>>,
}

impl From<TokenScope> for TokenScopeOut {
    fn from(scope: TokenScope) -> Self {
        match scope {
            TokenScope::All => Self { all: Some(true), ..Self::default() },
            TokenScope::Tag(tag) => Self { tag: Some(tag), ..Self::default() },
            TokenScope::ServerIds(ids) => {
                Self { server_ids: Some(ids.into_iter().map(Id).collect()), ..Self::default() }
            }
        }
    }
}

/// A token without its secret.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ProgramTokenOut {
    id: Id,
    name: String,
    /// The public part of the token.
    prefix: String,
    /// What the program may do at most: never more than you may.
    role: RoleOut,
    /// The rights that the role `operator` has.
    rights: Vec<RightOut>,
    scope: TokenScopeOut,
    /// The networks from which it may be used; empty for all.
    networks: Vec<String>,
    created_at: TimeOut,
    expires_at: TimeOut,
    /// When the program last called, to about a minute.
    last_used_at: Option<TimeOut>,
    /// The address from which it last called.
    last_used_address: Option<String>,
}

impl From<ProgramToken> for ProgramTokenOut {
    fn from(token: ProgramToken) -> Self {
        let limits = token.limits;
        Self {
            id: Id(limits.id),
            name: limits.name.to_string(),
            prefix: token.prefix,
            role: RoleOut(limits.role),
            rights: limits.rights.iter().map(RightOut).collect(),
            scope: limits.scope.into(),
            networks: limits.networks,
            created_at: TimeOut(token.created_at),
            expires_at: TimeOut(limits.expires_at),
            last_used_at: token.last_used_at.map(TimeOut),
            last_used_address: token.last_used_address,
        }
    }
}

/// A token with its secret.
#[derive(Serialize, Apiv2Schema)]
pub struct FreshProgramTokenOut {
    #[serde(flatten)]
    about: ProgramTokenOut,
    /// The secret. Only this response contains it.
    token: String,
}

/// List your tokens for programs
///
/// Newest first, without their secrets. Expired ones stay in the list until you revoke them.
#[api_v2_operation(tags(Tokens), operation_id = "list_tokens")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<ProgramTokenOut>, ApiError> {
    let found = ask.state.store.list_program_tokens(ask.subject.caller.user_id, ask.query.into()).await?;
    Ok(Listed { items: found.items.into_iter().map(ProgramTokenOut::from).collect(), total: found.total })
}

/// Create a token for a program
///
/// The program sends it as a bearer token, and can do what its role allows on the servers of its scope, and never more than you.
/// It can do nothing with accounts, tokens, teams and grants. Answers 403 `step_up_required` if the service has
/// `--step-up` and you proved longer ago than that who you are.
#[api_v2_operation(tags(Tokens), operation_id = "create_token")]
pub async fn create(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<TokenIn>>,
) -> Result<CreatedJson<FreshProgramTokenOut>, ApiError> {
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let extract::Json(input) = ask.body;
    ask.state.accounts.factors.check_may_change(&caller).await?;
    let now = ask.state.clock.now();
    let expires_at = LIFE.end(input.expires_at, now)?;
    let scope = TokenScope::from(input.scope);
    expect_visible(&ask.state, &caller, &scope).await?;
    let role = input.role.unwrap_or(USUAL_ROLE);
    let fresh = program_token::generate().map_err(ApiError::internal)?;
    let new = NewProgramToken {
        user_id: caller.user_id,
        name: input.name.0,
        prefix: fresh.prefix,
        digest: fresh.digest.to_vec(),
        role: role.0,
        rights: rights_of(role, input.rights),
        scope,
        networks: token_terms::stored(input.networks),
        second_factor: caller.second_factor,
        now,
        expires_at,
    };
    let made = ask.state.store.create_program_token(new, actor).await?;
    Ok(CreatedJson(FreshProgramTokenOut { about: made.into(), token: fresh.token.expose_secret().to_owned() }))
}

/// Checks that the caller can see all servers that a scope names.
async fn expect_visible(state: &State, caller: &Caller, scope: &TokenScope) -> Result<(), ApiError> {
    if let TokenScope::ServerIds(ids) = scope {
        for id in ids {
            state.accounts.access.server(caller, *id, Action::See).await?;
        }
    }
    Ok(())
}

/// Revoke a token of a program
///
/// It stops working immediately, on every instance, and sockets that were opened with it close.
#[api_v2_operation(tags(Tokens), operation_id = "revoke_token")]
pub async fn revoke(ask: Checked<Recent<CallerAt<IdPath>>>) -> Result<Done, ApiError> {
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    let id = path.id.0;
    // In a separate task: a client that disconnects must not leave sockets open whose token was revoked.
    let revoked = run_detached(async move {
        let revoked = ask.state.store.revoke_program_token(caller.user_id, id, actor).await;
        match &revoked {
            Ok(false) => {}
            Ok(true) => effects::commit(&ask.state, Change::LoginEnded { login_id: id }).await,
            // The token may be revoked although the answer was lost.
            Err(_) => {
                effects::commit(&ask.state, Change::PasswordChanged { user_id: caller.user_id, ended: Vec::new() })
                    .await
            }
        }
        Ok(revoked?)
    });
    if revoked.await? { Ok(Done("Token revoked")) } else { Err(ApiError::not_found("Token not found")) }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![at("/tokens").route(get().to(list)).route(post().to(create)), at("/tokens/{id}").route(delete().to(revoke))]
}
