//! `/api-keys`: keys with which agents open their servers.

use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use secrecy::ExposeSecret;
use serde::Serialize;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::{At, Name, Reference};
use super::extract::param::{Id as IdParam, MAX_OFFSET, Whole, page};
use super::extract::{self, Ask, CallerAt, IdPath, NoQuery, SignedIn};
use super::field_out::{Id, Moment};
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
    /// The server that the key opens.
    server_id: Reference,
    name: Name,
    /// When the key stops working. Defaults to never.
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
    created_at: Moment,
    last_used_at: Option<Moment>,
    expires_at: Option<Moment>,
}

impl From<ApiKey> for ApiKeyOut {
    fn from(key: ApiKey) -> Self {
        Self {
            id: Id(key.id),
            name: key.name,
            server_id: Id(key.server_id),
            prefix: key.prefix,
            created_at: Moment(key.created_at.into()),
            last_used_at: key.last_used_at.map(|at| Moment(at.into())),
            expires_at: key.expires_at.map(|at| Moment(at.into())),
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
    created_at: Moment,
    last_used_at: Option<Moment>,
    expires_at: Option<Moment>,
    /// The secret. It is shown in this answer and never again.
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
    /// How many entries to leave out at the beginning.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// Your API keys
///
/// Newest first, without their secrets.
#[api_v2_operation(tags("API keys"), operation_id = "list_api_keys")]
pub async fn list(ask: Ask<SignedIn, ApiKeysQuery>) -> Result<Listed<ApiKeyOut>, ApiError> {
    let query = ask.query;
    let server_id = query.server_id.map(|IdParam(id)| id);
    let wanted = page(query.limit, query.offset);
    let found = ask.state.store.list_api_keys(ask.subject.caller.user_id, server_id, wanted).await?;
    Ok(Listed { items: found.items.into_iter().map(ApiKeyOut::from).collect(), total: found.total })
}

/// Create an API key
///
/// The key opens exactly one server, for its agent, and nothing of the REST API.
#[api_v2_operation(tags("API keys"), operation_id = "create_api_key")]
pub async fn create(
    ask: Ask<SignedIn, NoQuery, extract::Json<ApiKeyIn>>,
) -> Result<CreatedJson<FreshApiKeyOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let expires_at = input.expires_at.map(|At(at)| at);
    if expires_at.is_some_and(|at| at <= ask.state.clock.now()) {
        // Not a fault of the form: the same request was right a while ago.
        return Err(ApiError::Refused { code: ErrorCode::BadRequest, detail: "expires_at is in the past".into() });
    }
    let access = ask.state.accounts.access.server(&ask.subject.caller, input.server_id.0, Action::Manage).await?;
    let fresh = api_key::generate().map_err(ApiError::internal)?;
    let new = NewApiKey {
        owner_id: access.owner_id(),
        server_id: access.server_id(),
        name: input.name.0,
        prefix: fresh.prefix,
        digest: fresh.digest,
        expires_at,
    };
    let ApiKeyOut { id, name, server_id, prefix, created_at, last_used_at, expires_at } =
        ask.state.store.create_api_key(new, ask.subject.actor).await?.into();
    let key = fresh.key.expose_secret().to_owned();
    Ok(CreatedJson(FreshApiKeyOut { id, name, server_id, prefix, created_at, last_used_at, expires_at, key }))
}

/// Revoke an API key
///
/// The session that uses it is closed at once.
#[api_v2_operation(tags("API keys"), operation_id = "revoke_api_key")]
pub async fn revoke(ask: Ask<CallerAt<IdPath>>) -> Result<Done, ApiError> {
    let CallerAt { caller, actor, path } = ask.subject;
    let not_found = || ApiError::not_found("API key not found");
    let key = ask.state.store.find_own_api_key(caller.user_id, path.id.0).await?.ok_or_else(not_found)?;
    let access = ask.state.accounts.access.server(&caller, key.server_id, Action::Manage).await?;
    // In a task of its own: a client that goes away must not leave a session behind that its key does not open.
    let revoked = actix_web::rt::spawn(async move {
        let deleted = ask.state.store.delete_api_key(access.owner_id(), &key, actor).await;
        // Whatever the database said: a deletion whose answer was lost has happened all the same.
        effects::commit(&ask.state, Change::KeyRevoked { key_id: key.id }).await;
        deleted
    });
    if revoked.await.map_err(ApiError::internal)?? { Ok(Done("API key revoked")) } else { Err(not_found()) }
}

/// Its routes. Fixed paths stand before those with parameters that they would match.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/api-keys/me").route(get().to(list)),
        at("/api-keys").route(post().to(create)),
        at("/api-keys/{id}").route(delete().to(revoke)),
    ]
}
