//! Which entries of the audit log other instances have to heed, and what they say.

use uuid::Uuid;

use super::action;
use super::chain::Record;

/// Something that was changed, on whichever instance. To heed it twice does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    KeyRevoked {
        key_id: Uuid,
    },
    LoginEnded {
        login_id: Uuid,
    },
    /// The user's password: their other logins have ended.
    PasswordChanged,
    Renamed {
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
    /// What is told to whom, or when.
    ToldOtherwise,
    BatchCalledOff {
        batch_id: Uuid,
    },
}

impl News {
    /// The actions that are news.
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

    /// What an entry says to other instances, if anything.
    pub fn of(record: &Record) -> Option<Self> {
        let target = || record.target.as_deref().and_then(|target| Uuid::parse_str(target).ok());
        let (server_id, owner_id) = (record.server_id, record.owner_id);
        Some(match record.action.as_str() {
            action::API_KEY_REVOKE => Self::KeyRevoked { key_id: target()? },
            action::LOGOUT | action::SESSION_END => Self::LoginEnded { login_id: target()? },
            action::PASSWORD_CHANGE | action::PASSWORD_RESET => Self::PasswordChanged,
            action::PROFILE_UPDATE => Self::Renamed { user_id: owner_id },
            action::SERVER_DELETE => Self::ServerDeleted { server_id: server_id?, owner_id },
            action::SERVER_CREATE | action::SERVER_UPDATE => Self::ServerChanged { server_id: server_id?, owner_id },
            action::THRESHOLD_CREATE | action::THRESHOLD_UPDATE | action::THRESHOLD_DELETE => {
                Self::RulesChanged { server_id, owner_id }
            }
            action::ALERT_RESOLVE => Self::AlertResolved { alert_id: target()? },
            action::SILENCE_UPDATE | action::SILENCE_DELETE | action::CHANNEL_UPDATE => Self::ToldOtherwise,
            action::BATCH_CANCEL => Self::BatchCalledOff { batch_id: target()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Actor, Entry, chain};
    use super::*;

    fn record(entry: Entry) -> Record {
        entry.into_record(1, signalbox_protocol::Timestamp::default(), None, &chain::BEGINNING)
    }

    #[test]
    fn every_action_of_the_list_is_news_and_no_other() {
        let id = Uuid::from_u128(7);
        let told = |action| {
            let entry = Entry::new(action, Uuid::nil(), Actor::command_line()).on_server(id).target(id);
            News::of(&record(entry))
        };

        assert!(News::ACTIONS.iter().all(|action| told(action).is_some()));
        assert_eq!(told(action::COMMAND_RUN), None);
        assert_eq!(told(action::API_KEY_REVOKE), Some(News::KeyRevoked { key_id: id }));
    }

    #[test]
    fn an_entry_without_what_it_is_about_says_nothing() {
        let entry = Entry::new(action::API_KEY_REVOKE, Uuid::nil(), Actor::command_line()).target("no id");

        assert_eq!(News::of(&record(entry)), None);
    }
}
