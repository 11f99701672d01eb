//! The topics of subscriptions, and their names between instances.

use uuid::Uuid;

/// A topic of subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Events of a server.
    Server(Uuid),
    /// The deletion of a server.
    ServerEnd(Uuid),
    /// Changes of the alerts of all servers of an owner.
    Alerts(Uuid),
    /// Notices that the list of an owner's servers has changed.
    Servers(Uuid),
    /// The statuses and samples of an owner's servers; on this instance only nudges.
    Presence(Uuid),
    /// A log that is streamed; only nudges.
    Log(Uuid),
    /// The end of a login.
    Login(Uuid),
    /// What a user may do.
    Access(Uuid),
    /// Changes of an owner's servers, whose tags decide for which tokens they are.
    Scope(Uuid),
    /// The end of the service.
    Service,
}

/// The length of a packed topic in bytes: its kind and its id.
pub const PACKED: usize = 17;

const SERVER: u8 = 1;
const ALERTS: u8 = 2;
const PRESENCE: u8 = 3;

impl Topic {
    /// Returns whether events are relayed between instances. The ends of logins and servers, and changes of a list or of rights, reach other
    /// instances through the audit log instead, because they must not be lost.
    pub fn crosses(self) -> bool {
        self.parts().is_some()
    }

    /// Returns its name on the bus; `None` if it does not cross.
    pub fn name(self) -> Option<String> {
        let (kind, id) = self.parts()?;
        let word = match kind {
            SERVER => "server",
            ALERTS => "alerts",
            _ => "presence",
        };
        Some(format!("{word}.{id}"))
    }

    /// Returns its packed form; `None` if it does not cross.
    pub fn packed(self) -> Option<[u8; PACKED]> {
        let (kind, id) = self.parts()?;
        let mut packed = [kind; PACKED];
        packed.split_at_mut(1).1.copy_from_slice(id.as_bytes());
        Some(packed)
    }

    /// Returns the topic of a packed form; `None` for an unknown one.
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let (kind, id) = packed.split_first()?;
        let id = Uuid::from_slice(id).ok()?;
        match *kind {
            SERVER => Some(Self::Server(id)),
            ALERTS => Some(Self::Alerts(id)),
            PRESENCE => Some(Self::Presence(id)),
            _ => None,
        }
    }

    fn parts(self) -> Option<(u8, Uuid)> {
        match self {
            Self::Server(id) => Some((SERVER, id)),
            Self::Alerts(id) => Some((ALERTS, id)),
            Self::Presence(id) => Some((PRESENCE, id)),
            Self::ServerEnd(_)
            | Self::Servers(_)
            | Self::Log(_)
            | Self::Login(_)
            | Self::Access(_)
            | Self::Scope(_)
            | Self::Service => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_topic_unpacks_to_itself() {
        let id = Uuid::from_u128(7);

        for topic in [Topic::Server(id), Topic::Alerts(id), Topic::Presence(id)] {
            assert_eq!(topic.packed().and_then(|packed| Topic::unpack(&packed)), Some(topic));
            assert!(topic.name().is_some_and(|name| name.ends_with(&id.to_string())));
        }
        let local = [Topic::ServerEnd(id), Topic::Servers(id), Topic::Log(id), Topic::Login(id), Topic::Access(id)];
        for topic in local.into_iter().chain([Topic::Service]) {
            assert_eq!((topic.packed(), topic.name()), (None, None));
        }
        assert_eq!(Topic::unpack(&[9; PACKED]), None);
        assert_eq!(Topic::unpack(&[1; 3]), None);
    }
}
