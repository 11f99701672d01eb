//! What a grant gives, and on which servers: the same for grants and for those of an invitation.

use deserr::Deserr;
use paperclip::actix::Apiv2Schema;
use serde::Serialize;

use super::error::ApiError;
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, Part};
use super::extract::field::{Reference, Tag};
use super::field_out::Id;
use super::people_out::{RightIn, RightOut, RoleIn, RoleOut};
use super::reply::fault_of;
use crate::auth::access::{Rights, Role};
use crate::store::{GrantScope, InvitedGrant};

/// More than an administrator gives one person at once.
const MAX_GRANTS: usize = 50;

/// Which servers are granted: exactly one of the fields.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ScopeIn {
    /// One server that you own, or manage. An invitation is only for servers that you own.
    #[deserr(default)]
    server_id: Option<Reference>,
    /// Your own servers with this tag, future ones too.
    #[deserr(default)]
    tag: Option<Tag>,
    /// True for all of your own servers, future ones too.
    #[deserr(default)]
    all: Option<bool>,
}

impl CrossCheck for ScopeIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        if names_one_reach(fields, ["server_id", "tag"]) {
            return Ok(());
        }
        Err(Faults::at(fields.location, "value_error.reach", ONE_REACH))
    }
}

const ONE_REACH: &str = "name exactly one of server_id, tag and all";

/// Whether exactly one of these fields is there, or else `all` is true. A faulty `all` may stand for either value.
pub fn names_one_reach(fields: &Fields<'_>, others: [&str; 2]) -> bool {
    let count = others.into_iter().filter(|name| fields.is_given(name)).count();
    match fields.sound::<Option<bool>>("all") {
        Some(Some(true)) => count == 0,
        Some(Some(false) | None) => count == 1,
        None => count <= 1,
    }
}

/// Refuses once more what does not name exactly one: what was not checked must not become all servers.
impl TryFrom<ScopeIn> for GrantScope {
    type Error = ApiError;

    fn try_from(scope: ScopeIn) -> Result<Self, ApiError> {
        match (scope.server_id, scope.tag, scope.all.unwrap_or(false)) {
            (Some(Reference(id)), None, false) => Ok(Self::Server(id)),
            (None, Some(Tag(tag)), false) => Ok(Self::Tag(tag)),
            (None, None, true) => Ok(Self::All),
            _ => Err(ApiError::Invalid(fault_of("scope", "value_error.reach", ONE_REACH).within(Part::Body))),
        }
    }
}

/// Checks that only operators have some of the rights, and at least one.
pub fn check_rights(given: Option<RoleIn>, fields: &Fields<'_>) -> Result<(), Faults> {
    let (Some(RoleIn(role)), Some(rights)) = (given, fields.sound::<Vec<RightIn>>("rights")) else { return Ok(()) };
    let (kind, msg) = match (role, rights.as_slice()) {
        (Role::Operator, []) => ("value_error.list.min_items", "ensure this value has at least 1 items"),
        (Role::Operator, _) | (_, []) => return Ok(()),
        (_, _) => ("value_error.rights", "only the role operator has some of the rights"),
    };
    Err(Faults::at(fields.location.push_key("rights"), kind, msg))
}

/// The rights that a grant gives by itself. Operators have all of them unless it names some.
pub fn rights_of(role: RoleIn, rights: Option<Vec<RightIn>>) -> Rights {
    match (role.0, rights) {
        (Role::Operator, None) => Rights::ALL,
        (Role::Operator, Some(rights)) => rights.into_iter().map(|RightIn(right)| right).collect(),
        (Role::Viewer | Role::Responder | Role::Manager | Role::Owner, _) => Rights::NONE,
    }
}

/// A role on servers, for somebody who is invited.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct InvitedGrantIn {
    scope: CrossChecked<ScopeIn>,
    role: RoleIn,
    /// For the role `operator`, some of the rights. Defaults to all of them.
    #[deserr(default)]
    rights: Option<Vec<RightIn>>,
}

impl CrossCheck for InvitedGrantIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_rights(fields.sound("role"), fields)
    }
}

impl TryFrom<InvitedGrantIn> for InvitedGrant {
    type Error = ApiError;

    fn try_from(grant: InvitedGrantIn) -> Result<Self, ApiError> {
        let InvitedGrantIn { scope: CrossChecked(scope), role, rights } = grant;
        Ok(Self { scope: scope.try_into()?, role: role.0, rights: rights_of(role, rights) })
    }
}

/// Whether these are at most as many as an invitation may have.
pub fn few(grants: &[CrossChecked<InvitedGrantIn>]) -> Result<(), Faults> {
    let msg = || format!("ensure this value has at most {MAX_GRANTS} items");
    if grants.len() <= MAX_GRANTS { Ok(()) } else { Err(fault_of("grants", "value_error.list.max_items", &msg())) }
}

/// Which servers: the one of the fields that is there.
#[derive(Debug, Default, Serialize, Apiv2Schema)]
pub struct InvitedScopeOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    server_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<bool>,
}

/// A role on servers, for somebody who is invited.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct InvitedGrantOut {
    scope: InvitedScopeOut,
    role: RoleOut,
    rights: Vec<RightOut>,
}

impl From<InvitedGrant> for InvitedGrantOut {
    fn from(grant: InvitedGrant) -> Self {
        let scope = match grant.scope {
            GrantScope::Server(id) => InvitedScopeOut { server_id: Some(Id(id)), ..Default::default() },
            GrantScope::Tag(tag) => InvitedScopeOut { tag: Some(tag), ..Default::default() },
            GrantScope::All => InvitedScopeOut { all: Some(true), ..Default::default() },
        };
        Self { scope, role: RoleOut(grant.role), rights: grant.rights.iter().map(RightOut).collect() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scope_that_was_not_checked_never_widens() {
        let scope = |json: serde_json::Value| {
            let unchecked: ScopeIn = deserr::deserialize::<_, _, Faults>(json).unwrap();
            GrantScope::try_from(unchecked).ok()
        };

        assert_eq!(scope(json!({ "all": true })), Some(GrantScope::All));
        assert_eq!(scope(json!({ "tag": "db", "all": false })), Some(GrantScope::Tag("db".to_owned())));
        for faulty in [json!({}), json!({ "all": false }), json!({ "tag": "db", "all": true })] {
            assert_eq!(scope(faulty.clone()), None, "{faulty}");
        }
    }
}
