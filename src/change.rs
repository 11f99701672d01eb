//! A change from which something follows beyond the database.
//!
//! The instance where it was asked for makes the value, the others read it from the audit log: every change that matters
//! to them is an entry of it. What follows is the same everywhere ([`crate::effects`]).

use uuid::Uuid;

use crate::audit::action;
use crate::audit::chain::Record;
use crate::store::Reach;

/// Something that was changed, on any instance. To apply it twice does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    KeyRevoked {
        key_id: Uuid,
    },
    LoginEnded {
        login_id: Uuid,
    },
    /// The user's password: their other logins have ended. Only the instance that changed it knows which.
    PasswordChanged {
        user_id: Uuid,
        ended: Vec<Uuid>,
    },
    UserRenamed {
        user_id: Uuid,
    },
    ServerDeleted {
        server_id: Uuid,
        owner_id: Uuid,
    },
    /// A new one, or another name or tags.
    ServerChanged {
        server_id: Uuid,
        owner_id: Uuid,
    },
    /// Thresholds for this server, or for any of the owner's.
    RulesChanged {
        server_id: Option<Uuid>,
        owner_id: Uuid,
    },
    AlertResolved {
        alert_id: Uuid,
    },
    /// Which notifications are sent to whom, or when.
    NotificationsChanged,
    BatchCancelled {
        batch_id: Uuid,
    },
}

impl Change {
    /// The actions that are changes.
    pub const ACTIONS: [&str; 17] = [
        action::API_KEY_REVOKE,
        action::LOGOUT,
        action::SESSION_END,
        action::PASSWORD_CHANGE,
        action::PASSWORD_RESET,
        action::PROFILE_UPDATE,
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

    /// Rules of this reach.
    pub fn of_rules(owner_id: Uuid, reach: &Reach) -> Self {
        Self::RulesChanged { server_id: reach.server_id, owner_id }
    }

    /// What an entry says, if anything follows from it.
    pub fn of(record: &Record) -> Option<Self> {
        let target = || record.target.as_deref().and_then(|target| Uuid::parse_str(target).ok());
        let (server_id, owner_id) = (record.server_id, record.owner_id);
        Some(match record.action.as_str() {
            action::API_KEY_REVOKE => Self::KeyRevoked { key_id: target()? },
            action::LOGOUT | action::SESSION_END => Self::LoginEnded { login_id: target()? },
            action::PASSWORD_CHANGE | action::PASSWORD_RESET => {
                Self::PasswordChanged { user_id: owner_id, ended: Vec::new() }
            }
            action::PROFILE_UPDATE => Self::UserRenamed { user_id: owner_id },
            action::SERVER_DELETE => Self::ServerDeleted { server_id: server_id?, owner_id },
            action::SERVER_CREATE | action::SERVER_UPDATE => Self::ServerChanged { server_id: server_id?, owner_id },
            // It says only for which server it is now: the one before is among all of the owner's.
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

/// Whether a threshold's entry says that it is for other servers now; yes where its detail is not whole.
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
    fn every_action_of_the_list_is_a_change_and_no_other() {
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
    fn an_entry_without_what_it_is_about_says_nothing() {
        let entry = Entry::new(action::API_KEY_REVOKE, Uuid::nil(), Actor::command_line()).target("no id");

        assert_eq!(Change::of(&record(entry)), None);
    }

    #[test]
    fn a_threshold_that_moves_concerns_the_servers_of_before_too() {
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
