//! People, roles and rights, as requests and responses name them.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde::{Serialize, Serializer};
use serde_json::json;
use uuid::Uuid;

use super::extract::fault::{Faults, not_a_member};
use super::extract::field::{described, string};
use super::field_out::Id;
use crate::auth::access::{Right, Role};

/// A user, for people.
#[derive(Debug, Clone, Serialize, Apiv2Schema)]
pub struct PersonOut {
    id: Id,
    username: String,
}

impl PersonOut {
    pub fn new(id: Uuid, username: String) -> Self {
        Self { id: Id(id), username }
    }
}

const ROLES: [&str; 5] = ["viewer", "responder", "operator", "manager", "owner"];

const GRANTED: [&str; 4] = ["viewer", "responder", "operator", "manager"];

const RIGHTS: [&str; 4] = ["containers", "commands", "logs", "terminal"];

/// A role on a server. Each contains the ones before it.
#[derive(Debug, Clone, Copy)]
pub struct RoleOut(pub Role);

impl Serialize for RoleOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

described!(RoleOut, json!({ "type": "string", "enum": ROLES, "example": "operator" }));

/// A right of an operator.
#[derive(Debug, Clone, Copy)]
pub struct RightOut(pub Right);

impl Serialize for RightOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

described!(RightOut, json!({ "type": "string", "enum": RIGHTS, "example": "logs" }));

/// A role that a grant can give.
#[derive(Debug, Clone, Copy)]
pub struct RoleIn(pub Role);

impl Deserr<Faults> for RoleIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let word = string(value, location)?;
        let role = Role::of_word(&word).filter(|role| Role::GRANTED.contains(role));
        role.map(Self).ok_or_else(|| not_a_member(&GRANTED, location))
    }
}

described!(RoleIn, json!({ "type": "string", "enum": GRANTED, "example": "operator" }));

/// A right that a grant to an operator can give.
#[derive(Debug, Clone, Copy)]
pub struct RightIn(pub Right);

impl Deserr<Faults> for RightIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let word = string(value, location)?;
        Right::of_word(&word).map(Self).ok_or_else(|| not_a_member(&RIGHTS, location))
    }
}

described!(RightIn, json!({ "type": "string", "enum": RIGHTS, "example": "logs" }));

/// The role by which a list is filtered.
#[derive(Debug, Clone, Copy)]
pub struct OwnRoleParam;

impl Deserr<Faults> for OwnRoleParam {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        match string(value, location)?.as_str() {
            "owner" => Ok(Self),
            _ => Err(not_a_member(&["owner"], location)),
        }
    }
}

described!(OwnRoleParam, json!({ "type": "string", "enum": ["owner"] }));
