//! `/auth/oidc/identities`: the accounts at the provider that are linked to the caller's.

use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;

use crate::audit::{Entry, action};
use crate::change::Change;
use crate::effects;
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::param::PageQuery;
use crate::http::extract::{CallerAt, Checked, Fresh, IdPath, SignedIn};
use crate::http::field_out::{Id, TimeOut};
use crate::http::reply::{Done, Listed};
use crate::http::task::run_detached;
use crate::store::{ExternalIdentity, Removal};

/// An account at the identity provider that is linked to yours.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct IdentityOut {
    id: Id,
    issuer: String,
    /// The provider's name of the account.
    subject: String,
    /// The e-mail address at the last sign-in.
    email: Option<String>,
    /// The groups at the last sign-in.
    groups: Vec<String>,
    created_at: TimeOut,
    last_sign_in_at: TimeOut,
}

impl From<ExternalIdentity> for IdentityOut {
    fn from(row: ExternalIdentity) -> Self {
        Self {
            id: Id(row.id),
            issuer: row.issuer,
            subject: row.subject,
            email: Some(row.email).filter(|email| !email.is_empty()),
            // The store wrote them.
            groups: serde_json::from_str(&row.groups).unwrap_or_default(),
            created_at: TimeOut(row.created_at.into()),
            last_sign_in_at: TimeOut(row.last_sign_in_at.into()),
        }
    }
}

/// List your accounts at the identity provider
#[api_v2_operation(tags(Authentication), operation_id = "list_identities")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<IdentityOut>, ApiError> {
    let page = ask.state.store.list_identities(ask.subject.caller.user_id, ask.query.into()).await?;
    Ok(Listed { items: page.items.into_iter().map(IdentityOut::from).collect(), total: page.total })
}

/// Unlink an account at the identity provider
///
/// Ends the sessions that came from there, and your places in teams that are groups there. An account keeps its last link if it
/// has no password, or may not sign in with it (400 `no_password`). Answers 403 `step_up_required` if this session has not proved
/// who you are in the last 15 minutes, or not the second factor that the account has.
#[api_v2_operation(tags(Authentication), operation_id = "unlink_identity")]
pub async fn unlink(ask: Checked<Fresh<CallerAt<IdPath>>>) -> Result<Done, ApiError> {
    let Fresh(CallerAt { caller, actor, path }) = ask.subject;
    let entry = Entry::new(action::IDENTITY_UNLINK, caller.user_id, actor);
    let state = ask.state;
    state.accounts.factors.check_may_change(&caller).await?;
    let has_password = state.accounts.can_use_password(caller.user_id).await?;
    let removed = run_detached(async move {
        let (removal, ended) = state.store.unlink_identity(path.id.0, has_password, entry).await?;
        for login_id in ended {
            effects::commit(&state, Change::LoginEnded { login_id }).await;
        }
        // The teams of the provider's groups.
        effects::commit(&state, Change::AccessChanged).await;
        Ok(removal)
    });
    match removed.await? {
        Removal::Removed => Ok(Done("Account unlinked")),
        Removal::LastWayIn => Err(ApiError::code(ErrorCode::NoPassword)),
        Removal::NotFound => Err(ApiError::not_found("Linked account not found")),
    }
}
