//! The caller and the object of a request: a handler's signature names what the caller has proved.

use std::future::Future;

use actix_web::HttpRequest;
use actix_web::http::header;
use deserr::Deserr;
use paperclip::v2::models::DefaultOperationRaw;
use paperclip::v2::schema::Apiv2Schema;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::Named;
use super::fault::Faults;
use super::param::Id;
use super::token_rules;
use crate::audit::Actor;
use crate::auth::Caller;
use crate::auth::access::{Action, Right, ServerAccess};
use crate::auth::factors::{FactorError, Factors};
use crate::auth::setup::Via;
use crate::http::client_address::{client_address, via};
use crate::http::error::{ApiError, ErrorCode};
use crate::state::State;

/// The caller and the object of a request.
pub trait Subject: Sized {
    type Identity;
    type Path: Deserr<Faults> + Apiv2Schema;

    /// Identifies the caller, before anything else is checked.
    fn identify(state: &State, request: &HttpRequest) -> impl Future<Output = Result<Self::Identity, ApiError>>;

    /// Checks the headers that it reads; their faults are reported with the others.
    fn check_headers(_: &HttpRequest) -> Result<(), Faults> {
        Ok(())
    }

    /// Checks the caller's rights, once the request is known to be well-formed.
    fn authorize(
        state: &State,
        identity: Self::Identity,
        path: Self::Path,
        request: &HttpRequest,
    ) -> impl Future<Output = Result<Self, ApiError>>;

    /// Documents whether a token is required.
    fn document(_: &mut DefaultOperationRaw) {}
}

/// The name of the security scheme in the OpenAPI document.
pub const BEARER: &str = "bearer";

pub fn needs_token(op: &mut DefaultOperationRaw) {
    op.security.push([(BEARER.to_owned(), Vec::new())].into());
}

/// A path without parameters.
#[derive(Debug, Clone, Copy, Deserr, paperclip::actix::Apiv2Schema)]
#[deserr(error = Faults)]
pub struct NoPath {}

/// The path `/.../{id}`.
#[derive(Debug, Clone, Copy, Deserr, paperclip::actix::Apiv2Schema)]
#[deserr(error = Faults)]
pub struct IdPath {
    pub id: Id,
}

/// The path `/.../{server_id}`.
#[derive(Debug, Clone, Copy, Deserr, paperclip::actix::Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ServerIdPath {
    pub server_id: Id,
}

/// A path that names a server.
pub trait ServerPath {
    fn server_id(&self) -> Uuid;
}

impl ServerPath for IdPath {
    fn server_id(&self) -> Uuid {
        self.id.0
    }
}

impl ServerPath for ServerIdPath {
    fn server_id(&self) -> Uuid {
        self.server_id.0
    }
}

/// Any caller, with or without a token.
#[derive(Debug, Clone)]
pub struct Anyone {
    pub user_agent: String,
    pub address: String,
    /// The peer's port, which distinguishes connections from the same address.
    pub connection: u16,
    pub via: Via,
}

impl Subject for Anyone {
    type Identity = ();
    type Path = NoPath;

    async fn identify(_: &State, _: &HttpRequest) -> Result<(), ApiError> {
        Ok(())
    }

    async fn authorize(state: &State, (): (), _: NoPath, request: &HttpRequest) -> Result<Self, ApiError> {
        let user_agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let connection = request.peer_addr().map_or(0, |peer| peer.port());
        let user_agent = user_agent.unwrap_or_default().to_owned();
        Ok(Self { user_agent, address: client_address(request, state), connection, via: via(request) })
    }
}

/// A signed-in caller.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub caller: Caller,
    /// The caller and their address, for the audit log.
    pub actor: Actor,
}

impl Subject for SignedIn {
    type Identity = Caller;
    type Path = NoPath;

    async fn identify(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
        identify(state, request).await
    }

    async fn authorize(state: &State, caller: Caller, _: NoPath, request: &HttpRequest) -> Result<Self, ApiError> {
        let actor = caller.at(client_address(request, state));
        Ok(Self { caller, actor })
    }

    fn document(op: &mut DefaultOperationRaw) {
        needs_token(op);
    }
}

/// A signed-in caller, and a path whose object the handler looks up among theirs.
#[derive(Debug, Clone)]
pub struct CallerAt<P> {
    pub caller: Caller,
    /// The caller and their address, for the audit log.
    pub actor: Actor,
    pub path: P,
}

impl<P: Deserr<Faults> + Apiv2Schema> Subject for CallerAt<P> {
    type Identity = Caller;
    type Path = P;

    async fn identify(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
        identify(state, request).await
    }

    async fn authorize(state: &State, caller: Caller, path: P, request: &HttpRequest) -> Result<Self, ApiError> {
        let actor = caller.at(client_address(request, state));
        Ok(Self { caller, actor, path })
    }

    fn document(op: &mut DefaultOperationRaw) {
        needs_token(op);
    }
}

/// What a handler does to a server, as a type.
pub trait ServerAction {
    const ACTION: Action;
}

/// Sees the server.
#[derive(Debug, Clone, Copy)]
pub struct See;

/// Starts and stops its containers.
#[derive(Debug, Clone, Copy)]
pub struct UseContainers;

/// Runs commands on it, and reads those that ran.
#[derive(Debug, Clone, Copy)]
pub struct UseCommands;

/// Reads its logs.
#[derive(Debug, Clone, Copy)]
pub struct UseLogs;

/// Opens terminals on it, and reads what others showed.
#[derive(Debug, Clone, Copy)]
pub struct UseTerminal;

/// Writes notes about it.
#[derive(Debug, Clone, Copy)]
pub struct Respond;

/// Changes the server.
#[derive(Debug, Clone, Copy)]
pub struct Manage;

/// Deletes the server.
#[derive(Debug, Clone, Copy)]
pub struct Own;

impl ServerAction for See {
    const ACTION: Action = Action::See;
}

impl ServerAction for UseContainers {
    const ACTION: Action = Action::Use(Right::Containers);
}

impl ServerAction for UseCommands {
    const ACTION: Action = Action::Use(Right::Commands);
}

impl ServerAction for UseLogs {
    const ACTION: Action = Action::Use(Right::Logs);
}

impl ServerAction for UseTerminal {
    const ACTION: Action = Action::Use(Right::Terminal);
}

impl ServerAction for Respond {
    const ACTION: Action = Action::Respond;
}

impl ServerAction for Own {
    const ACTION: Action = Action::Own;
}

impl ServerAction for Manage {
    const ACTION: Action = Action::Manage;
}

/// A caller who may do this to the server in the path.
#[derive(Debug, Clone)]
pub struct OnServer<A, P = ServerIdPath> {
    pub access: ServerAccess,
    pub caller: Caller,
    /// The caller, for the audit log.
    pub actor: Actor,
    pub path: P,
    _named: Named<A>,
}

impl<A: ServerAction, P: ServerPath + Deserr<Faults> + Apiv2Schema> Subject for OnServer<A, P> {
    type Identity = Caller;
    type Path = P;

    async fn identify(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
        identify(state, request).await
    }

    async fn authorize(state: &State, caller: Caller, path: P, request: &HttpRequest) -> Result<Self, ApiError> {
        let access = state.accounts.access.server(&caller, path.server_id(), A::ACTION).await?;
        let actor = caller.at(client_address(request, state));
        Ok(Self { access, caller, actor, path, _named: std::marker::PhantomData })
    }

    fn document(op: &mut DefaultOperationRaw) {
        needs_token(op);
    }
}

/// Identifies the caller of a request, and checks whether the token of a program may ask for this at all.
pub async fn identify(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
    let caller = identify_unproved(state, request).await?;
    checked(state, caller, Factors::check_second_factor).await
}

/// Identifies a caller who may not have proved the second factor that they must have.
pub(super) async fn identify_unproved(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
    let token = bearer_token(request).ok_or(ApiError::code(ErrorCode::NotAuthenticated))?;
    let (caller, _) = state.accounts.bearer(token, || client_address(request, state)).await?;
    token_rules::check(state, request, &caller)?;
    Ok(caller)
}

/// The token of the `Authorization` header.
pub fn bearer_token(request: &HttpRequest) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Returns the caller of a token that comes from this address, and when the token expires. Refuses callers who must have a second
/// factor and have not proved one.
pub async fn find_caller(state: &State, token: &str, address: &str) -> Result<(Caller, Timestamp), ApiError> {
    let (caller, expires_at) = state.accounts.bearer(token, || address.to_owned()).await?;
    let caller = checked(state, caller, Factors::check_second_factor).await?;
    Ok((caller, expires_at))
}

/// Returns the caller if they pass this check.
pub(super) async fn checked(
    state: &State,
    caller: Caller,
    check: fn(&Factors, &Caller) -> Result<(), FactorError>,
) -> Result<Caller, ApiError> {
    let caller = state.accounts.factors.passing(&state.accounts.logins, caller, check).await?;
    caller.ok_or(ApiError::code(ErrorCode::TokenRevoked))
}
