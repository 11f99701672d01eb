//! `/auth/logout` and `/auth/sessions`: the sessions of a user, and how they end.

use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::fault::Faults;
use super::extract::field::Shown;
use super::extract::param::PageQuery;
use super::extract::{CallerAt, Checked, IdPath, NoQuery, OptionalJson, SignedIn, Unproved};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::refresh_cookie::{Browser, Jar, WithCookie};
use super::reply::{Done, Listed};
use super::task::run_detached;
use crate::audit::{Entry, action};
use crate::auth::token::TokenKind;
use crate::change::Change;
use crate::effects;
use crate::state::State;
use crate::store::Login;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct LogoutIn {
    /// The refresh token of another session of yours that should end too.
    #[deserr(default)]
    refresh_token: Option<Shown>,
}

/// Sign out
///
/// Ends the session of the token: its refresh token and its access tokens stop working immediately, and its WebSockets
/// close. Also ends the session of the token in the cookie, if that is another one of yours. A cookie of another user,
/// who has signed in since, is kept.
#[api_v2_operation(tags(Authentication), operation_id = "logout")]
pub async fn logout(
    ask: Checked<Browser<Unproved<SignedIn>>, NoQuery, OptionalJson<LogoutIn>>,
) -> Result<WithCookie<Done>, ApiError> {
    let state = ask.state;
    let Browser { who: Unproved(SignedIn { caller, actor }), jar } = ask.subject;
    let OptionalJson(input) = ask.body;
    let in_body = input.and_then(|input| input.refresh_token).map(|Shown(token)| token);
    let in_cookies = jar.as_ref().map(Jar::tokens).unwrap_or_default();
    let claims = |token: &SecretString| state.accounts.tokens.check(token.expose_secret(), TokenKind::Refresh).ok();
    let is_anothers = in_cookies.iter().filter_map(claims).any(|claims| claims.sub != caller.user_id);
    let shown = in_body.iter().chain(in_cookies).filter_map(claims);
    let others = shown.filter(|claims| claims.sub == caller.user_id && claims.sid != caller.login_id);
    let entry = |action| Entry::new(action, caller.user_id, actor.clone());
    let own = (caller.login_id, entry(action::LOGOUT));
    let ending: Vec<(Uuid, Entry)> =
        others.map(|claims| (claims.sid, entry(action::SESSION_END))).chain([own]).collect();
    run_detached(end_logins(state.clone(), ending)).await?;
    let cookie = jar.as_ref().filter(|_| !is_anothers).map(Jar::clear);
    Ok(WithCookie { answer: Done("Signed out"), cookie })
}

/// Ends logins, each with its entry in the audit log. Returns how many there were.
async fn end_logins(state: State, ending: Vec<(Uuid, Entry)>) -> Result<usize, ApiError> {
    let ended = state.store.end_logins(&ending).await?;
    for login_id in &ended {
        effects::commit(&state, Change::LoginEnded { login_id: *login_id }).await;
    }
    Ok(ended.len())
}

/// A session.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SessionOut {
    id: Id,
    created_at: TimeOut,
    last_used_at: TimeOut,
    expires_at: TimeOut,
    user_agent: String,
    address: String,
    /// How you signed in: `password`, `password_otp` (with a code of your authenticator app), `password_recovery_code`,
    /// `passkey`, or `provider` (at the identity provider).
    means: String,
    /// Whether it is the session of this request.
    current: bool,
}

impl SessionOut {
    fn new(login: Login, current: Uuid) -> Self {
        Self {
            id: Id(login.id),
            created_at: TimeOut(Timestamp::from(login.created_at)),
            last_used_at: TimeOut(login.last_used_at.into()),
            expires_at: TimeOut(login.expires_at.into()),
            user_agent: login.user_agent,
            address: login.address,
            means: login.means,
            current: login.id == current,
        }
    }
}

/// List your sessions
#[api_v2_operation(tags(Authentication), operation_id = "list_sessions")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<SessionOut>, ApiError> {
    let caller = ask.subject.caller;
    let page = ask.state.store.list_logins(caller.user_id, ask.query.into()).await?;
    let items = page.items.into_iter().map(|login| SessionOut::new(login, caller.login_id)).collect();
    Ok(Listed { items, total: page.total })
}

/// End another session
#[api_v2_operation(tags(Authentication), operation_id = "end_session")]
pub async fn end(ask: Checked<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let entry = Entry::new(action::SESSION_END, caller.user_id, actor);
    let ended = run_detached(end_logins(ask.state, vec![(path.id.0, entry)])).await?;
    if ended > 0 { Ok(Done("Session ended")) } else { Err(ApiError::not_found("Session not found")) }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/auth/logout").route(post().to(logout)),
        at("/auth/sessions").route(get().to(list)),
        at("/auth/sessions/{id}").route(delete().to(end)),
    ]
}
