//! `/users/invitations`: who may make an account, for the service's administrators.

use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use secrecy::ExposeSecret;
use serde::Serialize;

use super::error::ApiError;
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::Faults;
use super::extract::field::{Email, Number};
use super::extract::param::PageQuery;
use super::extract::{self, Administrator, Checked, IdPath, NoQuery, Recent};
use super::field_out::{Id, TimeOut};
use super::grants_in::{self, InvitedGrantIn, InvitedGrantOut};
use super::path::at;
use super::reply::{Done, Listed};
use super::task::run_detached;
use crate::auth::access::Action;
use crate::auth::invitation;
use crate::store::{GrantScope, InvitedGrant, NewInvitation, OpenInvitation};

const DEFAULT_HOURS: u64 = 72;

const HOUR_MS: i64 = 3_600_000;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct InvitationIn {
    /// The only address that may register with it. By default any may.
    #[deserr(default)]
    email: Option<Email>,
    /// What the new account may do to your servers.
    #[deserr(default)]
    grants: Option<Vec<CrossChecked<InvitedGrantIn>>>,
    /// Hours until it ends. Defaults to 72.
    #[deserr(default)]
    expires_in_hours: Option<Number<1, 720>>,
}

impl CrossCheck for InvitationIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let grants: Option<Vec<_>> = fields.sound("grants");
        grants_in::few(grants.as_deref().unwrap_or_default())
    }
}

/// A new invitation.
#[derive(Serialize, Apiv2Schema)]
pub struct FreshInvitationOut {
    id: Id,
    /// The page on which somebody makes an account with it. Only this response contains it.
    url: String,
    /// The value of `invitation` when somebody registers. Only this response contains it.
    token: String,
    expires_at: TimeOut,
}

/// An open invitation, without its token.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct InvitationOut {
    id: Id,
    /// The only address that may register with it; null for any.
    email: Option<String>,
    /// What the new account may do to the servers of the administrator who invites.
    grants: Vec<InvitedGrantOut>,
    /// The administrator who invites; null for a command on the service's machine.
    invited_by: Option<String>,
    created_at: TimeOut,
    expires_at: TimeOut,
}

impl From<OpenInvitation> for InvitationOut {
    fn from(open: OpenInvitation) -> Self {
        let OpenInvitation { invitation, invited_by } = open;
        Self {
            id: Id(invitation.id),
            email: invitation.email,
            grants: InvitedGrant::all_of(&invitation.grants).into_iter().map(InvitedGrantOut::from).collect(),
            invited_by,
            created_at: TimeOut(invitation.created_at.into()),
            expires_at: TimeOut(invitation.expires_at.into()),
        }
    }
}

/// List the open invitations
///
/// For administrators. Newest first, without their tokens. One that was used, revoked or has expired is not in the list.
#[api_v2_operation(tags(Users), operation_id = "list_invitations")]
pub async fn list(ask: Checked<Administrator, PageQuery>) -> Result<Listed<InvitationOut>, ApiError> {
    let found = ask.state.store.list_invitations(ask.state.clock.now(), ask.query.into()).await?;
    Ok(Listed { items: found.items.into_iter().map(InvitationOut::from).collect(), total: found.total })
}

/// Invite somebody
///
/// For administrators. Anyone who has the link can make one account, also if registration is closed; it has the `grants` on your
/// servers from the start. At most 100 invitations are open at a time (400 `quota_exceeded`).
#[api_v2_operation(tags(Users), operation_id = "create_invitation")]
pub async fn create(
    ask: Checked<Recent<Administrator>, NoQuery, extract::Json<CrossChecked<InvitationIn>>>,
) -> Result<CreatedJson<FreshInvitationOut>, ApiError> {
    let (Recent(Administrator { actor, caller, service, .. }), extract::Json(CrossChecked(input))) =
        (ask.subject, ask.body);
    let base = service?;
    let grants = input.grants.into_iter().flatten().map(|CrossChecked(grant)| InvitedGrant::try_from(grant));
    let grants = grants.collect::<Result<Vec<_>, _>>()?;
    for grant in &grants {
        if let GrantScope::Server(server_id) = grant.scope {
            ask.state.accounts.access.server(&caller, server_id, Action::Own).await?;
        }
    }
    let fresh = invitation::generate().map_err(ApiError::internal)?;
    let hours = input.expires_in_hours.map_or(DEFAULT_HOURS, |Number(hours)| hours);
    let now = ask.state.clock.now();
    let new = NewInvitation {
        owner_id: Some(caller.user_id),
        digest: fresh.digest,
        email: input.email.map(|Email(email)| email),
        grants,
        now,
        expires_at: now.plus_millis(i64::try_from(hours).unwrap_or(i64::MAX).saturating_mul(HOUR_MS)),
    };
    let state = ask.state;
    let row = run_detached(async move { Ok(state.store.create_invitation(new, actor).await?) }).await?;
    Ok(CreatedJson(FreshInvitationOut {
        id: Id(row.id),
        url: invitation::url(&base, &fresh.token),
        token: fresh.token.expose_secret().to_owned(),
        expires_at: TimeOut(row.expires_at.into()),
    }))
}

/// Revoke an invitation
///
/// For administrators.
#[api_v2_operation(tags(Users), operation_id = "revoke_invitation")]
pub async fn revoke(ask: Checked<Recent<Administrator<IdPath>>>) -> Result<Done, ApiError> {
    let Recent(Administrator { actor, path, .. }) = ask.subject;
    let state = ask.state;
    let existed = run_detached(async move { Ok(state.store.delete_invitation(path.id.0, actor).await?) }).await?;
    if existed { Ok(Done("Invitation revoked")) } else { Err(ApiError::not_found("Invitation not found")) }
}

/// The routes. They come before those of users, whose parameter would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/users/invitations").route(get().to(list)).route(post().to(create)),
        at("/users/invitations/{id}").route(delete().to(revoke)),
    ]
}
