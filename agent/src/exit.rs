//! Why an agent ended.

use std::fmt;

/// The end of an agent. It waits until any other fault is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to stop.
    Stopped,
    /// It cannot run as configured; the text says why.
    Misconfigured(String),
    /// The service does not accept its key, or revoked it; the text is the service's own.
    KeyRefused(String),
    /// The service deleted its server.
    ServerDeleted,
}

impl Exit {
    /// The process's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Misconfigured(_) => 2,
            Self::KeyRefused(_) | Self::ServerDeleted => 3,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Misconfigured(detail) => f.write_str(detail),
            Self::KeyRefused(detail) => write!(f, "the service refused the key: {detail}"),
            Self::ServerDeleted => f.write_str("this server was deleted from the service"),
        }
    }
}
