//! `/tokens`: tokens for programs, each for some servers and up to a role.

use chrono::Months;
use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use secrecy::ExposeSecret;
use serde::Serialize;
use signalbox_protocol::Timestamp;

use super::error::ApiError;
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, Part};
use super::extract::field::{At, Name, References, Tag};
use super::extract::param::PageQuery;
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::field_out::{Id, TimeOut};
use super::grants_in::{check_rights, names_one_reach, rights_of};
use super::path::at;
use super::people_out::{RightIn, RightOut, RoleIn, RoleOut};
use super::reply::{Done, Listed, fault_of};
use super::task::run_detached;
use super::token_terms::{self, DAY_MS, Life, Network, check_length, check_networks};
use crate::auth::access::{Action, Role};
use crate::auth::program_token;
use crate::change::Change;
use crate::effects;
use crate::state::State;
use crate::store::{Caller, NewProgramToken, ProgramToken, TokenScope};

/// Nobody remembers what an older one was for.
const LIFE: Life = Life { usual_ms: 90 * DAY_MS, latest: a_year_after, longest: "a year" };

/// The same day of the next year, or 28 February if it has no such day.
fn a_year_after(now: Timestamp) -> Timestamp {
    let end = now.to_datetime().checked_add_months(Months::new(12));
    end.map_or(now, |end| Timestamp::from_millis(end.timestamp_millis()))
}

/// More than anybody lists by hand, and few enough for a condition of a query. A tag is for more.
const MAX_SERVERS: usize = 500;

/// Which servers the token is for: exactly one of the fields. It is never for servers that you cannot see.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
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

impl CrossCheck for TokenScopeIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let mut faults = Faults::default();
        if !names_one_reach(fields, ["tag", "server_ids"]) {
            faults = Faults::at(fields.location, "value_error.reach", ONE_REACH);
        }
        let count = fields.sound("server_ids").map(|References(ids)| ids.len());
        if let Err(found) = check_length("server_ids", count, MAX_SERVERS, fields.location) {
            faults.0.extend(found.0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

const ONE_REACH: &str = "name exactly one of all, tag and server_ids";

/// Refuses once more what does not name exactly one: what was not checked must not become all servers.
impl TryFrom<TokenScopeIn> for TokenScope {
    type Error = ApiError;

    fn try_from(scope: TokenScopeIn) -> Result<Self, ApiError> {
        match (scope.tag, scope.server_ids, scope.all.unwrap_or(false)) {
            (Some(Tag(tag)), None, false) => Ok(Self::Tag(tag)),
            (None, Some(References(mut ids)), false) => {
                ids.sort_unstable();
                ids.dedup();
                Ok(Self::ServerIds(ids))
            }
            (None, None, true) => Ok(Self::All),
            _ => Err(ApiError::Invalid(fault_of("scope", "value_error.reach", ONE_REACH).within(Part::Body))),
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct TokenIn {
    /// What uses it.
    name: Name,
    /// What the program may do at most. Defaults to `viewer`.
    #[deserr(default)]
    role: Option<RoleIn>,
    /// For the role `operator`, some of the rights. Defaults to all of them.
    #[deserr(default)]
    rights: Option<Vec<RightIn>>,
    scope: CrossChecked<TokenScopeIn>,
    /// When the token stops working: at most in a year. Defaults to 90 days from now.
    #[deserr(default)]
    expires_at: Option<At>,
    /// The networks from which it may be used, at most 20. Defaults to all.
    #[deserr(default)]
    networks: Option<Vec<Network>>,
}

const USUAL_ROLE: RoleIn = RoleIn(Role::Viewer);

impl CrossCheck for TokenIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let role = fields.sound("role").map(|role: Option<RoleIn>| role.unwrap_or(USUAL_ROLE));
        let mut faults = Faults::default();
        if let Err(found) = check_rights(role, fields) {
            faults.0.extend(found.0);
        }
        if let Err(found) = check_networks(fields) {
            faults.0.extend(found.0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
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
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<CrossChecked<TokenIn>>>,
) -> Result<CreatedJson<FreshProgramTokenOut>, ApiError> {
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let extract::Json(CrossChecked(input)) = ask.body;
    let now = ask.state.clock.now();
    let expires_at = LIFE.end(input.expires_at, now)?;
    let scope = TokenScope::try_from(input.scope.0)?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scope_that_was_not_checked_never_widens() {
        let scope = |json: serde_json::Value| {
            let unchecked: TokenScopeIn = deserr::deserialize::<_, _, Faults>(json).unwrap();
            TokenScope::try_from(unchecked).ok()
        };

        assert_eq!(scope(json!({ "all": true })), Some(TokenScope::All));
        assert_eq!(scope(json!({ "tag": "db", "all": false })), Some(TokenScope::Tag("db".to_owned())));
        for faulty in [json!({}), json!({ "all": false }), json!({ "tag": "db", "all": true })] {
            assert_eq!(scope(faulty.clone()), None, "{faulty}");
        }
    }

    #[test]
    fn a_token_is_valid_for_a_calendar_year_at_most() {
        let time = |text: &str| Timestamp::parse(text).unwrap();
        let may_end = |now: Timestamp, end: Timestamp| LIFE.end(Some(At(end)), now).is_ok();

        for (now, year) in [
            ("2026-11-20T09:30:00Z", "2027-11-20T09:30:00Z"),
            ("2027-06-01T00:00:00Z", "2028-06-01T00:00:00Z"),
            ("2028-02-29T12:00:00Z", "2029-02-28T12:00:00Z"),
        ] {
            let (now, year) = (time(now), time(year));
            assert!(may_end(now, now.plus_millis(364 * DAY_MS)), "{now}");
            assert!(may_end(now, year.plus_millis(-60_000)) && may_end(now, year), "{now}");
            assert!(!may_end(now, year.plus_millis(1)) && !may_end(now, year.plus_millis(DAY_MS)), "{now}");
        }
    }
}
