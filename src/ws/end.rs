//! Why a dashboard's socket may not stay open.

use signalbox_protocol::close;

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
