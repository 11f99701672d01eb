//! `/users`: the accounts of the service, for its administrators.

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, put};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;

use super::error::ApiError;
use super::extract::fault::{Faults, Part};
use super::extract::param::{Id as IdParam, MAX_OFFSET, SearchText, Whole, page};
use super::extract::{self, Administrator, Checked, IdPath, NoQuery, Recent};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::reply::{Done, Listed, fault_of};
use super::task::run_detached;
use crate::change::Change;
use crate::effects;
use crate::store::{Account, AccountDeletion, AccountPatch, DeletedAccount, StoreError};

/// An account.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AccountOut {
    id: Id,
    email: String,
    username: String,
    full_name: String,
    is_admin: bool,
    /// Whether the account cannot sign in.
    disabled: bool,
    created_at: TimeOut,
    /// The last sign-in; null if there was none.
    last_login_at: Option<TimeOut>,
    /// Number of servers that the account owns.
    servers: u64,
    /// Number of places where the account is signed in.
    sessions: u64,
    second_factor: AccountFactorsOut,
}

/// The second factors of an account.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AccountFactorsOut {
    /// Whether an authenticator app is set up.
    totp: bool,
    /// Number of passkeys.
    passkeys: u64,
}

impl From<Account> for AccountOut {
    fn from(account: Account) -> Self {
        let Account { user, servers, sessions, totp, passkeys } = account;
        Self {
            id: Id(user.id),
            email: user.email,
            username: user.username,
            full_name: user.full_name,
            is_admin: user.is_admin,
            disabled: user.disabled_at.is_some(),
            created_at: TimeOut(user.created_at.into()),
            last_login_at: user.last_login_at.map(|at| TimeOut(at.into())),
            servers,
            sessions,
            second_factor: AccountFactorsOut { totp, passkeys },
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct UsersQuery {
    /// Text in the user name, e-mail address or full name.
    #[deserr(default)]
    q: Option<SearchText>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// List the accounts
///
/// For administrators. Newest first.
#[api_v2_operation(tags(Users), operation_id = "list_users")]
pub async fn list(ask: Checked<Administrator, UsersQuery>) -> Result<Listed<AccountOut>, ApiError> {
    let UsersQuery { q, limit, offset } = ask.query;
    let (text, now) = (q.map(|SearchText(text)| text), ask.state.clock.now());
    let found = ask.state.store.list_accounts(text, now, page(limit, offset)).await?;
    Ok(Listed { items: found.items.into_iter().map(AccountOut::from).collect(), total: found.total })
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AccountPatchIn {
    /// Whether the user administers the service.
    #[deserr(default)]
    is_admin: Option<bool>,
    /// Whether the account cannot sign in.
    #[deserr(default)]
    disabled: Option<bool>,
}

/// Change an account
///
/// For administrators. Changes the given fields. Disabling an account ends its sessions, tokens and WebSockets at once. Its
/// agents keep sending, and its alerts keep notifying. An administrator's open invitations end with the role. 400
/// `last_admin` if nobody could administer the service any more.
#[api_v2_operation(tags(Users), operation_id = "update_user")]
pub async fn update(
    ask: Checked<Recent<Administrator<IdPath>>, NoQuery, extract::Json<AccountPatchIn>>,
) -> Result<Json<AccountOut>, ApiError> {
    let (Recent(Administrator { actor, path, .. }), extract::Json(input)) = (ask.subject, ask.body);
    let patch = AccountPatch { is_admin: input.is_admin, is_disabled: input.disabled };
    let (state, user_id) = (ask.state, path.id.0);
    run_detached(async move {
        let changed = state.store.change_account(user_id, patch, actor).await;
        // Even after an error: a change may be stored although its answer was lost.
        effects::commit(&state, Change::AccountChanged { user_id }).await;
        changed?.ok_or_else(not_found)?;
        let account = state.store.find_account(user_id, state.clock.now()).await?;
        Ok(Json(account.ok_or_else(not_found)?.into()))
    })
    .await
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DeletionQuery {
    /// The account that gets the servers.
    #[deserr(default)]
    servers_to: Option<IdParam>,
}

/// Delete an account
///
/// For administrators. The servers go to the account `servers_to` with everything that belongs to a server: keys, its own
/// thresholds, alerts, commands, events and history. Thresholds for tags and for all servers, silences, channels, views,
/// dashboards and batches of the account end. 400 `owns_servers` if the account has servers and nobody gets them, 400
/// `last_admin` if nobody could administer the service any more.
#[api_v2_operation(tags(Users), operation_id = "delete_user")]
pub async fn remove(ask: Checked<Recent<Administrator<IdPath>>, DeletionQuery>) -> Result<Done, ApiError> {
    let Recent(Administrator { actor, path, .. }) = ask.subject;
    let (user_id, servers_to) = (path.id.0, ask.query.servers_to.map(|IdParam(id)| id));
    if servers_to == Some(user_id) {
        let msg = "the servers cannot stay with the account that is deleted";
        return Err(ApiError::Invalid(fault_of("servers_to", "value_error.same_user", msg).within(Part::Query)));
    }
    let state = ask.state;
    run_detached(async move {
        let deletion = AccountDeletion { user_id, servers_to, verified_hash: None, now: state.clock.now() };
        let deleted = state.store.delete_account(deletion, actor).await;
        let batches = match &deleted {
            Ok(Some(DeletedAccount { batches, .. })) => Some(batches.clone()),
            // The account may be deleted although the answer was lost. After other errors it is not, and its agents stay connected.
            Err(StoreError::Database(_)) => Some(Vec::new()),
            Ok(None) | Err(_) => None,
        };
        if let Some(batches) = batches {
            effects::commit(&state, Change::AccountDeleted { user_id, servers_to, batches }).await;
        }
        let DeletedAccount { is_gone, .. } = deleted?.ok_or_else(not_found)?;
        if !is_gone {
            state.store.finish_deletion(user_id).await?;
        }
        Ok(Done("Account deleted"))
    })
    .await
}

fn not_found() -> ApiError {
    ApiError::not_found("User not found")
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![at("/users").route(get().to(list)), at("/users/{id}").route(put().to(update)).route(delete().to(remove))]
}
