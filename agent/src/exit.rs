//! Why an agent ended.

use std::fmt;

use crate::updates::Build;

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
    /// It ended for this new build to be tried.
    Update(Box<Build>),
    /// It is on trial, and works.
    Works,
}

impl Exit {
    /// The process's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Stopped | Self::Update(_) => 0,
            Self::Misconfigured(_) => 2,
            Self::KeyRefused(_) | Self::ServerDeleted => 3,
            // No program says this by accident: the shell, the kernel and Rust use others.
            Self::Works => 110,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Misconfigured(detail) => f.write_str(detail),
            Self::KeyRefused(detail) => write!(f, "the service refused the key: {detail}"),
            Self::Update(build) => write!(f, "ended to try the build {}", build.version),
            Self::Works => f.write_str("this build works"),
            Self::ServerDeleted => f.write_str("this server was deleted from the service"),
        }
    }
}
