//! `DELETE /auth/me`: the end of the caller's own account.

use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, api_v2_operation};

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::Shown;
use super::extract::{self, Checked, NoQuery, SignedIn};
use super::refresh_cookie::{Browser, Jar, WithCookie};
use super::reply::Done;
use super::task::run_detached;
use crate::auth::account::AccountError;
use crate::change::Change;
use crate::effects;
use crate::store::{DeletedAccount, StoreError};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct DeleteMeIn {
    /// Your password.
    password: Shown,
}

/// Delete your account
///
/// Ends with everything that belongs to it, and all your sessions. Delete your servers first, or ask an administrator to
/// give them to another account (400 `owns_servers`). The only administrator cannot leave (400 `last_admin`). A wrong
/// password is 400 `invalid_credentials`.
#[api_v2_operation(tags(Authentication), operation_id = "delete_profile")]
pub async fn delete_me(
    ask: Checked<Browser<SignedIn>, NoQuery, extract::Json<DeleteMeIn>>,
) -> Result<WithCookie<Done>, ApiError> {
    let (state, extract::Json(DeleteMeIn { password: Shown(password) })) = (ask.state, ask.body);
    let Browser { who: SignedIn { caller, actor }, jar } = ask.subject;
    let user_id = caller.user_id;
    let deleted = run_detached(async move {
        let deleted = state.accounts.delete_own(&caller, password, actor).await;
        let batches = match &deleted {
            Ok(DeletedAccount { batches, .. }) => Some(batches.clone()),
            // The account may be deleted although the answer was lost.
            Err(AccountError::Store(StoreError::Database(_))) => Some(Vec::new()),
            Err(_) => None,
        };
        if let Some(batches) = batches {
            effects::commit(&state, Change::AccountDeleted { user_id, servers_to: None, batches }).await;
        }
        if let Ok(DeletedAccount { is_gone: false, .. }) = &deleted {
            state.store.finish_deletion(user_id).await?;
        }
        Ok(deleted)
    });
    match deleted.await? {
        Err(AccountError::InvalidCredentials) => Err(ApiError::code(ErrorCode::InvalidCredentials)),
        other => {
            other?;
            Ok(WithCookie { answer: Done("Account deleted"), cookie: jar.as_ref().map(Jar::clear) })
        }
    }
}
