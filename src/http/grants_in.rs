//! What a grant gives, and on which servers: the same for grants and for those of an invitation.

use deserr::{Deserr, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde::Serialize;

use super::extract::fault::Faults;
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
#[deserr(error = Faults, validate = one_scope -> Faults)]
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

fn one_scope(scope: ScopeIn, location: ValuePointerRef<'_>) -> Result<ScopeIn, Faults> {
    let named = [scope.server_id.is_some(), scope.tag.is_some(), scope.all == Some(true)];
    if named.into_iter().filter(|is_named| *is_named).count() == 1 {
        return Ok(scope);
    }
    Err(Faults::at(location, "value_error.reach", "name exactly one of server_id, tag and all"))
}

impl From<ScopeIn> for GrantScope {
    fn from(scope: ScopeIn) -> Self {
        match (scope.server_id, scope.tag) {
            (Some(Reference(id)), _) => Self::Server(id),
            (None, Some(Tag(tag))) => Self::Tag(tag),
            (None, None) => Self::All,
        }
    }
}

/// Checks that only operators have some of the rights, and at least one.
pub fn check_rights(role: RoleIn, rights: Option<&[RightIn]>, location: ValuePointerRef<'_>) -> Result<(), Faults> {
    let (kind, msg) = match (role.0, rights) {
        (Role::Operator, Some([])) => ("value_error.list.min_items", "ensure this value has at least 1 items"),
        (Role::Operator, _) | (_, None | Some([])) => return Ok(()),
        (_, Some(_)) => ("value_error.rights", "only the role operator has some of the rights"),
    };
    Err(Faults::at(location.push_key("rights"), kind, msg))
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
#[deserr(error = Faults, validate = is_sound -> Faults)]
pub struct InvitedGrantIn {
    scope: ScopeIn,
    role: RoleIn,
    /// For the role `operator`, some of the rights. Defaults to all of them.
    #[deserr(default)]
    rights: Option<Vec<RightIn>>,
}

fn is_sound(grant: InvitedGrantIn, location: ValuePointerRef<'_>) -> Result<InvitedGrantIn, Faults> {
    check_rights(grant.role, grant.rights.as_deref(), location)?;
    Ok(grant)
}

impl From<InvitedGrantIn> for InvitedGrant {
    fn from(grant: InvitedGrantIn) -> Self {
        let InvitedGrantIn { scope, role, rights } = grant;
        Self { scope: scope.into(), role: role.0, rights: rights_of(role, rights) }
    }
}

/// Whether these are at most as many as an invitation may have.
pub fn few(grants: &[InvitedGrantIn]) -> Result<(), Faults> {
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
