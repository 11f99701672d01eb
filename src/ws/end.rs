//! Why a dashboard's socket may not stay open, and why it closes.

use actix_web_actors::ws::CloseReason;
use signalbox_protocol::close;

/// Who closes a socket, and with which code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    Client(u16),
    Service(u16),
    /// The service, because the token expired.
    Expired,
    /// Nobody: the connection broke.
    Lost,
}

/// A client that goes away: a browser says so when it loads the page again.
const GOING_AWAY: u16 = 1001;

impl Closing {
    /// A client that gives no code is done, as with 1000.
    pub fn by_client(reason: Option<&CloseReason>) -> Self {
        Self::Client(reason.map_or(1000, |reason| reason.code.into()))
    }

    /// Whether the client may come back, and wants what it has left.
    pub fn is_loss(self) -> bool {
        match self {
            Self::Client(code) => matches!(code, GOING_AWAY | close::DETACHED),
            Self::Service(code) => matches!(code, GOING_AWAY | close::RESTARTING | close::OVERLOADED),
            Self::Expired | Self::Lost => true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Session,
    /// The session has not proved the second factor that it must have.
    Factor,
    Server,
    /// The caller may not see the server any more.
    Sight,
    /// The caller may see the server, but not what this socket shows.
    Right,
}

impl End {
    /// The code and the text of the close frame.
    pub fn closing(self) -> (u16, &'static str) {
        match self {
            Self::Session => (close::UNAUTHORIZED, "the session has ended"),
            Self::Factor => (close::FORBIDDEN, "the session has not proved a second factor"),
            Self::Server => (close::SERVER_DELETED, "the server was deleted"),
            Self::Sight => (close::SERVER_DELETED, "the server is not shared any more"),
            Self::Right => (close::FORBIDDEN, "the right to this was taken away"),
        }
    }
}
