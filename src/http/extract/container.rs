//! A container of a server, and a caller who may act on it.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use signalbox_protocol::container::is_container_name;
use uuid::Uuid;

use super::fault::Faults;
use super::field::{described, string};
use super::param::Id;
use super::subject::{OnServer, ServerPath};

/// A container's id, the beginning of its id, or its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerId(pub String);

impl Deserr<Faults> for ContainerId {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = string(value, location)?;
        if is_container_name(&text) {
            return Ok(Self(text));
        }
        let msg = format!("string does not match regex \"{CONTAINER_ID}\"");
        Err(Faults::at(location, "value_error.str.regex", msg))
    }
}

/// The pattern of a container's id or name.
pub const CONTAINER_ID: &str = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$";

described!(ContainerId, json!({ "type": "string", "pattern": CONTAINER_ID, "maxLength": 128, "example": "web-1" }));

/// The path `/.../{server_id}/containers/{container_id}`.
#[derive(Debug, Clone, Deserr, paperclip::actix::Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ContainerPath {
    pub server_id: Id,
    pub container_id: ContainerId,
}

impl ServerPath for ContainerPath {
    fn server_id(&self) -> Uuid {
        self.server_id.0
    }
}

/// A caller who may do this to the container in the path.
pub type OnContainer<A> = OnServer<A, ContainerPath>;
