//! A change that has effects beyond the database.
//!
//! The instance that made the change creates the value; the other instances read it from the audit log, where every
//! change that matters to them is an entry. The effects are the same everywhere ([`crate::effects`]).

use uuid::Uuid;

use crate::audit::action;
use crate::audit::chain::Record;
use crate::store::Reach;

/// A change made on any instance. Applying it twice does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    KeyRevoked {
        key_id: Uuid,
    },
    /// A login ended, or the token of a program was revoked.
    LoginEnded {
        login_id: Uuid,
    },
    /// The user's password changed, and their other logins have ended. Only the instance that changed it knows which.
    PasswordChanged {
        user_id: Uuid,
        ended: Vec<Uuid>,
    },
    UserRenamed {
        user_id: Uuid,
    },
    /// Grants, teams or their members changed.
    AccessChanged,
    /// The account was disabled, enabled, or is an administrator's now or no longer.
    AccountChanged {
        user_id: Uuid,
    },
    /// The account was deleted, and its servers belong to another one.
    AccountDeleted {
        user_id: Uuid,
        servers_to: Option<Uuid>,
        /// Batches that had not ended.
        batches: Vec<Uuid>,
    },
    /// The operator removed the user's second factors, and their logins have ended.
    SecondFactorReset {
        user_id: Uuid,
    },
    ServerDeleted {
        server_id: Uuid,
        owner_id: Uuid,
    },
    /// A server was created, or its name or tags changed.
    ServerChanged {
        server_id: Uuid,
        owner_id: Uuid,
    },
    /// Thresholds changed for this server, or for any of the owner's.
    RulesChanged {
        server_id: Option<Uuid>,
        owner_id: Uuid,
    },
    AlertResolved {
        alert_id: Uuid,
    },
    /// Channels or silences changed, and with them who gets which notifications, and when.
    NotificationsChanged,
    BatchCancelled {
        batch_id: Uuid,
    },
    /// The database has lost changes, as after a failover: anything may be as it was before.
    Rewound,
}

impl Change {
    /// The actions of the audit log that are changes.
    pub const ACTIONS: [&str; 31] = [
        action::API_KEY_REVOKE,
        action::TOKEN_REVOKE,
        action::LOGOUT,
        action::SESSION_END,
        action::PASSWORD_CHANGE,
        action::PASSWORD_RESET,
        action::PROFILE_UPDATE,
        action::SECOND_FACTOR_RESET,
        action::GRANT_CREATE,
        action::GRANT_DELETE,
        action::TEAM_CREATE,
        action::TEAM_UPDATE,
        action::TEAM_DELETE,
        action::TEAM_MEMBER_ADD,
        action::TEAM_MEMBER_REMOVE,
        action::USER_DISABLE,
        action::USER_ENABLE,
        action::USER_PROMOTE,
        action::USER_DEMOTE,
        action::USER_DELETE,
        action::SERVER_CREATE,
        action::SERVER_UPDATE,
        action::SERVER_DELETE,
        action::THRESHOLD_CREATE,
        action::THRESHOLD_UPDATE,
        action::THRESHOLD_DELETE,
        action::ALERT_RESOLVE,
        action::SILENCE_UPDATE,
        action::SILENCE_DELETE,
        action::CHANNEL_UPDATE,
        action::BATCH_CANCEL,
    ];

    /// The change of thresholds with this reach.
    pub fn of_rules(owner_id: Uuid, reach: &Reach) -> Self {
        Self::RulesChanged { server_id: reach.server_id, owner_id }
    }

    /// The change that an audit entry describes, if it has effects.
    pub fn of(record: &Record) -> Option<Self> {
        let target = || record.target.as_deref().and_then(|target| Uuid::parse_str(target).ok());
        let (server_id, owner_id) = (record.server_id, record.owner_id);
        Some(match record.action.as_str() {
            action::API_KEY_REVOKE => Self::KeyRevoked { key_id: target()? },
            action::LOGOUT | action::SESSION_END | action::TOKEN_REVOKE => Self::LoginEnded { login_id: target()? },
            action::PASSWORD_CHANGE | action::PASSWORD_RESET => {
                Self::PasswordChanged { user_id: owner_id, ended: Vec::new() }
            }
            action::PROFILE_UPDATE => Self::UserRenamed { user_id: owner_id },
            action::SECOND_FACTOR_RESET => Self::SecondFactorReset { user_id: owner_id },
            action::GRANT_CREATE
            | action::GRANT_DELETE
            | action::TEAM_CREATE
            | action::TEAM_UPDATE
            | action::TEAM_DELETE
            | action::TEAM_MEMBER_ADD
            | action::TEAM_MEMBER_REMOVE => Self::AccessChanged,
            action::USER_DISABLE | action::USER_ENABLE | action::USER_PROMOTE | action::USER_DEMOTE => {
                Self::AccountChanged { user_id: owner_id }
            }
            // A wrong password is an entry, too.
            action::USER_DELETE if record.outcome != "ok" => return None,
            action::USER_DELETE => {
                let Deletion { servers_to, batches } = serde_json::from_str(&record.detail).unwrap_or_default();
                Self::AccountDeleted { user_id: owner_id, servers_to, batches }
            }
            action::SERVER_DELETE => Self::ServerDeleted { server_id: server_id?, owner_id },
            action::SERVER_CREATE | action::SERVER_UPDATE => Self::ServerChanged { server_id: server_id?, owner_id },
            // The entry names only the server that it is for now; the previous one is also among the owner's servers.
            action::THRESHOLD_UPDATE if has_moved(&record.detail) => Self::RulesChanged { server_id: None, owner_id },
            action::THRESHOLD_CREATE | action::THRESHOLD_UPDATE | action::THRESHOLD_DELETE => {
                Self::RulesChanged { server_id, owner_id }
            }
            action::ALERT_RESOLVE => Self::AlertResolved { alert_id: target()? },
            action::SILENCE_UPDATE | action::SILENCE_DELETE | action::CHANNEL_UPDATE => Self::NotificationsChanged,
            action::BATCH_CANCEL => Self::BatchCancelled { batch_id: target()? },
            _ => return None,
        })
    }
}

/// What the entry about a deleted account says.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Deletion {
    servers_to: Option<Uuid>,
    batches: Vec<Uuid>,
}

/// Whether a threshold's entry says that it moved to other servers; true if its detail is incomplete.
fn has_moved(detail: &str) -> bool {
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(detail) {
        Ok(detail) => ["server_id", "tag", "cut"].iter().any(|field| detail.contains_key(*field)),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::{Actor, Entry, chain};

    fn record(entry: Entry) -> Record {
        entry.into_record(1, signalbox_protocol::Timestamp::default(), None, &chain::BEGINNING)
    }

    #[test]
    fn exactly_the_listed_actions_are_changes() {
        let id = Uuid::from_u128(7);
        let told = |action| {
            let entry = Entry::new(action, Uuid::nil(), Actor::command_line()).on_server(id).target(id);
            Change::of(&record(entry))
        };

        assert!(Change::ACTIONS.iter().all(|action| told(action).is_some()));
        assert_eq!(told(action::COMMAND_RUN), None);
        assert_eq!(told(action::API_KEY_REVOKE), Some(Change::KeyRevoked { key_id: id }));
    }

    #[test]
    fn an_entry_without_its_target_is_no_change() {
        let entry = Entry::new(action::API_KEY_REVOKE, Uuid::nil(), Actor::command_line()).target("no id");

        assert_eq!(Change::of(&record(entry)), None);
    }

    #[test]
    fn a_deleted_account_names_what_ended_with_it_and_a_wrong_password_ends_nothing() {
        let (user_id, other, batch) = (Uuid::nil(), Uuid::from_u128(7), Uuid::from_u128(8));
        let entry = Entry::new(action::USER_DELETE, user_id, Actor::command_line());
        let deleted = entry.clone().detail(json!({ "username": "ada", "servers_to": other, "batches": [batch] }));

        let change = Change::AccountDeleted { user_id, servers_to: Some(other), batches: vec![batch] };
        assert_eq!(Change::of(&record(deleted)), Some(change));
        assert_eq!(Change::of(&record(entry.outcome(crate::audit::Outcome::Refused))), None);
    }

    #[test]
    fn a_moved_threshold_affects_its_previous_servers_too() {
        let (owner_id, server_id) = (Uuid::nil(), Uuid::from_u128(7));
        let read = |detail| {
            let entry = Entry::new(action::THRESHOLD_UPDATE, owner_id, Actor::command_line()).on_server(server_id);
            Change::of(&record(entry.detail(detail)))
        };

        let here = Some(Change::RulesChanged { server_id: Some(server_id), owner_id });
        let anywhere = Some(Change::RulesChanged { server_id: None, owner_id });
        assert_eq!(read(json!({ "threshold_value": [90.0, 80.0] })), here);
        assert_eq!(read(json!({ "server_id": [null, server_id] })), anywhere);
        assert_eq!(read(json!({ "tag": ["db", null] })), anywhere);
        assert_eq!(read(json!({ "cut": true })), anywhere);
    }
}
