//! The service's administrators as callers.

use actix_web::HttpRequest;
use deserr::Deserr;
use paperclip::v2::models::DefaultOperationRaw;
use paperclip::v2::schema::Apiv2Schema;

use super::fault::Faults;
use super::subject::{NoPath, Subject, identify, needs_token};
use crate::audit::Actor;
use crate::auth::Caller;
use crate::http::client_address::client_address;
use crate::http::error::{ApiError, ErrorCode};
use crate::http::install;
use crate::state::State;

/// A signed-in administrator of the service.
#[derive(Debug)]
pub struct Administrator<P = NoPath> {
    /// The administrator and their address, for the audit log.
    pub actor: Actor,
    pub caller: Caller,
    pub path: P,
    /// The address at which people reach the service, or why it is not known.
    pub service: Result<String, ApiError>,
}

impl<P: Deserr<Faults> + Apiv2Schema> Subject for Administrator<P> {
    type Identity = Caller;
    type Path = P;

    async fn identify(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
        identify(state, request).await
    }

    async fn authorize(state: &State, caller: Caller, path: P, request: &HttpRequest) -> Result<Self, ApiError> {
        if !caller.is_admin {
            return Err(ApiError::code(ErrorCode::Forbidden));
        }
        let actor = caller.at(client_address(request, state));
        Ok(Self { actor, caller, path, service: install::address(request, state) })
    }

    fn document(op: &mut DefaultOperationRaw) {
        needs_token(op);
    }
}
