//! `/api-keys`: the keys of agents.

use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use secrecy::ExposeSecret;
use serde::Serialize;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::{At, Name, Reference};
use super::extract::param::{Id as IdParam, MAX_OFFSET, Whole, page};
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::reply::{Done, Listed};
use crate::auth::access::Action;
use crate::auth::api_key;
use crate::change::Change;
use crate::effects;
use crate::store::{ApiKey, NewApiKey};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ApiKeyIn {
    /// The server that the key is for.
    server_id: Reference,
    name: Name,
    /// When the key stops working. By default it does not expire.
    #[deserr(default)]
    expires_at: Option<At>,
}

/// A key without its secret.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ApiKeyOut {
    id: Id,
    name: String,
    server_id: Id,
    /// The public part of the key.
    prefix: String,
    created_at: TimeOut,
    last_used_at: Option<TimeOut>,
    expires_at: Option<TimeOut>,
}

impl From<ApiKey> for ApiKeyOut {
    fn from(key: ApiKey) -> Self {
        Self {
            id: Id(key.id),
            name: key.name,
            server_id: Id(key.server_id),
            prefix: key.prefix,
            created_at: TimeOut(key.created_at.into()),
            last_used_at: key.last_used_at.map(|at| TimeOut(at.into())),
            expires_at: key.expires_at.map(|at| TimeOut(at.into())),
        }
    }
}

/// A key with its secret.
#[derive(Serialize, Apiv2Schema)]
pub struct FreshApiKeyOut {
    id: Id,
    name: String,
    server_id: Id,
    prefix: String,
    created_at: TimeOut,
    last_used_at: Option<TimeOut>,
    expires_at: Option<TimeOut>,
    /// The secret. Only this response contains it.
    key: String,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ApiKeysQuery {
    #[deserr(default)]
    server_id: Option<IdParam>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// List the API keys of your servers
///
/// And of those that you manage. Newest first, without their secrets.
#[api_v2_operation(tags("API keys"), operation_id = "list_api_keys")]
pub async fn list(ask: Checked<SignedIn, ApiKeysQuery>) -> Result<Listed<ApiKeyOut>, ApiError> {
    let query = ask.query;
    let server_id = query.server_id.map(|IdParam(id)| id);
    let wanted = page(query.limit, query.offset);
    let managed = ask.state.accounts.access.where_allowed(&ask.subject.caller, Action::Manage);
    let found = ask.state.store.list_api_keys(&managed, server_id, wanted).await?;
    Ok(Listed { items: found.items.into_iter().map(ApiKeyOut::from).collect(), total: found.total })
}

/// Create an API key
///
/// The key lets an agent connect as exactly one server, and gives no access to the REST API.
#[api_v2_operation(tags("API keys"), operation_id = "create_api_key")]
pub async fn create(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<ApiKeyIn>>,
) -> Result<CreatedJson<FreshApiKeyOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let expires_at = input.expires_at.map(|At(at)| at);
    if expires_at.is_some_and(|at| at <= ask.state.clock.now()) {
        // Not a validation error: the same request was valid before.
        return Err(ApiError::Refused { code: ErrorCode::BadRequest, detail: "expires_at is in the past".into() });
    }
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let access = ask.state.accounts.access.server(&caller, input.server_id.0, Action::Manage).await?;
    let fresh = api_key::generate().map_err(ApiError::internal)?;
    let new = NewApiKey {
        owner_id: access.owner_id(),
        server_id: access.server_id(),
        name: input.name.0,
        prefix: fresh.prefix,
        digest: fresh.digest.to_vec(),
        expires_at,
    };
    let ApiKeyOut { id, name, server_id, prefix, created_at, last_used_at, expires_at } =
        ask.state.store.create_api_key(new, actor).await?.into();
    let key = fresh.token.expose_secret().to_owned();
    Ok(CreatedJson(FreshApiKeyOut { id, name, server_id, prefix, created_at, last_used_at, expires_at, key }))
}

/// Revoke an API key
///
/// Closes the session that uses the key immediately.
#[api_v2_operation(tags("API keys"), operation_id = "revoke_api_key")]
pub async fn revoke(ask: Checked<Recent<CallerAt<IdPath>>>) -> Result<Done, ApiError> {
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    let not_found = || ApiError::not_found("API key not found");
    let managed = ask.state.accounts.access.where_allowed(&caller, Action::Manage);
    let key = ask.state.store.find_managed_api_key(&managed, path.id.0).await?.ok_or_else(not_found)?;
    let access = ask.state.accounts.access.server(&caller, key.server_id, Action::Manage).await?;
    // In a separate task: a client that disconnects must not leave a session open whose key was revoked.
    let revoked = actix_web::rt::spawn(async move {
        let deleted = ask.state.store.delete_api_key(access.owner_id(), &key, actor).await;
        // Even after an error: a deletion may be stored although its answer was lost.
        effects::commit(&ask.state, Change::KeyRevoked { key_id: key.id }).await;
        deleted
    });
    if revoked.await.map_err(ApiError::internal)?? { Ok(Done("API key revoked")) } else { Err(not_found()) }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/api-keys/me").route(get().to(list)),
        at("/api-keys").route(post().to(create)),
        at("/api-keys/{id}").route(delete().to(revoke)),
    ]
}
