//! What can be watched, and how it is named between instances.

use uuid::Uuid;

/// What can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// What happens to a server.
    Server(Uuid),
    /// The end of a server's record: nothing else.
    ServerEnd(Uuid),
    /// What happens to the alerts of all servers of an owner.
    Alerts(Uuid),
    /// The list of an owner's servers: nothing but that it has changed.
    Servers(Uuid),
    /// Whether the agents of an owner's servers are connected, and what they send: nothing but nudges here.
    Presence(Uuid),
    /// A log that is streamed: nothing but nudges.
    Log(Uuid),
    /// What happens to a login: nothing but its end.
    Login(Uuid),
    /// What happens to the service: nothing but its end.
    Service,
}

/// Bytes of a topic between instances: its kind and its id.
pub const PACKED: usize = 17;

const SERVER: u8 = 1;
const ALERTS: u8 = 2;
const PRESENCE: u8 = 3;

impl Topic {
    /// Whether what happens on one instance is heard on the others. The ends of logins and of servers, and that a list has
    /// changed, come to them with the audit log, because they must not be lost.
    pub fn crosses(self) -> bool {
        self.parts().is_some()
    }

    /// What it is called on the bus; none where it does not cross.
    pub fn name(self) -> Option<String> {
        let (kind, id) = self.parts()?;
        let word = match kind {
            SERVER => "server",
            ALERTS => "alerts",
            _ => "presence",
        };
        Some(format!("{word}.{id}"))
    }

    /// In as few bytes as it takes; none where it does not cross.
    pub fn packed(self) -> Option<[u8; PACKED]> {
        let (kind, id) = self.parts()?;
        let mut packed = [kind; PACKED];
        packed.split_at_mut(1).1.copy_from_slice(id.as_bytes());
        Some(packed)
    }

    /// What was packed; none for what nobody here knows.
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
            Self::ServerEnd(_) | Self::Servers(_) | Self::Log(_) | Self::Login(_) | Self::Service => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_crosses_comes_back_as_it_was() {
        let id = Uuid::from_u128(7);

        for topic in [Topic::Server(id), Topic::Alerts(id), Topic::Presence(id)] {
            assert_eq!(topic.packed().and_then(|packed| Topic::unpack(&packed)), Some(topic));
            assert!(topic.name().is_some_and(|name| name.ends_with(&id.to_string())));
        }
        for topic in [Topic::ServerEnd(id), Topic::Servers(id), Topic::Log(id), Topic::Login(id), Topic::Service] {
            assert_eq!((topic.packed(), topic.name()), (None, None));
        }
        assert_eq!(Topic::unpack(&[9; PACKED]), None);
        assert_eq!(Topic::unpack(&[1; 3]), None);
    }
}
