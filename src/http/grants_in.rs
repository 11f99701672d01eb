//! The grants that an invitation has for the new account: to which servers, and what the account may do to them.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::extract::fault::{Faults, not_a_member};
use super::extract::field::{Reference, Tag, described, string};
use super::field_out::Id;
use super::reply::fault_of;

/// More than an administrator gives one person at once.
const MAX_GRANTS: usize = 50;

/// Implements a word of a closed set, in requests and responses.
macro_rules! word {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($variant),+ }

        impl Deserr<Faults> for $name {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                location: ValuePointerRef<'_>,
            ) -> Result<Self, Faults> {
                match string(value, location)?.as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(not_a_member(&[$($word),+], location)),
                }
            }
        }

        described!($name, json!({ "type": "string", "enum": [$($word),+] }));
    };
}

word!(
    /// What somebody may do to a server: each role contains the one before.
    RoleWord { Viewer = "viewer", Responder = "responder", Operator = "operator", Manager = "manager" }
);
word!(
    /// A right of an operator.
    RightWord { Containers = "containers", Commands = "commands", Logs = "logs", Terminal = "terminal" }
);

/// What an operator may do if no right is named.
const ALL_RIGHTS: [RightWord; 4] = [RightWord::Containers, RightWord::Commands, RightWord::Logs, RightWord::Terminal];

/// Which of the inviting administrator's servers: exactly one of the fields.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = exactly_one -> Faults)]
pub struct ScopeIn {
    #[deserr(default)]
    server_id: Option<Reference>,
    /// Servers with this tag, future ones too.
    #[deserr(default)]
    tag: Option<Tag>,
    /// All servers, future ones too.
    #[deserr(default)]
    all: Option<bool>,
}

fn exactly_one(scope: ScopeIn, location: ValuePointerRef<'_>) -> Result<ScopeIn, Faults> {
    let named = [scope.server_id.is_some(), scope.tag.is_some(), scope.all == Some(true)];
    let msg = "give exactly one of server_id, tag and all: true";
    match named.into_iter().filter(|is_named| *is_named).count() {
        1 => Ok(scope),
        _ => Err(Faults::at(location, "value_error.scope", msg)),
    }
}

/// A role on servers, for somebody who is invited.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = rights_fit -> Faults)]
pub struct GrantIn {
    scope: ScopeIn,
    role: RoleWord,
    /// The rights of an operator. Defaults to all of them.
    #[deserr(default)]
    rights: Option<Vec<RightWord>>,
}

impl GrantIn {
    /// The only server that it is for.
    pub fn server_id(&self) -> Option<Uuid> {
        self.scope.server_id.as_ref().map(|Reference(id)| *id)
    }
}

fn rights_fit(grant: GrantIn, location: ValuePointerRef<'_>) -> Result<GrantIn, Faults> {
    let is_fine = grant.rights.is_none() || grant.role == RoleWord::Operator;
    let msg = "only an operator has rights of their own";
    is_fine.then_some(grant).ok_or_else(|| Faults::at(location.push_key("rights"), "value_error.rights", msg))
}

/// Whether these are at most as many as an invitation may have.
pub fn few(grants: &[GrantIn]) -> Result<(), Faults> {
    let msg = || format!("ensure this value has at most {MAX_GRANTS} items");
    if grants.len() <= MAX_GRANTS { Ok(()) } else { Err(fault_of("grants", "value_error.list.max_items", &msg())) }
}

/// The form in which an invitation stores them.
pub fn stored(grants: Vec<GrantIn>) -> serde_json::Value {
    let grants: Vec<GrantOut> = grants.into_iter().map(GrantOut::from).collect();
    json!(grants)
}

/// Which servers.
#[derive(Debug, Serialize, Deserialize, Apiv2Schema)]
pub struct ScopeOut {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all: Option<bool>,
}

/// A role on servers, for somebody who is invited.
#[derive(Debug, Serialize, Deserialize, Apiv2Schema)]
pub struct GrantOut {
    scope: ScopeOut,
    role: RoleWord,
    rights: Vec<RightWord>,
}

impl From<GrantIn> for GrantOut {
    fn from(grant: GrantIn) -> Self {
        let ScopeIn { server_id, tag, all } = grant.scope;
        let mut rights = match grant.role {
            RoleWord::Operator => grant.rights.unwrap_or_else(|| ALL_RIGHTS.to_vec()),
            RoleWord::Viewer | RoleWord::Responder | RoleWord::Manager => Vec::new(),
        };
        rights.sort_unstable();
        rights.dedup();
        let (server_id, tag) = (server_id.map(|Reference(id)| Id(id)), tag.map(|Tag(tag)| tag));
        Self { scope: ScopeOut { server_id, tag, all: all.filter(|all| *all) }, role: grant.role, rights }
    }
}

/// The grants that an invitation stores.
pub fn read(stored: &str) -> Vec<GrantOut> {
    // Malformed only if someone changed the table outside of the service.
    serde_json::from_str(stored).unwrap_or_default()
}
