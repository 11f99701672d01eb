//! A container of a server, and somebody who may do something to it.

use actix_web::HttpRequest;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::v2::models::DefaultOperationRaw;
use serde_json::json;
use signalbox_protocol::container::is_container_name;

use super::fault::Faults;
use super::field::{described, string};
use super::param::Id;
use super::subject::{ServerAction, Subject, identify, needs_token};
use super::{Named, peer_address};
use crate::auth::Caller;
use crate::auth::access::ServerAccess;
use crate::http::error::ApiError;
use crate::state::State;

/// A container's id, the beginning of it, or its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerId(pub String);

impl Deserr<Faults> for ContainerId {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = string(value, location)?;
        if is_container_name(&text) {
            return Ok(Self(text));
        }
        let msg = "string does not match regex \"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$\"";
        Err(Faults::at(location, "value_error.str.regex", msg))
    }
}

described!(
    ContainerId,
    json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$", "maxLength": 128, "example": "web-1" })
);

/// `/.../{server_id}/containers/{container_id}`
#[derive(Debug, Clone, Deserr, paperclip::actix::Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ContainerPath {
    pub server_id: Id,
    pub container_id: ContainerId,
}

/// Somebody who may do this to the containers of the server that the path names.
#[derive(Debug, Clone)]
pub struct OnContainer<A> {
    pub access: ServerAccess,
    pub caller: Caller,
    /// From where.
    pub address: String,
    pub container_id: String,
    _named: Named<A>,
}

impl<A: ServerAction> Subject for OnContainer<A> {
    type Identity = Caller;
    type Path = ContainerPath;

    async fn identify(state: &State, request: &HttpRequest) -> Result<Caller, ApiError> {
        identify(state, request).await
    }

    async fn authorize(
        state: &State,
        caller: Caller,
        path: ContainerPath,
        request: &HttpRequest,
    ) -> Result<Self, ApiError> {
        let access = state.access.server(&caller, path.server_id.0, A::ACTION).await?;
        let ContainerId(container_id) = path.container_id;
        Ok(Self { access, caller, address: peer_address(request), container_id, _named: std::marker::PhantomData })
    }

    fn document(op: &mut DefaultOperationRaw) {
        needs_token(op);
    }
}
